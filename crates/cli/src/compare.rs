//! `queuescope compare`: one scenario in two worlds.

use crate::args::Compare;
use crate::outcome::{Outcome, print};
use crate::paths::{cannot_write, check_outputs, create};
use crate::sim::file::ScenarioFile;
use crate::sim::tell::tell;
use crate::world::{Ran, World};
use anyhow::{Context, Result, bail};
use queuescope_report::model::{Comparison, Sim};
use queuescope_report::{html, json, text};
use queuescope_scenario::Override;
use queuescope_sim::files_of;
use std::io::{BufWriter, Write};

/// Runs `compare`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or not here.
pub fn run(args: &Compare) -> Result<Outcome> {
    check_outputs([&args.scenario], [&args.html])?;
    let file = ScenarioFile::with(&args.scenario, &args.set)?;
    let scenario = file.scenario()?;
    if !scenario.sweep.is_empty() {
        bail!("a sweep is not compared: choose one of its cells by --set, and leave it away by --set sweep={{}}");
    }
    let (files, mut left_out) = file.files(files_of(&scenario))?;
    // What cannot be written is told before the time is spent.
    let page = args.html.as_ref().map(|path| anyhow::Ok((path, create(path)?))).transpose()?;
    let mut pairs = Vec::new();
    for run in 0..u64::from(args.runs) {
        let seed = Override::new(format!("seed={}", scenario.seed + run));
        let scenario = file.variant(&[seed])?;
        let mut told = |world: World| -> Result<Sim> {
            let Ran { simulation, about, real_time, skipped } = world.run(&scenario, &files)?;
            left_out.extend(skipped);
            Ok(Sim { real_time, ..tell(&simulation, about.named(&file.name)) })
        };
        pairs.push((told(World::Simulated)?, told(World::Real)?));
    }
    let comparison = Comparison::of(&pairs, left_out).context("no run came to its end")?;
    if let Some((path, file)) = page {
        let mut out = BufWriter::new(file);
        html::write_comparison(&comparison, &mut out).and_then(|()| out.flush()).with_context(|| cannot_write(path))?;
    }
    print(
        args.json,
        |mut out| json::write_comparison(&comparison, &mut out),
        |mut out| text::write_comparison(&comparison, &mut out),
    )?;
    Ok(Outcome::Whole)
}
