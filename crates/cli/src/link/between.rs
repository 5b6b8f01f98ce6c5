//! `queuescope link --between FIRST SECOND`: a link between two interfaces.

use super::{CommandSession, begin_view, link_error, metering_options, report, stop};
use crate::args::Link;
use crate::outcome::Outcome;
use crate::paths::check_outputs;
use crate::queued;
use crate::sim::metered;
use crate::terminal::note;
use crate::views::Views;
use anyhow::{Result, bail};
use queuescope_link::{CommandLink, LinkEnds};
use queuescope_monitor::WatchedLink;
use queuescope_recording::Outputs;
use queuescope_report::model::NO_METER;
use queuescope_run::ScenarioRun;
use queuescope_run::summary::About;
use queuescope_wire::Nanos;

/// Carries the frames of two interfaces, and reports on the queues between them.
pub fn run(args: &Link, names: [&str; 2]) -> Result<Outcome> {
    let output = &args.output;
    check_outputs(args.trace.as_ref(), [&output.html, &output.parquet, &args.pcapng])?;
    if names[0] == names[1] {
        bail!("--between {} {}: names one interface twice, and a link is between two", names[0], names[1]);
    }
    let name = format!("{} - {}", names[0], names[1]);
    let metering_options = metering_options(args, name.clone())?;
    let link = CommandLink::new(&args.options()).map_err(link_error)?;
    let ends = LinkEnds::between(names, link.border().as_ref())?;
    let stop = stop(args)?;
    let log = queued::open(&args.queued)?;
    #[cfg(feature = "fleet")]
    let mut host =
        crate::fleet::QueueHost::begin(&args.fleet, &args.queued, log.as_ref(), format!("link {name}"), &stop)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let (simulation, links) = link.network();
    let meters = metered(&metering_options, args.meter.as_deref(), link.scenario(), simulation, links, outputs)?;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let view = begin_view(args, &format!("{meter}: {name}"), &stop)?;
    if view.is_none() {
        note(&format!("carrying the frames of {} and {}", names[0], names[1]));
    }
    let end = args.duration.unwrap_or(Nanos::MAX);
    let has_ended = |now, is_over| Ok(stop.is_requested() || is_over || now >= end);
    let mut watched = WatchedLink::new(meters, view, CommandSession(has_ended));
    let ran = link.carry(&ends, &stop, &mut watched);
    #[cfg(feature = "fleet")]
    host.end();
    let ran = ran?;
    let ran = ScenarioRun { about: About { name, meter, ..ran.about }, ..ran };
    let (report, written) = report(watched.finish()?, &metering_options, ran, Vec::new())?;
    let outcome = views.write(report, &written.ended_by(Some(&stop)))?;
    #[cfg(feature = "fleet")]
    host.check()?;
    Ok(outcome)
}
