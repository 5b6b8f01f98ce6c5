//! The snapshots against plain models: a Count-Min Sketch for each window, and a list of all records.

use proptest::prelude::*;
use queuescope_sketch::{ConQuest, ConQuestParams, CountMin, Estimator, Expiry, Passes, Weights};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

const GENERATED: Expiry = Expiry::Clean { passes: Passes::Generated };
const PLAIN: Expiry = Expiry::Clean { passes: Passes::None };

fn params(snapshots: usize, rows: usize, columns: usize, window: u64, expiry: Expiry) -> ConQuestParams {
    ConQuestParams { snapshots, rows, columns, window: Nanos(window), expiry, weights: Weights::Fine, seed: 7 }
}

fn sketch(params: &ConQuestParams) -> ConQuest {
    ConQuest::new(params.clone()).expect("the dimensions are possible")
}

/// A separate sketch for each window, which is never removed, and a list of all records.
struct Model {
    params: ConQuestParams,
    windows: BTreeMap<u64, CountMin>,
    log: Vec<(u64, u32, u64)>,
    now: u64,
}

impl Model {
    fn new(params: &ConQuestParams) -> Self {
        Self { params: params.clone(), windows: BTreeMap::new(), log: Vec::new(), now: 0 }
    }

    fn record(&mut self, key: u64, weight: u32, now: u64) {
        self.now = now;
        let ConQuestParams { rows, columns, seed, window, .. } = self.params;
        let fresh = || CountMin::new(rows, columns, seed);
        self.windows.entry(now / window.0).or_insert_with(fresh).add(key, weight);
        self.log.push((key, weight, now));
    }

    /// The start of the oldest window that is kept at `to`.
    fn oldest(&self, to: u64) -> u64 {
        let length = self.params.window.0;
        (to / length * length).saturating_sub(length * (self.params.kept() as u64 - 1))
    }

    /// The estimate by the definitions, in floating point.
    fn estimate(&self, key: u64, from: u64, to: u64, estimator: Estimator) -> f64 {
        let (length, current) = (self.params.window.0, to / self.params.window.0);
        let start = current * length;
        let clipped = from < self.oldest(to);
        let (first, since) = (from.max(self.oldest(to)) / length, from.max(self.oldest(to)));
        let count = |window: u64| self.windows.get(&window).map_or(0.0, |sketch| f64::from(sketch.estimate(key)));
        match estimator {
            _ if from >= to => 0.0,
            Estimator::Inner => (since.div_ceil(length)..current).map(count).sum(),
            Estimator::Outer => (first..=current).map(count).sum(),
            Estimator::Overlap => {
                let weight = |window: u64| match window {
                    _ if window == current && from < start => 1.0,
                    _ if window == current => (to - from) as f64 / (to - start) as f64,
                    _ => ((window + 1) * length - since.max(window * length)) as f64 / length as f64,
                };
                let sum: f64 = (first..=current).map(|window| count(window) * weight(window)).sum();
                let covered = (to - self.oldest(to)) as f64;
                if clipped { sum * (to - from) as f64 / covered.max(1.0) } else { sum }
            }
        }
    }

    /// The exact weight of a key in `[from, to)`, without what is no longer kept at `to`.
    fn truth(&self, key: u64, from: u64, to: u64) -> u64 {
        let since = from.max(self.oldest(to));
        let passed = self.log.iter().filter(|(other, _, time)| *other == key && *time >= since && *time < to);
        passed.map(|(_, weight, _)| u64::from(*weight)).sum()
    }
}

/// Whether the estimate agrees with the model: exactly for whole windows, within the precision of the weights for
/// parts.
fn agrees(estimate: u64, model: f64, estimator: Estimator) -> bool {
    match estimator {
        Estimator::Inner | Estimator::Outer => estimate as f64 == model,
        Estimator::Overlap => (estimate as f64 - model).abs() <= 1.0 + model / 16_384.0,
    }
}

#[derive(Debug, Clone)]
struct Step {
    key: u64,
    weight: u32,
    gap: u64,
    delay: u64,
    estimator: Estimator,
}

fn steps(windows: u64) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![6 => 0..4u64, 2 => 0..40u64, 1 => 0..600u64];
    let estimator = prop::sample::select(Estimator::ALL.to_vec());
    let step = (0..6u64, 1..1_600u32, gap, 0..windows, estimator).prop_map(|(key, weight, gap, delay, estimator)| {
        Step { key: key.wrapping_mul(0x9e37_79b9_7f4a_7c15), weight, gap, delay, estimator }
    });
    prop::collection::vec(step, 1..150)
}

/// Start times shortly before window numbers of 31 or 32 bits wrap, and one as in captures.
fn origin() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, (1 << 31) - 60, (1 << 32) - 60, 5 * (1 << 32) - 60, 1_700_000_000_000_000_000])
}

/// Figure 3 of the paper: T = 3, one departure per unit of time, and the packet of flow C that arrived at 2 leaves at
/// 8.
#[test]
fn estimates_agree_with_the_papers_example() {
    const C: u64 = 3;
    let mut sketch = sketch(&params(4, 2, 1_000, 3, Expiry::Tag));
    for (time, flow) in [(0, 1), (1, C), (2, C), (3, C), (4, 1), (5, 2), (6, C), (7, 1)] {
        sketch.record(flow, 1, Nanos(time));
    }
    assert_eq!(sketch.estimate(1, Nanos(0), Nanos(7), Estimator::Outer), 3, "flow A, in all windows");
    assert_eq!(sketch.estimate(C, Nanos(2), Nanos(8), Estimator::Overlap), 3, "2/3 + 1 + 1, as figure 3(b) shows");
    assert_eq!(sketch.estimate(C, Nanos(2), Nanos(8), Estimator::Outer), 4, "snapshots 0, 1 and 2");
    assert_eq!(
        sketch.estimate(C, Nanos(2), Nanos(8), Estimator::Inner),
        1,
        "the formula of section 3.3: snapshot 1 alone"
    );
    // The paper's text adds snapshots 1 and 2, including the packet itself.
    sketch.record(C, 1, Nanos(8));
    assert_eq!(sketch.estimate(C, Nanos(3), Nanos(8), Estimator::Outer), 3);
}

#[test]
fn the_overlap_estimator_weights_parts_of_windows() {
    let mut sketch = sketch(&params(4, 2, 1_000, 100, Expiry::Tag));
    for (time, weight) in [(50, 1_000), (150, 100), (220, 10)] {
        sketch.record(1, weight, Nanos(time));
    }
    let mut overlap = |from, to| sketch.estimate(1, Nanos(from), Nanos(to), Estimator::Overlap);
    assert_eq!(overlap(75, 240), 250 + 100 + 10);
    assert_eq!(overlap(100, 240), 110);
    assert_eq!(overlap(200, 240), 10);
    assert_eq!(overlap(220, 240), 5, "half of the current window so far");
    assert_eq!(overlap(240, 240), 0);
    assert_eq!(sketch.stats().clipped, 0);
}

#[test]
fn weights_in_eighths_are_rounded_to_the_nearest() {
    let mut sketch = sketch(&ConQuestParams { weights: Weights::Eighths, ..params(4, 2, 1_000, 100, Expiry::Tag) });
    sketch.record(1, 8_000, Nanos(50));
    let mut overlap = |from| sketch.estimate(1, Nanos(from), Nanos(199), Estimator::Overlap);
    assert_eq!([overlap(0), overlap(10), overlap(40), overlap(50), overlap(97)], [8_000, 7_000, 5_000, 4_000, 0]);
}

#[test]
fn an_interval_that_starts_before_the_oldest_window_is_extrapolated_and_counted() {
    for expiry in [Expiry::Tag, GENERATED] {
        let mut sketch = sketch(&params(if expiry == Expiry::Tag { 3 } else { 4 }, 2, 100, 100, expiry));
        for time in (0..1_000).step_by(10) {
            sketch.record(1, 10, Nanos(time));
        }
        // Windows are kept since 700, so 300 of the 500 ns.
        let mut estimate = |estimator| sketch.estimate(1, Nanos(500), Nanos(1_000 - 1), estimator);
        assert_eq!([estimate(Estimator::Inner), estimate(Estimator::Outer)], [200, 300]);
        assert_eq!(estimate(Estimator::Overlap), 300 * 499 / 299);
        assert_eq!(sketch.stats().clipped, 3);
    }
}

#[test]
fn a_packet_before_the_current_window_is_counted_as_late() {
    let mut sketch = sketch(&params(4, 2, 100, 100, Expiry::Tag));
    sketch.record(1, 10, Nanos(1_000));
    sketch.record(1, 10, Nanos(10));
    assert_eq!(sketch.stats().late, 1);
    assert_eq!(sketch.estimate(1, Nanos(1_000), Nanos(1_050), Estimator::Outer), 20, "recorded in the current window");
    assert_eq!(sketch.observe(1, 10, Nanos(20), Nanos(10), Estimator::Outer), 0, "the interval ends before it starts");
}

#[test]
fn counters_saturate_and_saturated_additions_are_counted() {
    for expiry in [Expiry::Tag, GENERATED] {
        let mut sketch = sketch(&params(4, 2, 8, 100, expiry));
        for time in 0..3 {
            sketch.record(1, u32::MAX, Nanos(time));
        }
        assert_eq!(sketch.estimate(1, Nanos(0), Nanos(50), Estimator::Outer), u64::from(u32::MAX));
        assert_eq!(sketch.stats().saturated, 4, "two additions in two rows");
    }
}

#[test]
fn without_generated_passes_old_counts_stay_on_an_underused_link() {
    let (mut plain, mut generated) = (sketch(&params(4, 2, 64, 100, PLAIN)), sketch(&params(4, 2, 64, 100, GENERATED)));
    // Ten packets per window clean ten of 64 entries.
    for time in (0..5_000).step_by(10) {
        for sketch in [&mut plain, &mut generated] {
            sketch.record(1, 1, Nanos(time));
        }
    }
    let truth = 20;
    let estimate = |sketch: &mut ConQuest| sketch.estimate(1, Nanos(4_800), Nanos(4_999), Estimator::Outer);
    assert_eq!(estimate(&mut generated), truth);
    assert!(estimate(&mut plain) > truth);
    assert!(plain.stats().dirty > 0 && generated.stats().dirty == 0 && generated.stats().extra_passes > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// With tags, every snapshot agrees with a Count-Min Sketch of its window, at any utilisation and when tags wrap.
    #[test]
    fn with_tags_each_window_agrees_with_a_new_sketch(
        h in prop::sample::select(vec![2usize, 3, 4, 7, 8, 16, 64]), rows in 1..4usize, columns in 1..20usize,
        window in 1..60u64, origin in origin(), jump in prop::option::of(0..140u64), steps in steps(300)
    ) {
        let params = params(h, rows, columns, window, Expiry::Tag);
        let (mut sketch, mut model) = (sketch(&params), Model::new(&params));
        let mut now = origin;
        let middle = steps.len() / 2;
        for (place, Step { key, weight, gap, delay, estimator }) in steps.into_iter().enumerate() {
            now += gap;
            if place == middle {
                now += jump.map_or(0, |jump| ((1u64 << 32) - 70 + jump) * window);
            }
            let from = now.saturating_sub(delay);
            let expected = model.estimate(key, from, now, estimator);
            let estimate = sketch.estimate(key, Nanos(from), Nanos(now), estimator);
            let observed = sketch.observe(key, weight, Nanos(from), Nanos(now), estimator);
            prop_assert_eq!(estimate, observed);
            prop_assert!(agrees(estimate, expected, estimator), "{} is not {} ({})", estimate, expected, estimator);
            let outer = sketch.estimate(key, Nanos(from), Nanos(now), Estimator::Outer);
            prop_assert!(outer >= model.truth(key, from, now));
            model.record(key, weight, now);
        }
        prop_assert_eq!(sketch.stats().late + sketch.stats().saturated + sketch.stats().dirty, 0);
    }

    /// Without collisions, the only error is the rounding to windows. The model has an exact count for each window.
    #[test]
    fn without_collisions_windows_are_exact(h in prop::sample::select(vec![4usize, 5, 8]), window in 1..60u64, steps in steps(200)) {
        let params = params(h, 2, 100_000, window, Expiry::Tag);
        let mut sketch = sketch(&params);
        let mut windows = BTreeMap::new();
        let mut now = 0;
        for Step { key, weight, gap, delay, .. } in steps {
            now += gap;
            let from = now.saturating_sub(delay.min(window * (h as u64 - 1)));
            let sum = |first: u64, end: u64| (first..end).map(|w| windows.get(&(w, key)).copied().unwrap_or(0)).sum();
            let (inner, outer): (u64, u64) =
                (sum(from.div_ceil(window), now / window), if from < now { sum(from / window, now / window + 1) } else { 0 });
            prop_assert_eq!(sketch.estimate(key, Nanos(from), Nanos(now), Estimator::Inner), inner);
            prop_assert_eq!(sketch.estimate(key, Nanos(from), Nanos(now), Estimator::Outer), outer);
            let overlap = sketch.estimate(key, Nanos(from), Nanos(now), Estimator::Overlap);
            prop_assert!(overlap <= outer && (inner <= overlap + 1 || from >= now));
            sketch.record(key, weight, Nanos(now));
            *windows.entry((now / window, key)).or_insert(0) += u64::from(weight);
        }
    }

    /// Cleaning with generated packets agrees with tags and one snapshot less, for any packets.
    #[test]
    fn cleaning_with_generated_passes_agrees_with_tags(
        h in 3..9usize, rows in 1..4usize, columns in 1..30usize, window in 1..60u64, origin in origin(), steps in steps(300)
    ) {
        let mut clean = sketch(&params(h, rows, columns, window, GENERATED));
        let mut tag = sketch(&params(h - 1, rows, columns, window, Expiry::Tag));
        let mut now = origin;
        for Step { key, weight, gap, delay, estimator } in steps {
            now += gap;
            let from = Nanos(now.saturating_sub(delay));
            prop_assert_eq!(
                clean.observe(key, weight, from, Nanos(now), estimator),
                tag.observe(key, weight, from, Nanos(now), estimator)
            );
        }
        prop_assert_eq!(clean.stats().dirty, 0);
    }

    /// Cleaning without generated packets agrees with tags if there are at least C packets in each window.
    #[test]
    fn plain_cleaning_suffices_with_enough_packets(
        h in 3..9usize, columns in 1..8usize, keys in prop::collection::vec((0..50u64, 1..1_600u32, 0..200u64), 1..600)
    ) {
        let window = columns as u64 * 10;
        let mut clean = sketch(&params(h, 2, columns, window, PLAIN));
        let mut tag = sketch(&params(h - 1, 2, columns, window, Expiry::Tag));
        for (time, (key, weight, delay)) in (0..).step_by(10).zip(keys) {
            let (from, now) = (Nanos(u64::saturating_sub(time, delay)), Nanos(time));
            prop_assert_eq!(
                clean.observe(key, weight, from, now, Estimator::Overlap),
                tag.observe(key, weight, from, now, Estimator::Overlap)
            );
        }
        prop_assert_eq!((clean.stats().dirty, clean.stats().extra_passes), (0, 0));
    }

    /// Widening keeps the counts: no estimate is below the exact count. If no window has been discarded yet, the sketch
    /// agrees with one that had wide windows from the start.
    #[test]
    fn widening_keeps_the_counts(
        h in 3..9usize, columns in 1..20usize, window in 1..30u64, clean in any::<bool>(), origin in origin(),
        steps in steps(60), times in 1..4u32
    ) {
        let expiry = if clean { GENERATED } else { Expiry::Tag };
        let narrow = params(h, 2, columns, window, expiry);
        let wide = params(h, 2, columns, window << times, expiry);
        let (mut sketch, mut fresh) = (sketch(&narrow), sketch(&wide));
        let mut model = Model::new(&narrow);
        let (mut now, mut lost) = (origin, false);
        for Step { key, weight, gap, .. } in &steps {
            now += gap;
            sketch.record(*key, *weight, Nanos(now));
            fresh.record(*key, *weight, Nanos(now));
            model.record(*key, *weight, now);
            lost |= model.oldest(now) > origin;
        }
        let kept_since = model.oldest(now);
        (0..times).for_each(|_| sketch.widen());
        prop_assert_eq!(sketch.params(), &wide);
        now += 1;
        for Step { key, delay, .. } in &steps {
            let from = now - delay.min(&now);
            if from >= kept_since {
                let outer = sketch.estimate(*key, Nanos(from), Nanos(now), Estimator::Outer);
                prop_assert!(outer >= model.truth(*key, from, now));
                prop_assert!(outer <= fresh.estimate(*key, Nanos(from), Nanos(now), Estimator::Outer));
            }
            if !lost && from >= origin {
                for estimator in Estimator::ALL {
                    prop_assert_eq!(
                        sketch.estimate(*key, Nanos(from), Nanos(now), estimator),
                        fresh.estimate(*key, Nanos(from), Nanos(now), estimator)
                    );
                }
            }
            now += 1;
            sketch.record(*key, 5, Nanos(now));
            fresh.record(*key, 5, Nanos(now));
            model.record(*key, 5, now);
        }
    }
}
