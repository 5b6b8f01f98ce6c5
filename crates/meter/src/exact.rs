//! How much of the queue a packet's own flow was, exactly.
//!
//! For a packet that came at `a` and left at `d`: which packets, and which bytes, left in `[a, d)`, and how many of
//! them were its own flow's (ConQuest definition 3.1). This is the truth that the sketch is held against.

use queuescope_wire::{FlowId, Nanos};
use std::collections::VecDeque;

/// A sliding window over departures whose start differs from packet to packet, at one granularity.
///
/// Departures are kept in a ring, those of one flow chained. Each flow remembers where its last question started, so a
/// question costs what left since the flow's last one; in a FIFO that is nothing on top of the two ends of the ring.
#[derive(Debug, Default)]
pub struct ExactMeter {
    ring: VecDeque<Left>,
    /// Sequence number of the ring's front.
    first: u64,
    flows: Vec<Chain>,
    /// How often everything was forgotten: chains of an earlier era are empty.
    era: u32,
    /// Flows with departures in their chains.
    active: u64,
}

/// What left while a packet waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contribution {
    /// Bytes of the packet's own flow.
    pub own: u64,
    /// Bytes of all flows.
    pub total: u64,
}

impl Contribution {
    /// Whether the flow is at least `alpha` of what left; of nothing, nobody is a part.
    pub fn is_at_least(self, alpha: f64) -> bool {
        self.total > 0 && self.own as f64 >= alpha * self.total as f64
    }
}

#[derive(Debug)]
struct Left {
    dequeued: Nanos,
    flow: u32,
    size: u32,
    /// How many places later the flow's next departure stands; 0 while there is none.
    next: u32,
}

/// The part of a flow's departures that its last question was about, and what came since.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// Sequence numbers of its first and last departure; meaningless while `packets` is 0.
    head: u64,
    tail: u64,
    era: u32,
    packets: u32,
    bytes: u64,
    /// The start of the last question.
    from: Nanos,
}

impl ExactMeter {
    /// A meter that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet of `flow` left.
    #[inline]
    pub fn record(&mut self, flow: FlowId, size: u32, dequeued: Nanos) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Chain::default());
        }
        let sequence = self.first + self.ring.len() as u64;
        self.ring.push_back(Left { dequeued, flow: flow.0, size, next: 0 });
        let chain = self.flows[flow.index()].in_era(self.era);
        if chain.packets == 0 {
            chain.head = sequence;
            self.active += 1;
        } else {
            self.ring[(chain.tail - self.first) as usize].next = (sequence - chain.tail) as u32;
        }
        chain.tail = sequence;
        chain.packets += 1;
        chain.bytes += u64::from(size);
    }

    /// Forgets what left before `oldest`.
    #[inline]
    pub fn forget_before(&mut self, oldest: Nanos) {
        while self.ring.front().is_some_and(|left| left.dequeued < oldest) {
            self.forget_first();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.first += self.ring.len() as u64;
        self.ring.clear();
        self.active = 0;
        // Chains go too: a flow's next question may be about a time before its last one.
        self.era = self.era.checked_add(1).unwrap_or_else(|| {
            self.flows.clear();
            0
        });
    }

    /// How many flows the departures belong to that are remembered. In a FIFO, when what left before a packet came is
    /// forgotten, these are the flows that were in the queue as it came.
    #[inline]
    pub fn flows_in_window(&self) -> u64 {
        self.active
    }

    /// Bytes of `flow` that left in `[from, now)`, `now` being no earlier than anything recorded.
    #[inline]
    pub fn own(&mut self, flow: FlowId, from: Nanos) -> u64 {
        let Some(chain) = self.flows.get_mut(flow.index()) else { return 0 };
        let chain = chain.in_era(self.era);
        if from < chain.from {
            // The flow was asked about a later start before: packets of it changed order. Look at all that left since.
            let position = self.ring.partition_point(|left| left.dequeued < from);
            let own = self.ring.range(position..).filter(|left| left.flow == flow.0);
            return own.map(|left| u64::from(left.size)).sum();
        }
        chain.from = from;
        while chain.packets > 0 {
            let head = &self.ring[(chain.head - self.first) as usize];
            if head.dequeued >= from {
                break;
            }
            self.active -= u64::from(chain.packets == 1);
            chain.pass(head);
        }
        chain.bytes
    }

    #[inline]
    fn forget_first(&mut self) {
        let Some(left) = self.ring.pop_front() else { return };
        let chain = &mut self.flows[left.flow as usize];
        if chain.packets > 0 && chain.head == self.first {
            self.active -= u64::from(chain.packets == 1);
            chain.pass(&left);
        }
        self.first += 1;
    }
}

impl Chain {
    /// The chain, emptied if it is of an earlier era.
    #[inline]
    fn in_era(&mut self, era: u32) -> &mut Self {
        if self.era != era {
            *self = Self { era, ..Self::default() };
        }
        self
    }

    #[inline]
    fn pass(&mut self, head: &Left) {
        self.bytes -= u64::from(head.size);
        self.packets -= 1;
        self.head += u64::from(head.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, word for word, over everything that ever left.
    fn reference(log: &[(u32, u32, u64)], flow: u32, from: u64) -> u64 {
        let own = log.iter().filter(|(other, _, dequeued)| *other == flow && *dequeued >= from);
        own.map(|(_, size, _)| u64::from(*size)).sum()
    }

    /// Figure 2 and 3(b) of the paper: flow C's packet came at 2 and leaves at 8; of those that left in [2, 8), three
    /// were its own.
    #[test]
    fn the_papers_example() {
        let mut meter = ExactMeter::new();
        for (dequeued, flow) in [(0, 0), (1, 2), (2, 2), (3, 2), (4, 0), (5, 1), (6, 2), (7, 0)] {
            meter.record(FlowId(flow), 1, Nanos(dequeued));
        }
        meter.forget_before(Nanos(2));
        assert_eq!(meter.own(FlowId(2), Nanos(2)), 3);
        assert_eq!(meter.flows_in_window(), 3);
    }

    proptest! {
        #[test]
        fn fifo_answers_are_the_definition(
            steps in prop::collection::vec((0..4u32, 1..1500u32, 0..5u64, 0..20u64, 0..30u8), 1..200)
        ) {
            let mut meter = ExactMeter::new();
            let (mut log, mut now, mut last_enqueued) = (Vec::new(), 0, 0);
            for (flow, size, gap, sojourn, clear) in steps {
                now += gap;
                let enqueued = now.saturating_sub(sojourn).max(last_enqueued);
                last_enqueued = enqueued;
                meter.forget_before(Nanos(enqueued));
                prop_assert_eq!(meter.own(FlowId(flow), Nanos(enqueued)), reference(&log, flow, enqueued));
                let flows: std::collections::BTreeSet<_> =
                    log.iter().filter(|(.., dequeued)| *dequeued >= enqueued).map(|(flow, ..)| *flow).collect();
                prop_assert_eq!(meter.flows_in_window(), flows.len() as u64);
                if clear == 0 {
                    meter.clear();
                    log.clear();
                }
                meter.record(FlowId(flow), size, Nanos(now));
                log.push((flow, size, now));
            }
        }

        /// Several queues: packets leave in an order that is not that of their arrival, also within a flow.
        #[test]
        fn answers_in_any_order_are_the_definition(
            steps in prop::collection::vec((0..4u32, 1..1500u32, 0..5u64, 0..40u64), 1..200)
        ) {
            let mut meter = ExactMeter::new();
            let (mut log, mut now) = (Vec::new(), 0);
            for (flow, size, gap, sojourn) in steps {
                now += gap;
                let enqueued = now.saturating_sub(sojourn);
                prop_assert_eq!(meter.own(FlowId(flow), Nanos(enqueued)), reference(&log, flow, enqueued));
                meter.record(FlowId(flow), size, Nanos(now));
                log.push((flow, size, now));
            }
        }
    }
}
