//! Queues by hash: a flow is assigned to one of n queues, which are served round robin.
//!
//! This models a switch with a few queues per port that does not measure the rates of flows. A flow that sends much
//! fills only its own queue, which some other flows share by chance.

use crate::{Discipline, Limit, MultiQueue, MultiQueueParams, MultiQueueStats, Outlet, Scheduler, Sink};
use queuescope_wire::{Backlog, Departure, FlowId, Nanos, Packet};
use std::num::NonZeroU16;

/// The parameters of queues by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashQueuesParams {
    /// The number of queues. 8 by default, as an Ethernet port has (IEEE 802.1Q).
    pub queues: NonZeroU16,
    /// The limit of each queue.
    pub limit: Limit,
    /// The limit of all queues together.
    pub shared_limit: Limit,
}

impl Default for HashQueuesParams {
    fn default() -> Self {
        let MultiQueueParams { queues, limit, shared_limit, .. } = MultiQueueParams::default();
        Self { queues, limit, shared_limit }
    }
}

/// Queues by hash of the flow, served round robin. A departure carries the id of the queue that it left.
///
/// ```
/// use queuescope_queue::{HashQueues, HashQueuesParams, Outlet};
/// use queuescope_wire::{FlowId, QueueId};
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let queues = HashQueues::new(HashQueuesParams::default(), outlet);
/// let sharing = (1..100).find(|&flow| queues.queue_of(FlowId(flow)) == queues.queue_of(FlowId(0)));
/// println!("flow 0 shares its queue with flow {sharing:?}");
/// assert!(sharing.is_some(), "there are more flows than queues");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct HashQueues {
    hash: FlowHash,
    queues: MultiQueue,
}

impl HashQueues {
    /// Creates empty queues. The outlet's seed determines which flows share one.
    pub fn new(params: HashQueuesParams, outlet: Outlet) -> Self {
        let HashQueuesParams { queues, limit, shared_limit } = params;
        let multi = MultiQueueParams { queues, scheduler: Scheduler::RoundRobin, limit, shared_limit };
        Self { hash: FlowHash::new(outlet.seed, queues), queues: MultiQueue::new(multi, outlet) }
    }

    /// The counters so far.
    pub fn stats(&self) -> &MultiQueueStats {
        self.queues.stats()
    }

    /// The backlog of one queue, by index from 0; empty for an index that does not exist.
    pub fn backlog_of(&self, queue: u16) -> Backlog {
        self.queues.backlog_of(queue)
    }

    /// The index of a flow's queue, from 0.
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

/// Maps flows to queues by a hash that a seed perturbs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowHash {
    seed: u64,
    queues: NonZeroU16,
}

impl FlowHash {
    pub fn new(seed: u64, queues: NonZeroU16) -> Self {
        Self { seed, queues }
    }

    /// The index of a flow's queue, from 0.
    #[inline]
    pub fn queue(self, flow: FlowId) -> u16 {
        // The finaliser of SplitMix64 (Steele et al., OOPSLA 2014) is a bijection: each bit of seed and flow affects
        // each bit of the result.
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

    struct NoDropsExpected;

    impl Sink for NoDropsExpected {
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
            // Ten times the standard deviation of 95 in both directions. A tenth of the flows agree by chance.
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
            queues.enqueue(packet(id, heavy), Nanos(0), &mut NoDropsExpected);
        }
        queues.enqueue(packet(100, light), Nanos(0), &mut NoDropsExpected);
        let left: Vec<_> = std::iter::from_fn(|| queues.dequeue(Nanos(1), &mut NoDropsExpected)).take(3).collect();
        assert_eq!(left.iter().map(|left| left.packet.id.0).collect::<Vec<_>>(), [0, 100, 1]);
        assert_eq!(left[1].queue, QueueId(4 + queues.queue_of(light)));
        assert_eq!(queues.backlog_of(queues.queue_of(heavy)).packets, 98);
    }
}
