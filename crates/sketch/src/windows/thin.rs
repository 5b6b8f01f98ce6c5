//! Threshold sampling: keeps fewer flows with the same expected bytes.

use crate::windows::tally::Tally;

/// Reduces tallies to at most `most` flows.
#[derive(Debug, Clone)]
pub(super) struct Thinner {
    most: usize,
    /// The state of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The same seed and records keep the same flows.
    random: u64,
}

impl Thinner {
    /// Creates a thinner that keeps at most `most` flows, which must be at least 1.
    pub fn new(most: usize, seed: u64) -> Self {
        Self { most, random: seed }
    }

    /// Thins a tally of more than `most` flows. Returns an upper bound for the variance that this adds to a flow's
    /// estimate.
    pub fn thin(&mut self, tally: &mut Tally) -> f32 {
        let threshold = threshold(tally.items(), self.most);
        // Systematic sampling: the small flows lie end to end on a line, with marks at distances of a threshold from a
        // random start. A flow with a mark is kept, so with probability bytes / threshold. The number of marks is
        // nearly constant.
        let mut reach = ((u128::from(self.next()) * u128::from(threshold)) >> 64) as u64;
        tally.thin(|bytes| {
            if bytes >= threshold {
                return bytes;
            }
            reach += bytes;
            if reach < threshold {
                return 0;
            }
            reach -= threshold;
            threshold
        });
        // The variance of a flow of b bytes is b (threshold - b). This is its maximum.
        let half = threshold as f32 / 2.0;
        half * half
    }

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// The least whole threshold with `count(bytes >= t) + sum(bytes < t) / t <= most`, for more than `most` items.
///
/// It starts with a threshold that is right if no item reaches it. Items that reach it are counted as large, and the
/// threshold is computed again for the others, until no further item reaches it.
fn threshold(items: &[(u32, u64)], most: usize) -> u64 {
    let mut threshold = u64::MAX;
    loop {
        let (mut small, mut large) = (0u64, 0);
        for &(_, bytes) in items {
            // Without branches, because large items are not predictable.
            let is_large = bytes >= threshold;
            large += usize::from(is_large);
            small += if is_large { 0 } else { bytes };
        }
        // There are more than `most` items of a byte or more, so fewer than `most` of them are large.
        let next = small.div_ceil((most.saturating_sub(large) as u64).max(1)).max(1);
        if next >= threshold {
            return threshold;
        }
        threshold = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_threshold_keeps_the_given_number_of_flows() {
        let items: Vec<_> = [100, 50, 10, 10, 10, 10].into_iter().enumerate().map(|(n, b)| (n as u32, b)).collect();
        // Two items are large. The others have 40 bytes for the two remaining places.
        assert_eq!(threshold(&items, 4), 20);
        assert_eq!(threshold(&items, 1), 190);
    }

    #[test]
    fn estimates_have_no_bias() {
        let truth = [(1, 1000), (2, 30), (3, 30), (4, 20), (5, 10), (6, 10)];
        let mut sums = [0u64; 7];
        let mut thinner = Thinner::new(3, 1);
        const TIMES: u64 = 20_000;
        for _ in 0..TIMES {
            let mut tally = Tally::new(3);
            truth.iter().for_each(|&(flow, bytes)| assert!(tally.add(flow, bytes)));
            thinner.thin(&mut tally);
            tally.items().iter().for_each(|(flow, bytes)| sums[*flow as usize] += bytes);
        }
        assert_eq!(sums[1], 1000 * TIMES, "the large flow is exact");
        for (flow, bytes) in &truth[1..] {
            let mean = sums[*flow as usize] as f64 / TIMES as f64;
            // Standard deviation of the mean: at most 25 / sqrt(20 000) = 0.18.
            assert!((mean - *bytes as f64).abs() < 0.9, "flow {flow}: {mean} for {bytes}");
        }
    }

    proptest! {
        #[test]
        fn at_most_the_given_number_of_flows_are_kept_with_nearly_all_bytes(
            bytes in prop::collection::vec(prop_oneof![1..20u64, 1..100_000u64], 2..40), seed: u64
        ) {
            let most = bytes.len() / 2;
            prop_assume!(bytes.len() <= 2 * most + 1 && most > 0);
            let mut tally = Tally::new(most + 1);
            for (flow, bytes) in bytes.iter().enumerate() {
                tally.add(flow as u32, *bytes);
            }
            let variance = Thinner::new(most, seed).thin(&mut tally);
            let threshold = 2.0 * f64::from(variance).sqrt();
            prop_assert!(tally.len() <= most, "{} of {} flows are kept", tally.len(), bytes.len());
            let (before, after) = (bytes.iter().sum::<u64>() as f64, tally.items().iter().map(|item| item.1).sum::<u64>() as f64);
            // The error of one threshold for the ends of the line, and of one byte per kept flow for rounding the
            // threshold up.
            prop_assert!((before - after).abs() <= threshold * 1.001 + most as f64, "{before} became {after}");
        }
    }
}
