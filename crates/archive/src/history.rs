//! Asking for records of a folder: of its volumes, its journals, and what a process that records has in memory.
//!
//! Records are read stretch by stretch into a small log, and that is asked; so there is one way to answer, and memory for
//! no more than a stretch. Somebody may make volumes of journals meanwhile, join volumes, or take some away: then what is
//! next is looked up again.

mod asking;

use crate::catalogue::{Catalogue, Entry, Removed};
use crate::error::Damage;
use crate::error::FolderError;
use crate::folder::Folder;
use crate::mark::Note;
use crate::reader::Part;
use crate::volume::Columns;
use asking::Asking;
use queuescope_log::{AttributeId, Dnf, Schema, Snapshot};
use std::ops::ControlFlow;
use std::path::Path;

/// A folder that is asked.
#[derive(Debug)]
pub struct History {
    folder: Folder,
    columns: Columns,
}

/// Which records are meant.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What holds of them. It is about the schema's attributes only.
    pub expression: &'a Dnf,
    /// From this time on, in nanoseconds as the records have it,
    pub from: u64,
    /// and before this; `u64::MAX` is no end.
    pub to: u64,
    /// The attributes that are looked at besides: others may be zero in what is told.
    pub needed: &'a [AttributeId],
}

impl Ask<'_> {
    /// Whether no record between these times is meant.
    fn misses(&self, (earliest, latest): (u64, u64)) -> bool {
        latest < self.from || (earliest >= self.to && self.to < u64::MAX)
    }
}

/// What was read to answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Records in all that are there.
    pub records: u64,
    /// Row groups of volumes that were passed by, since all their records are of other times.
    pub other_times: u64,
    /// Row groups of which indexes left some pages, or none.
    pub by_index: u64,
    /// How many pages these were.
    pub pages: u64,
    /// Row groups that were read whole.
    pub whole: u64,
    /// Records that were read from volumes.
    pub from_volumes: u64,
    /// Records that were read from journals.
    pub from_journals: u64,
    /// Records that were looked at in memory.
    pub from_memory: u64,
    /// Records that are in neither: the disk could not keep up when they came, or they were missing when recording went on.
    pub lost: u64,
    /// Records that are not there any more, since they were old or too many.
    pub removed: u64,
    /// Records behind the last that were written, and are not there: a journal was emptied or cut short, or a loss of power took what
    /// was not synced.
    pub missing: u64,
    /// What is wrong with the note of how far was written, if something is: then `missing` may be too small.
    pub note: Option<Damage>,
    /// What is not whole at its end.
    pub torn: Option<Part>,
}

/// Receives records, with their positions, until it breaks off.
type Receive<'t> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 't;

impl History {
    /// Opens a folder to ask it.
    ///
    /// # Errors
    /// If it is no log.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        Folder::open(path).map(Self::of)
    }

    /// Asks one that is open.
    pub(crate) fn of(folder: Folder) -> Self {
        Self { columns: Columns::of(&folder.schema), folder }
    }

    /// What its records are made of.
    pub fn schema(&self) -> &Schema {
        &self.folder.schema
    }

    /// The time of the record that comes first, in nanoseconds, if they have one. Records that came behind it may be earlier.
    ///
    /// # Errors
    /// As of [`each`](Self::each).
    pub fn first(&self) -> Result<Option<u64>, FolderError> {
        let Some(time) = self.schema().time() else { return Ok(None) };
        let catalogue = Catalogue::read(&self.folder.path)?;
        let groups = catalogue.volumes.iter().flat_map(|entry| &entry.groups);
        if let Some(group) = groups.min_by_key(|group| group.first) {
            return Ok(group.starts);
        }
        let mut found = None;
        let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &[time] };
        // The journal that it is in suffices.
        let asked = self.go_through(&mut Asking::new(self, ask).until(catalogue.end() + 1), &mut |_, record| {
            found = found.or_else(|| Some(self.schema().key(time, record) as u64));
            ControlFlow::Break(())
        });
        // What is wrong behind it is told to who asks for that.
        found.map_or_else(|| asked.map(|()| None), |found| Ok(Some(found)))
    }

    /// Tells the records that are meant, in the order of their positions, until it is told to stop: those that are there when it
    /// begins, however many come meanwhile.
    ///
    /// # Errors
    /// If something cannot be read, or is not as it was written; what was told before is right.
    pub fn each(&self, ask: Ask<'_>, receive: &mut Receive<'_>) -> Result<Sources, FolderError> {
        // Before anything else: more is written meanwhile.
        let note = Note::of(&self.folder.path);
        let until = self.folder.may_end()?;
        let mut asking = Asking::new(self, ask).until(until);
        self.go_through(&mut asking, &mut |position, record| {
            if position < until { receive(position, record) } else { ControlFlow::Break(()) }
        })?;
        asking.sources.missing = note.missing(asking.at, asking.sources.torn.as_ref());
        asking.sources.note = note.damage;
        Ok(asking.sources)
    }

    /// The same, but from the first record of a snapshot on as the snapshot has them. A record's position in the folder is `from` more
    /// than in the snapshot.
    pub(crate) fn each_before(
        &self,
        ask: Ask<'_>,
        snapshot: &Snapshot<'_>,
        from: u64,
        receive: &mut Receive<'_>,
    ) -> Result<Sources, FolderError> {
        let mut asking = Asking::new(self, ask).until(from + snapshot.first());
        let until = from + snapshot.first();
        let mut stopped = false;
        self.go_through(&mut asking, &mut |position, record| {
            // The rest of what is read at once is in memory, too.
            let told = if position < until { receive(position, record) } else { ControlFlow::Break(()) };
            stopped |= told.is_break() && position < until;
            told
        })?;
        let mut sources = asking.sources;
        sources.lost += until.saturating_sub(asking.at);
        sources.from_memory = snapshot.len() - snapshot.first();
        let query = snapshot.query().matching(ask.expression).from(ask.from).to(ask.to);
        let mut matched = query.matched();
        while let Some((position, record)) = matched.next().filter(|_| !stopped) {
            stopped = receive(from + position, record).is_break();
        }
        Ok(sources)
    }

    /// All records of volumes that lie one behind the other, in the order of their positions.
    pub(crate) fn records_of(&self, volumes: &[Entry]) -> Result<Vec<u8>, FolderError> {
        let (first, end) = (volumes.first().map_or(0, Entry::first), volumes.iter().map(Entry::end).max().unwrap_or(0));
        let mut records = Vec::with_capacity((end - first) as usize * self.schema().record_size());
        self.each_of(volumes, &mut |_, record| {
            records.extend_from_slice(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// The same, one after the other.
    pub(crate) fn each_of(&self, volumes: &[Entry], receive: &mut Receive<'_>) -> Result<(), FolderError> {
        let Some(group) = volumes.first().and_then(|entry| entry.groups.first()) else { return Ok(()) };
        let all: Vec<_> = self.schema().iter().map(|(id, _)| id).collect();
        let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &all };
        let end = volumes.iter().map(Entry::end).max().unwrap_or(group.end);
        let removed = Removed { before: group.first.saturating_sub(group.lost), records: 0 };
        let mut asking = Asking::new(self, ask).until(end);
        asking.go_on(&Catalogue { removed, noted: None, volumes: volumes.to_vec() }, receive)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn go_through(&self, asking: &mut Asking<'_>, receive: &mut Receive<'_>) -> Result<(), FolderError> {
        let mut catalogue = Catalogue::read(&self.folder.path)?;
        loop {
            let gone_on = asking.go_on(&catalogue, receive);
            // Perhaps somebody made or joined volumes, or took some away, since the catalogue was read. A journal that
            // became a volume meanwhile is not missed: there is no other behind the last.
            let now = Catalogue::read(&self.folder.path)?;
            if now == catalogue || (gone_on.is_ok() && !asking.is_behind(&now)) {
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
