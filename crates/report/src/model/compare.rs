//! One scenario simulated and on real hosts.

use super::{RealTime, Sim, SimFlow, SimGroup, SimLink, SimTimes, Skipped};
use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a scenario, simulated and on real hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The scenario's name.
    pub name: String,
    /// Its description, as its author wrote it.
    pub about: Option<String>,
    /// The complete scenario as it was run, with the defaults that its file omits (TOML).
    pub scenario: String,
    /// Duration of each run.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub duration_ns: u64,
    /// Initial part of each run that is not measured.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub warmup_ns: u64,
    /// The seed of the first run; each later run has the next one.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub seed: u64,
    /// Timing accuracy of each real run.
    pub real_time: Vec<RealTime>,
    /// The measured quantities.
    pub rows: Vec<Compared>,
    /// Irregularities of all runs.
    pub skipped: Vec<Skipped>,
}

/// A quantity in both worlds: one value for each run that has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Compared {
    /// The kind of thing that it belongs to.
    #[serde(alias = "of")]
    pub subject: Of,
    /// The name of that. A flow has its own name if there was one run. If there were several, it is `flow 2 of GROUP`, the second
    /// of its group to start, because the same addresses belong to other flows in other runs.
    pub name: String,
    /// The discipline of a link, the transport of a group, the group of a flow.
    #[serde(alias = "about")]
    pub detail: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Values of the simulated runs.
    pub simulated: Vec<f64>,
    /// Values of the real runs.
    pub real: Vec<f64>,
}

/// The kind of thing that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// A link and its queue.
    Link,
    /// A group of flows.
    Group,
    /// A flow.
    Flow,
}

/// A measured quantity; its name ends with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes sent by a link, as a share of what its rate allows.
    Utilisation,
    /// The mean sojourn time in a queue.
    DelayMeanNs,
    /// The median sojourn time.
    DelayP50Ns,
    /// The 95th percentile of the sojourn time.
    DelayP95Ns,
    /// The 99th percentile of the sojourn time.
    DelayP99Ns,
    /// Packets that the queue dropped, as a share of arrivals.
    DropRate,
    /// Packets that were lost on the link, as a share of packets sent.
    LossRate,
    /// Packets marked, as a share of arrivals.
    MarkRate,
    /// Payload that receivers got in order, over the run.
    GoodputBps,
    /// The smallest goodput of a flow, over its lifetime.
    LeastLifetimeGoodputBps,
    /// The largest goodput of a flow, over its lifetime.
    MostLifetimeGoodputBps,
    /// Jain's index of the flows' goodput over their lifetimes.
    Jain,
    /// Retransmitted segments.
    Retransmissions,
    /// The median flow completion time.
    CompletionP50Ns,
    /// The 99th percentile of the flow completion time.
    CompletionP99Ns,
}

impl Comparison {
    /// Compares pairs of runs: the same scenario with the same seed, simulated and real. `left_out` are irregularities
    /// of the runs. None if there are no pairs.
    pub fn from_pairs(pairs: &[(Sim, Sim)], left_out: impl IntoIterator<Item = Skipped>) -> Option<Self> {
        let (first, _) = pairs.first()?;
        let mut rows = Vec::new();
        let named: FlowNames = match pairs.len() {
            1 => lasting(first).map(|(place, flow)| (place, flow.name.clone())).collect(),
            // The same addresses belong to other flows in other runs.
            _ => {
                let runs = pairs.iter().flat_map(|(simulated, real)| [simulated, real]);
                runs.flat_map(lasting).map(|(place, _)| (place, format!("flow {} of {}", place.1, place.0))).collect()
            }
        };
        for (simulated, real) in pairs {
            add(&mut rows, &named, simulated, |row| &mut row.simulated);
            add(&mut rows, &named, real, |row| &mut row.real);
        }
        // If nothing was dropped, lost or marked in either world, there is nothing to compare.
        rows.retain(|row| {
            let all = || row.simulated.iter().chain(&row.real);
            let may_be_left_out = matches!(row.quantity, Quantity::MarkRate | Quantity::DropRate | Quantity::LossRate);
            !(may_be_left_out && all().all(|value| *value == 0.0))
        });
        let mut skipped: Vec<Skipped> = Vec::new();
        for note in left_out {
            match skipped.iter_mut().find(|same| same.reason == note.reason) {
                Some(same) => same.count += note.count,
                None => skipped.push(note),
            }
        }
        Some(Self {
            name: first.name.clone(),
            about: first.about.clone(),
            scenario: first.scenario.clone(),
            duration_ns: first.duration_ns,
            warmup_ns: first.warmup_ns,
            seed: first.seed,
            real_time: pairs.iter().filter_map(|(_, real)| real.real_time.clone()).collect(),
            rows,
            skipped,
        })
    }
}

/// The names of flows, by their group and their number in it from 1, in the order of starting.
type FlowNames<'a> = BTreeMap<(&'a str, u64), String>;

/// Adds the values of a run to their rows. Ports are random and starts may be, so a flow is known by its number in its group.
fn add(rows: &mut Vec<Compared>, named: &FlowNames<'_>, run: &Sim, of_world: impl Fn(&mut Compared) -> &mut Vec<f64>) {
    let mut push = |of: Of, name: &str, about: &str, quantity: Quantity, value: f64| {
        let is_it =
            |row: &Compared| row.subject == of && row.quantity == quantity && row.name == name && row.detail == about;
        let place = rows.iter().position(is_it).unwrap_or_else(|| {
            let (name, about) = (name.to_owned(), about.to_owned());
            rows.push(Compared { subject: of, name, detail: about, quantity, simulated: Vec::new(), real: Vec::new() });
            rows.len() - 1
        });
        of_world(&mut rows[place]).push(value);
    };
    for link in &run.links {
        for (quantity, value) in of_link(link) {
            push(Of::Link, &link.name, &link.discipline, quantity, value);
        }
        for group in &link.groups {
            for (quantity, value) in of_times(&group.sojourn) {
                push(Of::Link, &link.name, &group.name, quantity, value);
            }
        }
    }
    for group in &run.groups {
        for (quantity, value) in of_group(group) {
            push(Of::Group, &group.name, &group.transport, quantity, value);
        }
    }
    for (place, flow) in lasting(run) {
        if let Some(name) = named.get(&place) {
            push(Of::Flow, name, &flow.group, Quantity::GoodputBps, flow.goodput_bps);
        }
    }
}

/// Flows without a size, which last until the end, with their groups and their numbers in them.
fn lasting(run: &Sim) -> impl Iterator<Item = ((&str, u64), &SimFlow)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    run.flows.iter().filter(|flow| flow.bytes.is_none()).map(move |flow| {
        let number = counts.entry(&flow.group).or_default();
        *number += 1;
        ((flow.group.as_str(), *number), flow)
    })
}

fn of_link(link: &SimLink) -> Vec<(Quantity, f64)> {
    let mut values = vec![(Quantity::Utilisation, link.utilisation)];
    values.extend(of_times(&link.sojourn));
    let rates = [(Quantity::DropRate, link.drop_rate), (Quantity::LossRate, link.loss_rate)];
    values.extend(rates.into_iter().chain([(Quantity::MarkRate, link.mark_rate)]));
    values
}

fn of_times(times: &SimTimes) -> impl Iterator<Item = (Quantity, f64)> + use<> {
    let SimTimes { count, mean_ns, p50_ns, p95_ns, p99_ns, .. } = *times;
    let all = [
        (Quantity::DelayMeanNs, mean_ns),
        (Quantity::DelayP50Ns, p50_ns as f64),
        (Quantity::DelayP95Ns, p95_ns as f64),
        (Quantity::DelayP99Ns, p99_ns as f64),
    ];
    all.into_iter().filter(move |_| count > 0)
}

fn of_group(group: &SimGroup) -> Vec<(Quantity, f64)> {
    let mut values = vec![(Quantity::GoodputBps, group.goodput_bps)];
    if group.flows > 1 {
        values.extend([
            (Quantity::LeastLifetimeGoodputBps, group.least_lifetime_goodput_bps),
            (Quantity::MostLifetimeGoodputBps, group.most_lifetime_goodput_bps),
        ]);
        values.push((Quantity::Jain, group.jain));
    }
    if group.transport.starts_with("tcp") {
        values.push((Quantity::Retransmissions, group.retransmissions as f64));
    }
    if let Some(times) = &group.completion {
        values.push((Quantity::CompletionP50Ns, times.p50_ns as f64));
        values.push((Quantity::CompletionP99Ns, times.p99_ns as f64));
    }
    values
}
