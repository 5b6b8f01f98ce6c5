//! `queuescope sim`: simulates a scenario file, and reports on it.

use crate::args::Sim;
use crate::expressions::{analysis_error, scenario_error};
use crate::outcome::{Outcome, both, print};
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::queued::{open, stop as stop_of};
use crate::setup::options;
use crate::sweep;
use crate::views::Views;
use anyhow::{Error, Result, bail};
use queuescope_analysis::{MeteringOptions, Meters, WantedMeters};
use queuescope_ingest::Stop;
use queuescope_recording::{Outputs, SimulatedLog, TelemetryTable, Written};
use queuescope_report::model::{NO_METER, Report, SCENARIO, Skipped};
use queuescope_run::summary::{self, About};
use queuescope_run::{NO_SWEEP, ScenarioFile, check_room, metered_link};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Journey, LinkId, Observer, Simulation, Telemetry, build, files_of};
use queuescope_wire::Nanos;
use std::io::Write;

/// Number of steps of the progress bar.
const STEPS: u64 = 200;

/// Runs `sim`.
///
/// # Errors
/// Fails if the scenario cannot be read or is invalid, if options contradict each other, or if an output cannot be written.
pub fn run(args: &Sim) -> Result<Outcome> {
    let metering_options = metering_options(args)?;
    if (metering_options.chosen.is_some() || args.question.focus.is_given()) && args.meter.as_deref() == Some(NO_METER)
    {
        bail!(
            "--input, --victims and --show are about an analysed queue, and --meter {NO_METER} analyses none: leave one out"
        );
    }
    let output = &args.output;
    check_outputs([&args.scenario], [&output.html, &output.parquet, &args.telemetry])?;
    let file = ScenarioFile::read(&args.scenario, overrides(args))?;
    let scenario = file.scenario().map_err(scenario_error)?;
    if args.explain {
        let effective = scenario.explain();
        let write = |out: &mut dyn Write| out.write_all(effective.as_bytes());
        print(false, write, write)?;
        return Ok(Outcome::Complete);
    }
    if !scenario.sweep.is_empty() {
        return sweep::run(args, &file, &scenario);
    }
    if args.sweep.results.is_some() {
        bail!(
            "--results is for a sweep, and nothing is swept: give --sweep or --seeds, or add a [sweep] to the scenario"
        );
    }
    let named = files_of(&scenario);
    let inputs: Vec<_> = named.paths().map(|path| file.beside(path)).collect();
    check_outputs(inputs.iter().chain([&args.scenario]), [&output.html, &output.parquet, &args.telemetry])?;
    let (files, skipped) = file.files(named)?;
    let built = build(&scenario, &files)?;
    let stop = stop_of(&args.queued)?;
    let log = open(&args.queued)?;
    let log = log.map(|log| SimulatedLog::new(log, &built.simulation, metering_options.chosen.clone()));
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref(), None)?;
    let meters =
        metered(&metering_options, args.meter.as_deref(), &scenario, &built.simulation, &built.meters, outputs)?;
    let (report, written) = simulate(args, &metering_options, &scenario, built, (log, meters), skipped, stop.as_ref())?;
    views.write(report, &written)
}

/// The values of the scenario that the command line replaces.
fn overrides(args: &Sim) -> impl Iterator<Item = Override> {
    let sweep = &args.sweep;
    let lists = sweep.lists.iter().map(Override::sweep);
    let seeds = sweep.seeds.map(|seeds| Override::new(format!("sweep.seeds={seeds}")));
    let not_swept = sweep.no_sweep.then(|| Override::new(NO_SWEEP));
    args.overrides.each().chain(lists).chain(seeds).chain(not_swept)
}

/// How the queues are analysed.
fn metering_options(args: &Sim) -> Result<MeteringOptions> {
    let Sim { keys, question, sketch, output, .. } = args;
    let options = options(keys, question, sketch, output);
    Ok(MeteringOptions {
        name: args.scenario.display().to_string(),
        format: SCENARIO,
        options,
        chosen: args.analysed.chosen()?,
    })
}

/// The observers of a run: the recording to a folder, if any, and the meters.
type RunObservers = (Option<SimulatedLog>, Meters<Outputs>);

/// Runs the simulation to its end or to a signal, and makes the report. `skipped` are notes from before.
fn simulate(
    args: &Sim,
    metering_options: &MeteringOptions,
    scenario: &Scenario,
    built: Built,
    mut observers: RunObservers,
    skipped: Vec<Skipped>,
    stop: Option<&Stop>,
) -> Result<(Report, Written)> {
    let Built { mut simulation, groups, .. } = built;
    let lost = match &args.telemetry {
        None => {
            step_through(scenario.duration, stop, &mut simulation, &mut observers, check)?;
            None
        }
        Some(path) => {
            let mut table = TelemetryTable::create(path, simulation.topology())?;
            let mut both =
                Telemetry::new(simulation.topology(), &mut observers, |journey: &Journey<'_>| table.add(journey));
            step_through(scenario.duration, stop, &mut simulation, &mut both, |both| check(both.inner))?;
            table.finish()
        }
    };
    let (log, meters) = observers;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let (mut report, outputs) = meters.report(metering_options, &simulation, skipped);
    let (written, recorded) =
        both(outputs.finish().map_err(Error::from), log.map(SimulatedLog::finish).transpose().map_err(Error::from))?;
    let mut written = Written { recorded, ..written };
    written.unwritten.extend(lost);
    let about = About::new(scenario, meter, groups).named(&report.input.name);
    report.sim = Some(summary::summarise(&simulation, about));
    Ok((report, written.ended_by(stop)))
}

/// The meters of a run: that of the `wanted` link, or those of the scenario. The first writes the outputs.
pub(crate) fn metered(
    metering_options: &MeteringOptions,
    wanted: Option<&str>,
    scenario: &Scenario,
    simulation: &Simulation,
    links: &[LinkId],
    outputs: Outputs,
) -> Result<Meters<Outputs>> {
    let (link, _) = metered_link(wanted.filter(|name| *name != NO_METER), simulation, links)?;
    let wanted = WantedMeters { first: link, analyses: wanted != Some(NO_METER), others: wanted.is_none() };
    Meters::new(metering_options, simulation, wanted, links, &scenario.meters, outputs).map_err(analysis_error)
}

/// Returns an error of the recording or of the meters since the last call.
fn check((log, meters): &mut RunObservers) -> Result<()> {
    log.as_mut().map_or(Ok(()), SimulatedLog::check)?;
    Ok(meters.check()?)
}

/// Runs to `end`. After each step, checks for errors, and for a signal if `stop` is given.
fn step_through<O: Observer>(
    end: Nanos,
    stop: Option<&Stop>,
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
        if let Some(stop) = stop.filter(|stop| step < STEPS && stop.is_requested()) {
            stop.obey();
            break;
        }
    }
    progress.finish();
    Ok(())
}
