//! The distribution of delays.

use hdrhistogram::Histogram;

/// The longest delay that percentiles distinguish, in nanoseconds: a century and a half.
const LONGEST: u64 = 1 << 62;
/// The ranges of a histogram with three significant digits: delays below 2^11 have one each; from there on, each doubling has 2^10.
const EXACT_BITS: u32 = 11;
const HALF: usize = 1 << (EXACT_BITS - 1);

/// Counts delays in the ranges of a [`Histogram`] with three significant digits, from which it is made at the end: to find
/// the range takes a few instructions.
#[derive(Debug, Default)]
pub(crate) struct DelayCounts {
    /// By range, up to the highest so far.
    counts: Vec<u64>,
}

impl DelayCounts {
    /// Counts a delay.
    #[inline]
    pub fn record(&mut self, delay: u64) {
        let range = range_of(delay);
        match self.counts.get_mut(range) {
            Some(count) => *count += 1,
            None => self.first_of(range),
        }
    }

    #[cold]
    fn first_of(&mut self, range: usize) {
        self.counts.resize(range + 1, 0);
        self.counts[range] = 1;
    }

    /// The histogram.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_max(LONGEST, 3).expect("three significant digits are allowed");
        for (range, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(least_of(range), *count);
        }
        histogram
    }
}

/// The number of the range of a delay.
#[inline]
fn range_of(delay: u64) -> usize {
    let doublings = (delay | ((1 << EXACT_BITS) - 1)).ilog2() - (EXACT_BITS - 1);
    doublings as usize * HALF + (delay >> doublings) as usize
}

/// The shortest delay of a range.
fn least_of(range: usize) -> u64 {
    if range < 2 * HALF {
        return range as u64;
    }
    let doublings = range / HALF - 1;
    ((range - doublings * HALF) as u64) << doublings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_histogram_is_that_of_the_library(
            delays in prop::collection::vec((any::<u64>(), 0..64u32).prop_map(|(delay, shift)| delay >> shift), 0..300)
        ) {
            let (mut counts, mut library) = (DelayCounts::default(), Histogram::new_with_max(LONGEST, 3).unwrap());
            for delay in delays {
                counts.record(delay);
                library.saturating_record(delay);
            }
            let own = counts.histogram();
            prop_assert_eq!(own.len(), library.len());
            for percentile in [0.0, 1.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0] {
                prop_assert_eq!(own.value_at_percentile(percentile), library.value_at_percentile(percentile));
            }
            prop_assert!(own.iter_recorded().map(|range| (range.value_iterated_to(), range.count_at_value())).eq(
                library.iter_recorded().map(|range| (range.value_iterated_to(), range.count_at_value()))
            ));
        }
    }
}
