//! The error bound of section 3.5, and a regression test of estimates.

use proptest::prelude::*;
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Passes, Weights};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::fmt::Write;

const GENERATED: Expiry = Expiry::Clean { passes: Passes::Generated };

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// At most a fraction delta of all flows (e^-R for each window read) is overestimated by more than epsilon times
    /// the total of the windows. Each flow is one draw; the test allows four standard deviations.
    #[test]
    fn the_bound_holds(
        seed in any::<u64>(), h in prop::sample::select(vec![4usize, 6, 8]), rows in 1..5usize, columns in 4..64usize,
        flows in 10..400u64, heavy in 1..40u64
    ) {
        let params = ConQuestParams {
            snapshots: h, rows, columns, window: Nanos(1_000), expiry: GENERATED, weights: Weights::Fine, seed
        };
        let (epsilon, delta) = params.error_bound();
        let mut random = Random(seed);
        let (mut failed, mut estimates) = (0u64, 0u64);
        for round in 0..8 {
            let mut sketch = ConQuest::new(ConQuestParams { seed: seed ^ round, ..params.clone() }).unwrap();
            let (mut truth, mut total) = (BTreeMap::<u64, u64>::new(), 0);
            // The h - 2 complete windows before the end of the interval.
            let passed = (h as u64 - 2) * 1_000;
            for time in 0..passed {
                let flow = (random.next() % flows) / (1 + random.next() % heavy);
                let weight = 64 + (random.next() % 1_451) as u32;
                sketch.record(flow.wrapping_mul(0x2545_f491_4f6c_dd1d), weight, Nanos(time));
                *truth.entry(flow).or_default() += u64::from(weight);
                total += u64::from(weight);
            }
            for (flow, truth) in truth {
                let key = flow.wrapping_mul(0x2545_f491_4f6c_dd1d);
                let estimate = sketch.estimate(key, Nanos(0), Nanos(passed), Estimator::Inner);
                prop_assert!(estimate >= truth);
                estimates += 1;
                failed += u64::from(estimate as f64 > truth as f64 + epsilon * total as f64);
            }
        }
        let allowed = delta * estimates as f64 + 4.0 * (delta * estimates as f64).sqrt();
        prop_assert!(failed as f64 <= allowed, "{} of {} failed, delta is {}", failed, estimates, delta);
    }
}

/// Compares estimates of a fixed stream with the recorded ones.
#[test]
fn a_fixed_stream_gives_the_recorded_estimates() {
    let mut table = String::new();
    for (snapshots, rows, columns, window, expiry, weights) in [
        (4, 2, 32, 4_096, Expiry::Tag, Weights::Fine),
        (4, 2, 32, 5_000, Expiry::Tag, Weights::Eighths),
        (8, 2, 50, 2_500, Expiry::Tag, Weights::Fine),
        (5, 3, 20, 5_000, Expiry::Tag, Weights::Fine),
        (4, 2, 32, 5_000, GENERATED, Weights::Fine),
        (8, 2, 32, 2_500, Expiry::Clean { passes: Passes::None }, Weights::Fine),
    ] {
        let params = ConQuestParams { snapshots, rows, columns, window: Nanos(window), expiry, weights, seed: 1 };
        let mut sketch = ConQuest::new(params).unwrap();
        let (mut random, mut now, mut folded) = (Random(42), 1_000_000, 0u64);
        for packet in 0..5_000 {
            now += 20 + random.next() % 200 + if packet % 500 == 0 { 30_000 } else { 0 };
            let flow = (random.next() % 64).min(random.next() % 64);
            let from = Nanos(now - random.next() % 16_000);
            let weight = 64 + (random.next() % 1_451) as u32;
            let estimate =
                sketch.observe(flow.wrapping_mul(0x9e37_79b9), weight, from, Nanos(now), Estimator::ALL[packet % 3]);
            folded = folded.rotate_left(5) ^ estimate;
        }
        write!(table, "h={snapshots} R={rows} C={columns} T={window} {expiry} {weights:?}:").unwrap();
        for flow in [0u64, 1, 5, 20] {
            for estimator in Estimator::ALL {
                let estimate =
                    sketch.estimate(flow.wrapping_mul(0x9e37_79b9), Nanos(now - 11_111), Nanos(now), estimator);
                write!(table, " {estimate}").unwrap();
            }
        }
        writeln!(table, " all {folded:016x}").unwrap();
    }
    assert_eq!(table, include_str!("estimates.txt"), "\n{table}");
}
