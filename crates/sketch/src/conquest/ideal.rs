//! The snapshots with a counter of its own for every key: what collisions add is what [`ConQuest`] says above this.

use super::ConQuest;
use crate::{ConQuestParams, Estimator, Expiry, ParamsError, Snapshots};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Snapshots without collisions, in whatever memory the keys of the last few windows need: the special version of
/// section 5.1 that tells the error of rounding to windows from that of hashing.
#[derive(Debug, Clone)]
pub struct Ideal {
    /// Which window is written, and which count for a question.
    turn: ConQuest,
    held: BTreeMap<u64, Held>,
    /// When so many keys are held, those without counts go.
    full: usize,
}

/// What the windows hold of a key.
#[derive(Debug, Clone)]
struct Held {
    /// The window in which it passed last.
    written: u64,
    /// By the number of the window, modulo h.
    counts: Box<[u32]>,
}

/// Keys that are held before any is looked at again.
const FEW: usize = 1 << 10;

impl Ideal {
    /// Empty snapshots with the windows of these dimensions; rows and columns are of no effect, and no count grows too old.
    ///
    /// # Errors
    /// If there can be no such windows.
    pub fn new(params: &ConQuestParams) -> Result<Self, ParamsError> {
        let params = ConQuestParams { rows: 1, columns: 1, expiry: Expiry::Tag, ..params.clone() };
        Ok(Self { turn: ConQuest::new(params)?, held: BTreeMap::new(), full: FEW })
    }

    /// What each window holds of a key, from the current one back. A question about a later time than that of the last
    /// record begins its window before this is asked.
    pub fn counts(&self, key: u64) -> Vec<u32> {
        let (h, now) = (self.turn.params.snapshots as u64, self.turn.window);
        let held = self.held.get(&key);
        // The counters of windows since it passed last are those of earlier windows still.
        let count = |age: u64| {
            let (held, window) = (held?, now.checked_sub(age)?);
            (window <= held.written).then(|| held.counts[(window % h) as usize])
        };
        (0..h).map(|age| count(age).unwrap_or(0)).collect()
    }
}

impl Snapshots for Ideal {
    fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        self.turn.pass(weight, now);
        let (h, now) = (self.turn.params.snapshots as u64, self.turn.window);
        if self.held.len() >= self.full {
            self.held.retain(|_, held| held.written + h > now);
            self.full = FEW.max(2 * self.held.len());
        }
        let fresh = || Held { written: now, counts: vec![0; h as usize].into() };
        let held = self.held.entry(key).or_insert_with(fresh);
        // The windows since it passed last held nothing of it.
        for window in (held.written + 1..=now).rev().take(h as usize) {
            held.counts[(window % h) as usize] = 0;
        }
        held.written = now;
        let count = &mut held.counts[(now % h) as usize];
        *count = count.saturating_add(weight);
    }

    fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        if to.0 >= self.turn.end {
            self.turn.rotate(to);
        }
        let reach = self.turn.reach(from, to, estimator);
        let counts = self.counts(key);
        let sum = counts.into_iter().zip(reach.parts()).map(|(count, part)| u64::from(count) * part).sum();
        self.turn.extrapolated(super::out_of_fixed_point(sum), reach, from, to, estimator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weights;
    use proptest::prelude::*;

    proptest! {
        /// With so many counters that none is shared, the sketch is the ideal.
        #[test]
        fn without_collisions_the_sketch_is_the_ideal(
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
    fn keys_that_passed_long_ago_are_forgotten() {
        let params = ConQuestParams::fit(Nanos(30), queuescope_wire::ByteCount(1_000), 4, None, Expiry::Tag).unwrap();
        let mut ideal = Ideal::new(&params).unwrap();
        for key in 0..100_000 {
            ideal.record(key, 1, Nanos(key));
        }
        assert!(ideal.held.len() <= 2 * FEW, "{}", ideal.held.len());
        assert_eq!(ideal.counts(99_999), [1, 0, 0, 0]);
        assert_eq!(ideal.counts(99_975), [0, 0, 1, 0]);
        assert_eq!(ideal.counts(99_000), [0; 4]);
    }
}
