//! Asking for records of a folder: of its volumes, its journals, and what a process that records has in memory.
//!
//! Records are read stretch by stretch into a small log, and that is asked; so there is one way to answer, and memory for
//! no more than a stretch. Who records may make volumes of journals meanwhile, or take volumes away: then what is next is
//! looked up again.

use crate::catalogue::{AllSums, Catalogue, Entry, PARQUET, index_end};
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::reader::{Part, State, look};
use crate::volume::read::{Rows, Volume};
use crate::volume::{Columns, PAGES, index};
use queuescope_log::{AttributeId, Dnf, Log, Memory, Options, Schema, Snapshot};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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
    /// and before this.
    pub to: u64,
    /// The attributes that are looked at besides: others may be zero in what is told.
    pub needed: &'a [AttributeId],
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
    /// Records that are in neither, since the disk could not keep up when they came.
    pub lost: u64,
    /// Records that are not there any more, since they were old or too many.
    pub removed: u64,
    /// What is not whole at its end.
    pub torn: Option<Part>,
}

/// Pages of a row group that are read for what an index says; where there are more, the group is read whole.
const MOST_PAGES: usize = PAGES / 2;
/// Records of a journal that are asked at once.
const AT_ONCE: usize = 1 << 17;

/// Whom records are told to, with their positions.
type Tell<'t> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 't;

impl History {
    /// Opens a folder to ask it.
    ///
    /// # Errors
    /// If it is no log.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let folder = Folder::open(path)?;
        Ok(Self { columns: Columns::of(&folder.schema), folder })
    }

    /// What its records are made of.
    pub fn schema(&self) -> &Schema {
        &self.folder.schema
    }

    /// The earliest time of the records that come first, in nanoseconds, if they have one.
    ///
    /// # Errors
    /// As of [`each`](Self::each).
    pub fn first(&self) -> Result<Option<u64>, FolderError> {
        let Some(time) = self.schema().time() else { return Ok(None) };
        let catalogue = Catalogue::read(&self.folder.path)?;
        let groups = catalogue.volumes.iter().flat_map(|entry| &entry.groups);
        if let Some(first) = groups.clone().map(|group| group.first).min() {
            return Ok(groups.filter(|group| group.first == first).filter_map(|group| Some(group.times?.0)).min());
        }
        let mut found = None;
        let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &[time] };
        self.each(ask, &mut |_, record| {
            found = Some(self.schema().key(time, record) as u64);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Tells the records that are meant, in the order of their positions, until it is told to stop.
    ///
    /// # Errors
    /// If something cannot be read, or is not as it was written; what was told before is right.
    pub fn each(&self, ask: Ask<'_>, tell: &mut Tell<'_>) -> Result<Sources, FolderError> {
        let mut asking = Asking::new(self, ask);
        self.go_through(&mut asking, tell)?;
        Ok(asking.sources)
    }

    /// The same, but from a position on as a snapshot has them: that of its first record, and how far the folder's
    /// positions are before the snapshot's.
    pub(crate) fn each_before(
        &self,
        ask: Ask<'_>,
        (snapshot, from): (&Snapshot<'_>, u64),
        tell: &mut Tell<'_>,
    ) -> Result<Sources, FolderError> {
        let mut asking = Asking { until: from + snapshot.first(), ..Asking::new(self, ask) };
        let until = asking.until;
        let mut stopped = false;
        self.go_through(&mut asking, &mut |position, record| {
            // The rest of what is read at once is in memory, too.
            let told = if position < until { tell(position, record) } else { ControlFlow::Break(()) };
            stopped |= told.is_break() && position < until;
            told
        })?;
        let mut sources = asking.sources;
        sources.lost += until.saturating_sub(asking.at);
        sources.from_memory = snapshot.len() - snapshot.first();
        let query = snapshot.query().matching(ask.expression).from(ask.from).to(ask.to);
        let mut matched = query.matched();
        while let Some((position, record)) = matched.next().filter(|_| !stopped) {
            stopped = tell(from + position, record).is_break();
        }
        Ok(sources)
    }

    fn go_through(&self, asking: &mut Asking<'_>, tell: &mut Tell<'_>) -> Result<(), FolderError> {
        let mut catalogue = Catalogue::read(&self.folder.path)?;
        loop {
            let Err(error) = asking.go_on(&catalogue, tell) else { return Ok(()) };
            // Perhaps somebody made volumes of journals, or took some away, since the catalogue was read.
            let now = Catalogue::read(&self.folder.path)?;
            if now == catalogue {
                return Err(error);
            }
            catalogue = now;
        }
    }
}

/// A question that is being answered.
struct Asking<'a> {
    history: &'a History,
    ask: Ask<'a>,
    /// Attributes that have to be read.
    needed: Vec<AttributeId>,
    sources: Sources,
    /// All before this position was told.
    at: u64,
    /// What is from here on is not asked for.
    until: u64,
    /// Nobody wants to be told more: what is left is only counted.
    stopped: bool,
    /// The volume that was opened last.
    open: Option<Open>,
}

/// A volume that is open.
struct Open {
    name: String,
    path: PathBuf,
    volume: Volume,
    /// The pages that indexes leave; `None`: all.
    pages: Option<Vec<u32>>,
}

impl<'a> Asking<'a> {
    fn new(history: &'a History, ask: Ask<'a>) -> Self {
        let schema = history.schema();
        let mut needed: Vec<_> = ask.expression.attributes().into_iter().chain(ask.needed.iter().copied()).collect();
        if ask.from > 0 || ask.to < u64::MAX {
            needed.extend(schema.time());
        }
        // Those that are views are in the columns of others.
        let bytes = |id: AttributeId| {
            let place = schema.attribute(id).place;
            place.offset..place.end()
        };
        let overlap = |a: &AttributeId, b: AttributeId| {
            let (a, b) = (bytes(*a), bytes(b));
            a.start < b.end && b.start < a.end
        };
        let stored = history.columns.attributes.iter().map(|(id, _)| *id);
        let needed = stored.filter(|stored| needed.iter().any(|id| overlap(id, *stored))).collect();
        Self { history, ask, needed, sources: Sources::default(), at: 0, until: u64::MAX, stopped: false, open: None }
    }

    /// Goes on behind what was told, with what the folder has now.
    fn go_on(&mut self, catalogue: &Catalogue, tell: &mut Tell<'_>) -> Result<(), FolderError> {
        self.sources.removed = catalogue.removed.records;
        self.sources.records = catalogue.records();
        self.at = self.at.max(catalogue.removed.before);
        let mut units: BTreeMap<(u64, u64), Vec<(&Entry, usize)>> = BTreeMap::new();
        for entry in &catalogue.volumes {
            for (number, group) in entry.groups.iter().enumerate() {
                units.entry((group.first, group.end)).or_default().push((entry, number));
            }
        }
        for ((first, end), parts) in units {
            if end <= self.at || first >= self.until {
                continue;
            }
            let lost = parts.first().map_or(0, |(entry, number)| entry.groups[*number].lost);
            if first != self.at + lost {
                let path = parts[0].0.path(&self.history.folder.path, PARQUET);
                let why = format!("it begins at record {first}, and the one before it ends at {}", self.at);
                return Err(Damage::of(&path, why).into());
            }
            if !self.stopped {
                self.stopped = self.unit((first, end), &parts, tell)?.is_break();
            }
            self.sources.lost += lost;
            self.at = end;
        }
        self.journals(catalogue, tell)
    }

    /// Records of one stretch of positions, which may be in several volumes.
    fn unit(
        &mut self,
        (first, end): (u64, u64),
        parts: &[(&Entry, usize)],
        tell: &mut Tell<'_>,
    ) -> Result<ControlFlow<()>, FolderError> {
        let (history, ask) = (self.history, self.ask);
        let mut rows = Rows::default();
        let (mut whole, mut sources) = (true, self.sources.clone());
        for (entry, number) in parts {
            let group = entry.groups[*number];
            if group.times.is_some_and(|(earliest, latest)| latest < ask.from || earliest >= ask.to) {
                sources.other_times += 1;
                whole = false;
                continue;
            }
            self.open(entry)?;
            let Some(open) = &self.open else { continue };
            let pages = open.pages.as_deref().map(|pages| of_group(pages, *number));
            match pages.filter(|pages| pages.len() <= MOST_PAGES) {
                Some(pages) => {
                    sources.by_index += 1;
                    sources.pages += pages.len() as u64;
                    whole = false;
                    if pages.is_empty() {
                        continue;
                    }
                    open.volume.read(
                        (*number, Some(pages)),
                        (history.schema(), &history.columns),
                        &self.needed,
                        &mut rows,
                    )
                }
                None => {
                    sources.whole += 1;
                    open.volume.read((*number, None), (history.schema(), &history.columns), &self.needed, &mut rows)
                }
            }
            .map_err(|error| FolderError::volume(&open.path, &error))?;
        }
        let found = rows.positions.len() as u64;
        rows.sort(history.schema().record_size());
        let in_order = rows.positions.is_sorted_by(|a, b| a < b)
            && rows.positions.first().is_none_or(|at| *at >= first)
            && rows.positions.last().is_none_or(|at| *at < end);
        if !in_order || (whole && found != end - first) {
            let path = parts.first().map(|(entry, _)| entry.path(&history.folder.path, PARQUET)).unwrap_or_default();
            return Err(Damage::of(&path, format!("it does not have the records {first} to {end}")).into());
        }
        sources.from_volumes += found;
        self.sources = sources;
        self.matching(&rows.records, |place| rows.positions[place as usize], tell)
    }

    /// Opens a volume, if it is not open, and asks its indexes.
    fn open(&mut self, entry: &Entry) -> Result<(), FolderError> {
        if self.open.as_ref().is_some_and(|open| open.name == entry.name) {
            return Ok(());
        }
        let folder = &self.history.folder.path;
        let sums = entry.sums(folder)?;
        let file = entry.open(folder, PARQUET, &sums)?;
        let path = entry.path(folder, PARQUET);
        let volume = Volume::open(file, &self.history.columns).map_err(|error| FolderError::volume(&path, &error))?;
        let pages = self.pages(entry, &sums)?;
        self.open = Some(Open { name: entry.name.clone(), path, volume, pages });
        Ok(())
    }

    /// The pages of a volume that have what is asked for, as far as its indexes tell; `None` if they do not.
    fn pages(&self, entry: &Entry, sums: &AllSums) -> Result<Option<Vec<u32>>, FolderError> {
        let schema = self.history.schema();
        let most = MOST_PAGES * entry.groups.len();
        let mut all = Vec::new();
        for term in self.ask.expression.terms() {
            let mut of_term: Option<Vec<u32>> = None;
            for name in &entry.indexes {
                let Some(ranges) = schema.find(name).and_then(|id| term.ranges(id)) else { continue };
                let end = index_end(name);
                let file = entry.open(&self.history.folder.path, &end, sums)?;
                let found = index::find(file, ranges, most);
                let found =
                    found.map_err(|error| FolderError::volume(&entry.path(&self.history.folder.path, &end), &error))?;
                of_term = match (of_term, found) {
                    (Some(known), Some(found)) => {
                        Some(known.into_iter().filter(|page| found.binary_search(page).is_ok()).collect())
                    }
                    (known, found) => known.or(found),
                };
            }
            match of_term {
                Some(pages) => all.extend(pages),
                None => return Ok(None),
            }
        }
        all.sort_unstable();
        all.dedup();
        Ok((!self.ask.expression.is_true()).then_some(all))
    }

    /// Records that are in no volume yet.
    fn journals(&mut self, catalogue: &Catalogue, tell: &mut Tell<'_>) -> Result<(), FolderError> {
        let folder = &self.history.folder;
        let (paths, size) = (folder.journals(catalogue.end())?, folder.schema.record_size());
        for (number, path) in paths.iter().enumerate() {
            if self.at >= self.until {
                break;
            }
            let (mut rows, mut from, mut stopped) = (Vec::new(), self.at, self.stopped);
            let file = look(folder, path, self.at, number + 1 == paths.len(), &mut |first, records| {
                if stopped {
                    return Ok(());
                }
                if rows.is_empty() {
                    from = first;
                }
                rows.extend_from_slice(records);
                if rows.len() >= AT_ONCE * size {
                    stopped = self.matching(&rows, |place| from + place, tell)?.is_break();
                    rows.clear();
                }
                Ok(())
            })?;
            self.stopped = stopped || self.matching(&rows, |place| from + place, tell)?.is_break();
            match file.state {
                State::Damaged(damage) => return Err(damage.into()),
                State::Torn(bytes) => {
                    self.sources.torn = Some(Part { path: path.clone(), offset: file.bytes, bytes });
                }
                State::Open | State::Closed => {}
            }
            self.sources.lost += file.lost;
            self.sources.from_journals += file.records;
            self.sources.records += file.records;
            self.at = file.first + file.records;
        }
        Ok(())
    }

    /// Tells those of records, which lie one behind the other, that are meant.
    fn matching(
        &self,
        records: &[u8],
        position: impl Fn(u64) -> u64,
        tell: &mut Tell<'_>,
    ) -> Result<ControlFlow<()>, FolderError> {
        let schema = self.history.schema();
        let count = (records.len() / schema.record_size()) as u64;
        let log = Log::new(schema.clone(), Options { records: count, memory: Memory::Lazy })?;
        let _ = log.append(records);
        let snapshot = log.snapshot();
        let query = snapshot.query().matching(self.ask.expression).from(self.ask.from).to(self.ask.to);
        for (place, record) in query.matched() {
            if tell(position(place), record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Those of sorted pages that are of a row group.
fn of_group(pages: &[u32], group: usize) -> &[u32] {
    let from = |group: usize| pages.partition_point(|page| index::place(*page).0 < group);
    &pages[from(group)..from(group + 1)]
}
