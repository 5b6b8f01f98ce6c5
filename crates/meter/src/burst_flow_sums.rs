//! Bytes per flow over one burst, in memory bounded by the number of active flows.

use crate::retired::{Retired, Unit};
use crate::{Amount, Share};
use hashbrown::HashTable;
use queuescope_wire::FlowId;
use std::hash::{BuildHasher, Hash};

/// The departures of each flow during a burst.
///
/// A flow's sum is stored at its id, tagged with the number of the burst, so that nothing needs clearing between bursts. When an id is
/// released during the burst, its sum is kept under the flow's key; if there are too many of those, a sample of them is kept.
#[derive(Debug)]
pub struct BurstFlowSums<K> {
    burst: u32,
    tallies: Vec<Tally>,
    touched: Vec<FlowId>,
    retired: Retired<K>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// The burst that `share` belongs to.
    burst: u32,
    /// The last burst in which the id was used, by this flow or by an earlier one.
    touched: u32,
    share: Share,
}

/// All flows of a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstFlows<K> {
    /// Each flow once. If a sample was kept, the flows that stand for others come first, and `stand_for` says for how many.
    flows: Vec<(K, Share)>,
    stand_for: Vec<f32>,
    unit: Option<Unit>,
    count: u64,
}

/// The flows that filled the queue in a burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstCulprits<K> {
    /// The heaviest flows, heaviest first.
    pub top: Vec<(K, Share)>,
    /// The number of flows with departures. If a sample was kept, a flow that paused and came back counts twice.
    pub flows: u64,
    /// The possible error of a share, bytes; 0 if all flows were kept.
    pub error: u64,
    /// The most bytes of a flow that is not listed.
    pub unlisted: u64,
}

impl<K: Eq + Hash + Clone + Ord> BurstFlowSums<K> {
    /// Creates empty sums. Of the ids that are released during a burst, at most `retired` are kept.
    pub fn new(retired: usize) -> Self {
        Self { burst: 0, tallies: Vec::new(), touched: Vec::new(), retired: Retired::new(retired) }
    }

    /// A burst starts: all sums are zero.
    pub fn open(&mut self) {
        // Tags from 2^32 bursts ago must not count as this burst's.
        self.burst = self.burst.checked_add(1).unwrap_or_else(|| {
            self.tallies.clear();
            1
        });
        self.touched.clear();
        self.retired.clear();
    }

    /// A packet of `flow` left; when it came, the flow had `held` bytes in the queue. Returns whether it is the first packet of this
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

    /// The id is released.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        if let Some(tally) = self.tallies.get_mut(flow.index())
            && tally.burst == self.burst
            && self.burst > 0
        {
            self.retired.add(|| key.clone(), tally.share);
            tally.burst = 0;
        }
    }

    /// The burst ends: returns its flows.
    pub fn close(&mut self, key: impl Fn(FlowId) -> K) -> BurstFlows<K> {
        let (burst, tallies) = (self.burst, &mut self.tallies);
        // An id that was released and not reused is in `retired`.
        let live = self.touched.drain(..).filter_map(|flow| {
            let tally = &mut tallies[flow.index()];
            (std::mem::take(&mut tally.burst) == burst).then_some((flow, tally.share))
        });
        let live = live.map(|(flow, share)| (key(flow), share));
        if self.retired.count() == 0 {
            let flows: Vec<_> = live.collect();
            return BurstFlows { count: flows.len() as u64, flows, stand_for: Vec::new(), unit: None };
        }
        let (unit, mut count) = (self.retired.unit(), self.retired.count());
        let (flows, mut stand_for) = self.retired.take();
        let mut merged = Merged::new(flows, &mut stand_for);
        merged.flows.reserve_exact(live.size_hint().1.unwrap_or(0));
        live.for_each(|(key, share)| {
            count += 1;
            merged.add(key, share);
        });
        let flows = merged.flows;
        BurstFlows { count: if unit.is_none() { flows.len() as u64 } else { count }, flows, stand_for, unit }
    }
}

impl<K: Eq + Hash + Clone + Ord> BurstFlows<K> {
    /// The flows with their shares, in no order.
    pub fn flows(&self) -> &[(K, Share)] {
        &self.flows
    }

    /// The number of flows for which each of the first flows stands, and the sampling unit; none if all flows were
    /// kept.
    pub fn sampled(&self) -> Option<(&[f32], Unit)> {
        self.unit.map(|unit| (self.stand_for.as_slice(), unit))
    }

    /// The heaviest flows, at most `most`.
    pub fn heaviest(mut self, most: usize) -> BurstCulprits<K> {
        let order = |(a, x): &(K, Share), (b, y): &(K, Share)| y.bytes.cmp(&x.bytes).then_with(|| a.cmp(b));
        let (mut unlisted, mut error) = (0, 0);
        if let Some(unit) = self.unit {
            let most = self.flows[..self.stand_for.len()].iter().map(|(_, share)| share.bytes).max().unwrap_or(0);
            error = unit.error(Amount { bytes: most, packets: 0 }).bytes;
            unlisted = error;
        }
        if self.flows.len() > most {
            let (_, (_, next), _) = self.flows.select_nth_unstable_by(most, order);
            unlisted = unlisted.max(next.bytes + error);
            self.flows.truncate(most);
        }
        self.flows.sort_unstable_by(order);
        // A burst may be kept for long, so unused capacity is freed.
        self.flows.shrink_to_fit();
        BurstCulprits { top: self.flows, flows: self.count, error, unlisted }
    }
}

/// Flows, each once.
struct Merged<K> {
    flows: Vec<(K, Share)>,
    places: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
}

impl<K: Eq + Hash> Merged<K> {
    /// Merges shares of ids, some of which may belong to the same flow.
    fn new(ids: Vec<(K, Share)>, stand_for: &mut Vec<f32>) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(0);
        let mut merged = Self { flows: ids, places: HashTable::new(), hasher };
        let (mut flows, mut sampled) = (0, 0);
        for id in 0..merged.flows.len() {
            merged.flows.swap(flows, id);
            flows += usize::from(merged.place(flows));
            if id < stand_for.len() && sampled < flows {
                stand_for.swap(sampled, id);
                sampled = flows;
            }
        }
        merged.flows.truncate(flows);
        stand_for.truncate(sampled);
        merged
    }

    fn add(&mut self, key: K, share: Share) {
        self.flows.push((key, share));
        if !self.place(self.flows.len() - 1) {
            self.flows.pop();
        }
    }

    /// Whether the flow at `at` is new; otherwise its share is added to the flow's earlier one.
    fn place(&mut self, at: usize) -> bool {
        let Self { flows, places, hasher } = self;
        let hash = hasher.hash_one(&flows[at].0);
        if let Some(known) = places.find(hash, |place| flows[*place as usize].0 == flows[at].0) {
            let share = flows[at].1;
            let sum = &mut flows[*known as usize].1;
            *sum = sum.and(share);
            return false;
        }
        places.insert_unique(hash, at as u32, |place| hasher.hash_one(&flows[*place as usize].0));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Ids are released and reused during a burst; the sums must equal those of a map by keys.
        #[test]
        fn sums_match_a_map_by_keys(
            bursts in prop::collection::vec(prop::collection::vec((0..12u64, 1..1500u32, any::<bool>()), 0..60), 1..4),
            most in 1..8usize
        ) {
            let mut blame = BurstFlowSums::<u64>::new(100);
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
                let (flows, unlisted) = (expected.len() as u64, expected.get(most).map_or(0, |(_, share)| share.bytes));
                expected.truncate(most);
                let names: BTreeMap<_, _> = ids.iter().map(|(key, id)| (*id, *key)).collect();
                let blamed = blame.close(|id| names[&id]).heaviest(most);
                prop_assert_eq!(blamed, BurstCulprits { top: expected, flows, error: 0, unlisted });
            }
        }
    }
}
