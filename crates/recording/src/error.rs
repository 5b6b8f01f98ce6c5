//! Errors of recordings, per-packet outputs and queries.

use queuescope_archive::{FinishError, FolderError, RecordError};
use queuescope_ingest::ExpressionError;
use queuescope_log::{MemoryError, RatioError, TriggerError};
use queuescope_table::TableError;
use queuescope_text::TextError;
use std::io;
use std::path::{Path, PathBuf};

/// Why something was not recorded, written or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder cannot be opened, or is damaged.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A record cannot be kept; no later record is kept either.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A recording did not end properly.
    #[error(transparent)]
    Finish(#[from] FinishError),
    /// The recorder is in use when the recording ends.
    #[error("the recorder is still in use")]
    InUse,
    /// The path is a file; a log is a folder.
    #[error("{} is a file; a log is a folder", .0.display())]
    NoFolder(PathBuf),
    /// The folder does not exist.
    #[error("cannot open {}: the folder does not exist; queuescope record creates it", .0.display())]
    Absent(PathBuf),
    /// Whether the folder exists is unknown: a folder above it is not accessible.
    #[error("cannot open {}: {why}", path.display())]
    Unreachable {
        /// The folder.
        path: PathBuf,
        /// The error of the system call.
        why: io::Error,
    },
    /// The folder's records cannot name a switch.
    #[error("{} was begun by an earlier version, and its records do not name switches: record reports in another folder", .0.display())]
    NoSwitches(PathBuf),
    /// A text is wrong; the error shows where.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An expression is wrong.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// New definitions conflict with those of the folder.
    #[error("{} has other definitions already", folder.display())]
    Definitions {
        /// The folder.
        folder: PathBuf,
        /// The conflict.
        #[source]
        why: TextError,
    },
    /// The sample is not valid.
    #[error(transparent)]
    Sample(#[from] RatioError),
    /// A trigger cannot be checked.
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    /// A file cannot be written.
    #[error("{}", cannot_write(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        why: io::Error,
    },
    /// A table cannot be written.
    #[error("{}", cannot_write(path))]
    Table {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        why: Box<TableError>,
    },
    /// There is not enough memory for the input.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Records do not say when packets were in which queue.
    #[error(
        "--in-queue needs to know when packets were in a queue, and records of `{schema}` do not say that: query a folder that \
         analyze --log, tap --log or sim --log has made, or a table with --departures"
    )]
    NoQueue {
        /// The schema of the records.
        schema: String,
    },
    /// The name of a file does not show its format.
    #[error("{}: its name does not show the format; it must end with .parquet, .csv or .jsonl", cannot_write(.0))]
    NoFormat(PathBuf),
    /// The source of the packets failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// Two independent errors.
    #[error("{}; and {}", with_causes(first), with_causes(second))]
    Both {
        /// The first one.
        first: Box<Self>,
        /// The other one.
        second: Box<Self>,
    },
    /// A recording did not end properly, and its input was damaged.
    #[error("{}; and {damage}", with_causes(error))]
    Damaged {
        /// The error.
        error: Box<Self>,
        /// The damage of the input.
        damage: String,
    },
}

impl Error {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |why| Self::Write { path: path.to_owned(), why }
    }

    pub(crate) fn table(path: &Path) -> impl FnOnce(TableError) -> Self {
        |why| Self::Table { path: path.to_owned(), why: Box::new(why) }
    }

    pub(crate) fn both(first: Self, second: Self) -> Self {
        Self::Both { first: Box::new(first), second: Box::new(second) }
    }
}

/// The start of every error message about an output.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// An error and its causes, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_errors_are_printed_with_their_causes() {
        let full = || io::Error::other("no room");
        let write = || Error::write(Path::new("a.parquet"))(full());
        assert_eq!(with_causes(&write()), "cannot write a.parquet: no room");
        let both = Error::both(write(), Error::InUse);
        assert_eq!(with_causes(&both), "cannot write a.parquet: no room; and the recorder is still in use");
    }
}
