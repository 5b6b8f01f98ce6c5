//! Bytes per flow over one burst, in memory bounded by the flows that are active.

use crate::{Heavy, Share};
use queuescope_wire::FlowId;
use std::hash::Hash;

/// Who left how much while a burst lasted.
///
/// A flow's sum stands at its id, tagged with the number of the burst, so that nothing is cleared between bursts. An id
/// that is taken back while the burst lasts leaves its sum under its key, among the heaviest of those.
#[derive(Debug)]
pub struct Blame<K> {
    burst: u32,
    tallies: Vec<Tally>,
    touched: Vec<FlowId>,
    aged_out: Heavy<K>,
    /// Flows that aged out while the burst lasted; one that did so twice counts twice.
    aged_out_flows: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// The burst that the share is of.
    burst: u32,
    /// The last burst in which the id was touched, by this flow or by one that had the id before.
    touched: u32,
    share: Share,
}

/// Who filled the queue in a burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blamed<K> {
    /// The heaviest flows, heaviest first.
    pub top: Vec<(K, Share)>,
    /// How many flows left packets.
    pub flows: u64,
}

/// How many of the flows that aged out during a burst are remembered by key: what is missed is below 1/1024 of them.
const AGED_OUT_KEPT: usize = 1024;

impl<K: Eq + Hash + Clone + Ord> Blame<K> {
    /// Nobody is to blame.
    pub fn new() -> Self {
        Self {
            burst: 0,
            tallies: Vec::new(),
            touched: Vec::new(),
            aged_out: Heavy::with_capacity(AGED_OUT_KEPT),
            aged_out_flows: 0,
        }
    }

    /// A burst starts: all sums are zero.
    pub fn open(&mut self) {
        // Tags from 2^32 bursts ago must not be taken for this one's.
        self.burst = self.burst.checked_add(1).unwrap_or_else(|| {
            self.tallies.clear();
            1
        });
        self.touched.clear();
        self.aged_out.clear();
        self.aged_out_flows = 0;
    }

    /// A packet of `flow` left; as it came, the flow had `held` bytes in the queue. Tells whether it is the first of its
    /// id in the burst.
    pub fn add(&mut self, flow: FlowId, size: u32, held: u64) -> bool {
        if self.tallies.len() <= flow.index() {
            self.tallies.resize(flow.index() + 1, Tally::default());
        }
        let tally = &mut self.tallies[flow.index()];
        let first = tally.burst != self.burst;
        if first {
            if tally.touched != self.burst {
                self.touched.push(flow);
            }
            *tally = Tally { burst: self.burst, touched: self.burst, share: Share::default() };
        }
        tally.share = tally.share.and(Share { bytes: u64::from(size), packets: 1, peak: held });
        first
    }

    /// The id is taken back.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        if let Some(tally) = self.tallies.get_mut(flow.index())
            && tally.burst == self.burst
            && self.burst > 0
        {
            self.aged_out.add(key, tally.share);
            self.aged_out_flows += 1;
            tally.burst = 0;
        }
    }

    /// The burst ends: its heaviest flows, at most `most`.
    pub fn close(&mut self, most: usize, key: impl Fn(FlowId) -> K) -> Blamed<K> {
        let mut live: Vec<_> = self
            .touched
            .drain(..)
            .filter_map(|flow| {
                let tally = &mut self.tallies[flow.index()];
                // One that was taken back and not handed out again has aged out.
                (std::mem::take(&mut tally.burst) == self.burst).then_some((flow, tally.share))
            })
            .collect();
        let flows = live.len() as u64 + self.aged_out_flows;
        if self.aged_out.is_empty() && live.len() > most {
            live.select_nth_unstable_by(most, |(_, a), (_, b)| b.bytes.cmp(&a.bytes));
            // Ties at the cut are decided by key below, as everywhere.
            let cut = live[most].1.bytes;
            live.retain(|(_, share)| share.bytes >= cut);
        }
        let mut top: Vec<_> = live
            .into_iter()
            .map(|(flow, share)| {
                let key = key(flow);
                let before = self.aged_out.remove(&key).unwrap_or_default();
                (key, share.and(before))
            })
            .collect();
        top.extend(self.aged_out.sorted());
        top.sort_unstable_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| a.cmp(b)));
        // Flows of the same size are all at the cut, and a burst may be kept for long.
        top.truncate(most);
        top.shrink_to_fit();
        Blamed { top, flows }
    }
}

impl<K: Eq + Hash + Clone + Ord> Default for Blame<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Ids come and go during a burst; the sums are those of a plain map over keys.
        #[test]
        fn sums_are_those_of_a_plain_map(
            bursts in prop::collection::vec(prop::collection::vec((0..12u64, 1..1500u32, any::<bool>()), 0..60), 1..4),
            most in 1..8usize
        ) {
            let mut blame = Blame::<u64>::new();
            let mut ids = BTreeMap::<u64, FlowId>::new();
            let mut free: Vec<FlowId> = (0..12).map(FlowId).collect();
            for burst in bursts {
                let mut truth = BTreeMap::<u64, Share>::new();
                blame.open();
                for (key, size, forget) in burst {
                    let id = *ids.entry(key).or_insert_with(|| free.pop().unwrap());
                    blame.add(id, size, u64::from(size) / 2);
                    let sum = truth.entry(key).or_default();
                    *sum = sum.and(Share { bytes: size.into(), packets: 1, peak: u64::from(size) / 2 });
                    if forget {
                        blame.forget(id, &key);
                        ids.remove(&key);
                        free.insert(0, id);
                    }
                }
                let mut expected: Vec<_> = truth.into_iter().collect();
                expected.sort_by_key(|(key, share)| (std::cmp::Reverse(share.bytes), *key));
                expected.truncate(most);
                let names: BTreeMap<_, _> = ids.iter().map(|(key, id)| (*id, *key)).collect();
                let blamed = blame.close(most, |id| names[&id]);
                prop_assert_eq!(blamed.top, expected);
            }
        }
    }
}
