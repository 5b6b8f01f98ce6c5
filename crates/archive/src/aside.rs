//! Files that are kept aside: what was in the way of records, or lay behind damage. Nothing reads them.
//!
//! Each has the name of the journal that it was, or was the end of, with another ending. Whoever needs the records takes them from
//! there; whoever does not removes the file.

use crate::error::FolderError;
use crate::folder::Folder;
use crate::regular;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How the names of such files end.
const KEPT: &str = "kept";

/// Gives a file a name under which it is kept, and returns that.
///
/// # Errors
/// Those of the system.
pub(crate) fn set_aside(folder: &Folder, path: &Path) -> Result<PathBuf, FolderError> {
    let kept = free(path)?;
    folder.rename(path, &kept)?;
    Ok(kept)
}

/// Copies what a file has from an offset on to where it is kept, and returns where that is. It is there after a loss of power, too.
///
/// # Errors
/// Those of the system.
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

/// All files of a folder that are kept aside, by their names.
///
/// # Errors
/// Those of the system.
pub(crate) fn kept(folder: &Folder) -> Result<Vec<PathBuf>, FolderError> {
    let error = |error| FolderError::io("list", &folder.path, error);
    let listed = fs::read_dir(&folder.path).map_err(error)?.map(|entry| Ok(entry.map_err(error)?.path()));
    let mut found = listed.collect::<Result<Vec<_>, FolderError>>()?;
    found.retain(|path| path.extension().is_some_and(|end| end == KEPT));
    found.sort_unstable();
    Ok(found)
}

/// A name that no file has: `X.journal.kept`, or with a number before the last ending.
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
