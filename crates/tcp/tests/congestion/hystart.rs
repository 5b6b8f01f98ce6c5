//! HyStart and HyStart++: when they end slow start, and when they do not.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::congestion::{Cubic, CubicParams, HyStartParams, HyStartPlusPlusParams, SlowStart};
use queuescope_tcp::{Ack, CongestionControl, Phase};
use queuescope_wire::Nanos;

fn with(slow_start: SlowStart, segments: u64) -> Cubic {
    Cubic::new(CubicParams { slow_start, ..CubicParams::default() }, MSS as u32, segments * MSS, 0)
}

fn linux() -> SlowStart {
    SlowStart::HyStart(HyStartParams::linux())
}

fn ns3() -> SlowStart {
    SlowStart::HyStart(HyStartParams::ns3())
}

fn plus_plus() -> SlowStart {
    SlowStart::HyStartPlusPlus(HyStartPlusPlusParams::default())
}

fn left(control: &Cubic) -> bool {
    control.slow_start_threshold() != u64::MAX
}

/// Round trips with these times in milliseconds and ACKs far apart. Returns after how many of them slow start ended.
fn rounds_until_exit(slow_start: SlowStart, times: &[u64]) -> Option<usize> {
    let (mut control, mut rounds) = (with(slow_start, 16), Rounds::new());
    times.iter().position(|time| {
        let spread = Nanos(control.window() / MSS * 3 * MILLISECOND);
        rounds.run_spread(&mut control, Nanos(time * MILLISECOND), 1, spread);
        left(&control)
    })
}

#[test]
fn only_a_rise_of_the_delay_ends_slow_start() {
    // Linux: an eighth of 80 ms is 10 ms.
    assert_eq!(rounds_until_exit(linux(), &[80, 80, 80, 80, 80, 80]), None);
    assert_eq!(rounds_until_exit(linux(), &[80, 85, 90, 90, 90, 90]), None);
    assert_eq!(rounds_until_exit(linux(), &[80, 85, 91, 91, 91, 91]), Some(2));
    // At least 4 ms and at most 16.
    assert_eq!(rounds_until_exit(linux(), &[8, 11, 12, 12]), None);
    assert_eq!(rounds_until_exit(linux(), &[8, 11, 13, 13]), Some(2));
    assert_eq!(rounds_until_exit(linux(), &[400, 416, 416]), None);
    assert_eq!(rounds_until_exit(linux(), &[400, 417, 417]), Some(1));
    // ns-3: all of the 80 ms.
    assert_eq!(rounds_until_exit(ns3(), &[80, 120, 150, 160, 160]), None);
    assert_eq!(rounds_until_exit(ns3(), &[80, 120, 150, 162, 162]), Some(3));
}

/// The first eight ACKs of a round trip are measured, and the ninth is judged by their smallest time. The window is the
/// one at that time.
#[test]
fn the_ninth_ack_of_a_round_trip_ends_slow_start() {
    let (mut control, mut rounds) = (with(linux(), 20), Rounds::new());
    let spread = |control: &Cubic| Nanos(control.window() / MSS * 3 * MILLISECOND);
    let time = spread(&control);
    rounds.run_spread(&mut control, Nanos(80 * MILLISECOND), 1, time);
    assert_eq!(control.window(), 40 * MSS);
    // The first ACK of the second window is the last of the round trip that the very first ACK began.
    let mut acks = 0;
    while !left(&control) {
        rounds.now = Nanos(rounds.now.0 + 3 * MILLISECOND);
        rounds.ack(&mut control, MSS, Nanos(100 * MILLISECOND));
        acks += 1;
    }
    assert!((9..=11).contains(&acks), "{acks}");
    assert_eq!(control.slow_start_threshold(), (40 + acks - 1) * MSS);
    assert_eq!((control.stats().delay_exits, control.stats().train_exits), (1, 0));
}

#[test]
fn windows_below_sixteen_segments_are_not_judged() {
    let (mut control, mut rounds) = (with(linux(), 4), Rounds::new());
    rounds.run(&mut control, Nanos(80 * MILLISECOND), 1);
    rounds.run_spread(&mut control, Nanos(200 * MILLISECOND), 1, Nanos(70 * MILLISECOND));
    assert_eq!((left(&control), control.window()), (false, 16 * MSS));
}

/// 64 segments whose ACKs come over `spread` milliseconds on an 80 ms path. They are a train if they are closer than 2
/// ms for longer than 40 ms; in ns-3, 80 ms.
#[test]
fn a_train_as_long_as_the_path_ends_slow_start() {
    let ends = |slow_start, milliseconds: u64| {
        let (mut control, mut rounds) = (with(slow_start, 64), Rounds::new());
        let spread = Nanos(milliseconds * MILLISECOND);
        rounds.run_spread(&mut control, Nanos(80 * MILLISECOND), 1, spread);
        assert_eq!(control.stats().delay_exits, 0);
        control.stats().train_exits == 1
    };
    assert!(!ends(linux(), 38));
    assert!(ends(linux(), 44));
    assert!(!ends(ns3(), 79));
    assert!(ends(ns3(), 100));
    // More than 2 ms apart: not a train.
    assert!(!ends(linux(), 64 * 3));
}

/// A loss ends slow start at 40 segments and 20 ms. In recovery the round-trip time is 50 ms, and the reduction holds
/// the window at 22 of the 28 segments that will be left.
fn after_ninth_ack_in_recovery(slow_start: SlowStart, held: u64) -> (u64, u64) {
    let (mut control, mut rounds) = (with(slow_start, 40), Rounds::new());
    rounds.ack(&mut control, MSS, Nanos(20 * MILLISECOND));
    rounds.lose(&mut control);
    for number in 0..9 {
        let rtt = Nanos(50 * MILLISECOND);
        let ack = Ack {
            acked: 0,
            delivered: MSS,
            in_flight_before: held,
            in_flight: held,
            unacknowledged: MSS,
            next: 41 * MSS,
            left_last: 41 * MSS,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            phase: Phase::Recovery,
            window: held,
            counted: None,
            marked: 0,
            window_limited: true,
            rate: None,
        };
        control.on_ack(&ack, Nanos(rounds.now.0 + number * 3 * MILLISECOND));
    }
    (control.slow_start_threshold(), control.window())
}

/// ns-3 has one window for congestion control and reduction, and judges every ACK by it.
#[test]
fn ns3_ends_slow_start_even_in_recovery_at_the_window_that_the_reduction_has_left() {
    assert_eq!(after_ninth_ack_in_recovery(ns3(), 22 * MSS), (22 * MSS, 22 * MSS));
    // Of 41 segments 28.7 are left, before rounding. A window above that, or below sixteen, is not judged.
    let left = (41.0 * MSS as f64 * 0.7) as u64;
    assert_eq!(after_ninth_ack_in_recovery(ns3(), 29 * MSS), (left, left));
    assert_eq!(after_ninth_ack_in_recovery(ns3(), 15 * MSS), (left, left));
    assert_eq!(after_ninth_ack_in_recovery(linux(), 22 * MSS), (left, left));
}

#[test]
fn each_sign_can_be_left_out() {
    let only = |train, delay| SlowStart::HyStart(HyStartParams { train, delay, ..HyStartParams::linux() });
    assert_eq!(rounds_until_exit(only(true, false), &[80, 120, 200]), None);
    assert_eq!(rounds_until_exit(only(false, true), &[80, 120, 200]), Some(1));
    let (mut control, mut rounds) = (with(only(false, true), 64), Rounds::new());
    rounds.run_spread(&mut control, Nanos(80 * MILLISECOND), 1, Nanos(70 * MILLISECOND));
    assert!(!left(&control));
}

/// RFC 9406: the delay rises by more than an eighth in the third round trip. The window then grows by a quarter of the
/// acknowledged bytes for five round trips, and slow start ends.
#[test]
fn hystart_plus_plus_grows_slowly_for_five_round_trips_first() {
    let (mut control, mut rounds) = (with(plus_plus(), 16), Rounds::new());
    let mut factors = Vec::new();
    for time in [80, 80, 95, 95, 95, 95, 95, 95, 95] {
        let before = control.window() as f64;
        rounds.run(&mut control, Nanos(time * MILLISECOND), 1);
        factors.push(control.window() as f64 / before);
        if left(&control) {
            break;
        }
    }
    assert!((factors[1] - 2.0).abs() < 0.01, "{factors:?}");
    let slow = factors.iter().filter(|factor| (1.2..1.3).contains(*factor)).count();
    assert_eq!(slow, 4, "{factors:?}");
    assert_eq!(factors.len(), 8, "{factors:?}");
    assert_eq!(control.stats().delay_exits, 1);
}

#[test]
fn hystart_plus_plus_continues_if_the_rise_does_not_last() {
    let (mut control, mut rounds) = (with(plus_plus(), 16), Rounds::new());
    for time in [80, 80, 95, 95] {
        rounds.run(&mut control, Nanos(time * MILLISECOND), 1);
    }
    for _ in 0..2 {
        let before = control.window();
        rounds.run(&mut control, Nanos(80 * MILLISECOND), 1);
        assert!(control.window() as f64 > 1.8 * before as f64);
    }
    assert!(!left(&control));
}

#[test]
fn hystart_plus_plus_is_only_for_the_first_slow_start() {
    let (mut control, mut rounds) = (with(plus_plus(), 64), Rounds::new());
    control.on_timeout(&rounds.loss(&control), rounds.now);
    let threshold = control.slow_start_threshold();
    for time in [80, 80, 80, 80, 120, 120] {
        rounds.run(&mut control, Nanos(time * MILLISECOND), 1);
    }
    assert_eq!(control.slow_start_threshold(), threshold);
}
