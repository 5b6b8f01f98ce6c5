//! `queuescope sim`: from a scenario file to a report.

use crate::args::Sim;
use crate::expressions::{of_analysis, of_scenario};
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

/// Steps of the progress bar.
const STEPS: u64 = 200;

/// Runs `sim`.
///
/// # Errors
/// If nothing could be done: no scenario, or one that cannot be, or an output that cannot be written.
pub fn run(args: &Sim) -> Result<Outcome> {
    let asked = asked(args)?;
    if (asked.chosen.is_some() || args.question.focus.is_given()) && args.meter.as_deref() == Some(NO_METER) {
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
    let inputs: Vec<_> = named.paths().map(|path| file.beside(path)).collect();
    check_outputs(inputs.iter().chain([&args.scenario]), [&output.html, &output.parquet, &args.telemetry])?;
    let (files, skipped) = file.files(named)?;
    let built = build(&scenario, &files)?;
    let stop = stop_of(&args.queued)?;
    let log = open(&args.queued)?;
    let log = log.map(|log| SimulatedLog::new(log, &built.simulation, asked.chosen.clone()));
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref(), None)?;
    let meters = metered(&asked, args.meter.as_deref(), &scenario, &built.simulation, &built.meters, outputs)?;
    let (report, written) = simulate(args, &asked, &scenario, built, (log, meters), skipped, stop.as_ref())?;
    views.write(report, &written)
}

/// What the command line changes of a scenario.
fn overrides(args: &Sim) -> impl Iterator<Item = Override> {
    let sweep = &args.sweep;
    let lists = sweep.lists.iter().map(Override::sweep);
    let seeds = sweep.seeds.map(|seeds| Override::new(format!("sweep.seeds={seeds}")));
    let not_swept = sweep.no_sweep.then(|| Override::new(NO_SWEEP));
    args.overrides.each().chain(lists).chain(seeds).chain(not_swept)
}

/// What is asked of the queues.
fn asked(args: &Sim) -> Result<MeteringOptions> {
    let Sim { keys, question, sketch, output, .. } = args;
    let options = options(keys, question, sketch, output);
    Ok(MeteringOptions {
        name: args.scenario.display().to_string(),
        format: SCENARIO,
        options,
        chosen: args.analysed.chosen()?,
    })
}

/// What observes a run: the recording to a folder, if there is one, and the meters.
type Observing = (Option<SimulatedLog>, Meters<Outputs>);

/// Runs what was built, to its end or to a signal, and reports what was found, with what was `skipped` before.
fn simulate(
    args: &Sim,
    asked: &MeteringOptions,
    scenario: &Scenario,
    built: Built,
    mut observing: Observing,
    skipped: Vec<Skipped>,
    stop: Option<&Stop>,
) -> Result<(Report, Written)> {
    let Built { mut simulation, groups, .. } = built;
    let lost = match &args.telemetry {
        None => {
            step_through(scenario.duration, stop, &mut simulation, &mut observing, check)?;
            None
        }
        Some(path) => {
            let mut table = TelemetryTable::create(path, simulation.topology())?;
            let mut both =
                Telemetry::new(simulation.topology(), &mut observing, |journey: &Journey<'_>| table.add(journey));
            step_through(scenario.duration, stop, &mut simulation, &mut both, |both| check(both.inner))?;
            table.finish()
        }
    };
    let (log, meters) = observing;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let (mut report, outputs) = meters.report(asked, &simulation, skipped);
    let (written, recorded) =
        both(outputs.finish().map_err(Error::from), log.map(SimulatedLog::finish).transpose().map_err(Error::from))?;
    let mut written = Written { recorded, ..written };
    written.unwritten.extend(lost);
    let about = About::of(scenario, meter, groups).named(&report.input.name);
    report.sim = Some(summary::of(&simulation, about));
    Ok((report, written.ended_by(stop)))
}

/// The meters of a run: that of the link that is `wanted`, or those of the scenario. The first has the outputs.
pub(crate) fn metered(
    asked: &MeteringOptions,
    wanted: Option<&str>,
    scenario: &Scenario,
    simulation: &Simulation,
    links: &[LinkId],
    outputs: Outputs,
) -> Result<Meters<Outputs>> {
    let (link, _) = metered_link(wanted.filter(|name| *name != NO_METER), simulation, links)?;
    let wanted = WantedMeters { first: link, analyses: wanted != Some(NO_METER), others: wanted.is_none() };
    Meters::new(asked, simulation, wanted, links, &scenario.meters, outputs).map_err(of_analysis)
}

/// What went wrong with the recording and the meters since the last call.
fn check((log, meters): &mut Observing) -> Result<()> {
    log.as_mut().map_or(Ok(()), SimulatedLog::check)?;
    Ok(meters.check()?)
}

/// Runs to `end`, and looks now and then whether something went wrong or a signal came, if one may `stop` the run.
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
