//! Errors of a folder.

use crate::names::{AGGREGATES, ALERTS, LOCK, UPLOADS};
use crate::regular;
use parquet::errors::ParquetError;
use queuescope_log::{MemoryError, TextError};
use queuescope_wire::ByteCount;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a folder cannot be read or recorded to.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A system call failed.
    #[error("cannot {what} {}: {why}", path.display())]
    Io {
        /// The attempted action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        why: io::Error,
    },
    /// The folder is not a log.
    #[error("{} is not a log: {why}", path.display())]
    NotALog {
        /// The folder.
        path: PathBuf,
        /// What is missing, or wrong.
        why: String,
    },
    /// A later version of the program made it.
    #[error("{} has format {found}, and this version of queuescope reads format {known}: use a newer version", path.display())]
    Format {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that can be read.
        known: u32,
    },
    /// Another process records to it.
    #[error("{} is being recorded to by another process; only one process at a time can record (others may read it)", .0.display())]
    Busy(PathBuf),
    /// It has records of another schema.
    #[error("{} has records of the schema '{found}', not of '{wanted}' as it is here", path.display())]
    OtherSchema {
        /// The folder.
        path: PathBuf,
        /// Its schema's name.
        found: String,
        /// The name of the requested schema.
        wanted: String,
    },
    /// The memory limit is too small.
    #[error("{} of memory is too little to record these: give {} or more", ByteCount(*bytes), ByteCount(up(*least)))]
    TooLittle {
        /// The given limit in bytes.
        bytes: u64,
        /// The least limit in bytes.
        least: u64,
    },
    /// Records that may be lost would be acknowledged.
    #[error(
        "records that are waited for until they are kept cannot be lost when memory is full: record relaxed, or choose another setting for full memory"
    )]
    Acknowledged,
    /// Its schema cannot be read.
    #[error("{0}")]
    Schema(TextError),
    /// Its definitions are missing.
    #[error(
        "{} is not there, and every log has one, even without definitions: put a copy in its place, or a \
         file with the line '# crc32 none' if there should be no definitions", .0.display()
    )]
    NoDefinitions(PathBuf),
    /// Its path leads to another folder, or to none.
    #[error("{} {}", path.display(), gone(now.as_deref()))]
    Gone {
        /// Its path when it was opened.
        path: PathBuf,
        /// Where it was moved to, if it still exists and that is known.
        now: Option<PathBuf>,
    },
    /// A volume differs from the catalogue, so nothing is written behind it.
    #[error(
        "{} is left as it is, since {}; put a copy in its place, or remove its records and those before them with \
         'queuescope log keep', or record to another folder ('queuescope log verify' lists what else is wrong)",
        path.display(), damage.fact()
    )]
    NotWhole {
        /// The folder.
        path: PathBuf,
        /// What is wrong with the volume.
        damage: Damage,
    },
    /// A file is not as it was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// There is not enough memory for its contents.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// A file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
    /// In a journal: the byte offset, and the position of the first incomplete record.
    pub at: Option<(u64, u64)>,
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, why, at } = self;
        match at {
            Some((offset, position)) => write!(
                f,
                "{} is damaged at byte {offset}: {why}; the records before number {position} are whole, and the rest \
                 is not an incomplete end of the log, because more was written behind it",
                path.display()
            ),
            None => write!(f, "{}; {}", self.fact(), self.advice()),
        }
    }
}

impl Damage {
    pub(crate) fn new(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), at: None }
    }

    /// What to do. Only records of volumes and journals can be left out.
    fn advice(&self) -> &'static str {
        match self.path.file_name().and_then(OsStr::to_str).unwrap_or_default() {
            LOCK | ALERTS if self.why.starts_with(MISSING) => {
                "put a copy in its place, or go on without: a new one is made when the folder is recorded to"
            }
            LOCK | ALERTS => "remove it: a new one is made when the folder is recorded to again",
            UPLOADS => "put a copy in its place, or remove it: volumes are then compared with what the store has",
            AGGREGATES => "put a copy in its place, or record again: aggregates are then computed from the records",
            name if name.starts_with(|c: char| c.is_ascii_digit()) => {
                "put a copy in its place, or leave its records out of the query"
            }
            _ => "put a copy in its place",
        }
    }

    /// What is wrong, without advice.
    fn fact(&self) -> String {
        format!("{} is damaged: {}", self.path.display(), self.why)
    }
}

impl FolderError {
    pub(crate) fn io(what: &'static str, path: &Path, why: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), why }
    }

    /// What went wrong, without the file.
    pub(crate) fn into_why(self) -> io::Error {
        match self {
            Self::Io { why, .. } => why,
            Self::Gone { now, .. } => io::Error::other(format!("it {}", gone(now.as_deref()))),
            other => io::Error::other(other),
        }
    }

    /// The error of a file of a folder that is opened or read. If something else is there in its place, it is damage; any other error of the
    /// system may be gone later.
    pub(crate) fn unread(path: &Path, why: io::Error) -> Self {
        match (regular::unusable(&why), why.kind()) {
            (Some(unusable), _) => Self::Damaged(Damage::new(path, unusable.to_string())),
            (None, io::ErrorKind::NotFound) => Self::Damaged(Damage::new(path, MISSING)),
            (None, _) => Self::io("read", path, why),
        }
    }

    /// The error of reading a Parquet file.
    pub(crate) fn volume(path: &Path, error: &ParquetError) -> Self {
        match below(error) {
            Ok(system) => Self::io("read", path, system),
            Err(why) => Self::Damaged(Damage::new(path, why)),
        }
    }

    /// The error of writing a Parquet file.
    pub(crate) fn written(path: &Path, error: &ParquetError) -> Self {
        Self::io("write", path, below(error).unwrap_or_else(io::Error::other))
    }
}

/// The system's error, if that is the reason, or else what is wrong with the bytes. Libraries wrap both, one in the other.
fn below(error: &ParquetError) -> Result<io::Error, String> {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(code) = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Ok(io::Error::from_raw_os_error(code));
        }
        // `source` of either returns the source of the wrapped error, and so would skip that error.
        let within: Option<&(dyn std::error::Error + 'static)> = match innermost.downcast_ref::<ParquetError>() {
            Some(ParquetError::External(within)) => Some(&**within),
            Some(_) => None,
            None => match innermost.downcast_ref::<io::Error>() {
                Some(io) => io.get_ref().map(|within| within as _),
                None => innermost.source(),
            },
        };
        match within {
            Some(within) => innermost = within,
            None => break,
        }
    }
    Err(match innermost.downcast_ref::<ParquetError>() {
        Some(ParquetError::General(why) | ParquetError::EOF(why) | ParquetError::ArrowError(why)) => why.clone(),
        _ => innermost.to_string(),
    })
}

/// Rounds up to three significant digits: enough for a message.
fn up(bytes: u64) -> u64 {
    let mut unit = 1;
    while bytes / unit >= 1000 {
        unit *= 10;
    }
    bytes.div_ceil(unit) * unit
}

/// What happened to a folder whose path now leads to another folder, or to none.
fn gone(now: Option<&Path>) -> String {
    match now {
        Some(now) => format!("was moved to {} while it was being recorded to", now.display()),
        None => "was removed, moved or replaced while it was being recorded to".to_owned(),
    }
}
/// What is wrong with a missing file.
pub(crate) const MISSING: &str = "it is not there";

#[cfg(test)]
mod tests;
