//! The source of random numbers of BBR, RED and PIE.

use crate::keys::choice;
use queuescope_wire::Draws;

choice! {
    Draws, "source of random numbers", keys;
    "own", "An own generator with its own seed.", Self::Own, Self::Own => {};
    "ns3", "The numbers that ns-3 draws: the same for each flow; for a discipline, those of stream 1.",
        Self::Ns3 { run: 1 }, Self::Ns3 { run } => {
            keys.within("run", run, 0..=1_000_000_000, "The run number of ns-3.");
        };
}
