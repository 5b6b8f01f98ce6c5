//! A log whose records are written to a folder as they come.
//!
//! A thread follows the log's tail and writes the records before it to journals. The records are already in the log, one after
//! another, so writers do not wait for the disk unless they want to, and records appended by many writers in the meantime are written
//! together. Another thread turns full journals into volumes ([`archive`](crate::archive)).

mod follow;
mod installed;
mod recover;

use crate::derived::{self, unbounded};
use crate::error::{Damage, FolderError};
use crate::folder::{Folder, Lock};
use crate::history::{ArchiveQuery, History, KeySink, Sources};
use crate::journal::{Disk, Medium};
use crate::mark::{Mark, Note};
use crate::prune::{Held, Retention};
use crate::reader::Part;
use crate::store::Store;
use crate::volume::GROUP;
pub(crate) use follow::Pauses;
use follow::{Archiving, Shared, Threads};
use installed::Installations;
pub use installed::Installed;
use queuescope_log::{Appended, ApplyError, AttributeId, Defined, Definitions, LAST_TIME, Log, Reader, Schema};
use recover::has_room;
pub(crate) use recover::recover;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// When a record counts as kept, and [`Recorder::append`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// At once; the record is written soon after. Records that are not written yet are lost if the process is killed.
    #[default]
    Relaxed,
    /// When the system has it: it survives the end of the process, but not a loss of power.
    Written,
    /// When the disk has it.
    Synced,
}

/// What happens when memory is full because the disk does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Full {
    /// Writers wait.
    #[default]
    Wait,
    /// New records are left out. [`Appended::refused`] counts them, together with those that are [late](Recorder::late).
    LeaveOut,
    /// The oldest records that are not written yet are lost. [`Finished::lost`] counts them, and so does the folder. Only for
    /// [relaxed](Durability::Relaxed) recording.
    LoseOldest,
}

/// Options of a recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Bytes of memory in total: three eighths for records, as much for making volumes, the rest for fixed-size data.
    /// Written records leave memory when new ones need the room.
    pub memory: u64,
    /// What happens when memory is full.
    pub full: Full,
    /// When a record counts as kept.
    pub durability: Durability,
    /// The most records of a journal, up to [`VOLUME_RECORDS`].
    pub journal_records: u64,
    /// Whether to turn full journals into volumes, and all journals when recording ends.
    pub archive: bool,
    /// Attributes that volumes get indexes of.
    pub indexes: Vec<AttributeId>,
    /// Which volumes to keep whenever another one was made.
    pub keep: Retention,
}

impl Default for RecorderOptions {
    /// A gigabyte of memory, volumes are made, and no record is left out or removed.
    fn default() -> Self {
        Self {
            memory: 1_000_000_000,
            full: Full::Wait,
            durability: Durability::Relaxed,
            journal_records: VOLUME_RECORDS,
            archive: true,
            indexes: Vec::new(),
            keep: Retention::default(),
        }
    }
}

/// The most records of a journal: a volume of that size is read as a whole.
pub const VOLUME_RECORDS: u64 = GROUP as u64;

/// What was found in a folder that was recorded to before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that are there.
    pub records: u64,
    /// The incomplete end, which was cut off.
    pub cut: Option<Part>,
    /// Records that were written and are gone: a journal was emptied or cut short, or a loss of power took what was
    /// not synced.
    pub missing: u64,
    /// What is wrong with the note of how far records were written, if anything: then `missing` and `alerts` may be too low.
    pub note: Option<Damage>,
    /// What is wrong with the alerts: there are fewer than were written.
    pub alerts: Option<Damage>,
    /// Files that were set aside because their records are in no journal or volume: a journal that was put back, or bytes behind
    /// damage.
    pub kept: Vec<PathBuf>,
}

/// The result of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Records that the folder has.
    pub records: u64,
    /// Records lost since the folder was opened, because the disk could not keep up.
    pub lost: u64,
    /// Records removed since the folder was opened, because they were old or too many.
    pub removed: u64,
}

/// Why a record is not kept. The folder counts how many are kept.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot write {}: {why}; {written} records are kept, and nothing is recorded after them", path.display())]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system call.
    pub why: Arc<io::Error>,
    /// Records that were written before.
    pub written: u64,
}

/// Why recording did not end properly.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// Records could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// All records were written, but not all became volumes, or the values of aggregates could not be saved.
    #[error(
        "all {written} records are kept, but not all volumes and aggregates; these are made when the folder is recorded to again: \
         {why}"
    )]
    Archive {
        /// Records that were written.
        written: u64,
        /// What went wrong.
        why: Arc<FolderError>,
    },
    /// Records that were written are gone: somebody removed, moved or changed the folder, or files in it.
    #[error("{there} of {written} records are in {}: {why}", path.display())]
    Missing {
        /// The current path of the folder.
        path: PathBuf,
        /// Records that are there.
        there: u64,
        /// Records that were written, including those that were there before.
        written: u64,
        /// What is missing.
        why: Arc<FolderError>,
    },
}

/// A log that is recorded to a folder.
///
/// ```
/// use queuescope_archive::{ArchiveQuery, History, Recorder, RecorderOptions};
/// use queuescope_log::{Schema, Scope, departure};
/// use std::ops::ControlFlow;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("log");
/// let (recorder, recovery) = Recorder::open(&path, Schema::departure(), RecorderOptions::default())?;
/// assert_eq!(recovery.records, 0, "the folder is new");
/// recorder.append(&[0; 3 * departure::SIZE]);
/// println!("{} records are kept", recorder.finish()?.records);
///
/// let scope = Scope::new(Schema::departure());
/// let all = scope.parse("")?.dnf(&scope)?;
/// let mut count = 0;
/// let ask = ArchiveQuery { expression: &all, from: 0, to: u64::MAX, needed: &[] };
/// History::open(&path)?.each(ask, &mut |_position, _record| {
///     count += 1;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(count, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    /// The folder, for queries.
    history: History,
    threads: Threads,
    /// The time of records, if they have one, and how many were left out because their time was too late.
    time: Option<Reader>,
    late: AtomicU64,
    derived: Option<(Definitions, Defined)>,
    /// What was wrong with the saved aggregates.
    damage: Option<Damage>,
    listener: Listener,
    installed: Installations,
    _lock: Lock,
}

/// Is called when alerts were written.
#[derive(Default)]
struct Listener(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.get().is_some()).finish()
    }
}

impl Recorder {
    /// Continues a folder, or makes it.
    ///
    /// # Errors
    /// Fails if another process records to it, or if it has records of another schema, is damaged, or cannot be written.
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
        Self::within(medium, Arc::new(Disk), Pauses::default(), path, schema, options)
    }

    /// Like `with`, with journals and other files made elsewhere, and with other pauses.
    pub(crate) fn within<M>(
        medium: M,
        store: Arc<dyn Store>,
        pauses: Pauses,
        path: &Path,
        schema: &Schema,
        options: RecorderOptions,
    ) -> Result<(Self, Recovery), FolderError>
    where
        M: Medium + Send + 'static,
        M::File: 'static,
    {
        // A folder that is not a log stays as it is.
        if options.full == Full::LoseOldest && options.durability != Durability::Relaxed {
            return Err(FolderError::Acknowledged);
        }
        let room = MemoryBudget::new(&options, schema.record_size())?;
        Folder::may_become(path)?;
        let lock = Folder::lock(path)?;
        let folder = if Folder::is_there(path) { Folder::open(path)? } else { Folder::create(path, schema)? };
        // The folder keeps the text of its schema, which may be of an earlier version with other descriptions.
        if !folder.schema.is_compatible(schema) {
            let (found, wanted) = (folder.schema.name().to_owned(), schema.name().to_owned());
            return Err(FolderError::OtherSchema { path: path.to_owned(), found, wanted });
        }
        let folder = folder.on(store);
        // Opening a folder parses its schema, which takes longer than many a question.
        let history = History::from_folder(folder.try_clone()?);
        let note = Note::read(path);
        let mut recovered = recover(&folder)?;
        let missing = note.missing(recovered.tail.next, recovered.cut.as_ref());
        // Their positions are not used again: the gap shows that they are missing.
        recovered.tail.next += missing;
        recovered.tail.lost += missing;
        has_room(&folder, recovered.tail.next)?;
        let alerts = note.alerts_damage(path)?;
        let mark = Mark::new(&lock, &folder, recovered.tail.next, note.alerts_missing(path)?)?;
        let log = unbounded(schema)?;
        let time = schema.time().map(|time| schema.reader(time));
        let most = options.journal_records.clamp(1, room.volume);
        let journal = folder.journal(medium, most, recovered.tail.clone());
        let shared = Shared::new(log, folder, &room, options.full, options.durability, &recovered, mark);
        let shared = Arc::new(shared);
        let archiving = Archiving { indexes: options.indexes, keep: options.keep, pauses };
        let threads = Threads::start(&shared, journal, options.archive.then_some(archiving))?;
        Ok((
            Self {
                shared,
                history,
                threads,
                time,
                late: AtomicU64::new(0),
                derived: None,
                damage: None,
                listener: Listener::default(),
                installed: Installations::default(),
                _lock: lock,
            },
            Recovery {
                records: recovered.records,
                cut: recovered.cut,
                missing,
                note: note.damage,
                alerts,
                kept: recovered.kept,
            },
        ))
    }

    /// The records that came since the folder was opened and are still in memory.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Adds definitions, which cover earlier records too, and saves them with the folder. Call it before the first record is
    /// appended. A second call replaces the first.
    ///
    /// # Errors
    /// Fails if the definitions cannot be added to the log, or cannot be saved.
    pub fn define(&mut self, definitions: &Definitions) -> Result<&Defined, FolderError> {
        if let Some((_, defined)) = self.derived.take() {
            defined.remove(&self.shared.log);
        }
        let (defined, damage) = derived::define(&self.shared.folder, definitions, &self.shared.log, self.shared.from)?;
        self.damage = self.damage.take().or(damage);
        Ok(&self.derived.insert((definitions.clone(), defined)).1)
    }

    /// What was [defined](Self::define).
    pub fn defined(&self) -> Option<&Defined> {
        self.derived.as_ref().map(|(_, defined)| defined)
    }

    /// Adds definitions under a name while records are appended, in place of earlier ones of this name. They cover the records that are still in
    /// memory, are not saved with the folder, and end with this recorder.
    ///
    /// # Errors
    /// Fails if they cannot be added to the log, for example because it has an aggregate of the same name. Then nothing of this name is left.
    pub fn install(&self, name: &str, definitions: &Definitions) -> Result<(), ApplyError> {
        self.installed.add(&self.shared.log, name, definitions)
    }

    /// Removes definitions that were [installed](Self::install). Returns whether there were any of this name.
    pub fn uninstall(&self, name: &str) -> bool {
        self.installed.remove(&self.shared.log, name)
    }

    /// What is [installed](Self::install), by name, after this number of changes.
    pub fn installed(&self) -> (u64, Vec<Installed>) {
        self.installed.list()
    }

    /// The number of changes of what is [installed](Self::install): for those that evaluate triggers, which look at it often.
    #[inline]
    pub fn install_changes(&self) -> u64 {
        self.installed.changes()
    }

    /// What was wrong with the saved aggregates, if anything, when they were [defined](Self::define): they were computed from
    /// all records again.
    pub fn worked_out_again(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Why no volumes can be made or removed at the moment, if so. The recorder tries again after pauses; in the meantime, records
    /// stay in journals. If the problem lasts until recording ends, [`finish`](Self::finish) returns it.
    pub fn troubled(&self) -> Option<Arc<FolderError>> {
        self.shared.troubled()
    }

    /// Volumes that are too old or too many, and stay because they wait to be [uploaded](crate::Uploads).
    pub fn held(&self) -> Held {
        self.shared.held()
    }

    /// The path of the folder when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.folder.path
    }

    /// The current path of the folder, if somebody moved it and that is known: nothing is recorded to it any more.
    pub fn moved_to(&self) -> Option<PathBuf> {
        self.shared.folder.moved_to()
    }

    /// Notes the size of the alerts in bytes, so that a later loss is noticed. Nothing is noted until a record comes or recording
    /// ends.
    pub fn alerted(&self, bytes: u64) {
        self.shared.mark.alerts(bytes);
        if let Some(listener) = self.listener.0.get() {
            listener();
        }
    }

    /// Calls `listener` whenever alerts were written, in the thread that writes them: it should be quick. Only the first call of this has an
    /// effect; returns whether it was the first.
    pub fn when_alerted(&self, listener: impl Fn() + Send + Sync + 'static) -> bool {
        self.listener.0.set(Box::new(listener)).is_ok()
    }

    /// When the folder was made, in nanoseconds since 1970; 0 if that is not known any more. Another folder in its place has another time.
    pub fn made_at(&self) -> u64 {
        self.shared.folder.made_at()
    }

    /// The folder's position for a position of the log.
    pub fn position(&self, of_log: u64) -> u64 {
        self.shared.from + of_log
    }

    /// The number of records left out because their time is after [`LAST_TIME`].
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Appends records to the log, and returns when they are kept. Returns their positions in the folder. If there are more than
    /// a quarter of the records that fit in memory, records of other writers may lie between them. Records whose time is after [`LAST_TIME`] are
    /// left out, and counted as refused.
    ///
    /// # Errors
    /// Fails if something could not be written, now or before. The records may be in the log all the same.
    ///
    /// # Panics
    /// Panics if `records` is not a whole number of records.
    pub fn append(&self, records: &[u8]) -> Result<Appended, RecordError> {
        let (shared, size) = (&*self.shared, self.shared.log.schema().record_size());
        let timely = self.timely(records, size);
        let late = timely.as_ref().map_or(0, |timely| (records.len() - timely.len()) / size) as u64;
        self.late.fetch_add(late, Ordering::Relaxed);
        let records = timely.as_deref().unwrap_or(records);
        let mut all: Option<Appended> = None;
        for part in records.chunks((shared.room / 4) as usize * size) {
            let count = (part.len() / size) as u64;
            let appended = if shared.take_room(count)? {
                let appended = shared.log.append(part);
                shared.give_room_back(appended.refused);
                appended
            } else {
                let end = shared.log.snapshot().len();
                Appended { positions: end..end, refused: count }
            };
            let known = all.get_or_insert_with(|| Appended { positions: appended.positions.clone(), refused: 0 });
            known.positions.end = appended.positions.end;
            known.refused += appended.refused;
        }
        let Appended { positions, refused } = all.unwrap_or(Appended { positions: 0..0, refused: 0 });
        match shared.durability {
            Durability::Relaxed => {
                shared.wake();
                shared.failed().map_or(Ok(()), Err)?;
            }
            Durability::Written | Durability::Synced => shared.wait(positions.end)?,
        }
        let positions = shared.from + positions.start..shared.from + positions.end;
        Ok(Appended { positions, refused: refused + late })
    }

    /// The records whose time a folder can have; `None`: all of them.
    fn timely(&self, records: &[u8], size: usize) -> Option<Vec<u8>> {
        let time = self.time.as_ref()?;
        let is_late = |record: &[u8]| time.key(record) > u128::from(LAST_TIME);
        let all = records.chunks_exact(size);
        all.clone().any(is_late).then(|| all.filter(|record| !is_late(record)).flatten().copied().collect())
    }

    /// Returns when all appended records are kept.
    ///
    /// # Errors
    /// Fails if something could not be written.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.shared.wait(self.shared.log.snapshot().len())
    }

    /// Queries all appended records, including earlier ones of the folder: records that have left memory are read from the
    /// folder.
    ///
    /// # Errors
    /// As [`History::each`].
    pub fn each(
        &self,
        ask: ArchiveQuery<'_>,
        receive: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<Sources, FolderError> {
        // The snapshot first: records that have left memory were written before that.
        let snapshot = self.shared.log.snapshot();
        self.shared.folder.still_there()?;
        self.history.each_before(ask, &snapshot, self.shared.from, receive)
    }

    /// Like [`each`](Self::each), but passes the keys of matching records at positions before `before` to sinks, in any order and batch by batch
    /// ([`History::keys`]).
    pub fn keys<S: KeySink>(
        &self,
        ask: ArchiveQuery<'_>,
        before: u64,
        threads: NonZeroUsize,
        new: impl Fn() -> S,
    ) -> (Vec<S>, Result<Sources, FolderError>) {
        let snapshot = self.shared.log.snapshot();
        match self.shared.folder.still_there() {
            Ok(()) => self.history.keys_before(ask, (&snapshot, self.shared.from), before, threads, new),
            Err(error) => (vec![new()], Err(error)),
        }
    }

    /// Writes the remaining records, turns them into volumes, checks the folder, and returns what it has.
    ///
    /// # Errors
    /// Fails if something could not be written, or if something that was written is gone.
    pub fn finish(mut self) -> Result<Finished, FinishError> {
        self.threads.stop(&self.shared, true);
        let finished = self.shared.finished();
        // Values of aggregates are saved as long as all records are written, even if volumes failed.
        let is_written = matches!(finished, Ok(_) | Err(FinishError::Archive { .. }));
        let kept = self.derived.as_ref().filter(|_| is_written).map_or(Ok(()), |(definitions, defined)| {
            let snapshot = self.shared.log.snapshot();
            let position = self.shared.from + snapshot.len();
            derived::keep(&self.shared.folder, definitions, defined, &snapshot, position)
        });
        let finished = finished?;
        kept.map_err(|why| FinishError::Archive { written: finished.records, why: Arc::new(why) })?;
        Ok(finished)
    }
}

impl AsRef<Log> for Recorder {
    fn as_ref(&self) -> &Log {
        self.log()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.threads.stop(&self.shared, false);
    }
}

/// How memory is divided.
#[derive(Debug, Clone, Copy)]
struct MemoryBudget {
    /// Records in memory.
    records: u64,
    /// Records of a volume while it is made.
    volume: u64,
    /// Bytes of records that are written at once.
    at_once: usize,
}

impl MemoryBudget {
    fn new(options: &RecorderOptions, size: usize) -> Result<Self, FolderError> {
        // Three eighths are for records, three for making volumes, and two for what does not grow with them.
        let (share, size) = (options.memory / 8 * 3, size as u64);
        let records = share / size;
        if records < LEAST {
            return Err(FolderError::TooLittle { bytes: options.memory, least: (LEAST * size).div_ceil(3) * 8 });
        }
        let volume = (share / (size + SORTED)).min(VOLUME_RECORDS);
        Ok(Self { records, volume, at_once: (options.memory / 32).min(AT_ONCE) as usize })
    }
}

/// Bytes that a record takes in addition while a volume is made: for sorting, indexing and writing.
const SORTED: u64 = 128;
/// The most bytes of records that are written at once.
const AT_ONCE: u64 = 4 << 20;
/// Records that must fit in memory: they are released by the block.
const LEAST: u64 = 4 * Log::BLOCK;
