//! What an uploader did, for others to see.

use crate::locked::lock;
use std::sync::Mutex;

/// The state of the uploads of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadCounts {
    /// Volumes that wait to be uploaded, and their size in bytes.
    pub waiting: u64,
    /// The size of these in bytes, with their indexes.
    pub waiting_bytes: u64,
    /// Volumes that were confirmed since this uploader began.
    pub confirmed: u64,
    /// The size of their Parquet files in bytes.
    pub confirmed_bytes: u64,
    /// How often it tried again after an error.
    pub retries: u64,
    /// The last error; `None` if everything that waited was uploaded since.
    pub trouble: Option<String>,
}

/// The counts of an uploader, shared with those that show them.
#[derive(Debug, Default)]
pub struct UploadStatus(Mutex<UploadCounts>);

impl UploadStatus {
    /// The counts at this moment.
    pub fn counts(&self) -> UploadCounts {
        lock(&self.0).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut UploadCounts)) {
        change(&mut lock(&self.0));
    }
}
