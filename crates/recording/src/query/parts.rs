//! Groups of some records as parts, which can be joined with those of other records: other hosts have them.

use super::held::{Collect, Held, Question, Seen, in_passes, seen};
use super::show::whole;
use queuescope_archive::{ArchiveQuery, End, FolderError, KeySink, Recorder, Sources};
use queuescope_ingest::notes::noted;
use queuescope_log::{
    AttributeId, Dnf, FilterId, Folding, Function, Group, GroupKey, GroupPart, Grouping, KeyBatch, Log, PartState,
    Schema, Selected, Snapshot,
};
use queuescope_wire::ByteCount;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Records between two looks at whether to go on.
const BETWEEN_LOOKS: u64 = 4096;

/// The memory for all distinct counts of an answer: each takes up to 20 kB, so they are limited beside the number of groups. As bytes of an answer they are half of that.
const MOST_DISTINCT: ByteCount = ByteCount(64_000_000);

/// The records of a host.
#[derive(Debug, Clone, Copy)]
pub enum Records<'a> {
    /// A log in memory. Positions are its own.
    Log(&'a Log),
    /// A log that this process records to a folder: records that have left memory are read from the folder. Positions are the folder's
    /// ([`Recorder::position`]).
    Recorder(&'a Recorder),
    /// The records of such a log that a filter of it matched, as far as they are in memory. Positions are the folder's. A filter that was removed has none.
    Filtered(&'a Recorder, FilterId),
    /// An input that was loaded, or a folder that another process may record to. Positions are the folder's.
    Held(&'a Held),
}

/// Which groups are wanted, of which records.
#[derive(Debug, Clone, Copy)]
pub struct PartQuestion<'a> {
    /// Records must match this expression.
    pub expression: &'a Dnf,
    /// Records must have this time or a later one, in nanoseconds since the records' epoch,
    pub from: u64,
    /// and a time before this one; `u64::MAX` means no end.
    pub to: u64,
    /// Records must have a position before this one.
    pub before: Option<u64>,
    /// What records of a group have in common; without keys there is one group.
    pub keys: &'a [GroupKey],
    /// The functions over each group.
    pub functions: &'a [Function],
}

/// What an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct PartLimits {
    /// The most groups of the answer: those with the highest values of the first function.
    pub groups: usize,
    /// The memory for groups, roughly. With more groups, the records are read several times.
    pub memory: ByteCount,
}

/// The groups of a host's records.
#[derive(Debug, Default)]
pub struct Parts {
    /// The groups, sorted by keys. Behind the states of all functions is that of [`Function::Count`].
    pub groups: Vec<GroupPart>,
    /// The number of matching packets, including those of groups that were left out.
    pub packets: u64,
    /// Groups that were left out because there were too many.
    pub left_out: u64,
    /// What was read.
    pub seen: Seen,
}

/// Computes groups of the records that exist now. `go_on` is called now and then while records are read one by one; once it returns false, the
/// computation ends with [`io::ErrorKind::Interrupted`].
///
/// # Errors
/// Fails if it should not go on. What cannot be read is in the answer as damage.
///
/// # Panics
/// Panics if an attribute belongs to another schema, or is not comparable.
pub fn parts(
    records: Records<'_>,
    question: PartQuestion<'_>,
    limits: PartLimits,
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<Parts> {
    let functions: Vec<_> = question.functions.iter().cloned().chain([Function::Count]).collect();
    let mut needed: Vec<_> = question.keys.iter().map(GroupKey::attribute).collect();
    needed.extend(functions.iter().filter_map(Function::attribute));
    // Records that come from now on are in no pass.
    let end = match records {
        Records::Log(log) => Some(log.snapshot().len()),
        Records::Recorder(recorder) | Records::Filtered(recorder, _) => {
            Some(recorder.position(recorder.log().snapshot().len()))
        }
        Records::Held(_) => None,
    };
    let question = PartQuestion { before: end.into_iter().chain(question.before).min(), ..question };
    let reading = Reading { records, question, functions: &functions, needed: &needed, go_on };
    let mut parts = Parts::default();
    if question.keys.is_empty() {
        let (folding, seen) = reading.read(None, &|_| Folding::new(records.schema(), &functions))?;
        parts.seen = seen;
        parts.packets = folding.states().last().and_then(PartState::words).map_or(0, |count| {
            // The last function is the count.
            u64::try_from(count[0]).unwrap_or(u64::MAX)
        });
        if parts.packets > 0 {
            parts.groups.push((Vec::new(), folding.states().to_vec()));
        }
        return Ok(parts);
    }
    let end = match records {
        Records::Held(held) => held.end(),
        _ => None,
    };
    let new = |memory| Grouping::new(records.schema(), question.keys, &functions).with_memory(memory);
    let (mut highest, mut all) = (Vec::new(), 0);
    let seen = in_passes(limits.memory, &new, &mut |new| reading.read(end.as_ref(), new), &mut |mut grouped| {
        parts.packets += grouped.iter().filter_map(|(_, values)| values.last().copied()).map(whole).sum::<u64>();
        all += grouped.len() as u64;
        if grouped.len() > limits.groups {
            grouped.top(limits.groups, 0);
        }
        highest.extend(grouped.iter().zip(grouped.parts()));
        keep_highest(&mut highest, limits.groups, MOST_DISTINCT);
        Ok(())
    })?;
    parts.left_out = all - highest.len() as u64;
    parts.groups = highest.into_iter().map(|(_, part)| part).collect();
    parts.groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    parts.seen = seen;
    Ok(parts)
}

/// Keeps the groups with the highest first values, if there are too many, or if their distinct counts take more than some memory together.
fn keep_highest(groups: &mut Vec<(Group, GroupPart)>, most: usize, most_distinct: ByteCount) {
    let of_counts = |(_, (_, states)): &(Group, GroupPart)| states.iter().map(PartState::heap).sum::<usize>() as u64;
    if groups.len() > most || groups.iter().map(of_counts).sum::<u64>() > most_distinct.0 {
        groups.sort_by(|((a_keys, a), _), ((b_keys, b), _)| b[0].compare(a[0]).then_with(|| a_keys.cmp(b_keys)));
        groups.truncate(most);
        let mut bytes = 0;
        let too_much = groups.iter().position(|group| {
            bytes += of_counts(group);
            bytes > most_distinct.0
        });
        groups.truncate(too_much.unwrap_or(groups.len()));
    }
}

impl<'a> Records<'a> {
    /// The schema of the records.
    pub fn schema(&self) -> &'a Schema {
        match self {
            Self::Log(log) => log.schema(),
            Self::Recorder(recorder) | Self::Filtered(recorder, _) => recorder.log().schema(),
            Self::Held(held) => held.schema(),
        }
    }
}

/// Reads the records of a question.
struct Reading<'a> {
    records: Records<'a>,
    question: PartQuestion<'a>,
    functions: &'a [Function],
    needed: &'a [AttributeId],
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Reading<'_> {
    /// Collects all records in collections that `new` makes; its argument is their number.
    fn read<C: Collect>(&self, end: Option<&End>, new: &dyn Fn(usize) -> C) -> io::Result<(C, Seen)> {
        let PartQuestion { expression, from, to, before, .. } = self.question;
        let question = Question { expression, from, to, needed: self.needed, company: None };
        if let (Records::Held(held), None) = (self.records, before) {
            return held.collect(question, end, self.functions, new);
        }
        let before = before.unwrap_or(u64::MAX);
        if let Records::Recorder(recorder) = self.records
            && self.functions.iter().all(|function| function.is_of_any_order(recorder.log().schema()))
        {
            return self.batches(recorder, before, new);
        }
        let (mut collection, mut added, mut stopped) = (new(1), 0u64, false);
        let mut add = |position: u64, record: &[u8]| {
            added += 1;
            stopped = added.is_multiple_of(BETWEEN_LOOKS) && !(self.go_on)();
            if stopped || position >= before {
                return ControlFlow::Break(());
            }
            collection.record(record);
            ControlFlow::Continue(())
        };
        // The records of a log in memory, from whose positions those of the question differ by `ahead`.
        let mut in_memory = |snapshot: &Snapshot<'_>, filter, ahead: u64| {
            let query = match filter {
                None => Some(snapshot.query()),
                Some(filter) => snapshot.filter(filter),
            };
            for (position, record) in
                query.iter().flat_map(|query| query.clone().matching(expression).from(from).to(to).matched())
            {
                if add(ahead + position, record).is_break() {
                    break;
                }
            }
            let first = ahead + snapshot.first();
            let released = "earlier packets are no longer in memory";
            let skipped = noted("released", first.min(before), released).into_iter().collect();
            Seen { records: Some(before.saturating_sub(first)), skipped, ..Seen::default() }
        };
        let seen = match self.records {
            Records::Log(log) => in_memory(&log.snapshot(), None, 0),
            Records::Filtered(recorder, filter) => {
                in_memory(&recorder.log().snapshot(), Some(filter), recorder.position(0))
            }
            Records::Recorder(recorder) => {
                let ask = ArchiveQuery { expression, from, to, needed: self.needed };
                seen_before(before, recorder.each(ask, &mut add))
            }
            Records::Held(held) => held.each_at(question, &mut |position, record| Ok(add(position, record)))?,
        };
        if stopped {
            return Err(unwanted());
        }
        Ok((collection, seen))
    }
    /// Collects the records of a log and its folder before a position, batch by batch.
    fn batches<C: Collect>(&self, recorder: &Recorder, before: u64, new: &dyn Fn(usize) -> C) -> io::Result<(C, Seen)> {
        let PartQuestion { expression, from, to, .. } = self.question;
        let ask = ArchiveQuery { expression, from, to, needed: self.needed };
        let watched = || Watched { collection: new(1), go_on: self.go_on, stopped: false };
        // On one thread: the host has other work.
        let (watched, sources) = recorder.keys(ask, before, NonZeroUsize::MIN, watched);
        if watched.iter().any(|watched| watched.stopped) {
            return Err(unwanted());
        }
        let collection = watched.into_iter().next().map_or_else(|| new(1), |watched| watched.collection);
        Ok((collection, seen_before(before, sources)))
    }
}

/// A collection that wants no more once the answer is not wanted.
struct Watched<'a, C> {
    collection: C,
    go_on: &'a (dyn Fn() -> bool + Sync),
    stopped: bool,
}

impl<C: Collect> KeySink for Watched<'_, C> {
    fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>) {
        self.stopped = self.stopped || !(self.go_on)();
        if !self.stopped {
            self.collection.add(batch, selected);
        }
    }

    fn goes_on(&self) -> bool {
        !self.stopped
    }
}

/// What was read of the records before a position. The folder has some of the records in memory, too.
fn seen_before(before: u64, sources: Result<Sources, FolderError>) -> Seen {
    let gone = sources.as_ref().map_or(0, |sources| sources.removed + sources.lost);
    Seen { records: Some(before.saturating_sub(gone)), ..seen(sources) }
}

fn unwanted() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the answer is no longer wanted")
}
