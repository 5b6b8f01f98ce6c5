//! Random numbers from a seed.

use libm::log;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A stream of random numbers that is a function of its seed, the same on every machine: where a logarithm is needed,
/// it is not the machine's own.
///
/// ```
/// use queuescope_sim::workload::Random;
///
/// let mut random = Random::new(7);
/// let mean = (0..10_000).map(|_| random.exponential()).sum::<f64>() / 10_000.0;
/// assert!((mean - 1.0).abs() < 0.05);
/// assert_eq!(Random::new(7).below(100), Random::new(7).below(100));
/// ```
#[derive(Debug, Clone)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream for a seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Another stream, seeded from this one: drawing from it leaves this one unchanged.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.0.next_u64())
    }

    /// Uniform above 0 and below 1, in steps of 2^-52: the middle of each step, so neither end is ever drawn.
    #[inline]
    pub fn open(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Uniform over the whole numbers below `bound`, without bias; 0 if `bound` is 0. (Lemire, "Fast random
    /// integer generation in an interval", 2019.)
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.0.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let biased = bound.wrapping_neg() % bound;
            while (product as u64) < biased {
                product = u128::from(self.0.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -log(self.open())
    }

    /// Shuffles into a random order, all equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_functions_of_their_seeds() {
        let (mut a, mut b, mut c) = (Random::new(7), Random::new(7), Random::new(8));
        let draws = |random: &mut Random| (0..100).map(|_| random.open()).collect::<Vec<_>>();
        let first = draws(&mut a);
        assert_eq!(first, draws(&mut b));
        assert_ne!(first, draws(&mut c));
        let (mut fork, after) = (a.fork(), a.open());
        let _ = draws(&mut fork);
        let _ = b.fork();
        assert_eq!(after, b.open(), "what a fork draws changes nothing");
        assert_ne!(draws(&mut fork), first);
    }

    #[test]
    fn draws_are_even() {
        let mut random = Random::new(1);
        let (mut counts, mut sum, mut gaps) = ([0u32; 6], 0.0, 0.0);
        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
            let open = random.open();
            assert!(open > 0.0 && open < 1.0);
            sum += open;
            gaps += random.exponential();
        }
        // Five standard deviations each.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 457), "{counts:?}");
        assert!((sum / 60_000.0 - 0.5).abs() < 0.006, "{sum}");
        assert!((gaps / 60_000.0 - 1.0).abs() < 0.021, "{gaps}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        // A bound above half of the range, where most naive methods are biased: a third of the draws are repeated.
        let bound = 3u64 << 62;
        let low = (0..60_000).filter(|_| random.below(bound) < 1 << 62).count();
        assert!(low.abs_diff(20_000) < 577, "{low}");
    }

    #[test]
    fn shuffles_reach_every_order_alike() {
        let mut random = Random::new(3);
        let mut orders = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *orders.entry(items).or_default() += 1;
        }
        assert!(orders.len() == 6 && orders.values().all(|count| count.abs_diff(1_000) < 145), "{orders:?}");
    }
}
