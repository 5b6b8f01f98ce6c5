//! Results of cells in a folder: a file for each, named by its key, and the plan.
//!
//! A file is written under another name and then renamed, so that whoever finds one finds all of it, however the program
//! was ended. What it holds goes with a digest; a file that does not fit its own is damaged.

use super::key::{FORMAT, READABLE, hex, is_key, sum};
use super::plan::Plan;
use crate::error::Error;
use crate::files::open_regular;
use queuescope_report::decimal;
use queuescope_report::model::{Sim, SweepTotals};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The name of the plan.
const PLAN: &str = "sweep.json";
/// How names of unfinished files end.
const UNFINISHED: &str = ".unfinished";

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Files that an earlier run was ended over, by the keys of their cells.
    unfinished: BTreeMap<String, Vec<PathBuf>>,
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// What all flows have together.
    pub totals: SweepTotals,
    /// The whole simulation. It has no name if the scenario has none.
    pub sim: Sim,
}

/// What is in a file.
#[derive(Debug, Serialize, Deserialize)]
struct CellFile {
    format: u32,
    version: String,
    key: String,
    /// Of the text of `result`.
    digest: String,
    #[serde(with = "decimal")]
    seed: u64,
    /// For people; a cell may be of several sweeps, and what is swept differs.
    parameters: BTreeMap<String, String>,
    /// Its text as it was written, so that its digest can be checked whatever format it has.
    result: Box<RawValue>,
}

/// What a cell's file says beside the result.
#[derive(Debug)]
pub struct About {
    /// The program's version.
    pub version: String,
    /// The cell's number: two that are alike may be written at once.
    pub number: u64,
    /// Its seed.
    pub seed: u64,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
}

/// What was found of a cell.
#[derive(Debug)]
pub enum Found<T> {
    /// All of it.
    Whole(Box<T>),
    /// There is no file.
    Nothing,
    /// There is one, but for this reason it is none of this cell.
    Damaged(String),
}

impl Store {
    /// Opens a folder for results, and makes it if it is not there.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::write(folder))?;
        let mut unfinished: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(Error::write(folder))? {
            let path = entry.map_err(Error::write(folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(UNFINISHED));
            if let Some(key) = name.and_then(|name| name.split('.').next()).filter(|key| is_key(key)) {
                unfinished.entry(key.to_owned()).or_default().push(path);
            }
        }
        Ok(Self { folder: folder.to_owned(), unfinished })
    }

    /// Opens a folder that has results.
    ///
    /// # Errors
    /// If it has no plan.
    pub fn open(folder: &Path) -> Result<(Self, Plan), Error> {
        let store = Self { folder: folder.to_owned(), unfinished: BTreeMap::new() };
        let plan = store.plan()?;
        let plan = plan.ok_or_else(|| Error::NoPlan { folder: folder.display().to_string(), plan: PLAN })?;
        Ok((store, plan))
    }

    /// The plan in the folder, if there is one.
    ///
    /// # Errors
    /// If there is a file in its place that is none.
    pub fn plan(&self) -> Result<Option<Plan>, Error> {
        let path = self.folder.join(PLAN);
        let bytes = match read(&path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => return Err(Error::read(&path)(error)),
        };
        let plan: Result<Plan, serde_json::Error> = serde_json::from_slice(&bytes);
        let problem = match &plan {
            Ok(plan) => plan.problem(),
            Err(error) => Some(error.to_string()),
        };
        match (plan, problem) {
            (Ok(plan), None) => Ok(Some(plan)),
            (_, problem) => {
                Err(Error::BadPlan { file: path.display().to_string(), problem: problem.unwrap_or_default() })
            }
        }
    }

    /// Writes the plan.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_plan(&self, plan: &Plan) -> Result<(), Error> {
        self.write(PLAN, &format!("sweep.{}", std::process::id()), &serde_json::to_vec(plan)?)
    }

    /// What there is of a cell.
    ///
    /// # Errors
    /// If its file is there and cannot be read.
    pub fn load<T: DeserializeOwned>(&self, key: &str) -> Result<Found<T>, Error> {
        let path = self.path(key);
        let Some(bytes) = read(&path).map_err(Error::read(&path))? else {
            return Ok(Found::Nothing);
        };
        let file: CellFile = match serde_json::from_slice(&bytes) {
            Ok(file) => file,
            Err(error) => return Ok(Found::Damaged(error.to_string())),
        };
        Ok(match () {
            () if !READABLE.contains(&file.format) => Found::Damaged(format!("it is of format {}", file.format)),
            () if file.key != key => Found::Damaged("it is of another cell".to_owned()),
            () if file.digest != digest(&file.result) => Found::Damaged("its digest is another".to_owned()),
            () => match serde_json::from_str(file.result.get()) {
                Ok(result) => Found::Whole(Box::new(result)),
                Err(error) => Found::Damaged(error.to_string()),
            },
        })
    }

    /// Keeps what came of a cell.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep<T: Serialize>(&self, key: &str, about: About, result: T) -> Result<T, Error> {
        let About { version, number, seed, parameters } = about;
        let text = serde_json::value::to_raw_value(&result)?;
        let (key, digest) = (key.to_owned(), digest(&text));
        let file = CellFile { format: FORMAT, version, key, digest, seed, parameters, result: text };
        let key = &file.key;
        let mut bytes = serde_json::to_vec(&file)?;
        bytes.push(b'\n');
        // Cells that are alike have one file; two threads may be at them at once.
        self.write(&format!("{key}.json"), &format!("{key}.{}-{number}", std::process::id()), &bytes)?;
        for path in self.unfinished.get(key.as_str()).into_iter().flatten() {
            // It was removed already, or is in nobody's way.
            _ = fs::remove_file(path);
        }
        Ok(result)
    }

    /// Keeps a text beside the results.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_text(&self, name: &str, text: &str) -> Result<(), Error> {
        self.write(name, &format!("{name}.{}", std::process::id()), text.as_bytes())
    }

    /// The keys of all files that are named as results.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn keys(&self) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(Error::read(&self.folder))? {
            let name = entry.map_err(Error::read(&self.folder))?.file_name();
            let key = name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|name| is_key(name));
            keys.extend(key.map(str::to_owned));
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Where a cell's file is.
    pub fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    fn write(&self, name: &str, unfinished: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.join(name);
        let beside = self.folder.join(format!("{unfinished}{UNFINISHED}"));
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            _ = fs::remove_file(&beside);
        }
        written.map_err(Error::write(&path))
    }
}

fn digest(result: &RawValue) -> String {
    hex(&sum(result.get().as_bytes())[..16])
}

/// Bytes of a result or a plan, at most.
const LARGEST: u64 = 1 << 30;

/// What is in a file, if there is one.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() > LARGEST {
        return Err(io::Error::other("it has more bytes than any result"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
