//! The heaviest of many flows, in bounded memory.

use hashbrown::HashMap;
use std::hash::Hash;

/// The part of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Its bytes.
    pub bytes: u64,
    /// Its packets.
    pub packets: u64,
    /// The most bytes that it had in the queue when one of its own packets came.
    pub peak: u64,
}

impl Share {
    /// The sum of two parts of the same flow.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, packets: self.packets + other.packets, peak: self.peak.max(other.peak) }
    }
}

/// Sums per key, of which only the heaviest are kept: the summary of Misra and Gries, pruned in batches.
///
/// A key's sum is too low by at most [`error`](Self::error), which is at most the total divided by the capacity.
#[derive(Debug, Clone)]
pub struct Heavy<K> {
    sums: HashMap<K, Share, foldhash::fast::FixedState>,
    capacity: usize,
    error: u64,
}

impl<K: Eq + Hash + Clone + Ord> Heavy<K> {
    /// Keeps at least `capacity` of the heaviest keys (and up to twice as many).
    pub fn with_capacity(capacity: usize) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(0);
        Self { sums: HashMap::with_hasher(hasher), capacity: capacity.max(1), error: 0 }
    }

    /// Adds to a key's sum.
    pub fn add(&mut self, key: &K, share: Share) {
        match self.sums.get_mut(key) {
            Some(sum) => *sum = sum.and(share),
            None => {
                self.sums.insert(key.clone(), share);
            }
        }
        if self.sums.len() >= 2 * self.capacity {
            self.prune();
        }
    }

    /// Removes and returns a key's sum, if it is kept.
    pub fn remove(&mut self, key: &K) -> Option<Share> {
        self.sums.remove(key)
    }

    /// The most by which any sum may be too low, bytes.
    pub fn error(&self) -> u64 {
        self.error
    }

    /// The number of keys that are kept.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether no key is kept.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sums.clear();
        self.error = 0;
    }

    /// All keys that are kept, heaviest first; equal ones in the order of their keys.
    pub fn sorted(&self) -> Vec<(K, Share)> {
        let mut all: Vec<_> = self.sums.iter().map(|(key, share)| (key.clone(), *share)).collect();
        all.sort_unstable_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| a.cmp(b)));
        all
    }

    /// Subtracts the `capacity`-th largest sum from every sum, and removes the keys whose sums become zero.
    fn prune(&mut self) {
        let mut bytes: Vec<_> = self.sums.values().map(|share| share.bytes).collect();
        let (_, &mut cut, _) = bytes.select_nth_unstable_by(self.capacity, |a, b| b.cmp(a));
        self.sums.retain(|_, share| {
            share.bytes = share.bytes.saturating_sub(cut);
            share.bytes > 0
        });
        self.error += cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn sums_are_too_low_by_at_most_the_stated_error(
            capacity in 1..6usize, adds in prop::collection::vec((0..30u32, 1..1500u64), 0..300)
        ) {
            let mut heavy = Heavy::with_capacity(capacity);
            let mut truth = BTreeMap::<u32, u64>::new();
            for (key, bytes) in &adds {
                heavy.add(key, Share { bytes: *bytes, packets: 1, peak: *bytes });
                *truth.entry(*key).or_default() += bytes;
            }
            let total: u64 = truth.values().sum();
            prop_assert!(heavy.error() <= total / capacity as u64);
            prop_assert!(heavy.len() < 2 * capacity);
            let kept: BTreeMap<_, _> = heavy.sorted().into_iter().collect();
            for (key, sum) in truth {
                let estimate = kept.get(&key).map_or(0, |share| share.bytes);
                prop_assert!(estimate <= sum && sum - estimate <= heavy.error());
            }
            prop_assert!(heavy.sorted().is_sorted_by(|a, b| a.1.bytes >= b.1.bytes));
        }
    }
}
