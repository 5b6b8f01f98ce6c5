//! `queuescope link`: a command, the hosts of a scenario, or two interfaces, at a link in user space.

mod between;
mod command;
mod scenario;

use crate::args::{Keep, Link};
use crate::expressions::rendered;
use crate::outcome::Outcome;
use crate::setup::options;
use crate::terminal::note;
use anyhow::{Context, Result, bail};
use queuescope_analysis::{MeteringOptions, Meters, Show};
use queuescope_ingest::Stop;
use queuescope_link::command::keep as supervise;
use queuescope_link::{Error, complete_report};
use queuescope_monitor::{LinkView, Session, Unwritten, give_up};
use queuescope_recording::{Outputs, Written};
use queuescope_report::model::{COMMANDS_LINK, INTERFACES_LINK, NO_METER, Report, SCENARIO, Sim, Skipped};
use queuescope_run::{ScenarioRun, summary};
use queuescope_wire::{Granularity, Nanos};
use std::io::{self, ErrorKind, Write};

/// Runs `link`.
///
/// # Errors
/// Fails if the user lacks the rights, if the link is invalid, or if an output cannot be written.
pub fn run(args: &Link) -> Result<Outcome> {
    check_args(args)?;
    match (&args.scenario, &args.between[..]) {
        (Some(scenario), _) => scenario::run(args, scenario),
        (None, [first, second]) => between::run(args, [first, second]),
        (None, _) => command::run(args),
    }
}

/// Runs `keep`, which supervises the command behind a link.
///
/// # Errors
/// Fails if the process is not in namespaces of its own.
pub fn keep(args: &Keep) -> Result<Outcome> {
    let program = args.command.first().map(|program| program.display().to_string()).unwrap_or_default();
    let status = supervise(&args.tie, &args.command).with_context(|| format!("cannot run {program}"))?;
    Ok(Outcome::Ended(status.unwrap_or_else(|why| {
        let _ = writeln!(io::stderr(), "error: cannot run {program}: {why}");
        if why.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
    })))
}

/// Exit statuses of shells: the command is not found, or cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// How the queues are analysed. `name` is what the report calls the run.
fn metering_options(args: &Link, name: String) -> Result<MeteringOptions> {
    let format = match (&args.scenario, &args.between[..]) {
        (Some(_), _) => SCENARIO,
        (None, []) => COMMANDS_LINK,
        (None, _) => INTERFACES_LINK,
    };
    let Link { keys, question, sketch, output, .. } = args;
    Ok(MeteringOptions {
        name,
        format,
        options: options(keys, question, sketch, output),
        chosen: args.analysed.chosen()?,
    })
}

/// The handler of stop signals. If the view is drawn, the terminal is restored before a second signal ends the process.
fn stop(args: &Link) -> Result<Stop> {
    Ok(if args.view { Stop::on_signals_but_first(give_up) } else { Stop::on_signals() }?)
}

/// The view of `--view`, if it is given.
fn begin_view(args: &Link, name: &str, stop: &Stop) -> Result<Option<LinkView>> {
    let granularity = args.keys.by.first().copied().unwrap_or(Granularity::FiveTuple);
    let show = Show::from_text(args.question.focus.show.as_deref())?;
    Ok(args.view.then(|| LinkView::begin(name, granularity, show, stop)).transpose()?)
}

/// Checks for options that contradict each other, before anything is created.
fn check_args(args: &Link) -> Result<()> {
    let writes = args.pcapng.is_some() || args.output.parquet.is_some() || args.queued.log.is_some();
    let filters = args.analysed.only.is_some() || args.question.focus.is_given();
    if args.meter.as_deref() == Some(NO_METER) && (filters || writes) {
        bail!(
            "--input, --victims, --show, --log, --pcapng and --parquet are about packets of an analysed queue, and --meter {NO_METER} analyses none: leave one out"
        );
    }
    if args.view && args.meter.as_deref() == Some(NO_METER) {
        bail!("--view shows an analysed queue, and --meter {NO_METER} analyses none: leave one out");
    }
    Ok(())
}

/// A session on a link that ends when this function returns true.
struct CommandSession<F>(F);

impl<F: FnMut(Nanos, bool) -> Result<bool>> Session<Outputs> for CommandSession<F> {
    type Error = anyhow::Error;

    fn has_ended(&mut self, now: Nanos, is_over: bool) -> Result<bool> {
        (self.0)(now, is_over)
    }

    fn unwritten(&mut self, outputs: &mut Outputs) -> Vec<Unwritten> {
        let unwritten = outputs.unwritten();
        unwritten.iter().map(|unwritten| Unwritten { line: unwritten.line(), news: unwritten.news() }).collect()
    }

    fn note(&mut self, text: &str) {
        note(text);
    }
}

/// The report on a link, and the files that were written beside it.
fn report(
    meters: Meters<Outputs>,
    metering_options: &MeteringOptions,
    ran: ScenarioRun,
    mut skipped: Vec<Skipped>,
) -> Result<(Report, Written)> {
    let ScenarioRun { simulation, about, real_time, skipped: left_out } = ran;
    skipped.extend(left_out);
    let (mut report, outputs) = meters.report(metering_options, &simulation, skipped);
    complete_report(&mut report, Sim { real_time, ..summary::summarise(&simulation, about) });
    Ok((report, outputs.finish()?))
}

/// Words an error in the options of a link, and points at the faulty part.
fn link_error(error: Error) -> anyhow::Error {
    match error {
        Error::Text(error) => rendered(&error),
        error => error.into(),
    }
}
