//! `queuescope compare`: one scenario in simulation and on real hosts.

use crate::args::Compare;
use crate::expressions::scenario_error;
use crate::outcome::{Outcome, print};
use crate::paths::{check_outputs, create};
use anyhow::{Context, Result, bail};
use queuescope_link::RealHosts;
use queuescope_report::model::{Comparison, Sim};
use queuescope_report::{html, json, text};
use queuescope_run::{ScenarioFile, ScenarioRun, Simulated, World};
use queuescope_scenario::Override;
use queuescope_sim::files_of;

/// Runs `compare`.
///
/// # Errors
/// Fails if the scenario cannot be read or is invalid, if it cannot be run on this machine, or if an output cannot be
/// written.
pub fn run(args: &Compare) -> Result<Outcome> {
    check_outputs([&args.scenario], [&args.html])?;
    let file = ScenarioFile::read(&args.scenario, args.overrides.each())?;
    let scenario = file.scenario().map_err(scenario_error)?;
    if !scenario.sweep.is_empty() {
        bail!(
            "a sweep cannot be compared: choose one of its cells with --set, and remove the sweep with --set sweep={{}}"
        );
    }
    let (files, mut left_out) = file.files(files_of(&scenario))?;
    // Create the page first: an output that cannot be written should fail before the runs.
    let page = args.html.as_deref().map(create).transpose()?;
    let mut pairs = Vec::new();
    for run in 0..u64::from(args.runs) {
        let seed = Override::new(format!("seed={}", scenario.seed + run));
        let scenario = file.variant(&[seed]).map_err(scenario_error)?;
        let mut sim_in = |world: &dyn World| -> Result<Sim> {
            let mut ran = world.run(&scenario, &files)?;
            left_out.append(&mut ran.skipped);
            Ok(ScenarioRun { about: ran.about.named(&file.name), ..ran }.summary())
        };
        pairs.push((sim_in(&Simulated)?, sim_in(&RealHosts)?));
    }
    let comparison = Comparison::from_pairs(&pairs, left_out).context("no run was completed")?;
    if let Some(page) = page {
        page.write_whole(|out| html::write_comparison(&comparison, out))?;
    }
    print(
        args.json,
        |mut out| json::write_comparison(&comparison, &mut out),
        |mut out| text::write_comparison(&comparison, &mut out),
    )?;
    Ok(Outcome::Complete)
}
