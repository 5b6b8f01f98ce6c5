//! Sweeps: many variants of a scenario, each a cell, on all cores.
//!
//! The results of a sweep depend on the sweep alone: cells are returned in order, whichever thread ran them.

mod cell;
mod check;
mod interval;
mod key;
mod merge;
mod plan;
mod rows;
mod shard;
mod store;
mod work;

use crate::error::Error;
use crate::scenario_file::ScenarioFile;
pub use cell::CellSummary;
pub use check::{CellsError, CheckedSweep, check};
pub use interval::{mean, mean_at};
pub use key::{Sum, hex, key, sum, sum_of};
pub use merge::{MergeGaps, Shards};
pub use plan::Plan;
pub use rows::Rows;
pub use shard::{Shard, ShardError};
pub use store::{About, CellResult, Store, StoredCell};
pub use work::{in_order, threads};

/// Runs all cells of a shard on `threads` threads, or takes their earlier results from a `store`. Passes each to `take` in
/// order, with its number in the sweep. With `with_lines`, the cell's summary has the whole cell as a line of JSON.
///
/// # Errors
/// Fails if a cell cannot be run, or its result cannot be stored. Returns the first error of `take`.
pub fn run<E: From<Error> + Send>(
    file: &ScenarioFile,
    checked: &CheckedSweep,
    store: Option<&Store>,
    shard: Shard,
    threads: usize,
    with_lines: bool,
    mut take: impl FnMut(u64, CellSummary, Origin) -> Result<(), E>,
) -> Result<(), E> {
    let CheckedSweep { plan, cells, files } = checked;
    let one = |number: u64| {
        let index = shard.cell(number);
        let key = &plan.cells[index as usize];
        let (result, origin) = match store.map_or(Ok(StoredCell::Nothing), |store| store.load(key))? {
            StoredCell::Whole(result) => (*result, Origin::Earlier),
            other => {
                let result = cell::run(file, &cells[index as usize], files)?;
                let result = match store {
                    Some(store) => store.keep(key, plan.about(index), result)?,
                    None => result,
                };
                (result, if let StoredCell::Damaged(why) = other { Origin::Again(why) } else { Origin::New })
            }
        };
        Ok((CellSummary::new(plan, index, result, with_lines)?, origin))
    };
    in_order(threads, shard.count(plan.count()), one, |number, (summed, origin)| {
        take(shard.cell(number), summed, origin)
    })
}

/// Where the result of a cell comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was run.
    New,
    /// An earlier run stored it.
    Earlier,
    /// It was run again, because the stored result is damaged, for this reason.
    Again(String),
}
