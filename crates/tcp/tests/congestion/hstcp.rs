//! HighSpeed TCP: the two functions at the values that RFC 3649 prints, growth and reduction by them.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::CongestionControl;
use queuescope_tcp::congestion::{HighSpeed, HighSpeedParams};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100 * MILLISECOND);

/// Rows of the table in appendix B: the window, `a(w)` and `b(w)` in hundredths.
const ROWS: [(u64, u64, f64); 14] = [
    (38, 1, 50.0),
    (118, 2, 44.0),
    (221, 3, 41.0),
    (347, 4, 38.0),
    (663, 6, 35.0),
    (1058, 8, 33.0),
    (2699, 14, 28.0),
    (5036, 20, 25.0),
    (10661, 30, 21.0),
    (19965, 41, 17.0),
    (40808, 56, 14.0),
    (61799, 65, 12.0),
    (84035, 71, 10.0),
    (94717, 73, 9.0),
];

/// In congestion avoidance with `segments` segments.
fn avoiding(params: HighSpeedParams, segments: u64, rounds: &mut Rounds) -> HighSpeed {
    let mut control = HighSpeed::new(params, MSS as u32, segments * MSS, 0);
    let window = control.window();
    rounds.lose(&mut control);
    assert!(control.window() < window);
    control
}

/// The RFC computed its table with the response function's exact numbers, which `0.078 / w^1.2` has to three digits.
#[test]
fn the_formulas_give_the_table() {
    let params = HighSpeedParams::default();
    for (window, increase, decrease) in ROWS {
        let (a, b) = (params.increase(window as f64), params.decrease(window as f64));
        assert!((a - increase as f64).abs() < 0.05, "a({window}) = {a}");
        assert!((100.0 * b - decrease).abs() <= 0.5, "b({window}) = {b}");
    }
    assert!((params.decrease(83_000.0) - 0.1).abs() < 1e-12);
    assert_eq!((params.increase(38.0), params.decrease(38.0)), (1.0, 0.5));
}

/// Each row of the table that ns-3 and Linux use has the formulas' values at its last window.
#[test]
fn the_rows_of_the_table_are_the_formulas() {
    let (exact, table, linux) = (HighSpeedParams::default(), HighSpeedParams::ns3(), HighSpeedParams::linux());
    let mut rows = 1;
    for window in (38..94_717).map(f64::from) {
        let (row, next) = (table.increase(window), table.increase(window + 1.0));
        if row == next {
            continue;
        }
        assert_eq!((row, next), (f64::from(rows), f64::from(rows) + 1.0));
        rows += 1;
        let (a, b) = (exact.increase(window), exact.decrease(window));
        assert!((a - row).abs() < 0.05, "a({window}) = {a}");
        assert_eq!(table.decrease(window), (100.0 * b).round() / 100.0, "{window}");
        assert!((0.0..1.0 / 256.0).contains(&(b - linux.decrease(window))), "{window}");
    }
    assert_eq!(rows, 73);
}

/// `a(w)` is the increase with which one loss for each `1 / p` segments keeps the average window at `w`: between losses the
/// window grows from `1 - b` of its peak to the peak, and its average is `1 - b / 2` of it.
#[test]
fn the_increase_balances_the_losses_of_the_response_function() {
    let params = HighSpeedParams::default();
    for window in [100.0, 1_000.0, 10_000.0, 80_000.0_f64] {
        let (a, b) = (params.increase(window), params.decrease(window));
        let peak = window / (1.0 - b / 2.0);
        let acknowledged = b * peak / a * window;
        let losses = 0.078 / window.powf(1.2);
        assert!((acknowledged * losses - 1.0).abs() < 1e-9, "{window}: {acknowledged} {losses}");
    }
}

#[test]
fn linux_and_ns3_use_the_next_row_of_the_table() {
    for (params, windows) in [
        (
            HighSpeedParams::linux(),
            [(1, 1), (38, 1), (39, 2), (118, 2), (119, 3), (53_670, 62), (94_000, 72), (1 << 30, 72)],
        ),
        (
            HighSpeedParams::ns3(),
            [(1, 1), (38, 1), (39, 2), (118, 2), (119, 3), (53_670, 63), (94_000, 73), (1 << 30, 73)],
        ),
    ] {
        for (window, row) in windows {
            assert_eq!(params.increase(f64::from(window)), f64::from(row), "{window}");
        }
    }
    // In Linux b is a multiple of 1/256.
    for (window, units) in [(38, 128), (118, 112), (347, 98), (9_346, 54), (53_677, 31), (89_053, 24), (1 << 30, 24)] {
        assert_eq!(HighSpeedParams::linux().decrease(f64::from(window)) * 256.0, f64::from(units), "{window}");
    }
    for (window, hundredths) in [(118, 0.44), (119, 0.41), (2_378, 0.28), (94_717, 0.09)] {
        assert_eq!(HighSpeedParams::ns3().decrease(f64::from(window)), hundredths);
    }
}

#[test]
fn a_small_window_is_reno() {
    for params in [HighSpeedParams::default(), HighSpeedParams::ns3(), HighSpeedParams::linux()] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 21, &mut rounds);
        for expected in 11..=20 {
            rounds.run(&mut control, RTT, 1);
            // ns-3 does not count the lost segment as in flight, and Linux rounds what a loss takes down.
            let grown = control.window() / MSS;
            assert!(grown.abs_diff(expected) <= 1, "{params:?} {grown} {expected}");
        }
        let before = control.window() / MSS;
        rounds.lose(&mut control);
        assert!((control.window() / MSS).abs_diff(before / 2) <= 1);
    }
}

#[test]
fn a_large_window_grows_by_a_and_shrinks_by_b() {
    let mut rounds = Rounds::new();
    let params = HighSpeedParams::default();
    let mut control = avoiding(params, 15_000, &mut rounds);
    let left = 15_000.0 * (1.0 - params.decrease(15_000.0));
    assert_eq!(control.window(), (left * MSS as f64) as u64);
    for _ in 0..5 {
        let before = control.window() / MSS;
        rounds.run(&mut control, RTT, 1);
        let grown = control.window() / MSS - before;
        let expected = params.increase(before as f64);
        assert!((grown as f64 - expected).abs() <= 1.0, "{grown} {expected}");
        assert!((31..=34).contains(&grown), "{grown}");
    }
}

/// Delayed ACKs do not matter where bytes are counted; Linux counts ACKs.
#[test]
fn linux_grows_half_as_fast_with_delayed_acks() {
    let grown = |params, each| {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 1_000, &mut rounds);
        // The first ACK of congestion avoidance looks up the row.
        let before = control.window() / MSS;
        for _ in 0..10 {
            rounds.run(&mut control, RTT, each);
        }
        control.window() / MSS - before
    };
    // From 500 segments on (Linux takes the first row after slow start) there are 6 for each round trip.
    assert!((58..=62).contains(&grown(HighSpeedParams::linux(), 1)), "{}", grown(HighSpeedParams::linux(), 1));
    assert!((28..=32).contains(&grown(HighSpeedParams::linux(), 2)), "{}", grown(HighSpeedParams::linux(), 2));
    let standard = HighSpeedParams::default();
    assert!(grown(standard, 1).abs_diff(grown(standard, 2)) <= 1);
}

/// Linux looks up the row in congestion avoidance only.
#[test]
fn in_linux_the_first_loss_takes_half_and_a_later_one_b() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(HighSpeedParams::linux(), 1_000, &mut rounds);
    assert_eq!(control.window(), 500 * MSS);
    rounds.run(&mut control, RTT, 1);
    let before = control.window() / MSS;
    // 500 steps of 6 are not quite 500 + 501 + ... + 505.
    assert_eq!(before, 505);
    rounds.lose(&mut control);
    // From 496 to 663 segments b is 89/256.
    assert_eq!(control.window() / MSS, before - before * 89 / 256);
}

/// ns-3 keeps its count of segments: what a larger window left over is worth several of the smaller one.
#[test]
fn ns3_keeps_its_count_when_it_reduces() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(HighSpeedParams::ns3(), 101, &mut rounds);
    // 100 in flight, less 44 %.
    assert_eq!(control.window(), 56 * MSS);
    for _ in 0..27 {
        rounds.ack(&mut control, MSS, RTT);
    }
    assert_eq!(control.window(), 56 * MSS, "a is 2");
    for _ in 0..3 {
        rounds.lose(&mut control);
    }
    // From 55 by 44 % to 30, then by a half to 14 and 6; the count is 54.
    assert_eq!(control.window(), 6 * MSS);
    rounds.ack(&mut control, MSS, RTT);
    // 55 is 6 + 7 + 8 + 9 + 10, and 15 more.
    assert_eq!(control.window(), 12 * MSS);
}
