//! Illinois: alpha and beta at the corners of the paper's figure 1, and growth by them.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::CongestionControl;
use queuescope_tcp::congestion::{Illinois, IllinoisParams};
use queuescope_wire::Nanos;

const BASE: u64 = 100 * MILLISECOND;

fn with(params: IllinoisParams, segments: u64) -> Illinois {
    Illinois::new(params, MSS as u32, segments * MSS, 0)
}

#[test]
fn alpha_is_largest_at_one_percent_and_smallest_at_the_largest_delay() {
    let params = IllinoisParams::default();
    assert!((params.alpha(1.0, 100.0) - 10.0).abs() < 1e-12);
    assert!((params.alpha(100.0, 100.0) - 0.3).abs() < 1e-12);
    // k1 / (k2 + da), with k1 = 99 * 0.3 * 10 / 9.7 and k2 = 99 * 0.3 / 9.7 - 1.
    for delay in [2.0, 10.0, 37.5, 80.0] {
        let (k1, k2) = (99.0 * 3.0 / 9.7, 99.0 * 0.3 / 9.7 - 1.0);
        assert!((params.alpha(delay, 100.0) - k1 / (k2 + delay)).abs() < 1e-12);
    }
}

#[test]
fn beta_is_linear_from_a_tenth_to_eight_tenths() {
    let params = IllinoisParams::default();
    for (delay, beta) in [(0.0, 0.125), (10.0, 0.125), (45.0, 0.3125), (79.999_999, 0.5), (80.0, 0.5), (100.0, 0.5)] {
        assert!((params.beta(delay, 100.0) - beta).abs() < 1e-6, "{delay}");
    }
    assert_eq!(params.beta(0.0, 0.0), 0.125);
}

/// In congestion avoidance with `segments` segments.
fn avoiding(params: IllinoisParams, segments: u64, rounds: &mut Rounds) -> Illinois {
    let mut control = with(params, segments * 2);
    rounds.run(&mut control, Nanos(BASE), 1);
    while control.window() > segments * MSS {
        rounds.lose(&mut control);
    }
    control
}

#[test]
fn without_delay_the_window_grows_by_ten_segments_in_a_round_trip() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(IllinoisParams::linux(), 200, &mut rounds);
    for _ in 0..10 {
        let before = control.window() / MSS;
        rounds.run(&mut control, Nanos(BASE), 1);
        assert_eq!(control.alpha(), 10.0);
        let grown = control.window() / MSS - before;
        assert!((9..=11).contains(&grown), "{grown}");
    }
    assert_eq!(control.beta(), 0.125);
}

#[test]
fn a_small_window_is_reno() {
    let mut rounds = Rounds::new();
    let mut control = with(IllinoisParams::linux(), 8);
    rounds.run(&mut control, Nanos(BASE), 1);
    rounds.lose(&mut control);
    assert_eq!(control.window(), 8 * MSS, "half of 16");
    for expected in 9..=13 {
        rounds.run(&mut control, Nanos(BASE), 1);
        assert_eq!((control.alpha(), control.beta()), (1.0, 0.5));
        assert_eq!(control.window(), expected * MSS);
    }
}

/// A delay near the largest one brings alpha to its smallest value at once; five round trips without delay bring it
/// back.
#[test]
fn after_a_high_delay_alpha_waits_for_five_low_ones() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(IllinoisParams::linux(), 200, &mut rounds);
    for _ in 0..3 {
        rounds.run(&mut control, Nanos(2 * BASE), 1);
    }
    assert!((control.alpha() - 0.3).abs() < 0.05, "{}", control.alpha());
    assert!(control.beta() > 0.49);
    let mut alphas = Vec::new();
    for _ in 0..8 {
        rounds.run(&mut control, Nanos(BASE), 1);
        alphas.push(control.alpha());
    }
    let back = alphas.iter().position(|alpha| *alpha == 10.0).unwrap();
    // The first round trip ends with an ACK of the last one, which still counts as high.
    assert!((4..=6).contains(&back), "{alphas:?}");
    assert!(alphas[back..].iter().all(|alpha| *alpha == 10.0), "{alphas:?}");
}

/// With an alpha below 1 and single segments ns-3's counter never moves; with pairs of segments and alpha above 0.5, it
/// does.
#[test]
fn ns3_does_not_grow_with_a_small_alpha() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(IllinoisParams::ns3(), 200, &mut rounds);
    for _ in 0..3 {
        rounds.run(&mut control, Nanos(2 * BASE), 1);
    }
    assert!(control.alpha() < 0.5);
    let before = control.window();
    for _ in 0..20 {
        rounds.run(&mut control, Nanos(2 * BASE), 1);
    }
    assert_eq!(control.window(), before);
    let mut linux = avoiding(IllinoisParams::linux(), 200, &mut rounds);
    for _ in 0..3 {
        rounds.run(&mut linux, Nanos(2 * BASE), 1);
    }
    let before = linux.window();
    for _ in 0..20 {
        rounds.run(&mut linux, Nanos(2 * BASE), 1);
    }
    let grown = (linux.window() - before) / MSS;
    assert!((5..=7).contains(&grown), "0.3 a round trip: {grown}");
}

#[test]
fn a_loss_takes_beta() {
    let mut rounds = Rounds::new();
    let mut control = avoiding(IllinoisParams::linux(), 200, &mut rounds);
    rounds.run(&mut control, Nanos(BASE), 1);
    assert_eq!(control.beta(), 0.125);
    let before = control.window() / MSS;
    rounds.lose(&mut control);
    assert_eq!(control.window() / MSS, (before as f64 * 0.875) as u64);
}
