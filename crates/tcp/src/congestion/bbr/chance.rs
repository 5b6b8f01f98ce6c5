//! Random numbers that choose the phases in which cycles begin.
//!
//! In ns-3 3.37 all flows of a run draw the same numbers, so their cycles are synchronised. A comparison with ns-3 has
//! to draw the same ones.

use queuescope_wire::{Draws, Mrg32k3a};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// The number of the random stream that ns-3's `TcpBbr` uses by default.
const STREAM: u64 = (1 << 63) + 4;

/// A source of random numbers.
#[derive(Debug, Clone)]
pub(in crate::congestion) enum PhaseDraws {
    Own(Pcg64Mcg),
    Ns3(Mrg32k3a),
}

impl PhaseDraws {
    pub fn new(draws: Draws, seed: u64) -> Self {
        match draws {
            Draws::Own => Self::Own(Pcg64Mcg::seed_from_u64(seed)),
            Draws::Ns3 { run } => Self::Ns3(Mrg32k3a::new(STREAM, run)),
        }
    }

    /// A random number below `count`.
    pub fn below(&mut self, count: u64) -> u64 {
        let count = count.max(1);
        match self {
            Self::Own(random) => random.next_u64() % count,
            Self::Ns3(random) => (random.unit() * count as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_ns3s() {
        let mut chance = PhaseDraws::new(Draws::Ns3 { run: 1 }, 7);
        assert_eq!([0; 4].map(|_| chance.below(6)), [0, 2, 3, 5]);
    }
}
