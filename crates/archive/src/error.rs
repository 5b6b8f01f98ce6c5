//! What goes wrong with a folder.

use queuescope_log::{MemoryError, TextError};
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
    /// There is more in it than fits into memory.
    #[error("{} has {records} records, and there is memory for {room}: give more", path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Records in it.
        records: u64,
        /// Records that there is room for.
        room: u64,
    },
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

/// Bytes that are not as they were written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is damaged at byte {offset}: {why}; the records before number {position} are whole, and what comes after is not \
     taken for a log's end, since more was written behind it",
    path.display()
)]
pub struct Damage {
    /// In which file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// The position of the first record that is not whole.
    pub position: u64,
    /// What is wrong.
    pub why: &'static str,
}

impl FolderError {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}
