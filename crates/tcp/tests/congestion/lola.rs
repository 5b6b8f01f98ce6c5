//! LoLa: the formulas of the paper by hand, its states, and queueing delay and fairness on a link.

use crate::congestion::link::{Flow, Path};
use crate::congestion::rounds::Rounds;
use crate::congestion::{MILLISECOND, MSS, SECOND, segments};
use queuescope_tcp::congestion::{Lola, LolaParams, LolaState};
use queuescope_tcp::{Congestion, CongestionControl};
use queuescope_wire::Nanos;

/// 100 Mb/s.
const PATH: Path = Path { segment_time: 80_000, delay: 40 * MILLISECOND, buffer: 2_000, mark_above: None };
const BASE: Nanos = Nanos(40 * MILLISECOND);

fn with(params: LolaParams, segments: u64) -> Lola {
    Lola::new(params, MSS as u32, segments * MSS, 0)
}

/// The time for which `backlog` segments wait.
fn delay(backlog: u64) -> u64 {
    backlog * PATH.segment_time
}

fn later(time: Nanos, milliseconds: u64) -> Nanos {
    Nanos(time.0 + milliseconds * MILLISECOND)
}

#[test]
fn the_share_of_the_queue_grows_with_the_cube_of_time() {
    let params = LolaParams::default();
    for (milliseconds, bytes) in [(0, 0.0), (35, 1.0), (70, 8.0), (350, 1_000.0), (1_400, 64_000.0)] {
        assert!((params.share(Nanos(milliseconds * MILLISECOND), MSS) - bytes).abs() < 1e-6);
    }
    let linux = LolaParams::linux();
    assert!((linux.share(Nanos(600 * MILLISECOND), MSS) - 8_000.0).abs() < 1e-6, "eight segments");
}

/// Of 100 segments with 40 ms of path and 10 ms of queue, 20 wait. 973/1024 of the other 80 remain.
#[test]
fn a_tailored_decrease_takes_the_queue_and_a_little_more() {
    let params = LolaParams::default();
    let rtt = later(BASE, 10);
    assert!((params.queued(100 * MSS, BASE, rtt) - 20_000.0).abs() < 1e-6);
    assert!((params.decreased(100 * MSS, BASE, rtt) - 76_015.625).abs() < 1e-6);
    // 24 segments are C K^3 = 0.4 * 60 for K = 60^(1/3).
    assert!((params.k(100.0, 76.0) - 3.914_867_6).abs() < 1e-6);
    assert_eq!(params.k(50.0, 76.0), 0.0);
}

/// Ends slow start with 3 ms of queue, which the tailored decrease finds unchanged. Returns the window before it.
fn decrease(control: &mut Lola, rounds: &mut Rounds) -> u64 {
    while control.window() < 150 * MSS {
        rounds.run(control, BASE, 1);
    }
    while control.state() == LolaState::SlowStart {
        rounds.ack(control, MSS, later(BASE, 3));
    }
    let before = control.window();
    assert_eq!((control.state(), control.slow_start_threshold()), (LolaState::Hold, before));
    while control.state() == LolaState::Hold {
        assert_eq!(control.window(), before);
        rounds.now = Nanos(rounds.now.0 + MILLISECOND);
        rounds.ack(control, MSS, later(BASE, 3));
    }
    before
}

#[test]
fn after_the_decrease_the_window_follows_the_cubic_function() {
    let (mut control, mut rounds) = (with(LolaParams::default(), 10), Rounds::new());
    let before = decrease(&mut control, &mut rounds);
    assert_eq!(control.state(), LolaState::Cubic);
    let left = 973.0 / 1024.0 * before as f64 * 40.0 / 43.0;
    // The ACK that ends the hold already counts in the cubic increase.
    assert!((control.window() as f64 - left).abs() < 10.0, "{} {left}", control.window());
    assert_eq!(control.stats().slow_start_exits + control.stats().decreases, 2);
    let (began, k) = (rounds.now, ((before as f64 - left) / MSS as f64 / 0.4).cbrt());
    for _ in 0..120 {
        rounds.run(&mut control, BASE, 1);
        let since = (rounds.now.0 - began.0) as f64 * 1e-9;
        let expected = segments(before) + 0.4 * (since - k).powi(3);
        assert!((segments(control.window()) - expected).abs() < 1.0, "{since}: {} {expected}", control.window());
        assert_eq!(control.state(), LolaState::Cubic);
    }
    assert!(control.window() > before, "4.8 s are more than K");
}

/// With a queueing delay between the two thresholds each step adds what is missing to `X(t)`, and then waits until its
/// effect is measured.
#[test]
fn fair_flow_balancing_adds_what_is_missing() {
    let params = LolaParams::default();
    let (mut control, mut rounds) = (with(params, 10), Rounds::new());
    decrease(&mut control, &mut rounds);
    let rtt = later(BASE, 2);
    let (mut began, mut steps, mut last) = (None, Vec::new(), 0);
    while steps.len() < 10 {
        rounds.now = Nanos(rounds.now.0 + MILLISECOND / 4);
        let before = control.window();
        rounds.ack(&mut control, MSS, rtt);
        match (control.state(), began) {
            (LolaState::FairFlow, None) => began = Some(rounds.now),
            (LolaState::FairFlow, Some(began)) if control.window() > before => {
                let share = params.share(Nanos(rounds.now.0 - began.0), MSS);
                let missing = share - before as f64 * 2.0 / 42.0;
                assert!((control.window() as f64 - (before as f64 + missing)).abs() <= 1.0, "{share} {before}");
                steps.push((missing, rounds.now.0 - last));
                last = rounds.now.0;
            }
            (LolaState::FairFlow, Some(_)) => assert_eq!(control.window(), before),
            (state, _) => assert_eq!(state, LolaState::Cubic),
        }
    }
    // A round trip of at least 147 segments, one in 0.25 ms, and 40 ms.
    assert!(steps[1..].iter().all(|(_, apart)| *apart >= 76 * MILLISECOND), "{steps:?}");
    // The window of 7 segments in the queue is enough for the first 0.67 s.
    assert!(steps[0].0 > 0.0 && last > 670 * MILLISECOND);
}

#[test]
fn states_follow_one_another_and_the_window_is_held_for_250_ms() {
    for params in [LolaParams::default(), LolaParams::linux(), LolaParams::ns3()] {
        let mut flow = Flow::new(with(params, 10), PATH);
        let (mut states, mut held) = (Vec::<(LolaState, u64)>::new(), 0);
        flow.run(30 * SECOND, |flow| {
            let state = flow.control.state();
            if states.last().is_none_or(|(last, _)| *last != state) {
                states.push((state, flow.now));
                held = flow.control.window();
            }
            if state == LolaState::Hold {
                assert_eq!(flow.control.window(), held);
            }
        });
        let [slow_start, settling] = [states[0].0, states[1].0];
        assert_eq!([slow_start, settling], [LolaState::SlowStart, LolaState::Hold]);
        // The queue of slow start may take another decrease. Then the states repeat.
        let first = states.iter().position(|(state, _)| *state == LolaState::FairFlow).unwrap();
        assert!(states.len() > first + 18, "{states:?}");
        for four in states[first..].windows(4).step_by(3) {
            let names: Vec<_> = four.iter().map(|(state, _)| *state).collect();
            assert_eq!(names, [LolaState::FairFlow, LolaState::Hold, LolaState::Cubic, LolaState::FairFlow]);
            let hold = four[2].1 - four[1].1;
            assert!((250 * MILLISECOND..300 * MILLISECOND).contains(&hold), "{hold}");
        }
    }
}

/// Runs flows that start half a second apart for 20 s, and then returns for 40 s: the largest queueing delay, the
/// average that ACKs see, and the rates in Mb/s.
fn share(params: LolaParams, delays: &[u64]) -> (u64, u64, Vec<f64>) {
    let path = |delay: u64| Path { delay: delay * MILLISECOND, ..PATH };
    let first = Flow::new(with(params, 10), path(delays[0]));
    let more: Vec<_> = (1..delays.len())
        .map(|flow| first.beside(with(params, 10), path(delays[flow]), flow as u64 * SECOND / 2))
        .collect();
    let mut flows: Vec<_> = std::iter::once(first).chain(more).collect();
    Flow::run_all(&mut flows, 20 * SECOND, |_| {});
    let before: Vec<_> = flows.iter().map(|flow| flow.delivered).collect();
    let (mut largest, mut sum, mut acks) = (0, 0, 0);
    Flow::run_all(&mut flows, 60 * SECOND, |flow| {
        largest = largest.max(delay(flow.backlog()));
        sum += delay(flow.backlog());
        acks += 1;
    });
    let rates = flows.iter().zip(before).map(|(flow, before)| (flow.delivered - before) as f64 * 8e-6 / 40.0);
    (largest, sum / acks, rates.collect())
}

/// The queueing delay stays around the target of 5 ms, and below it on average, whatever the number of flows. Within a
/// step, and while the window is held, it exceeds it a little. The link stays busy.
#[test]
fn the_queueing_delay_does_not_depend_on_the_number_of_flows() {
    for params in [LolaParams::default(), LolaParams::linux()] {
        for flows in [1, 2, 5, 10] {
            let (largest, average, rates) = share(params, &vec![40; flows]);
            assert!(largest < 11 * MILLISECOND && average < 5 * MILLISECOND, "{flows}: {largest} {average}");
            assert!(average > MILLISECOND / 2, "{flows}: {average}");
            let sum = rates.iter().sum::<f64>();
            assert!(sum > 95.0, "{flows}: {sum}");
        }
    }
}

/// Reno's rates would be inverse to the round-trip times, 4 : 2 : 1. LoLa's are nearly equal.
#[test]
fn flows_with_different_round_trip_times_share_fairly() {
    let (largest, average, rates) = share(LolaParams::default(), &[20, 40, 80]);
    assert!(largest < 11 * MILLISECOND && average < 5 * MILLISECOND, "{largest} {average}");
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    assert!(sum > 95.0 && sum * sum / (3.0 * squares) > 0.95, "{rates:?}");
    assert!(rates.iter().all(|rate| (22.0..45.0).contains(rate)), "{rates:?}");
}

/// A path that becomes longer looks like a queue that no decrease empties, until the smallest time is forgotten.
#[test]
fn a_longer_path_is_learnt_after_some_decreases() {
    let params = LolaParams { base_decreases: 10, ..LolaParams::default() };
    let mut flow = Flow::new(with(params, 10), PATH);
    flow.run(10 * SECOND, |_| {});
    assert_eq!(flow.control.stats().base_resets, 0);
    flow.set_path(Path { delay: 60 * MILLISECOND, ..PATH });
    flow.run(40 * SECOND, |_| {});
    assert_eq!(flow.control.stats().base_resets, 1);
    let before = flow.delivered;
    flow.run(50 * SECOND, |_| {});
    assert!((flow.delivered - before) as f64 * 8e-6 / 10.0 > 95.0);
    assert!(flow.control.queueing_delay().unwrap() < Nanos(8 * MILLISECOND));
}

#[test]
fn a_loss_leaves_seven_tenths_and_a_second_one_lowers_the_maximum() {
    let mut control = with(LolaParams::default(), 100);
    let loss = |control: &Lola| Congestion { in_flight: control.window(), lost: MSS, delivered: 0, next: 0 };
    control.on_congestion(&loss(&control), Nanos(0));
    assert_eq!((control.window(), control.state()), (70 * MSS, LolaState::Cubic));
    control.on_congestion(&loss(&control), Nanos(0));
    assert_eq!(control.window(), 49 * MSS);
    // The second loss found 70 of 100 segments: the maximum is 70 * 1.7 / 2 = 59.5, which is K = 2.97 s away.
    let mut rounds = Rounds::new();
    rounds.now = Nanos(SECOND);
    for _ in 0..70 {
        rounds.run(&mut control, BASE, 1);
    }
    let since = (rounds.now.0 - SECOND) as f64 * 1e-9;
    let expected = 59.5 + 0.4 * (since - (10.5_f64 / 0.4).cbrt()).powi(3);
    assert!((segments(control.window()) - expected).abs() < 1.0, "{} {expected}", control.window());
}

#[test]
fn a_timeout_starts_again_and_slow_start_then_ends_at_the_threshold() {
    let mut control = with(LolaParams::default(), 100);
    control.on_timeout(&Congestion { in_flight: 100 * MSS, lost: 100 * MSS, delivered: 0, next: 0 }, Nanos(0));
    assert_eq!((control.window(), control.slow_start_threshold()), (MSS, 70 * MSS));
    let mut rounds = Rounds::new();
    for expected in [2, 4, 8, 16, 32, 64] {
        rounds.run(&mut control, BASE, 1);
        assert_eq!((control.window(), control.state()), (expected * MSS, LolaState::SlowStart));
    }
    rounds.run(&mut control, BASE, 1);
    assert_eq!(control.state(), LolaState::Cubic);
    assert!((70 * MSS..75 * MSS).contains(&control.window()), "{}", control.window());
}
