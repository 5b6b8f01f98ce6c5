//! BBR version 3: the draft's formulas by hand, and its example test cases on a link.

use crate::congestion::link::{Flow, Path};
use crate::congestion::{MILLISECOND, MSS, SECOND, segments};
use queuescope_tcp::congestion::{Bbr3, Bbr3Params, Bbr3State};
use queuescope_tcp::{Ack, Algorithm, Congestion, CongestionControl, Controller, Phase, Profile, RateSample};
use queuescope_wire::Nanos;

/// 8 Mb/s: a segment in a millisecond. 41 segments fill it.
const PATH: Path = Path { segment_time: MILLISECOND, delay: 40 * MILLISECOND, buffer: 200, mark_above: None };
const RTT: u64 = 41 * MILLISECOND;
const RATE: f64 = 8e6;

fn profiles() -> [Bbr3Params; 3] {
    [Bbr3Params::default(), Bbr3Params::ns3(), Bbr3Params::linux()]
}

fn flow(params: Bbr3Params, path: Path, seed: u64) -> Flow<Bbr3> {
    let mut control = Bbr3::new(params, MSS as u32, 10 * MSS, seed);
    control.on_established(Some(Nanos(path.delay)), Nanos::ZERO);
    Flow::new(control, path)
}

/// Runs until a state is seen at `from` or later, or now if `from` is past.
fn run_to(flow: &mut Flow<Bbr3>, state: Bbr3State, from: u64) {
    let from = from.max(flow.now);
    flow.run(from, |_| {});
    while flow.control.state() != state {
        let now = flow.now;
        assert!(now < 100 * SECOND, "{state:?}");
        flow.run(now + MILLISECOND, |_| {});
    }
}

fn names(states: &[Bbr3State]) -> String {
    states.iter().map(|state| format!("{state:?}")).collect::<Vec<_>>().join(" ")
}

/// The states and when they began.
fn states(flow: &mut Flow<Bbr3>, until: u64) -> Vec<(Bbr3State, u64)> {
    let mut states: Vec<(Bbr3State, u64)> = Vec::new();
    flow.run(until, |flow| {
        let state = flow.control.state();
        if states.last().is_none_or(|(last, _)| *last != state) {
            states.push((state, flow.now));
        }
    });
    states
}

#[test]
fn it_finds_the_rate_and_the_round_trip_time() {
    for params in profiles() {
        let mut flow = flow(params, PATH, 1);
        flow.run(5 * SECOND, |_| {});
        let rate = flow.control.bandwidth().unwrap().bits_per_second() as f64;
        assert!((rate / RATE - 1.0).abs() < 0.01, "{rate}");
        let rtt = flow.control.smallest_rtt().unwrap().0;
        assert!((40 * MILLISECOND..=RTT).contains(&rtt), "{rtt}");
        let before = flow.delivered;
        flow.run(25 * SECOND, |_| {});
        let goodput = (flow.delivered - before) as f64 * 8.0 / 20.0;
        assert!(goodput > 0.95 * RATE && flow.lost == 0, "{goodput}");
    }
}

/// The table of the draft's section on control parameters.
#[test]
fn each_state_has_its_gains() {
    let mut flow = flow(Bbr3Params::default(), PATH, 2);
    let mut seen = std::collections::BTreeSet::new();
    flow.run(12 * SECOND, |flow| {
        let (state, control) = (flow.control.state(), &flow.control);
        let gains = match state {
            Bbr3State::Startup => (4.0 * 2.0_f64.ln(), 2.0),
            Bbr3State::Drain => (0.5, 2.0),
            Bbr3State::Down => (0.9, 2.0),
            Bbr3State::Cruise | Bbr3State::Refill => (1.0, 2.0),
            Bbr3State::Up => (1.25, 2.25),
            Bbr3State::ProbeRtt => (1.0, 0.5),
        };
        assert_eq!((control.pacing_gain(), control.window_gain()), gains, "{state:?}");
        if state != Bbr3State::Startup {
            let rate = control.bandwidth().unwrap().bits_per_second() as f64;
            let paced = control.pacing_rate().unwrap().bits_per_second() as f64;
            assert!((paced - 0.99 * gains.0 * rate).abs() < 16.0, "{state:?} {paced} {rate}");
        }
        seen.insert(format!("{state:?}"));
    });
    assert_eq!(seen.len(), 7, "{seen:?}");
}

/// Three round trips without growth end startup. Drain and down leave at most the bandwidth-delay product in flight.
#[test]
fn states_follow_in_order() {
    for params in profiles() {
        let mut flow = flow(params, PATH, 3);
        let mut drained = u64::MAX;
        let mut rounds = None;
        let mut order: Vec<Bbr3State> = Vec::new();
        flow.run(9 * SECOND / 2, |flow| {
            let state = flow.control.state();
            if order.last() != Some(&state) {
                order.push(state);
            }
            if state == Bbr3State::Drain && rounds.is_none() {
                rounds = Some(flow.control.stats().rounds);
            }
            if state == Bbr3State::Cruise {
                drained = drained.min(flow.in_flight());
            }
        });
        // Drain leaves so little in flight that down ends with the same ACK.
        assert!(names(&order).starts_with("Startup Drain Cruise Refill Up Down Cruise Refill"), "{order:?}");
        assert!(drained <= 42 * MSS, "{drained}");
        assert!((6..=10).contains(&rounds.unwrap()), "{rounds:?}");
    }
}

/// Drain ends after three round trips, even if more is in flight than the product. Linux's goes on.
#[test]
fn drain_ends_in_time() {
    for (params, ends) in [(Bbr3Params::default(), true), (Bbr3Params::linux(), false)] {
        let mut flow = flow(params, PATH, 4);
        run_to(&mut flow, Bbr3State::Drain, 0);
        let (began, mut passed) = (flow.control.stats().rounds, None);
        for number in 1..400 {
            let delivered = flow.delivered + number * MSS;
            let ack = Ack { in_flight: 60 * MSS, ..ack(delivered, delivered - 60 * MSS, 0, false) };
            flow.control.on_ack(&ack, Nanos(flow.now + number * MILLISECOND));
            if flow.control.state() != Bbr3State::Drain && passed.is_none() {
                passed = Some(flow.control.stats().rounds - began);
            }
        }
        assert_eq!(passed, ends.then_some(4), "the fourth begins after three");
    }
}

/// In a shallow buffer a round trip of startup loses far more than 2 %. The bound is then what the path holds.
#[test]
fn losses_end_startup_and_set_the_long_term_bound() {
    for params in profiles() {
        let mut flow = flow(params, Path { buffer: 10, ..PATH }, 5);
        run_to(&mut flow, Bbr3State::Drain, 0);
        let bound = segments(flow.control.long_term_bound().unwrap());
        assert!((41.0..=60.0).contains(&bound), "{bound}");
        let lost = flow.lost;
        flow.run(2 * SECOND, |_| {});
        let before = (flow.delivered, flow.lost);
        flow.run(22 * SECOND, |flow| {
            let bound = segments(flow.control.long_term_bound().unwrap());
            assert!((45.0..=60.0).contains(&bound), "{bound}");
            // It cruises with 15 % less, and no more than the bound at other times.
            let most = if flow.control.state() == Bbr3State::Cruise { 0.85 * bound + 1.0 } else { bound };
            assert!(segments(flow.control.window()) <= most + 0.001, "{:?}", flow.control.state());
        });
        let delivered = (flow.delivered - before.0) as f64;
        assert!(delivered * 8.0 / 20.0 > 0.93 * RATE, "{delivered}");
        assert!(((flow.lost - before.1) as f64) < 0.01 * delivered && lost > 0, "{} {lost}", flow.lost);
    }
}

/// As many round trips pass between probes as there are segments in the product, at most 63, and at most 2 to 3 s.
#[test]
fn probes_are_as_rare_as_renos_losses() {
    for (delay, least, most) in [(9, 60, 200), (40, 1_500, 2_000), (99, 2_000, 3_400)] {
        let mut flow = flow(Bbr3Params::default(), Path { delay: delay * MILLISECOND, ..PATH }, 6);
        let states = states(&mut flow, 20 * SECOND);
        let (mut began, mut waits) = (None, Vec::new());
        for pair in states.windows(2) {
            match (pair[0].0, pair[1].0) {
                // After a probe of the round-trip time the wait begins again.
                (_, Bbr3State::Down) | (Bbr3State::ProbeRtt, _) => began = Some(pair[1].1),
                (_, Bbr3State::Refill) => waits.extend(began.take().map(|began| (pair[1].1 - began) / MILLISECOND)),
                _ => {}
            }
        }
        assert!(waits.len() > 2 && waits.iter().all(|wait| (least..=most).contains(wait)), "{delay}: {waits:?}");
    }
}

#[test]
fn the_times_between_probes_differ_by_the_seed() {
    let path = Path { delay: 200 * MILLISECOND, buffer: 1_000, ..PATH };
    let first = |seed| {
        let mut flow = flow(Bbr3Params::default(), path, seed);
        run_to(&mut flow, Bbr3State::Refill, 0);
        flow.now
    };
    assert_eq!(first(1), first(1));
    assert!((2..6).any(|seed| first(seed) != first(1)));
}

/// Every five seconds, for 200 ms and a round trip, with half of the product in flight.
#[test]
fn the_round_trip_time_is_probed_with_half_of_the_product() {
    for params in profiles() {
        let mut flow = flow(params, PATH, 7);
        let states = states(&mut flow, 31 * SECOND);
        let probes: Vec<_> = states.windows(2).filter(|pair| pair[0].0 == Bbr3State::ProbeRtt).collect();
        assert!((5..=6).contains(&probes.len()), "{states:?}");
        assert_eq!(flow.control.stats().rtt_probes, probes.len() as u64);
        for probe in &probes {
            assert_eq!(probe[1].0, Bbr3State::Cruise, "down is passed");
            let span = probe[1].1 - probe[0].1;
            assert!((200 * MILLISECOND..200 * MILLISECOND + 4 * RTT).contains(&span), "{span}");
        }
        for pair in probes.windows(2) {
            let apart = pair[1][0].1 - pair[0][1].1;
            assert!((5 * SECOND..5 * SECOND + 100 * MILLISECOND).contains(&apart), "{apart}");
        }
        run_to(&mut flow, Bbr3State::ProbeRtt, 31 * SECOND);
        let window = segments(flow.control.window());
        assert!((20.0..=21.0).contains(&window), "{window}");
        run_to(&mut flow, Bbr3State::Cruise, 0);
        assert!(segments(flow.control.window()) >= 80.0);
    }
}

#[test]
fn the_loss_that_is_too_much_is_found_within_the_lost_bytes() {
    let params = Bbr3Params::default();
    // 1.8 of 91.84 segments are just over 2 %.
    assert_eq!(params.in_flight_at_loss(100_000, 10_000, 10_000), 90_000 + 1_836);
    // Two of 99 were lost before: that was too much already.
    assert_eq!(params.in_flight_at_loss(100_000, 3_000, 1_000), 99_000);
    assert_eq!(params.in_flight_at_loss(1_000, 1_000, 5_000), 0);
}

/// An ACK of a packet that was sent when `prior` bytes were delivered, at the link's rate.
fn ack(delivered: u64, prior: u64, lost: u64, limited: bool) -> Ack {
    let rate = RateSample {
        delivered,
        prior_delivered: prior,
        amount: delivered - prior,
        interval: Nanos(((delivered - prior) / MSS * MILLISECOND).max(1)),
        application_limited: limited,
        lost,
    };
    Ack {
        acked: MSS,
        delivered: MSS,
        in_flight_before: 31 * MSS,
        in_flight: 30 * MSS,
        unacknowledged: delivered,
        next: delivered + 31 * MSS,
        left_last: delivered + 31 * MSS,
        rtt: Some(Nanos(RTT)),
        smoothed_rtt: Nanos(RTT),
        phase: Phase::Open,
        window: 80 * MSS,
        marked: 0,
        counted: Some(MSS),
        window_limited: false,
        rate: Some(rate),
    }
}

/// Cruising with 31 packets in flight. A round trip with losses leaves the 31 that it delivers, or 0.7 of the window if
/// that is more; the next ones 0.7 of that, and so on down to what is delivered.
#[test]
fn losses_while_cruising_reduce_the_short_term_bounds() {
    let mut flow = flow(Bbr3Params::default(), PATH, 8);
    run_to(&mut flow, Bbr3State::Cruise, SECOND / 2);
    let (mut control, mut delivered) = (flow.control.clone(), flow.delivered);
    assert_eq!((control.short_term_bound(), control.long_term_bound()), (None, None));
    let window = control.window();
    let mut now = flow.now;
    let mut bounds = Vec::new();
    for number in 0..400 {
        delivered += MSS;
        now += MILLISECOND;
        // One packet of each round trip is lost, whatever the rate.
        let lost = if number % 31 == 5 { MSS } else { 0 };
        control.on_ack(&ack(delivered, delivered - 31 * MSS, lost, false), Nanos(now));
        assert_eq!(control.state(), Bbr3State::Cruise);
        if bounds.last() != Some(&control.short_term_bound()) {
            bounds.push(control.short_term_bound());
        }
    }
    // The round trip of drain delivered more than 0.7 of the window. From there on each step is exact.
    let bounds: Vec<_> = bounds.into_iter().flatten().collect();
    assert!(bounds.len() > 3 && bounds[0] <= window, "{bounds:?}");
    for pair in bounds.windows(2) {
        assert_eq!(pair[1], (pair[0] * 7 / 10).max(31 * MSS), "{bounds:?}");
    }
    assert_eq!(bounds.last(), Some(&(31 * MSS)), "{bounds:?}");
    assert_eq!(control.window(), 31 * MSS);
    let rate = control.bandwidth().unwrap().bits_per_second() as f64;
    assert!((rate / RATE - 1.0).abs() < 0.01, "what was delivered at the full rate: {rate}");
    // The next probe forgets them.
    for number in 0..4_000 {
        delivered += MSS;
        now += MILLISECOND;
        control.on_ack(&ack(delivered, delivered - 31 * MSS, 0, false), Nanos(now));
        if control.state() == Bbr3State::Refill {
            assert!(number > 100);
            break;
        }
    }
    assert_eq!((control.state(), control.short_term_bound()), (Bbr3State::Refill, None));
}

/// Samples that the application limits neither lower the bandwidth nor end startup.
#[test]
fn limited_samples_do_not_count() {
    let mut control = Bbr3::new(Bbr3Params::default(), MSS as u32, 10 * MSS, 9);
    control.on_established(Some(Nanos(RTT)), Nanos::ZERO);
    for number in 1..2_000u64 {
        let delivered = number * MSS;
        control.on_ack(&ack(delivered, delivered - 4 * MSS.min(delivered / 4), 0, true), Nanos(number * MILLISECOND));
        assert_eq!(control.state(), Bbr3State::Startup);
    }
    let mut flow = flow(Bbr3Params::default(), PATH, 9);
    run_to(&mut flow, Bbr3State::Refill, SECOND);
    let (control, before) = (&mut flow.control, flow.delivered);
    let largest = control.largest_bandwidth();
    for number in 1..200 {
        let mut slow = ack(before + number * MSS, before + number * MSS - 10 * MSS, 0, true);
        slow.rate = slow.rate.map(|rate| RateSample { interval: Nanos(rate.interval.0 * 8), ..rate });
        control.on_ack(&slow, Nanos(flow.now + number * MILLISECOND));
    }
    assert_eq!(control.largest_bandwidth(), largest);
    assert_eq!(control.state(), Bbr3State::Up);
}

/// Ten times the bandwidth is found within a few probes; a tenth is believed after the two cycles of the maximum.
#[test]
fn a_link_that_changes_its_rate_is_noticed() {
    let fast = Path { segment_time: MILLISECOND / 10, buffer: 1_000, ..PATH };
    let mut flow = flow(Bbr3Params::default(), PATH, 10);
    flow.run(3 * SECOND, |_| {});
    flow.set_path(fast);
    flow.run(20 * SECOND, |_| {});
    let rate = flow.control.bandwidth().unwrap().bits_per_second() as f64;
    assert!((rate / (10.0 * RATE) - 1.0).abs() < 0.02, "{rate}");
    flow.set_path(Path { buffer: 60, ..PATH });
    let slowed = flow.now;
    let mut believed = None;
    flow.run(60 * SECOND, |flow| {
        let rate = flow.control.bandwidth().unwrap().bits_per_second() as f64;
        if believed.is_none() && rate < 1.05 * RATE {
            believed = Some(flow.now);
        }
    });
    let after = believed.unwrap() - slowed;
    assert!(after < 10 * SECOND, "{after}");
    let rate = flow.control.bandwidth().unwrap().bits_per_second() as f64;
    assert!((rate / RATE - 1.0).abs() < 0.05, "{rate}");
}

/// After a probe with too many losses, the next one turns back at the bound. If that went well, another follows at once
/// and raises the bound, by more in each round trip. Linux raises it in the first one, and then waits as usual.
#[test]
fn a_precautionary_probe_comes_before_the_bound_rises() {
    for (params, precautionary) in [(Bbr3Params::default(), true), (Bbr3Params::linux(), false)] {
        let mut flow = flow(params, Path { buffer: 10, ..PATH }, 11);
        flow.run(9 * SECOND / 10, |_| {});
        run_to(&mut flow, Bbr3State::Up, 0);
        run_to(&mut flow, Bbr3State::Cruise, 0);
        let bound = flow.control.long_term_bound().unwrap();
        let too_high = flow.control.stats().too_high;
        assert!(too_high > 0);
        // The other traffic has gone, and the buffer has room.
        flow.set_path(Path { segment_time: MILLISECOND / 2, ..PATH });
        run_to(&mut flow, Bbr3State::Refill, 0);
        let states = states_and_bounds(&mut flow, 20);
        assert_eq!(flow.control.stats().too_high, too_high);
        let began: Vec<_> = states.iter().filter(|(state, ..)| *state == Bbr3State::Refill).collect();
        let down = states.iter().find(|(state, ..)| *state == Bbr3State::Down).unwrap();
        let waited = began[1].1 - down.1;
        let risen = segments(down.2 - bound);
        if precautionary {
            assert!(waited < 4 * RTT && risen < 5.0, "{states:?}");
            let bounds: Vec<_> = states.iter().map(|(.., bound)| *bound).collect();
            assert!(segments(bounds.last().unwrap() - bound) > 50.0, "{bounds:?}");
        } else {
            assert!(waited > SECOND && risen > 50.0, "{states:?}");
        }
    }
}

/// While a probe for bandwidth goes on at the bound, that rises by about twice as much in each round trip.
#[test]
fn the_bound_rises_faster_and_faster() {
    let mut flow = flow(Bbr3Params::linux(), Path { buffer: 10, ..PATH }, 11);
    run_to(&mut flow, Bbr3State::Up, SECOND);
    run_to(&mut flow, Bbr3State::Cruise, 0);
    flow.set_path(Path { segment_time: MILLISECOND / 4, ..PATH });
    run_to(&mut flow, Bbr3State::Up, 0);
    let (mut rounds, mut bounds) = (0, Vec::new());
    let now = flow.now;
    flow.run(now + 280 * MILLISECOND, |flow| {
        if flow.control.stats().rounds > rounds {
            rounds = flow.control.stats().rounds;
            bounds.push(segments(flow.control.long_term_bound().unwrap()));
        }
    });
    let grown: Vec<_> = bounds.windows(2).map(|pair| pair[1] - pair[0]).filter(|grown| *grown > 0.0).collect();
    assert!(grown.len() >= 5 && grown[0] <= 3.0, "{grown:?}");
    assert!(grown.windows(2).take(4).all(|pair| (1.3..=3.0).contains(&(pair[1] / pair[0]))), "{grown:?}");
}

/// The next states, when they began, and the long-term bound then.
fn states_and_bounds(flow: &mut Flow<Bbr3>, count: usize) -> Vec<(Bbr3State, u64, u64)> {
    let mut states: Vec<(Bbr3State, u64, u64)> = Vec::new();
    while states.len() < count {
        let now = flow.now;
        flow.run(now + 100 * MILLISECOND, |flow| {
            let state = flow.control.state();
            if states.last().is_none_or(|(last, ..)| *last != state) {
                states.push((state, flow.now, flow.control.long_term_bound().unwrap()));
            }
        });
    }
    states
}

/// A mark counts as a loss: in a probe it sets the long-term bound, at other times it reduces the short-term ones.
#[test]
fn marks_bound_what_is_in_flight() {
    let mut marked = flow(Bbr3Params::default(), Path { mark_above: Some(10), ..PATH }, 12);
    let mut plain = flow(Bbr3Params::default(), PATH, 12);
    marked.run(20 * SECOND, |_| {});
    plain.run(20 * SECOND, |_| {});
    assert_eq!(plain.control.long_term_bound(), None);
    let bound = segments(marked.control.long_term_bound().unwrap());
    assert!((40.0..=70.0).contains(&bound), "{bound}");
    assert!(marked.delivered as f64 > 0.9 * plain.delivered as f64, "{} {}", marked.delivered, plain.delivered);
}

#[test]
fn recovery_and_timeouts_restore_the_window() {
    let mut flow = flow(Bbr3Params::default(), PATH, 13);
    run_to(&mut flow, Bbr3State::Cruise, SECOND);
    let before = flow.control.window();
    let loss = Congestion { in_flight: flow.in_flight(), lost: MSS, delivered: 0, next: 0 };
    flow.control.on_congestion(&loss, Nanos(flow.now));
    assert_eq!(flow.control.window(), before, "only the model bounds it in recovery");
    flow.control.on_recovered(Nanos(flow.now));
    flow.control.on_timeout(&loss, Nanos(flow.now));
    assert_eq!(flow.control.window(), MSS);
    flow.control.on_recovered(Nanos(flow.now));
    assert_eq!(flow.control.window(), before);
}

/// Rates in Mb/s of flows that share a link for 60 s, after 20 s.
fn rates(algorithms: &[Algorithm], path: Path) -> Vec<f64> {
    let control = |index: usize| {
        let params = algorithms[index].params(Profile::Standard);
        let mut control = Controller::new(&params, MSS as u32, 10 * MSS, index as u64);
        control.on_established(Some(Nanos(path.delay)), Nanos::ZERO);
        control
    };
    let first = Flow::new(control(0), path);
    let others: Vec<_> =
        (1..algorithms.len()).map(|index| first.beside(control(index), path, index as u64 * SECOND)).collect();
    let mut flows: Vec<_> = std::iter::once(first).chain(others).collect();
    Flow::run_all(&mut flows, 20 * SECOND, |_| {});
    let before: Vec<_> = flows.iter().map(|flow| flow.delivered).collect();
    Flow::run_all(&mut flows, 80 * SECOND, |_| {});
    flows.iter().zip(before).map(|(flow, before)| (flow.delivered - before) as f64 * 8e-6 / 60.0).collect()
}

#[test]
fn flows_share_a_link() {
    let rates = rates(&[Algorithm::Bbr3; 3], Path { buffer: 80, ..PATH });
    assert!(rates.iter().sum::<f64>() > 0.95 * RATE * 1e-6, "{rates:?}");
    assert!(rates.iter().all(|rate| (1.6..4.0).contains(rate)), "{rates:?}");
}

/// With a buffer of half a product, version 1 leaves hardly anything to Reno; version 3 leaves a share.
#[test]
fn reno_gets_a_share() {
    let path = Path { buffer: 20, ..PATH };
    let old = rates(&[Algorithm::Bbr, Algorithm::NewReno], path);
    let new = rates(&[Algorithm::Bbr3, Algorithm::NewReno], path);
    assert!(new[1] > 1.5 * old[1] && new[1] > 0.25 * RATE * 1e-6, "{new:?} {old:?}");
    assert!(new[0] > 0.1 * RATE * 1e-6, "{new:?}");
}
