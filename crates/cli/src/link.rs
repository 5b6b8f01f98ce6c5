//! `queuescope link`: a command, or the hosts of a scenario, behind a link in user space.

mod command;
mod plan;
mod real;
mod watched;

pub use real::run_unwatched;

use crate::args::{Keep, Link};
use crate::outcome::Outcome;
use crate::sim::metered::Asked;
use anyhow::{Context, Result};
use queuescope_link::{Sleep, Timing, command::keep as stand_between};
use queuescope_report::model;

/// Runs `link`.
///
/// # Errors
/// If nothing could be done: no right to, a link that cannot be, an output that cannot be written.
pub fn run(args: &Link) -> Result<Outcome> {
    match &args.scenario {
        None => command::run(args),
        Some(scenario) => real::run(args, scenario),
    }
}

/// Stands between a link and the command behind it.
///
/// # Errors
/// If it is not in namespaces of its own, or there is no such command.
pub fn keep(args: &Keep) -> Result<Outcome> {
    let program = args.command.first().map(|program| program.display().to_string()).unwrap_or_default();
    stand_between(&args.tie, &args.command).map(Outcome::Ended).with_context(|| format!("cannot run {program}"))
}

/// What is asked of the queues, where `name` is what is run.
fn asked<'a>(args: &'a Link, name: &'a str) -> Asked<'a> {
    Asked { name, keys: &args.keys, question: &args.question, sketch: &args.sketch, output: &args.output }
}

/// More packets than this in a thousand that are late by more than a millisecond are the machine's doing.
const LATE_PER_MILLE: u64 = 10;

/// How exact the link was; packets may have been lost before it, since they were not read in time.
fn real_time(timing: &Timing, sleep: Sleep, unread: u64) -> model::RealTime {
    let [p50, p99, worst] = [50.0, 99.0, 100.0].map(|percentile| timing.percentile(percentile).0);
    model::RealTime {
        packets: timing.packets(),
        error_p50_ns: p50,
        error_p99_ns: p99,
        error_worst_ns: worst,
        late_packets: timing.late(),
        sleep_p50_ns: sleep.p50.0,
        sleep_p99_ns: sleep.p99.0,
        unread_packets: unread,
        is_limited_by_machine: unread > 0 || timing.late() * 1_000 > timing.packets() * LATE_PER_MILLE,
    }
}
