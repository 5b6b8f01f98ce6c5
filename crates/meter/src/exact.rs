//! The exact part of the queue that was a packet's own flow.
//!
//! For a packet that came at `a` and left at `d`: the packets and bytes that left in `[a, d)`, and how many of them belonged to the packet's
//! own flow (ConQuest definition 3.1). Sketches are compared with this ground truth.

use queuescope_wire::{FlowId, Nanos};
use std::collections::VecDeque;

/// A sliding window over departures whose start differs from packet to packet, at one granularity.
///
/// Departures are kept in a ring, and those of one flow are chained. Each flow remembers the start of its last query, so a query costs as
/// much as the departures of the flow since its last query; in a FIFO queue, only the two ends of the ring.
#[derive(Debug, Default)]
pub struct ExactMeter {
    ring: VecDeque<LoggedDeparture>,
    /// The sequence number of the ring's front.
    first: u64,
    flows: Vec<Chain>,
    /// The number of times that everything was forgotten; chains of an earlier era are empty.
    era: u32,
    /// The number of flows with departures in their chains.
    active: u64,
}

/// The departures while a packet waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contribution {
    /// Bytes of the packet's own flow.
    pub own: u64,
    /// Bytes of all flows.
    pub total: u64,
}

impl Contribution {
    /// Whether the flow has at least the share `alpha` of the departures; of none, no flow has a share.
    pub fn is_at_least(self, alpha: f64) -> bool {
        self.total > 0 && self.own as f64 >= alpha * self.total as f64
    }
}

#[derive(Debug)]
struct LoggedDeparture {
    dequeued: Nanos,
    flow: u32,
    size: u32,
    /// The distance to the flow's next departure in the ring; 0 if there is none yet.
    next: u32,
}

/// The departures of a flow that its last query covered, and those since.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// The sequence numbers of its first and last departure; meaningless while `packets` is 0.
    head: u64,
    tail: u64,
    era: u32,
    packets: u32,
    bytes: u64,
    /// The start of the last query.
    from: Nanos,
}

impl ExactMeter {
    /// Creates an empty meter.
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
        self.ring.push_back(LoggedDeparture { dequeued, flow: flow.0, size, next: 0 });
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

    /// Forgets departures before `oldest`.
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
        // Chains are reset, too: a flow's next query may start before its last one.
        self.era = self.era.checked_add(1).unwrap_or_else(|| {
            self.flows.clear();
            0
        });
    }

    /// The number of flows with remembered departures. In a FIFO queue, if everything before a packet's arrival is forgotten, these are the
    /// flows that were in the queue as it came.
    #[inline]
    pub fn flows_in_window(&self) -> u64 {
        self.active
    }

    /// Bytes of `flow` that left in `[from, now)`; `now` must not be before the latest departure.
    #[inline]
    pub fn own(&mut self, flow: FlowId, from: Nanos) -> u64 {
        let Some(chain) = self.flows.get_mut(flow.index()) else { return 0 };
        let chain = chain.in_era(self.era);
        if from < chain.from {
            // An earlier query of the flow had a later start, because packets changed order: examines all departures since `from`.
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
    fn pass(&mut self, head: &LoggedDeparture) {
        self.bytes -= u64::from(head.size);
        self.packets -= 1;
        self.head += u64::from(head.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, applied to all departures ever.
    fn reference(log: &[(u32, u32, u64)], flow: u32, from: u64) -> u64 {
        let own = log.iter().filter(|(other, _, dequeued)| *other == flow && *dequeued >= from);
        own.map(|(_, size, _)| u64::from(*size)).sum()
    }

    /// Figures 2 and 3(b) of the paper: a packet of flow C comes at 2 and leaves at 8; of the packets that left in [2, 8), three
    /// belonged to flow C.
    #[test]
    fn the_example_of_the_paper() {
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
        fn results_in_a_fifo_match_the_definition(
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

        /// With several queues, packets leave in another order than they came, also within a flow.
        #[test]
        fn results_in_any_order_match_the_definition(
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
