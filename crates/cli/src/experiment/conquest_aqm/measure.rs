//! What is measured of a run: completion times by kind of flow, and the queue.

use super::bench::{BURST, Bench, WEB};
use crate::experiment::results::Values;
use anyhow::{Context, Result, bail};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, FlowRecord, Simulation, build};
use queuescope_wire::Nanos;

/// Completion times of all flows of the workload, in microseconds.
pub const MEDIAN: &str = "median (us)";
pub const P90: &str = "90 % (us)";
pub const P99: &str = "99 % (us)";
pub const P999: &str = "99.9 % (us)";
pub const MEAN: &str = "mean (us)";
/// Of those that started while a burst was sent.
pub const MEDIAN_IN_BURSTS: &str = "median in bursts (us)";
pub const P99_IN_BURSTS: &str = "99 % in bursts (us)";
/// The share of such flows.
pub const IN_BURSTS: &str = "flows in bursts (%)";
/// Of those of more than a megabyte.
pub const LARGE_MEAN: &str = "large, mean (us)";
pub const LARGE_P99: &str = "large, 99 % (us)";
/// The same median if each flow took longer by a time of its own, of 1 ms on average.
pub const NOISY: &str = "median with 1 ms of noise (us)";
/// Of the bursts, in milliseconds.
pub const BURST_MEAN: &str = "burst, mean (ms)";
pub const BURST_LONGEST: &str = "burst, longest (ms)";
/// Sojourn times and lengths of the queue.
pub const DELAY: &str = "mean delay (us)";
pub const DELAY_P99: &str = "99 % delay (us)";
pub const LONGEST: &str = "longest queue (packets)";
/// Packets that were marked, as a share of those of the workload, and of the bursts.
pub const MARKED: &str = "marked of workload (%)";
pub const MARKED_BURST: &str = "marked of bursts (%)";
/// Bytes of the workload's flows that started, as a share of the link's rate.
pub const LOAD: &str = "load (%)";
/// While a burst was sent, as samples have it.
pub const QUEUE_MEAN: &str = "queue in bursts, mean (packets)";
pub const QUEUE_P90: &str = "queue in bursts, 90 % (packets)";

/// A burst of the time series, and how long before and after its start that goes.
const SHOWN: usize = 1;
const BEFORE: Nanos = Nanos(10_000_000);
const AFTER: Nanos = Nanos(140_000_000);
/// What a megabyte is, beyond which a flow is large.
const LARGE: u64 = 1_000_000;

/// Runs a scenario of the bench.
///
/// # Errors
/// If it cannot be.
pub fn measure(text: &str, bench: &Bench) -> Result<Values> {
    let scenario = Scenario::parse("conquest-aqm", text, &[])?;
    let Built { mut simulation, groups, meters } = build(&scenario, &Files::default())?;
    simulation.run_until(scenario.duration, &mut ());
    if simulation.is_full() {
        bail!("more packets are on their way than there is room for");
    }
    let flows = simulation.flows();
    let group = |name: &str| groups.iter().position(|group| group.name == name).context("the scenario has both groups");
    let (web, burst) = (group(WEB)?, group(BURST)?);
    let of = |group: usize| flows.iter().filter(move |flow| flow.group as usize == group);
    let bursts: Vec<_> = of(burst).map(|flow| (flow.started, flow.finished.unwrap_or(Nanos::MAX))).collect();
    let mut values = Values::new();
    let mut told = |name: &str, value: f64| _ = values.insert(name.to_owned(), value);

    let all = Completion::of(of(web));
    for (name, percent) in [(MEDIAN, 50.0), (P90, 90.0), (P99, 99.0), (P999, 99.9)] {
        told(name, all.percentile(percent));
    }
    told(MEAN, all.mean());
    told(NOISY, noisy(&all));
    let begun_in = |flow: &&FlowRecord| bursts.iter().any(|(from, to)| (*from..*to).contains(&flow.started));
    let in_bursts = Completion::of(of(web).filter(begun_in));
    told(MEDIAN_IN_BURSTS, in_bursts.percentile(50.0));
    told(P99_IN_BURSTS, in_bursts.percentile(99.0));
    told(IN_BURSTS, 100.0 * in_bursts.0.len() as f64 / all.0.len() as f64);
    let large = Completion::of(of(web).filter(|flow| flow.bytes.is_some_and(|it| it > LARGE / bench.slower)));
    told(LARGE_MEAN, large.mean());
    told(LARGE_P99, large.percentile(99.0));
    // One that is not over counts as long as it was there.
    let took = |(from, to): &(Nanos, Nanos)| (*to).min(simulation.now()).saturating_sub(*from).as_secs_f64() * 1e3;
    told(BURST_MEAN, bursts.iter().map(took).sum::<f64>() / bursts.len() as f64);
    told(BURST_LONGEST, bursts.iter().map(took).fold(0.0, f64::max));
    told("bursts that end", bursts.iter().filter(|(_, to)| *to < Nanos::MAX).count() as f64);
    told("flows", of(web).count() as f64);
    told("unfinished", of(web).filter(|flow| flow.finished.is_none()).count() as f64);
    told("timeouts", flows.iter().map(|flow| flow.timeouts).sum::<u64>() as f64);
    let bytes: u64 = of(web).filter_map(|flow| flow.bytes).sum();
    let seconds = scenario.duration.as_secs_f64();
    told(LOAD, 100.0 * bytes as f64 * 8.0 / seconds / bench.rate());

    let link = simulation.link(*meters.first().context("the scenario has a link")?);
    if let Some(sojourn) = link.sojourn() {
        told(DELAY, sojourn.mean().unwrap_or(0.0) / 1e3);
        told(DELAY_P99, sojourn.percentile(99.0).map_or(0.0, |time| time.0 as f64 / 1e3));
    }
    told(LONGEST, link.longest.0 as f64 / 1500.0);
    told("drops", link.drops.iter().sum::<u64>() as f64);
    told("utilisation (%)", 100.0 * link.sent.bytes.0 as f64 * 8.0 / seconds / bench.rate());
    for (name, group) in [(MARKED, web), (MARKED_BURST, burst)] {
        if let Some(stats) = link.groups().get(group) {
            told(name, 100.0 * stats.marked as f64 / stats.sojourn.count() as f64);
        }
    }
    values.extend(queue(&simulation, &bursts));
    Ok(values)
}

/// Completion times in order, in nanoseconds.
struct Completion(Vec<u64>);

impl Completion {
    /// Those of flows that are over.
    fn of<'a>(flows: impl Iterator<Item = &'a FlowRecord>) -> Self {
        let times = flows.filter_map(|flow| Some(flow.finished?.saturating_sub(flow.started).0));
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        Self(times)
    }

    /// The nearest-rank percentile, in microseconds.
    fn percentile(&self, percent: f64) -> f64 {
        // A percentage that is not exact in binary does not move a rank that is whole.
        let rank = (percent * self.0.len() as f64 / 100.0 - 1e-9).ceil().max(1.0) as usize;
        self.0.get(rank - 1).map_or(f64::NAN, |time| *time as f64 / 1e3)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len() as f64 / 1e3
    }
}

/// The median of the sum of a completion time and an independent time that is exponential with a mean of 1 ms, in microseconds:
/// where as many sums are above as below, by bisection over the exact share that is below.
fn noisy(times: &Completion) -> f64 {
    const MEAN_US: f64 = 1000.0;
    let below = |at: f64| {
        let shares = times.0.iter().map(|time| (at - *time as f64 / 1e3).max(0.0));
        shares.map(|room| 1.0 - (-room / MEAN_US).exp()).sum::<f64>() / times.0.len() as f64
    };
    let (mut low, mut high) = (0.0, times.percentile(100.0) + 100.0 * MEAN_US);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < 0.5 { low = middle } else { high = middle }
    }
    high
}

/// The queue over time, if it was sampled: what it was while bursts were sent, and all of it around one of them.
fn queue(simulation: &Simulation, bursts: &[(Nanos, Nanos)]) -> Values {
    let mut values = Values::new();
    let samples = || simulation.samples().iter().filter_map(|it| Some((it.at, it.links.first()?.backlog.packets)));
    let in_bursts = samples().filter(|(at, _)| bursts.iter().any(|(from, to)| (*from..*to).contains(at)));
    let mut lengths: Vec<_> = in_bursts.map(|(_, packets)| packets).collect();
    lengths.sort_unstable();
    if let (Some(nine_of_ten), Some((start, _))) = (lengths.get(lengths.len() * 9 / 10), bursts.get(SHOWN)) {
        values.insert(QUEUE_MEAN.to_owned(), lengths.iter().sum::<u64>() as f64 / lengths.len() as f64);
        values.insert(QUEUE_P90.to_owned(), *nine_of_ten as f64);
        let from = start.saturating_sub(BEFORE);
        for (at, packets) in samples().filter(|(at, _)| (from..=start.saturating_add(AFTER)).contains(at)) {
            values.insert(at_name((at.0 - from.0) / 1_000_000), packets as f64);
        }
    }
    values
}

/// The name of the queue's length so many milliseconds after the series begins, and back.
fn at_name(milliseconds: u64) -> String {
    format!("at {milliseconds:03} ms (packets)")
}

/// The milliseconds after the burst's start that a value is of, if it is one of the series.
pub fn series_at(name: &str) -> Option<f64> {
    let at: f64 = name.strip_prefix("at ")?.strip_suffix(" ms (packets)")?.parse().ok()?;
    Some(at - BEFORE.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let times = Completion((1..=1000).map(|n| n * 1000).collect());
        assert_eq!([50.0, 99.0, 99.9, 100.0].map(|percent| times.percentile(percent)), [500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(times.mean(), 500.5);
        assert!(Completion(Vec::new()).percentile(50.0).is_nan());
    }

    /// All flows alike: the median of an exponential time, ln 2 of its mean, on top of theirs.
    #[test]
    fn noise_is_added() {
        let times = Completion(vec![2_000_000; 100]);
        assert!((noisy(&times) - 2000.0 - 1000.0 * 2f64.ln()).abs() < 1e-3);
    }

    #[test]
    fn names_of_the_series_tell_the_time() {
        assert_eq!(series_at(&at_name(0)), Some(-10.0));
        assert_eq!(series_at(&at_name(150)), Some(140.0));
        assert_eq!(series_at(MEDIAN), None);
    }
}
