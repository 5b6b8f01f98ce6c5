//! Writes records to a folder.

use crate::alarms;
use crate::error::Error;
use crate::folder::check_folder;
use crate::keep_options::KeepOptions;
use crate::spool::Unwritten;
use queuescope_archive::{
    Damage, Durability, FinishError, Finished, LeftOutFile, Part, RecordError, Recorder, RecorderOptions, Recovery,
    VOLUME_RECORDS,
};
use queuescope_ingest::notes::noted;
use queuescope_log::{Definitions, Schema};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was left out before the first note of it came in this time before.
const FIRST: Nanos = Nanos(1_000_000_000);

/// Records that are appended at once.
const BATCH: usize = 256;

/// A folder that is being recorded to.
#[derive(Debug)]
pub struct Recording {
    is_synced: bool,
    recovery: Recovery,
    batch: Batch,
    /// What is left out; none until something may be, or if its file cannot be written.
    left_out: RefCell<LeftOutState>,
}

/// The file of what a recording leaves out.
#[derive(Debug, Default)]
enum LeftOutState {
    #[default]
    Unopened,
    Open(LeftOutFile),
    /// It cannot be written, which was noted.
    Failed,
}

/// Receives notes for the user while packets are recorded, one per call.
pub type Notes = Box<dyn FnMut(&str) + Send>;

/// Records that are appended together. On drop it appends the rest, so that an error does not cost earlier records.
struct Batch {
    path: PathBuf,
    recorder: Arc<Recorder>,
    records: RefCell<Vec<u8>>,
    full: usize,
    refused: Cell<u64>,
    notes: RefCell<Notes>,
    /// Whether a note was given that no volumes are made.
    troubled: Cell<bool>,
    /// The number of records that came; whether recording goes on when one cannot be kept; and why one could not be kept.
    came: Cell<u64>,
    goes_on: Cell<bool>,
    failed: RefCell<Option<String>>,
}

/// The result of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// The folder.
    pub path: PathBuf,
    /// Records that were added.
    pub records: u64,
    /// Records that were left out because the disk did not keep up.
    pub refused: u64,
    /// Records that were lost because the disk did not keep up.
    pub lost: u64,
    /// Records that were left out because their time is too late for any folder.
    pub late: u64,
    /// Records that were removed because they were old or too many.
    pub removed: u64,
    /// Records that are missing because the folder could not be written; or why another part of it could not be written.
    pub unwritten: Option<Unwritten>,
    /// Packets that were not recorded for other reasons.
    pub others: Vec<Skipped>,
    /// The state of the folder before the recording.
    pub recovery: Recovery,
}

impl Recording {
    /// Continues a folder, or makes it, with definitions if there are any.
    ///
    /// # Errors
    /// Fails if it cannot be recorded to, or has records of another schema.
    pub fn open(
        path: &Path,
        schema: &Schema,
        keeping: &KeepOptions,
        definitions: Option<&Definitions>,
        mut notes: Notes,
    ) -> Result<Self, Error> {
        check_folder(path)?;
        let mut indexes = keeping.indexes.clone();
        indexes.extend(definitions.iter().flat_map(|definitions| definitions.indexes()));
        indexes.sort_unstable();
        indexes.dedup();
        let options = RecorderOptions {
            memory: keeping.memory.0,
            full: keeping.full,
            durability: keeping.durability,
            journal_records: VOLUME_RECORDS,
            archive: true,
            indexes,
            keep: keeping.keep,
        };
        let (mut recorder, recovery) = Recorder::open(path, schema, options)?;
        // At once: nothing repeats these notes, whatever happens to this recording.
        recovery.cut.iter().for_each(|cut| notes(&cut_off(cut)));
        recovery.kept.iter().for_each(|kept| notes(&kept_aside(kept)));
        if recovery.missing > 0 {
            notes(&format!(
                "{}; their numbers are not used again, and queuescope log info counts them as lost",
                missing(path, recovery.missing)
            ));
        }
        if let Some(damage) = &recovery.alerts {
            let (path, why) = (damage.path.display(), &damage.why);
            notes(&format!(
                "{path} is damaged: {why}; alerts are added to what is there, and queuescope log info says how much was lost"
            ));
        }
        if let Some(damage) = &recovery.note {
            notes(&format!("{} is damaged: {}; it is written again", damage.path.display(), damage.why));
        }
        recorder.alerted(alarms::cut_off(path)?);
        if let Some(definitions) = definitions {
            recorder.define(definitions)?;
            if let Some(damage) = recorder.worked_out_again() {
                let (path, why) = (damage.path.display(), &damage.why);
                notes(&format!("{path} is damaged: {why}; aggregates were computed from the records that are there"));
            }
        }
        let full = BATCH * schema.record_size();
        let records = RefCell::new(Vec::with_capacity(full));
        let (refused, troubled) = (Cell::new(0), Cell::new(false));
        let (path, recorder) = (path.to_owned(), Arc::new(recorder));
        let is_synced = keeping.durability == Durability::Synced;
        let (came, goes_on, failed) = (Cell::new(0), Cell::new(false), RefCell::new(None));
        let notes = RefCell::new(notes);
        let batch = Batch { path, recorder, records, full, refused, notes, troubled, came, goes_on, failed };
        Ok(Self { is_synced, recovery, batch, left_out: RefCell::default() })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.batch.path
    }

    /// Whether acknowledged records survive a loss of power.
    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// The recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.batch.recorder
    }

    /// The recorder, for readers in other threads. [`finish`](Self::finish) fails while one of these is left.
    pub fn shared_recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.batch.recorder)
    }

    /// Notes what has been left out so far, by reason: the folder keeps how much it was in which time, so that answers about that time say so. Call this now and then, with
    /// totals since the recording began. What is new was left out since the last call, or up to `slack` before it. An error is a note.
    pub fn left_out(&self, now: Nanos, slack: Nanos, totals: &[Skipped]) {
        self.left_out_from(now.saturating_sub(FIRST));
        let mut state = self.left_out.borrow_mut();
        let LeftOutState::Open(file) = &mut *state else { return };
        let totals: Vec<_> =
            totals.iter().map(|total| (total.reason.as_str(), total.count, total.meaning.as_str())).collect();
        if let Err(why) = file.note(now.0, slack.0, &totals) {
            *state = LeftOutState::Failed;
            self.unnoted(&why);
        }
    }

    /// What is left out from now on is left out from this time on. Only the first call has an effect, if nothing was left out before.
    pub fn left_out_from(&self, first: Nanos) {
        let mut state = self.left_out.borrow_mut();
        if !matches!(*state, LeftOutState::Unopened) {
            return;
        }
        let path = self.recorder().moved_to().unwrap_or_else(|| self.path().to_owned());
        match LeftOutFile::in_folder(&path, first.0) {
            Ok(file) => *state = LeftOutState::Open(file),
            Err(why) => {
                *state = LeftOutState::Failed;
                self.unnoted(&why);
            }
        }
    }

    /// Writes what was left out since the last line.
    fn end_left_out(&self) {
        if let LeftOutState::Open(file) = &mut *self.left_out.borrow_mut()
            && let Err(why) = file.end()
        {
            self.unnoted(&why);
        }
    }

    fn unnoted(&self, why: &std::io::Error) {
        let path = self.path().display();
        self.batch.notes.borrow_mut()(&format!(
            "cannot note in {path} what is left out: {why}; later answers about this time do not say so"
        ));
    }

    /// From now on, records that cannot be kept are counted, and are not an error: a measurement cannot be repeated.
    pub fn go_on(&self) {
        self.batch.goes_on.set(true);
    }

    /// Whether [`go_on`](Self::go_on) was called.
    pub fn goes_on(&self) -> bool {
        self.batch.goes_on.get()
    }

    /// Part of the folder cannot be written: nothing more is recorded.
    pub fn fail(&self, why: &impl ToString) {
        self.batch.failed.borrow_mut().get_or_insert_with(|| why.to_string());
    }

    /// Why records could not be kept, if there is an error; their number is known at the end.
    pub fn unwritten(&self) -> Option<Unwritten> {
        let failed = self.batch.failed.borrow();
        failed.as_ref().map(|why| Unwritten::new("log", &self.batch.path, why))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Fails if it cannot be kept, or if an earlier one could not.
    #[inline]
    pub fn push(&self, record: &[u8]) -> Result<(), Error> {
        self.batch.push(record)
    }

    /// Appends the records that are still buffered.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn flush(&self) -> Result<(), Error> {
        self.batch.append(&mut self.batch.records.borrow_mut())
    }

    /// Writes the rest, and ends the recording.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        self.end_left_out();
        self.flush()?;
        let Self { recovery, batch, .. } = self;
        let (path, refused, recorder) = (batch.path.clone(), batch.refused.get(), Arc::clone(&batch.recorder));
        let (came, goes_on, mut failed) = (batch.came.get(), batch.goes_on.get(), batch.failed.take());
        drop(batch);
        let recorder = Arc::into_inner(recorder).ok_or(Error::InUse)?;
        let (late, moved) = (recorder.late(), recorder.moved_to());
        let Finished { records, lost, removed } = match recorder.finish() {
            Err(why) if goes_on => {
                failed.get_or_insert_with(|| what_failed(&why));
                Finished { records: kept(&why), lost: 0, removed: 0 }
            }
            finished => finished?,
        };
        let records = (records + removed).saturating_sub(recovery.records);
        let packets = came.saturating_sub(refused + lost + records);
        let unwritten = failed.map(|why| Unwritten { packets, ..Unwritten::new("log", &path, &why) });
        let (refused, path) = (refused - late, moved.unwrap_or(path));
        Ok(Recorded { path, records, refused, lost, late, removed, unwritten, others: Vec::new(), recovery })
    }
}

/// The error of the system, without the number of records kept at that time.
fn what_failed(why: &FinishError) -> String {
    match why {
        FinishError::Record(RecordError { why, .. }) => why.to_string(),
        other => other.to_string(),
    }
}

/// The number of records in a folder that could not be finished.
fn kept(why: &FinishError) -> u64 {
    match why {
        FinishError::Record(RecordError { written, .. }) | FinishError::Archive { written, .. } => *written,
        FinishError::Missing { there, .. } => *there,
    }
}

/// A message about records that were written to a folder and are gone.
pub fn missing(folder: &Path, records: u64) -> String {
    format!(
        "{} of the last records that were written to {} are gone: a journal was emptied, cut short, damaged or removed, or a loss of \
         power took what was not synced",
        count(records),
        folder.display()
    )
}

/// A message about a file that was set aside.
pub fn kept_aside(path: &Path) -> String {
    format!(
        "{} has bytes that were found in the folder and do not belong to its records: a journal that was put back or renamed, or what lay behind \
         damage; nothing reads it, and you may move or remove it",
        path.display()
    )
}

/// A message about the incomplete end of a folder, which was cut off.
pub fn cut_off(cut: &Part) -> String {
    let behind = match cut.records {
        0 => String::new(),
        records => {
            format!("; {} whole records were among them, behind incomplete ones, and are kept aside", count(records))
        }
    };
    let (bytes, path) = (count(cut.bytes), cut.path.display());
    format!(
        "{bytes} bytes at the end of {path} were incomplete, and were cut off: the last recording was stopped{behind}"
    )
}

impl Batch {
    #[inline]
    fn push(&self, record: &[u8]) -> Result<(), Error> {
        let mut records = self.records.borrow_mut();
        records.extend_from_slice(record);
        if records.len() >= self.full { self.append(&mut records) } else { Ok(()) }
    }

    fn append(&self, records: &mut Vec<u8>) -> Result<(), Error> {
        if !records.is_empty() {
            self.came.set(self.came.get() + (records.len() * BATCH / self.full) as u64);
            // Once nothing more can be kept, records that wait for the disk would be in the way.
            if self.failed.borrow().is_none() {
                match self.recorder.append(records) {
                    Ok(appended) => self.refused.set(self.refused.get() + appended.refused),
                    Err(RecordError { why, .. }) if self.goes_on.get() => {
                        self.failed.replace(Some(why.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            records.clear();
        }
        self.note_trouble();
        Ok(())
    }

    /// Adds a note when volumes are no longer made, and one when they are made again.
    fn note_trouble(&self) {
        let trouble = self.recorder.troubled();
        if self.troubled.replace(trouble.is_some()) == trouble.is_some() {
            return;
        }
        let path = self.path.display();
        let mut notes = self.notes.borrow_mut();
        notes(&match trouble {
            Some(why) => format!(
                "{path} cannot get volumes at the moment, and old ones may stay: {why}; packets are kept in journals meanwhile, \
                 and it is tried again"
            ),
            None => format!("{path} gets volumes again"),
        });
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("path", &self.path).field("came", &self.came).finish_non_exhaustive()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Another error ended the recording. If this error is the reason, an earlier call returned it.
        _ = self.append(&mut self.records.take());
    }
}

impl Recorded {
    /// The notes for a report.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let path = self.path.display();
        let before = self.recovery.records;
        let behind = if before > 0 { format!(", after the {} already there", count(before)) } else { String::new() };
        let recorded = Skipped {
            reason: "recorded".to_owned(),
            count: self.records,
            meaning: format!("packets put into {path}{behind}"),
        };
        std::iter::once(recorded).chain(self.short()).chain(self.others.clone())
    }

    /// The missing records: the disk did not keep up, or they were not to be kept.
    pub fn short(&self) -> impl Iterator<Item = Skipped> + use<> {
        let left_out = "packets left out: the disk did not keep up, and memory was full";
        let lost = "packets lost before they were written: the disk did not keep up, and memory was full";
        let removed = "packets removed from the folder: they were old, or too many";
        let notes = [
            noted("left_out", self.refused, left_out),
            noted("lost", self.lost, lost),
            noted("late", self.late, LATE),
            noted("removed", self.removed, removed),
        ];
        notes.into_iter().flatten().chain(self.unwritten.iter().flat_map(Unwritten::notes).collect::<Vec<_>>())
    }

    /// What is missing from the folder: packets of this recording, or records and alerts of earlier ones whose loss it found.
    pub fn damage(&self) -> Option<String> {
        if let Some(unwritten) = &self.unwritten {
            return Some(unwritten.damage());
        }
        let (missing, late, path) = (self.refused + self.lost, self.late, self.path.display());
        let why = || format!("the disk did not keep up: {missing} packets are not in {path}");
        let too_late = || format!("{late} packets are not in {path}: their times are in the year 2262 or later");
        (missing > 0).then(why).or_else(|| (late > 0).then(too_late)).or_else(|| self.earlier_damage())
    }

    /// The loss of earlier records or alerts, which only this recording finds: it accepts the loss, so that later checks find only new ones.
    fn earlier_damage(&self) -> Option<String> {
        let Recovery { missing: records, alerts, note, .. } = &self.recovery;
        let of_records = (*records > 0).then(|| missing(&self.path, *records));
        let damaged = |damage: &Damage| format!("{} was damaged: {}", damage.path.display(), damage.why);
        of_records.or_else(|| alerts.as_ref().or(note.as_ref()).map(damaged))
    }
}

/// The meaning of packets whose times a folder cannot hold.
const LATE: &str = "packets left out: their times are in the year 2262 or later, which no folder has";

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_archive::{ArchiveQuery, History};
    use queuescope_log::{Dnf, packet};
    use std::ops::ControlFlow;

    #[test]
    fn an_error_keeps_earlier_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (keeping, notes) = (KeepOptions::default(), Box::new(|note: &str| panic!("{note}")));
        let recording = Recording::open(&path, packet::schema(), &keeping, None, notes).unwrap();
        (0..BATCH + 3).for_each(|_| recording.push(&[0; packet::SIZE]).unwrap());
        drop(recording);
        let (mut found, everything) = (0, Dnf::all());
        let ask = ArchiveQuery { expression: &everything, from: 0, to: u64::MAX, needed: &[] };
        let history = History::open(&path).unwrap();
        _ = history.each(ask, &mut |_, _| {
            found += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(found, BATCH + 3);
    }
}
