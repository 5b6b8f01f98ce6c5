//! One cell: a simulation that nobody watches, and what a summary takes of it.

use super::plan::Plan;
use super::store::CellResult;
use crate::error::Error;
use crate::links::metered_link;
use crate::scenario_file::ScenarioFile;
use crate::summary::{of, totals};
use crate::world::{Ran, Simulated, World};
use queuescope_report::json;
use queuescope_report::model::{SweepCell, SweepFigures};
use queuescope_scenario::{Cell, Scenario};
use queuescope_sim::{Built, Files, build};

/// Whether a scenario can be built, and has the link that is asked for.
///
/// # Errors
/// If not, why.
pub fn check(meter: Option<&str>, scenario: &Scenario, files: &Files) -> Result<(), Error> {
    let Built { simulation, meters, .. } = build(scenario, files)?;
    metered_link(meter, &simulation, &meters).map(|_| ())
}

/// Runs a cell.
///
/// # Errors
/// If it cannot be.
pub fn run(file: &ScenarioFile, cell: &Cell, files: &Files) -> Result<CellResult, Error> {
    simulate(&file.variant(&cell.overrides)?, files)
}

/// Runs a scenario.
fn simulate(scenario: &Scenario, files: &Files) -> Result<CellResult, Error> {
    let Ran { simulation, about, .. } = Simulated.run(scenario, files)?;
    Ok(CellResult { totals: totals(&simulation), sim: of(&simulation, about) })
}

/// What a summary takes of a cell.
#[derive(Debug)]
pub struct Summed {
    /// The figures.
    pub figures: SweepFigures<f64>,
    /// The link that they are about.
    pub meter: String,
    /// The whole cell as a line of JSON, if that is wanted.
    pub line: Option<Vec<u8>>,
}

impl Summed {
    /// What a summary takes of a cell of a plan.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn of(plan: &Plan, index: u64, result: CellResult, with_line: bool) -> Result<Self, Error> {
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
        let cell = SweepCell { index, key: plan.cells[index as usize].clone(), seed, parameters, figures, totals, sim };
        let mut line = Vec::new();
        json::write_sweep_cell(cell, &mut line)?;
        Ok(Self { figures, meter, line: Some(line) })
    }
}
