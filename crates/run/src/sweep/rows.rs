//! Builds the rows of a sweep's summary from its cells, in order.

use super::interval;
use super::plan::Plan;
use queuescope_report::model::{SWEEP_FIGURES, Sweep, SweepFigures, SweepMean, SweepRow};

/// Means over the seeds of each combination of values.
#[derive(Debug)]
pub struct Rows<'a> {
    plan: &'a Plan,
    rows: Vec<SweepRow>,
    current: Option<Row>,
    cells: u64,
}

/// A combination of values that may get more cells.
#[derive(Debug)]
struct Row {
    number: u64,
    meter: String,
    figures: Vec<[Option<f64>; SWEEP_FIGURES]>,
}

impl<'a> Rows<'a> {
    /// Starts with no cells.
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, rows: Vec::new(), current: None, cells: 0 }
    }

    /// Adds the next cell, with its number and the link that its figures are about.
    pub fn add(&mut self, cell: u64, figures: &SweepFigures<f64>, meter: String) {
        self.cells += 1;
        let number = self.plan.row(cell);
        if self.current.as_ref().is_some_and(|row| row.number != number) {
            self.end_row();
        }
        self.current.get_or_insert(Row { number, meter, figures: Vec::new() }).figures.push(figures.to_array());
    }

    /// Ends the last row, and returns the summary.
    pub fn finish(mut self) -> Sweep {
        self.end_row();
        let plan = self.plan;
        Sweep {
            name: plan.name.clone(),
            about: plan.about.clone(),
            scenario: plan.scenario.clone(),
            seed: plan.seed,
            seeds: plan.seeds,
            parameters: plan.parameters.clone(),
            cells: plan.count(),
            cells_here: self.cells,
            rows: self.rows,
            skipped: plan.skipped.clone(),
        }
    }

    fn end_row(&mut self) {
        let Some(Row { number, meter, figures }) = self.current.take() else { return };
        let mean = |figure: usize| -> Option<SweepMean> {
            let values: Vec<_> = figures.iter().filter_map(|cell| cell[figure]).collect();
            interval::mean(&values)
        };
        self.rows.push(SweepRow {
            values: self.plan.values(number),
            cells: figures.len() as u64,
            meter,
            figures: SweepFigures::from_array(std::array::from_fn(mean)),
        });
    }
}
