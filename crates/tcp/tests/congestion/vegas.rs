//! Vegas in a plain fluid model: with a window `w` on a path that holds `b` segments, `w - b` wait, and the round-trip
//! time is `w / b` times the smallest.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::congestion::{RoundEnd, Vegas, VegasParams, Waiting};
use queuescope_tcp::{CongestionControl, Phase};
use queuescope_wire::Nanos;

const BASE: u64 = 50 * MILLISECOND;

fn profiles() -> [VegasParams; 3] {
    [VegasParams::default(), VegasParams::ns3(), VegasParams::linux()]
}

fn with(params: VegasParams, segments: u64) -> Vegas {
    Vegas::new(params, MSS as u32, segments * MSS, 0)
}

/// The round-trip time of a window on a path that holds `path` segments.
fn rtt(window: u64, path: u64) -> Nanos {
    Nanos((BASE * (window / MSS) / path).max(BASE))
}

#[test]
fn between_alpha_and_beta_segments_wait() {
    for params in profiles() {
        for path in [10, 40, 100, 250] {
            let (mut control, mut rounds) = (with(params, 4), Rounds::new());
            let mut steady = 0;
            for round in 0..1_000 {
                let time = rtt(control.window(), path);
                rounds.run(&mut control, time, 1);
                let waiting = (control.window() / MSS) as i64 - path as i64;
                if round >= 900 {
                    steady += 1;
                    // One less and one more, because whole segments and whole round trips are counted.
                    assert!((1..=5).contains(&waiting), "{params:?} {path}: {waiting}");
                }
            }
            assert_eq!(steady, 100);
            assert!(control.stats().slow_start_exits == 1);
        }
    }
}

/// Slow start from 4: 8, 16, 32, 64 segments on a path of 40. That 24 of 64 wait is known a round trip later, when
/// there are at least 128. The window becomes the part of them that does not wait, and then shrinks by one segment at a
/// time.
#[test]
fn slow_start_ends_when_more_than_gamma_wait() {
    let (mut control, mut rounds) = (with(VegasParams::linux(), 4), Rounds::new());
    let mut windows = Vec::new();
    for _ in 0..9 {
        let time = rtt(control.window(), 40);
        rounds.run(&mut control, time, 1);
        windows.push(control.window() / MSS);
    }
    assert_eq!(windows[..5], [8, 16, 32, 64, 128]);
    assert!((81..=101).contains(&windows[5]), "{windows:?}");
    for two in windows[5..].windows(2) {
        assert_eq!(two[0] - two[1], 1, "{windows:?}");
    }
    assert!(control.slow_start_threshold() <= control.window() + 4 * MSS);
}

/// A window of 40 with 50 ms empty and 55 ms now: 40 (1 - 50/55) = 3.64; ns-3 40 - 36 = 4; Linux 40 * 5/50 = 4.
#[test]
fn waiting_segments_are_counted_in_three_ways() {
    let count = |waiting| {
        let params = VegasParams { waiting, ..VegasParams::default() };
        params.waiting(40, Nanos(50 * MILLISECOND), Nanos(55 * MILLISECOND))
    };
    let (exact, without) = count(Waiting::Exact);
    assert!((exact - 40.0 * (1.0 - 50.0 / 55.0)).abs() < 1e-12);
    assert_eq!((without, count(Waiting::Whole), count(Waiting::OverBase)), (36, (4.0, 36), (4.0, 36)));
}

#[test]
fn a_loss_halves_the_window_but_takes_one_segment_in_ns3() {
    for (params, left) in [(VegasParams::default(), 20), (VegasParams::ns3(), 39), (VegasParams::linux(), 20)] {
        let (mut control, mut rounds) = (with(params, 40), Rounds::new());
        rounds.lose(&mut control);
        assert_eq!((control.window(), control.slow_start_threshold()), (left * MSS, left * MSS));
    }
}

#[test]
fn with_two_times_in_a_round_trip_it_acts_as_new_reno() {
    let params = VegasParams { round: RoundEnd::Reached, ..VegasParams::linux() };
    let (mut control, mut rounds) = (with(params, 4), Rounds::new());
    rounds.lose(&mut control);
    assert_eq!(control.window(), 2 * MSS);
    // Whatever the round-trip time: 2, then 3 segments in one ACK each, after the first ACK began a round trip.
    for (time, expected) in [(BASE, 2), (BASE, 3), (9 * BASE, 4)] {
        let bytes = control.window();
        rounds.ack(&mut control, bytes, Nanos(time));
        assert_eq!(control.window(), expected * MSS);
    }
    assert_eq!(control.stats().increases + control.stats().decreases, 0);
}

/// Linux starts over when it sends while nothing is in flight, and the round trip ends with the first ACK of that data. If it began with that ACK, a
/// window of two segments that are acknowledged together would never grow.
#[test]
fn a_window_of_two_segments_with_one_ack_for_both_grows() {
    let (mut control, mut rounds) = (with(VegasParams::linux(), 4), Rounds::new());
    rounds.lose(&mut control);
    for expected in [3, 4, 5] {
        let bytes = control.window();
        control.on_sent(MSS, MSS, rounds.now);
        rounds.ack(&mut control, bytes, Nanos(BASE));
        assert_eq!(control.window(), expected * MSS);
    }
}

#[test]
fn after_a_timeout_it_acts_as_new_reno_until_everything_is_repaired() {
    let (mut control, mut rounds) = (with(VegasParams::linux(), 40), Rounds::new());
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 20 * MSS));
    rounds.phase = Phase::Loss;
    for expected in [2, 4, 8] {
        rounds.run(&mut control, Nanos(9 * BASE), 1);
        assert_eq!(control.window(), expected * MSS);
    }
}

/// None of 39 segments wait: one more after a round trip of 39, which begins with the first ACK, or with the one that
/// ends disorder. ACKs in disorder do not count here.
#[test]
fn a_round_trip_begins_where_disorder_ends() {
    for (disorder, expected) in [(false, 40), (true, 10 + 40)] {
        let (mut control, mut rounds) = (with(VegasParams::ns3(), 40), Rounds::new());
        rounds.lose(&mut control);
        let mut acks = 0;
        while control.window() == 39 * MSS {
            if disorder && acks == 10 {
                rounds.phase = Phase::Disorder;
                rounds.ack(&mut control, MSS, Nanos(BASE));
                rounds.phase = Phase::Open;
            }
            rounds.ack(&mut control, MSS, Nanos(BASE));
            acks += 1;
        }
        assert_eq!((acks, control.window()), (expected, 40 * MSS));
    }
}
