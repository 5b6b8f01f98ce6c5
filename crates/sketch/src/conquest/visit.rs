//! A visit to the cells of a key: it reads all windows, then writes the current one.

use super::{ConQuest, FULL, MAX_SNAPSHOTS, POINT, Reach, out_of_fixed_point};
use crate::hash::Columns;
use crate::{ConQuestParams, Expiry};
use std::array::from_fn;

/// The sum of eight counters of at most this value fits into an `i32`.
pub(super) const NARROW: u32 = i32::MAX as u32 / 8;

/// The dimensions that have specialised code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Tag4,
    Tag8,
    Clean4,
    Clean8,
    Any,
}

impl Shape {
    pub(super) fn from_params(params: &ConQuestParams) -> Self {
        match (params.rows, params.snapshots, params.expiry) {
            (2, 4, Expiry::Tag) => Self::Tag4,
            (2, 8, Expiry::Tag) => Self::Tag8,
            (2, 4, Expiry::Clean { .. }) => Self::Clean4,
            (2, 8, Expiry::Clean { .. }) => Self::Clean8,
            _ => Self::Any,
        }
    }
}

impl ConQuest {
    /// Returns the weighted sum of the counts of `key` in the windows within `reach`. The count of a window is the
    /// least over the rows. With `WRITE`, then adds `weight` to the current window and cleans one entry of the next.
    #[inline]
    pub(super) fn visit<const WRITE: bool>(&mut self, key: u64, weight: u32, reach: Reach) -> u64 {
        let sum = match self.shape {
            Shape::Tag4 => self.visit_pair::<4, true, WRITE>(key, weight, reach),
            Shape::Tag8 => self.visit_pair::<8, true, WRITE>(key, weight, reach),
            Shape::Clean4 => self.visit_pair::<4, false, WRITE>(key, weight, reach),
            Shape::Clean8 => self.visit_pair::<8, false, WRITE>(key, weight, reach),
            Shape::Any => self.visit_any::<WRITE>(key, weight, reach),
        };
        out_of_fixed_point(sum)
    }

    /// For two rows of `H` snapshots, without branches, so that the compiler can use the vector instructions that every
    /// processor has. No counter is above [`NARROW`], so neither a counter nor the sum of all windows overflows.
    #[inline]
    pub(super) fn visit_pair<const H: usize, const TAG: bool, const WRITE: bool>(
        &mut self,
        key: u64,
        weight: u32,
        reach: Reach,
    ) -> u64 {
        let [first, second] = Columns::new(key, self.params.seed, self.params.columns).pair();
        let second = second + self.params.columns;
        let ages: [i32; H] = *self.roles.ages.first_chunk().expect("h is at most 64");
        let read = if reach.with_current { &self.roles.ages } else { &self.roles.past_ages };
        let read: [i32; H] = *read.first_chunk().expect("h is at most 64");
        let added: [i32; H] = from_fn(|i| weight as i32 & below(ages[i], 1));
        let (cells, _) = self.counters.as_chunks_mut::<H>();
        let now = self.window as u32;
        let mut counts = [[0; H]; 2];
        for (counts, place) in counts.iter_mut().zip([first, second]) {
            let cell = &mut cells[place];
            let old: [u32; H] = *cell;
            // A counter holds its window's count only if its cell was written since that window. Otherwise the count is
            // of a window h or more before.
            let mut stale = 0;
            if TAG {
                let tag = &mut self.tags[place];
                stale = now.wrapping_sub(*tag).min(H as u32) as i32;
                if WRITE {
                    *tag = now;
                }
            }
            *counts = from_fn(|i| old[i] as i32 & !below(ages[i], stale));
            if WRITE {
                *cell = from_fn(|i| counts[i].wrapping_add(added[i]) as u32);
            }
        }
        if WRITE && !TAG {
            let next = self.cleaner.step(self.params.columns);
            cells[next][self.cleaner.counter % H] = 0;
            cells[next + self.params.columns][self.cleaner.counter % H] = 0;
        }
        let (whole, part) = (reach.windows >> POINT, reach.windows & (FULL - 1));
        let (mut full, mut touched) = (0i32, 0i32);
        for i in 0..H {
            let [first, second] = [counts[0][i], counts[1][i]];
            let least = second.wrapping_add(first.wrapping_sub(second) & below(first, second));
            full = full.wrapping_add(least & below(read[i], whole));
            touched = touched.wrapping_add(least & !below(whole, read[i]));
        }
        ((full as u64) << POINT) + (touched - full) as u64 * part as u64
    }

    /// For any dimensions and any counts, one counter after the other: the plain form of [`Self::visit_pair`].
    #[inline(never)]
    pub(super) fn visit_any<const WRITE: bool>(&mut self, key: u64, weight: u32, reach: Reach) -> u64 {
        let (h, now) = (self.params.snapshots, self.window as u32);
        let mut least = [u32::MAX; MAX_SNAPSHOTS];
        let columns = Columns::new(key, self.params.seed, self.params.columns);
        for (row, column) in (0..self.params.rows).zip(columns) {
            let place = row * self.params.columns + column;
            let stale = self.tags.get(place).map_or(0, |tag| now.wrapping_sub(*tag));
            for (counter, count) in self.counters[place * h..][..h].iter_mut().enumerate() {
                let age = self.roles.ages[counter] as u32;
                let valid = if age >= stale { *count } else { 0 };
                least[counter] = least[counter].min(valid);
                if WRITE {
                    let added = if age == 0 { weight } else { 0 };
                    self.stats.saturated += u64::from(valid.checked_add(added).is_none());
                    *count = valid.saturating_add(added);
                }
            }
            if WRITE && !self.tags.is_empty() {
                self.tags[place] = now;
            }
        }
        if WRITE && self.tags.is_empty() {
            let next = self.cleaner.step(self.params.columns);
            for row in 0..self.params.rows {
                self.counters[(row * self.params.columns + next) * h + self.cleaner.counter] = 0;
            }
        }
        let read = if reach.with_current { &self.roles.ages } else { &self.roles.past_ages };
        let parts = read[..h].iter().map(|age| (reach.windows - (age << POINT)).clamp(0, FULL) as u64);
        least.iter().zip(parts).map(|(count, part)| u64::from(*count) * part).sum()
    }
}

/// All bits set if `a` is below `b`, else 0. The two must be less than 2^31 apart.
#[inline]
fn below(a: i32, b: i32) -> i32 {
    a.wrapping_sub(b) >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimator, Passes, Weights};
    use proptest::prelude::*;
    use queuescope_wire::Nanos;

    proptest! {
        /// The specialised code gives the same results as the plain code.
        #[test]
        fn specialised_code_agrees_with_plain_code(
            h in prop::sample::select(vec![4usize, 8]), clean in any::<bool>(), columns in 1..40usize,
            window in 1..100u64, eighths in any::<bool>(),
            steps in prop::collection::vec((0..9u64, 0..100_000u32, 0..60u64, 0..900u64), 1..200)
        ) {
            let expiry = if clean { Expiry::Clean { passes: Passes::None } } else { Expiry::Tag };
            let weights = if eighths { Weights::Eighths } else { Weights::Fine };
            let params =
                ConQuestParams { snapshots: h, rows: 2, columns, window: Nanos(window), expiry, weights, seed: 3 };
            let mut specialised = ConQuest::new(params).expect("the dimensions are possible");
            prop_assert_ne!(specialised.shape, Shape::Any);
            let mut plain = specialised.clone();
            plain.shape = Shape::Any;
            let mut now = 0;
            for (place, (key, weight, gap, delay)) in steps.into_iter().enumerate() {
                now += gap;
                let (from, to, estimator) = (Nanos(now.saturating_sub(delay)), Nanos(now), Estimator::ALL[place % 3]);
                prop_assert_eq!(specialised.observe(key, weight, from, to, estimator), plain.observe(key, weight, from, to, estimator));
                prop_assert_eq!(&specialised.counters, &plain.counters);
                prop_assert_eq!(&specialised.tags, &plain.tags);
                prop_assert_eq!(specialised.stats, plain.stats);
            }
        }
    }

    /// The plain code takes over before a counter could overflow, also after widening and with counts that were not
    /// cleaned.
    #[test]
    fn high_counts_use_the_plain_code() {
        for (expiry, widens) in [(Expiry::Tag, true), (Expiry::Clean { passes: Passes::None }, false)] {
            let params = ConQuestParams {
                snapshots: 4,
                rows: 2,
                columns: 16,
                window: Nanos(100),
                expiry,
                weights: Weights::Fine,
                seed: 3,
            };
            let mut sketch = ConQuest::new(params).expect("the dimensions are possible");
            sketch.record(1, NARROW, Nanos(50));
            assert_ne!(sketch.shape, Shape::Any);
            if widens {
                sketch.record(1, NARROW, Nanos(150));
                assert_ne!(sketch.shape, Shape::Any);
                sketch.widen();
            } else {
                sketch.record(1, 1, Nanos(450));
                assert!(sketch.stats.dirty > 0);
            }
            assert_eq!(sketch.shape, Shape::Any);
        }
    }
}
