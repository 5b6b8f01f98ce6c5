//! Veno: the estimate by hand, and growth and reductions on both sides of beta.

use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS};
use queuescope_tcp::congestion::{NewReno, NewRenoParams, Veno, VenoParams};
use queuescope_tcp::{CongestionControl, Phase};
use queuescope_wire::Nanos;

const BASE: u64 = 50 * MILLISECOND;
/// With a window of 40 segments, 40 (1 - 50/52) = 1.54 wait.
const FREE: u64 = 52 * MILLISECOND;
/// 40 (1 - 50/60) = 6.67 wait, and with 20 segments 3.33.
const CONGESTED: u64 = 60 * MILLISECOND;

fn profiles() -> [VenoParams; 3] {
    [VenoParams::default(), VenoParams::ns3(), VenoParams::linux()]
}

fn with(params: VenoParams, segments: u64) -> Veno {
    Veno::new(params, MSS as u32, segments * MSS, 0)
}

/// Acknowledges without growth: something else limits the sender.
fn measure(control: &mut Veno, rounds: &mut Rounds, times: &[u64]) {
    rounds.limited = false;
    for time in times {
        rounds.ack(control, MSS, Nanos(*time));
    }
    rounds.limited = true;
}

/// In congestion avoidance with `segments` segments, after a random loss; the smallest round-trip time is known.
fn avoiding(params: VenoParams, segments: u64, rounds: &mut Rounds) -> Veno {
    let mut control = with(params, segments * 5 / 4);
    rounds.lose(&mut control);
    assert!((segments - 1..=segments).contains(&(control.window() / MSS)));
    measure(&mut control, rounds, &[BASE; 3]);
    control
}

/// A window of 40 with 50 ms empty and 53.3 ms now: 40 * 50 / 53.3 = 37.52 do not wait.
#[test]
fn waiting_segments_are_counted_in_three_units() {
    let count = |params: VenoParams| params.waiting(40.0, Nanos(BASE), Nanos(53_300_000));
    assert!((count(VenoParams::default()) - (40.0 - 40.0 * 50.0 / 53.3)).abs() < 1e-9);
    assert_eq!((count(VenoParams::ns3()), count(VenoParams::linux())), (3.0, 2.5));
    for params in profiles() {
        assert_eq!(params.waiting(40.0, Nanos(BASE), Nanos(BASE)), 0.0);
    }
    // ns-3 and Linux have no sample.
    assert_eq!(VenoParams::ns3().waiting(40.0, Nanos(BASE), Nanos::MAX), 40.0);
    assert_eq!(VenoParams::linux().waiting(40.0, Nanos(BASE), Nanos::MAX), 40.0);
}

#[test]
fn a_random_loss_takes_a_fifth_and_a_congestive_one_half() {
    for params in [VenoParams::default(), VenoParams::linux()] {
        for (time, left, random) in [(FREE, 32, 1), (CONGESTED, 20, 0)] {
            let (mut control, mut rounds) = (with(params, 40), Rounds::new());
            measure(&mut control, &mut rounds, &[BASE, BASE, BASE]);
            // In slow start: a segment for each of these, and the second's time counts.
            rounds.ack(&mut control, MSS, Nanos(BASE));
            rounds.ack(&mut control, MSS, Nanos(time));
            let window = control.window() / MSS;
            assert_eq!(window, 42);
            rounds.lose(&mut control);
            let expected = if random == 1 { window * 4 / 5 } else { window / 2 };
            assert_eq!(control.window() / MSS, expected, "{params:?}");
            assert!(expected.abs_diff(left) <= 2);
            assert_eq!(control.stats().random_losses, random);
        }
    }
}

/// At the limit: 40 (1 - 50/54.05) = 2.997, 40 (1 - 50/54.06) = 3.004.
#[test]
fn the_path_is_congested_from_beta_waiting_segments_on() {
    for (time, left) in [(54_050_000, 32), (54_060_000, 20)] {
        let (mut control, mut rounds) = (with(VenoParams::default(), 40), Rounds::new());
        measure(&mut control, &mut rounds, &[BASE, time]);
        rounds.lose(&mut control);
        assert_eq!(control.window(), left * MSS, "{time}: {}", control.waiting());
    }
}

#[test]
fn a_timeout_halves_in_the_paper_but_counts_as_a_loss_elsewhere() {
    for (params, left) in [(VenoParams::default(), 20), (VenoParams::ns3(), 31), (VenoParams::linux(), 32)] {
        let (mut control, mut rounds) = (with(params, 40), Rounds::new());
        measure(&mut control, &mut rounds, &[BASE]);
        let (window, loss) = (control.window(), rounds.loss(&control));
        control.on_timeout(&loss, rounds.now);
        assert_eq!(control.window(), MSS);
        // ns-3's grew with that ACK.
        let expected = if params == VenoParams::ns3() { window * 4 / 5 } else { left * MSS };
        assert_eq!(control.slow_start_threshold(), expected);
    }
}

#[test]
fn growth_halves_where_the_path_is_congested() {
    for params in [VenoParams::default(), VenoParams::linux()] {
        for (time, rounds_for_six) in [(FREE, 6), (CONGESTED, 12)] {
            let mut rounds = Rounds::new();
            let mut control = avoiding(params, 40, &mut rounds);
            // The number of round trips in which the window grows by six segments; one more or less for what the
            // first counts before it begins.
            let mut taken = 0;
            while control.window() < 46 * MSS {
                rounds.run(&mut control, Nanos(time), 1);
                taken += 1;
            }
            assert!((rounds_for_six..=rounds_for_six + 2).contains(&taken), "{params:?} {time}: {taken}");
        }
    }
}

/// Each ACK restarts ns-3's count of samples, so there never are three.
#[test]
fn the_version_of_ns3_grows_as_new_reno() {
    let mut reno = NewReno::new(NewRenoParams::ns3(), MSS as u32, 40 * MSS, 0);
    let mut control = with(VenoParams::ns3(), 40);
    let (mut one, mut other) = (Rounds::new(), Rounds::new());
    one.run(&mut control, Nanos(BASE), 1);
    other.run(&mut reno, Nanos(BASE), 1);
    // Both lose half: by the last sample, all but a part of the window waits.
    one.ack(&mut control, MSS, Nanos(9 * BASE));
    other.ack(&mut reno, MSS, Nanos(9 * BASE));
    one.lose(&mut control);
    other.lose(&mut reno);
    for _ in 0..50 {
        one.run(&mut control, Nanos(9 * BASE), 1);
        other.run(&mut reno, Nanos(9 * BASE), 1);
        assert!(control.waiting() > 30.0);
        assert_eq!(control.window(), reno.window());
    }
}

/// After a repair, the first ACK has no sample left, and the whole window counts as waiting. The samples that came
/// during the repair are enough for ns-3 to use that once: the ACK's turn to grow is taken, and the next one's is not.
#[test]
fn the_first_ack_after_a_repair_has_no_sample_in_ns3_and_linux() {
    for params in [VenoParams::ns3(), VenoParams::linux()] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 40, &mut rounds);
        let loss = rounds.loss(&control);
        control.on_congestion(&loss, rounds.now);
        rounds.phase = Phase::Recovery;
        for _ in 0..5 {
            rounds.ack(&mut control, MSS, Nanos(BASE));
        }
        control.on_recovered(rounds.now);
        rounds.phase = Phase::Open;
        let segments = control.window() / MSS;
        rounds.ack(&mut control, MSS, Nanos(BASE));
        assert_eq!(control.waiting(), segments as f64);
        rounds.ack(&mut control, MSS, Nanos(BASE));
        assert_eq!(control.waiting(), 0.0);
    }
}

#[test]
fn only_the_paper_forgets_the_smallest_time_after_a_loss() {
    for (params, forgets) in [(VenoParams::default(), true), (VenoParams::linux(), false)] {
        let mut rounds = Rounds::new();
        let mut control = avoiding(params, 40, &mut rounds);
        rounds.run(&mut control, Nanos(BASE), 1);
        rounds.lose(&mut control);
        rounds.run(&mut control, Nanos(CONGESTED), 1);
        rounds.run(&mut control, Nanos(CONGESTED), 1);
        assert_eq!(control.waiting() == 0.0, forgets, "{params:?}");
    }
}
