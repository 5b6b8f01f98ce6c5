//! The records that an agent serves.

use super::folder::{OpenFolder, OtherFolder};
use queuescope_archive::Recorder;
use queuescope_log::{Log, Schema};
use queuescope_recording::query;
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

/// The records at some moment: another recording may take the place of a folder.
#[derive(Debug)]
pub(super) enum OpenSource<'a> {
    Own(&'a Records),
    Folder(Arc<OpenFolder>),
}

impl Source {
    /// The records as they are now.
    pub fn open(&self) -> OpenSource<'_> {
        match self {
            Self::Own(records) => OpenSource::Own(records),
            Self::Folder(folder) => OpenSource::Folder(folder.open_folder()),
        }
    }

    /// Names the folder of alerts: another one in its place has another number.
    pub fn store(&self) -> u64 {
        match self {
            Self::Own(records) => records.0.made_at(),
            Self::Folder(folder) => folder.store(),
        }
    }

    /// The name of the folder of alerts in versions that did not name the file of alerts; 0: the same.
    pub fn earlier_store(&self) -> u64 {
        self.folder().map_or(0, OtherFolder::earlier_store)
    }

    /// The number of records that readers see, with those that were in the folder before. In a folder of another process, the last ones may not be written yet.
    pub fn visible(&self) -> u64 {
        match self {
            Self::Own(records) => records.0.position(records.0.log().snapshot().len()),
            Self::Folder(folder) => folder.visible(),
        }
    }

    /// The log of this process.
    pub fn own(&self) -> Option<&Records> {
        match self {
            Self::Own(records) => Some(records),
            Self::Folder(_) => None,
        }
    }

    /// The folder of another process.
    pub fn folder(&self) -> Option<&OtherFolder> {
        match self {
            Self::Own(_) => None,
            Self::Folder(folder) => Some(folder),
        }
    }

    /// Whether no more records come, as far as that is known.
    pub fn has_ended(&self) -> bool {
        self.folder().is_some_and(OtherFolder::has_ended)
    }
}

impl OpenSource<'_> {
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Own(records) => records.0.log().schema(),
            Self::Folder(folder) => folder.held.schema(),
        }
    }

    /// The records for a question.
    pub fn records(&self) -> query::Records<'_> {
        match self {
            Self::Own(records) => query::Records::Recorder(&records.0),
            Self::Folder(folder) => query::Records::Held(&folder.held),
        }
    }
}
