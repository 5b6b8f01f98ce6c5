//! `queuescope merge`: the results of a sweep's shards, as one run of the whole would print them.

use crate::args::Merge;
use crate::outcome::Outcome;
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::sweep::summary::{Summary, is_closed_pipe};
use crate::terminal::note;
use anyhow::Result;
use queuescope_run::sweep::{MergeGaps, Shards};

/// Runs `merge`.
///
/// # Errors
/// Fails if a folder has no results, if the results are of different sweeps, or if an output cannot be written.
pub fn run(args: &Merge) -> Result<Outcome> {
    let output = &args.output;
    check_outputs([], [&output.html, &output.parquet])?;
    let shards = Shards::open(&args.results)?;
    let summary = Summary::create(shards.plan(), output)?;
    let gaps = match merged(&shards, summary) {
        Err(error) if is_closed_pipe(&error) => return Ok(Outcome::Complete),
        gaps => gaps?,
    };
    gaps.notes(&shards)?.iter().for_each(|text| note(text));
    Ok(Outcome::from_damage(gaps.damage(&shards)))
}

/// Prints the summary, and returns the cells that are missing.
fn merged(shards: &Shards, mut summary: Summary<'_>) -> Result<MergeGaps> {
    let progress = Progress::cells(shards.plan().count(), "cells");
    let gaps = shards.merge(summary.wants_lines(), |cell, summed| {
        progress.one();
        summed.map_or(Ok(()), |summed| summary.add(cell, summed))
    });
    progress.finish();
    let gaps = gaps?;
    summary.finish()?;
    Ok(gaps)
}
