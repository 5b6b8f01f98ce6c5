//! The departures that a later query can still be about.

use queuescope_wire::{Backlog, ByteCount, FlowId, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// The departures that a later query can still be about, without anything about their flows, so that keeping every packet is cheap.
/// [`crate::ExactMeter`]s are filled from it when a query comes.
#[derive(Debug)]
pub struct Recent {
    history: History,
    ring: VecDeque<RecordedDeparture>,
    /// Bytes of all packets that ever left, and their number.
    total: u64,
    recorded: u64,
    forgotten: bool,
}

/// What is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// One FIFO queue: packets leave in the order of their arrival, so no later query is about departures before the last packet's
    /// arrival.
    Fifo,
    /// Any order: this number of departures.
    Departures(usize),
    /// Nearly a FIFO queue: no query is about departures more than some time before the last packet's arrival.
    NearlyFifo {
        /// How much earlier a packet may have come than one that left before it.
        disorder: Nanos,
        /// The longest sojourn time of any packet.
        longest: Nanos,
    },
}

/// A departure that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastDeparture {
    /// The flow, at the finest granularity.
    pub flow: FlowId,
    /// The size, bytes.
    pub size: u32,
    /// The arrival.
    pub enqueued: Nanos,
    /// The departure.
    pub dequeued: Nanos,
}

#[derive(Debug)]
struct RecordedDeparture {
    past: PastDeparture,
    /// Bytes of all packets that left before.
    before: u64,
}

impl Recent {
    /// Creates an empty history.
    pub fn new(history: History) -> Self {
        Self { history, ring: VecDeque::new(), total: 0, recorded: 0, forgotten: false }
    }

    /// Forgets departures that no later query can be about, as a packet leaves whose query starts at `from`. In a FIFO queue whose queries
    /// cover more than a packet's own sojourn time, `from` must not be after the start of any later query.
    #[inline]
    pub fn advance(&mut self, from: Nanos) {
        self.advance_with(from, |_| ());
    }

    /// The same, and calls `forget` with each departure that is forgotten.
    #[inline]
    pub fn advance_with(&mut self, from: Nanos, mut forget: impl FnMut(PastDeparture)) {
        let before = match self.history {
            History::Fifo => from,
            History::Departures(most) => {
                while self.ring.len() > most {
                    self.ring.pop_front().into_iter().for_each(|kept| forget(kept.past));
                    self.forgotten = true;
                }
                return;
            }
            History::NearlyFifo { disorder, longest } => {
                let now = self.ring.back().map_or(Nanos::ZERO, |kept| kept.past.dequeued);
                from.saturating_sub(disorder).max(now.saturating_sub(longest))
            }
        };
        while let Some(kept) = self.ring.front().filter(|kept| kept.past.dequeued < before) {
            forget(kept.past);
            self.ring.pop_front();
        }
    }

    /// Forgets the older half, if there is no room for more flows.
    pub fn forget_half(&mut self) {
        self.forgotten |= !self.ring.is_empty();
        self.ring.drain(..self.ring.len().div_ceil(2));
    }

    /// The number of remembered departures.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Records a departure.
    #[inline]
    pub fn record(&mut self, past: PastDeparture) {
        self.ring.push_back(RecordedDeparture { past, before: self.total });
        self.total += u64::from(past.size);
        self.recorded += 1;
    }

    /// The number of packets recorded so far, which is the number of the next one, from 0.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// The number of the oldest remembered departure.
    pub fn first(&self) -> u64 {
        self.recorded - self.ring.len() as u64
    }

    /// The departures since `from` and before the packet with this number, oldest first.
    pub fn since_until(&self, from: Nanos, number: u64) -> impl Iterator<Item = PastDeparture> {
        let end = self.place(number);
        self.ring.range(self.position(from).min(end)..end).map(|kept| kept.past)
    }

    /// The packets with these numbers, if they are remembered, oldest first.
    pub fn numbered(&self, numbers: Range<u64>) -> impl Iterator<Item = PastDeparture> {
        let end = self.place(numbers.end);
        self.ring.range(self.place(numbers.start).min(end)..end).map(|kept| kept.past)
    }

    /// The departures since `from`, oldest first.
    pub fn since(&self, from: Nanos) -> impl Iterator<Item = PastDeparture> {
        self.ring.range(self.position(from)..).map(|kept| kept.past)
    }

    /// The sum of the departures since `from`: in a FIFO queue, the backlog that a packet met that came at `from`.
    #[inline]
    pub fn backlog_since(&self, from: Nanos) -> Backlog {
        let position = self.position(from);
        let bytes = self.ring.get(position).map_or(0, |kept| self.total - kept.before);
        Backlog { packets: (self.ring.len() - position) as u64, bytes: ByteCount(bytes) }
    }

    /// Whether a query from `from` on needs departures that were forgotten.
    #[inline]
    pub fn is_too_short_for(&self, from: Nanos) -> bool {
        self.forgotten && self.ring.front().is_none_or(|kept| kept.past.dequeued >= from)
    }

    /// The oldest remembered departure.
    #[inline]
    pub fn oldest(&self) -> Option<PastDeparture> {
        self.ring.front().map(|kept| kept.past)
    }

    /// The index in the ring of the packet with this number, or where it would be.
    fn place(&self, number: u64) -> usize {
        (number.saturating_sub(self.first()) as usize).min(self.ring.len())
    }

    /// The index in the ring of the first departure since `from`.
    #[inline]
    fn position(&self, from: Nanos) -> usize {
        if self.ring.front().is_none_or(|kept| kept.past.dequeued >= from) {
            return 0;
        }
        self.ring.partition_point(|kept| kept.past.dequeued < from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(dequeued: u64) -> PastDeparture {
        PastDeparture { flow: FlowId(0), size: 10, enqueued: Nanos(0), dequeued: Nanos(dequeued) }
    }

    #[test]
    fn a_fifo_forgets_departures_before_the_last_arrival() {
        let mut recent = Recent::new(History::Fifo);
        (0..10).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(4));
        assert_eq!(recent.oldest(), Some(past(4)));
        assert_eq!(recent.backlog_since(Nanos(7)), Backlog { packets: 3, bytes: ByteCount(30) });
        assert_eq!(recent.since(Nanos(8)).count(), 2);
        assert!(!recent.is_too_short_for(Nanos(0)), "in a FIFO queue nothing is missing");
    }

    #[test]
    fn a_nearly_fifo_queue_keeps_slightly_more() {
        let mut recent = Recent::new(History::NearlyFifo { disorder: Nanos(2), longest: Nanos(5) });
        let times = |recent: &Recent| recent.since(Nanos(0)).map(|past| past.dequeued.0).collect::<Vec<_>>();
        (0..10).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(8));
        assert_eq!(times(&recent), [6, 7, 8, 9]);
        let numbered =
            |recent: &Recent, numbers| recent.numbered(numbers).map(|past| past.dequeued.0).collect::<Vec<_>>();
        assert_eq!((recent.first(), recent.recorded()), (6, 10));
        assert_eq!(numbered(&recent, 7..9), [7, 8]);
        assert_eq!(numbered(&recent, 3..20), [6, 7, 8, 9]);
        assert_eq!(recent.since_until(Nanos(7), 9).map(|past| past.dequeued.0).collect::<Vec<_>>(), [7, 8]);
        (10..13).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(8));
        assert_eq!(times(&recent), [7, 8, 9, 10, 11, 12], "no packet waits longer");
        assert!(!recent.is_too_short_for(Nanos(7)), "no query needs more");
    }

    #[test]
    fn a_query_before_the_remembered_departures_is_detected() {
        let mut recent = Recent::new(History::Departures(2));
        (0..4).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(0));
        assert!(recent.is_too_short_for(Nanos(1)));
        assert!(!recent.is_too_short_for(Nanos(3)));
        assert_eq!(recent.backlog_since(Nanos(0)).packets, 2);
    }
}
