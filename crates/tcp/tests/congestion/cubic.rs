//! CUBIC compared with RFC 9438's equations.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, SECOND, segments};
use queuescope_tcp::congestion::{Cubic, CubicParams, SlowStart};
use queuescope_tcp::{CongestionControl, Phase};
use queuescope_wire::Nanos;

fn with(params: CubicParams, segments: u64) -> Cubic {
    Cubic::new(CubicParams { slow_start: SlowStart::UntilLoss, ..params }, MSS as u32, segments * MSS, 0)
}

/// The cubic of section 4.2 in segments, `since` seconds after a reduction from `largest` to `left`.
fn curve(largest: f64, left: f64, since: f64) -> f64 {
    let k = ((largest - left) / 0.4).cbrt();
    0.4 * (since - k).powi(3) + largest
}

/// A loss, followed by round trips of `rtt` for `seconds` seconds. Returns the time since the first ACK after the loss,
/// and the window.
fn after_loss(control: &mut Cubic, rounds: &mut Rounds, rtt: Nanos, seconds: u64) -> Vec<(f64, f64)> {
    rounds.lose(control);
    let mut began = None;
    let mut windows = Vec::new();
    let end = rounds.now.0 + seconds * SECOND;
    while rounds.now.0 < end {
        let first = rounds.now.0 + rtt.0 / (control.window() / MSS);
        let began = *began.get_or_insert(first);
        rounds.run(control, rtt, 1);
        windows.push(((rounds.now.0 - began) as f64 / 1e9, segments(control.window())));
    }
    windows
}

#[test]
fn the_window_follows_the_curve_within_a_segment() {
    for (largest, milliseconds) in [(100, 100), (100, 20), (400, 50), (1_000, 10)] {
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let (mut control, mut rounds) = (with(params, largest), Rounds::new());
        let windows = after_loss(&mut control, &mut rounds, Nanos(milliseconds * MILLISECOND), 10);
        let left = 0.7 * largest as f64;
        for (since, window) in windows {
            let expected = curve(largest as f64, left, since);
            // It grows by at most half in a round trip, and lags behind where the curve is steep.
            let steep =
                0.4 * 3.0 * (since - ((largest as f64 - left) / 0.4).cbrt()).powi(2) * milliseconds as f64 / 1e3;
            assert!((window - expected).abs() < 1.0 + 0.5 * steep, "{largest} {since}: {window} {expected}");
            if (1.0..8.0).contains(&since) && largest == 100 {
                assert!((window - expected).abs() < 1.0, "{largest} {since}: {window} {expected}");
            }
        }
    }
}

/// Windows that count whole segments lag by up to one segment for the target and one for the counter.
#[test]
fn counted_windows_follow_the_curve_within_two_segments() {
    let linux = CubicParams { reno_friendly: false, ..CubicParams::linux() };
    for (params, largest, milliseconds) in
        [(CubicParams::ns3(), 100, 40), (linux, 100, 40), (CubicParams::ns3(), 400, 20), (linux, 400, 20)]
    {
        let (mut control, mut rounds) = (with(params, largest), Rounds::new());
        let windows = after_loss(&mut control, &mut rounds, Nanos(milliseconds * MILLISECOND), 9);
        for (since, window) in windows.into_iter().filter(|(since, _)| (0.5..9.0).contains(since)) {
            let expected = curve(largest as f64, (0.7 * largest as f64).floor(), since);
            assert!((window - expected).abs() <= 2.0, "{params:?} {largest} {since}: {window} {expected}");
        }
    }
}

/// Section 4.3 by hand: of 20 segments 14 are left. Reno's window grows by 3 * 0.3 / 1.7 segments per window of data
/// until it is 20 again, then by one. The curve is at 16.9 after 0.3 s. Only whole segments are sent.
#[test]
fn with_a_short_round_trip_time_the_window_is_renos() {
    let (mut control, mut rounds) = (with(CubicParams::default(), 20), Rounds::new());
    rounds.lose(&mut control);
    assert_eq!(control.window(), 14 * MSS);
    let mut expected = 14.0;
    for round in 0..60 {
        let sent = segments(control.window()).floor() / segments(control.window());
        rounds.run(&mut control, Nanos(5 * MILLISECOND), 1);
        expected += sent * if expected < 20.0 { 0.9 / 1.7 } else { 1.0 };
        let window = segments(control.window());
        assert!((window - expected).abs() < 1.0, "{round}: {window} {expected}");
    }
    assert!(expected > 55.0, "{expected}");
}

#[test]
fn linux_is_reno_friendly_and_ns3_is_not() {
    let grown = |params, milliseconds| {
        let (mut control, mut rounds) = (with(params, 20), Rounds::new());
        rounds.lose(&mut control);
        for _ in 0..40 {
            rounds.run(&mut control, Nanos(milliseconds * MILLISECOND), 1);
        }
        segments(control.window())
    };
    // 8 / 15 of a segment in each round trip: 21 more. The curve is below 20 until 2.5 s.
    let linux = grown(CubicParams::linux(), 40);
    assert!((linux - 35.3).abs() < 2.0, "{linux}");
    // The count for the next segment is recomputed only every 31 ms: with short round trips it lags behind.
    let linux = grown(CubicParams::linux(), 5);
    assert!((30.0..34.0).contains(&linux), "{linux}");
    // The curve is at 16.1 after 0.2 s.
    let ns3 = grown(CubicParams::ns3(), 5);
    assert!((14.0..=16.0).contains(&ns3), "{ns3}");
}

/// The second loss comes at 80 segments, below the 100 of the first: the plateau is at 80 * 1.7 / 2 = 68 segments, not
/// at 80.
#[test]
fn a_flow_that_shrinks_twice_gives_up_some_of_its_window() {
    for (fast, largest) in [(true, 68.0), (false, 80.0)] {
        let params = CubicParams { fast_convergence: fast, reno_friendly: false, ..CubicParams::default() };
        let (mut control, mut rounds) = (with(params, 100), Rounds::new());
        rounds.lose(&mut control);
        while control.window() < 80 * MSS {
            rounds.run(&mut control, Nanos(40 * MILLISECOND), 1);
        }
        let left = 0.7 * segments(control.window());
        let k = f64::cbrt((largest - left) / 0.4);
        let windows = after_loss(&mut control, &mut rounds, Nanos(40 * MILLISECOND), 6);
        let (_, at_k) = windows.iter().find(|(since, _)| *since >= k).unwrap();
        assert!((at_k - largest).abs() < 1.5, "{fast} {k}: {at_k}");
    }
}

#[test]
fn a_reduction_leaves_seven_tenths_and_at_least_two_segments() {
    for params in [CubicParams::default(), CubicParams::ns3(), CubicParams::linux()] {
        for (window, left) in [(100, 70), (10, 7), (2, 2)] {
            let (mut control, mut rounds) = (with(params, window), Rounds::new());
            rounds.lose(&mut control);
            assert_eq!((control.window(), control.slow_start_threshold()), (left * MSS, left * MSS), "{params:?}");
        }
    }
}

#[test]
fn slow_start_doubles() {
    for params in [CubicParams::default(), CubicParams::ns3(), CubicParams::linux()] {
        let (mut control, mut rounds) = (with(params, 10), Rounds::new());
        for expected in [20, 40, 80] {
            rounds.run(&mut control, Nanos(100 * MILLISECOND), 2);
            assert_eq!(control.window(), expected * MSS);
        }
    }
}

/// After a timeout `K` is zero, and the origin is the window with which congestion avoidance begins (section 4.8).
#[test]
fn after_a_timeout_the_curve_begins_at_the_threshold() {
    let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
    let (mut control, mut rounds) = (with(params, 100), Rounds::new());
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 70 * MSS));
    rounds.phase = Phase::Loss;
    while control.window() < 70 * MSS {
        rounds.run(&mut control, Nanos(40 * MILLISECOND), 1);
    }
    rounds.phase = Phase::Open;
    let began = rounds.now.0;
    while rounds.now.0 < began + 5 * SECOND {
        rounds.run(&mut control, Nanos(40 * MILLISECOND), 1);
        let since = (rounds.now.0 - began) as f64 / 1e9;
        let expected = 70.0 + 0.4 * since.powi(3);
        assert!((segments(control.window()) - expected).abs() < 1.5, "{since}: {expected} {}", control.window());
    }
}

/// Before any loss Linux and ns-3 grow by at least one segment per twenty.
#[test]
fn before_a_loss_counted_windows_grow_by_a_twentieth() {
    for params in [CubicParams::ns3(), CubicParams { reno_friendly: false, ..CubicParams::linux() }] {
        let (mut control, mut rounds) = (with(params, 100), Rounds::new());
        control.on_timeout(&rounds.loss(&control), rounds.now);
        rounds.phase = Phase::Loss;
        while control.window() < control.slow_start_threshold() {
            rounds.run(&mut control, Nanos(10 * MILLISECOND), 1);
        }
        rounds.phase = Phase::Open;
        let before = control.window();
        for _ in 0..10 {
            rounds.run(&mut control, Nanos(10 * MILLISECOND), 1);
        }
        let factor = control.window() as f64 / before as f64;
        assert!((factor - 1.05f64.powi(10)).abs() < 0.08, "{factor}");
    }
}

#[test]
fn a_window_grows_by_at_most_half_in_a_round_trip() {
    for params in [CubicParams::default(), CubicParams::ns3(), CubicParams::linux()] {
        let (mut control, mut rounds) = (with(params, 20), Rounds::new());
        rounds.lose(&mut control);
        rounds.run(&mut control, Nanos(10 * MILLISECOND), 1);
        // A minute without events that still counts as time: the curve is far above.
        rounds.now = Nanos(rounds.now.0 + 60 * SECOND);
        let mut before = control.window();
        for _ in 0..8 {
            rounds.run(&mut control, Nanos(10 * MILLISECOND), 1);
            let factor = control.window() as f64 / before as f64;
            // Each ACK adds half a segment: compounding within the round trip makes it a little less or more than half.
            assert!((1.3..=1.65).contains(&factor), "{params:?}: {factor}");
            before = control.window();
        }
    }
}

#[test]
fn idle_time_does_not_count_except_in_ns3() {
    let run = |params, idle: bool| {
        let (mut control, mut rounds) = (with(params, 100), Rounds::new());
        rounds.lose(&mut control);
        for _ in 0..10 {
            rounds.run(&mut control, Nanos(40 * MILLISECOND), 1);
            control.on_sent(MSS, control.window(), rounds.now);
        }
        if idle {
            rounds.now = Nanos(rounds.now.0 + 20 * SECOND);
            control.on_sent(MSS, MSS, rounds.now);
        }
        for _ in 0..10 {
            rounds.run(&mut control, Nanos(40 * MILLISECOND), 1);
        }
        segments(control.window())
    };
    for params in [CubicParams::default(), CubicParams::linux()] {
        assert!((run(params, true) - run(params, false)).abs() <= 1.0);
    }
    assert!(run(CubicParams::ns3(), true) > 2.0 * run(CubicParams::ns3(), false));
}
