//! Paths that a user gave: which are the same file, whether they can be read and written, and errors about them.

use anyhow::{Context, Result, bail};
pub use queuescope_ingest::read_text;
use queuescope_ingest::{FileIdentity, is_standard_input};
use queuescope_recording::AtomicFile;
use std::io;
use std::path::{Path, PathBuf};

/// Checks that outputs can be created, and do not overwrite an input or each other. Creates and changes nothing.
///
/// # Errors
/// The error names the output that fails the check.
pub fn check_outputs<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    outputs: impl IntoIterator<Item = &'a Option<PathBuf>>,
) -> Result<()> {
    let input = |file: &'a PathBuf| if is_standard_input(file) { Path::new("/dev/stdin") } else { file.as_path() };
    let mut taken: Vec<_> =
        inputs.into_iter().map(|file| (FileIdentity::from_path(input(file)), "the input")).collect();
    for path in outputs.into_iter().flatten() {
        if is_standard_input(path) {
            bail!("{}: standard output is used for the report; name a file", cannot_write(path));
        }
        check_creatable(path).with_context(|| cannot_write(path))?;
        let place = FileIdentity::from_path(path);
        // Devices, such as /dev/null, take any number of outputs.
        if path.exists() && !path.is_file() {
            continue;
        }
        if let Some((_, what)) = taken.iter().find(|(other, _)| *other == place) {
            bail!("{}: this would overwrite {what}; name another file", cannot_write(path));
        }
        taken.push((place, "another output"));
    }
    Ok(())
}

/// Checks whether a file can be created or overwritten, as far as that can be checked without doing it.
fn check_creatable(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    if path.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if path.exists() {
        return Ok(access(path, Access::WRITE_OK)?);
    }
    // A symbolic link without a target: the target will be created.
    if path.is_symlink() {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // With the dot, a parent that is not a folder gives the same error as creating a file in it.
    Ok(access(folder.join("."), Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Starts to write a file that an option names. An older file at the path stays until the new one is complete.
///
/// # Errors
/// Fails if the file cannot be created. The error names it.
pub fn create(path: &Path) -> Result<AtomicFile> {
    Ok(AtomicFile::create(path)?)
}

/// The context of every error about an output.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
