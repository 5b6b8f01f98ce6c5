//! Replaces the packets found by those that were in the same queue while they waited.
//!
//! A packet P was there while M waited if it came before M left, and left after M came: their stays overlap.
//! Overlapping stays of found packets are merged into one interval, so memory grows with the number of separate busy times of the queue, and
//! not with the number of packets found. M itself does not count as its own company, but it counts for another packet found.
//!
//! The input is read twice: first the packets found, for the intervals, then all packets.

use super::held::{Held, Question, Seen};
use crate::error::Error;
use queuescope_log::{AttributeId, Dnf, Kind, Reader, Schema};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

/// The times when the packets found were in queues.
#[derive(Debug)]
pub struct QueueTimes {
    reading: Reading,
    queues: BTreeMap<u128, BusyIntervals>,
    everything: Dnf,
}

impl QueueTimes {
    /// Nothing was found yet, for records of this schema.
    ///
    /// # Errors
    /// Fails if records do not say when packets were in which queue.
    pub fn new(schema: &Schema) -> Result<Self, Error> {
        Ok(Self { reading: Reading::of(schema)?, queues: BTreeMap::new(), everything: Dnf::all() })
    }

    /// The attributes that it reads.
    pub fn attributes(&self) -> &[AttributeId] {
        &self.reading.attributes
    }

    /// Finds the packets of `question`; returns what it read.
    ///
    /// # Errors
    /// Returns errors of the input.
    pub fn find(&mut self, held: &Held, question: Question<'_>) -> io::Result<Seen> {
        held.each_at(question, &mut |position, record| {
            self.found(position, record);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The question for packets that were in a queue together with those found; `needed` are the attributes to read.
    pub fn question<'a>(&'a self, needed: &'a [AttributeId]) -> Question<'a> {
        Question { expression: &self.everything, from: self.from(), to: u64::MAX, needed, company: Some(self) }
    }

    /// Adds a packet that was found.
    fn found(&mut self, position: u64, record: &[u8]) {
        let (queue, stay) = (self.reading.queue.key(record), self.reading.stay(record));
        self.queues.entry(queue).or_default().insert(stay, position);
    }

    /// The earliest time in nanoseconds of records that can be company: these left after the first packet found came.
    fn from(&self) -> u64 {
        let first = |stretches: &BusyIntervals| stretches.0.first_key_value().map(|((from, _), _)| *from);
        let earliest = self.queues.values().filter_map(first).min().unwrap_or(u64::MAX);
        if self.reading.by_departure { earliest } else { 0 }
    }

    /// Whether a packet was in a queue together with one that was found, other than itself.
    pub(super) fn has(&self, position: u64, record: &[u8]) -> bool {
        let Some(stretches) = self.queues.get(&self.reading.queue.key(record)) else { return false };
        self.reading.was_sent(record) && stretches.meet(self.reading.stay(record), position)
    }
}

/// Reads when a packet was in which queue.
#[derive(Debug)]
struct Reading {
    queue: Reader,
    enqueued: Reader,
    dequeued: Reader,
    /// `None` for schemas without drops.
    dropped: Option<Reader>,
    attributes: Vec<AttributeId>,
    /// Whether the time of records is the departure.
    by_departure: bool,
}

/// When a packet came, and when it left, which is not earlier.
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

    /// A dropped packet delayed no other: the link never sent it.
    fn was_sent(&self, record: &[u8]) -> bool {
        self.dropped.is_none_or(|dropped| dropped.key(record) == 0)
    }
}

/// Disjoint times in one queue, so they are also in order of their ends; for an interval that is the stay of a single
/// packet, the position of that packet.
#[derive(Debug, Default)]
struct BusyIntervals(BTreeMap<Stay, Option<u64>>);

impl BusyIntervals {
    /// The intervals that overlap a stay, the last one first.
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

    /// Whether a stay overlaps that of a packet at another position.
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

    /// A packet of a test: its queue, when it came and how long it waited, whether it was dropped, and whether it was found.
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

    /// Compares each packet with each that was found.
    fn each_with_each(passed: &[Passed], knows_drops: bool) -> Vec<bool> {
        let meets = |p: &Passed, m: &Passed| p.0 == m.0 && p.1 < m.1 + m.2 && p.1 + p.2 > m.1;
        let other = |own: usize, p: &Passed| {
            passed.iter().enumerate().any(|(at, m)| at != own && m.4 && meets(p, m)) && !(knows_drops && p.3)
        };
        passed.iter().enumerate().map(|(own, p)| other(own, p)).collect()
    }

    fn company(schema: &Schema, passed: &[Passed], record: impl Fn(&Passed) -> Vec<u8>) -> Vec<bool> {
        let mut company = QueueTimes::new(schema).unwrap();
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
        fn company_are_the_packets_in_the_queue_meanwhile(
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
    fn a_packet_is_not_its_own_company() {
        let alone =
            [(0, 5, 5, false, true), (0, 0, 5, false, false), (0, 10, 5, false, false), (1, 6, 1, false, false)];
        assert_eq!(company(queued::schema(), &alone, record), [false; 4]);
        // Two packets found are each other's company.
        let two = [(0, 5, 5, false, true), (0, 6, 5, false, true)];
        assert_eq!(company(queued::schema(), &two, record), [true; 2]);
        // A packet dropped on arrival overlaps those that were there, and is not company.
        let dropped =
            [(0, 5, 0, true, true), (0, 0, 9, false, false), (0, 4, 9, false, false), (0, 5, 9, false, false)];
        assert_eq!(company(queued::schema(), &dropped, record), [false, true, true, false]);
    }

    #[test]
    fn other_records_are_refused() {
        assert!(QueueTimes::new(packet::schema()).unwrap_err().to_string().contains("records of `packet`"));
    }
}
