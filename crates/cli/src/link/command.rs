//! `queuescope link -- COMMAND`: a command behind a link.

use super::{CommandSession, begin_view, link_error, metering_options, report, stop};
use crate::args::Link;
use crate::outcome::{Outcome, ignore_closed_pipe};
use crate::paths::check_outputs;
use crate::queued;
use crate::sim::metered;
use crate::views::Views;
use anyhow::{Context, Result};
use queuescope_link::command::OutputTarget;
use queuescope_link::{CommandLink, Program};
use queuescope_monitor::WatchedLink;
use queuescope_recording::Outputs;
use queuescope_report::model::NO_METER;
use queuescope_run::ScenarioRun;
use queuescope_run::summary::About;
use std::io::{self, Seek};

/// Runs the command behind the link, and reports on its queues.
pub fn run(args: &Link) -> Result<Outcome> {
    let output = &args.output;
    check_outputs(args.trace.as_ref(), [&output.html, &output.parquet, &args.pcapng])?;
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let name = words.collect::<Vec<_>>().join(" ");
    let metering_options = metering_options(args, name.clone())?;
    let link = CommandLink::new(&args.options()).map_err(link_error)?;
    let stop = stop(args)?;
    let log = queued::open(&args.queued)?;
    #[cfg(feature = "fleet")]
    let mut host =
        crate::fleet::QueueHost::begin(&args.fleet, &args.queued, log.as_ref(), format!("link of {name}"), &stop)?;
    let views = Views::aside(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let (simulation, links) = link.network();
    let meters = metered(&metering_options, args.meter.as_deref(), link.scenario(), simulation, links, outputs)?;
    let keeper = std::env::current_exe().context("cannot find the program itself")?;
    let printed = args.view.then(tempfile::tempfile).transpose().context("cannot keep what the command prints")?;
    let target = match &printed {
        Some(file) => OutputTarget::File(file.try_clone().context("cannot keep what the command prints")?),
        None if output.json => OutputTarget::Stderr,
        None => OutputTarget::Inherit,
    };
    let (mut program, ends) = Program::start(&keeper, &args.command, target)?;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let view = begin_view(args, &format!("{meter}: {name}"), &stop)?;
    let has_ended = |now, is_over| Ok(program.has_ended(now, stop.is_requested(), is_over)?);
    let mut watched = WatchedLink::new(meters, view, CommandSession(has_ended));
    let ran = link.carry(&ends, &stop, &mut watched);
    #[cfg(feature = "fleet")]
    host.end();
    let ran = ran?;
    let meters = watched.finish()?;
    if let Some(mut printed) = printed {
        printed.rewind().context("cannot read what the command printed")?;
        ignore_closed_pipe(io::copy(&mut printed, &mut io::stdout().lock()).map(drop))?;
    }
    let ran = ScenarioRun { about: About { name, meter, ..ran.about }, ..ran };
    let (report, written) = report(meters, &metering_options, ran, Vec::new())?;
    let outcome = views.write(report, &written.ended_by(Some(&stop)))?;
    #[cfg(feature = "fleet")]
    host.check()?;
    Ok(match program.code() {
        // An error status of the command takes precedence.
        0 if outcome != Outcome::Complete => outcome,
        code => Outcome::Ended(code),
    })
}
