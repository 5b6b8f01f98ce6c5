//! Records in memory or in a folder, and questions about them.

use super::queue_times::QueueTimes;
use queuescope_archive::{ArchiveQuery, End, FolderError, History, KeySink, LeftOut, Sources};
use queuescope_ingest::notes::noted;
use queuescope_log::{
    AttributeId, Dnf, Explained, Folding, Function, GroupKey, Grouped, Grouping, Log, Schema, date_text,
};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::{ByteCount, Nanos};
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Records in memory or in a folder.
#[derive(Debug)]
pub enum Held {
    /// A capture or a table, in memory.
    Memory(Box<Log>),
    /// A recorded folder.
    Folder(Box<History>),
}

/// Which records are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Records must match this expression.
    pub expression: &'a Dnf,
    /// Records must have this time or a later one, in nanoseconds since the records' epoch,
    pub from: u64,
    /// and a time before this one.
    pub to: u64,
    /// The attributes that the caller reads.
    pub needed: &'a [AttributeId],
    /// If given, the records that were in a queue together with those of `QueueTimes`, in place of the matching ones.
    pub company: Option<&'a QueueTimes>,
}

/// Receives records with their positions.
type Each<'t> = dyn FnMut(u64, &[u8]) -> io::Result<ControlFlow<()>> + 't;

/// What was read for an answer.
#[derive(Debug, Default)]
pub struct Seen {
    /// Total number of records; `None` if it could not be read.
    pub records: Option<u64>,
    /// Notes.
    pub skipped: Vec<Skipped>,
    /// What could not be read; the answer covers the rest.
    pub damage: Option<String>,
    /// The steps by which records were found.
    pub steps: Vec<String>,
    /// Records that were removed before, because they were old or too many.
    pub(super) removed: u64,
}

impl Held {
    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Memory(log) => log.schema(),
            Self::Folder(history) => history.schema(),
        }
    }

    /// Calls `each` with the wanted records, in order, until it returns `Break`.
    ///
    /// # Errors
    /// Returns errors of `each`.
    pub fn each(
        &self,
        question: Question<'_>,
        each: &mut dyn FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
    ) -> io::Result<Seen> {
        match question.company {
            None => self.each_at(question, &mut |_, record| each(record)),
            Some(company) => self.each_at(question, &mut |position, record| {
                if company.has(position, record) { each(record) } else { Ok(ControlFlow::Continue(())) }
            }),
        }
    }

    /// The records that match the expression, with their positions.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn each_at(&self, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
        match self {
            Self::Memory(log) => in_memory(log, question, each),
            Self::Folder(history) => in_folder(history, question, each),
        }
    }
}

/// Adds records to a result, in any order, and joins the results of several threads.
pub(super) trait Collect: KeySink {
    /// Adds a record.
    fn record(&mut self, record: &[u8]);
    /// Adds the records of another result.
    fn merge(&mut self, other: Self);
}

impl Collect for Folding {
    fn record(&mut self, record: &[u8]) {
        self.add(record);
    }

    fn merge(&mut self, other: Self) {
        self.join(&other);
    }
}

impl Collect for Grouping<'_> {
    fn record(&mut self, record: &[u8]) {
        self.add(record);
    }

    fn merge(&mut self, other: Self) {
        self.join(other);
    }
}

impl Held {
    /// The end of the records of a folder; `None` for records in memory, and if it cannot be read, which the query will report.
    pub fn end(&self) -> Option<End> {
        match self {
            Self::Memory(_) => None,
            Self::Folder(history) => history.end().ok(),
        }
    }

    /// Collects the wanted records before an end in `new`, whose argument is the number of collections, for functions that the collection
    /// computes. The records of a folder come from several threads, unless the result depends on their order.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub(super) fn collect<C: Collect>(
        &self,
        question: Question<'_>,
        end: Option<&End>,
        functions: &[Function],
        new: impl Fn(usize) -> C,
    ) -> io::Result<(C, Seen)> {
        let in_any_order = || functions.iter().all(|function| function.is_of_any_order(self.schema()));
        if let (Self::Folder(history), Some(end), None) = (self, end, question.company)
            && in_any_order()
        {
            let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
            let threads = threads.min(MOST_THREADS);
            let Question { expression, from, to, needed, company: _ } = question;
            let ask = ArchiveQuery { expression, from, to, needed };
            let (collected, sources) = history.keys(ask, end, threads, || new(threads.get()));
            let joined = collected.into_iter().reduce(|mut one, other| {
                one.merge(other);
                one
            });
            return Ok((joined.unwrap_or_else(|| new(1)), seen(sources)));
        }
        let mut collection = new(1);
        let seen = self.each_at(question, &mut |position, record| {
            if end.is_some_and(|end| position >= end.position()) {
                return Ok(ControlFlow::Break(()));
            }
            if question.company.is_none_or(|company| company.has(position, record)) {
                collection.record(record);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((collection, seen))
    }

    /// Computes functions for each group of the wanted records, and passes the groups to `pass`, in the order of their keys. If they do not fit
    /// in `memory`, several passes over the records find some of them each. If records are removed between two passes, the second is the last one,
    /// and that is damage.
    ///
    /// # Errors
    /// Returns errors of `pass`.
    pub(super) fn groups(
        &self,
        question: Question<'_>,
        by: &[GroupKey],
        functions: &[Function],
        memory: ByteCount,
        pass: &mut dyn FnMut(Grouped) -> io::Result<()>,
    ) -> io::Result<Seen> {
        let end = self.end();
        let new = |memory| Grouping::new(self.schema(), by, functions).with_memory(memory);
        in_passes(memory, &new, &mut |new| self.collect(question, end.as_ref(), functions, new), pass)
    }
}

/// Adds all records to groupings, which it gets from its argument.
type ReadAll<'f, 'a> = dyn FnMut(&dyn Fn(usize) -> Grouping<'a>) -> io::Result<(Grouping<'a>, Seen)> + 'f;

/// Collects groups of records in as many passes as `memory` needs, and passes the groups of each to `pass`. `new` makes a grouping with some bytes
/// of memory. `read` adds all records to groupings, which it gets from its argument for a number of groupings at the same time, and joins them.
///
/// # Errors
/// Returns errors of `read` and `pass`.
pub(super) fn in_passes<'a>(
    memory: ByteCount,
    new: &dyn Fn(usize) -> Grouping<'a>,
    read: &mut ReadAll<'_, 'a>,
    pass: &mut dyn FnMut(Grouped) -> io::Result<()>,
) -> io::Result<Seen> {
    let memory = usize::try_from(memory.0).unwrap_or(usize::MAX);
    let (mut after, mut removed, mut damage): (Option<Vec<u128>>, _, Option<String>) = (None, None, None);
    loop {
        let (grouping, mut seen) = read(&|collections| {
            let grouping = new(memory / collections);
            match &after {
                Some(after) => grouping.after(after.clone()),
                None => grouping,
            }
        })?;
        let grouped = grouping.finish();
        let behind = grouped.behind().map(<[u128]>::to_vec);
        pass(grouped)?;
        damage = damage.or(seen.damage.take());
        let gone = seen.removed.saturating_sub(*removed.get_or_insert(seen.removed));
        if gone > 0 {
            let why = "were removed between two passes over the folder, so groups are missing; give it more --memory";
            damage = damage.or_else(|| Some(format!("{} packets {why}", count(gone))));
        }
        after = behind;
        if after.is_none() || gone > 0 {
            return Ok(Seen { damage, ..seen });
        }
    }
}

/// The most threads that read a folder: each has the columns of a row group in memory.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

#[cfg(test)]
mod tests;

fn in_memory(log: &Log, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
    let snapshot = log.snapshot();
    let query = snapshot.query().matching(question.expression).from(question.from).to(question.to);
    for (position, record) in query.matched() {
        if each(position, record)?.is_break() {
            break;
        }
    }
    let Explained { steps, records } = query.explain();
    Ok(Seen { records: Some(records), steps: steps.iter().map(ToString::to_string).collect(), ..Seen::default() })
}

fn in_folder(history: &History, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
    let Question { expression, from, to, needed, .. } = question;
    let mut failed = None;
    let sources = history.each(ArchiveQuery { expression, from, to, needed }, &mut |position, record| {
        each(position, record).unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(seen(sources)),
    }
}

const MISSING: &str = "packets at the end that were written and are gone: a journal was emptied, cut short, damaged or removed, or a loss of \
                       power took what was not synced";

const LOST: &str =
    "packets are not there: the disk could not keep up when they came, or they were missing when recording continued";

pub(super) fn seen(sources: Result<Sources, FolderError>) -> Seen {
    let sources = match sources {
        Ok(sources) => sources,
        Err(error) => return Seen { damage: Some(error.to_string()), ..Seen::default() },
    };
    let (torn, behind) = sources.torn.as_ref().map_or((0, 0), |part| (part.bytes, part.records));
    let unfinished = "incomplete bytes at the end: a record is being written, or its writer was stopped; left out";
    let notes = [
        noted("lost", sources.lost, LOST),
        noted("removed", sources.removed, "earlier packets were removed, because they were old or too many"),
        noted("missing", sources.missing, MISSING),
        noted("torn", torn, unfinished),
        noted("torn_packets", behind, "packets among these bytes are whole, but behind incomplete ones; left out, too"),
    ];
    let missing = (sources.missing > 0).then(|| format!("{} {MISSING}", count(sources.missing)));
    Seen {
        records: Some(sources.records),
        skipped: notes.into_iter().flatten().chain(sources.left_out.iter().map(left_out_note)).collect(),
        damage: missing.or_else(|| sources.note.as_ref().map(ToString::to_string)),
        steps: steps(&sources),
        removed: sources.removed,
    }
}

/// What the recording left out in the time of the question.
fn left_out_note(left_out: &LeftOut) -> Skipped {
    let (from, to) = (date_text(Nanos(left_out.from)), date_text(Nanos(left_out.to)));
    let meaning = format!("{} (from {from} to {to})", left_out.meaning);
    Skipped { reason: left_out.reason.clone(), count: left_out.count, meaning }
}

/// What was read, and from where.
fn steps(sources: &Sources) -> Vec<String> {
    let of = |number: u64, one: &str, many: &str| format!("{} {}", count(number), if number == 1 { one } else { many });
    let mut steps = Vec::new();
    let groups = |number| of(number, "part of a volume", "parts of volumes");
    if sources.other_times > 0 {
        steps.push(format!("{} skipped: they are of other times", groups(sources.other_times)));
    }
    if sources.by_index > 0 {
        let pages = of(sources.pages, "page", "pages");
        steps.push(format!("{} through indexes: {pages} read", groups(sources.by_index)));
    }
    if sources.by_extremes > 0 {
        let pages = of(sources.extreme_pages, "page", "pages");
        steps.push(format!("{} by the extremes of pages: {pages} read", groups(sources.by_extremes)));
    }
    if sources.whole > 0 {
        steps.push(format!("{} read whole", groups(sources.whole)));
    }
    if sources.counted > 0 {
        steps.push(format!("{} records counted by the catalogue", count(sources.counted)));
    }
    if sources.from_volumes > 0 {
        steps.push(format!("{} records read from volumes", count(sources.from_volumes)));
    }
    if sources.from_journals > 0 {
        steps.push(format!("{} records read from journals", count(sources.from_journals)));
    }
    steps
}
