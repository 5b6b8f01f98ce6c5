//! Opening files of a folder, each of which is a regular file.
//!
//! A folder may come from somebody else, who put something else where a file belongs: a device without an end, a pipe that
//! nobody writes to, a link to a file that only the reader may open. None of these is read, written or waited for. What is read
//! as a whole has a largest size, so that a file of any length takes a bounded amount of memory.

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of small files, at most: `log.toml`.
pub(crate) const SMALL: u64 = 64 << 10;
/// Bytes of a text that people write, at most: `schema.toml`, and `definitions.toml` with the checksum in its first line.
pub(crate) const TEXT: u64 = (256 << 10) + 64;
/// Bytes of what is known of aggregates, at most.
pub(crate) const AGGREGATES: u64 = 16 << 20;
/// Bytes of a catalogue, at most: some 800 000 volumes.
pub(crate) const CATALOGUE: u64 = 256 << 20;
/// Bytes of the checksums of a volume, at most: those of some 190 GB.
pub(crate) const SUMS: u64 = 64 << 20;

/// Why a file of a folder is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    /// It is something else.
    #[error("it is {0}, and files of a log are regular files: nothing is read from it or written to it")]
    NotRegular(&'static str),
    /// It is longer than any that is written.
    #[error("it has {bytes} bytes, and can have {most} at most")]
    TooLong {
        /// Its bytes, as far as they were counted.
        bytes: u64,
        /// What it can have.
        most: u64,
    },
}

/// Opens a file to read it.
///
/// # Errors
/// Those of the system, and [`Unusable`] if it is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file of a folder in some way, if it is a regular file: nothing is read from a pipe, a device or what a link leads to.
///
/// # Errors
/// Those of the system, and one that says what it is if it is something else.
pub fn open_with(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    // Before it is opened, since that alone may do something to a device. It may be another file by the time that it is opened.
    check(path)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = how.custom_flags(flags.bits().cast_signed()).open(path)?;
    is_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Whether a file is a regular one, or not there: it may be made.
///
/// # Errors
/// Those of the system, and [`Unusable`].
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        there => is_regular(there?.file_type()),
    }
}

/// Makes a file that is written from its beginning. What was left in its place goes, and is not written to.
///
/// # Errors
/// Those of the system.
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

/// Reads a whole file, which has so many bytes at most.
///
/// # Errors
/// Those of the system, and [`Unusable`].
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_long = |bytes| Err(io::Error::other(Unusable::TooLong { bytes, most }));
    let length = file.metadata()?.len();
    if length > most {
        return too_long(length);
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_long(bytes.len() as u64) } else { Ok(bytes) }
}

/// The reason if a file is not used that could be opened, or need not be.
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
