//! The departures that a question can still be about.

use queuescope_wire::{Backlog, ByteCount, FlowId, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// The departures that a question can still be about, with nothing known of their flows: cheap enough to keep for every
/// packet. [`crate::ExactMeter`]s are made from it when a question comes.
#[derive(Debug)]
pub struct Recent {
    history: History,
    ring: VecDeque<Kept>,
    /// Bytes of everything that ever left, and its packets.
    total: u64,
    recorded: u64,
    forgotten: bool,
}

/// What is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// One FIFO queue: packets leave in the order in which they came, so what left before the last packet came is
    /// never asked about again.
    Fifo,
    /// Any order: so many departures.
    Departures(usize),
    /// Nearly a FIFO: what left before the last packet came, and a while before that, is never asked about again.
    NearlyFifo {
        /// How much earlier a packet may have come than one that left before it.
        disorder: Nanos,
        /// The longest that any packet waits.
        longest: Nanos,
    },
}

/// A departure that is still remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// The flow, at the finest granularity.
    pub flow: FlowId,
    /// Bytes.
    pub size: u32,
    /// When the packet came.
    pub enqueued: Nanos,
    /// When it left.
    pub dequeued: Nanos,
}

#[derive(Debug)]
struct Kept {
    past: Past,
    /// Bytes of everything that left before.
    before: u64,
}

impl Recent {
    /// Nothing has left yet.
    pub fn new(history: History) -> Self {
        Self { history, ring: VecDeque::new(), total: 0, recorded: 0, forgotten: false }
    }

    /// Forgets what no later question can be about, now that a packet leaves whose question starts at `from`. In a FIFO
    /// whose questions are about more than a packet's own wait, that must not be after any later question's start.
    #[inline]
    pub fn advance(&mut self, from: Nanos) {
        match self.history {
            History::Fifo => {
                while self.ring.front().is_some_and(|kept| kept.past.dequeued < from) {
                    self.ring.pop_front();
                }
            }
            History::Departures(most) => {
                while self.ring.len() > most {
                    self.ring.pop_front();
                    self.forgotten = true;
                }
            }
            History::NearlyFifo { disorder, longest } => {
                let now = self.ring.back().map_or(Nanos::ZERO, |kept| kept.past.dequeued);
                let before = from.saturating_sub(disorder).max(now.saturating_sub(longest));
                while self.ring.front().is_some_and(|kept| kept.past.dequeued < before) {
                    self.ring.pop_front();
                }
            }
        }
    }

    /// Forgets the older half, for who has no room for more flows.
    pub fn forget_half(&mut self) {
        self.forgotten |= !self.ring.is_empty();
        self.ring.drain(..self.ring.len().div_ceil(2));
    }

    /// How many departures are remembered.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// A packet left.
    #[inline]
    pub fn record(&mut self, past: Past) {
        self.ring.push_back(Kept { past, before: self.total });
        self.total += u64::from(past.size);
        self.recorded += 1;
    }

    /// How many packets were recorded so far: the number of the next, from 0.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// The number of the oldest departure that is remembered.
    pub fn first(&self) -> u64 {
        self.recorded - self.ring.len() as u64
    }

    /// What left since `from`, and before the packet with that number, oldest first.
    pub fn since_until(&self, from: Nanos, number: u64) -> impl Iterator<Item = Past> {
        let end = self.place(number);
        self.ring.range(self.position(from).min(end)..end).map(|kept| kept.past)
    }

    /// The packets with these numbers, as far as they are remembered, oldest first.
    pub fn numbered(&self, numbers: Range<u64>) -> impl Iterator<Item = Past> {
        let end = self.place(numbers.end);
        self.ring.range(self.place(numbers.start).min(end)..end).map(|kept| kept.past)
    }

    /// What left since `from`, oldest first.
    pub fn since(&self, from: Nanos) -> impl Iterator<Item = Past> {
        self.ring.range(self.position(from)..).map(|kept| kept.past)
    }

    /// All that left since `from`: in a FIFO, what the packet that came then met in the queue.
    #[inline]
    pub fn backlog_since(&self, from: Nanos) -> Backlog {
        let position = self.position(from);
        let bytes = self.ring.get(position).map_or(0, |kept| self.total - kept.before);
        Backlog { packets: (self.ring.len() - position) as u64, bytes: ByteCount(bytes) }
    }

    /// Whether a question from `from` on is about more than is remembered.
    #[inline]
    pub fn is_too_short_for(&self, from: Nanos) -> bool {
        self.forgotten && self.ring.front().is_none_or(|kept| kept.past.dequeued >= from)
    }

    /// The oldest departure that is remembered.
    #[inline]
    pub fn oldest(&self) -> Option<Past> {
        self.ring.front().map(|kept| kept.past)
    }

    /// Where in the ring the packet with a number stands, or would stand.
    fn place(&self, number: u64) -> usize {
        (number.saturating_sub(self.first()) as usize).min(self.ring.len())
    }

    /// Where in the ring the departures since `from` start.
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

    fn past(dequeued: u64) -> Past {
        Past { flow: FlowId(0), size: 10, enqueued: Nanos(0), dequeued: Nanos(dequeued) }
    }

    #[test]
    fn a_fifo_forgets_what_left_before_the_last_packet_came() {
        let mut recent = Recent::new(History::Fifo);
        (0..10).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(4));
        assert_eq!(recent.oldest(), Some(past(4)));
        assert_eq!(recent.backlog_since(Nanos(7)), Backlog { packets: 3, bytes: ByteCount(30) });
        assert_eq!(recent.since(Nanos(8)).count(), 2);
        assert!(!recent.is_too_short_for(Nanos(0)), "in a FIFO nothing is missed");
    }

    #[test]
    fn where_nearly_all_is_in_order_a_little_more_is_kept() {
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
        assert_eq!(times(&recent), [7, 8, 9, 10, 11, 12], "nothing waits for longer");
        assert!(!recent.is_too_short_for(Nanos(7)), "no question is about more");
    }

    #[test]
    fn a_question_before_what_is_remembered_is_known_to_be() {
        let mut recent = Recent::new(History::Departures(2));
        (0..4).for_each(|n| recent.record(past(n)));
        recent.advance(Nanos(0));
        assert!(recent.is_too_short_for(Nanos(1)));
        assert!(!recent.is_too_short_for(Nanos(3)));
        assert_eq!(recent.backlog_since(Nanos(0)).packets, 2);
    }
}
