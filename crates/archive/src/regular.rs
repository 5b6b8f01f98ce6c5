//! Opens files of a folder. Each must be a regular file.
//!
//! A folder may come from another person, who put something else in place of a file: a device that never ends, a pipe without a
//! writer, a link to a file that only this user may open. This module never reads, writes or waits for any of these. Files that are read
//! as a whole have a size limit, so that a file of any length takes a bounded amount of memory.

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The most bytes of a small file such as `log.toml`.
pub(crate) const SMALL: u64 = 64 << 10;
/// The most bytes of a text that people write: `schema.toml`, and `definitions.toml` with the checksum in its first line.
pub(crate) const TEXT: u64 = (256 << 10) + 64;
/// The most bytes of the saved aggregates.
pub(crate) const AGGREGATES: u64 = 16 << 20;
/// The most bytes of a catalogue: some 800 000 volumes.
pub(crate) const CATALOGUE: u64 = 256 << 20;
/// The most bytes of a volume's checksums: those of some 190 GB.
pub(crate) const SUMS: u64 = 64 << 20;

/// Why a file of a folder is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    /// It is not a regular file.
    #[error("it is {0}, and files of a log are regular files: nothing is read from it or written to it")]
    NotRegular(&'static str),
    /// It is longer than any file that is written.
    #[error("it has {bytes} bytes, and can have {most} at most")]
    TooLong {
        /// Its size in bytes, as far as it was counted.
        bytes: u64,
        /// The most bytes that it can have.
        most: u64,
    },
}

/// Opens a file for reading.
///
/// # Errors
/// Returns the error of the system call, or [`Unusable`] if it is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file of a folder with these options, if it is a regular file: nothing is read from a pipe, a device or the target of a link.
///
/// # Errors
/// Returns the error of the system call, or an error that names the kind of file if it is not a regular file.
pub fn open_with(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    // Before it is opened, because opening alone may have an effect on a device. By the time it is opened it may be another file, so it is checked again.
    check(path)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = how.custom_flags(flags.bits().cast_signed()).open(path)?;
    is_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Checks that a file is a regular file, or does not exist and can be made.
///
/// # Errors
/// Returns the error of the system call, or [`Unusable`].
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        there => is_regular(there?.file_type()),
    }
}

/// Makes a file. A file of that name is removed first, not overwritten.
///
/// # Errors
/// Returns the error of the system call.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    match new.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            new.open(path)
        }
        made => made,
    }
}

/// Reads a whole file of at most `most` bytes.
///
/// # Errors
/// Returns the error of the system call, or [`Unusable`].
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_long = |bytes| Err(io::Error::other(Unusable::TooLong { bytes, most }));
    let length = file.metadata()?.len();
    if length > most {
        return too_long(length);
    }
    let mut bytes = Vec::new();
    // The file may grow in the meantime.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_long(bytes.len() as u64) } else { Ok(bytes) }
}

/// The reason, if the error is that a file must not be used.
pub(crate) fn unusable(error: &io::Error) -> Option<&Unusable> {
    error.get_ref().and_then(|error| error.downcast_ref())
}

fn is_regular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(Unusable::NotRegular(what)))
}
