//! The results of a sweep: the same figures for each of its cells, and their means over seeds.

use super::{Sim, SimLink, SimTimes, Skipped};
use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A sweep: variants of a scenario, each run with several seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sweep {
    /// The scenario's name.
    pub name: String,
    /// Its description, as its author wrote it.
    pub about: Option<String>,
    /// The complete scenario with its sweep, with the defaults that its file omits (TOML).
    pub scenario: String,
    /// The first seed.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub seed: u64,
    /// Number of seeds for each combination.
    pub seeds: u32,
    /// The varied parameters.
    pub parameters: Vec<SweepParameter>,
    /// Number of cells.
    pub cells: u64,
    /// Number of cells in this report: all, unless this is a shard, or some are missing.
    pub cells_here: u64,
    /// Each combination of values with at least one cell, in order.
    pub rows: Vec<SweepRow>,
    /// Irregularities in the files that the scenario names.
    pub skipped: Vec<Skipped>,
}

/// A varied parameter of the scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepParameter {
    /// Its path.
    pub path: String,
    /// Its values, in order.
    pub values: Vec<String>,
}

/// A combination of values, over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepRow {
    /// The values, in the order of the sweep's parameters.
    pub values: Vec<String>,
    /// Number of cells, one for each seed, that are averaged.
    pub cells: u64,
    /// The link of the queue that the figures are about.
    pub meter: String,
    /// The figures.
    pub figures: SweepFigures<SweepMean>,
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepMean {
    /// The mean.
    pub mean: f64,
    /// Half of the width of its 95 % confidence interval (Student's t), if there are two values or more.
    pub half_width: Option<f64>,
    /// Number of cells with such a value.
    pub cells: u64,
}

/// A cell of a sweep: one simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepCell {
    /// Its position in the sweep, from 0.
    pub index: u64,
    /// A digest of everything that the result depends on; also the name of its file among the results.
    pub key: String,
    /// The seed.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub seed: u64,
    /// The values of the varied parameters, by their paths.
    pub parameters: BTreeMap<String, String>,
    /// The figures of the summary.
    pub figures: SweepFigures<f64>,
    /// Results over all flows.
    pub totals: SweepTotals,
    /// The whole simulation.
    pub sim: Sim,
}

/// Results over all flows of a simulation, of all groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepTotals {
    /// Payload that the receivers got in order, in bits per second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodput: 1 if all are equal. None if no flow got anything.
    pub jain: Option<f64>,
    /// Flow completion times, of flows that finished after the warm-up.
    pub completion: Option<SimTimes>,
}

/// The figures that a sweep compares. A figure is none if there was nothing to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepFigures<T> {
    /// Payload that the receivers of all flows got in order, in bits per second.
    pub goodput_bps: Option<T>,
    /// Bytes sent by the metered link, as a share of what its rate allows.
    pub utilisation: Option<T>,
    /// The mean sojourn time in the metered link's queue.
    pub delay_mean_ns: Option<T>,
    /// The 95th percentile of the sojourn time in the metered link's queue.
    pub delay_p95_ns: Option<T>,
    /// The 99th percentile of the sojourn time in the metered link's queue.
    pub delay_p99_ns: Option<T>,
    /// Packets that the metered link's queue dropped, as a share of arrivals.
    pub drop_rate: Option<T>,
    /// Packets that were lost on the metered link, as a share of packets sent.
    pub loss_rate: Option<T>,
    /// Packets marked at the metered link, as a share of arrivals.
    pub mark_rate: Option<T>,
    /// Jain's index over all flows.
    pub jain: Option<T>,
    /// The mean flow completion time.
    pub completion_mean_ns: Option<T>,
    /// The median flow completion time.
    pub completion_p50_ns: Option<T>,
    /// The 95th percentile of the flow completion time.
    pub completion_p95_ns: Option<T>,
    /// The 99th percentile of the flow completion time.
    pub completion_p99_ns: Option<T>,
}

/// Number of figures.
pub const SWEEP_FIGURES: usize = 13;

impl SweepFigures<f64> {
    /// The figures of a simulation, for its metered link.
    pub fn from_sim(sim: &Sim, totals: &SweepTotals) -> Self {
        let link = sim.links.iter().find(|link| link.name == sim.meter);
        let passed = link.filter(|link| link.offered_packets > 0);
        let waits = link.map(|link| &link.sojourn).filter(|times| times.count > 0);
        let completion = totals.completion.as_ref();
        let time = |of: fn(&SimTimes) -> u64| move |times: &SimTimes| of(times) as f64;
        Self {
            goodput_bps: Some(totals.goodput_bps),
            utilisation: link.map(|link| link.utilisation),
            delay_mean_ns: waits.map(|times| times.mean_ns),
            delay_p95_ns: waits.map(time(|times| times.p95_ns)),
            delay_p99_ns: waits.map(time(|times| times.p99_ns)),
            drop_rate: passed.map(|link: &SimLink| link.drop_rate),
            loss_rate: passed.map(|link| link.loss_rate),
            mark_rate: passed.map(|link| link.mark_rate),
            jain: totals.jain,
            completion_mean_ns: completion.map(|times| times.mean_ns),
            completion_p50_ns: completion.map(time(|times| times.p50_ns)),
            completion_p95_ns: completion.map(time(|times| times.p95_ns)),
            completion_p99_ns: completion.map(time(|times| times.p99_ns)),
        }
    }
}

impl<T: Copy> SweepFigures<T> {
    /// Their names in JSON and tables.
    pub const NAMES: [&'static str; SWEEP_FIGURES] = [
        "goodput_bps",
        "utilisation",
        "delay_mean_ns",
        "delay_p95_ns",
        "delay_p99_ns",
        "drop_rate",
        "loss_rate",
        "mark_rate",
        "jain",
        "completion_mean_ns",
        "completion_p50_ns",
        "completion_p95_ns",
        "completion_p99_ns",
    ];

    /// The figures in the order of [`NAMES`](Self::NAMES).
    pub fn to_array(&self) -> [Option<T>; SWEEP_FIGURES] {
        [
            self.goodput_bps,
            self.utilisation,
            self.delay_mean_ns,
            self.delay_p95_ns,
            self.delay_p99_ns,
            self.drop_rate,
            self.loss_rate,
            self.mark_rate,
            self.jain,
            self.completion_mean_ns,
            self.completion_p50_ns,
            self.completion_p95_ns,
            self.completion_p99_ns,
        ]
    }

    /// The inverse of [`to_array`](Self::to_array).
    pub fn from_array(figures: [Option<T>; SWEEP_FIGURES]) -> Self {
        let [goodput_bps, utilisation, delay_mean_ns, delay_p95_ns, delay_p99_ns, ..] = figures;
        let [_, _, _, _, _, drop_rate, loss_rate, mark_rate, jain, ..] = figures;
        let [.., completion_mean_ns, completion_p50_ns, completion_p95_ns, completion_p99_ns] = figures;
        Self {
            goodput_bps,
            utilisation,
            delay_mean_ns,
            delay_p95_ns,
            delay_p99_ns,
            drop_rate,
            loss_rate,
            mark_rate,
            jain,
            completion_mean_ns,
            completion_p50_ns,
            completion_p95_ns,
            completion_p99_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_names_that_json_has() {
        let figures = SweepFigures::from_array(std::array::from_fn(|n| Some(n as f64)));
        let json = serde_json::to_value(figures).unwrap();
        for (name, figure) in SweepFigures::<f64>::NAMES.iter().zip(figures.to_array()) {
            assert_eq!(json[name].as_f64(), figure, "{name}");
        }
        assert_eq!(json.as_object().unwrap().len(), SWEEP_FIGURES);
        let numbers: Vec<_> = figures.to_array().into_iter().flatten().collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
