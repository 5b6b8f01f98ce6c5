//! Paths that are to be folders of logs.

use crate::error::Error;
use std::path::Path;

/// Refuses what cannot be the folder of a log, since it is not there or no folder.
///
/// # Errors
/// If it is so.
pub fn check_log(folder: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Err(Error::Absent(folder.to_owned()));
    }
    check_folder(folder)
}

/// Refuses a file where a folder is meant.
///
/// # Errors
/// If it is one.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Error> {
    if folder.exists() && !folder.is_dir() { Err(Error::NoFolder(folder.to_owned())) } else { Ok(()) }
}
