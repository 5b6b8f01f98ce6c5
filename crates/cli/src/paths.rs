//! Paths that a user named: which are the same file, what may be read and written there, and errors about them.

use anyhow::{Context, Result, bail};
pub use queuescope_ingest::read_text;
use queuescope_ingest::{Place, is_standard_input};
use queuescope_recording::AtomicFile;
use std::io;
use std::path::{Path, PathBuf};

/// Refuses outputs that cannot be created, and those that would overwrite an input or each other. Nothing is created or changed yet.
///
/// # Errors
/// Named after the output.
pub fn check_outputs<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = &'a Option<PathBuf>>,
) -> Result<()> {
    let input = |file: &'a PathBuf| if is_standard_input(file) { Path::new("/dev/stdin") } else { file.as_path() };
    let mut taken: Vec<_> = inputs.into_iter().map(|file| (Place::of(input(file)), "the input")).collect();
    for path in outputs.into_iter().flatten() {
        if is_standard_input(path) {
            bail!("{}: standard output has what is told beside it; name a file", cannot_write(path));
        }
        check_creatable(path).with_context(|| cannot_write(path))?;
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

/// Whether a file can be created or overwritten, as far as the system tells without doing it.
fn check_creatable(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    if path.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if path.exists() {
        return Ok(access(path, Access::WRITE_OK)?);
    }
    // A link that leads nowhere: its target will be created.
    if path.is_symlink() {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The dot makes the error the one of creating a file where the parent is no folder.
    Ok(access(folder.join("."), Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Begins a file that an option names; until it is whole, what was there before stays.
///
/// # Errors
/// Named after the file.
pub fn create(path: &Path) -> Result<AtomicFile> {
    Ok(AtomicFile::create(path)?)
}

/// The context of every error about an output.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
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
