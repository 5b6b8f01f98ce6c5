//! How often the behaviour of a flow gets a name, and how often the right one: `behaviour grid FOLDER [design|test] [THREADS]`,
//! `behaviour judge FOLDER [design|test] [flows]` and `behaviour cost`.
//!
//! `grid` simulates, and stores the rounds of each flow in the folder, in a file for each cell; it continues where it was stopped.
//! `judge` judges the stored rounds, which takes a second, so that the judge can be changed without another simulation. The cells of
//! `design` were used to choose its thresholds; those of `test` have other round-trip times, rates, buffers, mixes and seeds.
//! `cost` measures the time per packet.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks, files and arguments")]

mod cells;
mod cost;
mod runs;
mod stored;
mod table;

use anyhow::{Result, bail};
use cells::Set;
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| arguments.get(at).map_or("", String::as_str);
    let set = || match word(2) {
        "design" | "" => Ok(Set::Design),
        "test" => Ok(Set::Test),
        other => bail!("unknown set of cells '{other}': use design or test"),
    };
    match word(0) {
        "grid" => runs::all(Path::new(word(1)), set()?, word(3).parse().unwrap_or(2)),
        "judge" => table::print(Path::new(word(1)), set()?, word(3)),
        "cost" => cost::measure(),
        _ => bail!("behaviour grid FOLDER [design|test] [THREADS] | judge FOLDER [design|test] [flows] | cost"),
    }
}
