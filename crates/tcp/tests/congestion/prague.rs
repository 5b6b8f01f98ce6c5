//! Prague: the draft's formulas by hand, and independence of round-trip times on a link that marks.

use crate::congestion::link::{Flow, Path};
use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, SECOND, segments};
use queuescope_tcp::congestion::{Prague, PragueParams};
use queuescope_tcp::{Congestion, CongestionControl, Phase};
use queuescope_wire::Nanos;

const RTT: Nanos = Nanos(50 * MILLISECOND);

fn with(params: PragueParams, segments: u64) -> Prague {
    Prague::new(params, MSS as u32, segments * MSS, 0)
}

fn event(control: &Prague, lost: u64) -> Congestion {
    Congestion { in_flight: control.window(), lost, delivered: 0, next: 0 }
}

/// In congestion avoidance with `segments` segments.
fn avoiding(params: PragueParams, segments: u64) -> (Prague, Rounds) {
    let mut control = with(params, segments * 2);
    control.on_congestion(&event(&control, MSS), Nanos::ZERO);
    (control, Rounds::new())
}

/// Round trips of 20 segments with a fixed window: `alpha = 15/16 alpha + 1/16 M` from the first mark on.
#[test]
fn alpha_follows_the_recursion_from_the_first_mark_on() {
    let (mut control, mut rounds) = avoiding(PragueParams::default(), 20);
    rounds.limited = false;
    let (mut now, mut acked, mut marked, mut expected) = (0, 0, 0, 1.0);
    for (round, marks) in [0, 0, 0, 4, 0, 20, 7, 0].into_iter().enumerate() {
        for ack in 0..20 {
            now += 2_500_000;
            rounds.now = Nanos(now);
            let is_marked = ack + marks >= 20;
            rounds.marked_ack(&mut control, MSS, RTT, is_marked);
            (acked, marked) = (acked + 1, marked + u32::from(is_marked));
            // The first ACK ends the empty round trip before the connection, the others end with every 20th.
            if ack == 0 {
                if round > 3 {
                    expected = 0.9375 * expected + 0.0625 * f64::from(marked) / f64::from(acked);
                }
                (acked, marked) = (0, 0);
            }
            assert!((control.alpha() - expected).abs() < 1e-12, "{round} {ack}: {} {expected}", control.alpha());
        }
    }
    assert_eq!((control.stats().averages, control.stats().marked_bytes), (4, 31 * MSS));
    assert!(expected < 0.9);
}

#[test]
fn a_mark_takes_half_of_alpha_and_a_loss_half_of_the_window() {
    for (alpha, lost, left) in [(1.0, 0, 50_000), (0.25, 0, 87_500), (0.001, 0, 99_950), (0.001, MSS, 50_000)] {
        let mut control = with(PragueParams { initial_alpha: alpha, ..PragueParams::default() }, 100);
        control.on_congestion(&event(&control, lost), Nanos::ZERO);
        assert_eq!((control.window(), control.slow_start_threshold()), (left, left));
    }
    let mut small = with(PragueParams::default(), 2);
    small.on_congestion(&event(&small, 0), Nanos::ZERO);
    assert_eq!(small.window(), 2 * MSS);
}

/// A round trip adds `(rtt / 25 ms)^2` segments if it is shorter than 25 ms, and one if not.
#[test]
fn the_increase_is_scaled_after_the_transition() {
    let params = PragueParams::default();
    for (milliseconds, expected) in [(1, 0.0016), (5, 0.04), (10, 0.16), (20, 0.64), (25, 1.0), (80, 1.0)] {
        let rtt = Nanos(milliseconds * MILLISECOND);
        assert!((params.increase(rtt) - expected).abs() < 1e-12);
        for (transition, each) in [(0, expected), (1_000, 1.0)] {
            let (mut control, mut rounds) = avoiding(PragueParams { transition, ..params }, 100);
            for _ in 0..50 {
                rounds.run(&mut control, rtt, 1);
            }
            // A window that grows while its ACKs arrive adds a little less than a segment.
            let grown = segments(control.window()) - 100.0;
            assert!((grown - 50.0 * each).abs() < 0.01 * (1.0 + 50.0 * each), "{rtt} {transition}: {grown}");
            assert_eq!(control.is_independent(), transition == 0);
        }
    }
    assert_eq!(PragueParams { reference: Nanos::ZERO, ..params }.increase(Nanos(MILLISECOND)), 1.0);
}

#[test]
fn the_transition_takes_500_round_trips_after_slow_start() {
    let (mut control, mut rounds) = avoiding(PragueParams::default(), 4);
    rounds.limited = false;
    for round in 0..510 {
        assert_eq!(control.is_independent(), round >= 500, "{round}");
        rounds.run(&mut control, RTT, 1);
    }
    assert!(!with(PragueParams { transition: 0, ..PragueParams::default() }, 4).is_independent(), "in slow start");
}

/// While a mark is answered the increase goes on, with the bytes that are not marked, and the threshold with it.
#[test]
fn only_marked_bytes_do_not_increase_the_window() {
    for (marks, grown) in [(0, 1.0), (25, 0.75), (50, 0.5), (100, 0.0)] {
        let (mut control, mut rounds) = avoiding(PragueParams::default(), 100);
        rounds.phase = Phase::Reduced;
        for ack in 0..100 {
            rounds.marked_ack(&mut control, MSS, RTT, ack < marks);
        }
        assert!((segments(control.window()) - 100.0 - grown).abs() < 0.01, "{marks}: {}", control.window());
        assert_eq!(control.slow_start_threshold(), control.window());
        rounds.phase = Phase::Recovery;
        let before = control.window();
        rounds.run(&mut control, RTT, 1);
        assert_eq!(control.window(), before, "not while a loss is repaired");
    }
}

/// With round trips of 5 ms, averages and reductions are 25 ms apart once rates are independent, and 5 ms before.
#[test]
fn averages_and_reductions_come_once_in_the_reference_time() {
    for (transition, apart, count) in [(0, 25, 8), (1_000_000, 5, 40)] {
        // An average of nearly zero leaves the window as it is.
        let params = PragueParams { transition, initial_alpha: 0.0, ..PragueParams::default() };
        let (mut control, mut rounds) = avoiding(params, 50);
        let (mut reduced, mut averages) = (Vec::new(), Vec::new());
        rounds.limited = false;
        let rtt = Nanos(5 * MILLISECOND);
        for round in 0..40 {
            let [before, averaged] = [control.stats().reductions.marks, control.stats().averages];
            rounds.now = Nanos(round * rtt.0 + 1);
            rounds.marked_ack(&mut control, MSS, rtt, true);
            control.on_congestion(&event(&control, 0), rounds.now);
            if control.stats().reductions.marks > before {
                reduced.push(round * 5);
            }
            for _ in 0..control.window() / MSS {
                rounds.ack(&mut control, MSS, rtt);
            }
            if control.stats().averages > averaged {
                averages.push(round * 5);
            }
        }
        let all: Vec<_> = (0..count).map(|number| number * apart).collect();
        assert_eq!(reduced, all);
        assert_eq!(control.stats().early_marks, 40 - count);
        assert!(averages.windows(2).all(|pair| pair[1] - pair[0] >= apart) && averages.len() as u64 + 1 >= count);
    }
}

#[test]
fn it_paces_at_the_window_per_round_trip_time() {
    let mut control = with(PragueParams::default(), 10);
    assert_eq!(control.pacing_rate(), None);
    control.on_established(Some(Nanos(10 * MILLISECOND)), Nanos::ZERO);
    // 80 kbit per 10 ms are 8 Mb/s; twice that in slow start.
    assert_eq!(control.pacing_rate().unwrap().bits_per_second(), 16_000_000);
    control.on_congestion(&event(&control, MSS), Nanos::ZERO);
    assert_eq!(control.pacing_rate().unwrap().bits_per_second(), 4_000_000);
    assert_eq!(Prague::new(PragueParams::ns3(), MSS as u32, 10 * MSS, 0).pacing_rate(), None);
}

/// Rates in Mb/s, over 30 s, of flows with these round-trip times in ms through 100 Mb/s that marks above 1 ms of queue.
fn rates(params: PragueParams, delays: &[u64]) -> (Vec<f64>, f64) {
    let path = |delay: u64| Path {
        segment_time: 80_000,
        delay: delay * MILLISECOND - 80_000,
        buffer: 2_000,
        mark_above: Some(12),
    };
    let control = |delay: u64| {
        let mut control = with(params, 10);
        control.on_established(Some(Nanos(delay * MILLISECOND)), Nanos::ZERO);
        control
    };
    let first = Flow::new(control(delays[0]), path(delays[0]));
    let others: Vec<_> =
        delays[1..].iter().map(|delay| first.beside(control(*delay), path(*delay), 500 * MILLISECOND)).collect();
    let mut flows: Vec<_> = std::iter::once(first).chain(others).collect();
    Flow::run_all(&mut flows, 30 * SECOND, |_| {});
    let before: Vec<_> = flows.iter().map(|flow| flow.delivered).collect();
    let (mut sum, mut acks) = (0.0, 0.0);
    Flow::run_all(&mut flows, 60 * SECOND, |flow| {
        sum += flow.backlog() as f64 * 0.08;
        acks += 1.0;
    });
    assert!(flows.iter().all(|flow| flow.lost == 0));
    let rates = flows.iter().zip(before).map(|(flow, before)| (flow.delivered - before) as f64 * 8e-6 / 30.0);
    (rates.collect(), sum / acks)
}

/// Of two flows with 5 and 20 ms the shorter would have several times the rate; with Prague they are about equal. The
/// queue stays around the step at which marks begin.
#[test]
fn rates_do_not_depend_on_round_trip_times_below_the_reference() {
    let (rates_of_dctcp, _) = rates(PragueParams { reference: Nanos::ZERO, ..PragueParams::default() }, &[5, 20]);
    assert!(rates_of_dctcp[0] > 2.5 * rates_of_dctcp[1], "{rates_of_dctcp:?}");
    for delays in [[5, 20], [10, 25], [8, 8]] {
        let (rates, queue) = rates(PragueParams::default(), &delays);
        let ratio = rates[0] / rates[1];
        assert!((0.6..1.7).contains(&ratio), "{delays:?}: {rates:?}");
        assert!(rates.iter().sum::<f64>() > 95.0 && queue < 1.5, "{delays:?}: {rates:?} {queue}");
    }
}
