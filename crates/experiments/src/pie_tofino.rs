//! The experiments with PIE on a switch (Kunze et al., IM 2021, section VII).
//!
//! - *Figure 5*: 100 Gb/s of datagrams before a link of 10 Gb/s for 5 s, then 5 Gb/s; only the full queue drops
//!   packets. The probability is sampled each millisecond: when it first reaches 1, and how long after the overload it
//!   reaches 0. The two references mark in place of dropping, because the paper's were changed not to drop.
//! - *Figure 6*: 1 to 250 flows of CUBIC for 10 s, with a round-trip time of 350 us.
//! - *Figure 6, slower*: the same for 20 s on a link of 312 Mb/s, which real hosts can fill, with all times 8 times
//!   longer. Egress PI runs there with times 4 times longer.
//! - *Causes*: figure 5, and figure 6 with 50 flows, with one change at a time.
//!
//! The references are PIE as in ns-3, with the scaling of RFC 8033 and with that of ns-3 3.31. The authors' published
//! programs differ from the paper in three places; the programs run both as stated and as published.

mod algorithm;
mod outcome;

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::error::{Error, Result};
use crate::study::{Cell, Setting, Study};
use algorithm::{Algorithm, Overload, Responsive};
use queuescope_queue::DropReason;
use queuescope_sim::{FlowRecord, Simulation};
use queuescope_wire::Nanos;

/// PIE on Tofino.
pub struct PieTofino;

impl Study for PieTofino {
    fn name(&self) -> &'static str {
        "pie-tofino"
    }

    fn source(&self) -> &'static str {
        "Kunze et al., Tofino + P4: A Strong Compound for AQM on High-Speed Networks?, IM 2021, section VII"
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let overload = if small { Overload::SMALL } else { Overload::PAPER };
        let flows: &[u32] = if small { &[3] } else { &[1, 10, 50, 250] };
        let (link, duration) = if small { (500, 3_000) } else { (10_000, 10_000) };
        let mut cells = Vec::new();
        // All points with one seed come before the next seed, so that an interrupted run has covered all of them.
        for seed in 1..=if small { 1 } else { 30 } {
            for algorithm in Algorithm::ALL {
                let parameters = vec![(WHO, algorithm.name().to_owned())];
                let scenario = overload.scenario(&algorithm.text(false), seed);
                cells.push(Cell { figure: FIGURE_5, parameters, seed, scenario });
            }
            for algorithm in Algorithm::ALL {
                for count in flows {
                    let responsive = Responsive { link, ..Responsive::new(algorithm, *count, duration) };
                    cells.push(responsive.cell(FIGURE_6, algorithm, FLOWS, &count.to_string(), seed));
                }
            }
            if small || seed > 3 {
                continue;
            }
            for algorithm in Algorithm::ALL.into_iter().chain([Algorithm::EgressPi]) {
                for count in flows {
                    let slower = Responsive::slower(algorithm, *count, SLOWER_MS, SLOWER_LINK, SLOWER_TIMES);
                    cells.push(slower.cell(FIGURE_6_SLOWER, algorithm, FLOWS, &count.to_string(), seed));
                }
            }
            for (changed, algorithm, responsive) in causes(duration) {
                cells.push(responsive.cell(CAUSES, algorithm, CHANGED, changed, seed));
            }
            if seed == 1 {
                cells.extend(causes_5(overload));
            }
        }
        cells
    }

    fn confidence(&self) -> f64 {
        0.99
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        let simulation = cell.simulation(setting)?;
        if matches!(cell.figure, FIGURE_6 | FIGURE_6_SLOWER | CAUSES) {
            return goodput_and_delay(&simulation);
        }
        let stops = cell.parsed()?.flows.iter().filter_map(|flows| flows.stop).min();
        rise_and_fall(&simulation, stops.ok_or_else(|| Error::lacks("the overload has no end"))?)
    }

    fn outcome(&self, results: &Results) -> Outcome {
        outcome::outcome(results)
    }
}

const FIGURE_5: &str = "figure-5";
const FIGURE_6: &str = "figure-6";
const FIGURE_6_SLOWER: &str = "figure-6-slower";
const CAUSES: &str = "causes";
const CAUSES_5: &str = "causes-5";
const WHO: &str = "algorithm";
const FLOWS: &str = "flows";
const CHANGED: &str = "changed";
/// The references' period.
const PERIOD: &str = "period 117.187 us";
const LINK: &str = "link (Gb/s)";
const RISE: &str = "rise (s)";
const FALL: &str = "fall (s)";
const EARLY: &str = "dropped early";
const OVERFLOW: &str = "dropped by the full queue";
const GOODPUT: &str = "goodput (Gb/s)";
const DELAY: &str = "mean delay (us)";
const TIMEOUTS: &str = "timeouts";

/// The percentiles of the delay in tables.
const PERCENTS: [u32; 6] = [5, 25, 50, 75, 95, 99];

/// The percentiles of the delay in plots.
fn all_percents() -> impl Iterator<Item = u32> {
    (1..20).map(|step| 5 * step).chain([99])
}

/// A link that real hosts can fill, in Mb/s.
const SLOWER_LINK: u64 = 312;
/// How many times longer times are there: as many as the tables of PIE_TABLE cover, whose longest delay is then 4 ms.
const SLOWER_TIMES: u32 = 8;
/// The duration of its runs, in ms.
const SLOWER_MS: u64 = 20_000;

/// The interval of the stored values of the probability, in ms.
const COURSE: u64 = 250;

/// The name of a stored value of the probability, by its time in ms.
fn course(at: u64) -> String {
    format!("probability at {:05.2} s", at as f64 / 1e3)
}

fn percentile(percent: u32) -> String {
    format!("p{percent:02} delay (us)")
}

impl Responsive {
    fn cell(&self, figure: &'static str, algorithm: Algorithm, varied: &'static str, value: &str, seed: u64) -> Cell {
        let link = format!("{}", self.link as f64 / 1e3);
        let parameters = vec![(WHO, algorithm.name().to_owned()), (varied, value.to_owned()), (LINK, link)];
        Cell { figure, parameters, seed, scenario: self.scenario(seed) }
    }
}

/// Figure 5 with one change at a time. Seeds make no difference to it.
fn causes_5(overload: Overload) -> impl Iterator<Item = Cell> {
    let reference = Algorithm::Rfc.text(false).replace("burst = \"ns3\"", "burst = \"off\"");
    let with = |algorithm: Algorithm, more: &str| algorithm.text(false) + more;
    let changed = [
        (Algorithm::Cp, PERIOD, with(Algorithm::Cp, "period = \"117187ns\"\nlatency = \"117187ns\"\n")),
        (Algorithm::Rfc, "no burst allowance", reference),
        (Algorithm::Table, "published ranges only", with(Algorithm::Table, "layout = \"as-published\"\n")),
        (Algorithm::Table, "published sign only", with(Algorithm::Table, "trend = \"as-published\"\n")),
    ];
    changed.into_iter().map(move |(algorithm, changed, queue)| {
        let parameters = vec![(WHO, algorithm.name().to_owned()), (CHANGED, changed.to_owned())];
        Cell { figure: CAUSES_5, parameters, seed: 1, scenario: overload.scenario(&queue, 1) }
    })
}

/// Figure 6 with one change at a time: the change and its algorithm.
fn causes(duration: u64) -> Vec<(&'static str, Algorithm, Responsive)> {
    use Algorithm::{Cp, Dp, DpPublished, Ns3, Rfc, Table, TablePublished};
    let of = |algorithm: Algorithm| Responsive::new(algorithm, 50, duration);
    let with = |algorithm: Algorithm, more: &str| Responsive { queue: algorithm.text(true) + more, ..of(algorithm) };
    let without = |algorithm: Algorithm, key: &str, now: &str| Responsive {
        queue: algorithm.text(true).replace(&format!("{key} = \"{now}\""), &format!("{key} = \"off\"")),
        ..of(algorithm)
    };
    let ten = |responsive: Responsive| Responsive { flows: 10, ..responsive };
    let mut causes = vec![
        ("50 flows, read and written at once", Cp, with(Cp, "latency = \"0s\"\n")),
        ("50 flows, period 117 us", Cp, with(Cp, "period = \"117us\"\nlatency = \"117us\"\n")),
        ("50 flows, published ranges only", Table, with(Table, "layout = \"as-published\"\n")),
        ("50 flows, published sign only", Table, with(Table, "trend = \"as-published\"\n")),
        ("50 flows, no burst allowance", Rfc, without(Rfc, "burst", "ns3")),
        ("50 flows, no burst allowance", Ns3, without(Ns3, "burst", "ns3")),
        ("10 flows, no scaling", Rfc, ten(without(Rfc, "scaling", "rfc"))),
    ];
    for algorithm in [Cp, Dp, Table, Rfc, Ns3] {
        causes.push(("50 flows, without the first 3 s", algorithm, Responsive { warmup: 3_000, ..of(algorithm) }));
    }
    for algorithm in [Cp, DpPublished, TablePublished, Rfc] {
        causes.push(("50 flows, 3.5 ms", algorithm, Responsive { round_trip: 3_500, ..of(algorithm) }));
    }
    for algorithm in [Cp, Rfc, Ns3] {
        causes.push(("10 flows, TCP of ns-3", algorithm, ten(Responsive { profile: "ns3", ..of(algorithm) })));
    }
    for algorithm in [Cp, Rfc] {
        let tcp = "{ cubic = { growth = { counted = { refresh = \"1ms\" } } } }";
        causes.push(("10 flows, CUBIC computes each ms", algorithm, ten(Responsive { tcp, ..of(algorithm) })));
    }
    causes
}

/// When the probability reached 1, and how long after the end of the overload it reached 0; each is missing if that
/// never happened. Also its course.
fn rise_and_fall(simulation: &Simulation, end: Nanos) -> Result<Values> {
    let link = simulation.measured().next().ok_or_else(|| Error::lacks("no link is measured"))?;
    let (mut values, mut risen) = (Values::new(), false);
    for sample in simulation.samples() {
        let Some(probability) = sample.links.first().and_then(|link| link.drop_probability) else { continue };
        if probability >= 1.0 && !risen {
            risen = true;
            values.insert(RISE.to_owned(), sample.at.as_secs_f64());
        }
        if risen && sample.at >= end && probability <= 0.0 {
            values.entry(FALL.to_owned()).or_insert((sample.at - end).as_secs_f64());
        }
        if sample.at.0 % (COURSE * 1_000_000) == 0 {
            values.insert(course(sample.at.0 / 1_000_000), probability);
        }
    }
    let drops = simulation.link(link).drops;
    values.insert(EARLY.to_owned(), drops[DropReason::Early as usize] as f64);
    values.insert(OVERFLOW.to_owned(), drops[DropReason::Overlimit as usize] as f64);
    Ok(values)
}

/// The goodput of all flows, and the waiting times of the packets that the link sent.
fn goodput_and_delay(simulation: &Simulation) -> Result<Values> {
    let link = simulation.measured().next().ok_or_else(|| Error::lacks("no link is measured"))?;
    let times = simulation.link(link).sojourn().ok_or_else(|| Error::lacks("no delay is measured"))?;
    let counted = simulation.now().saturating_sub(simulation.warmup()).as_secs_f64();
    let flows = simulation.flows();
    let (delivered, timeouts) = flows
        .iter()
        .map(FlowRecord::counted)
        .fold((0, 0), |(bytes, timeouts), flow| (bytes + flow.delivered, timeouts + flow.timeouts));
    let mut values = Values::from([
        (GOODPUT.to_owned(), 8.0 * delivered as f64 / counted / 1e9),
        (DELAY.to_owned(), times.mean().unwrap_or(f64::NAN) / 1e3),
        (TIMEOUTS.to_owned(), timeouts as f64),
    ]);
    values.extend(all_percents().map(|percent| {
        let time = times.percentile(f64::from(percent)).unwrap_or(Nanos::ZERO);
        (percentile(percent), time.0 as f64 / 1e3)
    }));
    Ok(values)
}
