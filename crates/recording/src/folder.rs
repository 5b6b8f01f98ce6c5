//! Checks paths that must be folders of logs.

use crate::error::Error;
use std::path::Path;

/// Checks that a path is an existing folder.
///
/// # Errors
/// Fails if it does not exist, is not a folder, or cannot be looked at.
pub fn check_log(folder: &Path) -> Result<(), Error> {
    match folder.try_exists() {
        Ok(true) => check_folder(folder),
        Ok(false) => Err(Error::Absent(folder.to_owned())),
        Err(why) => Err(Error::Unreachable { path: folder.to_owned(), why }),
    }
}

/// Checks that a path is not a file.
///
/// # Errors
/// Fails if it is a file.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Error> {
    if folder.exists() && !folder.is_dir() { Err(Error::NoFolder(folder.to_owned())) } else { Ok(()) }
}
