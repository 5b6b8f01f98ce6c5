//! BIC: the steps of the search, what losses make of the maximum, and windows over round trips.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, segments};
use queuescope_tcp::CongestionControl;
use queuescope_tcp::congestion::{Bic, BicParams};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(100 * MILLISECOND);

/// In congestion avoidance after a loss with `segments` segments.
fn avoiding(params: BicParams, segments: u64, rounds: &mut Rounds) -> Bic {
    let mut control = Bic::new(params, MSS as u32, segments * MSS, 0);
    rounds.lose(&mut control);
    control
}

#[test]
fn a_step_is_half_of_the_distance_within_bounds() {
    let params = BicParams::default();
    for (window, maximum, step) in [
        (100.0, 120.0, 10.0),
        (100.0, 164.0, 32.0),
        (100.0, 500.0, 32.0),
        (100.0, 100.01, 0.01),
        (100.0, 101.0, 0.5),
        // Beyond the maximum it doubles.
        (100.0, 100.0, 1.0),
        (101.0, 100.0, 2.0),
        (102.5, 100.0, 2.0),
        (103.0, 100.0, 4.0),
        (107.0, 100.0, 8.0),
        (130.9, 100.0, 16.0),
        (131.0, 100.0, 32.0),
        (900.0, 100.0, 32.0),
        // NewReno.
        (13.0, 100.0, 1.0),
    ] {
        let interval = params.interval(window, maximum);
        assert!((window / interval - step).abs() < 1e-6, "{window} {maximum}: {}", window / interval);
    }
}

#[test]
fn linux_and_ns3_count_up_to_an_integer() {
    for (window, maximum, linux, ns3) in [
        // A quarter of the distance is above 16: 16 segments in a round trip.
        (200, 300, 12, 12),
        (200, 268, 12, 12),
        // Exactly 16 and below: the window over the quarter.
        (200, 264, 12, 12),
        (200, 240, 20, 20),
        (200, 208, 100, 100),
        // One or none: 20 or 5 quarters of a window.
        (200, 207, 1_000, 250),
        (200, 201, 1_000, 250),
        // Beyond the maximum by less than four.
        (200, 200, 1_000, 250),
        (203, 200, 1_015, 253),
        (204, 200, 153, 153),
        (247, 200, 15, 15),
        (248, 200, 15, 15),
        (2_480, 200, 155, 155),
        // Without a maximum.
        (2_480, 0, 20, 20),
        (160, 0, 10, 10),
        // NewReno, in Linux with 14 segments too.
        (13, 300, 13, 13),
        (14, 300, 14, 1),
        (15, 300, 1, 1),
    ] {
        let window = f64::from(window);
        assert_eq!(BicParams::linux().interval(window, f64::from(maximum)), f64::from(linux), "{window} {maximum}");
        assert_eq!(BicParams::ns3().interval(window, f64::from(maximum)), f64::from(ns3), "{window} {maximum}");
    }
}

/// From 1400 segments with a maximum of 1600: linear by 32 until 64 are missing, then half of the rest each round trip.
#[test]
fn the_window_approaches_the_maximum_and_passes_it() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(BicParams::default(), 1_600, &mut rounds);
    assert_eq!((control.window(), control.maximum()), (1_400 * MSS, 1_600.0));
    for round in 1..=4 {
        rounds.run(&mut control, RTT, 1);
        assert!((segments(control.window()) - (1_400.0 + 32.0 * f64::from(round))).abs() <= 2.0);
    }
    let mut missing = 1_600.0 - segments(control.window());
    while missing > 4.0 {
        rounds.run(&mut control, RTT, 1);
        // The step shrinks within the round trip, too: e^-1/2 remains.
        let left = 1_600.0 - segments(control.window());
        assert!((left - missing * (-0.5_f64).exp()).abs() <= 2.0, "{missing} {left}");
        missing = left;
    }
    // The last segments are slow: the step is at most 2, then falls with the distance.
    let mut count = 0;
    while control.window() <= 1_600 * MSS {
        rounds.run(&mut control, RTT, 1);
        count += 1;
    }
    assert!((4..12).contains(&count), "{count}");
    // Then 1, 2, 4, 8, 16 in round trips.
    let passed = segments(control.window());
    for _ in 0..5 {
        rounds.run(&mut control, RTT, 1);
    }
    assert!((20.0..80.0).contains(&(segments(control.window()) - passed)), "{} {passed}", segments(control.window()));
    let before = control.window();
    for _ in 0..3 {
        rounds.run(&mut control, RTT, 1);
    }
    assert!((segments(control.window() - before) - 96.0).abs() <= 16.0);
}

#[test]
fn a_loss_below_the_maximum_lowers_it() {
    for (params, first, second) in [
        // 7/8 of the window; the middle between 1400 and 1225.
        (BicParams::default(), (1_600.0, 1_400), (1_312.5, 1_225)),
        // 819/1024 of it, whole segments; 1279 * 1843 / 2048.
        (BicParams::linux(), (1_600.0, 1_279), (1_150.0, 1_022)),
        // 0.8 of it, and that is the maximum, too.
        (BicParams::ns3(), (1_600.0, 1_280), (1_024.0, 1_024)),
    ] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 1_600, &mut rounds);
        assert_eq!((control.maximum(), control.window() / MSS), first, "{params:?}");
        rounds.lose(&mut control);
        assert_eq!((control.maximum(), control.window() / MSS), second, "{params:?}");
    }
}

#[test]
fn a_small_window_is_reno() {
    for params in [BicParams::default(), BicParams::linux()] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 12, &mut rounds);
        assert_eq!(control.window(), 6 * MSS, "{params:?}");
        for expected in 7..=14 {
            rounds.run(&mut control, RTT, 1);
            assert_eq!(control.window(), expected * MSS, "{params:?}");
        }
        rounds.lose(&mut control);
        let left = if params == BicParams::linux() { 7_000 } else { 12_250 };
        assert_eq!(control.window(), left, "14 segments are small in Linux only");
    }
}

/// Linux assumes two segments for each ACK at first, and counts segments all the same. Its average is an integer in sixteenths:
/// with single segments it falls from 32 to 31 only.
#[test]
fn linux_grows_by_the_segments_of_an_ack() {
    let grown = |each| {
        let mut rounds = Rounds::new();
        let mut control = avoiding(BicParams::linux(), 1_600, &mut rounds);
        // The largest steps, with two segments for each ACK.
        rounds.run(&mut control, RTT, each);
        let before = control.window();
        rounds.run(&mut control, RTT, each);
        segments(control.window() - before)
    };
    for (each, expected) in [(1, 31.0), (2, 32.0), (3, 48.0)] {
        assert!((grown(each) - expected).abs() <= 1.0, "{each}: {}", grown(each));
    }
    let standard = |each| {
        let mut rounds = Rounds::new();
        let mut control = avoiding(BicParams::default(), 4_000, &mut rounds);
        let before = control.window();
        rounds.run(&mut control, RTT, each);
        segments(control.window() - before)
    };
    assert!((standard(1) - 32.0).abs() <= 1.0 && (standard(2) - 32.0).abs() <= 1.0);
}

#[test]
fn only_in_linux_a_timeout_forgets_the_maximum() {
    for (params, maximum) in [(BicParams::default(), 100.0), (BicParams::linux(), 0.0), (BicParams::ns3(), 100.0)] {
        let rounds = Rounds::new();
        let mut control = Bic::new(params, MSS as u32, 100 * MSS, 0);
        let congestion = rounds.loss(&control);
        control.on_timeout(&congestion, rounds.now);
        assert_eq!(control.maximum(), maximum, "{params:?}");
        assert_eq!(control.window(), MSS);
        let threshold = (segments(control.slow_start_threshold()) - 100.0 * params.beta).abs();
        assert!(threshold < 1.0, "{params:?}");
    }
}

/// In ns-3 an ACK adds a segment when the count is above the interval, however many segments it acknowledges.
#[test]
fn ns3_adds_one_segment_for_an_ack() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(BicParams::ns3(), 1_000, &mut rounds);
    assert_eq!(control.window(), 800 * MSS);
    // The interval is 800 / 16.
    rounds.ack(&mut control, 50 * MSS, RTT);
    assert_eq!(control.window(), 800 * MSS);
    rounds.ack(&mut control, 50 * MSS, RTT);
    assert_eq!(control.window(), 801 * MSS);
    rounds.ack(&mut control, 500 * MSS, RTT);
    assert_eq!(control.window(), 802 * MSS);
}
