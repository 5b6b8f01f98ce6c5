//! The snapshots with exact counts for every key. Where [`ConQuest`] estimates more, collisions are the cause.

use super::ConQuest;
use crate::{ConQuestParams, Estimator, Expiry, ParamsError, Snapshots};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Snapshots without collisions, in as much memory as the keys of the last few windows need: the special version of
/// section 5.1, which separates the error of rounding to windows from that of hashing.
///
/// ```
/// use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Ideal, Snapshots};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// // A sketch that is far too small: 2 KiB for 1000 flows.
/// let params = ConQuestParams::fit("1ms".parse()?, ByteCount(2_048), 4, None, Expiry::Tag)?;
/// let (mut ideal, mut sketch) = (Ideal::new(&params)?, ConQuest::new(params)?);
/// for key in 0..1_000 {
///     ideal.record(key, 100, Nanos(500_000));
///     sketch.record(key, 100, Nanos(500_000));
/// }
/// let now = "1ms".parse()?;
/// let exact = ideal.estimate(3, Nanos::ZERO, now, Estimator::Outer);
/// let estimate = sketch.estimate(3, Nanos::ZERO, now, Estimator::Outer);
/// println!("{} bytes come from collisions", estimate - exact);
/// assert_eq!(exact, 100);
/// assert!(estimate > exact);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ideal {
    /// The current window, and the windows that count for an interval. Its counters are not used.
    windows: ConQuest,
    keys: BTreeMap<u64, KeyCounts>,
    /// At this number of keys, those without counts are removed.
    prune_at: usize,
}

/// The counts of a key.
#[derive(Debug, Clone)]
struct KeyCounts {
    /// The window in which the key last passed.
    written: u64,
    /// The count of each window, by the number of the window modulo h.
    counts: Box<[u32]>,
}

/// The number of keys below which none are removed.
const MIN_PRUNE: usize = 1 << 10;

impl Ideal {
    /// Creates empty snapshots with the windows of these dimensions. Rows, columns and expiry have no effect.
    ///
    /// # Errors
    /// Fails if the number of snapshots or the window is out of range.
    pub fn new(params: &ConQuestParams) -> Result<Self, ParamsError> {
        let params = ConQuestParams { rows: 1, columns: 1, expiry: Expiry::Tag, ..params.clone() };
        Ok(Self { windows: ConQuest::new(params)?, keys: BTreeMap::new(), prune_at: MIN_PRUNE })
    }

    /// The count of a key in each window, from the current one back. To start the window of a later time than that of
    /// the last record, call [`Snapshots::estimate`] first.
    pub fn counts(&self, key: u64) -> Vec<u32> {
        let (h, now) = (self.windows.params.snapshots as u64, self.windows.window);
        let entry = self.keys.get(&key);
        // After the window in which the key last passed, counters still hold counts of earlier windows.
        let count = |age: u64| {
            let (entry, window) = (entry?, now.checked_sub(age)?);
            (window <= entry.written).then(|| entry.counts[(window % h) as usize])
        };
        (0..h).map(|age| count(age).unwrap_or(0)).collect()
    }
}

impl Snapshots for Ideal {
    fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        self.windows.advance(weight, now);
        let (h, now) = (self.windows.params.snapshots as u64, self.windows.window);
        if self.keys.len() >= self.prune_at {
            self.keys.retain(|_, entry| entry.written + h > now);
            self.prune_at = MIN_PRUNE.max(2 * self.keys.len());
        }
        let new_entry = || KeyCounts { written: now, counts: vec![0; h as usize].into() };
        let entry = self.keys.entry(key).or_insert_with(new_entry);
        // The key did not pass in the windows since it was last written.
        for window in (entry.written + 1..=now).rev().take(h as usize) {
            entry.counts[(window % h) as usize] = 0;
        }
        entry.written = now;
        let count = &mut entry.counts[(now % h) as usize];
        *count = count.saturating_add(weight);
    }

    fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        if to.0 >= self.windows.end {
            self.windows.rotate(to);
        }
        let reach = self.windows.reach(from, to, estimator);
        let counts = self.counts(key);
        let sum = counts.into_iter().zip(reach.weights()).map(|(count, weight)| u64::from(count) * weight).sum();
        self.windows.extrapolated(super::out_of_fixed_point(sum), reach, from, to, estimator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weights;
    use proptest::prelude::*;

    proptest! {
        /// With enough counters that no two keys share one, the sketch agrees with the exact counts.
        #[test]
        fn without_collisions_the_sketch_agrees_with_the_ideal(
            h in 2..9usize, window in 1..100u64, eighths in any::<bool>(),
            steps in prop::collection::vec((0..6u64, 0..100_000u32, 0..90u64, 0..900u64), 1..300)
        ) {
            let weights = if eighths { Weights::Eighths } else { Weights::Fine };
            let (expiry, window) = (Expiry::Tag, Nanos(window));
            let params = ConQuestParams { snapshots: h, rows: 8, columns: 1 << 8, window, expiry, weights, seed: 3 };
            let (mut sketch, mut ideal) = (ConQuest::new(params.clone()).unwrap(), Ideal::new(&params).unwrap());
            let mut now = 0;
            for (key, weight, gap, delay) in steps {
                now += gap;
                let (from, to) = (Nanos(now.saturating_sub(delay)), Nanos(now));
                for estimator in Estimator::ALL {
                    let expected = Snapshots::estimate(&mut sketch, key, from, to, estimator);
                    prop_assert_eq!(ideal.estimate(key, from, to, estimator), expected);
                }
                Snapshots::record(&mut sketch, key, weight, to);
                ideal.record(key, weight, to);
            }
        }
    }

    #[test]
    fn keys_without_counts_are_removed() {
        let params = ConQuestParams::fit(Nanos(30), queuescope_wire::ByteCount(1_000), 4, None, Expiry::Tag).unwrap();
        let mut ideal = Ideal::new(&params).unwrap();
        for key in 0..100_000 {
            ideal.record(key, 1, Nanos(key));
        }
        assert!(ideal.keys.len() <= 2 * MIN_PRUNE, "{}", ideal.keys.len());
        assert_eq!(ideal.counts(99_999), [1, 0, 0, 0]);
        assert_eq!(ideal.counts(99_975), [0, 0, 1, 0]);
        assert_eq!(ideal.counts(99_000), [0; 4]);
    }
}
