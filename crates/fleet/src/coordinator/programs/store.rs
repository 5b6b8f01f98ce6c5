//! Control programs on the disk: a file each.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The ending of the files.
const ENDING: &str = "json";
/// The longest file: a text, and the values of its parameters.
const LONGEST: u64 = 4 << 20;

/// A folder of control programs.
#[derive(Debug)]
pub struct ProgramStore {
    folder: PathBuf,
}

/// Why programs cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ProgramStoreError {
    /// A file or the folder cannot be read or written.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A file has something else in it.
    #[error("{} is no control program: {why}; move it away, and add the program again", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A program as it was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Its name, which is that of the file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The values of its parameters.
    pub values: BTreeMap<String, String>,
}

#[expect(clippy::disallowed_methods, reason = "the coordinator's folder is this crate's own")]
impl ProgramStore {
    /// The programs of a folder, which is made if it is not there.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn open(folder: &Path) -> Result<Self, ProgramStoreError> {
        fs::create_dir_all(folder).map_err(failed("make", folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// All programs.
    pub(super) fn read(&self) -> Result<Vec<Stored>, ProgramStoreError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed("read", &self.folder))? {
            let path = entry.map_err(failed("read", &self.folder))?.path();
            // What a crash left half written has another ending.
            if path.extension().is_some_and(|ending| ending == ENDING) {
                all.push(read(&path)?);
            }
        }
        Ok(all)
    }

    /// Stores a program in place of the one of this name. It is on the disk afterwards.
    pub(super) fn write(&self, program: &Stored) -> Result<(), ProgramStoreError> {
        let path = self.path(&program.name);
        let new = path.with_extension("new");
        let text = serde_json::to_vec_pretty(program).unwrap_or_default();
        let mut options = fs::OpenOptions::new();
        let written = options
            .write(true)
            .create(true)
            .truncate(true)
            .open(&new)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| self.sync());
        written.map_err(failed("write", &path))
    }

    /// Removes a program.
    pub(super) fn remove(&self, name: &str) -> Result<(), ProgramStoreError> {
        let path = self.path(name);
        fs::remove_file(&path).and_then(|()| self.sync()).map_err(failed("remove", &path))
    }

    /// The file of a program.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension(ENDING)
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.folder)?.sync_all()
    }
}

#[expect(clippy::disallowed_methods, reason = "the coordinator's folder is this crate's own")]
fn read(path: &Path) -> Result<Stored, ProgramStoreError> {
    let content = |why: String| ProgramStoreError::Content { path: path.to_owned(), why };
    let length = fs::metadata(path).map_err(failed("read", path))?.len();
    if length > LONGEST {
        return Err(content(format!("it has {length} bytes, and at most {LONGEST} are read")));
    }
    let text = fs::read(path).map_err(failed("read", path))?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| content(error.to_string()))?;
    if path.file_stem().is_none_or(|stem| stem != stored.name.as_str()) {
        return Err(content(format!("it has the program `{}`", stored.name)));
    }
    Ok(stored)
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProgramStoreError {
    let path = path.to_owned();
    move |why| ProgramStoreError::File { what, path, why }
}
