//! `queuescope sim` of a scenario with a sweep: all its cells, on all cores.
//!
//! What it prints depends on the sweep alone: cells are printed in their order, whichever thread ran them, and what was
//! found among earlier results is noted on standard error.

pub(crate) mod summary;

use crate::args::Sim;
use crate::expressions::of_scenario;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::terminal::note;
use anyhow::{Result, bail};
use queuescope_report::model::NO_METER;
use queuescope_run::ScenarioFile;
use queuescope_run::sweep::{self, Checked, Origin, Plan, Shard, Store, check, threads};
use queuescope_scenario::Scenario;
use std::io::{self, IsTerminal};
use summary::{Summary, unread};

/// Runs a sweep.
///
/// # Errors
/// If a cell cannot be run, or what came of it cannot be written.
pub fn run(args: &Sim, file: &ScenarioFile, scenario: &Scenario) -> Result<Outcome> {
    fixed_and_swept(args, scenario)?;
    if args.telemetry.is_some() {
        bail!(
            "--telemetry is of one run, and the scenario is swept: give --no-sweep, and --set the values that are meant"
        );
    }
    if args.queued.log.is_some() {
        bail!("--log is of one run, and the scenario is swept: give --no-sweep, and --set the values that are meant");
    }
    if args.analysed.only.is_some() || args.question.focus.is_given() {
        bail!(
            "--input, --victims and --show are about what a meter sees, and the figures of a sweep are a link's own: give --no-sweep, and --set the values that are meant"
        );
    }
    if args.meter.as_deref() == Some(NO_METER) {
        bail!("the figures of a sweep are those of a link: give its name to --meter, or --no-sweep");
    }
    let threads = threads(args.sweep.parallel.jobs);
    let checked = checked(args, file, scenario, threads)?;
    let store = args.sweep.results.as_deref().map(Store::create).transpose()?;
    if let Some(store) = &store {
        begin(store, &checked.plan)?;
    }
    let summary = Summary::create(&checked.plan, &args.output)?;
    let shard = args.sweep.shard.unwrap_or(Shard::WHOLE);
    match cells(file, &checked, store.as_ref(), shard, threads, summary) {
        Err(error) if unread(&error) => Ok(Outcome::Whole),
        other => other.map(|()| Outcome::Whole),
    }
}

/// Looks at all cells before one is run.
fn checked(args: &Sim, file: &ScenarioFile, scenario: &Scenario, threads: usize) -> Result<Checked> {
    let progress = Progress::cells(scenario.sweep.len(), "cells checked");
    let checked = check(file, scenario, args.meter.as_deref(), threads, &mut || progress.one()).map_err(of_scenario);
    progress.finish();
    checked
}

/// A value that is set cannot be swept too: which of them is meant is not known.
fn fixed_and_swept(args: &Sim, scenario: &Scenario) -> Result<()> {
    let set = args.overrides.set.iter().filter_map(|set| set.split_once('=')).map(|(path, _)| path.trim());
    for path in set {
        if scenario.sweep.values.iter().any(|(swept, _)| swept == path) {
            bail!(
                "{path} is swept, and --set has one value of it: give --sweep {path}=VALUE instead, or --no-sweep too"
            );
        }
    }
    Ok(())
}

/// Puts the plan into the folder of results.
fn begin(store: &Store, plan: &Plan) -> Result<()> {
    match store.plan()? {
        Some(before) if before == *plan => return Ok(()),
        Some(before) if before.difference(plan).is_some() => {
            note("the results are of another sweep so far; those that this one has too are used, the others stay");
        }
        _ => {}
    }
    Ok(store.keep_plan(plan)?)
}

/// Runs or finds all cells of a shard.
fn cells(
    file: &ScenarioFile,
    checked: &Checked,
    store: Option<&Store>,
    shard: Shard,
    threads: usize,
    mut summary: Summary<'_>,
) -> Result<()> {
    let plan = &checked.plan;
    let (count, with_lines) = (shard.count(plan.count()), summary.wants_lines());
    let (mut earlier, mut again) = (0u64, Vec::new());
    let progress =
        if with_lines && io::stdout().is_terminal() { Progress::hidden() } else { Progress::cells(count, "cells") };
    sweep::run(file, checked, store, shard, threads, with_lines, |cell, summed, origin| {
        progress.one();
        match origin {
            Origin::New => {}
            Origin::Earlier => earlier += 1,
            Origin::Again(why) => again.push((cell, why)),
        }
        summary.add(cell, summed)
    })?;
    progress.finish();
    if let Some(store) = store {
        if earlier > 0 {
            note(&format!("{earlier} of {count} cells were there from an earlier run"));
        }
        for (cell, why) in again {
            let path = store.path(&plan.cells[cell as usize]);
            note(&format!("{} was damaged ({why}), and was made again", path.display()));
        }
    }
    summary.finish()
}
