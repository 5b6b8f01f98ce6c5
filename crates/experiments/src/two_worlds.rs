//! Compares simulations with the kernel's TCP on the same link.
//!
//! - *Cells* are a selection out of 540: congestion control, number of flows, queue management, rate and round-trip
//!   time, such that each value of one parameter is combined with each value of another, and about equally often.
//! - *The link* has room for 100 ms. PIE, CoDel, RED and FQ-CoDel have their defaults, RED is adaptive with a target of
//!   15 ms, and ABC is that of its paper, with thresholds proportional to the rate.
//! - *TCP* is the kernel's, and the simulator's with its Linux profile. DCTCP uses ECN, and is marked where the queue
//!   management marks.
//! - *A run* takes 12 s, of which 4 s are warm-up. The real one takes as long.

mod outcome;
mod selection;

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::error::Result;
use crate::study::{Cell, Setting, Study};
use queuescope_report::model::Sim;
use queuescope_run::{Simulated, World};
use selection::GridPoint;

/// Both worlds.
pub struct TwoWorlds;

impl Study for TwoWorlds {
    fn name(&self) -> &'static str {
        "two-worlds"
    }

    fn source(&self) -> &'static str {
        "docs/reference/link.md: the simulator beside the kernel's TCP"
    }

    fn is_real(&self) -> bool {
        true
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let (seeds, duration, warmup) = if small { (1, 3, 1) } else { (3, 12, 4) };
        let cells = if small { 2 } else { CELLS };
        let places = selection::places(cells).into_iter();
        places.flat_map(|place| (1..=seeds).map(move |seed| cell(place, seed, duration, warmup))).collect()
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        let mut values = Values::new();
        let worlds: [(&dyn World, _); 2] = [(&Simulated, SIMULATED), (setting.real_hosts()?, REAL)];
        for (world, name) in worlds {
            add(&mut values, name, &cell.run_in(world, setting)?);
        }
        Ok(values)
    }

    fn outcome(&self, results: &Results) -> Outcome {
        outcome::outcome(results)
    }
}

/// How many cells are run.
const CELLS: usize = 60;

const GRID: &str = "grid";
const TCP: &str = "TCP";
const FLOWS: &str = "flows";
const AQM: &str = "AQM";
const RATE: &str = "rate (Mb/s)";
const RTT: &str = "RTT (ms)";

const SIMULATED: &str = "simulated";
const REAL: &str = "real";
const GOODPUT: &str = "goodput (Mb/s)";
const DELAY: &str = "mean delay (ms)";
const P99: &str = "p99 delay (ms)";
const LOSS: &str = "loss (%)";
const MARKS: &str = "marks (%)";
const JAIN: &str = "fairness";
/// Packets of the real world that were more than a millisecond late.
const LATE: &str = "late (%)";
/// Whether at times the machine, not the link, was the bottleneck: 1 or 0.
const LIMITED: &str = "limited by the machine";

fn add(values: &mut Values, world: &str, sim: &Sim) {
    let mut add = |name: &str, value: f64| values.insert(named(world, name), value);
    if let Some(link) = sim.links.iter().find(|link| link.name == sim.meter) {
        add(DELAY, link.sojourn.mean_ns / 1e6);
        add(P99, link.sojourn.p99_ns as f64 / 1e6);
        add(LOSS, 100.0 * link.drop_rate);
        add(MARKS, 100.0 * link.mark_rate);
    }
    for group in &sim.groups {
        add(GOODPUT, group.goodput_bps / 1e6);
        add(JAIN, group.jain);
    }
    if let Some(real) = &sim.real_time {
        add(LATE, 100.0 * real.late_packets as f64 / real.packets.max(1) as f64);
        add(LIMITED, f64::from(u8::from(real.is_limited_by_machine)));
    }
}

/// The name of a world's value.
fn named(world: &str, value: &str) -> String {
    format!("{world} {value}")
}

fn cell(place: GridPoint, seed: u64, duration: u64, warmup: u64) -> Cell {
    let [tcp, flows, aqm, rate, rtt] = place.0;
    let (tcp, aqm) = (&selection::TCPS[tcp], &selection::AQMS[aqm]);
    let (flows, rate, rtt) = (selection::FLOWS[flows], selection::RATES[rate], selection::RTTS[rtt]);
    let one_way = rtt / 2;
    let link = (aqm.lines)(rate, tcp.ecn);
    let scenario = format!(
        "seed = {seed}\nduration = \"{duration}s\"\nwarmup = \"{warmup}s\"\n\n[access]\nrate = \"10gbps\"\ndelay = \"0s\"\n\n[link]\n\
         rate = \"{rate}mbps\"\ndelay = \"{one_way}ms\"\n{link}\n[[flows]]\nname = \"flows\"\ntcp = \"{}\"\ncount = {flows}\n\
         ecn = {}\nspread = \"500ms\"\n",
        tcp.name, tcp.ecn
    );
    let parameters = vec![
        (TCP, tcp.name.to_owned()),
        (FLOWS, flows.to_string()),
        (AQM, aqm.name.to_owned()),
        (RATE, rate.to_string()),
        (RTT, rtt.to_string()),
    ];
    Cell { figure: GRID, parameters, seed, scenario }
}
