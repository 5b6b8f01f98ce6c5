//! Queues by hash: a flow is one of n queues, which are served round robin.
//!
//! What a switch does that has a few queues a port and no notion of a flow's rate: a flow that sends much fills its own
//! queue only, with those that share it by chance.

use crate::{Discipline, Limit, MultiQueue, MultiQueueParams, MultiQueueStats, Outlet, Scheduler, Sink};
use queuescope_wire::{Backlog, Departure, FlowId, Nanos, Packet};
use std::num::NonZeroU16;

/// What queues by hash are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashQueuesParams {
    /// How many there are. 8 by default, the queues of an Ethernet port (IEEE 802.1Q).
    pub queues: NonZeroU16,
    /// How much each of them holds.
    pub limit: Limit,
    /// How much they hold together.
    pub shared_limit: Limit,
}

impl Default for HashQueuesParams {
    fn default() -> Self {
        let MultiQueueParams { queues, limit, shared_limit, .. } = MultiQueueParams::default();
        Self { queues, limit, shared_limit }
    }
}

/// Queues by hash of the flow, served round robin. Departures carry the queue that they left.
#[derive(Debug)]
pub struct HashQueues {
    hash: FlowHash,
    queues: MultiQueue,
}

impl HashQueues {
    /// Empty queues; the outlet's seed decides which flows share one.
    pub fn new(params: HashQueuesParams, outlet: Outlet) -> Self {
        let HashQueuesParams { queues, limit, shared_limit } = params;
        let multi = MultiQueueParams { queues, scheduler: Scheduler::RoundRobin, limit, shared_limit };
        Self { hash: FlowHash::new(outlet.seed, queues), queues: MultiQueue::new(multi, outlet) }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &MultiQueueStats {
        self.queues.stats()
    }

    /// What waits in one queue, by number from 0; nothing in those that there are not.
    pub fn backlog_of(&self, queue: u16) -> Backlog {
        self.queues.backlog_of(queue)
    }

    /// Which queue a flow is in, by number from 0.
    pub fn queue_of(&self, flow: FlowId) -> u16 {
        self.hash.queue(flow)
    }
}

impl Discipline for HashQueues {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.queues.enqueue_to(self.hash.queue(packet.flow), packet, now, sink);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        self.queues.dequeue(now, sink)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn is_fifo(&self) -> bool {
        self.queues.is_fifo()
    }

    fn queues(&self) -> u16 {
        self.queues.queues()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.queues.counters()
    }
}

/// From flows to queues, by a hash that a seed perturbs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowHash {
    seed: u64,
    queues: NonZeroU16,
}

impl FlowHash {
    pub fn new(seed: u64, queues: NonZeroU16) -> Self {
        Self { seed, queues }
    }

    /// The queue of a flow, from 0.
    #[inline]
    pub fn queue(self, flow: FlowId) -> u16 {
        // The finalizer of SplitMix64 (Steele et al., OOPSLA 2014) is one to one: each bit of seed and flow reaches
        // each bit of it.
        let mut bits = self.seed ^ (u64::from(flow.0) << 32 | u64::from(flow.0));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (((bits >> 32) * u64::from(self.queues.get())) >> 32) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dropped, MarkReason};
    use queuescope_wire::{ByteCount, Class, Ecn, PacketId, QueueId, Rate};

    struct Nobody;

    impl Sink for Nobody {
        fn dropped(&mut self, dropped: &Dropped) {
            panic!("{dropped:?}");
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    #[test]
    fn flows_spread_evenly_and_by_seed() {
        let queues = NonZeroU16::new(10).unwrap();
        for seed in [0, 1, u64::MAX] {
            let (hash, other) = (FlowHash::new(seed, queues), FlowHash::new(seed ^ 1 << 40, queues));
            let (mut counts, mut same) = ([0u32; 10], 0);
            for flow in 0..100_000 {
                counts[usize::from(hash.queue(FlowId(flow)))] += 1;
                same += u32::from(hash.queue(FlowId(flow)) == other.queue(FlowId(flow)));
            }
            // Ten times the standard deviation of 95 either way, and a tenth fall together by chance.
            assert!(counts.iter().all(|count| (9_050..10_950).contains(count)), "{counts:?}");
            assert!((9_050..10_950).contains(&same), "{same}");
        }
    }

    #[test]
    fn a_flow_that_sends_much_delays_only_those_in_its_queue() {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let outlet = Outlet { overhead: 0, rate, queue: QueueId(4), seed: 7 };
        let mut queues = HashQueues::new(HashQueuesParams::default(), outlet);
        let heavy = FlowId(0);
        let light = (1..).map(FlowId).find(|&flow| queues.queue_of(flow) != queues.queue_of(heavy)).unwrap();
        let packet =
            |id, flow| Packet { id: PacketId(id), flow, size: ByteCount(100), class: Class(0), ecn: Ecn::NotEct };
        for id in 0..100 {
            queues.enqueue(packet(id, heavy), Nanos(0), &mut Nobody);
        }
        queues.enqueue(packet(100, light), Nanos(0), &mut Nobody);
        let left: Vec<_> = std::iter::from_fn(|| queues.dequeue(Nanos(1), &mut Nobody)).take(3).collect();
        assert_eq!(left.iter().map(|left| left.packet.id.0).collect::<Vec<_>>(), [0, 100, 1]);
        assert_eq!(left[1].queue, QueueId(4 + queues.queue_of(light)));
        assert_eq!(queues.backlog_of(queues.queue_of(heavy)).packets, 98);
    }
}
