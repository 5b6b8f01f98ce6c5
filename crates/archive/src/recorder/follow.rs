//! The threads of a recorder.

mod volumes;

use super::recover::Recovered;
use super::{Durability, FinishError, Finished, Full, MemoryBudget, RecordError};
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::journal::{Closed, Journal, Medium};
use crate::mark::Mark;
use crate::prune::Held;
use crate::there;
use queuescope_log::Log;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
pub(super) use volumes::Archiving;
pub(crate) use volumes::Pauses;

/// State shared by writers and threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub log: Log,
    pub durability: Durability,
    pub folder: Folder,
    /// How many records may be in memory, and what happens to others.
    pub room: u64,
    /// Bytes of records that are written at once.
    at_once: usize,
    /// The most records of a volume.
    volume: u64,
    full: Full,
    /// How many records got room, and up to which position of the log memory was released.
    taken: AtomicU64,
    left: AtomicU64,
    /// The folder's position of the log's first record.
    pub from: u64,
    /// Records that were in the folder before, and records removed before.
    before: u64,
    removed_before: u64,
    /// How far records are written.
    pub mark: Mark,
    state: Mutex<WriterState>,
    /// There is something to write, or the thread shall stop.
    wanted: Condvar,
    /// Nothing came for some time: the next writer wakes the thread that writes.
    sleeps: AtomicBool,
    /// More records are kept.
    kept: Condvar,
    /// A journal was closed, or no more will be.
    closed: Condvar,
    /// Memory was released.
    freed: Condvar,
}

/// How far the threads are.
#[derive(Debug, Default)]
struct WriterState {
    /// Records of the log that are kept with the chosen durability.
    kept: u64,
    /// A writer waits until this many are kept.
    wanted: u64,
    stop: bool,
    finishes: bool,
    /// A record came, or recording ended without one: definitions cover the earlier records by now, and volumes may be made of them.
    begun: bool,
    failed: Option<RecordError>,
    /// Records that left memory before they were written.
    lost: u64,
    /// Records that were removed.
    removed: u64,
    /// Volumes that were not removed because they wait to be uploaded.
    held: Held,
    /// Journals that are not in volumes yet.
    journals: VecDeque<Closed>,
    /// No more will be closed.
    last: bool,
    /// Why no volumes can be made or removed.
    troubled: Option<Arc<FolderError>>,
}

/// The running threads.
#[derive(Debug)]
pub(super) struct Threads {
    follower: Option<JoinHandle<()>>,
    archiver: Option<JoinHandle<()>>,
}

/// How long the writing thread sleeps if no writer waits for it.
const PAUSE: Duration = Duration::from_millis(1);
/// After this number of pauses without records it sleeps until one comes, but no longer than the second of these: it could miss a writer that
/// comes just then.
const EMPTY_PAUSES: u32 = 16;
const LONG_PAUSE: Duration = Duration::from_millis(100);

impl Threads {
    /// Starts the threads; volumes are made only if `archiving` is given.
    pub fn start<M>(
        shared: &Arc<Shared>,
        journal: Journal<M>,
        archiving: Option<Archiving>,
    ) -> Result<Self, FolderError>
    where
        M: Medium + Send + 'static,
        M::File: 'static,
    {
        let error = |error| FolderError::io("start a thread for", &shared.folder.path, error);
        let (follows, archives) = (Arc::clone(shared), Arc::clone(shared));
        let follower = thread::Builder::new().name("recorder".to_owned()).spawn(move || follows.run(journal));
        let mut threads = Self { follower: Some(follower.map_err(error)?), archiver: None };
        let Some(archiving) = archiving else { return Ok(threads) };
        let archiver = thread::Builder::new().name("archiver".to_owned()).spawn(move || archives.archive(archiving));
        match archiver {
            Ok(archiver) => threads.archiver = Some(archiver),
            Err(why) => {
                threads.stop(shared, false);
                return Err(error(why));
            }
        }
        Ok(threads)
    }

    /// Lets the threads finish their work, and waits for them. `finishes`: recording ends, even if no record came; otherwise, without a record, it never began.
    pub fn stop(&mut self, shared: &Shared, finishes: bool) {
        let mut state = shared.lock();
        (state.stop, state.finishes) = (true, finishes);
        drop(state);
        shared.wanted.notify_all();
        for thread in [self.follower.take(), self.archiver.take()].into_iter().flatten() {
            // The thread panics only because of a bug of ours, and the panic was printed then.
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub fn new(
        log: Log,
        folder: Folder,
        room: &MemoryBudget,
        full: Full,
        durability: Durability,
        recovered: &Recovered,
        mark: Mark,
    ) -> Self {
        let state = WriterState { journals: recovered.journals.iter().cloned().collect(), ..WriterState::default() };
        Self {
            log,
            durability,
            folder,
            room: room.records,
            at_once: room.at_once,
            volume: room.volume,
            full,
            taken: AtomicU64::new(0),
            left: AtomicU64::new(0),
            from: recovered.tail.next,
            before: recovered.records,
            removed_before: recovered.removed,
            mark,
            state: Mutex::new(state),
            wanted: Condvar::new(),
            sleeps: AtomicBool::new(false),
            kept: Condvar::new(),
            closed: Condvar::new(),
            freed: Condvar::new(),
        }
    }

    /// Why nothing is written any more.
    pub fn failed(&self) -> Option<RecordError> {
        self.lock().failed.clone()
    }

    /// Why no volumes can be made or removed.
    pub fn troubled(&self) -> Option<Arc<FolderError>> {
        self.lock().troubled.clone()
    }

    /// Volumes that were not removed because they wait to be uploaded.
    pub fn held(&self) -> Held {
        self.lock().held
    }

    /// Reserves room for records, perhaps after a wait; returns whether there is any.
    pub fn take_room(&self, count: u64) -> Result<bool, RecordError> {
        let taken = self.taken.fetch_add(count, Ordering::Relaxed) + count;
        let fits = || taken.saturating_sub(self.left.load(Ordering::Acquire)) <= self.room;
        if fits() {
            return Ok(true);
        }
        match self.full {
            Full::LeaveOut => {
                self.taken.fetch_sub(count, Ordering::Relaxed);
                return Ok(false);
            }
            Full::LoseOldest => {
                let end = self.log.snapshot().len();
                self.release(end.saturating_sub(self.room / 2));
            }
            Full::Wait => {
                let mut state = self.lock();
                while !fits() {
                    if let Some(error) = &state.failed {
                        self.taken.fetch_sub(count, Ordering::Relaxed);
                        return Err(error.clone());
                    }
                    self.wanted.notify_one();
                    state = self.freed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        Ok(true)
    }

    /// Wakes the thread that writes if it sleeps because nothing came.
    pub fn wake(&self) {
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::Relaxed) {
            // Between its look at the log and its sleep the thread has the lock.
            drop(self.lock());
            self.wanted.notify_one();
        }
    }

    /// Returns room for records that were not added: the address space is used up.
    pub fn give_room_back(&self, count: u64) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }

    /// Releases memory of records.
    fn release(&self, before: u64) {
        let left = self.log.release(before);
        self.left.fetch_max(left, Ordering::AcqRel);
        self.freed.notify_all();
    }

    /// Waits until the records of the log before a position are kept.
    pub fn wait(&self, position: u64) -> Result<(), RecordError> {
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

    /// The result, once the threads have ended.
    pub fn finished(&self) -> Result<Finished, FinishError> {
        let state = self.lock();
        let written = self.written(&state);
        if let Some(error) = state.failed.clone() {
            return Err(RecordError { written: self.counted(written), ..error }.into());
        }
        match there::all(&self.folder, state.journals.iter()) {
            Ok(records) if records >= written => match state.troubled.clone() {
                Some(why) => Err(FinishError::Archive { written: records, why }),
                None => Ok(Finished { records, lost: state.lost, removed: state.removed }),
            },
            missing => {
                let lacks =
                    || FolderError::Damaged(Damage::new(&self.folder.path, "some of its files were taken away"));
                let path = self.folder.moved_to().unwrap_or_else(|| self.folder.path.clone());
                let why = Arc::new(missing.err().unwrap_or_else(lacks));
                Err(FinishError::Missing { path, there: self.counted(0), written, why })
            }
        }
    }

    /// The number of records in the folder, wherever it is now; if it cannot be read, `known`.
    fn counted(&self, known: u64) -> u64 {
        let counted = match there::count(&self.folder) {
            Err(FolderError::Gone { now: None, .. }) => return 0,
            Err(FolderError::Gone { now: Some(now), .. }) => Folder::open(&now).and_then(|moved| there::count(&moved)),
            counted => counted,
        };
        counted.unwrap_or(known)
    }

    /// Records that were written to the folder and not removed.
    fn written(&self, state: &WriterState) -> u64 {
        (self.before + state.kept).saturating_sub(state.lost + state.removed)
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of the thread that writes.
    fn run<M: Medium>(&self, journal: Journal<M>) {
        let followed = catch_unwind(AssertUnwindSafe(|| self.follow(journal)));
        // Waiting writers must not wait for ever.
        let failure = match followed {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some((PathBuf::from("the records"), io::Error::other("the thread that writes has stopped"))),
        };
        let known = self.written(&self.lock());
        let failure = failure.map(|failure| (failure, self.counted(known)));
        let mut state = self.lock();
        if let Some(((path, why), written)) = failure {
            state.failed = Some(RecordError { path, why: Arc::new(why), written });
        }
        state.last = true;
        self.kept.notify_all();
        self.closed.notify_all();
    }

    fn follow<M: Medium>(&self, mut journal: Journal<M>) -> Result<(), (PathBuf, io::Error)> {
        let (mut kept, mut closed, mut records, mut has_begun) = (0, Vec::new(), Vec::new(), false);
        let mut empty = 0u32;
        loop {
            let mut state = self.lock();
            // A thread that was behind continues.
            if !state.stop && state.wanted <= kept && records.len() < self.at_once / 2 {
                let sleeps = empty >= EMPTY_PAUSES;
                self.sleeps.store(sleeps, Ordering::SeqCst);
                let pause = if sleeps && self.log.snapshot().len() == kept { LONG_PAUSE } else { PAUSE };
                state = self.wanted.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                self.sleeps.store(false, Ordering::Relaxed);
            }
            let (stop, finishes) = (state.stop, state.finishes);
            drop(state);
            let (next, end) = self.copy(kept, &mut records);
            // A recorder that fails to start changes nothing in what is known to be missing.
            if !has_begun && (end > 0 || finishes) {
                self.mark.begin(&self.folder);
                has_begun = true;
            }
            let mut written = journal.pass_by(next - kept, &mut closed);
            let count = (records.len() / self.log.schema().record_size()) as u64;
            empty = if count > 0 { 0 } else { empty.saturating_add(1) };
            if written.is_ok() {
                written = self.write(&mut journal, &records, &mut closed);
            }
            // No more records are appended.
            let stop = stop && next + count == end;
            if stop && has_begun && written.is_ok() {
                written = journal.finish().map(|last| closed.extend(last));
            }
            // Journals that were closed before the error are whole.
            let mut state = self.lock();
            if let (Err(_), Some(last)) = (&written, closed.last()) {
                // It may become a volume and be removed: its records count as if they had been there before.
                let whole = last.positions.end.saturating_sub(self.from);
                if whole > next {
                    state.lost += next - kept;
                }
                state.kept = state.kept.max(whole);
            }
            let begins = !state.begun && (count > 0 || stop);
            state.begun |= begins;
            if begins || !closed.is_empty() {
                state.journals.extend(closed.drain(..));
                self.closed.notify_one();
            }
            written?;
            state.lost += next - kept;
            kept = next + count;
            state.kept = kept;
            if count > 0 {
                self.mark.records(self.from + kept);
            }
            drop(state);
            self.kept.notify_all();
            if end.saturating_sub(self.left.load(Ordering::Acquire)) > self.room / 2 {
                self.release(kept.min(end.saturating_sub(self.room / 4)));
            }
            if stop {
                return Ok(());
            }
        }
    }

    /// Copies the next records, as many as are written at once, so that they hold no memory during a slow write.
    /// Returns the position of the first one, and the position behind the log's last record.
    fn copy(&self, from: u64, records: &mut Vec<u8>) -> (u64, u64) {
        let snapshot = self.log.snapshot();
        let next = from.max(snapshot.first());
        let most = (self.at_once / self.log.schema().record_size()).max(1) as u64;
        records.clear();
        let (mut at, end) = (next, snapshot.len().min(next + most));
        while at < end {
            let adjacent = snapshot.adjacent(at..end);
            records.extend_from_slice(adjacent);
            at += (adjacent.len() / self.log.schema().record_size()) as u64;
        }
        (next, snapshot.len())
    }

    fn write<M: Medium>(
        &self,
        journal: &mut Journal<M>,
        records: &[u8],
        closed: &mut Vec<Closed>,
    ) -> Result<(), (PathBuf, io::Error)> {
        if records.is_empty() {
            return Ok(());
        }
        // Otherwise the rest would go to another folder, or to none.
        self.folder.still_there().map_err(|error| (self.folder.path.clone(), error.into_why()))?;
        journal.write(records, closed)?;
        if self.durability == Durability::Synced { journal.sync() } else { Ok(()) }
    }
}
