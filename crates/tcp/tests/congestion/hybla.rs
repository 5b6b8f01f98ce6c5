//! Hybla: rho and the steps by hand, the paper's growth round by round, and rates that do not depend on the round-trip
//! time.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::congestion::{Hybla, HyblaParams};
use queuescope_tcp::{CongestionControl, Phase};
use queuescope_wire::Nanos;

fn milliseconds(time: f64) -> Nanos {
    Nanos((time * MILLISECOND as f64) as u64)
}

/// Established after a handshake of `rtt`.
fn with(params: HyblaParams, segments: u64, rtt: Nanos) -> Hybla {
    let mut control = Hybla::new(params, MSS as u32, segments * MSS, 0);
    control.on_established(Some(rtt), Nanos::ZERO);
    control
}

/// In congestion avoidance with `segments` segments, or a few more.
fn avoiding(params: HyblaParams, segments: u64, rtt: Nanos) -> Hybla {
    let (mut control, mut rounds) = (with(params, 1, rtt), Rounds::new());
    while control.window() < 2 * segments * MSS {
        rounds.ack(&mut control, MSS, rtt);
    }
    rounds.lose(&mut control);
    control
}

#[test]
fn rho_is_the_time_relative_to_the_reference() {
    let (paper, ns3, linux) = (HyblaParams::default(), HyblaParams::ns3(), HyblaParams::linux());
    assert_eq!([10.0, 25.0, 100.0].map(|time| paper.rho(milliseconds(time))), [1.0, 1.0, 4.0]);
    assert!((paper.rho(milliseconds(90.0)) - 3.6).abs() < 1e-12);
    // 28.8 eighths.
    assert_eq!(linux.rho(milliseconds(90.0)), 3.5);
    assert_eq!(ns3.rho(milliseconds(120.9)), 120.0 / 50.0);
    assert!(paper.rho(Nanos::MAX).is_finite());
}

#[test]
fn a_step_of_slow_start_is_two_to_the_rho_less_one() {
    let (paper, ns3, linux) = (HyblaParams::default(), HyblaParams::ns3(), HyblaParams::linux());
    for params in [paper, ns3, linux] {
        assert_eq!([1.0, 2.0, 4.0].map(|rho| params.slow_start_step(rho)), [1.0, 3.0, 15.0]);
    }
    assert!((paper.slow_start_step(2.5) - (32_f64.sqrt() - 1.0)).abs() < 1e-12);
    // 128 times the square root of 2 is 181.02.
    assert_eq!(linux.slow_start_step(2.5), (4.0 * 181.0 - 128.0) / 128.0);
    assert_eq!((paper.slow_start_step(20.0), linux.slow_start_step(20.0)), (1_048_575.0, 65_535.0));
}

/// `rho 2^(rho t / RTT)`: with rho 2, 2 segments become 8, 32, 128 after as many round trips.
#[test]
fn slow_start_multiplies_by_two_to_the_rho_in_a_round_trip() {
    let rtt = Nanos(50 * MILLISECOND);
    for params in [HyblaParams::default(), HyblaParams::linux()] {
        let (mut control, mut rounds) = (with(params, 1, rtt), Rounds::new());
        for expected in [2, 8, 32, 128] {
            assert_eq!(control.window(), expected * MSS);
            rounds.run(&mut control, rtt, 1);
        }
    }
    // From 10 segments, with a reference of 25 ms in place of 50.
    let (mut control, mut rounds) =
        (with(HyblaParams { reference: Nanos(25_000_000), ..HyblaParams::ns3() }, 10, rtt), Rounds::new());
    rounds.ack(&mut control, MSS, rtt);
    assert_eq!(control.window(), 13 * MSS);
}

/// With rho 4, 16 segments in a round trip; a little less, as the window grows meanwhile. Linux rounds 2048 / 400 parts
/// for each ACK down to 5, and from 410 segments on to 4.
#[test]
fn congestion_avoidance_adds_the_square_of_rho_in_a_round_trip() {
    let rtt = Nanos(100 * MILLISECOND);
    let ns3 = HyblaParams { reference: Nanos(25_000_000), ..HyblaParams::ns3() };
    for (params, least) in [(HyblaParams::default(), 14), (HyblaParams::linux(), 12), (ns3, 14)] {
        let (mut control, mut rounds) = (avoiding(params, 400, rtt), Rounds::new());
        for _ in 0..5 {
            let before = control.window() / MSS;
            rounds.run(&mut control, rtt, 1);
            let grown = control.window() / MSS - before;
            assert!((least..=16).contains(&grown), "{params:?}: {grown}");
        }
    }
}

/// Both gain the same in rate, segments per second, in the same time: 1 / 0.025^2 of them in each second.
#[test]
fn the_gain_in_rate_does_not_depend_on_the_round_trip_time() {
    for time in [25, 50, 100, 200] {
        let rtt = Nanos(time * MILLISECOND);
        let rate = |control: &Hybla| control.window() as f64 / MSS as f64 * 1_000.0 / time as f64;
        let mut control = avoiding(HyblaParams::default(), 40 * time, rtt);
        let (before, mut rounds) = (rate(&control), Rounds::new());
        while rounds.now.0 < 2_000 * MILLISECOND {
            rounds.run(&mut control, rtt, 1);
        }
        let gained = rate(&control) - before;
        assert!((gained / (2.0 / 0.025_f64.powi(2)) - 1.0).abs() < 0.03, "{time}: {gained}");
    }
}

#[test]
fn a_queue_does_not_speed_growth_up() {
    let (mut control, mut rounds) = (with(HyblaParams::default(), 10, Nanos(50 * MILLISECOND)), Rounds::new());
    rounds.ack(&mut control, MSS, Nanos(500 * MILLISECOND));
    assert_eq!(control.rho(), 2.0);
    rounds.ack(&mut control, MSS, Nanos(30 * MILLISECOND));
    assert_eq!(control.rho(), 1.2);
}

#[test]
fn the_window_starts_with_rho_segments_in_linux() {
    for (time, rho) in [(10.0, 1), (49.0, 1), (50.0, 2), (124.9, 4)] {
        assert_eq!(with(HyblaParams::linux(), 10, milliseconds(time)).window(), rho * MSS);
        assert_eq!(with(HyblaParams::ns3(), 10, milliseconds(time)).window(), 10 * MSS);
    }
    assert_eq!(with(HyblaParams::default(), 10, milliseconds(60.0)).window(), 24 * MSS);
    // Without a measurement, rho stays 1.
    let mut control = Hybla::new(HyblaParams::linux(), MSS as u32, 10 * MSS, 0);
    control.on_established(None, Nanos::ZERO);
    assert_eq!(control.window(), MSS);
    Rounds::new().ack(&mut control, MSS, Nanos(100 * MILLISECOND));
    assert_eq!((control.rho(), control.window()), (1.0, 2 * MSS));
}

/// With rho 1 and 200 segments, an ACK adds 128 / 200 parts, which is none. After 200 ACKs it is a segment, as in Reno.
#[test]
fn in_linux_large_windows_grow_as_reno() {
    let rtt = Nanos(25 * MILLISECOND);
    let (mut control, mut rounds) = (avoiding(HyblaParams::linux(), 200, rtt), Rounds::new());
    for (acks, segments) in [(199, 200), (1, 201), (200, 201), (1, 202)] {
        for _ in 0..acks {
            rounds.ack(&mut control, MSS, rtt);
        }
        assert_eq!(control.window(), segments * MSS);
    }
}

#[test]
fn linux_ignores_round_trip_times_during_a_repair() {
    for (params, rho) in [(HyblaParams::linux(), 4.0), (HyblaParams::default(), 2.0)] {
        let (mut control, mut rounds) = (with(params, 10, Nanos(100 * MILLISECOND)), Rounds::new());
        control.on_congestion(&rounds.loss(&control), rounds.now);
        rounds.phase = Phase::Recovery;
        rounds.ack(&mut control, MSS, Nanos(50 * MILLISECOND));
        assert_eq!(control.rho(), rho);
        rounds.phase = Phase::Open;
        control.on_recovered(rounds.now);
        rounds.ack(&mut control, MSS, Nanos(50 * MILLISECOND));
        assert_eq!(control.rho(), 2.0);
    }
}

#[test]
fn linux_repairs_a_timeout_as_reno() {
    let rtt = Nanos(100 * MILLISECOND);
    for (params, after) in [(HyblaParams::linux(), 2), (HyblaParams::default(), 16)] {
        let (mut control, mut rounds) = (with(params, 1, rtt), Rounds::new());
        while control.window() < 100 * MSS {
            rounds.ack(&mut control, MSS, rtt);
        }
        control.on_timeout(&rounds.loss(&control), rounds.now);
        assert_eq!(control.window(), MSS);
        rounds.phase = Phase::Loss;
        rounds.ack(&mut control, MSS, rtt);
        assert_eq!(control.window(), after * MSS);
    }
}
