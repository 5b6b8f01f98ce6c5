//! Westwood+: samples and filters by hand, on ACKs for a segment each 10 ms, with a round-trip time of 100 ms.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::congestion::{Westwood, WestwoodParams, WestwoodSampling};
use queuescope_tcp::{Ack, CongestionControl, Phase};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100 * MILLISECOND);

fn with(params: WestwoodParams, segments: u64) -> Westwood {
    Westwood::new(params, MSS as u32, segments * MSS, 0)
}

/// ACKs for a segment each, every `gap`, up to and including a time. The window does not grow.
fn acks_until(control: &mut Westwood, rounds: &mut Rounds, gap: u64, until: u64, rtt: Nanos) {
    rounds.limited = false;
    while rounds.now.0 + gap <= until * MILLISECOND {
        rounds.now = Nanos(rounds.now.0 + gap);
        rounds.ack(control, MSS, rtt);
    }
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

/// The ACK at 110 ms is the first after more than a round-trip time: the 10 before it took 110 ms. From then on, 11
/// take 110 ms.
#[test]
fn the_paper_averages_the_rate_of_each_round_trip() {
    let (mut control, mut rounds) = (with(WestwoodParams::default(), 40), Rounds::new());
    let mut expected = 10.0 * 8_000.0 / 0.110;
    for (until, samples) in [(110, 1), (220, 2), (330, 3), (440, 4)] {
        acks_until(&mut control, &mut rounds, 10 * MILLISECOND, until, RTT);
        assert_eq!(control.stats().samples, samples);
        if samples > 1 {
            expected = 0.9 * expected + 0.1 * 800_000.0;
        }
        assert!(near(control.bandwidth(), expected), "{} {expected}", control.bandwidth());
    }
}

/// The timer runs from the ACK at 10 ms to 110 ms: 10 ACKs in 100 ms. 0.1 in floating point is a little less, and
/// everything is rounded down: 400 000 / 10 is 39 999.
#[test]
fn ns3_averages_means_from_zero() {
    let (mut control, mut rounds) = (with(WestwoodParams::ns3(), 40), Rounds::new());
    for (until, bandwidth) in [(100, 0), (110, 39_999), (200, 39_999), (210, 35_999 + 79_999), (310, 104_398 + 79_999)]
    {
        acks_until(&mut control, &mut rounds, 10 * MILLISECOND, until, RTT);
        assert_eq!(control.bandwidth() as u64, bandwidth, "{until}");
    }
}

/// The timer may end after the last ACK: the loss at 300 ms comes after the sample of the ACKs up to 50 ms.
#[test]
fn the_timer_of_ns3_ends_without_an_ack() {
    let (mut control, mut rounds) = (with(WestwoodParams::ns3(), 40), Rounds::new());
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 50, RTT);
    assert_eq!(control.stats().samples, 0);
    rounds.now = Nanos(300 * MILLISECOND);
    rounds.lose(&mut control);
    assert_eq!((control.stats().samples, control.bandwidth() as u64), (1, 19_999));
}

/// In bytes per millisecond: 10 000 / 110 = 90; then samples of 100. The first filter gives 91.25 and then 92.1, each
/// rounded down; the second 90.125 and 90.25.
#[test]
fn linux_filters_twice_in_whole_bytes_per_tick() {
    let (mut control, mut rounds) = (with(WestwoodParams::linux(), 40), Rounds::new());
    for until in [110, 220, 330] {
        acks_until(&mut control, &mut rounds, 10 * MILLISECOND, until, RTT);
        assert_eq!(control.bandwidth(), 90.0 * 8_000.0);
    }
    // After many samples of 100, rounding down keeps both filters below it.
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 20_000, RTT);
    let (mut once, mut twice) = (90_u64, 90_u64);
    for _ in 0..200 {
        once = (7 * once + 100) / 8;
        twice = (7 * twice + once) / 8;
    }
    assert_eq!(control.bandwidth() as u64, twice * 8_000);
}

/// 10 segments in each 20 ms: Linux takes no sample before 50 ms are over.
#[test]
fn linux_samples_for_at_least_fifty_milliseconds() {
    for (params, samples) in [(WestwoodParams::linux(), 1), (WestwoodParams::default(), 2)] {
        let (mut control, mut rounds) = (with(params, 40), Rounds::new());
        acks_until(&mut control, &mut rounds, 2 * MILLISECOND, 52, Nanos(20 * MILLISECOND));
        assert_eq!(control.stats().samples, samples);
    }
}

#[test]
fn a_loss_leaves_what_the_path_holds_without_a_queue() {
    let (mut control, mut rounds) = (with(WestwoodParams::default(), 40), Rounds::new());
    // 10 segments in each 100 ms; then the same rate behind a queue of 30.
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 5_000, RTT);
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 25_000, Nanos(400 * MILLISECOND));
    assert!((control.bandwidth() / 800_000.0 - 1.0).abs() < 0.01, "{}", control.bandwidth());
    rounds.lose(&mut control);
    assert!((9_900..=10_000).contains(&control.window()), "{}", control.window());
    assert_eq!(control.slow_start_threshold(), control.window());
    // A timeout leaves the same threshold.
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!(control.window(), MSS);
    assert!((9_900..=10_000).contains(&control.slow_start_threshold()));
}

#[test]
fn in_linux_the_estimate_counts_when_the_repair_ends() {
    let (mut control, mut rounds) = (with(WestwoodParams::linux(), 40), Rounds::new());
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 220, RTT);
    control.on_congestion(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (20 * MSS, 20 * MSS));
    control.on_recovered(rounds.now);
    // 90 bytes in each of 100 ms.
    assert_eq!((control.window(), control.slow_start_threshold()), (9 * MSS, 9 * MSS));
    // A timeout counts at once, and its repair's end changes nothing.
    let (mut control, mut rounds) = (with(WestwoodParams::linux(), 40), Rounds::new());
    acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 220, RTT);
    control.on_timeout(&rounds.loss(&control), rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 9 * MSS));
    control.on_recovered(rounds.now);
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 9 * MSS));
}

/// 90 bytes in each ms, and 100 ms, or 200 after the timeout.
#[test]
fn in_linux_a_timeout_forgets_the_smallest_time() {
    for (timeout, segments) in [(false, 9), (true, 18)] {
        let (mut control, mut rounds) = (with(WestwoodParams::linux(), 40), Rounds::new());
        acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 220, RTT);
        if timeout {
            control.on_timeout(&rounds.loss(&control), rounds.now);
        }
        acks_until(&mut control, &mut rounds, 10 * MILLISECOND, 230, Nanos(200 * MILLISECOND));
        rounds.lose(&mut control);
        assert_eq!(control.window(), segments * MSS);
    }
}

#[test]
fn a_loss_before_the_first_sample_halves_or_leaves_two_segments() {
    for (params, left) in [(WestwoodParams::default(), 20), (WestwoodParams::ns3(), 2), (WestwoodParams::linux(), 2)] {
        let (mut control, mut rounds) = (with(params, 40), Rounds::new());
        rounds.lose(&mut control);
        assert_eq!(control.window(), left * MSS);
    }
}

/// Three ACKs that acknowledge nothing new count for three segments; the one for four segments counts for the fourth.
/// By `delivered` it is the same, if the three reported a segment each.
#[test]
fn duplicate_acks_count_once() {
    let ack = |acked: u64, delivered: u64| Ack {
        acked: acked * MSS,
        delivered: delivered * MSS,
        in_flight_before: 40 * MSS,
        in_flight: 30 * MSS,
        unacknowledged: 0,
        next: 0,
        left_last: 0,
        rtt: Some(RTT),
        smoothed_rtt: RTT,
        phase: Phase::Open,
        window: 40 * MSS,
        marked: 0,
        counted: None,
        window_limited: false,
        rate: None,
    };
    let by_delivery = WestwoodParams { sampling: WestwoodSampling::ByAck, ..WestwoodParams::linux() };
    for params in [WestwoodParams::linux(), by_delivery] {
        let mut control = with(params, 40);
        for (ms, acked, delivered) in [(10, 0, 1), (20, 0, 1), (30, 0, 1), (40, 4, 1), (50, 2, 2), (200, 1, 1)] {
            control.on_ack(&ack(acked, delivered), Nanos(ms * MILLISECOND));
        }
        // Six segments in 200 ms: 30 bytes in each.
        assert_eq!(control.bandwidth(), 30.0 * 8_000.0);
    }
}
