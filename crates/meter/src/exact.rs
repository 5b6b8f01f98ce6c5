//! How much of the queue a packet's own flow was, exactly.
//!
//! For a packet that came at `a` and left at `d`: which packets, and which bytes, left in `[a, d)`, and how many of
//! them were its own flow's (ConQuest definition 3.1). This is the truth that the sketch is held against.

use queuescope_wire::{Backlog, ByteCount, FlowId, Nanos};
use std::collections::VecDeque;

/// A sliding window over departures whose start differs from packet to packet.
///
/// Departures are kept in a ring, those of one flow chained. Each flow remembers where its last question started, so a
/// question costs what left since the flow's last one; in a FIFO that is nothing on top of the two ends of the ring.
#[derive(Debug)]
pub struct ExactMeter {
    history: History,
    ring: VecDeque<Left>,
    /// Sequence number of the ring's front.
    first: u64,
    /// Bytes of everything that ever left.
    total: u64,
    flows: Vec<Chain>,
    /// Flows with departures in their chains.
    active: u64,
    truncated: u64,
}

/// What the meter remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// One FIFO queue: packets leave in the order in which they came, so what left before the last packet came is
    /// never asked about again.
    Fifo,
    /// Any order: so many departures.
    Departures(usize),
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

/// A departure that is still remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// The flow.
    pub flow: FlowId,
    /// Bytes.
    pub size: u32,
    /// When the packet came.
    pub enqueued: Nanos,
    /// When it left.
    pub dequeued: Nanos,
}

#[derive(Debug)]
struct Left {
    enqueued: Nanos,
    dequeued: Nanos,
    /// Bytes of everything that left before.
    before: u64,
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
    packets: u32,
    bytes: u64,
    /// The start of the last question.
    from: Nanos,
}

impl ExactMeter {
    /// A meter that has seen nothing.
    pub fn new(history: History) -> Self {
        Self { history, ring: VecDeque::new(), first: 0, total: 0, flows: Vec::new(), active: 0, truncated: 0 }
    }

    /// Forgets what no later question can be about, now that a packet which came at `enqueued` leaves.
    pub fn advance(&mut self, enqueued: Nanos) {
        match self.history {
            History::Fifo => {
                while self.ring.front().is_some_and(|left| left.dequeued < enqueued) {
                    self.forget_first();
                }
            }
            History::Departures(most) => {
                while self.ring.len() > most {
                    self.forget_first();
                }
            }
        }
    }

    /// What left in `[from, now)`, `now` being no earlier than anything recorded, and how much of it was `flow`'s.
    pub fn contribution(&mut self, flow: FlowId, from: Nanos) -> Contribution {
        Contribution { own: self.own(flow, from), total: self.left_since(from) }
    }

    /// A packet of `flow` left.
    pub fn record(&mut self, flow: FlowId, size: u32, enqueued: Nanos, dequeued: Nanos) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Chain::default());
        }
        let sequence = self.first + self.ring.len() as u64;
        self.ring.push_back(Left { enqueued, dequeued, before: self.total, flow: flow.0, size, next: 0 });
        self.total += u64::from(size);
        let chain = &mut self.flows[flow.index()];
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

    /// What left since `from`, oldest first.
    pub fn since(&self, from: Nanos) -> impl Iterator<Item = Past> {
        self.ring.range(self.position(from)..).map(Left::past)
    }

    /// All that left since `from`: in a FIFO, what the packet that came then met in the queue.
    pub fn backlog_since(&self, from: Nanos) -> Backlog {
        let position = self.position(from);
        let bytes = self.ring.get(position).map_or(0, |left| self.total - left.before);
        Backlog { packets: (self.ring.len() - position) as u64, bytes: ByteCount(bytes) }
    }

    /// The oldest departure that is still remembered.
    pub fn oldest(&self) -> Option<Past> {
        self.ring.front().map(Left::past)
    }

    /// How many flows the departures belong to that are remembered. In a FIFO, after [`advance`](Self::advance), these
    /// are the flows that were in the queue as the packet came.
    pub fn flows_in_window(&self) -> u64 {
        self.active
    }

    /// Questions about a time before what is remembered: their answers cover only the part that is.
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    fn left_since(&mut self, from: Nanos) -> u64 {
        let position = self.position(from);
        if position == 0 && self.first > 0 && self.history != History::Fifo {
            self.truncated += 1;
        }
        self.ring.get(position).map_or(0, |left| self.total - left.before)
    }

    fn own(&mut self, flow: FlowId, from: Nanos) -> u64 {
        let Some(chain) = self.flows.get_mut(flow.index()) else { return 0 };
        if from < chain.from {
            // The flow was asked about a later start before: packets of it changed order. Look at all that left since.
            return self.since(from).filter(|past| past.flow == flow).map(|past| u64::from(past.size)).sum();
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

    /// Where in the ring the departures since `from` start.
    fn position(&self, from: Nanos) -> usize {
        if self.ring.front().is_none_or(|left| left.dequeued >= from) {
            return 0;
        }
        self.ring.partition_point(|left| left.dequeued < from)
    }

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

impl Left {
    fn past(&self) -> Past {
        Past { flow: FlowId(self.flow), size: self.size, enqueued: self.enqueued, dequeued: self.dequeued }
    }
}

impl Chain {
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
    fn reference(log: &[(u32, u32, u64)], flow: u32, from: u64) -> Contribution {
        let window = || log.iter().filter(|(.., dequeued)| *dequeued >= from);
        Contribution {
            own: window().filter(|(other, ..)| *other == flow).map(|(_, size, _)| u64::from(*size)).sum(),
            total: window().map(|(_, size, _)| u64::from(*size)).sum(),
        }
    }

    /// Figure 2 and 3(b) of the paper: flow C's packet came at 2 and leaves at 8; of those that left in [2, 8), three
    /// were its own.
    #[test]
    fn the_papers_example() {
        let mut meter = ExactMeter::new(History::Fifo);
        for (dequeued, flow) in [(0, 0), (1, 2), (2, 2), (3, 2), (4, 0), (5, 1), (6, 2), (7, 0)] {
            meter.record(FlowId(flow), 1, Nanos(0), Nanos(dequeued));
        }
        meter.advance(Nanos(2));
        assert_eq!(meter.contribution(FlowId(2), Nanos(2)), Contribution { own: 3, total: 6 });
    }

    #[test]
    fn a_question_before_what_is_remembered_is_counted() {
        let mut meter = ExactMeter::new(History::Departures(2));
        for dequeued in 0..4 {
            meter.record(FlowId(0), 10, Nanos(0), Nanos(dequeued));
        }
        meter.advance(Nanos(0));
        assert_eq!(meter.contribution(FlowId(0), Nanos(0)), Contribution { own: 20, total: 20 });
        assert_eq!(meter.contribution(FlowId(0), Nanos(3)), Contribution { own: 10, total: 10 });
        assert_eq!(meter.truncated(), 1);
    }

    proptest! {
        #[test]
        fn fifo_answers_are_the_definition(
            steps in prop::collection::vec((0..4u32, 1..1500u32, 0..5u64, 0..20u64), 1..200)
        ) {
            let mut meter = ExactMeter::new(History::Fifo);
            let (mut log, mut now, mut last_enqueued) = (Vec::new(), 0, 0);
            for (flow, size, gap, sojourn) in steps {
                now += gap;
                let enqueued = now.saturating_sub(sojourn).max(last_enqueued);
                last_enqueued = enqueued;
                meter.advance(Nanos(enqueued));
                let truth = reference(&log, flow, enqueued);
                prop_assert_eq!(meter.contribution(FlowId(flow), Nanos(enqueued)), truth);
                prop_assert_eq!(meter.since(Nanos(enqueued)).map(|past| u64::from(past.size)).sum::<u64>(), truth.total);
                meter.record(FlowId(flow), size, Nanos(enqueued), Nanos(now));
                log.push((flow, size, now));
            }
            prop_assert_eq!(meter.truncated(), 0);
        }

        /// Several queues: packets leave in an order that is not that of their arrival, also within a flow.
        #[test]
        fn answers_in_any_order_are_the_definition(
            steps in prop::collection::vec((0..4u32, 1..1500u32, 0..5u64, 0..40u64), 1..200)
        ) {
            let mut meter = ExactMeter::new(History::Departures(1 << 20));
            let (mut log, mut now) = (Vec::new(), 0);
            for (flow, size, gap, sojourn) in steps {
                now += gap;
                let enqueued = now.saturating_sub(sojourn);
                meter.advance(Nanos(enqueued));
                prop_assert_eq!(meter.contribution(FlowId(flow), Nanos(enqueued)), reference(&log, flow, enqueued));
                meter.record(FlowId(flow), size, Nanos(enqueued), Nanos(now));
                log.push((flow, size, now));
            }
        }
    }
}
