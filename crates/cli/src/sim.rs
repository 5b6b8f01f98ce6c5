//! `queuescope sim`: from a scenario file to a report.

mod tell;

use crate::analysis::Analysis;
use crate::args::Sim;
use crate::files::check_outputs;
use crate::outcome::{Outcome, print};
use crate::outputs::Outputs;
use crate::progress::Progress;
use crate::setup::{FLOWS, Scale, finish, params};
use crate::source::{self, Listener, Source};
use crate::views::Views;
use anyhow::{Context, Result, anyhow};
use queuescope_meter::History;
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_report::model;
use queuescope_report::model::Report;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, LinkId, Observer, OnItsWay, Output, Simulation, build, number};
use queuescope_wire::{Departure, FlowId, Flows, KeyMask, Nanos, Packet, PacketId};
use std::fs;
use std::path::Path;
use tell::{About, tell};

/// Departures that are remembered where packets leave in any order.
const DEPARTURES: usize = 1 << 20;
/// Steps of the progress bar.
const STEPS: u64 = 200;

/// Runs `sim`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or an output that cannot be written.
pub fn run(args: &Sim) -> Result<Outcome> {
    let output = &args.output;
    check_outputs([&args.scenario], [&output.html, &output.parquet])?;
    let scenario = read(args)?;
    if args.explain {
        let effective = scenario.explain();
        let write = |mut out: &mut dyn std::io::Write| write!(&mut out, "{effective}");
        print(false, write, write)?;
        return Ok(Outcome::Whole);
    }
    let built = build(&scenario, args.scenario.parent().unwrap_or(Path::new(".")))?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref())?;
    let (report, outputs) = simulate(args, &scenario, built, outputs)?;
    outputs.finish()?;
    views.write(report)
}

/// Reads the scenario with what replaces parts of it.
fn read(args: &Sim) -> Result<Scenario> {
    let name = args.scenario.display().to_string();
    let text = fs::read(&args.scenario).with_context(|| format!("cannot read {name}"))?;
    let overrides: Vec<_> = args.set.iter().map(Override::new).collect();
    Scenario::parse_bytes(&name, &text, &overrides).map_err(|error| anyhow!("{}", error.render(width(), true)))
}

fn simulate(args: &Sim, scenario: &Scenario, built: Built, outputs: Outputs) -> Result<(Report, Outputs)> {
    let Built { mut simulation, groups, meter } = built;
    let params_of_link = simulation.topology().link(meter);
    let (rate, name) = (params_of_link.rate.mean(), params_of_link.name.clone());
    let history = if simulation.is_fifo(meter) { History::Fifo } else { History::Departures(DEPARTURES) };
    let granularities = source::granularities(&args.keys);
    let door = Flows::new(&granularities, FLOWS);
    let scale = Scale::of(Some(rate));
    let params = params((&args.question, &args.sketch, &args.output), history, Some(rate), scale)?;
    let mut metered = Metered {
        link: meter,
        from: simulation.warmup(),
        mask: KeyMask::covering(&granularities),
        analysis: Analysis::new(door, params, outputs)?,
        packets: 0,
        bytes: 0,
        span: (Nanos::MAX, Nanos::ZERO),
    };
    let progress = Progress::steps(STEPS);
    let end = scenario.duration;
    for step in 1..=STEPS {
        simulation.run_until(Nanos((u128::from(end.0) * u128::from(step) / u128::from(STEPS)) as u64), &mut metered);
        progress.update(step, simulation.hops());
        metered.analysis.check()?;
    }
    progress.finish();
    let source = metered.source(args, &simulation, rate);
    let (mut report, outputs) = finish(metered.analysis, source, &args.question, &args.sketch);
    report.sim = Some(tell(
        &simulation,
        About {
            name: scenario.name.clone().unwrap_or_else(|| args.scenario.display().to_string()),
            about: scenario.about.clone(),
            scenario: scenario.explain(),
            seed: scenario.seed,
            meter: name,
            groups,
        },
    ));
    Ok((report, outputs))
}

/// The analysis of what passes one link.
struct Metered {
    link: LinkId,
    /// What happens before does not count.
    from: Nanos,
    mask: KeyMask,
    analysis: Analysis<Flows, Outputs>,
    packets: u64,
    bytes: u64,
    span: (Nanos, Nanos),
}
