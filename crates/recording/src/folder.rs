//! Checks paths that must be folders of logs.

use crate::error::Error;
use std::path::Path;

/// Checks that a path is an existing folder.
///
/// # Errors
/// Fails if it does not exist, or is not a folder.
pub fn check_log(folder: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Err(Error::Absent(folder.to_owned()));
    }
    check_folder(folder)
}

/// Checks that a path is not a file.
///
/// # Errors
/// Fails if it is a file.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Error> {
    if folder.exists() && !folder.is_dir() { Err(Error::NoFolder(folder.to_owned())) } else { Ok(()) }
}
