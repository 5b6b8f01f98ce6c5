//! A query that runs over a folder, stretch by stretch.

use super::chooser::Chooser;
use super::open::{Open, Unit};
use super::{ArchiveQuery, History, Receive, Sources};
use crate::catalogue::Catalogue;
use crate::error::FolderError;
use crate::reader::{State, look};
use crate::volume::read::Rows;
use queuescope_log::{AttributeId, Filter, NoAggregates, Reader, Selected};
use std::ops::ControlFlow;

/// Records of a journal that are queried at once.
const AT_ONCE: usize = 1 << 17;

/// Volumes that were passed on before others are read.
#[derive(Debug, Clone, Copy)]
struct Passed {
    /// The position behind them.
    end: u64,
    records: u64,
    /// The number of records that had been removed.
    removed: u64,
}

/// A query that runs.
pub(super) struct QueryRun<'a> {
    history: &'a History,
    ask: ArchiveQuery<'a>,
    /// Attributes whose columns have to be read.
    columns: Vec<AttributeId>,
    /// Finds the records of a batch that match, so that others do not become records.
    chooser: Option<Chooser>,
    /// The same, record by record.
    filter: Filter,
    time: Option<Reader>,
    pub sources: Sources,
    /// All records before this position were passed on.
    pub at: u64,
    /// All records before this position were read: volumes, and journals to their end.
    read: u64,
    /// Records from this position on are not wanted.
    pub until: u64,
    /// The receiver wants no more records: the rest is only counted.
    stopped: bool,
    /// The journals that were read: where each ends, and how many records it had.
    journals: Vec<(u64, u64)>,
    /// The volume that was opened last.
    open: Option<Open>,
    passed: Option<Passed>,
}

impl<'a> QueryRun<'a> {
    pub fn new(history: &'a History, ask: ArchiveQuery<'a>) -> Self {
        let schema = history.schema();
        let needed = ask.keys(ask.needed, schema);
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
        let columns = stored.filter(|stored| needed.iter().any(|id| overlap(id, *stored))).collect();
        let is_limited = ask.has_times() || !ask.expression.is_true();
        Self {
            history,
            ask,
            columns,
            chooser: is_limited.then(|| Chooser::new(&ask, &[], schema)).flatten(),
            filter: Filter::new(ask.expression, schema),
            time: ask.has_times().then(|| schema.time()).flatten().map(|time| schema.reader(time)),
            sources: history.no_sources(ask),
            at: 0,
            read: 0,
            until: u64::MAX,
            stopped: false,
            journals: Vec::new(),
            open: None,
            passed: None,
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
        self.sources.removed = self.passed.map_or(catalogue.removed.records, |passed| passed.removed);
        // Records read from journals may be in volumes now.
        let still = self.journals.iter().filter(|(end, _)| *end > catalogue.end()).map(|(_, records)| records);
        self.sources.records = self.records_of(catalogue) + still.sum::<u64>();
        self.at = self.at.max(catalogue.removed.before);
        self.read = self.read.max(catalogue.removed.before);
        for unit in Unit::all(catalogue) {
            if unit.end <= self.at || unit.first >= self.until {
                self.read = self.read.max(unit.end);
                continue;
            }
            let was_passed_on = unit.was_passed_on(self.at, &self.history.folder)?;
            if !self.stopped {
                self.stopped = self.unit(&unit, receive)?.is_break();
            }
            self.sources.lost += if was_passed_on { 0 } else { unit.lost };
            self.begin_at(unit.end);
        }
        self.journals(catalogue, receive)
    }

    /// Continues with records from a position on: those before it were passed on.
    fn begin_at(&mut self, at: u64) {
        (self.at, self.read) = (at, at);
    }

    /// Continues behind volumes with some records, which were passed on when others had been removed.
    pub fn continue_behind(&mut self, at: u64, records: u64, removed: u64) {
        self.passed = Some(Passed { end: at, records, removed });
        self.begin_at(at);
    }

    /// The number of records in volumes: in those that were passed on, which may be removed by now, and in others.
    fn records_of(&self, catalogue: &Catalogue) -> u64 {
        let Some(Passed { end, records, .. }) = self.passed else { return catalogue.records() };
        let groups = catalogue.volumes.iter().flat_map(|entry| &entry.groups);
        // A volume that was joined meanwhile may have some of those that were passed on.
        let behind = groups.map(|group| group.records.min(group.end.saturating_sub(end.max(group.first))));
        records + behind.sum::<u64>()
    }

    /// Reads the records of a unit.
    fn unit(&mut self, unit: &Unit<'_>, receive: &mut Receive<'_>) -> Result<ControlFlow<()>, FolderError> {
        let (history, schema) = (self.history, self.history.schema());
        let mut rows = Rows::default();
        let (mut whole, mut sources) = (true, self.sources.clone());
        let Self { ask, columns: stored, chooser, open, .. } = self;
        for (entry, number) in &unit.parts {
            if entry.groups[*number].times.is_some_and(|times| ask.misses(times)) {
                sources.other_times += 1;
                whole = false;
                continue;
            }
            let open = Open::volume(open, entry, &history.folder, &history.columns, ask)?;
            let pages = open.pages(*number, &history.folder, &history.columns, ask, &mut sources);
            whole &= pages.is_none();
            if pages.as_ref().is_some_and(|pages| pages.is_empty()) {
                continue;
            }
            let damaged = |error| FolderError::volume(&open.path, &error);
            let mut batches =
                open.volume.batches(*number, pages.as_deref(), &history.columns, stored, true).map_err(damaged)?;
            while let Some(batch) = batches.next().map_err(damaged)? {
                let keys = chooser.as_mut().map(|chooser| chooser.keys(&batch, stored)).transpose().map_err(damaged)?;
                let selected = match (chooser.as_mut(), &keys) {
                    (Some(chooser), Some(keys)) => chooser.select(keys),
                    _ => Selected::All(batch.num_rows()),
                };
                rows.add(&batch, selected, schema, &history.columns, stored).map_err(damaged)?;
            }
        }
        rows.sort(schema.record_size());
        let in_order = rows.positions.is_sorted_by(|a, b| a < b)
            && rows.positions.first().is_none_or(|at| *at >= unit.first)
            && rows.positions.last().is_none_or(|at| *at < unit.end);
        if !in_order || (whole && rows.read != unit.end - unit.first) {
            return Err(unit.incomplete(&history.folder));
        }
        sources.from_volumes += rows.read;
        self.sources = sources;
        let done = rows.positions.partition_point(|at| *at < self.at);
        let (positions, size) = (&rows.positions[done..], schema.record_size());
        Ok(self.matching(&rows.records[done * size..], |place| positions[place], receive))
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
            self.stopped = self.matching(rows, |place| from + place as u64, receive).is_break();
        }
        self.at += (rows.len() / self.history.schema().record_size()) as u64;
        rows.clear();
        Ok(())
    }

    /// Passes on the matching ones of some records.
    fn matching(&self, records: &[u8], position: impl Fn(usize) -> u64, receive: &mut Receive<'_>) -> ControlFlow<()> {
        for (place, record) in records.chunks_exact(self.history.schema().record_size()).enumerate() {
            let at = self.time.map_or(self.ask.from, |time| time.key(record) as u64);
            let is_in_time = at >= self.ask.from && (at < self.ask.to || self.ask.to == u64::MAX);
            if is_in_time && self.filter.matches(record, &NoAggregates) {
                receive(position(place), record)?;
            }
        }
        ControlFlow::Continue(())
    }
}
