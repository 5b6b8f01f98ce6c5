//! `queuescope link`: a command, or the hosts of a scenario, behind a link in user space.

mod command;
mod plan;
mod real;
mod shown;
mod watched;

pub use real::RealHosts;

use crate::args::{Keep, Link};
use crate::expressions::explained;
use crate::outcome::Outcome;
use crate::setup::options;
use anyhow::{Context, Result, bail};
use queuescope_analysis::{Asked, Show};
use queuescope_ingest::notes::{noted, parser_notes};
use queuescope_ingest::{Chosen, Flag, Stop};
use queuescope_link::command::keep as stand_between;
use queuescope_link::{End, HeldBack, RealTime, Sleep, Ways};
use queuescope_monitor::give_up;
use queuescope_queue::PipelineParams;
use queuescope_report::model::{self, COMMANDS_LINK, NO_METER, Report, SCENARIO, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::Simulation;
use queuescope_wire::{ByteCount, Granularity};
use shown::Shown;
use std::io::{self, ErrorKind, Write};
use std::num::NonZero;
use std::thread;

/// Runs `link`.
///
/// # Errors
/// If nothing could be done: no right to, a link that cannot be, an output that cannot be written.
pub fn run(args: &Link) -> Result<Outcome> {
    check_args(args)?;
    match &args.scenario {
        None => command::run(args),
        Some(scenario) => real::run(args, scenario),
    }
}

/// Stands between a link and the command behind it.
///
/// # Errors
/// If it is not in namespaces of its own.
pub fn keep(args: &Keep) -> Result<Outcome> {
    let program = args.command.first().map(|program| program.display().to_string()).unwrap_or_default();
    let status = stand_between(&args.tie, &args.command).with_context(|| format!("cannot run {program}"))?;
    Ok(Outcome::Ended(status.unwrap_or_else(|why| {
        let _ = writeln!(io::stderr(), "error: cannot run {program}: {why}");
        if why.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
    })))
}

/// As shells have it: there is no such command, or it is none.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// What is asked of the queues, where `name` is what is run.
fn asked(args: &Link, name: String) -> Result<Asked> {
    let chosen = Chosen::of(Flag::Input, args.only.as_deref()).map_err(explained)?;
    let format = if args.scenario.is_some() { SCENARIO } else { COMMANDS_LINK };
    let Link { keys, question, sketch, output, .. } = args;
    Ok(Asked { name, format, options: options(keys, question, sketch, output), chosen })
}

/// Packets are held back at times if they are for more than one of so many parts of the time.
const HELD_BACK_PARTS: u64 = 10;
/// More packets than this in a thousand that are late by more than a millisecond are the machine's doing.
const LATE_PER_MILLE: u64 = 10;

/// Who asks for an end; a terminal that is drawn on is given back before a second signal ends the process.
fn stop(args: &Link) -> Result<Stop> {
    Ok(if args.view { Stop::on_signals_but_first(give_up) } else { Stop::on_signals() }?)
}

/// What a person sees meanwhile, if that is asked for.
fn shown(args: &Link, name: &str, stop: &Stop) -> Result<Option<Shown>> {
    let granularity = args.keys.by.first().copied().unwrap_or(Granularity::FiveTuple);
    let show = Show::of(args.question.focus.show.as_deref())?;
    args.view.then(|| Shown::begin(name, (granularity, show), stop)).transpose()
}

/// What makes no sense together is refused before anything is made.
fn check_args(args: &Link) -> Result<()> {
    let writes = args.pcapng.is_some() || args.output.parquet.is_some() || args.queued.log.is_some();
    let filters = args.only.is_some() || args.question.focus.is_given();
    if args.meter.as_deref() == Some(NO_METER) && (filters || writes) {
        bail!(
            "--input, --victims, --show, --log, --pcapng and --parquet are about packets of a queue that is analysed, and with \
             --meter {NO_METER} none is: leave one out"
        );
    }
    if args.view && args.meter.as_deref() == Some(NO_METER) {
        bail!("--view shows a queue that is analysed, and with --meter {NO_METER} none is: leave one out");
    }
    Ok(())
}

/// The network of a scenario in real time. It reads TCP headers where there is a program that does.
fn begun<'a, W: Ways>(
    scenario: &Scenario,
    simulation: Simulation,
    ways: W,
    ends: &'a [End; 2],
    sleep: Sleep,
) -> RealTime<'a, W> {
    let real = RealTime::begin(simulation, ways, ends, sleep);
    let reads = |program: &PipelineParams| matches!(program, PipelineParams::AckWindow(_));
    let mut programs = scenario.network().links.into_iter().filter_map(|link| link.pipeline);
    if programs.any(|program| reads(&program)) { real.with_tcp_headers() } else { real }
}

/// What a link did not carry, or not as it was meant.
fn notes<W: Ways>(real: &RealTime<'_, W>) -> impl Iterator<Item = Skipped> {
    let counts = real.counts();
    let none = noted("no_way", counts.no_way, "packets for an address that no host of the link has");
    let lost = noted("not_taken", counts.not_taken, "packets that this machine had no memory for as they arrived");
    let uncut = noted("uncut", counts.uncut, "super-packets that could not be cut, and went through as one packet");
    none.into_iter().chain(lost).chain(uncut).chain(parser_notes(real.parser()))
}

/// A report with how exact the link was: packets that were lost before it are of flows that nobody knows.
fn report_on(mut report: Report, sim: model::Sim) -> Report {
    let unread = sim.real_time.as_ref().map_or(0, |real| real.unread_packets);
    let others = report.others.iter_mut().map(|other| &mut other.report.totals);
    others.chain([&mut report.totals]).for_each(|totals| totals.miss_flows_of(unread));
    report.sim = Some(sim);
    report
}

/// How exact a link was; packets may have been lost before it, since they were not read in time.
fn real_time<W: Ways>(real: &RealTime<'_, W>, ends: &[End; 2]) -> Result<model::RealTime> {
    let unread = ends.iter().map(End::unread).sum::<io::Result<u64>>();
    let unread = unread.context("cannot tell what the interfaces of the link lost")?;
    let (timing, sleep) = (real.timing(), real.sleep());
    let [p50, p99, worst] = [50.0, 99.0, 100.0].map(|percentile| timing.percentile(percentile).0);
    let seen = real.held_back();
    let is_held_back = seen.time.0 > seen.of.0 / HELD_BACK_PARTS;
    let is_late = timing.late() * 1_000 > timing.packets() * LATE_PER_MILLE;
    Ok(model::RealTime {
        packets: timing.packets(),
        error_p50_ns: p50,
        error_p99_ns: p99,
        error_worst_ns: worst,
        late_packets: timing.late(),
        sleep_p50_ns: sleep.p50.0,
        sleep_p99_ns: sleep.p99.0,
        unread_packets: unread,
        held_back: held_back(&seen, real.simulation()),
        is_limited_by_machine: unread > 0 || is_late || is_held_back,
    })
}

/// What the machine held back, if it did.
fn held_back(seen: &HeldBack, simulation: &Simulation) -> Option<model::HeldBack> {
    let seconds = seen.time.as_secs_f64();
    let per_second = |bytes: ByteCount| bytes.0 as f64 * 8.0 / seconds;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Some(model::HeldBack {
        time_ns: seen.time.0,
        of_ns: seen.of.0,
        link: simulation.topology().link(seen.link?).name.clone(),
        asked_bps: per_second(seen.able),
        carried_bps: per_second(seen.sent),
        moving_share: seen.moving.as_secs_f64() / seconds,
        idle_share: seen.idle.map(|idle| idle.as_secs_f64() / seconds / processors as f64),
    })
}
