//! A log whose records are written to a folder as they come.
//!
//! A thread follows the log's tail and writes what is before it to journals: records are in the log already, one behind
//! the other, so writers do not wait for the disk unless they want to, and what many of them appended meanwhile is written
//! at once. Another makes volumes of journals that are full ([`archive`](crate::archive)).

mod follow;
mod recover;

use crate::error::FolderError;
use crate::folder::{Folder, Lock};
use crate::journal::{Disk, Journal, Medium};
use crate::reader::Part;
use crate::volume::GROUP;
use follow::{Shared, Threads};
use queuescope_log::{Appended, AttributeId, Log, Memory, Options, Schema};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When a record counts as kept: [`Recorder::append`] returns then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// At once; it is written soon after. What was not written is lost if the process is killed.
    #[default]
    Relaxed,
    /// When the system has it: it survives the process, not a loss of power.
    Written,
    /// When the disk has it.
    Synced,
}

/// How is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Records that there is room for in memory.
    pub records: u64,
    /// When a record counts as kept.
    pub durability: Durability,
    /// Records of a journal, at most, up to [`VOLUME_RECORDS`].
    pub journal_records: u64,
    /// Whether volumes are made of journals that are full, and of all when recording ends.
    pub archive: bool,
    /// Attributes that volumes have indexes of.
    pub indexes: Vec<AttributeId>,
}

/// Records of a journal at most: a volume of them is read as a whole.
pub const VOLUME_RECORDS: u64 = GROUP as u64;

/// What was found in a folder that was recorded to before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that are there.
    pub records: u64,
    /// What was not whole at the end, and was cut off.
    pub cut: Option<Part>,
}

/// Why a record is not kept.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot write {}: {why}; {written} records are kept, and nothing is recorded after them", path.display())]
pub struct RecordError {
    /// Which file.
    pub path: PathBuf,
    /// What the system says.
    pub why: Arc<io::Error>,
    /// Records that were written before.
    pub written: u64,
}

/// Why recording did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// Records could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// All records were written, but not all became volumes.
    #[error(
        "all {written} records are kept, but some are still in journals, since no volume could be made of them: {why}"
    )]
    Archive {
        /// Records that were written.
        written: u64,
        /// What went wrong.
        why: FolderError,
    },
}

/// A log that is recorded to a folder.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    threads: Threads,
    _lock: Lock,
}

impl Recorder {
    /// Goes on with a folder, or makes it.
    ///
    /// # Errors
    /// If somebody else records to it, it has records of another schema, is damaged, or cannot be written.
    pub fn open(path: &Path, schema: &Schema, options: RecorderOptions) -> Result<(Self, Recovery), FolderError> {
        Self::with(Disk, path, schema, options)
    }

    pub(crate) fn with<M>(
        medium: M,
        path: &Path,
        schema: &Schema,
        options: RecorderOptions,
    ) -> Result<(Self, Recovery), FolderError>
    where
        M: Medium + Send + 'static,
        M::File: 'static,
    {
        // What is no log's is left as it is.
        Folder::may_become(path)?;
        let lock = Folder::lock(path)?;
        let folder = if Folder::is_there(path) { Folder::open(path)? } else { Folder::create(path, schema)? };
        if folder.schema.text() != schema.text() {
            let (found, wanted) = (folder.schema.name().to_owned(), schema.name().to_owned());
            return Err(FolderError::OtherSchema { path: path.to_owned(), found, wanted });
        }
        let log = Log::new(schema.clone(), Options { records: options.records, memory: Memory::Lazy })?;
        let recovered = recover::recover(&folder)?;
        let size = (schema.record_size(), folder.checksum());
        let most = options.journal_records.clamp(1, VOLUME_RECORDS);
        let journal = Journal::new(medium, path, size, most, recovered.end, recovered.lost);
        let shared = Arc::new(Shared::new(log, folder, options.durability, &recovered));
        let indexes = options.archive.then_some(options.indexes);
        let threads = Threads::start(&shared, journal, indexes)?;
        Ok((Self { shared, threads, _lock: lock }, Recovery { records: recovered.records, cut: recovered.cut }))
    }

    /// The records that came since it was opened.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Appends records to the log, and returns when they are kept. Their positions are those of the folder.
    ///
    /// # Errors
    /// If something could not be written, now or before. The records are in the log all the same.
    pub fn append(&self, records: &[u8]) -> Result<Appended, RecordError> {
        let Appended { positions, refused } = self.shared.log.append(records);
        match self.shared.durability {
            Durability::Relaxed => self.shared.failed().map_or(Ok(()), Err)?,
            Durability::Written | Durability::Synced => self.shared.wait(positions.end)?,
        }
        let from = self.shared.from;
        Ok(Appended { positions: from + positions.start..from + positions.end, refused })
    }

    /// Returns when all records that were appended are kept.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.shared.wait(self.shared.log.snapshot().len())
    }

    /// Writes what is left, makes volumes of it, and tells how many records the folder has.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> Result<u64, FinishError> {
        self.threads.stop(&self.shared);
        self.shared.finished()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.threads.stop(&self.shared);
    }
}
