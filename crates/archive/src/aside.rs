//! Files that are set aside: they were in the way of records, or lay behind damage. Nothing reads them.
//!
//! Each keeps the name of the journal that it was, or was the end of, with another extension. If you need the records, take them from there;
//! if not, remove the file.

use crate::error::FolderError;
use crate::folder::Folder;
use crate::regular;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The extension of files set aside.
const KEPT: &str = "kept";

/// Renames a file so that it is set aside, and returns its new path.
///
/// # Errors
/// Returns the error of the system call.
pub(crate) fn set_aside(folder: &Folder, path: &Path) -> Result<PathBuf, FolderError> {
    let kept = free(path)?;
    folder.rename(path, &kept)?;
    Ok(kept)
}

/// Copies the end of a file, from an offset on, to a file set aside, and returns the path of the copy. The copy survives a loss of power.
///
/// # Errors
/// Returns the error of the system call.
pub(crate) fn keep_end(folder: &Folder, path: &Path, offset: u64) -> Result<PathBuf, FolderError> {
    let kept = free(path)?;
    folder.place(&kept, |mut file| {
        let copied = regular::open(path).and_then(|mut from| {
            from.seek(SeekFrom::Start(offset))?;
            io::copy(&mut from, &mut file)
        });
        copied.map_err(|error| FolderError::io("copy the end of", path, error))?;
        Ok((file, ()))
    })?;
    Ok(kept)
}

/// All files of a folder that are set aside, sorted by name.
///
/// # Errors
/// Returns the error of the system call.
pub(crate) fn kept(folder: &Folder) -> Result<Vec<PathBuf>, FolderError> {
    let error = |error| FolderError::io("list", &folder.path, error);
    let listed = fs::read_dir(&folder.path).map_err(error)?.map(|entry| Ok(entry.map_err(error)?.path()));
    let mut found = listed.collect::<Result<Vec<_>, FolderError>>()?;
    found.retain(|path| path.extension().is_some_and(|end| end == KEPT));
    found.sort_unstable();
    Ok(found)
}

/// An unused name: `X.journal.kept`, or one with a number before the last extension.
fn free(path: &Path) -> Result<PathBuf, FolderError> {
    let mut end = path.extension().unwrap_or_default().to_owned();
    end.push(".");
    (1u64..)
        .find_map(|number| {
            let mut end = end.clone();
            end.push(if number == 1 { KEPT.to_owned() } else { format!("{number}.{KEPT}") });
            let kept = path.with_extension(end);
            match fs::symlink_metadata(&kept) {
                Ok(_) => None,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Ok(kept)),
                Err(error) => Some(Err(FolderError::io("look for", &kept, error))),
            }
        })
        .unwrap_or_else(|| unreachable!("a folder has fewer files than there are numbers"))
}
