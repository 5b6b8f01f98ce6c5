//! `queuescope link SCENARIO`: real hosts over the network of a scenario, in real time.

use super::{CommandSession, begin_view, metering_options, report, stop};
use crate::args::Link;
use crate::expressions::scenario_error;
use crate::outcome::Outcome;
use crate::paths::check_outputs;
use crate::queued;
use crate::sim::metered;
use crate::views::Views;
use anyhow::{Result, bail};
use queuescope_link::RealHosts;
use queuescope_monitor::WatchedLink;
use queuescope_recording::Outputs;
use queuescope_report::model::NO_METER;
use queuescope_run::summary::About;
use queuescope_run::{ScenarioFile, ScenarioRun};
use queuescope_sim::{build_without_traffic, files_of};
use std::path::Path;

/// Runs the scenario of `path` on real hosts, and reports on its queues.
pub fn run(args: &Link, path: &Path) -> Result<Outcome> {
    let output = &args.output;
    let metering_options = metering_options(args, path.display().to_string())?;
    check_outputs(args.scenario.as_ref(), [&output.html, &output.parquet, &args.pcapng])?;
    let file = ScenarioFile::read(path, args.overrides.each())?;
    let scenario = file.scenario().map_err(scenario_error)?;
    if !scenario.sweep.is_empty() {
        bail!(
            "a sweep cannot be run on real hosts: choose one of its cells with --set, and remove the sweep with --set sweep={{}}"
        );
    }
    let (files, skipped) = file.files(files_of(&scenario))?;
    let stop = stop(args)?;
    let log = queued::open(&args.queued)?;
    #[cfg(feature = "fleet")]
    let mut host = crate::fleet::QueueHost::begin(
        &args.fleet,
        &args.queued,
        log.as_ref(),
        format!("links of {}", metering_options.name),
        &stop,
    )?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let built = build_without_traffic(&scenario, &files)?;
    let meters =
        metered(&metering_options, args.meter.as_deref(), &scenario, &built.simulation, &built.meters, outputs)?;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let view = begin_view(args, &format!("{meter}: {}", metering_options.name), &stop)?;
    let mut watched = WatchedLink::new(meters, view, CommandSession(|_, is_over| Ok(stop.is_requested() || is_over)));
    let ran = RealHosts::carry(&scenario, &files, built, &stop, &mut watched);
    #[cfg(feature = "fleet")]
    host.end();
    let ran = ran?;
    let ran = ScenarioRun { about: About { meter, ..ran.about }.named(&metering_options.name), ..ran };
    let (report, written) = report(watched.finish()?, &metering_options, ran, skipped)?;
    let outcome = views.write(report, &written.ended_by(Some(&stop)))?;
    #[cfg(feature = "fleet")]
    host.check()?;
    Ok(outcome)
}
