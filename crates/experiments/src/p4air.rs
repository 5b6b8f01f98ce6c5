//! The evaluation of P4air (Turkovic and Kuipers, ICNP 2020, sections II-A and IV).
//!
//! - *Figure 1*: two flows share a link, with different congestion controls or different round-trip times.
//! - *Figure 6*: one flow alone; the group that P4air puts it in, for different thresholds.
//! - *Figure 7(e)*: 128 flows of four congestion controls in 35 mixes, under P4air and three other schemes.
//! - *Figure 7(d)*: 256 flows of one congestion control with different round-trip times, under the same schemes.
//! - *Section V*: what the paper proposes for deployments, which it did not measure.
//! - *By round-trip time*: our extension of P4air, beside P4air and FQ-CoDel.
//!
//! The figures' modules state what the paper leaves open. Congestion controls that the simulator does not have are left
//! out.

mod by_rtt;
mod figure_1;
mod figure_6;
mod figure_7;
mod paper;
mod section_5;

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::error::{Error, Result};
use crate::study::{Cell, Setting, Study};
use queuescope_queue::{AnyPipeline, P4air as Program};
use queuescope_sim::{FlowRecord, Simulation};
use queuescope_wire::FlowId;

/// P4air.
pub struct P4air;

impl Study for P4air {
    fn name(&self) -> &'static str {
        "p4air"
    }

    fn source(&self) -> &'static str {
        "Turkovic and Kuipers, P4air: Increasing Fairness among Competing Congestion Control Algorithms, ICNP 2020"
    }

    fn remark(&self, small: bool) -> String {
        let remarks = [figure_6::remark, figure_1::remark, figure_7::remark, section_5::remark, by_rtt::remark];
        remarks.map(|remark| remark(small)).join(" ")
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let figures = [figure_6::cells, figure_7::cells, figure_1::cells, section_5::cells, by_rtt::cells];
        let mut cells = figures.map(|figure| figure(small)).concat();
        // All points with one seed come before the next seed, so that an interrupted run has covered all of them.
        cells.sort_by_key(|cell| cell.seed);
        cells
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        if cell.figure == section_5::SECTION {
            return section_5::measure(cell);
        }
        let simulation = cell.simulation(setting)?;
        match cell.figure {
            figure_1::PAIRS | figure_1::KERNEL | figure_1::RTTS => figure_1::measure(&simulation),
            figure_7::MIXES | figure_7::RTTS => figure_7::measure(cell, &simulation),
            by_rtt::MIXES | by_rtt::TIMES | by_rtt::OTHERS => by_rtt::measure(cell, &simulation),
            _ => figure_6::measure(cell, &simulation),
        }
    }

    fn outcome(&self, results: &Results) -> Outcome {
        let mut all = Outcome::default();
        let figures = [figure_6::outcome, figure_7::outcome, figure_1::outcome, section_5::outcome, by_rtt::outcome];
        for part in figures.map(|figure| figure(results)) {
            all.plots.extend(part.plots);
            all.findings.extend(part.findings);
            all.tables.extend(part.tables);
        }
        all
    }
}

/// The congestion control, where all flows have the same.
const CONTROL: &str = "congestion control";
/// Jain's index of the flows' goodputs.
const JAIN: &str = "fairness";

/// What each flow delivered since the warm-up, in bytes, with the number of its group in the scenario.
fn delivered(simulation: &Simulation) -> Vec<(u32, f64)> {
    let flows = simulation.flows();
    flows.iter().map(|flow: &FlowRecord| (flow.group, flow.counted().delivered as f64)).collect()
}

/// Jain's index: 1 if all are equal, `1/n` if one of `n` has everything. Not finite if nobody has anything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

/// P4air on the measured link, if it runs there.
fn program(simulation: &Simulation) -> Option<&Program> {
    match simulation.measured().next().and_then(|link| simulation.program(link)) {
        Some(AnyPipeline::P4air(program)) => Some(program),
        _ => None,
    }
}

/// P4air on the measured link.
///
/// # Errors
/// Fails if it does not run there.
fn needed_program(simulation: &Simulation) -> Result<&Program> {
    program(simulation).ok_or_else(|| Error::lacks("the measured link is not managed by P4air"))
}

/// The data of a flow, as switches see it.
fn data_of(flow: &FlowRecord) -> FlowId {
    FlowId(2 * flow.number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_between_one_flow_and_all() {
        assert_eq!(jain(&[3.0, 3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), 0.25);
        // Worked by hand: (1 + 3)^2 / (2 * (1 + 9)).
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
    }
}
