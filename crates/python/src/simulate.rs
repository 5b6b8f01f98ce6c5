//! `simulate`: a scenario, with its report.

use crate::analyze::Watched;
use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};
use crate::own;
use crate::report::RawReport;
use crate::task::{self, Task};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::analysis::{MeteringOptions, Meters, WantedMeters};
use queuescope::ingest::{Flag, PacketFilter};
use queuescope::recording::{Outputs, TelemetryTable};
use queuescope::report::model::{NO_METER, SCENARIO};
use queuescope::run::summary::{self, About};
use queuescope::run::{self, ScenarioFile, check_room, metered_link};
use queuescope::scenario::{Override, Scenario};
use queuescope::sim::{Built, Journey, Observer, Own, Simulation, Telemetry, build_with, files_of};
use queuescope::{Nanos, analysis::AnalysisOptions};
use std::path::{Path, PathBuf};

/// Number of steps of a run. Signals are handled between them.
const STEPS: u64 = 1000;

/// Simulates a scenario, and makes its report.
#[pyfunction]
#[pyo3(signature = (scenario, arguments, progress=None))]
pub fn simulate(
    py: Python<'_>,
    scenario: &Bound<'_, PyDict>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let arguments = Arguments(arguments);
    let file = file(&Arguments(scenario))?;
    let own = own::named(&arguments)?;
    let job = Job::new(file, own, &arguments)?;
    task::run(py, progress, move |task| job.run(task))
}

/// A scenario with all defaults, as TOML.
#[pyfunction]
pub fn explain(scenario: &Bound<'_, PyDict>) -> PyResult<String> {
    let file = file(&Arguments(scenario))?;
    Ok(file.scenario().map_err(Failure::from)?.explain())
}

/// The scenario of arguments: a `path`, or `text` with `name` and `folder`; with `overrides` and lists of a `sweep`.
pub fn file(arguments: &Arguments<'_, '_>) -> Outcome<ScenarioFile> {
    let texts = |name| -> Outcome<Vec<String>> {
        Ok(arguments.get(name)?.map(|value| value.extract()).transpose()?.unwrap_or_default())
    };
    let overrides = texts("overrides")?.into_iter().map(Override::new);
    let sweeps = texts("sweep")?.into_iter().map(Override::sweep);
    let overrides: Vec<_> = overrides.chain(sweeps).collect();
    match arguments.text("text")? {
        Some(text) => {
            let name = arguments.text("name")?.unwrap_or_else(|| "scenario".to_owned());
            let folder = arguments.text("folder")?.unwrap_or_else(|| ".".to_owned());
            Ok(ScenarioFile::from_text(name, text, folder, overrides))
        }
        None => {
            let path = arguments.text("path")?.ok_or_else(|| Failure::Value("a scenario is missing".to_owned()))?;
            Ok(ScenarioFile::read(Path::new(&path), overrides)?)
        }
    }
}

/// What is to be done.
struct Job {
    file: ScenarioFile,
    scenario: Scenario,
    own: Own,
    options: AnalysisOptions,
    only: Option<String>,
    meter: Option<String>,
    keeps: bool,
    parquet: Option<PathBuf>,
    telemetry: Option<PathBuf>,
}

impl Job {
    fn new(file: ScenarioFile, own: Own, arguments: &Arguments<'_, '_>) -> Outcome<Self> {
        let scenario = file.scenario()?;
        if !scenario.sweep.is_empty() {
            return Err(Failure::Value(
                "the scenario has a sweep, which is many simulations: use sweep(), or leave its [sweep] out with sweep={}"
                    .to_owned(),
            ));
        }
        let path = |name| Ok::<_, Failure>(arguments.get(name)?.map(|value| value.extract::<PathBuf>()).transpose()?);
        Ok(Self {
            file,
            scenario,
            own,
            options: arguments.analysis()?,
            only: arguments.text("input")?,
            meter: arguments.text("meter")?,
            keeps: arguments.flag("packets")?.unwrap_or(false),
            parquet: path("parquet")?,
            telemetry: path("telemetry")?,
        })
    }

    fn run(self, task: &Task) -> Outcome<RawReport> {
        let scenario = &self.scenario;
        let (files, skipped) = self.file.files(files_of(scenario))?;
        let built = build_with(scenario, &files, &self.own).map_err(run::Error::from)?;
        let Built { mut simulation, groups, meters: links, .. } = built;
        let chosen = PacketFilter::from_flag(Flag::Input, self.only.as_deref())?;
        let options = MeteringOptions { name: self.file.name.clone(), format: SCENARIO, options: self.options, chosen };
        let meter = self.meter.as_deref();
        let (link, _) = metered_link(meter.filter(|name| *name != NO_METER), &simulation, &links)?;
        let wanted = WantedMeters { first: link, analyses: meter != Some(NO_METER), others: meter.is_none() };
        let outputs = Outputs::create(None, self.parquet.as_deref(), None).map_err(Failure::input)?;
        let watched = Watched::new(outputs, self.keeps);
        let mut meters = Meters::new(&options, &simulation, wanted, &links, &scenario.meters, watched)?;
        let lost = match &self.telemetry {
            None => {
                step_through(scenario.duration, task, &mut simulation, &mut meters)?;
                None
            }
            Some(path) => {
                let mut table = TelemetryTable::create(path, simulation.topology()).map_err(Failure::input)?;
                let topology = simulation.topology().clone();
                let mut both = Telemetry::new(&topology, &mut meters, |journey: &Journey<'_>| table.add(journey));
                step_through(scenario.duration, task, &mut simulation, &mut both)?;
                table.finish()
            }
        };
        meters.check().map_err(Failure::input)?;
        let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
        let (mut report, watched) = meters.report(&options, &simulation, skipped);
        let (mut written, packets) = watched.finish()?;
        written.unwritten.extend(lost);
        report.skipped.extend(written.notes());
        let about = About::new(scenario, meter, groups).named(&report.input.name);
        report.sim = Some(summary::summarise(&simulation, about));
        Ok(RawReport::new(report, packets))
    }
}

/// Runs to `end`, or until a stop is requested.
fn step_through(end: Nanos, task: &Task, simulation: &mut Simulation, observer: &mut impl Observer) -> Outcome<()> {
    for step in 1..=STEPS {
        let until = u128::from(end.0) * u128::from(step) / u128::from(STEPS);
        simulation.run_until(Nanos(until as u64), observer);
        check_room(simulation)?;
        task.progress(step, simulation.hops());
        if task.stop().is_requested() {
            break;
        }
    }
    Ok(())
}
