//! What goes wrong with a folder.

use parquet::errors::ParquetError;
use queuescope_log::{MemoryError, TextError};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a folder cannot be read or recorded to.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system says no.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
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
    #[error("{bytes} bytes of memory are too few to record these: give {least} or more")]
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
            None => write!(
                f,
                "{} is damaged: {why}; put a copy in its place, or leave it out of what is asked",
                path.display()
            ),
        }
    }
}

impl Damage {
    pub(crate) fn of(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), at: None }
    }
}

impl FolderError {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    /// Of a file in Parquet.
    pub(crate) fn volume(path: &Path, error: &ParquetError) -> Self {
        match error {
            ParquetError::External(source) => {
                let why = source.downcast_ref::<io::Error>().map_or_else(
                    || io::Error::other(source.to_string()),
                    |error| {
                        error
                            .raw_os_error()
                            .map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
                    },
                );
                Self::io("read or write", path, why)
            }
            error => Self::Damaged(Damage::of(path, error.to_string())),
        }
    }
}
