//! Random numbers from a seed.

use queuescope_wire::{Draws, Mrg32k3a};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A stream of random numbers, determined by its seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(Pcg64Mcg);

/// A stream of random numbers: this crate's own, or that of ns-3.
#[derive(Debug, Clone)]
pub(crate) enum RandomSource {
    Own(Random),
    Ns3(Mrg32k3a),
}

/// The number of ns-3's stream. The ns-3 programs for comparisons assign it to their discipline.
const STREAM: u64 = (1 << 63) + 1;

impl RandomSource {
    pub fn new(draws: Draws, seed: u64) -> Self {
        match draws {
            Draws::Own => Self::Own(Random::new(seed)),
            Draws::Ns3 { run } => Self::Ns3(Mrg32k3a::new(STREAM, run)),
        }
    }

    /// A number uniform in 0.0 .. 1.0.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        match self {
            Self::Own(random) => random.unit(),
            Self::Ns3(random) => random.unit(),
        }
    }
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number uniform in 0.0 .. 1.0, in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// All 32 bits, like a switch's generator.
    #[inline]
    pub fn bits(&mut self) -> u32 {
        self.0.next_u32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_evenly_spread() {
        let (mut a, mut b, mut c) = (Random::new(7), Random::new(7), Random::new(8));
        let (mut sum, mut same, mut least, mut most) = (0.0, 0, u32::MAX, 0);
        for _ in 0..10_000 {
            let x = a.unit();
            assert!((0.0..1.0).contains(&x));
            assert_eq!(x, b.unit());
            same += u32::from(x == c.unit());
            sum += x;
            let bits = a.bits();
            assert_eq!(bits, b.bits());
            (least, most) = (least.min(bits), most.max(bits));
        }
        assert_eq!(same, 0);
        assert!((4_900.0..5_100.0).contains(&sum), "{sum}");
        assert!(least < 1 << 21 && most > u32::MAX - (1 << 21), "{least} {most}");
    }
}
