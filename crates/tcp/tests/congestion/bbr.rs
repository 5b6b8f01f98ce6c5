//! BBR on a link without loss: it finds the rate and the round-trip time, and cycles as in the draft.

use crate::congestion::link::{Flow, Path};
use crate::congestion::{MILLISECOND, MSS, SECOND};
use queuescope_tcp::congestion::{Bbr, BbrMode, BbrParams};
use queuescope_tcp::{Ack, Congestion, CongestionControl, Phase, RateSample};
use queuescope_wire::Nanos;

/// 8 Mb/s, 40 ms, and one millisecond per segment: 41 segments in flight.
const PATH: Path = Path { segment_time: MILLISECOND, delay: 40 * MILLISECOND, buffer: u64::MAX, mark_above: None };
const RTT: u64 = 41 * MILLISECOND;
const RATE: f64 = 8e6;

fn flow(params: BbrParams, path: Path, seed: u64) -> Flow<Bbr> {
    let mut control = Bbr::new(params, MSS as u32, 10 * MSS, seed);
    control.on_established(Some(Nanos(path.delay)), Nanos::ZERO);
    Flow::new(control, path)
}

fn profiles() -> [BbrParams; 3] {
    [BbrParams::default(), BbrParams::ns3(), BbrParams::linux()]
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
        flow.run(9 * SECOND, |_| {});
        let goodput = (flow.delivered - before) as f64 * 8.0 / 4.0;
        assert!(goodput > 0.98 * RATE, "{goodput}");
    }
}

#[test]
fn startup_then_drain_then_probing() {
    for params in profiles() {
        let mut flow = flow(params, PATH, 2);
        let (mut modes, mut peak, mut drained) = (Vec::new(), 0, u64::MAX);
        flow.run(3 * SECOND, |flow| {
            let mode = flow.control.mode();
            if modes.last() != Some(&mode) {
                modes.push(mode);
                if mode == BbrMode::ProbeBandwidth {
                    drained = flow.in_flight();
                }
            }
            peak = peak.max(flow.in_flight());
        });
        assert_eq!(modes, [BbrMode::Startup, BbrMode::Drain, BbrMode::ProbeBandwidth]);
        // In startup up to 2.89 times the product is in flight, plus one send quantum.
        assert!(peak <= (2.89 * 41.0 + 20.0) as u64 * MSS, "{peak}");
        assert!(peak > 60 * MSS, "{peak}");
        assert!(drained <= 50 * MSS, "{drained}");
    }
}

/// In startup the rate doubles in each round trip, so three round trips without growth follow soon after the pipe is
/// full. From 10 segments to 41 that takes two doublings and three round trips, plus one until the samples return.
#[test]
fn the_pipe_is_full_after_a_few_round_trips() {
    let mut flow = flow(BbrParams::linux(), PATH, 3);
    let mut rounds = None;
    flow.run(3 * SECOND, |flow| {
        if flow.control.mode() != BbrMode::Startup && rounds.is_none() {
            rounds = Some(flow.control.stats().rounds);
        }
    });
    let rounds = rounds.unwrap();
    assert!((6..=9).contains(&rounds), "{rounds}");
}

#[test]
fn gains_cycle_in_order_for_a_round_trip_each() {
    for (params, seed) in profiles().into_iter().flat_map(|params| (0..5).map(move |seed| (params, seed))) {
        let mut flow = flow(params, PATH, seed);
        let mut phases: Vec<(f64, u64)> = Vec::new();
        flow.run(9 * SECOND, |flow| {
            let gain = flow.control.pacing_gain();
            if flow.control.mode() == BbrMode::ProbeBandwidth && phases.last().is_none_or(|(last, _)| *last != gain) {
                phases.push((gain, flow.now));
            }
        });
        let gains: Vec<_> = phases.iter().map(|(gain, _)| *gain).collect();
        assert!(gains.len() > 30, "{gains:?}");
        let first = gains.iter().position(|gain| *gain == 1.25).unwrap();
        assert!(first <= 1, "it begins with a gain of 1 or 5/4: {gains:?}");
        for three in gains[first..].chunks_exact(3) {
            assert_eq!(three, [1.25, 0.75, 1.0]);
        }
        // Faster for at least the smallest round-trip time, slower for at most that, then six times that.
        for three in phases[first..].windows(4).filter(|phases| phases[0].0 == 1.25) {
            let spans = [three[1].1 - three[0].1, three[2].1 - three[1].1, three[3].1 - three[2].1];
            assert!(spans[0] >= RTT && spans[0] <= 3 * RTT, "{spans:?}");
            assert!(spans[1] <= RTT + 5 * MILLISECOND, "{spans:?}");
            assert!(spans[2] >= 6 * 40 * MILLISECOND && spans[2] <= 7 * RTT, "{spans:?}");
        }
    }
}

/// A sender that always has data has at most twice the product and one send quantum in flight.
#[test]
fn at_most_twice_the_product_is_in_flight() {
    for params in profiles() {
        let mut flow = flow(params, PATH, 4);
        flow.run(3 * SECOND, |_| {});
        let mut most = 0;
        flow.run(9 * SECOND, |flow| most = most.max(flow.control.window()));
        // Three quanta of two segments, two more in the first phase, two that ACKs may release at once, and rounding.
        assert!((2 * 41 * MSS..=(2 * 41 + 6 + 2 + 3 + 2) * MSS).contains(&most), "{most}");
    }
}

/// When the link's rate drops to half, the estimate follows once the window of ten round trips has passed.
#[test]
fn a_link_that_slows_down_is_noticed() {
    let mut fast = flow(BbrParams::linux(), PATH, 5);
    fast.run(2 * SECOND, |_| {});
    let slow = Path { segment_time: 2 * MILLISECOND, ..PATH };
    fast.set_path(slow);
    // Its at most 90 segments in flight take 180 ms now. Two round trips with samples of both rates and ten more are
    // 2.2 s.
    fast.run(4 * SECOND + 500 * MILLISECOND, |_| {});
    let rate = fast.control.bandwidth().unwrap().bits_per_second() as f64;
    assert!((rate / (RATE / 2.0) - 1.0).abs() < 0.02, "{rate}");
}

/// Linux probes ten seconds after the smallest round-trip time last fell, for 200 ms and a round trip, with four
/// segments in flight.
#[test]
fn the_round_trip_time_is_probed_every_ten_seconds() {
    let mut flow = flow(BbrParams::linux(), PATH, 6);
    let (mut probes, mut least) = (Vec::<(u64, u64)>::new(), u64::MAX);
    let mut probing = false;
    flow.run(50 * SECOND, |flow| {
        let now_probing = flow.control.mode() == BbrMode::ProbeRtt;
        match (probing, now_probing) {
            (false, true) => probes.push((flow.now, u64::MAX)),
            (true, false) => probes.last_mut().unwrap().1 = flow.now,
            (true, true) => least = least.min(flow.in_flight()),
            (false, false) => {}
        }
        probing = now_probing;
        if now_probing {
            assert!(flow.control.window() <= 4 * MSS);
        }
    });
    assert_eq!(probes.len(), 4, "{probes:?}");
    assert_eq!(flow.control.stats().probes, 4);
    assert!(least <= 4 * MSS);
    for (began, ended) in &probes {
        let span = ended - began;
        assert!((200 * MILLISECOND..=200 * MILLISECOND + 4 * RTT).contains(&span), "{span}");
    }
    for pair in probes.windows(2) {
        // Ten seconds from the end of one probe to the start of the next.
        let apart = pair[1].0 - pair[0].1;
        assert!((10 * SECOND..=10 * SECOND + 100 * MILLISECOND).contains(&apart), "{apart}");
    }
    assert!(flow.delivered as f64 * 8.0 / 50.0 > 0.95 * RATE);
}

/// On a path that never queues, the draft renews the smallest time with each equal one and never probes; Linux probes
/// after ten seconds.
#[test]
fn an_equal_time_renews_the_smallest_except_in_linux() {
    for (params, probes) in [(BbrParams::default(), 0), (BbrParams::ns3(), 0), (BbrParams::linux(), 1)] {
        let mut control = Bbr::new(params, MSS as u32, 10 * MSS, 0);
        control.on_established(Some(Nanos(RTT)), Nanos::ZERO);
        for ack in 1..1_005 {
            let delivered = ack * MSS;
            let rate = RateSample {
                delivered,
                prior_delivered: delivered - 4 * MSS.min(delivered / 4),
                amount: 4 * MSS.min(delivered / 4),
                interval: Nanos(RTT),
                application_limited: true,
                lost: 0,
            };
            let ack = Ack { rate: Some(rate), rtt: Some(Nanos(RTT)), ..quiet_ack() };
            control.on_ack(&ack, Nanos(delivered * 10_000));
        }
        assert_eq!(control.stats().probes, probes);
    }
}

/// An ACK that delivered a segment, with little in flight.
fn quiet_ack() -> Ack {
    Ack {
        acked: MSS,
        delivered: MSS,
        in_flight_before: 5 * MSS,
        in_flight: 4 * MSS,
        unacknowledged: 0,
        next: 0,
        left_last: 0,
        rtt: None,
        smoothed_rtt: Nanos(RTT),
        phase: Phase::Open,
        window: 10 * MSS,
        marked: 0,
        counted: Some(MSS),
        window_limited: false,
        rate: None,
    }
}

/// With a buffer of a quarter of the product, each phase of gain 5/4 causes losses. They are repaired without giving up
/// the rate.
#[test]
fn losses_do_not_reduce_the_rate() {
    for params in profiles() {
        let mut flow = flow(params, Path { buffer: 10, ..PATH }, 8);
        let mut conserved = 0;
        flow.run(20 * SECOND, |flow| {
            conserved += u64::from(flow.in_recovery());
            assert!(flow.control.window() >= MSS);
        });
        assert!(flow.lost > 0 && conserved > 0);
        let goodput = flow.delivered as f64 * 8.0 / 20.0;
        assert!(goodput > 0.9 * RATE, "{params:?} {goodput}");
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_trip_and_restores_the_window() {
    let mut flow = flow(BbrParams::linux(), PATH, 9);
    flow.run(3 * SECOND, |_| {});
    let before = flow.control.window();
    let in_flight = flow.in_flight();
    let loss = Congestion { in_flight, lost: MSS, delivered: 0, next: 0 };
    flow.control.on_congestion(&loss, Nanos(flow.now));
    assert_eq!(flow.control.window(), in_flight - MSS + MSS);
    let mut ack = Ack {
        acked: 0,
        in_flight_before: in_flight - MSS,
        in_flight: in_flight - 2 * MSS,
        phase: Phase::Recovery,
        // The sample has no rate, but reports this loss.
        rate: Some(RateSample {
            delivered: flow.delivered,
            prior_delivered: 0,
            amount: flow.delivered,
            interval: Nanos::ZERO,
            application_limited: false,
            lost: MSS,
        }),
        ..quiet_ack()
    };
    flow.control.on_ack(&ack, Nanos(flow.now));
    assert_eq!(flow.control.window(), in_flight - MSS, "what is in flight and what was delivered");
    (ack.in_flight, ack.rate) = (in_flight / 2, None);
    flow.control.on_ack(&ack, Nanos(flow.now));
    assert_eq!(flow.control.window(), in_flight - MSS, "no more than that, but no less");
    flow.control.on_recovered(Nanos(flow.now));
    assert_eq!(flow.control.window(), before);
}

#[test]
fn in_ns3_nothing_restarts_from_idleness_before_the_first_probe() {
    for (params, slows) in [(BbrParams::linux(), true), (BbrParams::ns3(), false)] {
        let mut flow = flow(params, PATH, 9);
        let mut seen = false;
        flow.run(5 * SECOND, |flow| {
            if flow.now > 2 * SECOND && !seen && flow.control.pacing_gain() > 1.0 {
                seen = true;
                let mut control = flow.control.clone();
                control.on_sent(MSS, MSS, Nanos(flow.now));
                assert_eq!(control.pacing_rate() < flow.control.pacing_rate(), slows);
            }
        });
        assert!(seen);
        assert_eq!(flow.control.stats().probes, 0);
    }
}

#[test]
fn in_ns3_rates_are_whole_bits_per_second() {
    // Two segments in 1.0003 ms are 15 995 201.44 bit/s. 2.89 times that is 46 226 132.16, and 2.89 times the whole
    // number is 46 226 130.89.
    for (whole_bits, expected) in [(false, 46_226_132), (true, 46_226_130)] {
        let mut control = Bbr::new(BbrParams { whole_bits, ..BbrParams::ns3() }, MSS as u32, 10 * MSS, 1);
        control.on_established(Some(Nanos(40 * MILLISECOND)), Nanos::ZERO);
        let (delivered, interval) = (2 * MSS, Nanos(1_000_300));
        let rate = RateSample {
            delivered,
            prior_delivered: 0,
            amount: delivered,
            interval,
            application_limited: false,
            lost: 0,
        };
        control.on_ack(&Ack { rate: Some(rate), ..quiet_ack() }, Nanos(50 * MILLISECOND));
        assert_eq!(control.pacing_rate().unwrap().bits_per_second(), expected);
    }
}

/// In ns-3 it is the threshold: the window that filled the pipe when startup ended.
#[test]
fn after_recovery_ns3_sets_the_window_to_the_threshold() {
    let mut flow = flow(BbrParams::ns3(), PATH, 10);
    flow.run(3 * SECOND, |_| {});
    let threshold = flow.control.slow_start_threshold();
    assert!((41..=46).contains(&(threshold / MSS)), "{threshold}");
    let loss = Congestion { in_flight: flow.in_flight(), lost: MSS, delivered: 0, next: 0 };
    flow.control.on_congestion(&loss, Nanos(flow.now));
    flow.control.on_recovered(Nanos(flow.now));
    assert_eq!(flow.control.window(), threshold);
}

/// In ns-3 the bytes delivered by the ACK that starts recovery may be sent, at least one segment.
#[test]
fn recovery_starts_with_what_is_in_flight_and_what_was_delivered() {
    let (ns3, linux) = (BbrParams::ns3(), BbrParams::linux());
    for (params, delivered, more) in [(ns3, 0, MSS), (ns3, MSS, MSS), (ns3, 3 * MSS, 3 * MSS), (linux, 3 * MSS, MSS)] {
        let mut flow = flow(params, PATH, 10);
        flow.run(3 * SECOND, |_| {});
        let loss = Congestion { in_flight: 30 * MSS, lost: MSS, delivered, next: 0 };
        flow.control.on_congestion(&loss, Nanos(flow.now));
        assert_eq!(flow.control.window(), 29 * MSS + more);
    }
}

#[test]
fn a_timeout_leaves_a_segment_and_then_the_window_comes_back() {
    for (params, restored) in [(BbrParams::linux(), true), (BbrParams::ns3(), false)] {
        let mut flow = flow(params, PATH, 11);
        flow.run(3 * SECOND, |_| {});
        let before = flow.control.window();
        let loss = Congestion { in_flight: flow.in_flight(), lost: flow.in_flight(), delivered: 0, next: 0 };
        flow.control.on_timeout(&loss, Nanos(flow.now));
        assert_eq!(flow.control.window(), MSS);
        flow.control.on_recovered(Nanos(flow.now));
        assert_eq!(flow.control.window(), if restored { before } else { MSS });
    }
}

#[test]
fn marks_are_ignored() {
    let mut marked = flow(BbrParams::linux(), Path { mark_above: Some(0), ..PATH }, 12);
    let mut plain = flow(BbrParams::linux(), PATH, 12);
    marked.run(5 * SECOND, |_| {});
    plain.run(5 * SECOND, |_| {});
    assert!(marked.control.stats().events.marks > 0);
    assert_eq!(marked.delivered, plain.delivered);
}

/// Linux paces at 99 % of the bandwidth in the phases of gain 1, ns-3 and the draft at all of it.
#[test]
fn pacing_is_the_bandwidth_times_its_gain() {
    for (params, part) in profiles().into_iter().zip([1.0, 1.0, 0.99]) {
        let mut flow = flow(params, PATH, 13);
        flow.run(2 * SECOND, |_| {});
        let mut seen = 0;
        flow.run(4 * SECOND, |flow| {
            let rate = flow.control.bandwidth().unwrap().bits_per_second() as f64;
            let paced = flow.control.pacing_rate().unwrap().bits_per_second() as f64;
            assert!((paced - part * flow.control.pacing_gain() * rate).abs() < 16.0, "{paced} {rate}");
            seen += 1;
        });
        assert!(seen > 1_000);
    }
}

#[test]
fn the_first_rate_is_the_window_over_the_handshakes_round_trip_time() {
    let mut control = Bbr::new(BbrParams::ns3(), MSS as u32, 10 * MSS, 0);
    // 40.7 ms are 40 whole milliseconds.
    control.on_established(Some(Nanos(40_700_000)), Nanos::ZERO);
    let expected = 2.89 * 10_000.0 * 8.0 / 0.040;
    assert!((control.pacing_rate().unwrap().bits_per_second() as f64 - expected).abs() < 1.0);
    let mut control = Bbr::new(BbrParams::linux(), MSS as u32, 10 * MSS, 0);
    control.on_established(Some(Nanos(40_700_000)), Nanos::ZERO);
    let expected = 2.0 / std::f64::consts::LN_2 * 10_000.0 * 8.0 / 0.0407;
    assert!((control.pacing_rate().unwrap().bits_per_second() as f64 - expected).abs() < 1.0);
}
