//! YeAH: the queue by hand, its two modes, and what it removes with and without a loss.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, segments};
use queuescope_tcp::congestion::{Yeah, YeahParams};
use queuescope_tcp::{Congestion, CongestionControl};
use queuescope_wire::Nanos;

const BASE: Nanos = Nanos(100 * MILLISECOND);
/// The level is 1/10: below 1/8.
const FAST: Nanos = Nanos(110 * MILLISECOND);
/// The level is 1/4; a quarter of 5/4 waits, less than 80 segments of 200.
const SLOW: Nanos = Nanos(125 * MILLISECOND);
/// Half of the window waits.
const LONG: Nanos = Nanos(200 * MILLISECOND);

fn both() -> [YeahParams; 2] {
    [YeahParams::default(), YeahParams::linux()]
}

/// In congestion avoidance with 7/8 of `eighths` times 8 segments, after a loss without a queue. The smallest round-trip
/// time is known, and a round trip has begun.
fn avoiding(params: YeahParams, eighth: u64, rounds: &mut Rounds) -> Yeah {
    let mut control = Yeah::new(params, MSS as u32, 8 * eighth * MSS, 0);
    rounds.lose(&mut control);
    assert_eq!(control.window(), 7 * eighth * MSS);
    rounds.ack(&mut control, MSS, BASE);
    control
}

/// Round trips with one time, until `count` of them were judged.
fn judge(control: &mut Yeah, rounds: &mut Rounds, rtt: Nanos, count: u64) {
    let judged = |control: &Yeah| control.stats().fast_rounds + control.stats().slow_rounds;
    let until = judged(control) + count;
    while judged(control) < until {
        rounds.ack(control, MSS, rtt);
    }
}

/// 100 segments with 50 ms empty and 60 now: 100 * 10 / 60 wait.
#[test]
fn the_queue_is_the_windows_share_of_the_delay() {
    let queue = |params: YeahParams, rtt| params.queue(100.0, Nanos(50 * MILLISECOND), Nanos(rtt));
    assert!((queue(YeahParams::default(), 60 * MILLISECOND) - 100.0 / 6.0).abs() < 1e-12);
    assert_eq!(queue(YeahParams::linux(), 60 * MILLISECOND), 16.0);
    assert_eq!(queue(YeahParams::ns3(), 60 * MILLISECOND), 16.0);
    // A fifth exactly. In ns-3 the rate is rounded, and then the product: 100 / 0.0625 * 0.0125.
    assert_eq!(queue(YeahParams::linux(), 62_500_000), 20.0);
}

/// The fast mode adds a segment for each 100 acknowledged ones, the slow mode for each window.
#[test]
fn the_fast_mode_grows_as_scalable_tcp_and_the_slow_mode_as_reno() {
    for params in both() {
        for (rtt, grown) in [(FAST, 7), (SLOW, 3)] {
            let mut rounds = Rounds::new();
            let mut control = avoiding(params, 30, &mut rounds);
            judge(&mut control, &mut rounds, rtt, 2);
            let before = control.window() / MSS;
            for _ in 0..700 {
                rounds.ack(&mut control, MSS, rtt);
            }
            // 700 / 100, and about 700 / 213; what was counted before may add one.
            let now = control.window() / MSS - before;
            assert!((grown..=grown + 1).contains(&now), "{params:?} {rtt:?}: {now}");
            let stats = control.stats();
            assert_eq!((stats.fast_rounds == 0, stats.slow_rounds == 0), (rtt == SLOW, rtt == FAST));
        }
    }
}

/// At the limit: the level of 1/8 is fast, a microsecond more is slow. For ns-3, 1/8 is 0.
#[test]
fn the_level_decides() {
    for (params, rtt, slow) in [
        (YeahParams::default(), 112_500_000, 0),
        (YeahParams::default(), 112_501_000, 1),
        (YeahParams::linux(), 112_500_000, 0),
        (YeahParams::linux(), 112_501_000, 1),
        (YeahParams::ns3(), 100_000_000, 0),
        (YeahParams::ns3(), 100_001_000, 1),
    ] {
        let mut rounds = Rounds::new();
        let mut control = Yeah::new(params, MSS as u32, 40 * MSS, 0);
        rounds.lose(&mut control);
        for _ in 0..3 {
            rounds.ack(&mut control, MSS, BASE);
        }
        judge(&mut control, &mut rounds, BASE, 1);
        judge(&mut control, &mut rounds, Nanos(rtt), 1);
        // The first ACK of that round trip ended the one before, so all its times are the same.
        assert_eq!(control.stats().slow_rounds, slow, "{params:?} {rtt}");
    }
}

/// 210 segments and a few, of which half wait: the window halves, since the queue is above 80. Of 140, 70 wait.
#[test]
fn a_long_queue_is_removed_without_a_loss() {
    for params in both() {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 30, &mut rounds);
        judge(&mut control, &mut rounds, LONG, 1);
        assert_eq!(control.stats().decongestions, 1);
        let queue = control.queue();
        assert!((105.0..107.0).contains(&queue), "{queue}");
        assert!((segments(control.window()) - queue).abs() <= 1.0, "{} {queue}", control.window());
        assert_eq!(control.slow_start_threshold(), control.window());
        assert_eq!(control.competitor().floor(), (segments(control.window()) / 2.0).floor());

        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 20, &mut rounds);
        judge(&mut control, &mut rounds, LONG, 3);
        assert_eq!((control.stats().decongestions, control.stats().slow_rounds), (0, 3));
        assert!(control.window() >= 140 * MSS);
    }
}

/// Three quarters wait, but at most half of the window is removed.
#[test]
fn at_most_half_of_the_window_is_removed() {
    for params in both() {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 30, &mut rounds);
        judge(&mut control, &mut rounds, BASE, 1);
        judge(&mut control, &mut rounds, Nanos(4 * BASE.0), 1);
        let window = segments(control.window());
        assert!((control.queue() / 3.0 - window / 2.0).abs() < 2.0, "{} {window}", control.queue());
    }
}

/// A competitor of 70 segments, and one more for each of 10 round trips in the slow mode. Removing a queue of two thirds
/// would leave half of 150.
#[test]
fn the_window_stays_above_that_of_a_competing_flow() {
    for params in both() {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 20, &mut rounds);
        judge(&mut control, &mut rounds, SLOW, 2);
        let first = control.competitor();
        assert!((70.0..=72.0).contains(&first), "{first}");
        judge(&mut control, &mut rounds, SLOW, 10);
        assert!((control.competitor() - first - 10.0).abs() < 1e-9);
        let competitor = control.competitor();
        judge(&mut control, &mut rounds, Nanos(3 * BASE.0), 2);
        assert_eq!(control.stats().decongestions, 1);
        // It was larger than half of the window, and was not undercut.
        assert!(segments(control.window()) >= competitor, "{} {competitor}", control.window());
        assert!(segments(control.window()) <= competitor + 2.0, "{} {competitor}", control.window());
        // From here on the competitor is as large as the window. Nothing is removed, however long the queue.
        while segments(control.window()) < 90.0 {
            judge(&mut control, &mut rounds, SLOW, 1);
        }
        let before = control.window();
        judge(&mut control, &mut rounds, Nanos(50 * BASE.0), 3);
        assert!(control.queue() > 80.0);
        assert!((before..=before + 4 * MSS).contains(&control.window()), "{before} {}", control.window());
    }
}

#[test]
fn fifty_one_round_trips_in_the_fast_mode_forget_the_competitor() {
    for params in both() {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 10, &mut rounds);
        judge(&mut control, &mut rounds, SLOW, 3);
        let competitor = control.competitor();
        assert!(competitor > 30.0);
        let before = control.stats().fast_rounds;
        judge(&mut control, &mut rounds, BASE, 50);
        assert_eq!((control.competitor(), control.stats().fast_rounds - before), (competitor, 50));
        judge(&mut control, &mut rounds, BASE, 1);
        assert_eq!(control.competitor(), 2.0);
        // A loss restarts the count, and halves the competitor.
        judge(&mut control, &mut rounds, SLOW, 1);
        judge(&mut control, &mut rounds, BASE, 40);
        let competitor = control.competitor();
        rounds.lose(&mut control);
        assert!((control.competitor() - (competitor / 2.0).max(2.0)).abs() <= 0.5);
        judge(&mut control, &mut rounds, BASE, 50);
        assert!(control.competitor() > 2.0);
    }
}

/// What a loss takes from 140 segments and a few: the queue, but at least an eighth and at most half.
#[test]
fn a_loss_takes_the_queue() {
    for params in both() {
        for (rtt, competes) in [(BASE, false), (FAST, false), (SLOW, false), (LONG, false), (SLOW, true), (FAST, true)]
        {
            let mut rounds = Rounds::new();
            let mut control = avoiding(params, 20, &mut rounds);
            judge(&mut control, &mut rounds, rtt, if competes { 18 } else { 5 });
            let (window, queue) = (segments(control.window()), control.queue());
            rounds.lose(&mut control);
            let taken = if competes && rtt == SLOW { window / 2.0 } else { queue.clamp(window / 8.0, window / 2.0) };
            let left = segments(control.window());
            assert!((left - (window - taken)).abs() <= 1.0, "{params:?} {rtt:?}: {window} {queue} {left}");
            assert_eq!(control.slow_start_threshold(), control.window());
        }
    }
}

#[test]
fn a_timeout_halves_in_the_paper_and_takes_the_queue_in_linux() {
    for (params, left) in [(YeahParams::default(), 0.5), (YeahParams::linux(), 0.875)] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 20, &mut rounds);
        judge(&mut control, &mut rounds, BASE, 2);
        let window = segments(control.window());
        control.on_timeout(&rounds.loss(&control), rounds.now);
        assert_eq!(control.window(), MSS);
        assert!((segments(control.slow_start_threshold()) - left * window).abs() <= 1.0);
    }
}

/// In ns-3 a queue of two segments or more is taken from nothing, two segments at most.
#[test]
fn in_ns3_a_reduction_by_more_than_is_in_flight_wraps() {
    let mut rounds = Rounds::new();
    let mut control = Yeah::new(YeahParams::ns3(), MSS as u32, 40 * MSS, 0);
    rounds.lose(&mut control);
    rounds.ack(&mut control, MSS, BASE);
    judge(&mut control, &mut rounds, SLOW, 2);
    assert!(control.queue() >= 2.0);
    control.on_timeout(&Congestion { in_flight: 0, lost: 0, delivered: 0, next: 0 }, rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, (1 << 32) - 2 * MSS));
}

/// Two ACKs in each round trip, all late.
#[test]
fn two_times_in_a_round_trip_are_too_few() {
    for params in both() {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 20, &mut rounds);
        judge(&mut control, &mut rounds, BASE, 1);
        for _ in 0..20 {
            let half = control.window().div_ceil(MSS).div_ceil(2) + 1;
            rounds.ack(&mut control, half * MSS, LONG);
        }
        assert_eq!(control.stats().slow_rounds, 0);
    }
}
