//! One cell of a sweep: a simulation without analysis, and its part of the summary.

use super::plan::Plan;
use super::store::CellResult;
use crate::error::Error;
use crate::links::metered_link;
use crate::scenario_file::ScenarioFile;
use crate::summary::{summarise, totals};
use crate::world::{ScenarioRun, Simulated, World};
use queuescope_report::json;
use queuescope_report::model::{SweepCell, SweepFigures};
use queuescope_scenario::{Cell, Scenario};
use queuescope_sim::{Built, Files, build};

/// Checks that a scenario can be built, and has the link `meter` if that is given.
///
/// # Errors
/// Returns why it cannot be built, or that the link is missing.
pub fn check(meter: Option<&str>, scenario: &Scenario, files: &Files) -> Result<(), Error> {
    let Built { simulation, meters, .. } = build(scenario, files)?;
    metered_link(meter, &simulation, &meters).map(|_| ())
}

/// Runs a cell.
///
/// # Errors
/// Fails if the cell's scenario is not valid, or the simulation is full.
pub fn run(file: &ScenarioFile, cell: &Cell, files: &Files) -> Result<CellResult, Error> {
    simulate(&file.variant(&cell.overrides)?, files)
}

/// Runs a scenario.
fn simulate(scenario: &Scenario, files: &Files) -> Result<CellResult, Error> {
    let ScenarioRun { simulation, about, .. } = Simulated.run(scenario, files)?;
    Ok(CellResult { totals: totals(&simulation), sim: summarise(&simulation, about) })
}

/// The part of a cell's result that the sweep's summary needs.
#[derive(Debug)]
pub struct CellSummary {
    /// The figures.
    pub figures: SweepFigures<f64>,
    /// The link that the figures are about.
    pub meter: String,
    /// The whole cell as a line of JSON, if requested.
    pub line: Option<Vec<u8>>,
}

impl CellSummary {
    /// Takes the summary's part of the result of cell `index` of `plan`. With `with_line`, also writes the whole cell as JSON.
    ///
    /// # Errors
    /// Fails if the cell cannot be written as JSON.
    pub fn new(plan: &Plan, index: u64, result: CellResult, with_line: bool) -> Result<Self, Error> {
        let CellResult { totals, mut sim } = result;
        if let Some(meter) = &plan.meter {
            sim.meter.clone_from(meter);
        }
        if sim.name.is_empty() {
            sim.name.clone_from(&plan.name);
        }
        let figures = SweepFigures::from_sim(&sim, &totals);
        let meter = sim.meter.clone();
        if !with_line {
            return Ok(Self { figures, meter, line: None });
        }
        let (seed, parameters) = (plan.seed(index), plan.parameters(index));
        let cell = SweepCell { index, key: plan.cells[index as usize].clone(), seed, parameters, figures, totals, sim };
        let mut line = Vec::new();
        json::write_sweep_cell(cell, &mut line)?;
        Ok(Self { figures, meter, line: Some(line) })
    }
}
