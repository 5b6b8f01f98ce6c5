//! Section V, "Deployment considerations": what the paper proposes or leaves to later work, measured.
//!
//! - *One link*: one queue for each group, weighted by the number of its flows; actions by queueing delay in place of the
//!   share; round-trip times from TCP timestamps and from sequence numbers.
//! - *Uneven ends*: flows that end at different times, with and without a count of the flows of each queue.
//! - *Behind another AQM*: a queue before P4air's, at a slightly higher or a lower rate.
//! - *Two bottlenecks*: a parking lot of two links, with P4air at none, one or both of them, and with the group of shaped flows.
//!
//! The paper has no figures for these. Each setting has the flows of figure 7(e)'s mix of equal parts, on slower links.

mod outcome;
mod reordering;
mod settings;

use super::{JAIN, data_of, jain, paper};
use crate::error::{Error, Result};
use crate::results::Values;
use crate::study::Cell;
pub use outcome::outcome;
use queuescope_queue::{AnyPipeline, P4air, Port};
use queuescope_run::check_room;
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, FlowRecord, LinkId, Simulation, build};
use queuescope_sketch::FlowGroup;
use reordering::Reordering;
use settings::{CONTROLS, Plan, RTT_MS};

pub const SECTION: &str = "section-5";

const PART: &str = "part";
const OPTION: &str = "setting";

const DELAY: &str = "mean delay (ms)";
const USED: &str = "utilisation (%)";
const REORDERED: &str = "reordered (%)";
/// Of the flows at each switch with P4air, those that end in the group that the paper puts their control in, and those in
/// the group of shaped flows.
const GROUPED: &str = "in their group (%)";
const SHAPED: &str = "shaped (%)";
/// By how much P4air's round-trip times differ from those without queueing, in percent of these, on average.
const RTT_ERROR: &str = "RTT error (%)";
/// Flows in the fullest queue of long-lived flows, over the mean of these queues.
const FULLEST: &str = "fullest queue (of the mean)";

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let Plan { flows, megabits, duration_s, warmup_s, seeds, .. } = Plan::new(small);
    let all = flows * CONTROLS.len() as u64;
    format!(
        "Section V: {all} flows at {megabits} Mb/s and {RTT_MS} ms for {duration_s} s, of which {warmup_s} s are warm-up; {seeds} {} of \
         each.",
        if seeds == 1 { "run" } else { "runs" }
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    Plan::new(small).cells()
}

/// Runs a cell, and measures all links together.
pub fn measure(cell: &Cell) -> Result<Values> {
    let scenario = cell.parsed()?;
    let Built { mut simulation, .. } = build(&scenario, &Files::default()).map_err(queuescope_run::Error::from)?;
    let mut reordering = Reordering::new(simulation.warmup());
    simulation.run_until(scenario.duration, &mut reordering);
    check_room(&simulation)?;
    values(&scenario, &simulation, &reordering)
}

fn values(scenario: &Scenario, simulation: &Simulation, reordering: &Reordering) -> Result<Values> {
    // Flows that have ended are not in the list; those of finite size do not count for fairness.
    let flows: Vec<FlowRecord> = simulation.flows();
    let endless: Vec<f64> =
        flows.iter().filter(|flow| flow.bytes.is_none()).map(|flow| flow.counted().delivered as f64).collect();
    let links: Vec<LinkId> = simulation.measured().collect();
    let topology = simulation.topology();
    let slowest = links.iter().map(|link| topology.link(*link).rate.mean()).min();
    let slowest = slowest.ok_or_else(|| Error::lacks("no link is measured"))?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let delay = |link: &LinkId| simulation.link(*link).sojourn().and_then(|times| times.mean()).unwrap_or(0.0) / 1e6;
    let used = |link: &LinkId| {
        let capacity = topology.link(*link).rate.capacity(simulation.warmup()..simulation.now());
        100.0 * simulation.link(*link).sent.bytes.0 as f64 / capacity.0 as f64
    };
    let bottlenecks = links.iter().filter(|link| topology.link(**link).rate.mean() == slowest);
    let mut values = Values::from([
        (JAIN.to_owned(), jain(&endless)),
        (DELAY.to_owned(), links.iter().map(delay).sum()),
        (USED.to_owned(), mean(&bottlenecks.map(used).collect::<Vec<_>>())),
        (REORDERED.to_owned(), reordering.percent()),
    ]);
    let mut seen = Seen::default();
    let mut fullest = Vec::new();
    for (program, port) in links.iter().filter_map(|link| program(simulation, *link)) {
        flows.iter().for_each(|flow| seen.add(scenario, program, flow));
        let queues = program.in_queues(port).unwrap_or_default();
        let (most, all) = (queues.iter().max().copied().unwrap_or(0), queues.iter().sum::<u32>());
        fullest.push(f64::from(most) * queues.len() as f64 / f64::from(all));
    }
    if seen.flows > 0 {
        let percent = |count: u32| 100.0 * f64::from(count) / f64::from(seen.flows);
        values.insert(GROUPED.to_owned(), percent(seen.grouped));
        values.insert(SHAPED.to_owned(), percent(seen.shaped));
        values.insert(RTT_ERROR.to_owned(), mean(&seen.errors));
        values.insert(FULLEST.to_owned(), mean(&fullest));
    }
    Ok(values)
}

/// P4air and the port of a link, if it manages the link.
fn program(simulation: &Simulation, link: LinkId) -> Option<(&P4air, Port)> {
    let AnyPipeline::P4air(program) = simulation.program(link)? else { return None };
    let topology = simulation.topology();
    let port = topology.links_from(topology.link(link).from).position(|own| own == link)?;
    Some((program, Port(port as u16)))
}

/// What switches know of flows.
#[derive(Default)]
struct Seen {
    flows: u32,
    grouped: u32,
    shaped: u32,
    /// In percent.
    errors: Vec<f64>,
}

impl Seen {
    fn add(&mut self, scenario: &Scenario, program: &P4air, flow: &FlowRecord) {
        let (Some(group), Some(rtt)) = (program.group(data_of(flow)), program.rtt(data_of(flow))) else { return };
        let name = scenario.flows.get(flow.group as usize).map_or("", |group| group.name.as_str());
        let tcp = name.split('-').next().unwrap_or_default();
        let control = paper::CONTROLS.iter().find(|control| control.tcp == tcp);
        self.flows += 1;
        self.grouped += u32::from(control.is_some_and(|control| group == control.group));
        self.shaped += u32::from(group == FlowGroup::Shaped);
        self.errors.push(100.0 * (rtt.as_secs_f64() * 1e3 / RTT_MS as f64 - 1.0).abs());
    }
}
