//! The part of a report that describes a simulation.

use queuescope_queue::{DropReason, MarkReason};
use queuescope_report::model::{
    Sim, SimFlow, SimFlowSample, SimGroup, SimLink, SimLinkGroup, SimLinkSample, SimSample, SimTimes, SweepTotals,
};
use queuescope_scenario::Scenario;
use queuescope_sim::summary::Times;
use queuescope_sim::{DatagramRecord, FlowRecord, Group, GroupStats, LinkId, LinkStats, Sample, Simulation, summary};
use queuescope_wire::{Granularity, Nanos};
use std::collections::BTreeMap;

/// Facts for a simulation's report that the simulation itself does not have.
#[derive(Debug, Clone)]
pub struct About {
    /// The scenario's name.
    pub name: String,
    /// The scenario's description.
    pub about: Option<String>,
    /// The text of the whole scenario, with all defaults.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The link that the report is about.
    pub meter: String,
    /// The groups of TCP flows and of datagrams, by number.
    pub groups: Vec<Group>,
}

impl About {
    /// The facts that `scenario` states.
    pub fn new(scenario: &Scenario, meter: String, groups: Vec<Group>) -> Self {
        Self {
            name: scenario.name.clone(),
            about: Some(scenario.about.clone()).filter(|about| !about.is_empty()),
            scenario: scenario.explain(),
            seed: scenario.seed,
            meter,
            groups,
        }
    }

    /// Uses the name of the scenario's `file` if the scenario has no name.
    pub fn named(self, file: &str) -> Self {
        let name = if self.name.is_empty() { file.to_owned() } else { self.name };
        Self { name, ..self }
    }
}

/// The most flows that a report lists one by one.
const MAX_FLOWS: usize = 1_000;

/// Summarises `simulation`.
pub fn summarise(simulation: &Simulation, about: About) -> Sim {
    let flows = simulation.flows();
    let first = flows.iter().take(MAX_FLOWS);
    let times = MeasuredPeriod { warmup: simulation.warmup(), end: simulation.now() };
    let group_name = |group: u32| about.groups.get(group as usize).map_or_else(String::new, |group| group.name.clone());
    Sim {
        links: simulation.measured().map(|id| link(simulation, id, &about.groups)).collect(),
        groups: groups(simulation, &flows, &about.groups, times),
        flows: first
            .map(|flow| SimFlow {
                number: flow.number,
                name: Granularity::FiveTuple.name(&flow.key),
                group: group_name(flow.group),
                started_ns: flow.started.0,
                finished_ns: flow.finished.map(|at| at.0),
                bytes: flow.bytes,
                delivered_bytes: flow.counted().delivered,
                goodput_bps: times.over_run(flow.counted().delivered),
                lifetime_goodput_bps: times.over_lifetime(flow),
                retransmissions: flow.counted().retransmissions,
                timeouts: flow.counted().timeouts,
                rtt_ns: flow.smoothed_rtt.map(|rtt| rtt.0),
            })
            .collect(),
        flows_omitted: flows.len().saturating_sub(MAX_FLOWS) as u64,
        samples: samples(simulation.samples()),
        hops: simulation.hops(),
        duration_ns: simulation.now().0,
        warmup_ns: simulation.warmup().0,
        name: about.name,
        about: about.about,
        scenario: about.scenario,
        seed: about.seed,
        meter: about.meter,
        real_time: None,
    }
}

/// Totals over all flows of `simulation`.
pub fn totals(simulation: &Simulation) -> SweepTotals {
    let all = simulation.flows();
    let (flows, sources): (Vec<_>, Vec<_>) = (all.iter().collect(), simulation.datagrams().collect());
    let times = MeasuredPeriod { warmup: simulation.warmup(), end: simulation.now() };
    SweepTotals {
        goodput_bps: times.over_run(delivered(&flows, &sources)),
        jain: summary::jain(times.each(&flows, &sources)),
        completion: completion(&flows, times.warmup),
    }
}

fn link(simulation: &Simulation, id: LinkId, groups: &[Group]) -> SimLink {
    let (params, stats) = (simulation.topology().link(id), simulation.link(id));
    let rate = params.rate.mean();
    let (discipline, counters) = simulation.discipline(id);
    let share = |n: u64| share(n, stats.offered.packets);
    let able = params.rate.capacity(simulation.warmup()..simulation.now());
    let sent = stats.sent.on_link(params.overhead);
    SimLink {
        name: params.name.clone(),
        discipline: discipline.to_owned(),
        rate_bps: rate.bits_per_second(),
        delay_ns: params.delay.0,
        overhead_bytes: params.overhead,
        offered_packets: stats.offered.packets,
        offered_bytes: stats.offered.bytes.0,
        sent_packets: stats.sent.packets,
        sent_bytes: stats.sent.bytes.0,
        // A packet counts in full when its transmission starts, and the last one may not have ended.
        utilisation: if able.0 > 0 { (sent.0 as f64 / able.0 as f64).min(1.0) } else { 0.0 },
        lost_packets: stats.lost,
        loss_rate: self::share(stats.lost, stats.sent.packets),
        drops: by_reason(DropReason::ALL.iter().map(|reason| reason.name()).zip(stats.drops)),
        marks: by_reason(MarkReason::ALL.iter().map(|reason| reason.name()).zip(stats.marks)),
        drop_rate: share(stats.drops.iter().sum()),
        mark_rate: share(stats.marks.iter().sum()),
        wasted_ns: stats.wasted.0,
        peak_backlog_bytes: stats.longest.0,
        sojourn: stats.sojourn().as_ref().map(sim_times).unwrap_or_default(),
        groups: link_groups(stats, groups),
        counters: counters.into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
    }
}

/// The groups whose packets came to a link; empty if present is only one.
fn link_groups(stats: &LinkStats, groups: &[Group]) -> Vec<SimLinkGroup> {
    let came = |group: &GroupStats| group.sojourn.count() + group.dropped;
    let present: Vec<_> = groups.iter().zip(stats.groups()).filter(|(_, stats)| came(stats) > 0).collect();
    let of = |(group, stats): &(&Group, &GroupStats)| SimLinkGroup {
        name: group.name.clone(),
        loss_rate: share(stats.lost, stats.sojourn.count()),
        drop_rate: share(stats.dropped, came(stats)),
        mark_rate: share(stats.marked, came(stats)),
        sojourn: sim_times(&stats.sojourn),
    };
    if present.len() > 1 { present.iter().map(of).collect() } else { Vec::new() }
}

/// `n` as a share of `of`; zero if `of` is zero.
fn share(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 / of as f64 }
}

/// The counts that are not zero, by reason.
fn by_reason(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

fn sim_times(times: &Times) -> SimTimes {
    let at = |percent| times.percentile(percent).map_or(0, |time| time.0);
    SimTimes {
        count: times.count(),
        mean_ns: times.mean().unwrap_or(0.0),
        p50_ns: at(50.0),
        p95_ns: at(95.0),
        p99_ns: at(99.0),
        max_ns: at(100.0),
    }
}

/// The measured part of a run: from the end of the warm-up on.
#[derive(Clone, Copy)]
struct MeasuredPeriod {
    warmup: Nanos,
    end: Nanos,
}

impl MeasuredPeriod {
    /// Bits per second that a flow delivered over its lifetime.
    fn over_lifetime(self, flow: &FlowRecord) -> f64 {
        let from = flow.started.max(self.warmup);
        let to = flow.finished.unwrap_or(self.end);
        let seconds = to.saturating_sub(from).as_secs_f64();
        if seconds > 0.0 { (flow.counted().delivered) as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// The bit rate of `bytes` over the run.
    fn over_run(self, bytes: u64) -> f64 {
        let seconds = self.end.saturating_sub(self.warmup).as_secs_f64();
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// The goodput of each flow that was active, over its lifetime. For datagrams: over the run.
    fn each<'a>(self, flows: &[&'a FlowRecord], sources: &[&'a DatagramRecord]) -> impl Iterator<Item = f64> {
        // Flows that finished during the warm-up do not count.
        let present = flows.iter().filter(move |flow| flow.finished.is_none_or(|at| at > self.warmup));
        let flows = present.map(move |flow| self.over_lifetime(flow));
        flows.chain(sources.iter().map(move |source| self.over_run(source.payload_delivered())))
    }
}

/// Bytes that the receivers got.
fn delivered(flows: &[&FlowRecord], sources: &[&DatagramRecord]) -> u64 {
    flows.iter().map(|flow| flow.counted().delivered).sum::<u64>()
        + sources.iter().map(|source| source.payload_delivered()).sum::<u64>()
}

fn groups(simulation: &Simulation, flows: &[FlowRecord], names: &[Group], times: MeasuredPeriod) -> Vec<SimGroup> {
    let datagrams: Vec<_> = simulation.datagrams().collect();
    let of = |(number, name): (usize, &Group)| {
        let flows: Vec<_> = flows.iter().filter(|flow| flow.group as usize == number).collect();
        let sources: Vec<_> = datagrams.iter().filter(|source| source.group as usize == number).copied().collect();
        group(name, &flows, &sources, times)
    };
    names.iter().enumerate().map(of).collect()
}

fn group(name: &Group, flows: &[&FlowRecord], sources: &[&DatagramRecord], times: MeasuredPeriod) -> SimGroup {
    let each: Vec<_> = times.each(flows, sources).collect();
    let rtts: Vec<_> = flows.iter().filter_map(|flow| flow.smoothed_rtt).map(|rtt| rtt.0 as f64).collect();
    SimGroup {
        name: name.name.clone(),
        transport: name.transport.clone(),
        flows: (flows.len() + sources.len()) as u64,
        finished: flows.iter().filter(|flow| flow.finished.is_some()).count() as u64,
        goodput_bps: times.over_run(delivered(flows, sources)),
        least_lifetime_goodput_bps: each.iter().copied().reduce(f64::min).unwrap_or(0.0),
        most_lifetime_goodput_bps: each.iter().copied().reduce(f64::max).unwrap_or(0.0),
        jain: summary::jain(each.iter().copied()).unwrap_or(0.0),
        retransmissions: flows.iter().map(|flow| flow.counted().retransmissions).sum(),
        timeouts: flows.iter().map(|flow| flow.counted().timeouts).sum(),
        rtt_ns: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
        completion: completion(flows, times.warmup),
    }
}

/// The completion times of flows that finished after the warm-up.
fn completion(flows: &[&FlowRecord], warmup: Nanos) -> Option<SimTimes> {
    let mut times = Times::new();
    for flow in flows {
        if let Some(at) = flow.finished.filter(|at| *at > warmup) {
            times.record(at.saturating_sub(flow.started));
        }
    }
    (times.count() > 0).then(|| sim_times(&times))
}

/// The samples. Counters become differences from the sample before.
fn samples(samples: &[Sample]) -> Vec<SimSample> {
    let mut taken = Vec::with_capacity(samples.len());
    let mut before: Option<&Sample> = None;
    for sample in samples {
        let links = sample.links.iter().enumerate().map(|(n, link)| {
            // Counters restart at the end of the warm-up.
            let since = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
            let then = before.and_then(|before| before.links.get(n));
            SimLinkSample {
                backlog_packets: link.backlog.packets,
                backlog_bytes: link.backlog.bytes.0,
                sent_packets: since(link.sent.packets, then.map_or(0, |then| then.sent.packets)),
                sent_bytes: since(link.sent.bytes.0, then.map_or(0, |then| then.sent.bytes.0)),
                lost: since(link.lost, then.map_or(0, |then| then.lost)),
                drops: since(link.drops, then.map_or(0, |then| then.drops)),
                marks: since(link.marks, then.map_or(0, |then| then.marks)),
                drop_probability: link.drop_probability,
            }
        });
        let flows = sample.flows.iter().map(|flow| {
            let then = before.and_then(|before| before.flows.iter().find(|then| then.number == flow.number));
            SimFlowSample {
                number: flow.number,
                window_bytes: flow.window,
                in_flight_bytes: flow.in_flight,
                rtt_ns: flow.smoothed_rtt.map(|rtt| rtt.0),
                delivered_bytes: flow.delivered - then.map_or(0, |then| then.delivered),
            }
        });
        taken.push(SimSample { at_ns: sample.at.0, links: links.collect(), flows: flows.collect() });
        before = Some(sample);
    }
    taken
}
