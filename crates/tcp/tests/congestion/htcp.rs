//! H-TCP: alpha over time, beta for round-trip times and throughputs, and windows that follow them.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, SECOND};
use queuescope_tcp::CongestionControl;
use queuescope_tcp::congestion::{Htcp, HtcpParams};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100 * MILLISECOND);

/// In congestion avoidance after a loss with `segments` segments.
fn avoiding(params: HtcpParams, segments: u64, rounds: &mut Rounds) -> Htcp {
    let mut control = Htcp::new(params, MSS as u32, segments * MSS, 0);
    control.on_established(Some(RTT), rounds.now);
    rounds.lose(&mut control);
    control
}

#[test]
fn alpha_grows_with_the_square_of_the_time_from_a_second_on() {
    let params = HtcpParams::default();
    let alpha = |milliseconds: u64, beta| params.alpha(Nanos(milliseconds * MILLISECOND), beta, Some(RTT));
    assert_eq!((alpha(0, 0.5), alpha(1_000, 0.5)), (1.0, 1.0));
    assert!((alpha(1_500, 0.5) - 6.0625).abs() < 1e-9, "1 + 5 + 1/16");
    assert_eq!(alpha(3_000, 0.5), 22.0);
    assert!((alpha(11_000, 0.5) - 126.0).abs() < 1e-9);
    // With beta 0.8 only two fifths.
    assert!((alpha(3_000, 0.8) - 8.8).abs() < 1e-9);
    assert!((alpha(0, 0.8) - 0.4).abs() < 1e-9);
}

#[test]
fn linux_scales_alpha_by_the_round_trip_time_and_rounds() {
    let params = HtcpParams::linux();
    let alpha = |milliseconds: u64, rtt: u64| {
        params.alpha(Nanos(milliseconds * MILLISECOND), 0.5, Some(Nanos(rtt * MILLISECOND)))
    };
    // 2.5 s later the increase is 1 + (25000 + 1250^2 / 1000) / 1000 = 1 + 26562 / 1000.
    assert_eq!(alpha(3_500, 100), 27.0);
    // The scale is 800 / 50 eighths, then the integer 27 * 8 / 16.
    assert_eq!(alpha(3_500, 50), 13.0);
    // The largest is 2, the smallest a tenth, and an increase is 1 at least.
    assert_eq!((alpha(3_500, 200), alpha(3_500, 800)), (54.0, 54.0));
    assert_eq!((alpha(3_500, 10), alpha(3_500, 1)), (2.0, 2.0));
    assert_eq!((alpha(0, 100), alpha(0, 10)), (1.0, 1.0));
}

#[test]
fn beta_is_the_ratio_of_the_round_trip_times_within_bounds() {
    let ms = |count: u64| Nanos(count * MILLISECOND);
    for (smallest, largest, beta) in [(60, 100, 0.6), (20, 100, 0.5), (95, 100, 0.8), (100, 100, 0.8)] {
        assert_eq!(HtcpParams::default().beta(ms(smallest), ms(largest)), beta);
        let linux = HtcpParams::linux().beta(ms(smallest), ms(largest)) * 128.0;
        assert_eq!(linux, f64::from((smallest as u32 * 128 / largest as u32).clamp(64, 102)));
    }
    assert_eq!(HtcpParams::ns3().beta(ms(20), ms(100)), 0.2, "ns-3 has no bounds");
}

/// Without a loss for some seconds, each round trip adds alpha segments.
#[test]
fn windows_follow_alpha() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(HtcpParams::default(), 400, &mut rounds);
    assert_eq!((control.window(), control.beta()), (200 * MSS, 0.5));
    let (mut grown, mut expected) = (0, 0.0);
    for round in 0..40 {
        let before = control.window() / MSS;
        // Alpha in the middle of the round trip; the loss was at time 0.
        let later = ((f64::from(round) + 0.5) * 0.1 - 1.0).max(0.0);
        rounds.run(&mut control, RTT, 1);
        grown += control.window() / MSS - before;
        expected += 1.0 + 10.0 * later + later * later / 4.0;
    }
    assert!(expected > 450.0);
    // While it sends a window, the window is already larger.
    assert!((grown as f64 / expected - 1.0).abs() < 0.05, "{grown} {expected}");
}

/// Lets the control measure `rounds` round trips and then loses a segment.
fn epoch(control: &mut Htcp, rounds: &mut Rounds, count: u32, rtt: u64, segments: u64) {
    for _ in 0..count {
        rounds.limited = false;
        for _ in 0..segments {
            let now = rounds.now;
            rounds.ack(control, MSS, Nanos(rtt * MILLISECOND));
            rounds.now = Nanos(now.0 + rtt * MILLISECOND / segments);
        }
    }
    rounds.lose(control);
}

/// The window stays because it does not limit the sender; throughputs are what the ACKs say.
fn measuring(params: HtcpParams) -> (Htcp, Rounds) {
    let rounds = Rounds::new();
    let mut control = Htcp::new(params, MSS as u32, 20 * MSS, 0);
    control.on_established(Some(RTT), rounds.now);
    (control, rounds)
}

#[test]
fn a_steady_throughput_leaves_the_ratio_and_a_changed_one_half() {
    let (mut control, mut rounds) = measuring(HtcpParams::default());
    epoch(&mut control, &mut rounds, 10, 100, 20);
    assert_eq!((control.beta(), control.window()), (0.5, 10 * MSS), "there was none before");
    epoch(&mut control, &mut rounds, 10, 100, 20);
    assert_eq!((control.beta(), control.window()), (0.8, 8 * MSS), "the round-trip times are equal");
    // Round trips of 125 ms with a quarter more data are as fast.
    epoch(&mut control, &mut rounds, 10, 150, 30);
    assert!((control.beta() - 100.0 / 150.0).abs() < 1e-9, "{}", control.beta());
    // By a fifth more.
    epoch(&mut control, &mut rounds, 30, 100, 23);
    // What was above the smallest round-trip time has faded by a twentieth.
    assert!((control.beta() - 100.0 / 147.5).abs() < 1e-3, "{}", control.beta());
    epoch(&mut control, &mut rounds, 30, 100, 30);
    assert_eq!(control.beta(), 0.5, "by more than a fifth");
}

/// Linux trusts the round-trip times at the second steady throughput.
#[test]
fn linux_waits_for_a_second_steady_throughput() {
    let (mut control, mut rounds) = measuring(HtcpParams::linux());
    let mut betas = Vec::new();
    for _ in 0..4 {
        epoch(&mut control, &mut rounds, 10, 100, 20);
        betas.push(control.beta());
    }
    assert_eq!(betas, [0.5, 0.5, 102.0 / 128.0, 102.0 / 128.0]);
    // Below 10 ms never.
    let (mut control, mut rounds) = measuring(HtcpParams::linux());
    for _ in 0..4 {
        epoch(&mut control, &mut rounds, 10, 10, 20);
        assert_eq!(control.beta(), 0.5);
    }
}

/// In Linux the time counts from the end of the recovery, and alpha changes only with the window.
#[test]
fn linux_counts_the_time_from_the_end_of_the_recovery() {
    let after = |params: HtcpParams| {
        let mut rounds = Rounds::new();
        let mut control = Htcp::new(params, MSS as u32, 100 * MSS, 0);
        control.on_established(Some(RTT), rounds.now);
        control.on_congestion(&rounds.loss(&control), rounds.now);
        rounds.now = Nanos(2 * SECOND);
        control.on_recovered(rounds.now);
        rounds.run(&mut control, RTT, 1);
        rounds.run(&mut control, RTT, 1);
        control.alpha()
    };
    assert_eq!(after(HtcpParams::linux()), 1.0);
    // The last ACK was at 2.2 s: 1.2 s over a second.
    let expected = 1.0 + 12.0 + 0.36;
    assert!((after(HtcpParams::default()) - expected).abs() < 0.03, "{}", after(HtcpParams::default()));
}

/// ns-3 adds alpha bytes: ten seconds after a loss, alpha is above 100, and an ACK adds about 100 bytes more than
/// NewReno's.
#[test]
fn ns3_adds_alpha_bytes_for_each_ack() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(HtcpParams::ns3(), 101, &mut rounds);
    assert_eq!(control.window(), 50 * MSS, "half of 100 in flight");
    rounds.ack(&mut control, MSS, RTT);
    // A million / 50000, and an alpha of 1.
    assert_eq!(control.window(), 50 * MSS + 21);
    rounds.now = Nanos(11 * SECOND);
    let before = control.window();
    rounds.ack(&mut control, MSS, RTT);
    let alpha = 1.0 + 100.0 + 25.0;
    assert_eq!(control.window(), before + (1e6 / before as f64 + alpha) as u64);
}

/// In ns-3 beta is the unbounded ratio if the average throughput grew by less than its double, else a half.
#[test]
fn ns3_uses_the_ratio_if_the_average_grows() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(HtcpParams::ns3(), 101, &mut rounds);
    let mut betas = Vec::new();
    for segments in [20, 30, 25, 40, 100] {
        let began = rounds.now;
        for part in 0..segments {
            let rtt = if part == 0 { 30 } else { 100 };
            rounds.now = Nanos(began.0 + (part + 1) * SECOND / segments);
            rounds.ack(&mut control, MSS, Nanos(rtt * MILLISECOND));
        }
        rounds.lose(&mut control);
        betas.push(control.beta());
    }
    assert_eq!(betas, [0.5, 0.3, 0.5, 0.3, 0.5]);
}
