//! The place of each flow among the queues of its group, by its round-trip time.
//!
//! The paper proposes as future work "if the queue reallocation algorithm can be extended to take into account the flows' RTTs"
//! (section V). Flows in one queue get a part of its rate that depends on their round-trip times. A queue is fair to its flows
//! if these are about the same, and fair to other queues if all have equally many flows.
//!
//! The flows of a group are ordered by a [`key`]: the class of the round-trip time, then bits of the flow's hash, so that the
//! flows of one class spread over as many queues as they need. A table has the first key of each queue of the group. The control plane
//! computes it again every [`P4airParams::rank_interval`](super::P4airParams::rank_interval) from the registers of the flows; the
//! data plane looks up the range of a packet's key. A group without a table, and a place that the group has no queue for any
//! more, leave the place to the hash alone, until the table is computed again.

use super::shares::GROUPS;
use crate::hash_to_queues::{digest, reduce};
use queuescope_sketch::Ticks;
use queuescope_wire::FlowId;

/// Bits of a flow's hash in its key.
const HASH_BITS: u32 = 8;
/// Bits of the round-trip time behind its leading one: a class is at most an eighth wide.
const CLASS_BITS: u32 = 3;

/// The first keys of the queues of each group.
#[derive(Debug, Clone, Default)]
pub(super) struct RttRanks {
    /// From the second queue on; empty if there is no table.
    firsts: [Vec<u16>; GROUPS],
}

/// The order of a flow in its group: the class of its round-trip time, and bits of its hash.
#[inline]
pub(super) fn key(rtt: Ticks, flow: FlowId) -> u16 {
    let rtt = rtt.0.max(1);
    let exponent = rtt.ilog2();
    let behind = (u64::from(rtt) << CLASS_BITS >> exponent) as u32 & ((1 << CLASS_BITS) - 1);
    let class = exponent << CLASS_BITS | behind;
    (class << HASH_BITS | reduce(digest(flow.0.into()), 1 << HASH_BITS)) as u16
}

impl RttRanks {
    /// Divides the keys of a group's flows among its queues, of which there are `size`: as many to each, or one less.
    pub fn set(&mut self, group: usize, keys: &mut [u16], size: u16) {
        keys.sort_unstable();
        let size = usize::from(size);
        let first = |place: usize| keys.get((place * keys.len()).div_ceil(size)).copied();
        self.firsts[group] = (1..size).filter_map(first).collect();
    }

    /// The place of a key among `size` queues of its group, counted from 0.
    #[inline]
    pub fn place(&self, group: usize, key: u16, size: u16) -> u16 {
        let firsts = &self.firsts[group];
        let place = firsts.partition_point(|first| *first <= key) as u16;
        if !firsts.is_empty() && place < size {
            return place;
        }
        let hash = u32::from(key) & ((1 << HASH_BITS) - 1);
        ((hash * u32::from(size)) >> HASH_BITS) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUP: usize = 2;

    #[test]
    fn classes_are_at_most_an_eighth_wide() {
        let class = |rtt| key(Ticks(rtt), FlowId(7)) >> HASH_BITS;
        // Worked by hand: 1000 is 0b1111101000, whose three bits behind the leading one are 111.
        assert_eq!(class(1000), 9 << 3 | 0b111);
        assert_eq!((class(1024), class(1151), class(1152)), (80, 80, 81));
        // Short times have fewer bits behind the leading one.
        assert_eq!((class(0), class(1), class(2), class(3), class(5)), (0, 0, 8, 12, 18));
        assert_eq!(class(u32::MAX), 31 << 3 | 7);
    }

    #[test]
    fn without_a_table_the_hash_gives_the_place() {
        let ranks = RttRanks::default();
        let places: Vec<_> = [0, 63, 64, 255].iter().map(|hash| ranks.place(GROUP, 0x5000 | hash, 4)).collect();
        assert_eq!(places, [0, 0, 1, 3]);
    }

    proptest! {
        #[test]
        fn queues_have_as_many_flows_and_a_shorter_time_is_never_behind_a_longer_one(
            rtts in proptest::collection::vec(1u32..1 << 20, 1..200),
            size in 1u16..30,
        ) {
            // Different keys: the same one would be in the same queue.
            let mut keys: Vec<u16> = (0..).zip(&rtts).map(|(flow, rtt)| key(Ticks(*rtt), FlowId(flow))).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut ranks = RttRanks::default();
            ranks.set(GROUP, &mut keys.clone(), size);
            let places: Vec<_> = keys.iter().map(|key| ranks.place(GROUP, *key, size)).collect();
            prop_assert!(places.is_sorted(), "{:?}", places);
            // A group with a single flow has no table.
            if keys.len() > 1 {
                let each = (0..size).map(|place| places.iter().filter(|own| **own == place).count());
                let (least, most) = (each.clone().min(), each.max());
                prop_assert!(least.zip(most).is_some_and(|(least, most)| most <= least + 1), "{:?}", places);
            }
        }

        #[test]
        fn a_table_for_another_number_of_queues_gives_places_that_there_are(
            mut keys in proptest::collection::vec(any::<u16>(), 0..100),
            (old, new) in (1u16..30, 1u16..30),
            key: u16,
        ) {
            let mut ranks = RttRanks::default();
            ranks.set(GROUP, &mut keys, old);
            prop_assert!(ranks.place(GROUP, key, new) < new);
        }
    }
}
