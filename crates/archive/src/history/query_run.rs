//! A query that runs over a folder, stretch by stretch.

use super::{ArchiveQuery, History, Receive, Sources};
use crate::catalogue::{AllSums, Catalogue, Entry, PARQUET, index_end};
use crate::error::{Damage, FolderError};
use crate::reader::{State, look};
use crate::volume::read::{Rows, Volume};
use crate::volume::{PAGES, index};
use queuescope_log::{AttributeId, Log, Memory, Options};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

/// The most pages of a row group that are read one by one because of an index. With more, the whole row group is read.
const MOST_PAGES: usize = PAGES / 2;
/// Records of a journal that are queried at once.
const AT_ONCE: usize = 1 << 17;

/// A query that runs.
pub(super) struct QueryRun<'a> {
    history: &'a History,
    ask: ArchiveQuery<'a>,
    /// Attributes that have to be read.
    needed: Vec<AttributeId>,
    pub sources: Sources,
    /// All records before this position were passed on.
    pub at: u64,
    /// All records before this position were read: volumes, and journals to their end.
    read: u64,
    /// Records from this position on are not wanted.
    until: u64,
    /// The receiver wants no more records: the rest is only counted.
    stopped: bool,
    /// The journals that were read: where each ends, and how many records it had.
    journals: Vec<(u64, u64)>,
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

impl<'a> QueryRun<'a> {
    pub fn new(history: &'a History, ask: ArchiveQuery<'a>) -> Self {
        let schema = history.schema();
        let mut needed: Vec<_> = ask.expression.attributes().into_iter().chain(ask.needed.iter().copied()).collect();
        if ask.from > 0 || ask.to < u64::MAX {
            needed.extend(schema.time());
        }
        // Attributes that are views are stored in the columns of others.
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
        Self {
            history,
            ask,
            needed,
            sources: Sources::default(),
            at: 0,
            read: 0,
            until: u64::MAX,
            stopped: false,
            journals: Vec::new(),
            open: None,
        }
    }

    /// Leaves out records from a position on.
    pub fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }

    /// Whether volumes have records that were not passed on yet.
    pub fn is_behind(&self, catalogue: &Catalogue) -> bool {
        self.at < catalogue.end().min(self.until)
    }

    /// Continues behind the records that were passed on, with the current files of the folder.
    pub fn go_on(&mut self, catalogue: &Catalogue, receive: &mut Receive<'_>) -> Result<(), FolderError> {
        self.sources.removed = catalogue.removed.records;
        // Records read from journals may be in volumes now.
        let still = self.journals.iter().filter(|(end, _)| *end > catalogue.end()).map(|(_, records)| records);
        self.sources.records = catalogue.records() + still.sum::<u64>();
        self.at = self.at.max(catalogue.removed.before);
        self.read = self.read.max(catalogue.removed.before);
        let mut units: BTreeMap<(u64, u64), Vec<(&Entry, usize)>> = BTreeMap::new();
        for entry in &catalogue.volumes {
            for (number, group) in entry.groups.iter().enumerate() {
                units.entry((group.first, group.end)).or_default().push((entry, number));
            }
        }
        for ((first, end), parts) in units {
            if end <= self.at || first >= self.until {
                self.read = self.read.max(end);
                continue;
            }
            let lost = parts.first().map_or(0, |(entry, number)| entry.groups[*number].lost);
            // A volume that was joined after its first records were passed on begins before the next position.
            let was_passed_on = first.saturating_sub(lost) < self.at;
            if !was_passed_on && first != self.at + lost {
                let path = parts[0].0.path(&self.history.folder.path, PARQUET);
                let why = format!("it begins at record {first}, and the one before it ends at {}", self.at);
                return Err(Damage::new(&path, why).into());
            }
            if !self.stopped {
                self.stopped = self.unit(first..end, &parts, receive)?.is_break();
            }
            self.sources.lost += if was_passed_on { 0 } else { lost };
            (self.at, self.read) = (end, end);
        }
        self.journals(catalogue, receive)
    }

    /// Reads the records of one stretch of positions, which may be in several volumes.
    fn unit(
        &mut self,
        stretch: Range<u64>,
        parts: &[(&Entry, usize)],
        receive: &mut Receive<'_>,
    ) -> Result<ControlFlow<()>, FolderError> {
        let (history, ask) = (self.history, self.ask);
        let mut rows = Rows::default();
        let (mut whole, mut sources) = (true, self.sources.clone());
        for (entry, number) in parts {
            let group = entry.groups[*number];
            if group.times.is_some_and(|times| ask.misses(times)) {
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
                    let (schema, columns) = (history.schema(), &history.columns);
                    open.volume.read(*number, Some(pages), schema, columns, &self.needed, &mut rows)
                }
                None => {
                    sources.whole += 1;
                    let (schema, columns) = (history.schema(), &history.columns);
                    open.volume.read(*number, None, schema, columns, &self.needed, &mut rows)
                }
            }
            .map_err(|error| FolderError::volume(&open.path, &error))?;
        }
        let found = rows.positions.len() as u64;
        rows.sort(history.schema().record_size());
        let in_order = rows.positions.is_sorted_by(|a, b| a < b)
            && rows.positions.first().is_none_or(|at| *at >= stretch.start)
            && rows.positions.last().is_none_or(|at| *at < stretch.end);
        if !in_order || (whole && found != stretch.end - stretch.start) {
            let path = parts.first().map(|(entry, _)| entry.path(&history.folder.path, PARQUET)).unwrap_or_default();
            return Err(Damage::new(
                &path,
                format!("it does not have the records {} to {}", stretch.start, stretch.end),
            )
            .into());
        }
        sources.from_volumes += found;
        self.sources = sources;
        let done = rows.positions.partition_point(|at| *at < self.at);
        let (positions, size) = (&rows.positions[done..], history.schema().record_size());
        self.matching(&rows.records[done * size..], |place| positions[place as usize], receive)
    }

    /// Opens a volume, if it is not open, and looks up the query in its indexes.
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

    /// The pages of a volume that may have matching records, according to its indexes; `None` if these cannot say.
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

    /// Reads the records that are in no volume yet.
    fn journals(&mut self, catalogue: &Catalogue, receive: &mut Receive<'_>) -> Result<(), FolderError> {
        if self.until <= catalogue.end() {
            return Ok(());
        }
        let folder = &self.history.folder;
        let paths = folder.journals(catalogue.end().max(self.read))?;
        // An incomplete end was cut off since, if another journal, or a volume, is behind it.
        self.sources.torn = self.sources.torn.take().filter(|part| paths.is_empty() && part.path.exists());
        for (number, path) in paths.iter().enumerate() {
            if self.at >= self.until {
                break;
            }
            let mut rows = Vec::new();
            let file = look(folder, path, self.read, number + 1 == paths.len(), &mut |first, records| {
                self.frame(first, records, &mut rows, receive)
            })?;
            // Records that were passed on are not passed on again, whatever is wrong behind them.
            self.rows(&mut rows, receive)?;
            match file.state {
                State::Damaged(damage) => return Err(damage.into()),
                State::Torn(part) => self.sources.torn = Some(part),
                State::Open | State::Closed | State::Kept => {}
            }
            self.sources.lost += file.first.saturating_sub(self.at);
            self.sources.from_journals += file.records;
            self.sources.records += file.records;
            self.read = file.first + file.records;
            self.at = self.at.max(self.read);
            self.journals.push((self.read, file.records));
        }
        Ok(())
    }

    /// Takes consecutive records of a journal, from a position on. They wait until there are enough to
    /// query at once.
    fn frame(
        &mut self,
        first: u64,
        records: &[u8],
        rows: &mut Vec<u8>,
        receive: &mut Receive<'_>,
    ) -> Result<(), FolderError> {
        let size = self.history.schema().record_size();
        if rows.is_empty() && self.at < first {
            self.sources.lost += first - self.at;
            self.at = first;
        }
        // Some were passed on before the rest could not be read.
        let waiting = self.at + (rows.len() / size) as u64;
        let passed_on = (waiting - first) as usize * size;
        rows.extend_from_slice(&records[passed_on.min(records.len())..]);
        if rows.len() >= AT_ONCE * size { self.rows(rows, receive) } else { Ok(()) }
    }

    /// Passes on the records that come next.
    fn rows(&mut self, rows: &mut Vec<u8>, receive: &mut Receive<'_>) -> Result<(), FolderError> {
        let from = self.at;
        if !self.stopped {
            self.stopped = self.matching(rows, |place| from + place, receive)?.is_break();
        }
        self.at += (rows.len() / self.history.schema().record_size()) as u64;
        rows.clear();
        Ok(())
    }

    /// Passes on the matching ones of consecutive records.
    fn matching(
        &self,
        records: &[u8],
        position: impl Fn(u64) -> u64,
        receive: &mut Receive<'_>,
    ) -> Result<ControlFlow<()>, FolderError> {
        let schema = self.history.schema();
        let count = (records.len() / schema.record_size()) as u64;
        let log = Log::new(schema.clone(), Options { records: count, memory: Memory::Lazy })?;
        let _ = log.append(records);
        let snapshot = log.snapshot();
        let query = snapshot.query().matching(self.ask.expression).from(self.ask.from).to(self.ask.to);
        for (place, record) in query.matched() {
            if receive(position(place), record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Those of the sorted pages that are in a row group.
fn of_group(pages: &[u32], group: usize) -> &[u32] {
    let from = |group: usize| pages.partition_point(|page| index::place(*page).0 < group);
    &pages[from(group)..from(group + 1)]
}
