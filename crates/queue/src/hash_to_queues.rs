//! Spreads flows over the queues of a port by hash, as a switch with n queues and no further algorithm does.
//!
//! A flow stays in one queue, so its packets keep their order. Flows that share a queue share its delay and drops. The
//! port's scheduler serves the queues.

use crate::counters::counters;
use crate::{Egress, Headers, Ingress, Limit, MultiQueueParams, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, FlowId, Nanos, Packet};
use std::num::NonZeroU16;

/// The parameters of [`HashToQueues`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashToQueuesParams {
    /// Queues of each port; 0 counts as 1.
    pub queues: u16,
    /// The parameters of each queue, which the driver keeps. It has no limit by default.
    pub queue: TailDropParams,
    /// Chooses the hash function.
    pub seed: u64,
}

/// Eight queues, as the ports of common switches have.
impl Default for HashToQueuesParams {
    fn default() -> Self {
        Self { queues: 8, queue: TailDropParams::default(), seed: 0 }
    }
}

/// A program that spreads flows over the queues of a port.
///
/// ```
/// use queuescope_queue::{HashToQueues, HashToQueuesParams};
/// use queuescope_wire::FlowId;
///
/// let program = HashToQueues::new(HashToQueuesParams { queues: 4, ..HashToQueuesParams::default() });
/// let mut flows = [0; 4];
/// for flow in 0..1_000 {
///     flows[usize::from(program.queue(FlowId(flow)))] += 1;
/// }
/// println!("flows by queue: {flows:?}");
/// assert!(flows.iter().all(|&count| count > 150));
/// ```
#[derive(Debug, Clone)]
pub struct HashToQueues {
    params: HashToQueuesParams,
    stats: HashToQueuesStats,
}

/// The counters of [`HashToQueues`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HashToQueuesStats {
    /// Packets that were given a queue.
    pub spread: u64,
}

counters!(HashToQueuesStats { spread });

impl HashToQueues {
    /// Creates the program for a switch whose ports have `params.queues` queues each.
    pub fn new(params: HashToQueuesParams) -> Self {
        let params = HashToQueuesParams { queues: params.queues.max(1), ..params };
        Self { params, stats: HashToQueuesStats::default() }
    }

    /// The index of a flow's queue.
    #[inline]
    pub fn queue(&self, flow: FlowId) -> u16 {
        reduce(digest(u64::from(flow.0) ^ self.params.seed), u32::from(self.params.queues)) as u16
    }

    /// The counters so far.
    pub fn stats(&self) -> &HashToQueuesStats {
        &self.stats
    }
}

impl Pipeline for HashToQueues {
    #[inline]
    fn ingress(&mut self, _: Port, packet: &mut Packet, _: &mut Headers, _: Nanos, _: &mut impl Sink) -> Ingress {
        self.stats.spread += 1;
        Ingress::Enqueue(self.queue(packet.flow))
    }

    #[inline]
    fn egress(&mut self, _: Port, _: &mut Departure, _: &mut Headers, _: &mut impl Sink) -> Egress {
        Egress::Send
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        let queues = NonZeroU16::new(self.params.queues).unwrap_or(NonZeroU16::MIN);
        MultiQueueParams { queues, ..MultiQueueParams::one(limit) }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// A hash of a small number. Neighbouring numbers differ in the high bits too (the finaliser of SplitMix64).
#[inline]
pub(crate) fn digest(key: u64) -> u64 {
    let mixed = (key ^ (key >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Maps a digest to a number below `count`, which need not be a power of two.
#[inline]
pub(crate) fn reduce(digest: u64, count: u32) -> u32 {
    (((digest >> 32) * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_spread_evenly_and_differently_by_another_seed() {
        let (one, other) = (
            HashToQueues::new(HashToQueuesParams { queues: 5, seed: 1, ..HashToQueuesParams::default() }),
            HashToQueues::new(HashToQueuesParams { queues: 5, seed: 2, ..HashToQueuesParams::default() }),
        );
        let (mut counts, mut same) = ([0u32; 5], 0);
        for flow in (0..10_000).map(FlowId) {
            counts[usize::from(one.queue(flow))] += 1;
            same += u32::from(one.queue(flow) == other.queue(flow));
        }
        // 2000 flows per queue, with a standard deviation of 40.
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
        assert!((1_800..2_200).contains(&same), "{same}");
    }

    #[test]
    fn one_queue_takes_all() {
        let program = HashToQueues::new(HashToQueuesParams { queues: 0, ..HashToQueuesParams::default() });
        assert!((0..1_000).all(|flow| program.queue(FlowId(flow)) == 0));
    }
}
