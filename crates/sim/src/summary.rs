//! Summaries of many values: fairness and percentiles.

use hdrhistogram::Histogram;
use queuescope_wire::Nanos;

/// Jain's fairness index: `(sum x)^2 / (n * sum x^2)`, from 1 / n (one has everything) to 1 (all have the same).
/// `None` without shares, or if all are zero. (Jain, Chiu and Hawe, "A quantitative measure of fairness and
/// discrimination for resource allocation in shared computer systems", DEC TR-301, 1984.)
///
/// The shares must not be negative; their unit does not matter.
///
/// ```
/// use queuescope_sim::summary::jain;
///
/// assert_eq!(jain([5.0, 5.0, 5.0, 5.0]), Some(1.0));
/// assert_eq!(jain([20.0, 0.0, 0.0, 0.0]), Some(0.25));
/// assert_eq!(jain([]), None);
/// ```
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for share in shares {
        count += 1;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

/// A collection of durations, of any number: percentiles to a thousandth, and the exact mean, minimum and maximum.
///
/// Its memory depends on the range of the values, not on their number: some 300 kB for a nanosecond to an hour; it grows
/// as needed. In percentiles, values above 146 years count as 146 years.
///
/// ```
/// use queuescope_sim::summary::Times;
/// use queuescope_wire::Nanos;
///
/// let mut waits = Times::new();
/// for milliseconds in 1..=100 {
///     waits.record(Nanos(milliseconds * 1_000_000));
/// }
/// assert_eq!(waits.mean(), Some(50_500_000.0));
/// let p99 = waits.percentile(99.0).ok_or("empty")?;
/// println!("99th percentile {p99}");
/// assert!((99_000_000..=99_099_000).contains(&p99.0), "at most a thousandth more");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct Times {
    histogram: Histogram<u64>,
    sum: u128,
    least: Nanos,
    most: Nanos,
}

/// The largest value of a histogram that grows.
const LONGEST: u64 = i64::MAX as u64 / 2;

impl Times {
    /// An empty collection.
    pub fn new() -> Self {
        let histogram = Histogram::new(3).expect("three significant digits are allowed");
        Self { histogram, sum: 0, least: Nanos::MAX, most: Nanos::ZERO }
    }

    /// Adds a duration.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        // Not `saturating_record`, which limits a value to the histogram's current range.
        self.histogram.record(time.0.min(LONGEST)).expect("the histogram grows to any value that is not longer");
        self.sum += u128::from(time.0);
        (self.least, self.most) = (self.least.min(time), self.most.max(time));
    }

    /// Adds all durations of another collection.
    pub fn add(&mut self, other: &Self) {
        // Every recorded value fits a histogram that grows.
        self.histogram.add(&other.histogram).expect("histograms that grow can be added");
        self.sum += other.sum;
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean in nanoseconds; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The minimum and the maximum; `None` if empty.
    pub fn range(&self) -> Option<(Nanos, Nanos)> {
        (self.count() > 0).then_some((self.least, self.most))
    }

    /// The nearest-rank percentile: of n sorted durations the one at rank `ceil(percent / 100 * n)`, and the minimum
    /// for 0 percent. The result is never less than that, at most a thousandth more, and never above the maximum. `None`
    /// if empty.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let (least, most) = self.range()?;
        if percent <= 0.0 {
            return Some(least);
        }
        Some(Nanos(self.histogram.value_at_percentile(percent)).clamp(least, most))
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jains_index_is_the_fraction_that_shares_everything_equally() {
        // 20 of 100 have the same, and the others nothing.
        assert!((jain((0..100).map(|n| f64::from(u8::from(n < 20)))).unwrap() - 0.2).abs() < 1e-12);
        assert!((jain([3.0, 3.0, 3.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((jain([1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!((jain([]), jain([0.0, 0.0])), (None, None));
    }

    proptest! {
        #[test]
        fn percentiles_are_nearest_ranks(
            times in prop::collection::vec(prop_oneof![0..5_000u64, 0..1u64 << 50], 1..200), percent in 0.0..=100.0f64,
            parts in 1..4usize
        ) {
            // In parts, which are then added.
            let mut all = Times::new();
            for part in times.chunks(times.len().div_ceil(parts)) {
                let mut some = Times::new();
                part.iter().for_each(|time| some.record(Nanos(*time)));
                all.add(&some);
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
            let (exact, estimate) = (sorted[rank - 1], all.percentile(percent).unwrap().0);
            prop_assert!(estimate >= exact && estimate as f64 <= exact as f64 * 1.001, "{estimate} for {exact}");
            prop_assert_eq!(all.count(), sorted.len() as u64);
            let sum = sorted.iter().map(|time| u128::from(*time)).sum::<u128>();
            prop_assert_eq!(all.mean(), Some(sum as f64 / sorted.len() as f64));
            prop_assert_eq!(all.range(), Some((Nanos(sorted[0]), Nanos(sorted[sorted.len() - 1]))));
        }

        #[test]
        fn jains_index_is_between_one_nth_and_one(shares in prop::collection::vec(0.0..1e9f64, 1..50)) {
            if let Some(index) = jain(shares.iter().copied()) {
                prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / shares.len() as f64 - 1e-12);
                let scaled = jain(shares.iter().map(|share| share * 8.0)).unwrap();
                prop_assert!((index - scaled).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn no_times_have_no_percentile() {
        let none = Times::new();
        assert_eq!((none.percentile(50.0), none.mean(), none.range(), none.count()), (None, None, None, 0));
        let mut extreme = Times::new();
        extreme.record(Nanos::MAX);
        assert_eq!((extreme.percentile(99.0), extreme.count()), (Some(Nanos::MAX), 1));
    }
}
