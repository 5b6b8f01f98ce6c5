//! `queuescope sim` of a scenario with a sweep: runs all its cells, on all cores.
//!
//! The output depends only on the sweep: cells are printed in their order, whichever thread ran them. Notes on earlier
//! results go to standard error.

pub(crate) mod summary;

use crate::args::Sim;
use crate::expressions::scenario_error;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::terminal::note;
use anyhow::{Result, bail};
use queuescope_report::format::count;
use queuescope_report::model::NO_METER;
use queuescope_run::ScenarioFile;
use queuescope_run::sweep::{self, CheckedSweep, Origin, Plan, Shard, Store, check, threads};
use queuescope_scenario::Scenario;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use summary::{Summary, is_closed_pipe};

/// Runs a sweep.
///
/// # Errors
/// Fails if options contradict the sweep, if a cell cannot be run, or if a result cannot be written.
pub fn run(args: &Sim, file: &ScenarioFile, scenario: &Scenario) -> Result<Outcome> {
    fixed_and_swept(args, scenario)?;
    if args.telemetry.is_some() {
        bail!(
            "--telemetry is for one run, and the scenario has a sweep: give --no-sweep, and choose values with --set"
        );
    }
    if args.queued.log.is_some() {
        bail!("--log is for one run, and the scenario has a sweep: give --no-sweep, and choose values with --set");
    }
    if args.analysed.only.is_some() || args.question.focus.is_given() {
        bail!(
            "--input, --victims and --show are about what a meter sees, and the figures of a sweep are of a whole link: give --no-sweep, and choose values with --set"
        );
    }
    if args.meter.as_deref() == Some(NO_METER) {
        bail!("the figures of a sweep are those of a link: give its name to --meter, or give --no-sweep");
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
        Err(error) if is_closed_pipe(&error) => Ok(Outcome::Complete),
        other => other.map(|()| Outcome::Complete),
    }
}

/// Checks all cells before one is run.
fn checked(args: &Sim, file: &ScenarioFile, scenario: &Scenario, threads: usize) -> Result<CheckedSweep> {
    let progress = Progress::cells(scenario.sweep.len(), "cells checked");
    let checked = check(file, scenario, args.meter.as_deref(), threads, &mut || progress.one()).map_err(scenario_error);
    progress.finish();
    checked
}

/// Checks that no value is both set and swept, as it would not be clear which to use.
fn fixed_and_swept(args: &Sim, scenario: &Scenario) -> Result<()> {
    let set = args.overrides.set.iter().filter_map(|set| set.split_once('=')).map(|(path, _)| path.trim());
    for path in set {
        if scenario.sweep.values.iter().any(|(swept, _)| swept == path) {
            bail!(
                "{path} is swept, and --set gives one value for it: give --sweep {path}=VALUE instead, or add --no-sweep"
            );
        }
    }
    Ok(())
}

/// Writes the plan to the folder of results.
fn begin(store: &Store, plan: &Plan) -> Result<()> {
    match store.plan()? {
        Some(before) if before == *plan => return Ok(()),
        Some(before) if before.difference(plan).is_some() => note(&match before.format.cmp(&plan.format) {
            Ordering::Less => older(&before, plan),
            _ => "the results so far are of another sweep; results of cells that both sweeps have are used, the others stay".to_owned(),
        }),
        _ => {}
    }
    Ok(store.keep_plan(plan)?)
}

/// The note on results of an older format. Their cells usually have other keys, since the scenario's text has changed, too.
fn older(before: &Plan, plan: &Plan) -> String {
    let known: BTreeSet<_> = before.cells.iter().collect();
    let used = plan.cells.iter().filter(|key| known.contains(key)).count() as u64;
    let results = match used {
        0 => "all cells are computed again".to_owned(),
        _ => {
            format!("those of {} of {} cells are used, the others are computed again", count(used), count(plan.count()))
        }
    };
    format!(
        "the results so far have the older format {}, of version {}: {results}; the old files stay",
        before.format, before.version
    )
}

/// Runs all cells of a shard, or takes their results from the store.
fn cells(
    file: &ScenarioFile,
    checked: &CheckedSweep,
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
            note(&format!("{earlier} of {count} cells had results from an earlier run"));
        }
        for (cell, why) in again {
            let path = store.path(&plan.cells[cell as usize]);
            note(&format!("{} was damaged ({why}), and was run again", path.display()));
        }
    }
    summary.finish()
}
