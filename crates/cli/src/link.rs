//! `queuescope link`: a command behind a link in user space.

mod plan;
mod watched;

use crate::args::{Keep, Link};
use crate::chosen::Chosen;
use crate::files::check_outputs;
use crate::outcome::Outcome;
use crate::outputs::Outputs;
use crate::queued::QueuedLog;
use crate::sim::metered;
use crate::sim::metered::Asked;
use crate::sim::tell::{About, tell};
use crate::stop::Stop;
use crate::views::Views;
use anyhow::{Context, Result};
use plan::Plan;
use queuescope_link::command::{self, Behind};
use queuescope_link::{End, RealTime, Sleep, Timing, Way, Ways, Yard, go_first, sleep_exactly};
use queuescope_report::model::{self, NO_METER};
use queuescope_sim::{Built, EntranceParams, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::process::ExitStatus;
use watched::Watched;

/// How often it is looked whether the command has ended, and what went wrong.
const LOOK: Nanos = Nanos(20_000_000);
/// More packets than this in a thousand that are late by more than a millisecond are the machine's doing.
const LATE_PER_MILLE: u64 = 10;

/// Runs `link`.
///
/// # Errors
/// If nothing could be done: no right to, a link that cannot be, an output that cannot be written.
pub fn run(args: &Link) -> Result<Outcome> {
    let output = &args.output;
    check_outputs(args.trace.as_ref(), [&output.html, &output.parquet])?;
    let chosen = Chosen::of(args.only.as_deref())?;
    let plan = Plan::of(args)?;
    let Built { mut simulation, meters, hosts, .. } = build_without_traffic(&plan.scenario, &plan.files)?;
    let (inside, outside) = hosts[0][0];
    let mut way = |hosts, to| -> Result<Way> {
        let params = EntranceParams { hosts, group: 0, class: Class(0), activity: None };
        Ok(Way { entrance: simulation.entrance(params)?, to })
    };
    let ways = BothWays([way((inside, outside), 1)?, way((outside, inside), 0)?]);
    let stop = Stop::on_signals()?;
    let log = QueuedLog::open(&args.queued)?;
    let views = Views::aside(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let name = plan.name();
    let asked =
        Asked { name: &name, keys: &args.keys, question: &args.question, sketch: &args.sketch, output: &args.output };
    let wanted = args.meter.as_deref();
    let meters = metered((asked, wanted), &plan.scenario, (&simulation, &meters), chosen.as_ref(), (outputs, None))?;
    let sleep = sleep_exactly().context("cannot wake up when it is time")?;
    let yard = Yard::new()?;
    let Yard { inside, outside, .. } = yard;
    let namespace = inside.namespace.as_ref().context("the command's end is in a namespace")?;
    let keeper = std::env::current_exe().context("cannot find the program itself")?;
    let mut behind =
        Behind::run(namespace, &keeper, &args.command, output.json).context("cannot run a command behind a link")?;
    let mut watched = Watched::new(meters, &mut behind, &stop);
    let ends = [inside, outside];
    // Who may not is as exact as others let it be.
    let _ = go_first();
    let mut real = RealTime::begin(simulation, ways, &ends);
    let ran = real.run(Nanos::MAX, LOOK, stop.waker(), &mut watched);
    let (status, meters, failure) = watched.into_parts();
    drop(behind);
    ran?;
    failure.map_or(Ok(()), Err)?;
    let unread = ends.iter().map(End::unread).sum::<std::io::Result<u64>>().unwrap_or_default();
    let told = real_time(real.timing(), sleep, unread);
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let about = About {
        name: name.clone(),
        about: None,
        scenario: plan.scenario.explain(),
        seed: plan.scenario.seed,
        meter,
        groups: Vec::new(),
    };
    let simulation = real.into_simulation();
    let (mut report, recorded) = meters.report(asked, &simulation, Vec::new())?;
    report.sim = Some(model::Sim { real_time: Some(told), ..tell(&simulation, about) });
    let recorded = Stop::noted(Some(&stop), recorded);
    views.write(report, recorded.as_ref())?;
    Ok(Outcome::Ended(status.map_or(1, code)))
}

/// Stands between a link and the command behind it.
///
/// # Errors
/// If it is not in namespaces of its own, or there is no such command.
pub fn keep(args: &Keep) -> Result<Outcome> {
    let program = args.command.first().map(|program| program.display().to_string()).unwrap_or_default();
    command::keep(&args.tie, &args.command).map(Outcome::Ended).with_context(|| format!("cannot run {program}"))
}

/// A status as shells have it.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}

/// Two ends with everything on both sides.
struct BothWays([Way; 2]);

impl Ways for BothWays {
    fn way(&self, from: usize, _key: &FlowKey) -> Option<&Way> {
        self.0.get(from)
    }
}

/// How exact the link was.
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
