//! ConQuest's accuracy (Chen et al., CoNEXT 2019, section 5.1 and appendix B): figures 6 to 9 and 15.
//!
//! Packets pass a FIFO without a limit. For each packet that waits at least tau, an eighth of the longest wait, the
//! sketch estimates its flow's part of the queue. The flow contributes if that part is at least a share alpha. The
//! windows are the longest wait divided by h, the number of snapshots; sketches have two rows. Every departure of a
//! seed is kept with its true values, and each cell compares one sketch with them, with all three estimators.
//!
//! - *Figures 6, 7, 8 and 15b*: precision, recall and size error by h and C, and without collisions.
//! - *Figure 9*: precision against recall at h = 4 and C = 8, for varying thresholds for reporting a flow.
//! - *Figure 15a*: estimates against true sizes, for one seed.
//!
//! The paper's trace is not available: a workload replaces it, or any capture.

mod findings;
mod measure;
mod outcome;
mod readings;
mod scatter;
mod traffic;

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::Capture;
use crate::error::Result;
use crate::study::{Cell, Setting, Study};
pub use traffic::Traffic;

/// ConQuest.
#[derive(Debug)]
pub struct ConQuest {
    traffic: Traffic,
}

impl ConQuest {
    /// The study of a capture, if one is given, or of the workload.
    ///
    /// # Errors
    /// Fails if the capture cannot be read.
    pub fn new(capture: Option<&Capture>) -> Result<Self> {
        Ok(Self { traffic: Traffic::new(capture)? })
    }
}

impl Study for ConQuest {
    fn name(&self) -> &'static str {
        "conquest"
    }

    fn source(&self) -> &'static str {
        "Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019, section 5.1 and appendix B"
    }

    fn remark(&self, _: bool) -> String {
        self.traffic.outcome()
    }

    /// Cells are ordered by seed, so that a run needs the departures of only one or two seeds at a time.
    fn cells(&self, small: bool) -> Vec<Cell> {
        let grid = Grid::new(small);
        (1..=grid.seeds).flat_map(|seed| self.of_seed(&grid, seed)).collect()
    }

    fn measure(&self, cell: &Cell, _setting: &Setting<'_>) -> Result<Values> {
        measure::measure(&self.traffic, cell)
    }

    fn outcome(&self, results: &Results) -> Outcome {
        outcome::outcome(self.traffic.is_the_papers(), results)
    }
}

const WORKLOAD: &str = "workload";
const GRID: &str = "figures-6-7-8-15b";
const FIGURE_9: &str = "figure-9";
const FIGURE_15A: &str = "figure-15a";
const READINGS: &str = "readings";
/// The readings with four snapshots, with bursts whose flows send slower or faster.
const PACES: &str = "readings-by-pace";

/// Parameters.
const H: &str = "h";
const C: &str = "C";
const ALPHA: &str = "alpha (%)";
const PACE: &str = "pace (Gb/s)";
/// The threshold for reporting a flow, as a multiple of alpha.
const THRESHOLD: &str = "threshold / alpha";
/// Replaces a number of columns: no flows share a counter.
const IDEAL: &str = "ideal";

/// The paper's alpha: a flow contributes from this share of the queue on.
const ALPHA_PAPER: f64 = 0.01;
/// Rows of all sketches.
const ROWS: usize = 2;

/// The varied parameters.
struct Grid {
    seeds: u64,
    /// Duration of the traffic in milliseconds, for the workload.
    milliseconds: u64,
    snapshots: &'static [u32],
    columns: &'static [u32],
    alphas: &'static [f64],
    thresholds: &'static [f64],
    scatter: [&'static [u32]; 2],
}

impl Grid {
    const fn new(small: bool) -> Self {
        if small {
            return Self {
                seeds: 2,
                milliseconds: 400,
                snapshots: &[4, 8, 16],
                columns: &[4, 16, 64],
                alphas: &[1.0, 10.0],
                thresholds: &[0.5, 1.0, 2.0],
                scatter: [&[4, 16], &[4, 64]],
            };
        }
        Self {
            seeds: 10,
            milliseconds: 12_500,
            snapshots: &[2, 4, 8, 16, 32],
            columns: &[4, 8, 12, 16, 24, 32, 64, 128, 1638],
            alphas: &[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
            thresholds: &[0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0],
            scatter: [&[2, 4, 16], &[4, 16, 64]],
        }
    }
}

impl ConQuest {
    /// All cells of a seed.
    fn of_seed(&self, grid: &Grid, seed: u64) -> Vec<Cell> {
        let base = self.traffic.text(seed, grid.milliseconds);
        let on = |base: &str, figure, parameters: Vec<(&'static str, String)>| {
            let named: Vec<_> = parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let sketch = format!("{figure}, {}, hashes of seed {seed}", named.join(", "));
            let scenario = format!("{base}{}{sketch}\n", traffic::SKETCH);
            Cell { figure, parameters, seed, scenario }
        };
        let cell = |figure, parameters| on(&base, figure, parameters);
        let mut cells = vec![cell(WORKLOAD, vec![("traffic", self.traffic.name().to_owned())])];
        for h in grid.snapshots {
            cells.push(cell(READINGS, vec![(H, h.to_string())]));
            let columns = grid.columns.iter().map(u32::to_string).chain([IDEAL.to_owned()]);
            cells.extend(columns.map(|columns| cell(GRID, vec![(H, h.to_string()), (C, columns)])));
        }
        for alpha in grid.alphas {
            for threshold in grid.thresholds {
                let parameters = vec![(ALPHA, alpha.to_string()), (THRESHOLD, threshold.to_string())];
                cells.push(cell(FIGURE_9, parameters));
            }
        }
        let [snapshots, columns] = grid.scatter;
        for h in snapshots.iter().filter(|_| seed == 1) {
            let panel = |columns: &u32| cell(FIGURE_15A, vec![(H, h.to_string()), (C, columns.to_string())]);
            cells.extend(columns.iter().map(panel));
        }
        for pace in self.traffic.paces() {
            let base = self.traffic.text_at(seed, grid.milliseconds, *pace);
            cells.push(on(&base, PACES, vec![(PACE, pace.to_string())]));
        }
        cells
    }
}
