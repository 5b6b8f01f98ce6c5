//! Keys of the records of a folder, batch by batch and on several threads, for questions in which the order of records does not matter.

use super::chooser::Chooser;
use super::open::{Open, Unit};
use super::query_run::QueryRun;
use super::{ArchiveQuery, End, History, Sources};
use crate::catalogue::{Catalogue, Entry};
use crate::error::FolderError;
use queuescope_log::{AttributeId, Folding, Grouping, KeyBatch, KeyGather, Selected, Snapshot};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// How often a query starts again on several threads because volumes were joined or removed meanwhile. After that, or if something is damaged, it
/// reads records in order: that can continue with other volumes, and finds the first record that cannot be read.
const TRIES: usize = 3;

/// Receives the keys of records.
pub trait KeySink: Send {
    /// Adds the selected records of a batch, which has the needed attributes and those of the expression.
    fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>);

    /// Whether it wants more. Once it does not, reading ends early, without an error.
    fn goes_on(&self) -> bool {
        true
    }
}

impl KeySink for Folding {
    fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>) {
        self.add_batch(batch, selected);
    }
}

impl KeySink for Grouping<'_> {
    fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>) {
        self.add_batch(batch, selected);
    }
}

impl History {
    /// Passes the keys of matching records before an end to sinks, one on each thread, in any order. Only the columns of the needed attributes are read, and none if nothing is needed.
    ///
    /// ```no_run
    /// use queuescope_archive::{ArchiveQuery, History};
    /// use queuescope_log::{Dnf, Folding, Function};
    /// use std::num::NonZeroUsize;
    ///
    /// let history = History::open("folder".as_ref())?;
    /// let length = history.schema().find("length").ok_or("unknown attribute")?;
    /// let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &[length] };
    /// let fold = || Folding::new(history.schema(), &[Function::Sum(length)]);
    /// let (foldings, sources) = history.keys(ask, &history.end()?, NonZeroUsize::MIN, fold);
    /// println!("{} records", sources?.records);
    /// println!("{:?}", foldings.into_iter().map(Folding::finish).collect::<Vec<_>>());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If something cannot be read, all is read again in order, on one thread. So the error is that of [`each`](Self::each), and the one sink has
    /// the records that `each` passes before it.
    pub fn keys<S: KeySink>(
        &self,
        ask: ArchiveQuery<'_>,
        end: &End,
        threads: NonZeroUsize,
        new: impl Fn() -> S,
    ) -> (Vec<S>, Result<Sources, FolderError>) {
        let End { position: until, note } = end.clone();
        let (sinks, mut run, read) = self.keys_until(ask, until, threads, &new);
        run.sources.missing = note.missing(run.at, run.sources.torn.as_ref());
        run.sources.note = note.damage;
        (sinks, read.map(|()| run.sources))
    }

    /// Like [`keys`](Self::keys), for records at positions before `before`. Records from the first one of a snapshot on come from the snapshot. A record's
    /// position in the folder is `from` higher than its position in the snapshot.
    pub(crate) fn keys_before<S: KeySink>(
        &self,
        ask: ArchiveQuery<'_>,
        (snapshot, from): (&Snapshot<'_>, u64),
        before: u64,
        threads: NonZeroUsize,
        new: impl Fn() -> S,
    ) -> (Vec<S>, Result<Sources, FolderError>) {
        let until = (from + snapshot.first()).min(before);
        let (mut sinks, mut sources) = if until == 0 {
            // All of them are in memory: no file is read.
            (vec![new()], self.no_sources(ask))
        } else {
            let (sinks, run, read) = self.keys_until(ask, until, threads, &new);
            if let Err(error) = read {
                return (sinks, Err(error));
            }
            let mut sources = run.sources;
            sources.lost += until.saturating_sub(run.at);
            (sinks, sources)
        };
        sources.from_memory = snapshot.len() - snapshot.first();
        let mut passing = Passing::new(self, &ask, &mut sinks);
        let query = snapshot.query().matching(ask.expression).from(ask.from).to(ask.to);
        for (_, record) in query.matched().take_while(|(position, _)| from + position < before) {
            if passing.push(record).is_break() {
                break;
            }
        }
        passing.finish();
        (sinks, Ok(sources))
    }

    /// Passes on the keys of records before a position, which are in files.
    fn keys_until<'a, S: KeySink>(
        &'a self,
        ask: ArchiveQuery<'a>,
        until: u64,
        threads: NonZeroUsize,
        new: &impl Fn() -> S,
    ) -> (Vec<S>, QueryRun<'a>, Result<(), FolderError>) {
        let (mut sinks, mut run) = self
            .on_threads(ask, until, threads, new)
            .unwrap_or_else(|| (vec![new()], QueryRun::new(self, ask).until(until)));
        // The rest comes in order: journals, a volume that got records since the query started, and everything if volumes cannot be read.
        let mut passing = Passing::new(self, &ask, &mut sinks);
        let read = self.go_through(&mut run, &mut |position, record| {
            if position < until { passing.push(record) } else { ControlFlow::Break(()) }
        });
        passing.finish();
        (sinks, run, read)
    }

    /// Passes on the keys of volumes, on several threads, and returns a run that continues behind them; `None` if volumes cannot be read this way.
    fn on_threads<'a, S: KeySink>(
        &'a self,
        ask: ArchiveQuery<'a>,
        until: u64,
        threads: NonZeroUsize,
        new: &impl Fn() -> S,
    ) -> Option<(Vec<S>, QueryRun<'a>)> {
        let mut catalogue = Catalogue::read(&self.folder.path).ok()?;
        for _ in 0..TRIES {
            let worker = |_| Some((Worker::new(self, ask)?, new()));
            let mut workers = (0..threads.get()).map(worker).collect::<Option<Vec<_>>>()?;
            let mut run = QueryRun::new(self, ask).until(until);
            if self.whole_units(&catalogue, &mut run, &mut workers).is_ok() {
                return Some((workers.into_iter().map(|(_, sink)| sink).collect(), run));
            }
            let now = Catalogue::read(&self.folder.path).ok()?;
            if now == catalogue {
                return None;
            }
            catalogue = now;
        }
        None
    }

    /// Passes on the keys of the units that have no record behind those wanted, and moves `run` behind them.
    fn whole_units<S: KeySink>(
        &self,
        catalogue: &Catalogue,
        run: &mut QueryRun<'_>,
        workers: &mut [(Worker<'_>, S)],
    ) -> Result<(), FolderError> {
        let mut at = catalogue.removed.before;
        let mut units = Vec::new();
        for unit in Unit::all(catalogue) {
            if unit.end > run.until {
                break;
            }
            if unit.was_passed_on(at, &self.folder)? {
                return Err(unit.incomplete(&self.folder));
            }
            at = unit.end;
            run.sources.lost += unit.lost;
            units.push(unit);
        }
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |(worker, sink): &mut (Worker<'_>, S)| -> Result<(), FolderError> {
            while !failed.load(Ordering::Relaxed) && sink.goes_on() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = units.get(number) else { break };
                if let Err(error) = worker.unit(unit, sink) {
                    failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        };
        let useful = units.len().clamp(1, workers.len());
        std::thread::scope(|scope| {
            let work = &work;
            let (own, others) = workers[..useful].split_at_mut(1);
            let others: Vec<_> = others.iter_mut().map(|worker| scope.spawn(move || work(worker))).collect();
            let own = own.iter_mut().try_for_each(work);
            let join = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.into_iter().map(join).fold(own, Result::and)
        })?;
        workers.iter().for_each(|(worker, _)| run.sources.add_read(&worker.sources));
        let records = units.iter().map(|unit| unit.end - unit.first).sum();
        run.continue_behind(at, records, catalogue.removed.records);
        Ok(())
    }
}

/// Passes records that come one by one to the first sink, in batches.
struct Passing<'s, S> {
    gather: KeyGather,
    sink: &'s mut S,
}

impl<'s, S: KeySink> Passing<'s, S> {
    fn new(history: &History, ask: &ArchiveQuery<'_>, sinks: &'s mut [S]) -> Self {
        let gather = KeyGather::new(history.schema(), &ask.keys(ask.needed, history.schema()));
        Self { gather, sink: &mut sinks[0] }
    }

    /// Adds a record. Returns `Break` once the sink wants no more.
    #[inline]
    fn push(&mut self, record: &[u8]) -> ControlFlow<()> {
        self.gather.push(record);
        if self.gather.is_full() {
            self.pass_on();
            if !self.sink.goes_on() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn pass_on(&mut self) {
        let batch = self.gather.take();
        self.sink.add(&batch, Selected::All(batch.rows()));
    }

    /// Passes on what is left.
    fn finish(mut self) {
        self.pass_on();
    }
}

/// Reads row groups on one thread.
struct Worker<'a> {
    history: &'a History,
    ask: ArchiveQuery<'a>,
    chooser: Chooser,
    /// The attributes of the columns that are read, sorted.
    stored: Vec<AttributeId>,
    open: Option<Open>,
    sources: Sources,
}

impl<'a> Worker<'a> {
    /// `None` if an attribute is not in one column.
    fn new(history: &'a History, ask: ArchiveQuery<'a>) -> Option<Self> {
        let chooser = Chooser::new(&ask, ask.needed, history.schema())?;
        Some(Self { history, ask, stored: chooser.stored(), chooser, open: None, sources: Sources::default() })
    }

    fn unit(&mut self, unit: &Unit<'_>, sink: &mut impl KeySink) -> Result<(), FolderError> {
        let records: u64 = unit.parts.iter().map(|(entry, number)| entry.groups[*number].records).sum();
        if records != unit.end - unit.first {
            return Err(unit.incomplete(&self.history.folder));
        }
        unit.parts.iter().try_for_each(|(entry, number)| self.group(entry, *number, unit, sink))
    }

    fn group(
        &mut self,
        entry: &Entry,
        number: usize,
        unit: &Unit<'_>,
        sink: &mut impl KeySink,
    ) -> Result<(), FolderError> {
        let Self { history, ask, chooser, stored, open, sources } = self;
        let (folder, group) = (&history.folder, entry.groups[number]);
        if group.times.is_some_and(|times| ask.misses(times)) {
            sources.other_times += 1;
            return Ok(());
        }
        if stored.is_empty() {
            if !ask.expression.is_false() {
                entry.check(&folder.path)?;
                let batch = KeyBatch::new(group.records as usize, Arc::clone(chooser.attributes()), Vec::new());
                sink.add(&batch, Selected::All(batch.rows()));
                sources.counted += group.records;
            }
            return Ok(());
        }
        let open = Open::volume(open, entry, folder, &history.columns, ask)?;
        let pages = open.pages(number, folder, &history.columns, ask, sources);
        if pages.as_ref().is_some_and(|pages| pages.is_empty()) {
            return Ok(());
        }
        let damaged = |error| FolderError::volume(&open.path, &error);
        let mut batches =
            open.volume.batches(number, pages.as_deref(), &history.columns, stored, false).map_err(damaged)?;
        let mut found = 0;
        while let Some(batch) = batches.next().map_err(damaged)? {
            found += batch.num_rows() as u64;
            let keys = chooser.keys(&batch, stored).map_err(damaged)?;
            let selected = chooser.select(&keys);
            if !selected.is_empty() {
                sink.add(&keys, selected);
            }
            if !sink.goes_on() {
                return Ok(());
            }
        }
        sources.from_volumes += found;
        if pages.is_none() && found != group.records {
            return Err(unit.incomplete(folder));
        }
        Ok(())
    }
}
