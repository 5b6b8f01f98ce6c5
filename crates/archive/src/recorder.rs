//! A log whose records are written to a folder as they come.
//!
//! A thread follows the log's tail and writes what is before it to journals: records are in the log already, one behind
//! the other, so writers do not wait for the disk unless they want to, and what many of them appended meanwhile is written
//! at once. Another makes volumes of journals that are full ([`archive`](crate::archive)).

mod follow;
mod recover;

use crate::derived::{self, unbounded};
use crate::error::{Damage, FolderError};
use crate::folder::{Folder, Lock};
use crate::history::{Ask, History, Sources};
use crate::journal::{Disk, Medium};
use crate::mark::{Mark, Note};
use crate::prune::Retention;
use crate::reader::Part;
use crate::store::Store;
use crate::volume::GROUP;
pub(crate) use follow::Pauses;
use follow::{Archiving, Shared, Threads};
use queuescope_log::{Appended, AttributeId, Defined, Definitions, LAST_TIME, Log, Reader, Schema};
use recover::has_room;
pub(crate) use recover::recover;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What becomes of records when memory is full, since the disk does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Full {
    /// Writers wait.
    #[default]
    Wait,
    /// New records are left out: [`Appended::refused`] says how many, with those that are [late](Recorder::late).
    LeaveOut,
    /// The oldest records that are not written yet are lost: [`Finished::lost`] says how many, and the folder does. Only of
    /// what is recorded [relaxed](Durability::Relaxed).
    LoseOldest,
}

/// How is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Bytes of memory for all: three eighths for records, as much for making volumes, the rest for what does not grow.
    /// Records that were written leave it when others come.
    pub memory: u64,
    /// What becomes of records when it is full.
    pub full: Full,
    /// When a record counts as kept.
    pub durability: Durability,
    /// Records of a journal, at most, up to [`VOLUME_RECORDS`].
    pub journal_records: u64,
    /// Whether volumes are made of journals that are full, and of all when recording ends.
    pub archive: bool,
    /// Attributes that volumes have indexes of.
    pub indexes: Vec<AttributeId>,
    /// Which volumes stay when another was made.
    pub keep: Retention,
}

impl Default for RecorderOptions {
    /// A gigabyte, whole volumes, and no record left out or taken away.
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

/// Records of a journal at most: a volume of them is read as a whole.
pub const VOLUME_RECORDS: u64 = GROUP as u64;

/// What was found in a folder that was recorded to before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that are there.
    pub records: u64,
    /// What was not whole at the end, and was cut off.
    pub cut: Option<Part>,
    /// Records that were written and are not there any more: a journal was emptied or cut short, or a loss of power took what was not
    /// synced.
    pub missing: u64,
    /// What is wrong with the note of how far was written, if something is: then `missing` and `alerts` may lack something.
    pub note: Option<Damage>,
    /// What is wrong with the alerts: they are fewer than were written.
    pub alerts: Option<Damage>,
    /// Files with records that are in no journal or volume, which were kept aside: a journal that was put back, or what lay behind
    /// damage.
    pub kept: Vec<PathBuf>,
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Records that the folder has.
    pub records: u64,
    /// Records that were lost since it was opened, since the disk could not keep up.
    pub lost: u64,
    /// Records that were taken away since it was opened, since they were old or too many.
    pub removed: u64,
}

/// Why a record is not kept. How many are is counted in the folder.
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
    /// All records were written, but not all became volumes, or what aggregates are could not be kept.
    #[error(
        "all {written} records are kept, but not all that follows from them, which is made when the folder is recorded to again: \
         {why}"
    )]
    Archive {
        /// Records that were written.
        written: u64,
        /// What went wrong.
        why: Arc<FolderError>,
    },
    /// Records were written, and are not there any more: somebody removed, moved or changed the folder, or files in it.
    #[error("{there} of {written} records are in {}: {why}", path.display())]
    Missing {
        /// The folder, where it is now.
        path: PathBuf,
        /// Records that are there.
        there: u64,
        /// Records that were written, those that were there before among them.
        written: u64,
        /// What is missing.
        why: Arc<FolderError>,
    },
}

/// A log that is recorded to a folder.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    threads: Threads,
    /// The time of records, if they have one, and how many were left out since theirs was too late.
    time: Option<Reader>,
    late: AtomicU64,
    derived: Option<(Definitions, Defined)>,
    /// What was wrong with what was kept of aggregates.
    damage: Option<Damage>,
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
        Self::within(medium, Arc::new(Disk), Pauses::default(), path, schema, options)
    }

    /// With journals and other files that are made elsewhere, and other pauses.
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
        // What is no log's is left as it is.
        if options.full == Full::LoseOldest && options.durability != Durability::Relaxed {
            return Err(FolderError::Acknowledged);
        }
        let room = Room::new(&options, schema.record_size())?;
        Folder::may_become(path)?;
        let lock = Folder::lock(path)?;
        let folder = if Folder::is_there(path) { Folder::open(path)? } else { Folder::create(path, schema)? };
        if folder.schema.text() != schema.text() {
            let (found, wanted) = (folder.schema.name().to_owned(), schema.name().to_owned());
            return Err(FolderError::OtherSchema { path: path.to_owned(), found, wanted });
        }
        let folder = folder.on(store);
        let note = Note::of(path);
        let mut recovered = recover(&folder)?;
        let missing = note.missing(recovered.tail.next, recovered.cut.as_ref());
        // Their numbers are not given out again: that they are missing stays known.
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
            Self { shared, threads, time, late: AtomicU64::new(0), derived: None, damage: None, _lock: lock },
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

    /// The records that came since it was opened, and are still in memory.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Adds what is worked out of the records, of those before too, and keeps it with the folder. It is for before anything is
    /// appended; a second time it is as if the first had not been.
    ///
    /// # Errors
    /// If it cannot be added to the log, or kept.
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

    /// What was wrong with what was kept of aggregates, if it was, when they were [defined](Self::define): they were worked out
    /// of all records again.
    pub fn worked_out_again(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Why no volumes are made or taken away at the moment, if so. It is tried again and again, a while apart; meanwhile records
    /// are kept in journals. What is still so when recording ends, [`finish`](Self::finish) tells.
    pub fn troubled(&self) -> Option<Arc<FolderError>> {
        self.shared.troubled()
    }

    /// Where the folder is now, if somebody moved it and that is known: nothing is recorded to it any more.
    pub fn moved_to(&self) -> Option<PathBuf> {
        self.shared.folder.moved_to()
    }

    /// Notes that so many bytes of alerts are there, so that they are missed if they are fewer later. Until a record comes, or recording
    /// ends, nothing is noted.
    pub fn alerted(&self, bytes: u64) {
        self.shared.mark.alerts(bytes);
    }

    /// The folder's position of a position of the log.
    pub fn position(&self, of_log: u64) -> u64 {
        self.shared.from + of_log
    }

    /// How many records were left out since their time is after [`LAST_TIME`].
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Appends records to the log, and returns when they are kept. Their positions are those of the folder; of more than
    /// a quarter of what there is room for, others may be between. Those whose time is after [`LAST_TIME`] are left out, and
    /// counted as refused.
    ///
    /// # Errors
    /// If something could not be written, now or before. The records may be in the log all the same.
    ///
    /// # Panics
    /// If `records` is not a whole number of records.
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
            Durability::Relaxed => shared.failed().map_or(Ok(()), Err)?,
            Durability::Written | Durability::Synced => shared.wait(positions.end)?,
        }
        let positions = shared.from + positions.start..shared.from + positions.end;
        Ok(Appended { positions, refused: refused + late })
    }

    /// Those of some records whose time a folder can have; `None`: it is all of them.
    fn timely(&self, records: &[u8], size: usize) -> Option<Vec<u8>> {
        let time = self.time.as_ref()?;
        let is_late = |record: &[u8]| time.key(record) > u128::from(LAST_TIME);
        let all = records.chunks_exact(size);
        all.clone().any(is_late).then(|| all.filter(|record| !is_late(record)).flatten().copied().collect())
    }

    /// Returns when all records that were appended are kept.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.shared.wait(self.shared.log.snapshot().len())
    }

    /// Asks for all records that were appended, also by others before: what is not in memory any more is read from the
    /// folder.
    ///
    /// # Errors
    /// As of [`History::each`].
    pub fn each(
        &self,
        ask: Ask<'_>,
        tell: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<Sources, FolderError> {
        // The snapshot first: what left memory before it was written before.
        let snapshot = self.shared.log.snapshot();
        History::open(&self.shared.folder.path)?.each_before(ask, &snapshot, self.shared.from, tell)
    }

    /// Writes what is left, makes volumes of it, and tells what was recorded: what is in the folder then, which is looked at.
    ///
    /// # Errors
    /// If something could not be written, or what was written is not there.
    pub fn finish(mut self) -> Result<Finished, FinishError> {
        self.threads.stop(&self.shared, true);
        let finished = self.shared.finished();
        // What aggregates are is kept as long as the records are, whatever became of volumes.
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

impl Drop for Recorder {
    fn drop(&mut self) {
        self.threads.stop(&self.shared, false);
    }
}

/// How memory is shared out.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Records in memory.
    records: u64,
    /// Records of a volume that is made.
    volume: u64,
    /// Bytes of records that are written at once.
    at_once: usize,
}

impl Room {
    fn new(options: &RecorderOptions, size: usize) -> Result<Self, FolderError> {
        // Three eighths are for records, three for making volumes, and two for all that does not grow with them.
        let (share, size) = (options.memory / 8 * 3, size as u64);
        let records = share / size;
        if records < LEAST {
            return Err(FolderError::TooLittle { bytes: options.memory, least: (LEAST * size).div_ceil(3) * 8 });
        }
        let volume = (share / (size + SORTED)).min(VOLUME_RECORDS);
        Ok(Self { records, volume, at_once: (options.memory / 32).min(AT_ONCE) as usize })
    }
}

/// Bytes that a record takes beside itself while a volume is made: as it is sorted, as an index, and written.
const SORTED: u64 = 128;
/// Bytes of records that are written at once, at most.
const AT_ONCE: u64 = 4 << 20;
/// Records that have to fit into memory: they are released by the block.
const LEAST: u64 = 4 * Log::BLOCK;
