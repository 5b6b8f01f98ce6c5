//! `queuescope sim`: from a scenario file to a report.

mod captured;
pub(crate) mod file;
mod telemetry;
pub(crate) mod tell;

use crate::analysis::Analysis;
use crate::args::{DEFAULT_ALPHA, Keys, Question, Sim};
use crate::capture::noted;
use crate::files::check_outputs;
use crate::outcome::{Outcome, print};
use crate::outputs::Outputs;
use crate::progress::Progress;
use crate::setup::{FLOWS, Scale, finish, params};
use crate::source::{self, Listener, Source};
use crate::sweep;
use crate::views::Views;
use anyhow::{Context, Result, anyhow, bail};
use file::ScenarioFile;
use queuescope_meter::History;
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_report::model::{self, Report, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::{
    Built, Journey, LinkId, Observer, OnItsWay, Output, Simulation, Telemetry, build, files_of, number,
};
use queuescope_wire::{Departure, Flows, Granularity, KeyMask, Nanos, Packet, PacketId};
use std::io::Write;
use telemetry::Table;
use tell::{About, tell};

/// Departures that are remembered where packets leave in any order.
const DEPARTURES: usize = 1 << 20;
/// Where packets leave in any order, how fast the longest wait is forgotten unless told otherwise.
const ACROSS_CLASSES: Nanos = Nanos(100_000_000);
/// Steps of the progress bar.
const STEPS: u64 = 200;
/// What `--meter` says for no analysis.
const NO_METER: &str = "none";

/// Runs `sim`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or an output that cannot be written.
pub fn run(args: &Sim) -> Result<Outcome> {
    let output = &args.output;
    check_outputs([&args.scenario], [&output.html, &output.parquet, &args.telemetry])?;
    let file = ScenarioFile::read(args)?;
    let scenario = file.scenario()?;
    if args.explain {
        let effective = scenario.explain();
        let write = |out: &mut dyn Write| out.write_all(effective.as_bytes());
        print(false, write, write)?;
        return Ok(Outcome::Whole);
    }
    if !scenario.sweep.is_empty() {
        return sweep::run(args, &file, &scenario);
    }
    if args.sweep.results.is_some() {
        bail!("nothing is swept, so there are no --results: give --sweep or --seeds, or the scenario a [sweep]");
    }
    let named = files_of(&scenario);
    let inputs: Vec<_> = named.0.iter().chain(&named.1).map(|path| file.beside(path)).collect();
    check_outputs(inputs.iter().chain([&args.scenario]), [&output.html, &output.parquet, &args.telemetry])?;
    let (files, skipped) = file.files(named)?;
    let built = build(&scenario, &files)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref())?;
    let (report, outputs) = simulate(args, &scenario, (built, skipped), outputs)?;
    outputs.finish()?;
    views.write(report)
}

fn simulate(
    args: &Sim,
    scenario: &Scenario,
    (built, skipped): (Built, Vec<Skipped>),
    outputs: Outputs,
) -> Result<(Report, Outputs)> {
    let Built { mut simulation, groups, meters } = built;
    let analyses = args.meter.as_deref() != Some(NO_METER);
    let (link, name) = metered_link(args.meter.as_deref().filter(|_| analyses), &simulation, &meters)?;
    let rate = simulation.topology().link(link).rate.mean();
    let history = if simulation.is_fifo(link) { History::Fifo } else { History::Departures(DEPARTURES) };
    let (question, keys) = asked(args, scenario);
    let granularities = source::granularities(&keys);
    let scale = Scale::of(Some(rate));
    let mut params = params((&question, &args.sketch, &args.output), history, Some(rate), scale)?;
    if !simulation.is_fifo(link) {
        // Packets of one queue pass those of another: a burst is when the slowest of them wait.
        params.across_classes = params.across_classes.or(Some(ACROSS_CLASSES));
    }
    let mut metered = Metered {
        link: analyses.then_some(link),
        from: simulation.warmup(),
        mask: KeyMask::covering(&granularities),
        analysis: Analysis::new(Flows::new(&granularities, FLOWS), params, outputs)?,
        packets: 0,
        bytes: 0,
        span: None,
    };
    match &args.telemetry {
        None => step_through(scenario.duration, &mut simulation, &mut metered, Metered::check)?,
        Some(path) => {
            let mut table = Table::create(path, simulation.topology())?;
            let mut both =
                Telemetry::new(simulation.topology(), &mut metered, |journey: &Journey<'_>| table.add(journey));
            step_through(scenario.duration, &mut simulation, &mut both, |both| both.inner.check())?;
            table.finish()?;
        }
    }
    let (discipline, _) = simulation.discipline(link);
    let source = Source {
        input: model::Input {
            name: args.scenario.display().to_string(),
            format: "scenario".to_owned(),
            first_ns: metered.span.map_or(0, |(first, _)| first.0),
            damage: None,
        },
        packets: metered.packets,
        bytes: metered.bytes,
        span: metered.span.unwrap_or_default(),
        super_packets: 0,
        rate: Some(rate),
        limit: discipline.to_owned(),
        speedup: "1".to_owned(),
        overhead: "none".to_owned(),
        inner: false,
        split_gso: false,
        skipped: skipped.into_iter().chain(unused_meters(args, scenario)).collect(),
    };
    let (mut report, outputs) = finish(metered.analysis, source, &question, &args.sketch);
    let about = About {
        name: if scenario.name.is_empty() { report.input.name.clone() } else { scenario.name.clone() },
        about: Some(scenario.about.clone()).filter(|about| !about.is_empty()),
        scenario: scenario.explain(),
        seed: scenario.seed,
        meter: if analyses { name } else { NO_METER.to_owned() },
        groups,
    };
    report.sim = Some(tell(&simulation, about));
    Ok((report, outputs))
}

/// What is asked of the queue: what the command line leaves as it is by default, the scenario's meter says.
fn asked(args: &Sim, scenario: &Scenario) -> (Question, Keys) {
    let (mut question, mut keys) = (args.question.clone(), args.keys.clone());
    if let Some(meter) = scenario.meters.first().filter(|_| args.meter.is_none()) {
        question.tau = question.tau.or(meter.tau);
        if question.alpha.0 == DEFAULT_ALPHA {
            question.alpha.0 = meter.alpha;
        }
        if keys.by == Keys::DEFAULT && meter.by != Granularity::FiveTuple {
            keys.by = vec![meter.by];
        }
    }
    (question, keys)
}

/// The scenario's meters that this run does not have.
fn unused_meters(args: &Sim, scenario: &Scenario) -> Option<Skipped> {
    let used = usize::from(args.meter.is_none());
    let unused = scenario.meters.len().saturating_sub(used) as u64;
    noted("unused_meters", unused, "meters of the scenario that were not used: a run has one; --meter LINK chooses it")
}

/// Runs to the end, and looks now and then whether something went wrong.
fn step_through<O: Observer>(
    end: Nanos,
    simulation: &mut Simulation,
    observer: &mut O,
    check: impl Fn(&mut O) -> Result<()>,
) -> Result<()> {
    let progress = Progress::steps(STEPS);
    for step in 1..=STEPS {
        let until = u128::from(end.0) * u128::from(step) / u128::from(STEPS);
        simulation.run_until(Nanos(until as u64), observer);
        if simulation.is_full() {
            bail!("{}", too_many_packets(simulation));
        }
        check(observer)?;
        progress.update(step, simulation.hops());
    }
    progress.finish();
    Ok(())
}

/// Why a simulation that is full does not go on.
pub(crate) fn too_many_packets(simulation: &Simulation) -> String {
    format!(
        "{} packets are on their way or wait, more than the simulator has room for: give queues a limit, or send less",
        simulation.on_their_way()
    )
}

/// The link whose queue is analysed, and its name.
pub(crate) fn metered_link(
    wanted: Option<&str>,
    simulation: &Simulation,
    meters: &[LinkId],
) -> Result<(LinkId, String)> {
    let named = |link: LinkId| (link, simulation.topology().link(link).name.clone());
    let Some(wanted) = wanted else {
        return meters.first().map(|link| named(*link)).context("the scenario has no link to watch");
    };
    let mut links = simulation.topology().links().map(named);
    links.find(|(_, name)| name == wanted).ok_or_else(|| {
        let known: Vec<_> = simulation.measured().map(|link| named(link).1).collect();
        anyhow!("there is no link '{wanted}'; the links are {}", known.join(", "))
    })
}

/// The analysis of what passes one link.
struct Metered {
    /// None: nothing is analysed.
    link: Option<LinkId>,
    /// What happens before does not count.
    from: Nanos,
    mask: KeyMask,
    analysis: Analysis<Flows, Outputs>,
    packets: u64,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
}

impl Metered {
    /// The packet as the analysis knows it.
    fn packet(&mut self, packet: Packet, on_its_way: &OnItsWay, from: Nanos, now: Nanos) -> Packet {
        self.packets += 1;
        self.bytes += packet.size.0;
        let (first, _) = self.span.unwrap_or((from, now));
        self.span = Some((first.min(from), now));
        let flow = self.analysis.intern(&self.mask.mask(&on_its_way.key()), now);
        Packet { id: PacketId(number(packet.id)), flow, ..packet }
    }

    fn check(&mut self) -> Result<()> {
        self.analysis.check()
    }
}

impl Observer for Metered {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &OnItsWay) {
        if Some(link) == self.link && departure.enqueued >= self.from {
            let known = self.packet(departure.packet, packet, departure.enqueued, departure.dequeued);
            self.analysis.departed(&Departure { packet: known, ..*departure });
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &OnItsWay) {
        if Some(link) == self.link && dropped.at >= self.from {
            let known = self.packet(dropped.packet, packet, dropped.enqueued.unwrap_or(dropped.at), dropped.at);
            self.analysis.dropped(&Dropped { packet: known, ..*dropped });
        }
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, _packet: &OnItsWay) {
        if Some(link) == self.link && now >= self.from {
            self.analysis.marked(marked, reason, now);
        }
    }
}
