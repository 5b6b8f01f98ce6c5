//! Time windows against a list of all records.

use proptest::prelude::*;
use queuescope_sketch::{Passed, Windows, WindowsError, WindowsParams};
use queuescope_wire::{ByteCount, FlowId, Nanos};
use std::collections::BTreeMap;

/// Time, flow, bytes.
type Record = (u64, u32, u32);

fn params(cell: u64, windows: usize, flows: usize, levels: usize) -> WindowsParams {
    WindowsParams { cell: Nanos(cell), windows, flows, levels, seed: 1 }
}

fn filled(params: WindowsParams, log: &[Record]) -> Windows {
    let mut windows = Windows::new(params).unwrap();
    log.iter().for_each(|&(time, flow, bytes)| windows.record(FlowId(flow), bytes, Nanos(time)));
    windows
}

/// The exact bytes of each flow in an interval.
fn truth(log: &[Record], from: u64, to: u64) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for (_, flow, bytes) in log.iter().filter(|record| (from..to).contains(&record.0)) {
        *sums.entry(*flow).or_insert(0) += u64::from(*bytes);
    }
    sums
}

fn estimate(passed: &Passed, flow: u32) -> u64 {
    passed.flows.iter().find(|share| share.flow.0 == flow).map_or(0, |share| share.bytes)
}

/// A packet every 50 ns, with a Zipf distribution over many flows that change over time.
fn zipf(records: usize) -> Vec<Record> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let record = |n| {
        let rank = 2000f64.powf(next()) as u32;
        (n as u64 * 50, rank + n as u32 / 10_000 * 7, 64 + (next() * 1450.0) as u32)
    };
    (0..records).map(record).collect()
}

#[test]
fn estimates_have_no_bias_and_at_most_the_stated_deviation() {
    let log = zipf(8_000);
    let truth = truth(&log, 0, u64::MAX);
    const SEEDS: u64 = 150;
    let (mut sums, mut squares, mut deviation) = (BTreeMap::<u32, f64>::new(), BTreeMap::<u32, f64>::new(), 0.0f64);
    for seed in 1..=SEEDS {
        let windows = filled(WindowsParams { seed, ..params(1_000, 8, 16, 10) }, &log);
        let passed = windows.passed(Nanos(0), Nanos(u64::MAX));
        deviation = deviation.max(passed.deviation as f64);
        for (flow, bytes) in &truth {
            let error = estimate(&passed, *flow) as f64 - *bytes as f64;
            *sums.entry(*flow).or_default() += error;
            *squares.entry(*flow).or_default() += error * error;
        }
    }
    assert!(deviation > 0.0);
    for (flow, bytes) in truth {
        let (mean, spread) = (sums[&flow] / SEEDS as f64, (squares[&flow] / SEEDS as f64).sqrt());
        let tolerance = 4.5 * deviation / (SEEDS as f64).sqrt();
        assert!(mean.abs() < tolerance, "flow {flow} of {bytes}: wrong by {mean} on average, more than {tolerance}");
        assert!(spread < 1.2 * deviation, "flow {flow} of {bytes}: the deviation is {spread}, not {deviation}");
    }
}

#[test]
fn large_flows_are_found_in_intervals_of_a_64th_of_their_age() {
    let log = zipf(120_000);
    let windows = filled(params(1_024, 160, 64, 8), &log);
    let now = log[log.len() - 1].0;
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for age in [200_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 5_500_000u64] {
        let (from, to) = (now - age - age / 64, now - age);
        let truth = truth(&log, from, to);
        let total: u64 = truth.values().sum();
        let passed = windows.passed(Nanos(from), Nanos(to));
        assert!(passed.bytes.abs_diff(total) * 20 < total, "{} for {total} bytes", passed.bytes);
        assert!(!passed.clipped && passed.resolution.0 <= age / 64, "{passed:?}");
        for share in passed.at_least(0.01) {
            let known = truth.get(&share.flow.0).copied().unwrap_or(0);
            if known * 100 >= total { right += 1 } else { wrong += 1 }
        }
        let large = truth.iter().filter(|(_, bytes)| **bytes * 100 >= total);
        missed += large.filter(|(flow, _)| estimate(&passed, **flow) * 100 < passed.bytes).count();
    }
    // The intervals have 60 to 1700 packets. In them, many flows are near a hundredth just by chance.
    assert!(right > 100 && wrong * 6 < right && missed * 6 < right, "{right} right, {wrong} wrong, {missed} missed");
}

#[test]
fn the_history_reaches_back_as_far_as_stated() {
    let params = params(1_000, 16, 4, 5);
    let mut windows = Windows::new(params.clone()).unwrap();
    for time in 0..3_000_000 / 100u64 {
        windows.record(FlowId(time as u32 % 9), 100, Nanos(time * 100));
        assert!(Nanos(time * 100).saturating_sub(windows.since()) >= params.reach() || windows.since() == Nanos(0));
    }
    assert!(windows.stats().forgotten > 0, "the test is long enough to discard windows");
    let passed = windows.passed(Nanos(0), Nanos(u64::MAX));
    assert!(passed.clipped, "an interval that starts before the history is clipped");
    assert!(!windows.passed(windows.since(), Nanos(u64::MAX)).clipped);
}

#[test]
fn fitted_windows_use_the_memory_and_reach_far_enough() {
    let (reach, memory) = (Nanos(10_000_000_000), ByteCount(1_000_000));
    let params = WindowsParams::fit(Nanos(16_384), 64, reach, memory, 1).unwrap();
    assert!(params.memory() <= memory && params.reach() >= reach, "{params:?}");
    assert!(params.memory().0 > 980_000, "little memory is unused: {}", params.memory());
    let error = WindowsParams::fit(Nanos(1), 64, reach, ByteCount(30_000), 1).unwrap_err();
    assert!(error.to_string().contains("allow more memory"), "{error}");
}

#[test]
fn errors_state_the_valid_dimensions() {
    assert_eq!(Windows::new(params(0, 8, 8, 8)).unwrap_err(), WindowsError::Cell);
    let error = Windows::new(params(1, 3, 8, 8)).unwrap_err().to_string();
    assert_eq!(error, "the number of windows of a level must be 4 to 65536, not 3");
    assert!(Windows::new(params(1, 8, 0, 8)).is_err());
    assert!(Windows::new(params(1, 8, 8, 49)).is_err());
    assert!(WindowsParams::fit(Nanos(0), 64, Nanos(1), ByteCount(1 << 20), 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// If no window has more than k flows, estimates are exact except for windows that an end of the interval cuts.
    #[test]
    fn few_flows_are_exact_up_to_the_resolution(
        gaps in prop::collection::vec((0..40u64, 0..8u32, 1..1500u32), 1..300), ends in (0..6000u64, 0..3000u64)
    ) {
        let mut now = 0;
        let log: Vec<Record> = gaps.into_iter().map(|(gap, flow, bytes)| { now += gap; (now, flow, bytes) }).collect();
        let windows = filled(params(16, 8, 8, 12), &log);
        let (from, to) = (ends.0, ends.0 + ends.1);
        let passed = windows.passed(Nanos(from), Nanos(to));
        prop_assert_eq!(passed.deviation, 0);
        let slack = passed.resolution.0;
        let (least, most) = (truth(&log, from + slack, to.saturating_sub(slack)), truth(&log, from.saturating_sub(slack), to + slack));
        for flow in 0..8 {
            let bytes = estimate(&passed, flow) as f64;
            // Bytes have eleven significant bits, and are rounded at each of twelve levels.
            let (least, most) = (least.get(&flow).copied().unwrap_or(0), most.get(&flow).copied().unwrap_or(0));
            prop_assert!(bytes >= least as f64 * 0.995 - 1.0 && bytes <= most as f64 * 1.005 + 1.0, "{least} {bytes} {most}");
        }
        let total = truth(&log, 0, u64::MAX).values().sum::<u64>();
        prop_assert_eq!(windows.passed(Nanos(0), Nanos(u64::MAX)).bytes, total);
    }

    /// For any records: no panic, constant memory, and no bytes are lost while no window is discarded.
    #[test]
    fn any_records_are_accepted(
        records in prop::collection::vec(
            (prop_oneof![0..5000u64, any::<u64>()], prop_oneof![0..50u32, any::<u32>()], any::<u32>()), 1..400),
        cell in prop_oneof![1..100u64, any::<u64>().prop_map(|cell| cell.max(1))],
        dimensions in (4..9usize, 1..9usize, 1..6usize),
        ends in any::<(u64, u64)>(), sorted: bool
    ) {
        let mut records = records;
        if sorted {
            records.sort_unstable();
        }
        let params = params(cell, dimensions.0, dimensions.1, dimensions.2);
        let mut windows = Windows::new(params.clone()).unwrap();
        for (time, flow, bytes) in &records {
            windows.record(FlowId(*flow), *bytes, Nanos(*time));
            prop_assert_eq!(windows.memory(), params.memory());
        }
        windows.passed(Nanos(ends.0), Nanos(ends.1));
        let stats = windows.stats();
        prop_assert_eq!(stats.records, records.len() as u64);
        if stats.late == 0 && stats.forgotten == 0 {
            let total: u64 = records.iter().filter(|record| record.0 < u64::MAX).map(|record| u64::from(record.2)).sum();
            let bytes = windows.passed(Nanos(0), Nanos(u64::MAX)).bytes;
            prop_assert!(bytes.abs_diff(total) <= 1 + total / 1_000_000, "{bytes} of {total}");
        }
    }
}
