//! Rate jumps against a Count-Min Sketch for each window, and against exact counts where keys do not collide.

use proptest::prelude::*;
use queuescope_sketch::{ConQuest, ConQuestParams, CountMin, Expiry, Jump, Passes, Weights};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

const GENERATED: Expiry = Expiry::Clean { passes: Passes::Generated };

fn params(snapshots: usize, rows: usize, columns: usize, window: u64, expiry: Expiry) -> ConQuestParams {
    ConQuestParams { snapshots, rows, columns, window: Nanos(window), expiry, weights: Weights::Fine, seed: 7 }
}

proptest! {
    #[test]
    fn a_jump_compares_the_two_newest_complete_windows(
        snapshots in 3..9usize, rows in 1..4usize, columns in 1..30usize, window in 1..60u64, tag in any::<bool>(),
        steps in prop::collection::vec((0..9u64, 0..1_500u32, 0..50u64), 1..150), start in 0..500u64
    ) {
        let params = params(snapshots, rows, columns, window, if tag { Expiry::Tag } else { GENERATED });
        let mut sketch = ConQuest::new(params.clone()).expect("the dimensions are possible");
        let mut windows = BTreeMap::<u64, CountMin>::new();
        let mut truth = BTreeMap::<(u64, u64), u64>::new();
        let mut now = start;
        for (key, weight, gap) in steps {
            now += gap;
            sketch.record(key, weight, Nanos(now));
            windows.entry(now / window).or_insert_with(|| CountMin::new(rows, columns, 7)).add(key, weight);
            *truth.entry((now / window, key)).or_default() += u64::from(weight);
            for key in [key, key + 1] {
                let jump = sketch.jump(key, Nanos(now));
                let window_at = |age: u64| (now / window).checked_sub(age).filter(|_| age < params.kept() as u64);
                let model = |age| window_at(age).and_then(|at| windows.get(&at)).map_or(0, |sketch| sketch.estimate(key).into());
                prop_assert_eq!((jump.newest, jump.before), (model(1), model(2)));
                prop_assert_eq!(jump.known, params.kept() > 2 && now / window >= 2);
                let least = |age| window_at(age).and_then(|at| truth.get(&(at, key))).copied().unwrap_or(0);
                prop_assert!(jump.newest >= least(1) && jump.before >= least(2));
            }
        }
    }
}

/// With enough columns, a jump is exact.
#[test]
fn without_collisions_it_is_exact() {
    for expiry in [Expiry::Tag, GENERATED] {
        let mut sketch = ConQuest::new(params(4, 2, 4_096, 1_000, expiry)).expect("the dimensions are possible");
        for window in 2..6u64 {
            for key in 0..8u64 {
                let weight = if window == 4 { 100 + 100 * key } else { 100 };
                (0..3).for_each(|at| sketch.record(key * 0x9e37_79b9, weight as u32, Nanos(window * 1_000 + at)));
            }
        }
        for key in 0..8u64 {
            let jump = sketch.jump(key * 0x9e37_79b9, Nanos(5_999));
            assert_eq!(jump, Jump { newest: 300 + 300 * key, before: 300, known: true });
            assert_eq!(jump.difference(), 300 * i128::from(key));
        }
        // A window later, the newest complete window is window 5.
        let jump = sketch.jump(7 * 0x9e37_79b9, Nanos(6_000));
        assert_eq!((jump.newest, jump.before), (300, 2_400));
        assert_eq!(jump.difference(), -2_100);
    }
}
