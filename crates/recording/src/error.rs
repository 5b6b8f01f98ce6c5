//! What can go wrong with a recording, a per-packet output or a query.

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
    /// A record cannot be kept, and none after it.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A recording did not end as it should.
    #[error(transparent)]
    Finish(#[from] FinishError),
    /// The recorder is in use when the recording ends.
    #[error("somebody records still")]
    InUse,
    /// A file is named where a folder is needed.
    #[error("{} is a file; a log is a folder", .0.display())]
    NoFolder(PathBuf),
    /// There is no folder of this name.
    #[error("cannot open {}: there is no such folder; queuescope record makes one", .0.display())]
    Absent(PathBuf),
    /// A text means nothing; the error shows where.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An expression means nothing.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// What is to be worked out does not go with what a folder has.
    #[error("{} has other definitions already", folder.display())]
    Definitions {
        /// The folder.
        folder: PathBuf,
        /// What does not go together.
        #[source]
        why: TextError,
    },
    /// No sample can be as asked for.
    #[error(transparent)]
    Sample(#[from] RatioError),
    /// A trigger cannot be looked at.
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    /// A file cannot be written.
    #[error("{}", cannot_write(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// A table cannot be written.
    #[error("{}", cannot_write(path))]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: Box<TableError>,
    },
    /// There is no memory for what is read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Records do not say when packets were in which queue.
    #[error(
        "--in-queue needs to know when packets were in a queue, and records of `{schema}` do not say that: ask a folder that \
         analyze --log, tap --log or sim --log has made, or a table with --departures"
    )]
    NoQueue {
        /// What the records are.
        schema: String,
    },
    /// The name of a file does not say what it is to be.
    #[error("{}: its name does not say as what; let it end with .parquet, .csv or .jsonl", cannot_write(.0))]
    NoFormat(PathBuf),
    /// The source of the packets failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// Two things went wrong, neither because of the other.
    #[error("{}; and {}", with_causes(first), with_causes(second))]
    Both {
        /// What went wrong first.
        first: Box<Self>,
        /// The other.
        second: Box<Self>,
    },
    /// A recording did not end as it should, and what was recorded was damaged.
    #[error("{}; and {damage}", with_causes(error))]
    Damaged {
        /// What went wrong.
        error: Box<Self>,
        /// What was wrong with the packets before that.
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

/// How every error about an output begins.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// An error and what caused it, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_errors_are_told_with_their_causes() {
        let full = || io::Error::other("no room");
        let write = || Error::write(Path::new("a.parquet"))(full());
        assert_eq!(with_causes(&write()), "cannot write a.parquet: no room");
        let both = Error::both(write(), Error::InUse);
        assert_eq!(with_causes(&both), "cannot write a.parquet: no room; and somebody records still");
    }
}
