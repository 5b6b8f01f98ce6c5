//! Parts of a report as tables.

use crate::arrow::{Columns, RawTable, table_of};
use crate::failure::{Failure, Outcome};
use queuescope::report::model::{Culprit, Culprits, Report, Series, Sim};

/// A part by its name.
///
/// # Errors
/// Fails for an unknown name, or if the report lacks the part.
pub fn part(report: &Report, part: &str) -> Outcome<RawTable> {
    match part {
        "bursts" => table_of(Columns::default(), &report.bursts),
        "culprits" => culprits(report),
        "groups" => groups(report),
        "delays" => delays(report),
        "depth" => depth(series(report)?),
        "depth_by_flow" => depth_by_flow(series(report)?),
        "sketch" => table_of(Columns::default(), &report.sketch),
        "notes" => table_of(Columns::default(), &report.skipped),
        "links" => table_of(Columns::default(), &sim(report)?.links),
        "flow_groups" => table_of(Columns::default(), &sim(report)?.groups),
        "flows" => table_of(Columns::default(), &sim(report)?.flows),
        "link_samples" => link_samples(sim(report)?),
        "flow_samples" => flow_samples(sim(report)?),
        other => Err(Failure::Value(format!("a report has no part '{other}'"))),
    }
}

fn series(report: &Report) -> Outcome<&Series> {
    report
        .series
        .as_ref()
        .ok_or_else(|| Failure::Value("the depth of the queue was not kept: leave out depth=False".to_owned()))
}

fn sim(report: &Report) -> Outcome<&Sim> {
    report
        .sim
        .as_ref()
        .ok_or_else(|| Failure::Value("only the report of a simulation has links and flows: see simulate()".to_owned()))
}

/// The culprits over all bursts, whose `burst` is missing, then those of each burst.
fn culprits(report: &Report) -> Outcome<RawTable> {
    let overall = report.culprits.iter().map(|culprits| (None, culprits));
    let of_bursts = report.bursts.iter();
    let of_bursts = of_bursts.flat_map(|burst| burst.culprits.iter().map(|culprits| (Some(burst.number), culprits)));
    let (mut bursts, mut granularities, mut flows) = (Vec::new(), Vec::new(), Vec::<Culprit>::new());
    for (burst, Culprits { granularity, flows: listed, .. }) in overall.chain(of_bursts) {
        bursts.extend(listed.iter().map(|_| burst));
        granularities.extend(listed.iter().map(|_| granularity.as_str()));
        flows.extend(listed.iter().cloned());
    }
    table_of(Columns::default().counts_if_known("burst", bursts).texts("granularity", granularities), &flows)
}

/// What flows of a burst have in common.
fn groups(report: &Report) -> Outcome<RawTable> {
    let groups = report.bursts.iter().flat_map(|burst| burst.groups.iter().map(|group| (burst.number, group.clone())));
    let (bursts, groups): (Vec<_>, Vec<_>) = groups.unzip();
    table_of(Columns::default().counts("burst", bursts), &groups)
}

fn delays(report: &Report) -> Outcome<RawTable> {
    let percentiles = &report.totals.delay_percentiles;
    Columns::default()
        .numbers("percentile", percentiles.iter().map(|(percentile, _)| *percentile))
        .counts("delay_ns", percentiles.iter().map(|(_, delay)| *delay))
        .table()
        .map_err(Failure::value)
}

/// The starts of `count` buckets.
fn starts(series: &Series, count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|bucket| series.start_ns.saturating_add(bucket.saturating_mul(series.bucket_ns)))
}

fn depth(series: &Series) -> Outcome<RawTable> {
    let count = series.mean_bytes.len();
    let padded = |values: &[u64]| (0..count).map(|bucket| values.get(bucket).copied().unwrap_or(0)).collect::<Vec<_>>();
    Columns::default()
        .counts("time_ns", starts(series, count))
        .numbers("mean_bytes", series.mean_bytes.iter().copied())
        .counts("peak_delay_ns", padded(&series.peak_delay_ns))
        .counts("drops", padded(&series.drops))
        .table()
        .map_err(Failure::value)
}

/// The parts of the largest flows, and last that of all others, whose `flow` is missing.
fn depth_by_flow(series: &Series) -> Outcome<RawTable> {
    let count = series.mean_bytes.len();
    let part = |flow: &[f64], bucket: usize| flow.get(bucket).copied().unwrap_or(0.0);
    let known = |bucket| series.flows.iter().map(|flow| part(&flow.mean_bytes, bucket)).sum::<f64>();
    let others: Vec<f64> =
        (0..count).map(|bucket| (part(&series.mean_bytes, bucket) - known(bucket)).max(0.0)).collect();
    let flows = series.flows.iter().map(|flow| (Some(flow.flow.as_str()), flow.mean_bytes.as_slice()));
    let flows: Vec<_> = flows.chain([(None, others.as_slice())]).collect();
    Columns::default()
        .counts("time_ns", flows.iter().flat_map(|_| starts(series, count)))
        .texts_if_known("flow", flows.iter().flat_map(|(flow, _)| (0..count).map(|_| *flow)))
        .numbers("mean_bytes", flows.iter().flat_map(|(_, parts)| (0..count).map(|bucket| part(parts, bucket))))
        .table()
        .map_err(Failure::value)
}

fn link_samples(sim: &Sim) -> Outcome<RawTable> {
    let samples = sim.samples.iter().flat_map(|sample| {
        sim.links.iter().zip(&sample.links).map(|(link, state)| (sample.at_ns, link.name.as_str(), *state))
    });
    let (mut times, mut links, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for (at, link, state) in samples {
        times.push(at);
        links.push(link);
        states.push(state);
    }
    table_of(Columns::default().counts("time_ns", times).texts("link", links), &states)
}

fn flow_samples(sim: &Sim) -> Outcome<RawTable> {
    let samples = sim.samples.iter().flat_map(|sample| sample.flows.iter().map(|state| (sample.at_ns, *state)));
    let (times, states): (Vec<_>, Vec<_>) = samples.unzip();
    table_of(Columns::default().counts("time_ns", times), &states)
}
