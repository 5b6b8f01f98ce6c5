//! Whose random numbers are drawn: by BBR, RED and PIE.

use crate::keys::choice;
use queuescope_wire::Draws;

choice! {
    Draws, "source of random numbers", keys;
    "own", "Each for itself, by its seed.", Self::Own, Self::Own => {};
    "ns3", "The numbers that ns-3 draws: each flow the same; a discipline those of stream 1.",
        Self::Ns3 { run: 1 }, Self::Ns3 { run } => {
            keys.within("run", run, 0..=1_000_000_000, "ns-3's number of the run.");
        };
}
