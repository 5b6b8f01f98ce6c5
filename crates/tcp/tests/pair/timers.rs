//! When SYNs, data and probes are retransmitted. The link takes 10 ms in each direction, so the handshake measures 20
//! ms.

use crate::pair::link::{Direction, Fate, Pair};
use crate::pair::reno::Reno;
use queuescope_tcp::{Flags, LossDetection, Phase, TcpParams};
use queuescope_wire::Nanos;

const MS: u64 = 1_000_000;

fn lost_if(lost: bool) -> Fate {
    Fate { lost, ..Fate::default() }
}

/// The times in milliseconds at which SYNs were sent.
fn syns(pair: &Pair) -> Vec<u64> {
    let syns = pair.passed.iter().filter(|p| p.direction == Direction::Forth && p.segment.flags.contains(Flags::SYN));
    syns.map(|passed| passed.at.0 / MS).collect()
}

#[test]
fn a_lost_syn_is_retransmitted_with_backoff() {
    for (params, expected) in
        [(TcpParams::linux(), [0, 1_000, 3_000, 7_000]), (TcpParams::ns3(), [0, 3_000, 9_000, 21_000])]
    {
        let control = Reno::new(params.mss, 10);
        let mut pair = Pair::new(&params, control, Some(1_000), |direction, number, _, _| {
            lost_if(direction == Direction::Forth && number < 3)
        });
        pair.connect();
        assert!(pair.finish(Nanos(60_000 * MS)));
        assert_eq!(syns(&pair), expected);
        assert_eq!(pair.sender.stats().repeated_syns, 3);
        // Karn: which SYN was answered is unknown, so the first measurement is of data.
        assert_eq!(pair.sender.smoothed_rtt(), Some(Nanos(20 * MS)));
    }
}

#[test]
fn either_side_repairs_a_lost_answer_to_the_syn() {
    let params = TcpParams::linux();
    let plan = |direction, number, _: &_, _| lost_if(direction == Direction::Back && number == 0);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(1_000), plan);
    pair.connect();
    assert!(pair.finish(Nanos(10_000 * MS)));
    assert_eq!(syns(&pair), [0, 1_000]);
    assert!(pair.now < Nanos(1_100 * MS));
}

#[test]
fn a_repeated_answer_to_the_syn_is_answered_or_restarts_the_window() {
    for params in [TcpParams::linux(), TcpParams::ns3()] {
        // Nothing but the SYN arrives until the receiver has repeated its own.
        let first_rto = params.initial_rto;
        let plan = move |direction, number, _: &_, now: Nanos| {
            lost_if(direction == Direction::Forth && number > 0 && now <= first_rto)
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(10_000), plan);
        pair.connect();
        assert!(pair.finish(Nanos(60_000 * MS)));
        let answers = |direction| {
            let empty =
                pair.passed.iter().filter(move |passed| passed.direction == direction && passed.segment.length == 0);
            empty
                .filter(move |passed| passed.segment.flags.contains(Flags::SYN) == (direction == Direction::Back))
                .count()
        };
        assert_eq!(answers(Direction::Back), 2);
        let restarts = &pair.sender.control().restarts;
        if params.repeated_syn_restarts {
            assert_eq!((answers(Direction::Forth), restarts.as_slice()), (1, &[10 * u64::from(params.mss)][..]));
            // And sends nothing: the timer, a nanosecond later, first makes the window one segment.
            assert!(
                pair.data().iter().all(|data| data.0 != 3_020.0)
                    && pair.data().iter().any(|data| data.0 == 3_020.000_001)
            );
        } else {
            assert_eq!((answers(Direction::Forth), restarts.as_slice()), (2, &[][..]));
        }
    }
}

#[test]
fn data_is_retransmitted_after_a_timeout_that_doubles() {
    // RFC 6298 by hand: SRTT 20 ms, RTTVAR 10 ms. ns-3: max(60 ms, 1 s). Linux: 20 ms + max(40 ms, 200 ms).
    let linux = TcpParams { detection: LossDetection::Rfc6675, ..TcpParams::linux() };
    for (params, expected) in [
        (linux, [20.0, 240.0, 680.0, 1_560.0, 3_320.0]),
        (TcpParams::ns3(), [20.0, 1_020.0, 3_020.0, 7_020.0, 15_020.0]),
    ] {
        let plan = |direction, _, segment: &queuescope_tcp::Segment, now: Nanos| {
            lost_if(direction == Direction::Forth && segment.length > 0 && now < Nanos(3_000 * MS))
        };
        let params = TcpParams { first_data_after: Nanos::ZERO, ..params };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(1_000), plan);
        pair.connect();
        pair.finish(Nanos(20_000 * MS));
        let times: Vec<_> = pair.data().iter().map(|data| data.0).collect();
        assert_eq!(times, expected[..times.len()]);
        assert!(pair.sender.is_done() && times.len() >= 3);
        assert_eq!(pair.sender.control().timeouts.len(), times.len() - 1);
        // ns-3 does not count what was in flight at the timeout.
        let grown = if params.loss_end_counts_beyond { 0 } else { 1_000 };
        assert_eq!(pair.sender.control().window, u64::from(params.mss) + grown);
    }
}

#[test]
fn after_a_timeout_everything_is_lost_and_repaired_by_slow_start() {
    let params = TcpParams { first_data_after: Nanos::ZERO, ..TcpParams::ns3() };
    let mss = u64::from(params.mss);
    // The first ten segments are lost.
    let plan = |direction, number, _: &_, _| lost_if(direction == Direction::Forth && (2..12).contains(&number));
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(20 * mss), plan);
    pair.connect();
    pair.run_until(Nanos(1_020 * MS));
    assert_eq!(pair.sender.phase(), Phase::Loss);
    assert_eq!((pair.sender.window(), pair.sender.in_flight()), (mss, mss));
    assert!(pair.finish(Nanos(5_000 * MS)));
    let numbers: Vec<_> = pair.data().iter().map(|data| (data.1 - 1) / mss).collect();
    let expected: Vec<_> = (0..10).chain(0..20).collect();
    assert_eq!(numbers, expected);
    let control = pair.sender.control();
    assert_eq!((control.timeouts.len(), control.congestions.len(), control.recovered.len()), (1, 0, 1));
}

#[test]
fn a_silent_tail_is_probed_with_the_last_segment() {
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    // Five are sent at 20 ms; the last two are lost. ACKs of three at 40 ms: two in flight, PTO = 2 SRTT.
    let plan = |direction, number, _: &_, _| lost_if(direction == Direction::Forth && (5..7).contains(&number));
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(5 * mss), plan);
    pair.connect();
    assert!(pair.finish(Nanos(1_000 * MS)));
    let data: Vec<_> = pair.data().iter().map(|data| (data.0, (data.1 - 1) / mss)).collect();
    // The probe's SACK at 100 ms reveals that the fourth is lost: it was sent earlier by more than the reordering
    // window.
    assert_eq!(data[5..], [(82.0, 4), (102.0, 3)]);
    let stats = pair.sender.stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.recoveries), (1, 0, 1));
}

#[test]
fn a_probe_that_repairs_the_only_loss_is_a_congestion_event() {
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    let plan = |direction, number, _: &_, _| lost_if(direction == Direction::Forth && number == 6);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(5 * mss), plan);
    pair.sender.keep_open();
    pair.connect();
    pair.run_until(Nanos(1_000 * MS));
    // One segment in flight: PTO = 2 SRTT + 200 ms from 40 ms on, but the timeout at 260 ms is earlier, and the probe
    // replaces it.
    let last = *pair.data().last().unwrap();
    assert_eq!(last, (260.0, 1 + 4 * mss));
    assert_eq!((pair.sender.stats().timeouts, pair.sender.control().congestions.len()), (0, 0));
    pair.sender.supply(mss);
    pair.flush();
    pair.run_until(Nanos(2_000 * MS));
    // Acknowledged data beyond the probe proves that the original never arrived.
    assert_eq!(pair.sender.control().congestions.len(), 1);
    assert_eq!(pair.receiver.delivered(), 6 * mss);
}

#[test]
fn an_unnecessary_probe_is_not_a_congestion_event() {
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    // The ACK of the only segment is late by a second: the receiver then reports the duplicate.
    let plan = |direction, number, _: &_, _| Fate {
        later: if direction == Direction::Back && number == 1 { 300 * MS } else { 0 },
        ..Fate::default()
    };
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(mss), plan);
    pair.sender.keep_open();
    pair.connect();
    pair.run_until(Nanos(1_000 * MS));
    pair.sender.supply(mss);
    pair.flush();
    pair.run_until(Nanos(2_000 * MS));
    assert_eq!((pair.sender.stats().tail_probes, pair.receiver.stats().duplicates), (1, 1));
    assert_eq!(pair.sender.control().congestions.len(), 0);
    assert_eq!(pair.receiver.delivered(), 2 * mss);
}

#[test]
fn a_closed_window_is_probed_with_backoff_until_it_opens() {
    for (params, rto) in [(TcpParams::linux(), 220), (TcpParams::ns3(), 1_000)] {
        let mss = u64::from(params.mss);
        let plan = |direction, number, _: &_, now| Fate {
            window: (direction == Direction::Back && number > 0 && now < Nanos(4_000 * MS)).then_some(0),
            ..Fate::default()
        };
        let params = TcpParams { quick_acks: 0, ..params };
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 2), Some(10 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(20_000 * MS)));
        assert_eq!(pair.receiver.delivered(), 10 * mss);
        let probes: Vec<_> = pair
            .passed
            .iter()
            .filter(|passed| {
                passed.direction == Direction::Forth && passed.segment.length == 0 && passed.at > Nanos(20 * MS)
            })
            .map(|passed| passed.at.0 / MS)
            .collect();
        // The window closes at 40 ms; SRTT is still 20 ms, the variation smaller.
        let expected: Vec<_> = (1..=probes.len() as u32).map(|times| 40 + rto * (2_u64.pow(times) - 1)).collect();
        assert_eq!(probes, expected);
        assert!(probes.len() > 1);
        assert_eq!(pair.sender.stats().window_probes, probes.len() as u64);
        assert_eq!(pair.sender.stats().timeouts, 0);
    }
}

#[test]
fn paced_segments_are_sent_one_by_one() {
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    let mut control = Reno::fixed(params.mss, 40);
    control.rate = queuescope_wire::Rate::from_bits_per_second(1_000_000);
    let mut pair = Pair::new(&params, control, Some(5 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    assert!(pair.finish(Nanos(5_000 * MS)));
    let times: Vec<_> = pair.data().iter().map(|data| data.0).collect();
    // 1 448 bytes at 1 Mb/s are 11.584 ms.
    let expected: Vec<_> = (0..5).map(|number| f64::from(20_000_000 + number * 11_584_000) / 1e6).collect();
    assert_eq!(times, expected);
}

#[test]
fn in_ns3_the_first_data_waits_a_step_and_pacing_intervals_are_rounded_to_the_nearest_nanosecond() {
    for params in [TcpParams::ns3(), TcpParams { quick_acks: 1, ..TcpParams::linux() }] {
        let is_ns3 = params.paces_to_nearest;
        let mss = u64::from(params.mss);
        let mut control = Reno::fixed(params.mss, 12);
        control.rate = queuescope_wire::Rate::from_bits_per_second(6_000_000);
        let mut pair = Pair::new(&params, control, Some(12 * mss), |_, _, _, _| Fate::default());
        pair.connect();
        assert!(pair.finish(Nanos(5_000 * MS)));
        let forth = pair.passed.iter().filter(|passed| passed.segment.length > 0);
        let times: Vec<_> = forth.map(|passed| passed.at.0).collect();
        // 1 448 bytes take 1 930 666.67 ns. ns-3 does not pace the initial window, but what follows its last segment.
        let (first, gap) = if is_ns3 { (20 * MS + 1, 1_930_667) } else { (20 * MS, 1_930_666) };
        let unpaced = if is_ns3 { 9 } else { 0 };
        let expected: Vec<_> = (0..12_u64).map(|number| first + gap * number.saturating_sub(unpaced)).collect();
        assert_eq!(times, expected);
    }
}

#[test]
fn in_ns3_a_pacing_timer_that_expires_with_the_retransmission_timer_comes_first_if_it_was_set_first() {
    let params = TcpParams {
        first_data_after: Nanos::ZERO,
        pace_initial_window: true,
        delayed_ack_count: 1,
        ..TcpParams::ns3()
    };
    let mut control = Reno::fixed(params.mss, 10);
    // A segment takes 1 029 688 889 ns, which is the round trip plus a second: the timer runs from the ACK on, with
    // nothing in flight.
    control.rate = queuescope_wire::Rate::from_bits_per_second(11_250);
    let plan = |direction, _, _: &_, _| Fate { later: u64::from(direction == Direction::Back), ..Fate::default() };
    let mut pair = Pair::new(&params, control, None, plan);
    pair.delay = 14_844_444;
    pair.connect();
    pair.run_until(Nanos(1_100 * MS));
    let sent: Vec<_> = pair.data().into_iter().map(|(at, seq)| (at, seq / u64::from(params.mss))).collect();
    let (first, second) = (29.688_889, 1_059.377_778);
    assert_eq!(sent, [(first, 0), (second, 1), (second, 1)]);
    assert_eq!(pair.sender.stats().timeouts, 1);
}

#[test]
fn the_window_determines_a_pacing_rate_if_the_profile_paces() {
    let pacing = Some(queuescope_tcp::Pacing::default());
    let params = TcpParams { pacing, quick_acks: 0, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 10), Some(10 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    assert!(pair.finish(Nanos(5_000 * MS)));
    let times: Vec<_> = pair.data().iter().map(|data| data.0).collect();
    // 200 % of ten segments in 20 ms: one per millisecond.
    let expected: Vec<_> = (20..30).map(f64::from).collect();
    assert_eq!(times, expected);
    // ns-3 does not pace the initial window.
    let params = TcpParams { pace_initial_window: false, ..params };
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 10), Some(10 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    assert!(pair.finish(Nanos(5_000 * MS)));
    assert!(pair.data().iter().all(|data| data.0 == 20.0));
}
