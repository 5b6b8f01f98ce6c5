//! Which files are the same, by whatever name.

use crate::outputs::cannot_write;
use crate::source;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Refuses outputs that would overwrite an input or each other.
///
/// # Errors
/// Named after the output.
pub fn check_outputs<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = &'a Option<PathBuf>>,
) -> Result<()> {
    let input =
        |file: &'a PathBuf| if source::is_standard_input(file) { Path::new("/dev/stdin") } else { file.as_path() };
    let mut taken: Vec<_> = inputs.into_iter().map(|file| (Place::of(input(file)), "the input")).collect();
    for path in outputs.into_iter().flatten() {
        if source::is_standard_input(path) {
            bail!("{}: standard output has what is told beside it; name a file", cannot_write(path));
        }
        let place = Place::of(path);
        // Devices, such as /dev/null, take any number of outputs.
        if path.exists() && !path.is_file() {
            continue;
        }
        if let Some((_, what)) = taken.iter().find(|(other, _)| *other == place) {
            bail!("{}: it is {what}, which would be overwritten; name another file", cannot_write(path));
        }
        taken.push((place, "another output"));
    }
    Ok(())
}

/// Refuses what cannot be the folder of a log, since it is not there or no folder.
///
/// # Errors
/// If it is so.
pub fn check_log(folder: &Path) -> Result<()> {
    if !folder.exists() {
        bail!("cannot open {}: there is no such folder; queuescope record makes one", folder.display());
    }
    check_folder(folder)
}

/// Refuses a file where a folder is meant.
///
/// # Errors
/// If it is one.
pub fn check_folder(folder: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; a log is a folder", folder.display());
    }
    Ok(())
}

/// Which file a path leads to, by whatever name; or where it would be.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// Device and inode: hard links are one file.
    Exists(u64, u64),
    /// A path without links in it.
    New(PathBuf),
}

impl Place {
    /// The place of a path.
    pub fn of(path: &Path) -> Self {
        #[cfg(unix)]
        if let Ok(metadata) = std::fs::metadata(path) {
            use std::os::unix::fs::MetadataExt;
            return Self::Exists(metadata.dev(), metadata.ino());
        }
        let parent = || {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(parent.canonicalize().ok()?.join(path.file_name()?))
        };
        Self::New(path.canonicalize().ok().or_else(parent).unwrap_or_else(|| path.to_owned()))
    }
}
