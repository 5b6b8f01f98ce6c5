//! `queuescope compare`: one scenario in two worlds.

use crate::args::{Compare, Keys, Output, Question, Sketch};
use crate::link::run_scenario;
use crate::outcome::{Outcome, print};
use crate::outputs::Outputs;
use crate::sim::file::ScenarioFile;
use crate::sim::metered::Asked;
use crate::sim::tell::{About, tell};
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use clap::Parser;
use queuescope_report::model::{Comparison, NO_METER, Sim};
use queuescope_report::{json, text};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Files, build, files_of};

/// Runs `compare`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or not here.
pub fn run(args: &Compare) -> Result<Outcome> {
    let file = ScenarioFile::with(&args.scenario, &args.set)?;
    let scenario = file.scenario()?;
    if !scenario.sweep.is_empty() {
        bail!("a sweep is not compared: choose one of its cells by --set, and leave it away by --set sweep={{}}");
    }
    let (files, _) = file.files(files_of(&scenario))?;
    let stop = Stop::on_signals()?;
    let asked = Nothing::asked();
    let mut pairs = Vec::new();
    for run in 0..u64::from(args.runs) {
        let seed = Override::new(format!("seed={}", scenario.seed + run));
        let scenario = file.variant(&[seed])?;
        let simulated = simulated(&scenario, &files)?;
        let asked = Asked {
            name: &file.name,
            keys: &asked.keys,
            question: &asked.question,
            sketch: &asked.sketch,
            output: &asked.output,
        };
        let files = (&files, Vec::new());
        let (report, _) = run_scenario((asked, Some(NO_METER)), &scenario, files, None, Outputs::default(), &stop)?;
        if stop.is_asked() {
            break;
        }
        pairs.push((simulated, report.sim.context("a run has a report")?));
    }
    let comparison = Comparison::of(&pairs).context("no run came to its end")?;
    print(
        args.json,
        |mut out| json::write_comparison(&comparison, &mut out),
        |mut out| text::write_comparison(&comparison, &mut out),
    )?;
    Ok(Outcome::Whole)
}

/// What the simulator says of it.
fn simulated(scenario: &Scenario, files: &Files) -> Result<Sim> {
    let Built { mut simulation, groups, .. } = build(scenario, files)?;
    simulation.run_until(scenario.duration, &mut ());
    if simulation.is_full() {
        bail!("{}", crate::sim::too_many_packets(&simulation));
    }
    let about = About {
        name: scenario.name.clone(),
        about: Some(scenario.about.clone()).filter(|about| !about.is_empty()),
        scenario: scenario.explain(),
        seed: scenario.seed,
        meter: NO_METER.to_owned(),
        groups,
    };
    Ok(tell(&simulation, about))
}

/// Nothing is asked of queues but what links count themselves.
#[derive(Debug, Parser)]
struct Nothing {
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    sketch: Sketch,
    #[command(flatten)]
    output: Output,
}

impl Nothing {
    fn asked() -> Self {
        Self::parse_from(["compare"])
    }
}
