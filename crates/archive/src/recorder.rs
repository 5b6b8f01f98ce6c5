//! A log whose records are written to a folder as they come.
//!
//! A thread follows the log's tail and writes what is before it: records are in the log already, one behind the other,
//! so nothing is copied, writers do not wait for the disk unless they want to, and what many of them appended meanwhile is
//! written at once.

use crate::error::FolderError;
use crate::folder::{Folder, Lock};
use crate::journal::{self, Disk, Journal, Medium};
use crate::reader::{Part, walk};
use queuescope_log::{Appended, Log, Memory, Options, Schema};
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Records that there is room for in memory, those that are in the folder already among them.
    pub records: u64,
    /// When a record counts as kept.
    pub durability: Durability,
    /// Bytes of records after which another file is begun.
    pub file_bytes: u64,
}

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

/// A log that is recorded to a folder.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    _lock: Lock,
}

#[derive(Debug)]
struct Shared {
    log: Log,
    durability: Durability,
    state: Mutex<Following>,
    /// There is something to write, or to stop for.
    wanted: Condvar,
    /// More is kept.
    kept: Condvar,
}

/// How far the thread is.
#[derive(Debug, Default)]
struct Following {
    /// Records that are kept as the durability says.
    kept: u64,
    /// Somebody waits for these.
    wanted: u64,
    stop: bool,
    failed: Option<RecordError>,
}

/// How long the thread sleeps if nobody waits for it.
const PAUSE: Duration = Duration::from_millis(1);

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
        let mut refused = 0;
        let walked = walk(&folder, |records| refused += log.append(records).refused)?;
        if refused > 0 {
            return Err(FolderError::NoRoom { path: path.to_owned(), records: walked.end, room: options.records });
        }
        match (&walked.open, &walked.torn) {
            (Some((last, offset)), _) => end(last, *offset, walked.end)?,
            (None, Some(torn)) => {
                fs::remove_file(&torn.path).map_err(|error| FolderError::io("remove", &torn.path, error))?;
            }
            (None, None) => {}
        }
        let recovery = Recovery { records: walked.end, cut: walked.torn };
        let size = (schema.record_size(), folder.checksum());
        let journal = Journal::new(medium, path, size, options.file_bytes, walked.end);
        let state = Following { kept: walked.end, ..Following::default() };
        let shared = Arc::new(Shared {
            log,
            durability: options.durability,
            state: Mutex::new(state),
            wanted: Condvar::new(),
            kept: Condvar::new(),
        });
        let follower = Arc::clone(&shared);
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || follower.run(journal));
        let thread = thread.map_err(|error| FolderError::io("start a thread for", path, error))?;
        Ok((Self { shared, thread: Some(thread), _lock: lock }, recovery))
    }

    /// The records that came since it was opened, and those that were in the folder.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Appends records to the log, and returns when they are kept.
    ///
    /// # Errors
    /// If something could not be written, now or before. The records are in the log all the same.
    pub fn append(&self, records: &[u8]) -> Result<Appended, RecordError> {
        let appended = self.shared.log.append(records);
        match self.shared.durability {
            Durability::Relaxed => self.shared.lock().failed.clone().map_or(Ok(appended), Err),
            Durability::Written | Durability::Synced => self.shared.wait(appended.positions.end).map(|()| appended),
        }
    }

    /// Returns when all records that were appended are kept.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.shared.wait(self.shared.log.snapshot().len())
    }

    /// Writes what is left, closes the file, and tells how many records are kept.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> Result<u64, RecordError> {
        self.stop();
        let state = self.shared.lock();
        state.failed.clone().map_or(Ok(state.kept), Err)
    }

    fn stop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wanted.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics only if a bug of ours makes it, and has said so then.
            let _ = thread.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Following> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, position: u64) -> Result<(), RecordError> {
        let mut state = self.lock();
        while state.kept < position {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            state.wanted = state.wanted.max(position);
            self.wanted.notify_one();
            state = self.kept.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// What the thread does.
    fn run<M: Medium>(&self, journal: Journal<M>) {
        let followed = catch_unwind(AssertUnwindSafe(|| self.follow(journal)));
        // Who waits must not wait for ever.
        let failure = match followed {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => failure,
            Err(_) => (PathBuf::from("the records"), io::Error::other("the thread that writes has stopped")),
        };
        let mut state = self.lock();
        let (path, why) = failure;
        state.failed = Some(RecordError { path, why: Arc::new(why), written: state.kept });
        self.kept.notify_all();
    }

    fn follow<M: Medium>(&self, mut journal: Journal<M>) -> Result<(), (PathBuf, io::Error)> {
        let mut kept = self.lock().kept;
        loop {
            let mut state = self.lock();
            if !state.stop && state.wanted <= kept {
                state = self.wanted.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
            }
            let stop = state.stop;
            drop(state);
            let snapshot = self.log.snapshot();
            self.write(&mut journal, snapshot.records(kept..snapshot.len()))?;
            if stop {
                // Nobody appends any more.
                journal.close()?;
            }
            kept = snapshot.len();
            self.lock().kept = kept;
            self.kept.notify_all();
            if stop {
                return Ok(());
            }
        }
    }

    fn write<M: Medium>(&self, journal: &mut Journal<M>, records: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        if records.is_empty() {
            return Ok(());
        }
        journal.write(records)?;
        if self.durability == Durability::Synced { journal.sync() } else { Ok(()) }
    }
}

/// Cuts off what is not whole, and ends the file as if it had been closed.
fn end(path: &Path, offset: u64, position: u64) -> Result<(), FolderError> {
    let end = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(offset)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&journal::end(position))?;
        file.sync_all()
    };
    end().map_err(|error| FolderError::io("end", path, error))
}
