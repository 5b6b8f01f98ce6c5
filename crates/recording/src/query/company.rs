//! In place of the packets that were found, those that were in the same queue while they waited.
//!
//! A packet P was there as M waited if it came before M left, and left after M came: its stay and M's have time in common.
//! Stays of M's that have time in common are one stretch, so that what is kept is how many times the queue was looked at, and
//! not how many packets were found. M itself is no company of its own, but of another that was found.
//!
//! Records are looked at twice, whatever they lie in: those that were found for the stretches, then all.

use super::held::{Held, Question, Seen};
use crate::error::Error;
use queuescope_log::{AttributeId, Dnf, Kind, Reader, Schema};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

/// The times when packets that were found were in queues.
#[derive(Debug)]
pub struct Company {
    reading: Reading,
    queues: BTreeMap<u128, Stretches>,
    everything: Dnf,
}

impl Company {
    /// Nothing was found yet, of records of such a schema.
    ///
    /// # Errors
    /// If they do not say when they were in which queue.
    pub fn new(schema: &Schema) -> Result<Self, Error> {
        Ok(Self { reading: Reading::of(schema)?, queues: BTreeMap::new(), everything: Dnf::all() })
    }

    /// The attributes that it looks at.
    pub fn attributes(&self) -> &[AttributeId] {
        &self.reading.attributes
    }

    /// Finds the packets that are meant: what there was to find them in.
    ///
    /// # Errors
    /// Those of the input.
    pub fn find(&mut self, held: &Held, question: Question<'_>) -> io::Result<Seen> {
        held.each_at(question, &mut |position, record| {
            self.found(position, record);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Which packets were in a queue with those that were found; these attributes are read of them.
    pub fn question<'a>(&'a self, needed: &'a [AttributeId]) -> Question<'a> {
        Question { expression: &self.everything, from: self.from(), to: u64::MAX, needed, company: Some(self) }
    }

    /// A packet was found.
    fn found(&mut self, position: u64, record: &[u8]) {
        let (queue, stay) = (self.reading.queue.key(record), self.reading.stay(record));
        self.queues.entry(queue).or_default().insert(stay, position);
    }

    /// From which time of records on there can be company, in nanoseconds: it left after the first of those that were found came.
    fn from(&self) -> u64 {
        let first = |stretches: &Stretches| stretches.0.first_key_value().map(|((from, _), _)| *from);
        let earliest = self.queues.values().filter_map(first).min().unwrap_or(u64::MAX);
        if self.reading.by_departure { earliest } else { 0 }
    }

    /// Whether a packet was in a queue with one that was found, another than itself.
    pub(super) fn has(&self, position: u64, record: &[u8]) -> bool {
        let Some(stretches) = self.queues.get(&self.reading.queue.key(record)) else { return false };
        self.reading.was_sent(record) && stretches.meet(self.reading.stay(record), position)
    }
}

/// Reads when a packet was where.
#[derive(Debug)]
struct Reading {
    queue: Reader,
    enqueued: Reader,
    dequeued: Reader,
    /// Not of schemas that know no drops.
    dropped: Option<Reader>,
    attributes: Vec<AttributeId>,
    /// Whether the time of records is when packets left.
    by_departure: bool,
}

/// When a packet came, and when it left: not before.
type Stay = (u64, u64);

impl Reading {
    fn of(schema: &Schema) -> Result<Self, Error> {
        let time = |name| schema.find(name).filter(|id| schema.attribute(*id).kind == Kind::Time);
        let queue = schema.find("queue");
        let (Some(queue), Some(enqueued), Some(dequeued)) = (queue, time("enqueued"), time("dequeued")) else {
            return Err(Error::NoQueue { schema: schema.name().to_owned() });
        };
        let dropped = schema.find("dropped");
        Ok(Self {
            queue: schema.reader(queue),
            enqueued: schema.reader(enqueued),
            dequeued: schema.reader(dequeued),
            dropped: dropped.map(|id| schema.reader(id)),
            attributes: [queue, enqueued, dequeued].into_iter().chain(dropped).collect(),
            by_departure: schema.time() == Some(dequeued),
        })
    }

    fn stay(&self, record: &[u8]) -> Stay {
        let (enqueued, dequeued) = (self.enqueued.key(record) as u64, self.dequeued.key(record) as u64);
        (enqueued, dequeued.max(enqueued))
    }

    /// A packet that was dropped delayed no other: the link never sent it.
    fn was_sent(&self, record: &[u8]) -> bool {
        self.dropped.is_none_or(|dropped| dropped.key(record) == 0)
    }
}

/// Times in one queue. No two have time in common, so that they are in order of their ends too; of a stretch that is the stay of one
/// packet, the position of that.
#[derive(Debug, Default)]
struct Stretches(BTreeMap<Stay, Option<u64>>);

impl Stretches {
    /// Those that have time in common with a stay, last first.
    fn meeting(&self, (from, to): Stay) -> impl Iterator<Item = (&Stay, &Option<u64>)> {
        self.0.range(..(to, 0)).rev().take_while(move |((_, end), _)| *end > from)
    }

    fn insert(&mut self, (mut from, mut to): Stay, position: u64) {
        let joined: Vec<_> = self.meeting((from, to)).map(|(stretch, _)| *stretch).collect();
        for stretch in &joined {
            (from, to) = (from.min(stretch.0), to.max(stretch.1));
            self.0.remove(stretch);
        }
        self.0.insert((from, to), joined.is_empty().then_some(position));
    }

    /// Whether a stay has time in common with that of a packet at another position.
    fn meet(&self, stay: Stay, position: u64) -> bool {
        self.meeting(stay).any(|(_, only)| *only != Some(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_log::{departure, packet, queued};
    use queuescope_wire::{
        Backlog, ByteCount, Class, Departure, Ecn, FlowId, FlowKey, Nanos, Packet, PacketId, QueueId,
    };

    /// A packet of a test: its queue, when it came and how long it waited, and whether it was dropped and found.
    type Passed = (u16, u64, u64, bool, bool);

    fn departure((queue, enqueued, waited, ..): &Passed) -> Departure {
        let packet =
            Packet { id: PacketId(0), flow: FlowId(0), size: ByteCount(100), class: Class(0), ecn: Ecn::NotEct };
        let none = Backlog::default();
        let (enqueued, dequeued) = (Nanos(*enqueued), Nanos(enqueued + waited));
        Departure { packet, queue: QueueId(*queue), enqueued, dequeued, backlog_in: none, backlog_out: none }
    }

    fn record(passed: &Passed) -> Vec<u8> {
        let mut record = [0; queued::SIZE];
        queued::fill(&mut record, &[0; packet::SIZE], &departure(passed), u8::from(passed.3));
        record.to_vec()
    }

    fn record_of_departure(passed: &Passed) -> Vec<u8> {
        let mut record = [0; departure::SIZE];
        departure::fill(&mut record, &departure(passed), &FlowKey::default());
        record.to_vec()
    }

    /// Each packet against each that was found.
    fn each_with_each(passed: &[Passed], knows_drops: bool) -> Vec<bool> {
        let meets = |p: &Passed, m: &Passed| p.0 == m.0 && p.1 < m.1 + m.2 && p.1 + p.2 > m.1;
        let other = |own: usize, p: &Passed| {
            passed.iter().enumerate().any(|(at, m)| at != own && m.4 && meets(p, m)) && !(knows_drops && p.3)
        };
        passed.iter().enumerate().map(|(own, p)| other(own, p)).collect()
    }

    fn company(schema: &Schema, passed: &[Passed], record: impl Fn(&Passed) -> Vec<u8>) -> Vec<bool> {
        let mut company = Company::new(schema).unwrap();
        let records: Vec<_> = passed.iter().map(record).collect();
        for (position, (passed, record)) in passed.iter().zip(&records).enumerate() {
            if passed.4 {
                company.found(position as u64, record);
            }
        }
        let apart = company
            .queues
            .values()
            .all(|stretches| stretches.0.keys().zip(stretches.0.keys().skip(1)).all(|(one, next)| one.1 <= next.0));
        assert!(apart, "{company:?}");
        let has = |(position, record): (usize, &Vec<u8>)| company.has(position as u64, record);
        let found: Vec<_> = records.iter().enumerate().map(has).collect();
        assert!(passed.iter().zip(&found).all(|(passed, found)| !found || passed.1 + passed.2 >= company.from()));
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn company_is_who_was_there_meanwhile(
            mut passed in prop::collection::vec((0..3u16, 0..30u64, 0..6u64, any::<bool>(), prop::bool::weighted(0.3)), 0..24),
            in_order in any::<bool>(),
        ) {
            if in_order {
                passed.sort_by_key(|passed| passed.1 + passed.2);
            }
            prop_assert_eq!(company(queued::schema(), &passed, record), each_with_each(&passed, true));
            prop_assert_eq!(company(departure::schema(), &passed, record_of_departure), each_with_each(&passed, false));
        }
    }

    #[test]
    fn a_packet_is_no_company_of_its_own() {
        let alone =
            [(0, 5, 5, false, true), (0, 0, 5, false, false), (0, 10, 5, false, false), (1, 6, 1, false, false)];
        assert_eq!(company(queued::schema(), &alone, record), [false; 4]);
        // Two that were found are each other's.
        let two = [(0, 5, 5, false, true), (0, 6, 5, false, true)];
        assert_eq!(company(queued::schema(), &two, record), [true; 2]);
        // One that was dropped as it came met those that were there, and is in no company.
        let dropped =
            [(0, 5, 0, true, true), (0, 0, 9, false, false), (0, 4, 9, false, false), (0, 5, 9, false, false)];
        assert_eq!(company(queued::schema(), &dropped, record), [false, true, true, false]);
    }

    #[test]
    fn other_records_are_refused() {
        assert!(Company::new(packet::schema()).unwrap_err().to_string().contains("records of `packet`"));
    }
}
