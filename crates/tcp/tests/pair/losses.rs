//! How losses are found and repaired, by hand. Each direction takes 10 ms: data is sent at 20 ms and arrives at 30 ms.

use crate::pair::link::{Direction, Fate, Pair};
use crate::pair::reno::Reno;
use queuescope_tcp::{Ack, LossDetection, Phase, ReductionBound, Rescue, TcpParams};
use queuescope_wire::{Nanos, Rate};

const MS: u64 = 1_000_000;

/// Numbers of the segments that were sent, from the `from`-th on, with their times in milliseconds.
fn left(pair: &Pair, from: usize) -> Vec<(u64, u64)> {
    let mss = u64::from(TcpParams::linux().mss);
    pair.data().iter().skip(from).map(|data| (data.0 as u64, (data.1 - 1) / mss)).collect()
}

/// Drops the data segments with these numbers, counted in the order in which they are sent.
fn dropping(numbers: &'static [u64]) -> impl FnMut(Direction, u64, &queuescope_tcp::Segment, Nanos) -> Fate {
    let mut count = 0;
    move |direction, _, segment, _| {
        let is_data = direction == Direction::Forth && segment.length > 0;
        let number = count;
        count += u64::from(is_data);
        Fate { lost: is_data && numbers.contains(&number), ..Fate::default() }
    }
}

fn rfc6675() -> TcpParams {
    TcpParams {
        detection: LossDetection::Rfc6675,
        reduction: Some(ReductionBound::SlowStart),
        rescue: Rescue::UnconfirmedAndLast,
        quick_acks: u32::MAX,
        ..TcpParams::linux()
    }
}

#[test]
fn the_third_arrival_above_retransmits_the_first_and_the_window_falls_to_half() {
    let params = rfc6675();
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 20), Some(60 * mss), dropping(&[0]));
    pair.connect();
    pair.run_until(Nanos(40 * MS));
    // Of the 19 ACKs, each of the first two allows one new segment (limited transmit), and the third retransmits the
    // first. Then every other one allows a new segment (ceil(delivered / 2) from 20 that were in flight, ssthresh 9.5).
    let sent = left(&pair, 20);
    assert_eq!(sent[..5], [(40, 20), (40, 21), (40, 0), (40, 22), (40, 23)]);
    assert_eq!(pair.sender.phase(), Phase::Recovery);
    let control = pair.sender.control();
    assert_eq!(control.congestions.len(), 1);
    // 20 and two more were sent; three arrived; the first is lost.
    let (_, congestion) = control.congestions[0];
    assert_eq!((congestion.in_flight, congestion.lost), (19 * mss, mss));
    let threshold = control.threshold;
    assert_eq!(threshold, 19 * mss / 2);
    // At the end of this round at most the threshold is in flight.
    assert!(pair.sender.in_flight() <= threshold && pair.sender.in_flight() + 2 * mss > threshold);
    assert!(pair.finish(Nanos(1_000 * MS)));
    assert_eq!((pair.sender.stats().repeated, pair.sender.stats().timeouts), (1, 0));
    assert_eq!(pair.sender.control().recovered.len(), 1);
}

#[test]
fn several_losses_in_a_window_are_repaired_in_one_round_trip_and_one_reduction() {
    for params in [rfc6675(), TcpParams::linux(), TcpParams::ns3()] {
        let mss = u64::from(params.mss);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(40 * mss), dropping(&[3, 7, 8, 12]));
        pair.connect();
        assert!(pair.finish(Nanos(1_000 * MS)));
        let repeated: Vec<_> = left(&pair, 20).into_iter().filter(|sent| sent.1 < 20).collect();
        assert_eq!(repeated, [(40, 3), (40, 7), (40, 8), (40, 12)]);
        let stats = pair.sender.stats();
        assert_eq!((stats.recoveries, stats.timeouts, stats.lost), (1, 0, 4 * mss));
        assert_eq!(pair.receiver.stats().duplicates, 0);
    }
}

#[test]
fn without_selective_acknowledgements_one_hole_is_repaired_per_round_trip() {
    // RFC 6582: the partial ACK of each repair retransmits the next hole.
    for params in [TcpParams { sack: false, ..rfc6675() }, TcpParams { sack: false, ..TcpParams::ns3() }] {
        let mss = u64::from(params.mss);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(40 * mss), dropping(&[3, 7, 12]));
        pair.connect();
        assert!(pair.finish(Nanos(3_000 * MS)));
        let repeated: Vec<_> = left(&pair, 20).into_iter().filter(|sent| sent.1 < 20).collect();
        assert_eq!(repeated, [(40, 3), (60, 7), (80, 12)]);
        let stats = pair.sender.stats();
        assert_eq!((stats.recoveries, stats.timeouts), (1, 0));
        assert_eq!(pair.receiver.stats().duplicates, 0);
    }
}

#[test]
fn limited_transmit_allows_new_data_for_the_first_two_duplicates() {
    for limited_transmit in [true, false] {
        let params = TcpParams { limited_transmit, ..rfc6675() };
        let mss = u64::from(params.mss);
        // The fourth of four is late: only two duplicates arrive.
        let plan = |direction, number, _: &_, _| Fate {
            lost: direction == Direction::Forth && number == 2,
            later: if direction == Direction::Forth && number == 5 { 100 * MS } else { 0 },
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 4), Some(20 * mss), plan);
        pair.connect();
        pair.run_until(Nanos(45 * MS));
        let expected: &[_] = if limited_transmit { &[(40, 4), (40, 5)] } else { &[] };
        assert_eq!(left(&pair, 4), expected);
        assert_eq!(pair.sender.phase(), Phase::Open);
    }
}

#[test]
fn only_time_finds_a_lost_retransmission() {
    // Segment 3 is lost, and so is its retransmission, the 24th segment sent (20, then new ones for the duplicates).
    for (params, timeouts) in [(TcpParams::linux(), 0), (rfc6675(), 1), (TcpParams::ns3(), 1)] {
        let mss = u64::from(params.mss);
        let mut copies = 0;
        let plan = move |direction, _, segment: &queuescope_tcp::Segment, _| {
            let it = direction == Direction::Forth && segment.seq == 1 + 3 * mss;
            copies += u64::from(it);
            Fate { lost: it && copies <= 2, ..Fate::default() }
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(200 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(10_000 * MS)));
        assert_eq!(pair.sender.stats().timeouts, timeouts);
        let copies: Vec<_> = left(&pair, 0).into_iter().filter(|sent| sent.1 == 3).map(|sent| sent.0).collect();
        assert_eq!(copies.len(), 3);
        assert_eq!(copies[..2], [20, 40]);
        assert_eq!(copies[2] <= 80, timeouts == 0);
    }
}

#[test]
fn a_little_reordering_causes_no_retransmission_by_time() {
    // The first of ten is 3 ms late: within a quarter of the least round-trip time, 5 ms. Two arrive before it.
    let late = |direction, number, _: &_, _| Fate {
        later: if direction == Direction::Forth && number == 2 { 3 * MS } else { 0 },
        ..Fate::default()
    };
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 3), Some(30 * mss), late);
    pair.connect();
    assert!(pair.finish(Nanos(1_000 * MS)));
    assert_eq!((pair.sender.stats().repeated, pair.sender.stats().recoveries), (0, 0));
    // By 9 ms: it is lost 5 ms after the arrival of the first segment that was sent after it.
    let late = |direction, number, _: &_, _| Fate {
        later: if direction == Direction::Forth && number == 2 { 9 * MS } else { 0 },
        ..Fate::default()
    };
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 3), Some(30 * mss), late);
    pair.connect();
    pair.run_until(Nanos(44 * MS));
    assert_eq!(pair.sender.stats().recoveries, 0);
    pair.run_until(Nanos(45 * MS));
    assert_eq!((pair.sender.stats().recoveries, pair.sender.stats().repeated), (1, 1));
    assert!(pair.finish(Nanos(1_000 * MS)));
    assert_eq!(pair.receiver.stats().duplicates, 1);
}

#[test]
fn once_reordering_was_seen_three_arrivals_prove_nothing() {
    // Every tenth segment is 4 ms late, and ten arrive before it. The first one is retransmitted needlessly, the others
    // never.
    let params = TcpParams::linux();
    let mss = u64::from(params.mss);
    let plan = |direction, number: u64, _: &_, _| Fate {
        later: if direction == Direction::Forth && number.is_multiple_of(10) { 4 * MS } else { 0 },
        ..Fate::default()
    };
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 20), Some(400 * mss), plan);
    pair.connect();
    assert!(pair.finish(Nanos(2_000 * MS)));
    assert!(pair.sender.stats().recoveries <= 2, "{:?}", pair.sender.stats());
    // If arrivals are counted, each of them is.
    let mut pair = Pair::new(&rfc6675(), Reno::fixed(params.mss, 20), Some(400 * mss), plan);
    pair.connect();
    assert!(pair.finish(Nanos(2_000 * MS)));
    assert!(pair.sender.stats().recoveries > 10);
}

#[test]
fn a_partial_ack_restarts_the_timer_once_only_in_ns3() {
    // RFC 6582 section 4, without selective acknowledgements: holes every 20 ms, more than the timeout of 1 s covers.
    let mut timeouts = Vec::new();
    for params in [TcpParams::ns3(), TcpParams { partial_ack_restarts_timer: true, ..TcpParams::ns3() }] {
        let params = TcpParams { sack: false, ..params };
        let mss = u64::from(params.mss);
        let plan = |direction, number: u64, _: &_, _| Fate {
            lost: direction == Direction::Forth && (2..202).contains(&number) && number.is_multiple_of(3),
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 200), Some(200 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(20_000 * MS)));
        timeouts.push(pair.sender.stats().timeouts);
    }
    assert_eq!(timeouts, [1, 0]);
}

#[test]
fn a_loss_while_the_window_is_reduced_is_an_event_if_the_profile_says_so() {
    for (params, recoveries) in [(TcpParams::linux(), 1), (TcpParams::ns3(), 0)] {
        let params = TcpParams { ecn: true, ..params };
        let mss = u64::from(params.mss);
        let plan = |direction, number, _: &_, _| Fate {
            marked: direction == Direction::Forth && number == 2,
            lost: direction == Direction::Forth && number == 8,
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(40 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(1_000 * MS)));
        let stats = pair.sender.stats();
        assert_eq!((stats.reductions, stats.recoveries, stats.repeated, stats.timeouts), (1, recoveries, 1, 0));
    }
}

#[test]
fn the_number_after_the_last_sent_segment_is_below_the_next_after_a_retransmission() {
    let params = TcpParams::ns3();
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(60 * mss), dropping(&[3, 7, 12]));
    pair.connect();
    assert!(pair.finish(Nanos(2_000 * MS)));
    let in_recovery = pair.sender.control().acks.iter().filter(|ack| ack.phase == Phase::Recovery);
    let mut behind: Vec<_> = in_recovery.map(|ack| ((ack.left_last - 1) / mss, (ack.next - 1) / mss)).collect();
    behind.dedup();
    // In recovery each ACK counts for one segment, and so does each one before, since none advanced. The first to
    // advance again counts for twelve.
    let acks = &pair.sender.control().acks;
    assert!(acks.iter().all(|ack| ack.phase != Phase::Recovery || ack.counted == Some(mss)));
    let end = acks.iter().position(|ack| ack.unacknowledged > 12 * mss + 1 && ack.phase == Phase::Open).unwrap();
    assert_eq!(acks[end].counted, Some(acks[end].acked));
    // 3 is sent past the window with the ACK that starts recovery: where it starts counts. Then 7, 28, 12 and new data
    // are sent.
    assert_eq!(behind[..6], [(3, 28), (8, 28), (29, 29), (13, 29), (30, 30), (31, 31)]);
    let leaves: Vec<_> = left(&pair, 27).iter().map(|sent| sent.1).take(7).collect();
    assert_eq!(leaves, [27, 3, 7, 28, 12, 29, 30]);
}

#[test]
fn a_timeout_in_recovery_reduces_the_remaining_window_if_the_profile_says_so() {
    for (params, holds) in [(TcpParams::ns3(), true), (rfc6675(), false)] {
        let mss = u64::from(params.mss);
        // The second to the fifth arrive, and nothing else: few ACKs for a reduction from twenty to ten.
        let plan = |direction, number: u64, _: &_, _| Fate {
            lost: direction == Direction::Forth && number >= 2 && !(3..7).contains(&number),
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(60 * mss), plan);
        pair.connect();
        while pair.sender.phase() != Phase::Recovery {
            assert!(pair.step());
        }
        while pair.sender.stats().timeouts == 0 {
            assert!(pair.sender.control().held.is_empty());
            let (window, after_loss) = (pair.sender.window(), pair.sender.control().window);
            assert!(pair.step());
            if pair.sender.stats().timeouts > 0 {
                assert_eq!(pair.sender.control().held, if holds { vec![window] } else { vec![] });
                assert_ne!(window, after_loss);
            }
        }
    }
}

/// A segment is late. The third ACK that reports others starts recovery, and the late segment fills the hole while much
/// that was sent before is in flight. So its ACK is a partial one, and sends a segment past window and pacing; it was
/// the last to arrive.
fn late(params: &TcpParams, rate: Option<Rate>) -> Pair {
    // No segment arrives at an instant at which another is sent.
    let plan = |direction, number, _: &_, _| Fate {
        later: MS / 4 * if direction == Direction::Back { 3 } else { 1 }
            + if direction == Direction::Forth && number == 5 { 6 * MS } else { 0 },
        ..Fate::default()
    };
    let mut control = Reno::fixed(params.mss, 40);
    control.rate = rate;
    let mut pair = Pair::new(params, control, None, plan);
    pair.byte_time = if rate.is_none() { 800 } else { 0 };
    pair.connect();
    let is_partial = |ack: &Ack| ack.phase == Phase::Recovery && ack.acked > 0;
    while !pair.sender.control().acks.last().is_some_and(is_partial) {
        assert!(pair.step());
    }
    pair
}

#[test]
fn what_a_partial_ack_sends_is_in_flight_for_bbr_once_the_application_refills() {
    // Each ACK makes room for 512 bytes more, and few ACKs for 2 MiB, of which the buffer holds three.
    let counted = [512, 2 << 20].map(|application_writes| {
        let params = TcpParams { application_writes, ..TcpParams::ns3() };
        let pair = late(&params, None);
        let ack = pair.sender.control().acks.last().unwrap();
        (ack.in_flight + ack.delivered - ack.in_flight_before) / u64::from(params.mss)
    });
    assert_eq!(counted, [1, 0]);
}

#[test]
fn a_segment_sent_past_the_pace_does_not_take_a_turn_at_the_same_instant() {
    // One segment per millisecond, and ACKs as they return: each arrives at the instant at which the next segment may
    // be sent.
    let params =
        TcpParams { first_data_after: Nanos::ZERO, pace_initial_window: true, reduction: None, ..TcpParams::ns3() };
    let mut pair = late(&params, Rate::from_bits_per_second(8_000 * u64::from(params.mss)));
    let now = pair.now.0 as f64 / 1e6;
    assert_eq!(now.fract(), 0.0);
    pair.run_until(Nanos(pair.now.0 + MS / 2));
    let times: Vec<_> = pair.data().iter().map(|data| data.0 - now).filter(|at| *at > -3.0).collect();
    assert_eq!(times, [-2.0, -1.0, 0.0, 0.0]);
}

#[test]
fn new_data_that_a_partial_ack_sends_is_in_flight_for_it_if_the_application_refills() {
    // When the partial ACK for the first hole arrives, the second is not known to be lost, so it sends new data past
    // the window. Every ACK makes room for 512 bytes, and no ACK for a megabyte.
    let in_flight = [2 << 20, 512, 1 << 20].map(|application_writes| {
        let params = TcpParams { application_writes, ..TcpParams::ns3() };
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 20), None, dropping(&[3, 24]));
        pair.connect();
        pair.run_until(Nanos(100 * MS));
        let acks = &pair.sender.control().acks;
        let partial = acks.iter().find(|ack| ack.phase == Phase::Recovery && ack.acked > 0).unwrap();
        assert_eq!(partial.unacknowledged, 24 * u64::from(params.mss) + 1);
        partial.in_flight
    });
    let mss = u64::from(TcpParams::ns3().mss);
    assert_eq!(in_flight, [in_flight[0], in_flight[0] + mss, in_flight[0]]);
}

#[test]
fn an_application_that_has_handed_over_everything_fills_no_buffer() {
    let params = TcpParams::ns3();
    let mss = u64::from(params.mss);
    let in_flight = [40, 6_000].map(|segments| {
        let plan = dropping(&[3, 24]);
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 20), Some(segments * mss), plan);
        pair.connect();
        pair.run_until(Nanos(100 * MS));
        let acks = &pair.sender.control().acks;
        acks.iter().find(|ack| ack.phase == Phase::Recovery && ack.acked > 0).unwrap().in_flight
    });
    assert_eq!(in_flight[0] + mss, in_flight[1]);
}

#[test]
fn a_control_that_rules_recovery_receives_a_repeated_ack_and_the_rate_before() {
    for rules_recovery in [false, true] {
        let params = TcpParams::ns3();
        let mss = u64::from(params.mss);
        // The last ACK arrives again when nothing is in flight.
        let plan = |direction, number, _: &_, _| Fate {
            again_after: (direction == Direction::Back && number == 6).then_some(100 * MS),
            ..Fate::default()
        };
        let control = Reno { rules_recovery, ..Reno::fixed(params.mss, 10) };
        let mut pair = Pair::new(&params, control, Some(10 * mss), plan);
        pair.connect();
        pair.run_until(Nanos(400 * MS));
        assert!(pair.sender.is_done());
        let acks = &pair.sender.control().acks;
        let twice: Vec<_> = (0..acks.len()).filter(|&ack| acks[ack].acked == 0).collect();
        assert_eq!(twice, if rules_recovery { vec![acks.len() - 1] } else { vec![] });
        for ack in twice {
            assert_eq!((acks[ack].delivered, acks[ack].counted), (0, None));
            assert!(acks[ack].rate.is_some());
            assert_eq!(acks[ack].rate, acks[ack - 1].rate);
        }
    }
}
