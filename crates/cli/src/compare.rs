//! `queuescope compare`: one scenario in two worlds.

use crate::args::Compare;
use crate::outcome::{Outcome, print};
use crate::sim::file::ScenarioFile;
use crate::sim::tell::tell;
use crate::world::{Ran, World};
use anyhow::{Context, Result, bail};
use queuescope_report::model::{Comparison, Sim};
use queuescope_report::{json, text};
use queuescope_scenario::Override;
use queuescope_sim::files_of;

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
    let mut pairs = Vec::new();
    for run in 0..u64::from(args.runs) {
        let seed = Override::new(format!("seed={}", scenario.seed + run));
        let scenario = file.variant(&[seed])?;
        let told = |world: World| -> Result<Sim> {
            let Ran { simulation, about, real_time } = world.run(&scenario, &files)?;
            Ok(Sim { real_time, ..tell(&simulation, about.named(&file.name)) })
        };
        pairs.push((told(World::Simulated)?, told(World::Real)?));
    }
    let comparison = Comparison::of(&pairs).context("no run came to its end")?;
    print(
        args.json,
        |mut out| json::write_comparison(&comparison, &mut out),
        |mut out| text::write_comparison(&comparison, &mut out),
    )?;
    Ok(Outcome::Whole)
}
