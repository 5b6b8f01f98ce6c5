//! The records that an agent serves.

use queuescope_archive::{End, FolderError, History, Recorder, is_recorded};
use queuescope_log::{Log, Schema};
use queuescope_recording::query::{self, Held};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that this process records, or a folder that another process records to.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Own(Records),
    Folder(Arc<OtherFolder>),
}

/// A recorder that is shared. It has the log whose tail is frozen.
#[derive(Debug, Clone)]
pub(super) struct Records(pub Arc<Recorder>);

impl AsRef<Log> for Records {
    fn as_ref(&self) -> &Log {
        self.0.log()
    }
}

/// A folder that another process records to, or has recorded. It is only read.
#[derive(Debug)]
pub(super) struct OtherFolder {
    path: PathBuf,
    held: Held,
    made_at: u64,
}

impl OtherFolder {
    /// # Errors
    /// Fails if it is not a log.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let history = History::open(path)?;
        let made_at = history.made_at();
        Ok(Self { path: path.to_owned(), held: Held::Folder(Box::new(history)), made_at })
    }
}

impl Source {
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Own(records) => records.0.log().schema(),
            Self::Folder(folder) => folder.held.schema(),
        }
    }

    /// When the folder was made, which names it.
    pub fn made_at(&self) -> u64 {
        match self {
            Self::Own(records) => records.0.made_at(),
            Self::Folder(folder) => folder.made_at,
        }
    }

    /// The number of records that readers see, with those that were in the folder before. In a folder of another process, the last ones may not be written yet.
    pub fn visible(&self) -> u64 {
        match self {
            Self::Own(records) => records.0.position(records.0.log().snapshot().len()),
            // What cannot be read is damage in the next answer.
            Self::Folder(folder) => folder.held.end().map_or(0, |end: End| end.position()),
        }
    }

    /// The log of this process.
    pub fn own(&self) -> Option<&Records> {
        match self {
            Self::Own(records) => Some(records),
            Self::Folder(_) => None,
        }
    }

    /// The records for a question.
    pub fn records(&self) -> query::Records<'_> {
        match self {
            Self::Own(records) => query::Records::Recorder(&records.0),
            Self::Folder(folder) => query::Records::Held(&folder.held),
        }
    }

    /// Whether no more records come, as far as that is known.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Folder(folder) => is_recorded(&folder.path).is_ok_and(|is_recorded| !is_recorded),
        }
    }
}
