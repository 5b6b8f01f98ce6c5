//! Scalable TCP: a hundredth of a segment for each segment, an eighth for each loss, and the paper's recovery times.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, segments};
use queuescope_tcp::CongestionControl;
use queuescope_tcp::congestion::{Scalable, ScalableParams};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100 * MILLISECOND);

/// In congestion avoidance after a loss with `segments` segments.
fn avoiding(params: ScalableParams, segments: u64, rounds: &mut Rounds) -> Scalable {
    let mut control = Scalable::new(params, MSS as u32, segments * MSS, 0);
    rounds.lose(&mut control);
    control
}

#[test]
fn each_segment_adds_a_hundredth() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(ScalableParams::default(), 1_600, &mut rounds);
    assert_eq!(control.window(), 1_400 * MSS);
    for _ in 0..99 {
        rounds.ack(&mut control, MSS, RTT);
    }
    assert_eq!(control.window(), 1_400 * MSS);
    rounds.ack(&mut control, MSS, RTT);
    assert_eq!(control.window(), 1_401 * MSS);
    for _ in 0..25 {
        rounds.ack(&mut control, 2 * MSS, RTT);
    }
    assert_eq!(control.window(), 1_401 * MSS);
    rounds.ack(&mut control, 50 * MSS, RTT);
    assert_eq!(control.window(), 1_402 * MSS);
}

/// The window is back after `log(1 - b) / log(1 + a)` round trips, 13.4, whatever its size. NewReno would need
/// half a window of them.
#[test]
fn the_recovery_time_does_not_depend_on_the_window() {
    let expected = -(1.0_f64 - 0.125).ln() / 1.01_f64.ln();
    assert!((13.4..13.5).contains(&expected));
    for size in [1_000, 10_000, 50_000] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(ScalableParams::default(), size, &mut rounds);
        let mut count = 0;
        while segments(control.window()) < size as f64 {
            rounds.run(&mut control, RTT, 1);
            count += 1;
        }
        assert!((f64::from(count) - expected).abs() <= 1.0, "{size}: {count}");
    }
}

#[test]
fn up_to_the_legacy_window_it_is_reno() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(ScalableParams::default(), 16, &mut rounds);
    assert_eq!(control.window(), 8 * MSS);
    for expected in 9..=17 {
        rounds.run(&mut control, RTT, 1);
        assert_eq!(control.window(), expected * MSS);
    }
    // Above it, 17 segments are no hundred.
    rounds.run(&mut control, RTT, 1);
    assert_eq!(control.window(), 17 * MSS);
    rounds.lose(&mut control);
    assert_eq!(control.window(), 17 * MSS * 7 / 8);
}

#[test]
fn linux_grows_by_a_segment_per_round_trip_at_least() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(ScalableParams::linux(), 23, &mut rounds);
    assert_eq!(control.window(), 21 * MSS, "23 less 23 / 8, rounded down");
    for expected in 22..=30 {
        rounds.run(&mut control, RTT, 2);
        assert_eq!(control.window(), expected * MSS);
    }
    let mut control = avoiding(ScalableParams::linux(), 800, &mut rounds);
    assert_eq!(control.window(), 700 * MSS);
    for expected in [707, 714, 721] {
        rounds.run(&mut control, RTT, 2);
        assert_eq!(control.window(), expected * MSS);
    }
}

/// 50 segments add a segment, and an ACK that brings the count to more than that loses the rest.
#[test]
fn ns3_drops_the_rest_of_its_count() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(ScalableParams::ns3(), 801, &mut rounds);
    assert_eq!(control.window(), 700 * MSS);
    // Of 140 segments, 98 are counted in full, and 2 are dropped with each step.
    for _ in 0..20 {
        rounds.ack(&mut control, 7 * MSS, RTT);
    }
    assert_eq!(control.window(), 702 * MSS, "56, 112, and 28 left");
    for _ in 0..3 {
        rounds.ack(&mut control, 7 * MSS, RTT);
    }
    assert_eq!(control.window(), 702 * MSS);
    rounds.ack(&mut control, 7 * MSS, RTT);
    assert_eq!(control.window(), 703 * MSS);
}
