//! One cell: a simulation that nobody watches, and what is told of it.

use super::plan::Plan;
use super::store::CellResult;
use crate::sim::file::ScenarioFile;
use crate::sim::tell::{About, tell, totals};
use crate::sim::{metered_link, too_many_packets};
use anyhow::{Result, bail};
use queuescope_report::json;
use queuescope_report::model::{SweepCell, SweepFigures};
use queuescope_scenario::{Cell, Scenario};
use queuescope_sim::{Built, Files, Simulation, build};

/// Whether a scenario can be built, and has the link that is asked for.
///
/// # Errors
/// If not, why.
pub fn check(meter: Option<&str>, scenario: &Scenario, files: &Files) -> Result<()> {
    let Built { simulation, meters, .. } = build(scenario, files)?;
    metered_link(meter, &simulation, &meters).map(|_| ())
}

/// Runs a cell.
///
/// # Errors
/// If it cannot be.
pub fn run(file: &ScenarioFile, cell: &Cell, files: &Files) -> Result<CellResult> {
    simulate(&file.variant(&cell.overrides)?, files)
}

/// Runs a scenario.
///
/// # Errors
/// If it cannot be.
pub fn simulate(scenario: &Scenario, files: &Files) -> Result<CellResult> {
    let (simulation, about) = run_whole(scenario, files)?;
    Ok(CellResult { totals: totals(&simulation), sim: tell(&simulation, about) })
}

/// Runs a scenario, for who asks more of it than a report tells.
///
/// # Errors
/// If it cannot be.
pub fn run_whole(scenario: &Scenario, files: &Files) -> Result<(Simulation, About)> {
    let Built { mut simulation, groups, meters, .. } = build(scenario, files)?;
    // What is kept does not depend on which link the summary is about.
    let (_, meter) = metered_link(None, &simulation, &meters)?;
    simulation.run_until(scenario.duration, &mut ());
    if simulation.is_full() {
        bail!("{}", too_many_packets(&simulation));
    }
    let about = About {
        name: scenario.name.clone(),
        about: Some(scenario.about.clone()).filter(|about| !about.is_empty()),
        scenario: scenario.explain(),
        seed: scenario.seed,
        meter,
        groups,
    };
    Ok((simulation, about))
}

/// What a summary takes of a cell.
#[derive(Debug)]
pub struct Told {
    /// The figures.
    pub figures: SweepFigures<f64>,
    /// The link that they are about.
    pub meter: String,
    /// The whole cell as a line of JSON, if that is wanted.
    pub line: Option<Vec<u8>>,
}

impl Told {
    /// What is told of a cell of a plan.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(plan: &Plan, index: u64, key: &str, result: CellResult, with_line: bool) -> Result<Self> {
        let CellResult { totals, mut sim } = result;
        if let Some(meter) = &plan.meter {
            sim.meter.clone_from(meter);
        }
        if sim.name.is_empty() {
            sim.name.clone_from(&plan.name);
        }
        let figures = SweepFigures::of(&sim, &totals);
        let meter = sim.meter.clone();
        if !with_line {
            return Ok(Self { figures, meter, line: None });
        }
        let (seed, parameters) = (plan.seed(index), plan.parameters(index));
        let cell = SweepCell { index, key: key.to_owned(), seed, parameters, figures, totals, sim };
        let mut line = Vec::new();
        json::write_sweep_cell(cell, &mut line)?;
        Ok(Self { figures, meter, line: Some(line) })
    }
}
