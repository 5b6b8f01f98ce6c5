//! Queries over the records of a folder: over its volumes, its journals, and the memory of the process that records.
//!
//! Only the columns that a question needs are read, and only the row groups and pages that may have matching records. If the order of records does
//! not matter, keys go to their receiver batch by batch and on several threads (`keys`); otherwise records are made and passed on in order
//! (`query_run`). In the meantime another process may turn journals into volumes, join volumes, or remove some; then the catalogue is read again.

mod chooser;
mod keys;
mod open;
mod query_run;

pub use keys::KeySink;

use crate::catalogue::{Catalogue, Entry, Removed};
use crate::error::Damage;
use crate::error::FolderError;
use crate::folder::Folder;
use crate::left_out::{self, LeftOut};
use crate::mark::Note;
use crate::reader::Part;
use crate::volume::Columns;
use query_run::QueryRun;
use queuescope_log::{AttributeId, Dnf, Schema, Snapshot};
use std::ops::ControlFlow;
use std::path::Path;

/// A folder that can be queried.
#[derive(Debug)]
pub struct History {
    folder: Folder,
    columns: Columns,
}

/// A query: which records are wanted.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveQuery<'a> {
    /// Records must match this expression. It uses only attributes of the schema.
    pub expression: &'a Dnf,
    /// The time of the first record, in nanoseconds since the records' epoch.
    pub from: u64,
    /// Records must have a time before this one, in nanoseconds since the records' epoch; `u64::MAX` means no end.
    pub to: u64,
    /// Other attributes that the caller reads. Attributes that are not listed may be zero in the records that are returned.
    pub needed: &'a [AttributeId],
}

impl ArchiveQuery<'_> {
    /// The attributes whose keys it needs: those of the expression, further ones, and the time if that is limited. Sorted.
    fn keys(&self, further: &[AttributeId], schema: &Schema) -> Vec<AttributeId> {
        let time = self.has_times().then(|| schema.time()).flatten();
        let all = self.expression.attributes().into_iter().chain(further.iter().copied()).chain(time);
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether it limits the time.
    fn has_times(&self) -> bool {
        self.from > 0 || self.to < u64::MAX
    }

    /// Whether the query excludes all records between these times.
    fn misses(&self, (earliest, latest): (u64, u64)) -> bool {
        latest < self.from || (earliest >= self.to && self.to < u64::MAX)
    }
}

/// The end of a folder's records at some time.
#[derive(Debug, Clone)]
pub struct End {
    /// Above the positions of all records.
    position: u64,
    /// Up to where records were written.
    note: Note,
}

impl End {
    /// A position above those of all records.
    pub fn position(&self) -> u64 {
        self.position
    }
}

/// What was read to answer a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Total number of records that are there.
    pub records: u64,
    /// Row groups of volumes that were skipped, because all their records are of other times.
    pub other_times: u64,
    /// Row groups of which indexes left only some pages, or none.
    pub by_index: u64,
    /// The number of these pages.
    pub pages: u64,
    /// Row groups of which the extremes of pages left only some, or none.
    pub by_extremes: u64,
    /// The number of these pages.
    pub extreme_pages: u64,
    /// Row groups that were read completely.
    pub whole: u64,
    /// Records of volumes that were counted by the catalogue, because nothing of them is needed.
    pub counted: u64,
    /// Records read from volumes.
    pub from_volumes: u64,
    /// Records read from journals.
    pub from_journals: u64,
    /// Records read from memory.
    pub from_memory: u64,
    /// Records that are lost: the disk could not keep up, or they were missing when recording continued.
    pub lost: u64,
    /// Records that were removed because they were old or too many.
    pub removed: u64,
    /// Records at the end that were written and are gone: a journal was emptied or cut short, or a loss of power took what was
    /// not synced.
    pub missing: u64,
    /// What is wrong with the note of how far records were written, if anything: then `missing` may be too small.
    pub note: Option<Damage>,
    /// The incomplete end of the last journal.
    pub torn: Option<Part>,
    /// What the recording left out in the time of the question, by reason.
    pub left_out: Vec<LeftOut>,
}

impl Sources {
    /// Adds what another thread read from volumes.
    fn add_read(&mut self, other: &Self) {
        self.other_times += other.other_times;
        self.by_index += other.by_index;
        self.pages += other.pages;
        self.by_extremes += other.by_extremes;
        self.extreme_pages += other.extreme_pages;
        self.whole += other.whole;
        self.counted += other.counted;
        self.from_volumes += other.from_volumes;
    }
}

/// Receives records and their positions, until it returns `Break`.
type Receive<'t> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 't;

impl History {
    /// Opens a folder for queries.
    ///
    /// # Errors
    /// Fails if it is not a log.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        Folder::open(path).map(Self::from_folder)
    }

    /// Queries a folder that is open.
    pub(crate) fn from_folder(folder: Folder) -> Self {
        Self { columns: Columns::new(&folder.schema), folder }
    }

    /// The schema of its records.
    pub fn schema(&self) -> &Schema {
        &self.folder.schema
    }

    /// When the folder was made, in nanoseconds since 1970; 0 if that cannot be read. Another folder at its place has another time.
    pub fn made_at(&self) -> u64 {
        self.folder.made_at()
    }

    /// When the folder that is at a path now was made, in nanoseconds since 1970; `None` if no log is there, or if that cannot be read.
    pub fn made_at_path(path: &Path) -> Option<u64> {
        Folder::made_at_path(path)
    }

    /// The time in nanoseconds of the first record, if records have a time. Later records may have earlier times.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn first(&self) -> Result<Option<u64>, FolderError> {
        let Some(time) = self.schema().time() else { return Ok(None) };
        let catalogue = Catalogue::read(&self.folder.path)?;
        let groups = catalogue.volumes.iter().flat_map(|entry| &entry.groups);
        if let Some(group) = groups.min_by_key(|group| group.first) {
            return Ok(group.starts);
        }
        let mut found = None;
        let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &[time] };
        // The journal with that record is enough.
        let outcome = self.go_through(&mut QueryRun::new(self, ask).until(catalogue.end() + 1), &mut |_, record| {
            found = found.or_else(|| Some(self.schema().key(time, record) as u64));
            ControlFlow::Break(())
        });
        // Damage behind the first record is reported by queries that read there.
        found.map_or_else(|| outcome.map(|()| None), |found| Ok(Some(found)))
    }

    /// The end of the records that exist now.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn end(&self) -> Result<End, FolderError> {
        // The note first: more is written in the meantime.
        let note = Note::read(&self.folder.path);
        Ok(End { position: self.folder.may_end()?, note })
    }

    /// Passes the matching records to `receive`, in the order of their positions, until `receive` returns `Break`. It covers the records that
    /// exist when the query starts, however many are added in the meantime.
    ///
    /// # Errors
    /// Fails if something cannot be read, or is not as it was written. Records passed before the error are right.
    pub fn each(&self, ask: ArchiveQuery<'_>, receive: &mut Receive<'_>) -> Result<Sources, FolderError> {
        let End { position: until, note } = self.end()?;
        let mut run = QueryRun::new(self, ask).until(until);
        self.go_through(&mut run, &mut |position, record| {
            if position < until { receive(position, record) } else { ControlFlow::Break(()) }
        })?;
        run.sources.missing = note.missing(run.at, run.sources.torn.as_ref());
        run.sources.note = note.damage;
        Ok(run.sources)
    }

    /// Like [`each`](Self::each), but records from the first one of a snapshot on come from the snapshot. A record's position in the folder is
    /// `from` higher than its position in the snapshot.
    pub(crate) fn each_before(
        &self,
        ask: ArchiveQuery<'_>,
        snapshot: &Snapshot<'_>,
        from: u64,
        receive: &mut Receive<'_>,
    ) -> Result<Sources, FolderError> {
        let until = from + snapshot.first();
        let mut stopped = false;
        let mut sources = if until == 0 {
            // All of them are in memory: no file is read.
            self.no_sources(ask)
        } else {
            let mut run = QueryRun::new(self, ask).until(until);
            self.go_through(&mut run, &mut |position, record| {
                // Records behind `until` that were read with these are also in memory.
                let flow = if position < until { receive(position, record) } else { ControlFlow::Break(()) };
                stopped |= flow.is_break() && position < until;
                flow
            })?;
            run.sources.lost += until.saturating_sub(run.at);
            run.sources
        };
        sources.from_memory = snapshot.len() - snapshot.first();
        let query = snapshot.query().matching(ask.expression).from(ask.from).to(ask.to);
        let mut matched = query.matched();
        while let Some((position, record)) = matched.next().filter(|_| !stopped) {
            stopped = receive(from + position, record).is_break();
        }
        Ok(sources)
    }

    /// Nothing was read so far.
    fn no_sources(&self, ask: ArchiveQuery<'_>) -> Sources {
        Sources { left_out: left_out::between(&self.folder.path, ask.from, ask.to), ..Sources::default() }
    }

    /// All records of volumes with consecutive positions, in the order of their positions.
    pub(crate) fn records_of(&self, volumes: &[Entry]) -> Result<Vec<u8>, FolderError> {
        let (first, end) = (volumes.first().map_or(0, Entry::first), volumes.iter().map(Entry::end).max().unwrap_or(0));
        let mut records = Vec::with_capacity((end - first) as usize * self.schema().record_size());
        self.each_of(volumes, &mut |_, record| {
            records.extend_from_slice(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// Like [`records_of`](Self::records_of), one record at a time.
    pub(crate) fn each_of(&self, volumes: &[Entry], receive: &mut Receive<'_>) -> Result<(), FolderError> {
        let Some(group) = volumes.first().and_then(|entry| entry.groups.first()) else { return Ok(()) };
        let all: Vec<_> = self.schema().iter().map(|(id, _)| id).collect();
        let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &all };
        let end = volumes.iter().map(Entry::end).max().unwrap_or(group.end);
        let removed = Removed { before: group.first.saturating_sub(group.lost), records: 0 };
        let mut run = QueryRun::new(self, ask).until(end);
        run.go_on(&Catalogue { removed, noted: None, volumes: volumes.to_vec() }, receive)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn go_through(&self, run: &mut QueryRun<'_>, receive: &mut Receive<'_>) -> Result<(), FolderError> {
        let mut catalogue = Catalogue::read(&self.folder.path)?;
        loop {
            let gone_on = run.go_on(&catalogue, receive);
            // Another process may have made, joined or removed volumes since the catalogue was read. A journal that became a
            // volume in the meantime is not missed: no other journal is behind the last.
            let now = Catalogue::read(&self.folder.path)?;
            if now == catalogue || (gone_on.is_ok() && !run.is_behind(&now)) {
                return gone_on;
            }
            catalogue = now;
        }
    }
}

#[cfg(test)]
mod extreme;
#[cfg(test)]
mod tests;
