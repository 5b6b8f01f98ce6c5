//! `queuescope sim`: from a scenario file to a report.

pub(crate) mod metered;

use crate::args::Sim;
use crate::expressions::{explained, of_scenario};
use crate::outcome::{Outcome, print};
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::queued;
use crate::sweep;
use crate::views::Views;
use anyhow::{Result, bail};
use metered::{Asked, Metered, Meters};
use queuescope_ingest::records::Departures;
use queuescope_ingest::{Chosen, Flag, Stop};
use queuescope_recording::{Outputs, SimulatedLog, TelemetryTable, Written};
use queuescope_report::model::{NO_METER, Report, SCENARIO, Skipped};
use queuescope_run::summary::{self, About};
use queuescope_run::{NO_SWEEP, ScenarioFile, check_room, metered_link};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Journey, LinkId, Observer, Simulation, Telemetry, build, files_of};
use queuescope_wire::Nanos;
use std::io::Write;

/// Steps of the progress bar.
const STEPS: u64 = 200;

/// Runs `sim`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or an output that cannot be written.
pub fn run(args: &Sim) -> Result<Outcome> {
    let chosen = Chosen::of(Flag::Input, args.only.as_deref()).map_err(explained)?;
    if (chosen.is_some() || args.question.focus.is_given()) && args.meter.as_deref() == Some(NO_METER) {
        bail!(
            "--input, --victims and --show are about a queue that is analysed, and with --meter {NO_METER} none is: leave one out"
        );
    }
    let output = &args.output;
    check_outputs([&args.scenario], [&output.html, &output.parquet, &args.telemetry])?;
    let file = ScenarioFile::read(&args.scenario, overrides(args))?;
    let scenario = file.scenario().map_err(of_scenario)?;
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
    let stop = queued::stop(&args.queued)?;
    let log = queued::open(&args.queued)?;
    let log = log.map(|log| SimulatedLog::new(log, &built.simulation, chosen.clone()));
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref(), None)?;
    let (report, written) =
        simulate(args, &scenario, (built, skipped), chosen.as_ref(), (outputs, log, stop.as_ref()))?;
    views.write(report, &written)
}

/// What the command line changes of a scenario.
fn overrides(args: &Sim) -> impl Iterator<Item = Override> {
    let sweep = &args.sweep;
    let lists = sweep.lists.iter().map(Override::sweep);
    let seeds = sweep.seeds.map(|seeds| Override::new(format!("sweep.seeds={seeds}")));
    let not_swept = sweep.no_sweep.then(|| Override::new(NO_SWEEP));
    args.set.iter().map(Override::new).chain(lists).chain(seeds).chain(not_swept)
}

fn simulate(
    args: &Sim,
    scenario: &Scenario,
    (built, skipped): (Built, Vec<Skipped>),
    chosen: Option<&Chosen<Departures>>,
    (outputs, log, stop): (Outputs, Option<SimulatedLog>, Option<&Stop>),
) -> Result<(Report, Written)> {
    let Built { mut simulation, groups, meters, .. } = built;
    let name = args.scenario.display().to_string();
    let asked = asked(args, &name);
    let wanted = args.meter.as_deref();
    let mut meters = metered((asked, wanted), scenario, (&simulation, &meters), chosen, (outputs, log))?;
    let lost = match &args.telemetry {
        None => {
            step_through((scenario.duration, stop), &mut simulation, &mut meters, Meters::check)?;
            None
        }
        Some(path) => {
            let mut table = TelemetryTable::create(path, simulation.topology())?;
            let mut both =
                Telemetry::new(simulation.topology(), &mut meters, |journey: &Journey<'_>| table.add(journey));
            step_through((scenario.duration, stop), &mut simulation, &mut both, |both| both.inner.check())?;
            table.finish()
        }
    };
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let (mut report, mut written) = meters.report(asked, &simulation, skipped)?;
    written.unwritten.extend(lost);
    let about = About::of(scenario, meter, groups).named(&report.input.name);
    report.sim = Some(summary::of(&simulation, about));
    Ok((report, written.ended_by(stop)))
}

/// The meters of a run: that of the link that was asked for, or those of the scenario. The first has the outputs. What
/// the scenario asks of a link it asks also if only that link was asked for.
pub(crate) fn metered(
    (asked, wanted): (Asked<'_>, Option<&str>),
    scenario: &Scenario,
    (simulation, links): (&Simulation, &[LinkId]),
    chosen: Option<&Chosen<Departures>>,
    (outputs, log): (Outputs, Option<SimulatedLog>),
) -> Result<Meters> {
    let (link, _) = metered_link(wanted.filter(|name| *name != NO_METER), simulation, links)?;
    let own = links.iter().zip(&scenario.meters).find_map(|(watched, own)| (*watched == link).then_some(own));
    let analyses = wanted != Some(NO_METER);
    let first = Metered::new(asked, simulation, (link, analyses), own, chosen.cloned(), outputs)?;
    let others = links.iter().zip(&scenario.meters).skip(1).filter(|_| wanted.is_none());
    let others = others.map(|(link, own)| {
        Metered::new(asked, simulation, (*link, true), Some(own), chosen.cloned(), Outputs::default())
    });
    Ok(Meters { first, others: others.collect::<Result<_>>()?, log })
}

fn asked<'a>(args: &'a Sim, name: &'a str) -> Asked<'a> {
    let Sim { keys, question, sketch, output, .. } = args;
    Asked { name, format: SCENARIO, keys, question, sketch, output }
}

/// Runs to the end, and looks now and then whether something went wrong or a signal came.
fn step_through<O: Observer>(
    (end, stop): (Nanos, Option<&Stop>),
    simulation: &mut Simulation,
    observer: &mut O,
    check: impl Fn(&mut O) -> Result<()>,
) -> Result<()> {
    let progress = Progress::steps(STEPS);
    for step in 1..=STEPS {
        let until = u128::from(end.0) * u128::from(step) / u128::from(STEPS);
        simulation.run_until(Nanos(until as u64), observer);
        check_room(simulation)?;
        check(observer)?;
        progress.update(step, simulation.hops());
        if let Some(stop) = stop.filter(|stop| step < STEPS && stop.is_asked()) {
            stop.obey();
            break;
        }
    }
    progress.finish();
    Ok(())
}
