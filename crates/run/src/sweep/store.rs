//! A folder with results of cells: one file for each, named by its key, and the plan.
//!
//! A file is written under another name and then renamed. So every file with a key's name is complete, even if the program
//! was killed. A file holds a digest of its result; if they do not match, the file is damaged.

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

/// The file name of the plan.
const PLAN: &str = "sweep.json";
/// The suffix of unfinished files.
const UNFINISHED: &str = ".unfinished";

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Unfinished files of earlier runs that were ended, by the keys of their cells.
    unfinished: BTreeMap<String, Vec<PathBuf>>,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Totals over all flows.
    pub totals: SweepTotals,
    /// The summary of the whole simulation. Its name is empty if the scenario has none.
    pub sim: Sim,
}

/// The contents of a cell's file.
#[derive(Debug, Serialize, Deserialize)]
struct CellFile {
    format: u32,
    version: String,
    key: String,
    /// The digest of the text of `result`.
    digest: String,
    #[serde(with = "decimal")]
    seed: u64,
    /// For readers only: a cell may belong to several sweeps with different parameters.
    parameters: BTreeMap<String, String>,
    /// Its text as it was written, so that its digest can be checked in any format.
    result: Box<RawValue>,
}

/// Facts that a cell's file states besides the result.
#[derive(Debug)]
pub struct About {
    /// The version of queuescope.
    pub version: String,
    /// The cell's number. It keeps the names of unfinished files apart when equal cells are written at the same time.
    pub number: u64,
    /// Its seed.
    pub seed: u64,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
}

/// The result of looking up a cell.
#[derive(Debug)]
pub enum StoredCell<T> {
    /// The complete result.
    Whole(Box<T>),
    /// There is no file for the cell.
    Nothing,
    /// There is a file, but it does not hold the cell's result, for this reason.
    Damaged(String),
}

impl Store {
    /// Opens a folder for results, and creates it if it does not exist.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or read.
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
    /// Fails if the folder has no plan, or the plan is not valid.
    pub fn open(folder: &Path) -> Result<(Self, Plan), Error> {
        let store = Self { folder: folder.to_owned(), unfinished: BTreeMap::new() };
        let plan = store.plan()?;
        let plan = plan.ok_or_else(|| Error::NoPlan { folder: folder.display().to_string(), plan: PLAN })?;
        Ok((store, plan))
    }

    /// Reads the plan of the folder; `None` if there is no file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not a valid plan.
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
    /// Fails if the file cannot be written.
    pub fn keep_plan(&self, plan: &Plan) -> Result<(), Error> {
        self.write(PLAN, &format!("sweep.{}", std::process::id()), &serde_json::to_vec(plan)?)
    }

    /// Looks up the result of a cell.
    ///
    /// # Errors
    /// Fails if the cell's file exists and cannot be read.
    pub fn load<T: DeserializeOwned>(&self, key: &str) -> Result<StoredCell<T>, Error> {
        let path = self.path(key);
        let Some(bytes) = read(&path).map_err(Error::read(&path))? else {
            return Ok(StoredCell::Nothing);
        };
        let file: CellFile = match serde_json::from_slice(&bytes) {
            Ok(file) => file,
            Err(error) => return Ok(StoredCell::Damaged(error.to_string())),
        };
        Ok(match () {
            () if !READABLE.contains(&file.format) => StoredCell::Damaged(format!("its format is {}", file.format)),
            () if file.key != key => StoredCell::Damaged("it belongs to another cell".to_owned()),
            () if file.digest != digest(&file.result) => StoredCell::Damaged("its digest does not match".to_owned()),
            () => match serde_json::from_str(file.result.get()) {
                Ok(result) => StoredCell::Whole(Box::new(result)),
                Err(error) => StoredCell::Damaged(error.to_string()),
            },
        })
    }

    /// Writes the result of a cell, and returns it.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn keep<T: Serialize>(&self, key: &str, about: About, result: T) -> Result<T, Error> {
        let About { version, number, seed, parameters } = about;
        let text = serde_json::value::to_raw_value(&result)?;
        let (key, digest) = (key.to_owned(), digest(&text));
        let file = CellFile { format: FORMAT, version, key, digest, seed, parameters, result: text };
        let key = &file.key;
        let mut bytes = serde_json::to_vec(&file)?;
        bytes.push(b'\n');
        // Equal cells share one file, and two threads may write it at the same time.
        self.write(&format!("{key}.json"), &format!("{key}.{}-{number}", std::process::id()), &bytes)?;
        for path in self.unfinished.get(key.as_str()).into_iter().flatten() {
            // Another thread may have removed it. If it stays, it does no harm.
            _ = fs::remove_file(path);
        }
        Ok(result)
    }

    /// Writes a text file next to the results.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn keep_text(&self, name: &str, text: &str) -> Result<(), Error> {
        self.write(name, &format!("{name}.{}", std::process::id()), text.as_bytes())
    }

    /// The keys of all result files in the folder.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
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

    /// The path of a cell's file.
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

/// The most bytes of a result or a plan.
const LARGEST: u64 = 1 << 30;

/// The contents of a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() > LARGEST {
        return Err(io::Error::other("it is larger than any result"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
