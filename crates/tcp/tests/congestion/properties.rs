//! Properties of every congestion control under any events.

use crate::congestion::link::{Flow, Path};
use crate::congestion::{MILLISECOND, MSS, SECOND};
use proptest::prelude::*;
use queuescope_tcp::{
    Ack, Algorithm, AlgorithmParams, Congestion, CongestionControl, Controller, Phase, Profile, RateSample,
};
use queuescope_wire::Nanos;

/// The largest window in bytes.
const LARGEST: u64 = 1 << 40;

fn each() -> impl Iterator<Item = AlgorithmParams> {
    Algorithm::ALL.iter().flat_map(|algorithm| Profile::ALL.iter().map(|profile| algorithm.params(*profile)))
}

#[derive(Debug, Clone)]
enum Event {
    Ack(Box<Ack>),
    Congestion(Congestion),
    Timeout(Congestion),
    Recovered,
    Sent(u64, u64),
    Idle(u32, u64),
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..100_000u64, 2 => Just(1_448), 1 => Just(0), 1 => 0..u64::MAX]
}

fn time() -> impl Strategy<Value = Nanos> {
    prop_oneof![4 => 0..200_000_000u64, 1 => Just(0), 1 => 0..u64::MAX].prop_map(Nanos)
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![4 => Just(Phase::Open), 1 => Just(Phase::Reduced), 1 => Just(Phase::Recovery), 1 => Just(Phase::Loss)]
}

fn sample() -> impl Strategy<Value = RateSample> {
    (amount(), amount(), time(), any::<bool>(), amount()).prop_map(
        |(delivered, prior_delivered, interval, application_limited, lost)| RateSample {
            delivered,
            prior_delivered,
            amount: delivered.saturating_sub(prior_delivered),
            interval,
            application_limited,
            lost,
        },
    )
}

fn ack() -> impl Strategy<Value = Ack> {
    let amounts = (amount(), amount(), amount(), amount(), amount(), (amount(), amount()), amount(), amount());
    let rest = (prop::option::of(time()), time(), phase(), any::<bool>(), prop::option::of(sample()));
    (amounts, rest).prop_map(|((acked, delivered, before, after, una, (next, left_last), marked, window), rest)| {
        let (rtt, smoothed_rtt, phase, window_limited, rate) = rest;
        Ack {
            acked,
            delivered,
            in_flight_before: before,
            in_flight: after,
            unacknowledged: una,
            next,
            left_last,
            rtt,
            smoothed_rtt,
            phase,
            window,
            marked,
            counted: (marked % 4 > 0).then_some(acked),
            window_limited,
            rate,
        }
    })
}

fn congestion() -> impl Strategy<Value = Congestion> {
    (amount(), amount(), amount(), amount()).prop_map(|(in_flight, lost, delivered, next)| Congestion {
        in_flight,
        lost,
        delivered,
        next,
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => ack().prop_map(|ack| Event::Ack(Box::new(ack))),
        2 => congestion().prop_map(Event::Congestion),
        1 => congestion().prop_map(Event::Timeout),
        2 => Just(Event::Recovered),
        2 => (amount(), amount()).prop_map(|(bytes, in_flight)| Event::Sent(bytes, in_flight)),
        1 => (any::<u32>(), amount()).prop_map(|(timeouts, floor)| Event::Idle(timeouts, floor)),
    ]
}

fn feed(control: &mut Controller, event: &Event, now: Nanos) {
    match event {
        Event::Ack(ack) => control.on_ack(ack, now),
        Event::Congestion(congestion) => control.on_congestion(congestion, now),
        Event::Timeout(congestion) => control.on_timeout(congestion, now),
        Event::Recovered => control.on_recovered(now),
        Event::Sent(bytes, in_flight) => control.on_sent(*bytes, *in_flight, now),
        Event::Idle(timeouts, floor) => control.on_idle(*timeouts, *floor, now),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any events, sensible or not: the window is at least a segment (except in one profile) and at most a
    /// terabyte. After a congestion event it is at least two segments, unless the profile says otherwise. A rate is
    /// never zero. The same events give the same results.
    #[test]
    fn windows_are_sound_and_runs_repeat(
        events in prop::collection::vec((event(), time()), 1..60), mss in 1..65_000u32, initial in amount(), seed: u64,
        established in prop::option::of(prop::option::of(time())),
    ) {
        for params in each() {
            let mut control = Controller::new(&params, mss, initial, seed);
            let mut again = Controller::new(&params, mss, initial, seed);
            if let Some(rtt) = established {
                control.on_established(rtt, Nanos::ZERO);
                again.on_established(rtt, Nanos::ZERO);
            }
            let mut now = Nanos::ZERO;
            for (event, later) in &events {
                now = now.saturating_add(*later);
                feed(&mut control, event, now);
                feed(&mut again, event, now);
                let mss = u64::from(mss);
                // ns-3's DCTCP goes below a segment.
                let least = if params == Algorithm::Dctcp.params(Profile::Ns3) { 0 } else { mss };
                prop_assert!((least..=LARGEST).contains(&control.window()), "{:?} {}", params, control.window());
                if matches!(event, Event::Congestion(_))
                    && !control.rules_recovery()
                    && params != Algorithm::Dctcp.params(Profile::Ns3)
                {
                    prop_assert!(control.window() >= 2 * mss);
                    prop_assert_eq!(control.window(), control.slow_start_threshold());
                }
                if control.rules_recovery() {
                    prop_assert!(control.pacing_rate().is_none_or(|rate| rate.bits_per_second() > 0));
                }
                prop_assert_eq!(control.window(), again.window());
                prop_assert_eq!(control.slow_start_threshold(), again.slow_start_threshold());
                prop_assert_eq!(control.pacing_rate(), again.pacing_rate());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// On any path each algorithm fills the link once it has had time to adapt: Vegas may take a round trip for each
    /// segment.
    #[test]
    fn a_lone_flow_fills_its_link(
        segment_time in 1_000_000..8_000_000u64, delay in 5..80u64, buffer in 1.0..3.0f64,
    ) {
        let path = Path { segment_time, delay: delay * MILLISECOND, buffer: 0, mark_above: None };
        let path = Path { buffer: ((path.product() as f64 * buffer) as u64).max(8), ..path };
        for params in each() {
            let mut control = Controller::new(&params, MSS as u32, 10 * MSS, 1);
            control.on_established(Some(Nanos(path.delay)), Nanos::ZERO);
            let mut flow = Flow::new(control, path);
            flow.run(8 * SECOND, |_| {});
            let before = flow.delivered;
            flow.run(14 * SECOND, |_| {});
            let delivered = (flow.delivered - before) / MSS;
            // One more than whole segment times: the one whose transmission began before.
            prop_assert!(delivered <= 6 * SECOND / segment_time + 1, "{params:?} {path:?}: {delivered}");
            let used = (delivered * segment_time) as f64 / (6 * SECOND) as f64;
            prop_assert!(used > 0.8, "{params:?} {path:?}: {used}");
        }
    }
}
