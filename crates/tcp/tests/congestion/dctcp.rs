//! DCTCP compared with RFC 8257 section 3.3 by hand.

use crate::congestion::MSS;
use crate::congestion::rounds::Rounds;
use queuescope_tcp::congestion::{Dctcp, DctcpParams, Ns3};
use queuescope_tcp::{Ack, Congestion, CongestionControl, Phase};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(1_000_000);

fn with(params: DctcpParams, segments: u64) -> Dctcp {
    Dctcp::new(params, MSS as u32, segments * MSS, 0)
}

/// One window of data whose first `marked` ACKs report marks. Returns how many ACKs it had.
fn window(control: &mut Dctcp, rounds: &mut Rounds, marked: u64) -> u64 {
    let windows = control.stats().windows;
    let mut acks = 0;
    while control.stats().windows == windows {
        rounds.marked_ack(control, MSS, RTT, acks < marked);
        acks += 1;
    }
    acks
}

/// `alpha = 15/16 alpha + 1/16 M`, exactly. The window does not grow: it has twenty segments and the one whose ACK ends
/// it. Before the first window came the ACK that began it.
#[test]
fn alpha_follows_the_recursion() {
    let (mut control, mut rounds) = (with(DctcpParams::default(), 20), Rounds::new());
    rounds.phase = Phase::Reduced;
    rounds.ack(&mut control, MSS, RTT);
    let (mut expected, mut acked) = (1.0, 22.0);
    assert_eq!(control.alpha(), expected);
    for marked in [0, 0, 5, 20, 7, 0, 0, 1] {
        assert_eq!(window(&mut control, &mut rounds, marked), 21);
        expected = 0.9375 * expected + 0.0625 * (marked as f64 / acked);
        acked = 21.0;
        assert!((control.alpha() - expected).abs() < 1e-15, "{} {expected}", control.alpha());
    }
    assert_eq!(control.stats().marked_bytes, 33 * MSS);
}

#[test]
fn with_everything_marked_alpha_goes_to_one_and_with_nothing_marked_to_zero() {
    let (mut control, mut rounds) = (with(DctcpParams::default(), 20), Rounds::new());
    rounds.phase = Phase::Reduced;
    for round in 1..=100 {
        window(&mut control, &mut rounds, 0);
        assert!((control.alpha() - 0.9375f64.powi(round)).abs() < 1e-12);
    }
    for _ in 0..200 {
        window(&mut control, &mut rounds, u64::MAX);
    }
    assert!(control.alpha() > 0.9999);
}

#[test]
fn linux_forgets_an_alpha_below_a_sixty_fourth() {
    let mut alpha = 1.0;
    let params = DctcpParams::linux();
    let mut windows = 0;
    while alpha > 0.0 {
        alpha = params.average(alpha, 0.0);
        windows += 1;
    }
    // (15/16)^65 = 0.0151 is the first below 1/64; the next window sets it to zero.
    assert_eq!(windows, 66);
}

#[test]
fn a_mark_takes_half_of_alpha_and_a_loss_takes_half() {
    for (params, lost, expected) in [
        (DctcpParams::default(), 0, 87_500),
        (DctcpParams::default(), MSS, 50_000),
        (DctcpParams::linux(), MSS, 50_000),
        (DctcpParams::ns3(), MSS, 87_500),
    ] {
        let mut control = with(DctcpParams { initial_alpha: 0.25, ..params }, 100);
        control.on_congestion(&Congestion { in_flight: 100 * MSS, lost, delivered: 0, next: 0 }, Nanos::ZERO);
        assert_eq!((control.window(), control.slow_start_threshold()), (expected, expected));
    }
}

#[test]
fn at_least_two_segments_are_left_but_less_than_one_in_ns3() {
    for (params, left) in
        [(DctcpParams::default(), 2 * MSS), (DctcpParams::linux(), 2 * MSS), (DctcpParams::ns3(), MSS / 4)]
    {
        let (mut control, rounds) = (with(params, 2), Rounds::new());
        for _ in 0..3 {
            control.on_congestion(&rounds.mark(&control), Nanos::ZERO);
        }
        assert_eq!(control.window(), left);
    }
}

#[test]
fn in_ns3_a_first_ack_of_everything_sent_ends_a_window() {
    for (params, windows) in [(DctcpParams::linux(), 0), (DctcpParams::ns3(), 1)] {
        let mut control = with(params, 20);
        control.on_ack(&partial_ack(1, 1), Nanos::ZERO);
        assert_eq!(control.stats().windows, windows);
    }
}

/// An ACK of one segment in recovery, up to `unacknowledged`. `left_last` is the number after the segment sent last;
/// 100 segments are outstanding.
fn partial_ack(unacknowledged: u64, left_last: u64) -> Ack {
    Ack {
        acked: MSS,
        delivered: MSS,
        in_flight_before: 10 * MSS,
        in_flight: 9 * MSS,
        unacknowledged: unacknowledged * MSS,
        next: 100 * MSS,
        left_last: left_last * MSS,
        rtt: None,
        smoothed_rtt: RTT,
        phase: Phase::Recovery,
        window: 10 * MSS,
        marked: 0,
        counted: Some(MSS),
        window_limited: true,
        rate: None,
    }
}

#[test]
fn in_ns3_after_a_retransmission_each_partial_ack_ends_a_window_of_data() {
    for (params, windows) in [(DctcpParams::linux(), 0), (DctcpParams::ns3(), 5)] {
        let mut control = with(params, 20);
        // After each ACK, the hole that begins there is retransmitted.
        for hole in 1..=5 {
            control.on_ack(&partial_ack(10 * hole, 10 * hole), Nanos::ZERO);
        }
        assert_eq!(control.stats().windows, windows);
        assert!((control.alpha() - 0.9375f64.powi(windows as i32)).abs() < 1e-15);
        // New data was sent last: all of it has to be acknowledged.
        control.on_ack(&partial_ack(60, 100), Nanos::ZERO);
        control.on_ack(&partial_ack(99, 100), Nanos::ZERO);
        assert_eq!(control.stats().windows, if windows == 0 { 0 } else { windows + 1 });
        control.on_ack(&partial_ack(100, 120), Nanos::ZERO);
        assert_eq!(control.stats().windows, if windows == 0 { 1 } else { windows + 2 });
    }
}

#[test]
fn in_ns3_the_count_of_a_larger_window_is_used_when_a_repair_ends() {
    for (params, grown) in [(DctcpParams::linux(), 0), (DctcpParams::ns3(), MSS)] {
        let (mut control, mut rounds) = (with(DctcpParams { initial_alpha: 1.0, ..params }, 20), Rounds::new());
        control.on_congestion(&rounds.mark(&control), Nanos::ZERO);
        // Nine of ten segments until the window grows, then it is halved.
        for _ in 0..9 {
            rounds.ack(&mut control, MSS, RTT);
        }
        assert_eq!(control.window(), 10 * MSS);
        control.on_congestion(&rounds.mark(&control), Nanos::ZERO);
        assert_eq!(control.window(), 5 * MSS);
        // This ACK acknowledges nothing beyond what was in flight at the timeout. The count is used now.
        let end = Ack { acked: 0, phase: Phase::Open, ..partial_ack(40, 40) };
        control.on_ack(&end, Nanos::ZERO);
        assert_eq!(control.window(), 5 * MSS + grown);
        control.on_ack(&end, Nanos::ZERO);
        assert_eq!(control.window(), 5 * MSS + grown);
    }
}

#[test]
fn a_timeout_reduces_the_window_that_is_held() {
    let mut control = with(DctcpParams { initial_alpha: 0.5, ..DctcpParams::ns3() }, 40);
    control.hold(20 * MSS);
    assert_eq!(control.window(), 20 * MSS);
    control.on_timeout(&Congestion { in_flight: 0, lost: 0, delivered: 0, next: 0 }, Nanos::ZERO);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 15 * MSS));
}
