//! What goes wrong with a folder.

use crate::names::{AGGREGATES, ALERTS, LOCK};
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
    /// The system says no.
    #[error("cannot {what} {}: {why}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is something else.
    #[error("{} is no log: {why}", path.display())]
    NotALog {
        /// The folder.
        path: PathBuf,
        /// What is missing, or wrong.
        why: String,
    },
    /// Somebody records to it.
    #[error("{} is being recorded to by another process; one at a time can (others may read it)", .0.display())]
    Busy(PathBuf),
    /// It has records of another kind.
    #[error("{} has records of the schema '{found}', not of '{wanted}' as it is here", path.display())]
    OtherSchema {
        /// The folder.
        path: PathBuf,
        /// Its schema's name.
        found: String,
        /// The name of the one that was asked for.
        wanted: String,
    },
    /// Memory is too little.
    #[error("{} of memory are too few to record these: give {} or more", ByteCount(*bytes), ByteCount(up(*least)))]
    TooLittle {
        /// What was given.
        bytes: u64,
        /// What it takes.
        least: u64,
    },
    /// Records that may be lost would be acknowledged.
    #[error(
        "the oldest records cannot be lost when memory is full if each is waited for until it is kept: record relaxed, or choose another"
    )]
    Acknowledged,
    /// Its schema cannot be read.
    #[error("{0}")]
    Schema(TextError),
    /// What is worked out of its records is not known any more.
    #[error(
        "{} is not there, and every log has one, also if nothing is worked out of its records: put a copy in its place, or a \
         file with the line '# crc32 none' if nothing is to be worked out any more", .0.display()
    )]
    NoDefinitions(PathBuf),
    /// Its path leads to another folder, or to none.
    #[error("{} {}", path.display(), gone(now.as_deref()))]
    Gone {
        /// Its path, as it was opened.
        path: PathBuf,
        /// Where it was moved to, if it is still there and that is known.
        now: Option<PathBuf>,
    },
    /// A volume is not as the catalogue says, so that nothing is put behind it.
    #[error(
        "{} is left as it is, since {}; put a copy in its place, or take its records and those before them away with \
         'queuescope log keep', or record to another folder ('queuescope log verify' tells what else is wrong)",
        path.display(), damage.fact()
    )]
    NotWhole {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Some of it is not as it was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// No memory for what it holds.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
    /// In a journal: where, and the position of the first record that is not whole.
    pub at: Option<(u64, u64)>,
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, why, at } = self;
        match at {
            Some((offset, position)) => write!(
                f,
                "{} is damaged at byte {offset}: {why}; the records before number {position} are whole, and what comes \
                 after is not taken for a log's end, since more was written behind it",
                path.display()
            ),
            None => write!(f, "{}; {}", self.fact(), self.advice()),
        }
    }
}

impl Damage {
    pub(crate) fn of(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), at: None }
    }

    /// What to do: records of volumes and journals can be left out, and nothing else.
    fn advice(&self) -> &'static str {
        match self.path.file_name().and_then(OsStr::to_str).unwrap_or_default() {
            LOCK | ALERTS if self.why.starts_with(MISSING) => {
                "put a copy in its place, or go on without: a new one is made when the folder is recorded to"
            }
            LOCK | ALERTS => "take it away: a new one is made when the folder is recorded to again",
            AGGREGATES => "put a copy in its place, or record again: aggregates are worked out of the records then",
            name if name.starts_with(|c: char| c.is_ascii_digit()) => {
                "put a copy in its place, or leave its records out of the query"
            }
            _ => "put a copy in its place",
        }
    }

    /// What is wrong, without what to do.
    fn fact(&self) -> String {
        format!("{} is damaged: {}", self.path.display(), self.why)
    }
}

impl FolderError {
    pub(crate) fn io(what: &'static str, path: &Path, why: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), why }
    }

    /// What went wrong, without which file it is about.
    pub(crate) fn into_why(self) -> io::Error {
        match self {
            Self::Io { why, .. } => why,
            Self::Gone { now, .. } => io::Error::other(format!("it {}", gone(now.as_deref()))),
            other => io::Error::other(other),
        }
    }

    /// Of a file of a folder that is opened or read. What is there in its place, and is no such file, is damage; what else the
    /// system says may be otherwise later.
    pub(crate) fn unread(path: &Path, why: io::Error) -> Self {
        match (regular::unusable(&why), why.kind()) {
            (Some(unusable), _) => Self::Damaged(Damage::of(path, unusable.to_string())),
            (None, io::ErrorKind::NotFound) => Self::Damaged(Damage::of(path, MISSING)),
            (None, _) => Self::io("read", path, why),
        }
    }

    /// Of a file in Parquet that is read.
    pub(crate) fn volume(path: &Path, error: &ParquetError) -> Self {
        match below(error) {
            Ok(system) => Self::io("read", path, system),
            Err(why) => Self::Damaged(Damage::of(path, why)),
        }
    }

    /// The same of one that is written.
    pub(crate) fn written(path: &Path, error: &ParquetError) -> Self {
        Self::io("write", path, below(error).unwrap_or_else(io::Error::other))
    }
}

/// What the system said, if it is the reason, or else what is wrong with the bytes: libraries wrap both, one in the other.
fn below(error: &ParquetError) -> Result<io::Error, String> {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(code) = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Ok(io::Error::from_raw_os_error(code));
        }
        // The source of either is that of what it wraps, which would be passed by.
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

/// The next number of three digits and zeros: what is told is enough.
fn up(bytes: u64) -> u64 {
    let mut unit = 1;
    while bytes / unit >= 1000 {
        unit *= 10;
    }
    bytes.div_ceil(unit) * unit
}

/// What happened to a folder whose path leads to another now, or to none.
fn gone(now: Option<&Path>) -> String {
    match now {
        Some(now) => format!("was moved to {} while it was recorded to", now.display()),
        None => "was removed, moved or replaced while it was recorded to".to_owned(),
    }
}
/// What is wrong with a file that is not there.
pub(crate) const MISSING: &str = "it is not there";

#[cfg(test)]
mod tests;
