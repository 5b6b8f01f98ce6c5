//! What a run measures: completion times by kind of flow, and the queue.
//!
//! All of it follows from the scenario. Flows that start in the last second of the run are left out, whatever the
//! scheme: otherwise the slowest of them, which have not ended by then, would be missing. Each other flow that has not
//! ended counts with its duration so far, and as unfinished.
//!
//! Bursts are observed for as long as the link needs to send one at its full rate. This time is the same for all
//! schemes, and none of them can have sent the burst in it.

use super::bench::{BURST, WEB};
use crate::error::{Error, Result};
use crate::results::Values;
use crate::study::{Cell, Setting};
use queuescope_meter::nearest_rank;
use queuescope_scenario::Capacity;
use queuescope_sim::{FlowRecord, Simulation};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::ops::Range;

/// Completion times of all flows of the workload, in microseconds.
pub const MEDIAN: &str = "median (us)";
pub const P90: &str = "90 % (us)";
pub const P99: &str = "99 % (us)";
pub const P999: &str = "99.9 % (us)";
pub const MEAN: &str = "mean (us)";
/// The same for flows that started before the link could have sent a burst.
pub const MEDIAN_IN_BURSTS: &str = "median in bursts (us)";
pub const P99_IN_BURSTS: &str = "99 % in bursts (us)";
/// The share of such flows.
pub const IN_BURSTS: &str = "flows in bursts (%)";
/// Measured flows of the workload that have not ended at the end of the run.
pub const UNFINISHED: &str = "unfinished";
/// Completion times of flows of more than a megabyte.
pub const LARGE_MEAN: &str = "large, mean (us)";
pub const LARGE_P99: &str = "large, 99 % (us)";
/// The median if each flow took longer by a random time with a mean of 1 ms.
pub const NOISY: &str = "median with 1 ms of noise (us)";
/// Completion times of bursts, in milliseconds.
pub const BURST_MEAN: &str = "burst, mean (ms)";
pub const BURST_LONGEST: &str = "burst, longest (ms)";
/// Sojourn times.
pub const DELAY: &str = "mean delay (us)";
pub const DELAY_P99: &str = "99 % delay (us)";
/// Marked packets, as a share of the workload's and of the bursts' packets.
pub const MARKED: &str = "marked of workload (%)";
pub const MARKED_BURST: &str = "marked of bursts (%)";
/// Bytes of the workload's flows that started, as a share of the link's rate.
pub const LOAD: &str = "load (%)";
/// The sampled queue before the link could have sent a burst.
pub const QUEUE_MEAN: &str = "queue in bursts, mean (packets)";
pub const QUEUE_P90: &str = "queue in bursts, 90 % (packets)";
pub const QUEUE_LONGEST: &str = "queue in bursts, longest (packets)";

/// Flows that start within this time before the end are left out.
const LEFT_OUT: Nanos = Nanos(1_000_000_000);

/// The burst of the time series, and how far the series extends before and after its start.
const SHOWN: usize = 1;
const BEFORE: Nanos = Nanos(10_000_000);
const AFTER: Nanos = Nanos(140_000_000);
/// A flow with more bytes is large, on a link of this rate; on a slower link, proportionally.
const LARGE: f64 = 1e6;
const LARGE_AT: f64 = 10e9;

/// Runs a cell.
///
/// # Errors
/// Fails if it cannot be run, or does not belong to the bench.
pub fn measure(cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
    let scenario = cell.parsed()?;
    let Capacity::Rate(rate) = scenario.link.capacity else { return Err(Error::lacks("the link has no rate")) };
    let duration = scenario.duration;
    let (simulation, about) = cell.whole(setting)?;
    let group = |name: &str| {
        let found = about.groups.iter().position(|group| group.name == name);
        found.ok_or_else(|| Error::lacks(format!("the scenario has no flows '{name}'")))
    };
    let (web, burst) = (group(WEB)?, group(BURST)?);
    let flows = simulation.flows();
    let all_of = |group: usize| flows.iter().filter(move |flow| flow.group as usize == group);
    let last = duration.saturating_sub(LEFT_OUT);
    let of = |group: usize| all_of(group).filter(|flow| flow.started < last);
    let bursts: Vec<_> = of(burst).map(|flow| window(flow, rate)).collect();
    let took = |flow: &FlowRecord| flow.finished.unwrap_or(duration).saturating_sub(flow.started).0;
    let mut values = Values::new();
    let mut outcome = |name: &str, value: Option<f64>| _ = value.map(|value| values.insert(name.to_owned(), value));

    let all = Completion::new(of(web).map(took));
    for (name, percent) in [(MEDIAN, 50.0), (P90, 90.0), (P99, 99.0), (P999, 99.9)] {
        outcome(name, all.percentile(percent));
    }
    outcome(MEAN, all.mean());
    outcome(NOISY, noisy(&all));
    let begun_in = |flow: &&FlowRecord| bursts.iter().any(|during| during.contains(&flow.started));
    let in_bursts = Completion::new(of(web).filter(begun_in).map(took));
    outcome(MEDIAN_IN_BURSTS, in_bursts.percentile(50.0));
    outcome(P99_IN_BURSTS, in_bursts.percentile(99.0));
    outcome(IN_BURSTS, share(in_bursts.0.len() as f64, all.0.len() as f64));
    let least = LARGE * rate.bits_per_second() as f64 / LARGE_AT;
    let large = Completion::new(of(web).filter(|flow| flow.bytes.is_some_and(|it| it as f64 > least)).map(took));
    outcome(LARGE_MEAN, large.mean());
    outcome(LARGE_P99, large.percentile(99.0));
    let of_bursts = Completion::new(of(burst).map(took));
    outcome(BURST_MEAN, of_bursts.mean().map(|mean| mean / 1e3));
    outcome(BURST_LONGEST, of_bursts.percentile(100.0).map(|longest| longest / 1e3));
    let unfinished = |group: usize| of(group).filter(|flow| flow.finished.is_none()).count() as f64;
    outcome("bursts", Some(of(burst).count() as f64));
    outcome("unfinished bursts", Some(unfinished(burst)));
    outcome("flows", Some(of(web).count() as f64));
    outcome(UNFINISHED, Some(unfinished(web)));
    outcome("timeouts", Some(flows.iter().map(|flow| flow.timeouts).sum::<u64>() as f64));
    let bytes: u64 = all_of(web).filter_map(|flow| flow.bytes).sum();
    let capacity = rate.bits_per_second() as f64 * duration.as_secs_f64() / 8.0;
    outcome(LOAD, share(bytes as f64, capacity));

    let link =
        simulation.link(simulation.measured().next().ok_or_else(|| Error::lacks("the scenario measures no link"))?);
    if let Some(sojourn) = link.sojourn() {
        outcome(DELAY, sojourn.mean().map(|time| time / 1e3));
        outcome(DELAY_P99, sojourn.percentile(99.0).map(|time| time.0 as f64 / 1e3));
    }
    outcome("drops", Some(link.drops.iter().sum::<u64>() as f64));
    outcome("utilisation (%)", share(link.sent.bytes.0 as f64, capacity));
    for (name, group) in [(MARKED, web), (MARKED_BURST, burst)] {
        outcome(name, link.groups().get(group).and_then(|it| share(it.marked as f64, it.sojourn.count() as f64)));
    }
    values.extend(queue(&simulation, &bursts));
    Ok(values)
}

/// From a burst's start for as long as the link takes to send it.
fn window(burst: &FlowRecord, rate: Rate) -> Range<Nanos> {
    let time = rate.time_for(ByteCount(burst.bytes.unwrap_or(0)));
    burst.started..burst.started.saturating_add(time)
}

/// A share in percent; `None` of an empty whole.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

/// Completion times in ascending order, in nanoseconds.
struct Completion(Vec<u64>);

impl Completion {
    fn new(times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        Self(times)
    }

    /// The nearest-rank percentile, in microseconds; `None` without times.
    fn percentile(&self, percent: f64) -> Option<f64> {
        nearest_rank(&self.0, percent / 100.0).map(|time| time as f64 / 1e3)
    }

    /// The mean in microseconds; `None` without times.
    fn mean(&self) -> Option<f64> {
        let count = self.0.len() as f64;
        (count > 0.0).then(|| self.0.iter().sum::<u64>() as f64 / count / 1e3)
    }
}

/// The median in microseconds of a completion time plus an independent exponential time with a mean of 1 ms. Bisects
/// the exact share of sums below a value, until as many sums are above as below.
fn noisy(times: &Completion) -> Option<f64> {
    const MEAN_US: f64 = 1000.0;
    let below = |at: f64| {
        let shares = times.0.iter().map(|time| (at - *time as f64 / 1e3).max(0.0));
        shares.map(|room| 1.0 - (-room / MEAN_US).exp()).sum::<f64>() / times.0.len() as f64
    };
    let (mut low, mut high) = (0.0, times.percentile(100.0)? + 100.0 * MEAN_US);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < 0.5 { low = middle } else { high = middle }
    }
    Some(high)
}

/// The queue over time, if it was sampled: in bursts, and all samples around one burst.
fn queue(simulation: &Simulation, bursts: &[Range<Nanos>]) -> Values {
    let mut values = Values::new();
    let samples = || simulation.samples().iter().filter_map(|it| Some((it.at, it.links.first()?.backlog.packets)));
    let in_bursts = samples().filter(|(at, _)| bursts.iter().any(|during| during.contains(at)));
    let mut lengths: Vec<_> = in_bursts.map(|(_, packets)| packets).collect();
    lengths.sort_unstable();
    for (name, share) in [(QUEUE_P90, 0.9), (QUEUE_LONGEST, 1.0)] {
        values.extend(nearest_rank(&lengths, share).map(|packets| (name.to_owned(), packets as f64)));
    }
    if let (false, Some(shown)) = (lengths.is_empty(), bursts.get(SHOWN)) {
        values.insert(QUEUE_MEAN.to_owned(), lengths.iter().sum::<u64>() as f64 / lengths.len() as f64);
        let from = shown.start.saturating_sub(BEFORE);
        for (at, packets) in samples().filter(|(at, _)| (from..=shown.start.saturating_add(AFTER)).contains(at)) {
            values.insert(at_name((at.0 - from.0) / 1_000_000), packets as f64);
        }
    }
    values
}

/// The name of the queue's length `milliseconds` ms after the series begins.
fn at_name(milliseconds: u64) -> String {
    format!("at {milliseconds:03} ms (packets)")
}

/// The milliseconds after the burst's start that a value belongs to, if it is part of the series.
pub fn series_at(name: &str) -> Option<f64> {
    let at: f64 = name.strip_prefix("at ")?.strip_suffix(" ms (packets)")?.parse().ok()?;
    Some(at - BEFORE.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, Scheme};
    use super::*;

    #[test]
    fn percentiles_and_means_are_in_microseconds() {
        let times = Completion::new((1..=1000).rev().map(|n| n * 1000));
        let percentiles = [50.0, 99.0, 99.9, 100.0].map(|percent| times.percentile(percent));
        assert_eq!(percentiles, [500.0, 990.0, 999.0, 1000.0].map(Some));
        assert_eq!(times.mean(), Some(500.5));
        let none = Completion::new(std::iter::empty());
        assert_eq!((none.percentile(50.0), none.mean(), noisy(&none)), (None, None, None));
        assert_eq!((share(1.0, 4.0), share(0.0, 0.0)), (Some(25.0), None));
    }

    /// All flows are alike: the median of an exponential time, ln 2 of its mean, is added to theirs.
    #[test]
    fn noise_is_added() {
        let times = Completion(vec![2_000_000; 100]);
        assert!((noisy(&times).unwrap() - 2000.0 - 1000.0 * 2f64.ln()).abs() < 1e-3);
    }

    const SIMULATED: Setting<'_> = Setting { real: None, note: &|_| () };

    /// The compared flows are the same, whatever the scheme and the duration of bursts.
    #[test]
    fn all_schemes_are_measured_on_the_same_flows() {
        let bench = Bench { slower: 100, sampled: Some(1), ..Bench::SMALL };
        let measured = Scheme::MAIN.map(|scheme| {
            let scenario = bench.scenario("newreno", scheme, 50_000_000, 1);
            measure(&Cell { figure: "test", parameters: Vec::new(), seed: 1, scenario }, &SIMULATED).unwrap()
        });
        let bursts = measured.each_ref().map(|values| values[BURST_MEAN]);
        assert!(bursts[0] != bursts[2], "{bursts:?}");
        for values in &measured {
            // Of those that start within three seconds, the last is left out.
            assert_eq!((values["bursts"], values["unfinished bursts"]), (2.0, 0.0));
            for name in ["flows", IN_BURSTS, LOAD] {
                assert_eq!(values[name], measured[0][name], "{name}");
            }
            assert!(values[IN_BURSTS] > 0.0 && values[QUEUE_LONGEST] >= values[QUEUE_P90]);
            // It cannot be sent faster than the link sends.
            assert!(values[BURST_MEAN] > 40.0);
        }
    }

    /// A flow that has not ended counts with its duration so far.
    #[test]
    fn unfinished_flows_are_counted() {
        let bench = Bench { slower: 100, ..Bench::SMALL };
        // A burst as large as the link sends in eight seconds.
        let scenario = bench.scenario("newreno", Scheme::TAIL, 10_000_000_000, 1);
        let values = measure(&Cell { figure: "test", parameters: Vec::new(), seed: 1, scenario }, &SIMULATED).unwrap();
        assert_eq!((values["bursts"], values["unfinished bursts"]), (2.0, 2.0));
        // They start after 0.3 and 1.3 of 3 seconds.
        assert_eq!((values[BURST_MEAN], values[BURST_LONGEST]), (2200.0, 2700.0));
    }

    #[test]
    fn names_of_the_series_contain_the_time() {
        assert_eq!(series_at(&at_name(0)), Some(-10.0));
        assert_eq!(series_at(&at_name(150)), Some(140.0));
        assert_eq!(series_at(MEDIAN), None);
    }
}
