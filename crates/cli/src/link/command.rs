//! A command behind a link.

use super::plan::Plan;
use super::watched::Watched;
use super::{asked, begun, notes, real_time, report_on, shown, stop};
use crate::args::Link;
use crate::outcome::{Outcome, told};
use crate::outputs::Outputs;
use crate::paths::check_outputs;
use crate::queued::QueuedLog;
use crate::sim::metered;
use crate::views::Views;
use anyhow::{Context, Result};
use queuescope_link::command::{Behind, Prints, Signal};
use queuescope_link::{Way, Ways, Yard, sleep_exactly};
use queuescope_report::model::{self, NO_METER};
use queuescope_run::summary::{self, About};
use queuescope_sim::{Built, EntranceParams, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::io::{self, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How often it is looked whether the command has ended, and what went wrong.
const LOOK: Nanos = Nanos(20_000_000);
/// How long a command that was told to end may take, each time.
const GRACE: Nanos = Nanos(1_000_000_000);

/// Runs it.
pub fn run(args: &Link) -> Result<Outcome> {
    let output = &args.output;
    check_outputs(args.trace.as_ref(), [&output.html, &output.parquet, &args.pcapng])?;
    let plan = Plan::of(args)?;
    let name = &plan.command;
    let asked = asked(args, name.clone())?;
    let Built { mut simulation, meters, hosts, .. } = build_without_traffic(&plan.scenario, &plan.files)?;
    let (inside, outside) = hosts[0][0];
    let mut way = |hosts, to| -> Result<Way> {
        let params = EntranceParams { hosts, group: 0, class: Class(0), activity: None };
        Ok(Way { entrance: simulation.entrance(params)?, to, l4s: false })
    };
    let ways = BothWays([way((inside, outside), 1)?, way((outside, inside), 0)?]);
    let stop = stop(args)?;
    let log = QueuedLog::open(&args.queued)?;
    let views = Views::aside(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let meters = metered(&asked, args.meter.as_deref(), &plan.scenario, (&simulation, &meters), outputs)?;
    let sleep = sleep_exactly().context("cannot wake up when it is time")?;
    let Yard { inside, outside, .. } = Yard::new()?;
    let namespace = inside.namespace.as_ref().context("the command's end is in a namespace")?;
    let keeper = std::env::current_exe().context("cannot find the program itself")?;
    let printed = args.view.then(tempfile::tempfile).transpose().context("cannot keep what the command prints")?;
    let prints = match &printed {
        Some(file) => Prints::Into(file.try_clone().context("cannot keep what the command prints")?),
        None if output.json => Prints::Aside,
        None => Prints::Here,
    };
    let behind = Behind::run(namespace, &keeper, &args.command, prints);
    let mut behind = behind.context("cannot run a command behind a link")?;
    let shown = shown(args, &format!("{}: {name}", meters.first.name().unwrap_or(NO_METER)), &stop)?;
    let (mut status, mut ending) = (None, Ending(None));
    let mut watched = Watched::new(meters, shown, |now, is_over| {
        status = behind.ended()?;
        if status.is_none() && (stop.is_asked() || is_over) {
            status = ending.go_on(now, stop.is_asked(), &mut behind)?;
        }
        Ok(status.is_some())
    });
    let ends = [inside, outside];
    let mut real = begun(&plan.scenario, simulation, ways, &ends, sleep);
    real.run(Nanos::MAX, LOOK, stop.waker(), &mut watched)?;
    let meters = watched.finish()?;
    if let Some(mut printed) = printed {
        printed.rewind().context("cannot read what the command printed")?;
        told(io::copy(&mut printed, &mut io::stdout().lock()).map(drop))?;
    }
    let told = real_time(&real, &ends)?;
    let skipped = notes(&real).collect();
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let about = About { name: name.clone(), ..About::of(&plan.scenario, meter, Vec::new()) };
    let simulation = real.into_simulation();
    let (report, outputs) = meters.report(&asked, &simulation, skipped);
    let written = outputs.finish()?;
    let report = report_on(report, model::Sim { real_time: Some(told), ..summary::of(&simulation, about) });
    let outcome = views.write(report, &written.ended_by(Some(&stop)))?;
    Ok(match status.map_or(1, code) {
        // What the command says of itself comes first.
        0 if outcome != Outcome::Whole => outcome,
        code => Outcome::Ended(code),
    })
}

/// How a command is ended that does not end by itself: when it is sent what next.
struct Ending(Option<(Nanos, Signal)>);

impl Ending {
    /// How it ended, if it did. A signal that came here may have come to the command, too, which has some time then; who looks on and
    /// wants no more has asked nobody else.
    fn go_on(&mut self, now: Nanos, is_signalled: bool, behind: &mut Behind) -> io::Result<Option<ExitStatus>> {
        let later = now.saturating_add(GRACE);
        let first = if is_signalled { (later, Signal::TERM) } else { (now, Signal::INT) };
        let (at, signal) = *self.0.get_or_insert(first);
        if now < at {
            return Ok(None);
        }
        if signal == Signal::KILL {
            return behind.end().map(Some);
        }
        self.0 = Some((later, if signal == Signal::INT { Signal::TERM } else { Signal::KILL }));
        behind.signal(signal).map(|()| None)
    }
}

/// A status as shells have it.
fn code(status: ExitStatus) -> u8 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}

/// Two ends with everything on both sides.
struct BothWays([Way; 2]);

impl Ways for BothWays {
    fn way(&self, from: usize, _key: &FlowKey) -> Option<&Way> {
        self.0.get(from)
    }
}
