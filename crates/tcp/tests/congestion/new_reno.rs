//! NewReno compared with RFC 5681 by hand.

use crate::congestion::MSS;
use crate::congestion::rounds::Rounds;
use queuescope_tcp::congestion::{Counting, NewReno, NewRenoParams, Reduced};
use queuescope_tcp::{Congestion, CongestionControl, Phase};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100_000_000);

fn with(params: NewRenoParams, segments: u64) -> NewReno {
    NewReno::new(params, MSS as u32, segments * MSS, 0)
}

/// In congestion avoidance with `segments` segments, after a loss at twice that.
fn avoiding(params: NewRenoParams, segments: u64, rounds: &mut Rounds) -> NewReno {
    let mut control = with(params, 2 * segments);
    let reduced = Congestion { lost: if params.reduced == Reduced::Pipe { 0 } else { MSS }, ..rounds.loss(&control) };
    control.on_congestion(&reduced, rounds.now);
    control.on_recovered(rounds.now);
    assert_eq!(control.window(), segments * MSS);
    control
}

#[test]
fn slow_start_doubles_in_a_round_trip() {
    for params in [NewRenoParams::default(), NewRenoParams::ns3(), NewRenoParams::linux()] {
        let (mut control, mut rounds) = (with(params, 10), Rounds::new());
        for expected in [20, 40, 80, 160] {
            rounds.run(&mut control, RTT, 1);
            assert_eq!(control.window(), expected * MSS);
        }
    }
}

/// Ten segments are five ACKs for two segments each.
#[test]
fn with_delayed_acks_slow_start_grows_by_what_each_kind_of_counting_allows() {
    let limit = |limit| NewRenoParams { counting: Counting::Bytes { limit }, ..NewRenoParams::default() };
    for (params, expected) in [
        (limit(Some(1)), 15),
        (limit(Some(2)), 20),
        (limit(None), 20),
        (NewRenoParams::ns3(), 15),
        (NewRenoParams::linux(), 20),
    ] {
        let (mut control, mut rounds) = (with(params, 10), Rounds::new());
        rounds.run(&mut control, RTT, 2);
        assert_eq!(control.window(), expected * MSS, "{params:?}");
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_in_a_round_trip() {
    for params in [NewRenoParams::default(), NewRenoParams::linux()] {
        for each in [1, 2, 3] {
            let mut rounds = Rounds::new();
            let mut control = avoiding(params, 20, &mut rounds);
            for expected in 21..60 {
                rounds.run(&mut control, RTT, each);
                assert_eq!(control.window(), expected * MSS);
            }
        }
    }
}

/// `w += mss * mss / w` for each ACK, in whole bytes, by hand from 20 segments: 50 bytes for the first (20 050), then
/// 49 (to 20 099), ... In total `w^2 / 2` grows by `mss^2` per ACK.
#[test]
fn ns3_adds_a_little_with_each_ack() {
    for (each, acks) in [(1, 20), (2, 10)] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(NewRenoParams::ns3(), 20, &mut rounds);
        rounds.ack(&mut control, each * MSS, RTT);
        assert_eq!(control.window(), 20_050);
        rounds.ack(&mut control, each * MSS, RTT);
        assert_eq!(control.window(), 20_099);
        for _ in 2..acks {
            rounds.ack(&mut control, each * MSS, RTT);
        }
        let exact = (20_000f64.powi(2) + 2.0 * 1e6 * f64::from(acks)).sqrt();
        assert!((control.window() as f64 - exact).abs() < f64::from(acks) + 1.0, "{} {exact}", control.window());
    }
}

#[test]
fn slow_start_stops_at_the_threshold_and_the_rest_counts_afterwards() {
    let mut rounds = Rounds::new();
    let mut control = with(NewRenoParams::linux(), 20);
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 10 * MSS));
    rounds.phase = Phase::Loss;
    // 9 of these reach the threshold; 3 count towards the 10 for the next one.
    rounds.ack(&mut control, 12 * MSS, RTT);
    assert_eq!(control.window(), 10 * MSS);
    rounds.ack(&mut control, 6 * MSS, RTT);
    assert_eq!(control.window(), 10 * MSS);
    rounds.ack(&mut control, MSS, RTT);
    assert_eq!(control.window(), 11 * MSS);
}

#[test]
fn a_loss_halves_the_base_and_leaves_at_least_two_segments() {
    let of = |params: NewRenoParams, window, in_flight, lost| {
        let mut control = with(params, window);
        let congestion = Congestion { in_flight: in_flight * MSS, lost: lost * MSS, delivered: 0, next: 0 };
        control.on_congestion(&congestion, Nanos::ZERO);
        assert_eq!(control.window(), control.slow_start_threshold());
        control.window()
    };
    assert_eq!(of(NewRenoParams::default(), 40, 31, 3), 15_500);
    assert_eq!(of(NewRenoParams::ns3(), 40, 31, 3), 14_000);
    assert_eq!(of(NewRenoParams::linux(), 41, 31, 3), 20_000);
    for params in [NewRenoParams::default(), NewRenoParams::ns3(), NewRenoParams::linux()] {
        assert_eq!(of(params, 3, 3, 1), 2_000);
    }
}

#[test]
fn a_timer_that_expires_again_keeps_the_threshold() {
    let mut rounds = Rounds::new();
    let mut control = with(NewRenoParams::default(), 40);
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 20 * MSS));
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 20 * MSS));
    // Something was acknowledged: the next expiry is about other data.
    rounds.phase = Phase::Loss;
    for _ in 0..3 {
        rounds.ack(&mut control, MSS, RTT);
    }
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 2 * MSS));
    assert_eq!(control.stats().timeouts, 3);
}

#[test]
fn after_a_timeout_an_ack_adds_at_most_one_segment_if_there_is_a_limit() {
    for (limit, expected) in [(Some(4), 2), (None, 4)] {
        let params = NewRenoParams { counting: Counting::Bytes { limit }, ..NewRenoParams::default() };
        let (mut control, mut rounds) = (with(params, 40), Rounds::new());
        control.on_timeout(&rounds.loss(&control), rounds.now);
        rounds.phase = Phase::Loss;
        rounds.ack(&mut control, 3 * MSS, RTT);
        assert_eq!(control.window(), expected * MSS);
    }
}

#[test]
fn the_window_does_not_grow_in_recovery_or_if_the_application_limits() {
    let (mut control, mut rounds) = (with(NewRenoParams::default(), 10), Rounds::new());
    for phase in [Phase::Recovery, Phase::Reduced] {
        rounds.phase = phase;
        rounds.run(&mut control, RTT, 1);
        assert_eq!(control.window(), 10 * MSS);
    }
    (rounds.phase, rounds.limited) = (Phase::Open, false);
    rounds.run(&mut control, RTT, 1);
    assert_eq!(control.window(), 10 * MSS);
    let mut ns3 = with(NewRenoParams::ns3(), 10);
    rounds.run(&mut ns3, RTT, 1);
    assert_eq!(ns3.window(), 20 * MSS);
}

#[test]
fn an_idle_window_decays_to_the_initial_one() {
    let mut control = with(NewRenoParams::linux(), 100);
    control.on_idle(2, 10 * MSS, Nanos::ZERO);
    assert_eq!((control.window(), control.slow_start_threshold()), (25 * MSS, u64::MAX));
    control.on_idle(40, 10 * MSS, Nanos::ZERO);
    assert_eq!(control.window(), 10 * MSS);
    // The threshold is raised to three quarters of the old window.
    let mut control = with(NewRenoParams::linux(), 40);
    control.on_congestion(&Rounds::new().loss(&control), Nanos::ZERO);
    for _ in 0..20 {
        Rounds::new().run(&mut control, RTT, 1);
    }
    assert_eq!(control.window(), 40 * MSS);
    control.on_idle(1, 10 * MSS, Nanos::ZERO);
    assert_eq!((control.window(), control.slow_start_threshold()), (20 * MSS, 30 * MSS));
}
