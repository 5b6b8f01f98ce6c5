//! ECN: negotiation, classic echoes and CWR, DCTCP's counted echoes.

use crate::pair::link::{Direction, Fate, Pair, Passed};
use crate::pair::reno::Reno;
use proptest::prelude::*;
use queuescope_tcp::{EcnUse, Flags, Phase, Receiver, Segment, TcpParams};
use queuescope_wire::{Ecn, Nanos};

const MS: u64 = 1_000_000;

fn mark_if(marked: bool) -> Fate {
    Fate { marked, ..Fate::default() }
}

fn going(pair: &Pair, direction: Direction) -> Vec<&Passed> {
    pair.passed.iter().filter(|passed| passed.direction == direction).collect()
}

#[test]
fn ecn_is_negotiated_in_the_handshake_or_not_used() {
    for receiver_agrees in [true, false] {
        let params = TcpParams { ecn: true, ..TcpParams::linux() };
        let mss = u64::from(params.mss);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(5 * mss), |_, _, _, _| mark_if(true));
        pair.receiver = Receiver::new(&TcpParams { ecn: receiver_agrees, ..params }, EcnUse::Classic);
        pair.connect();
        assert!(pair.finish(Nanos(1_000 * MS)));
        let (forth, back) = (going(&pair, Direction::Forth), going(&pair, Direction::Back));
        assert!(forth[0].segment.flags.contains(Flags::SYN | Flags::ECE | Flags::CWR));
        assert_eq!(back[0].segment.flags.contains(Flags::ECE), receiver_agrees);
        let capable = if receiver_agrees { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(forth.iter().filter(|passed| passed.segment.length > 0).all(|passed| passed.ecn == capable));
        // SYNs and ACKs are not ECN-capable (RFC 3168 section 6.1.1 and 6.1.4).
        assert!(forth.iter().filter(|passed| passed.segment.length == 0).all(|passed| passed.ecn == Ecn::NotEct));
        assert!(back.iter().all(|passed| passed.ecn == Ecn::NotEct));
        assert_eq!(pair.receiver.stats().marked > 0, receiver_agrees);
    }
}

#[test]
fn a_mark_is_echoed_until_the_sender_reports_its_reduction() {
    for params in [TcpParams::linux(), TcpParams::ns3()] {
        let params = TcpParams { ecn: true, quick_acks: 0, first_data_after: Nanos::ZERO, ..params };
        let mss = u64::from(params.mss);
        // Number 3 in the forward direction (after SYN and ACK, 0 and 1) is the second data segment.
        let plan = |direction, number, _: &Segment, _| mark_if(direction == Direction::Forth && number == 3);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(60 * mss), plan);
        pair.connect();
        // At 40 ms the ACKs of the first ten arrive.
        pair.run_until(Nanos(40 * MS));
        assert_eq!(pair.sender.phase(), Phase::Reduced);
        assert!(pair.finish(Nanos(2_000 * MS)));
        let control = pair.sender.control();
        assert_eq!(control.congestions.len(), 1);
        let (at, congestion) = control.congestions[0];
        assert_eq!((at, congestion.lost, congestion.in_flight), (Nanos(40 * MS), 0, 8 * mss));
        assert_eq!((pair.sender.stats().reductions, pair.sender.stats().repeated), (1, 0));
        let cwr: Vec<_> =
            going(&pair, Direction::Forth).into_iter().filter(|p| p.segment.flags.contains(Flags::CWR)).collect();
        // One on the SYN, and one on the first new segment.
        assert_eq!(cwr.len(), 2);
        assert_eq!(cwr[1].at, Nanos(40 * MS));
        assert_eq!(cwr[1].segment.seq, 1 + 10 * mss);
        let echoed: Vec<_> = going(&pair, Direction::Back)
            .into_iter()
            .skip(1)
            .filter(|p| p.segment.flags.contains(Flags::ECE))
            .map(|p| p.at.0 / MS)
            .collect();
        // All ACKs of the first window, and none after CWR arrived (50 ms).
        assert_eq!(echoed, [30; 5]);
    }
}

#[test]
fn when_a_reduction_ends_the_window_is_the_threshold() {
    let params = TcpParams { ecn: true, quick_acks: 0, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let plan = |direction, number, _: &Segment, _| mark_if(direction == Direction::Forth && number == 21);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(200 * mss), plan);
    pair.byte_time = 100;
    pair.connect();
    let mut most = 0;
    while pair.sender.phase() != Phase::Reduced {
        pair.step();
    }
    let mut least = u64::MAX;
    while pair.sender.phase() == Phase::Reduced {
        most = most.max(pair.sender.in_flight());
        least = least.min(pair.sender.in_flight());
        pair.step();
    }
    // It falls gradually from what was in flight to the threshold (RFC 6937), not at once.
    let threshold = pair.sender.control().threshold;
    assert!(least + 2 * mss >= threshold && least <= threshold, "{least} of {threshold}");
    assert!(most > 3 * threshold / 2);
    assert_eq!(pair.sender.control().recovered.len(), 1);
}

#[test]
fn in_ns3_an_ack_that_would_end_recovery_and_echoes_a_mark_reduces_what_is_left() {
    let params = TcpParams { ecn: true, quick_acks: 0, ..TcpParams::ns3() };
    let mss = u64::from(params.mss);
    // The second segment is lost, and its retransmission is marked: its ACK covers everything sent by then.
    let mut copies = 0;
    let plan = move |direction, _, segment: &Segment, _| {
        let is_second = direction == Direction::Forth && segment.seq == 1 + mss && segment.length > 0;
        copies += u64::from(is_second);
        Fate { lost: is_second && copies == 1, marked: is_second && copies == 2, ..Fate::default() }
    };
    let control = Reno { ecn: EcnUse::Counted, ..Reno::new(params.mss, 10) };
    let mut pair = Pair::new(&params, control, Some(60 * mss), plan);
    pair.connect();
    let mut window = 0;
    while pair.sender.stats().reductions == 0 {
        assert_eq!(pair.sender.control().held, []);
        window = pair.sender.window();
        assert!(pair.step());
    }
    assert_eq!((pair.sender.stats().recoveries, pair.sender.phase()), (1, Phase::Reduced));
    assert_eq!((pair.sender.control().held.as_slice(), pair.sender.control().recovered.len()), (&[window][..], 0));
    assert!(pair.finish(Nanos(2_000 * MS)));
}

#[test]
fn in_ns3_partial_acks_do_not_restart_the_timer_after_a_mark_turned_recovery_into_a_reduction() {
    for marked in [false, true] {
        let params = TcpParams { ecn: true, quick_acks: 0, ..TcpParams::ns3() };
        let mss = u64::from(params.mss);
        // Twice, two segments of a window are lost. The last retransmission of the first time is marked or not.
        let mut copies = [0; 4];
        let plan = move |direction, _, segment: &Segment, _| {
            let number = (segment.seq.max(1) - 1) / mss;
            let of_interest = [5, 7, 100, 102].iter().position(|lost| *lost == number);
            let Some(which) = of_interest.filter(|_| direction == Direction::Forth && segment.length > 0) else {
                return Fate::default();
            };
            copies[which] += 1;
            Fate { lost: copies[which] == 1, marked: marked && which == 1 && copies[which] == 2, ..Fate::default() }
        };
        let control = Reno { ecn: EcnUse::Counted, ..Reno::fixed(params.mss, 20) };
        let mut pair = Pair::new(&params, control, Some(300 * mss), plan);
        pair.connect();
        let mut partial = 0;
        while partial == 0 || pair.sender.stats().recoveries < 2 {
            let (before, acks) = (pair.sender.next_timer(), pair.sender.control().acks.len());
            assert!(pair.step());
            let new = &pair.sender.control().acks[acks..];
            if new.iter().any(|ack| ack.phase == Phase::Recovery && ack.acked > 0) {
                partial += u64::from(pair.sender.stats().recoveries == 2);
                let restarts = pair.sender.next_timer() > before;
                assert_eq!(restarts, partial == 0 || !marked);
            }
        }
        assert_eq!((pair.sender.stats().reductions, pair.sender.stats().timeouts), (u64::from(marked), 0));
    }
}

#[test]
fn in_ns3_the_ack_that_ends_a_reduction_may_be_the_first_of_three_that_report_a_loss() {
    let mut seen = 0;
    // One of these is the segment after the one whose ACK ends the reduction.
    for lost in 10..20 {
        let params = TcpParams { ecn: true, quick_acks: 0, ..TcpParams::ns3() };
        let mss = u64::from(params.mss);
        let mut copies = 0;
        let plan = move |direction, number, segment: &Segment, _| {
            let is_it = direction == Direction::Forth && segment.length > 0 && segment.seq == 1 + lost * mss;
            copies += u64::from(is_it);
            Fate { lost: is_it && copies == 1, marked: direction == Direction::Forth && number == 3, ..Fate::default() }
        };
        let control = Reno { ecn: EcnUse::Counted, ..Reno::fixed(params.mss, 12) };
        let mut pair = Pair::new(&params, control, Some(60 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(3_000 * MS)));
        let acks = &pair.sender.control().acks;
        let end = acks.windows(2).position(|two| two[0].phase == Phase::Reduced && two[1].phase == Phase::Disorder);
        if let Some(end) = end {
            assert!(acks[end + 1].acked > 0);
            let phases: Vec<_> = acks[end + 1..end + 4].iter().map(|ack| ack.phase).collect();
            assert_eq!(phases, [Phase::Disorder, Phase::Disorder, Phase::Recovery]);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn a_reduction_for_a_mark_ends_with_nothing_in_flight_except_in_ns3() {
    for (params, outlasts) in [(TcpParams::linux(), false), (TcpParams::ns3(), true)] {
        let params = TcpParams { ecn: true, quick_acks: 0, ..params };
        let mss = u64::from(params.mss);
        let plan = |direction, number, _: &Segment, _| mark_if(direction == Direction::Forth && number == 3);
        // Each mark is echoed once: there is no second reduction.
        let control = Reno { ecn: EcnUse::Counted, ..Reno::new(params.mss, 10) };
        let mut pair = Pair::new(&params, control, Some(10 * mss), plan);
        pair.sender.keep_open();
        pair.connect();
        pair.run_until(Nanos(500 * MS));
        assert_eq!((pair.sender.in_flight(), pair.sender.stats().reductions), (0, 1));
        assert_eq!(pair.sender.phase(), if outlasts { Phase::Reduced } else { Phase::Open });
        // The data acknowledged next was sent later.
        pair.sender.supply(2 * mss);
        pair.flush();
        pair.run_until(Nanos(1_000 * MS));
        assert_eq!((pair.sender.in_flight(), pair.sender.phase()), (0, Phase::Open));
    }
}

/// An ACK caused by a change of the mark may acknowledge nothing. ns-3 counts it as a segment nevertheless; here as
/// unmarked, because it has no echo. Each line: the acknowledged number, the bytes of this ACK, the bytes that count,
/// and those of them that are marked; in segments.
#[test]
fn only_in_ns3_duplicates_count_for_the_marked_part() {
    for (params, expected) in [
        (
            TcpParams::ns3(),
            &[(4, 2, 2, 2), (4, 0, 1, 0), (5, 1, 1, 1), (12, 0, 1, 0), (15, 3, 3, 3), (15, 0, 1, 0), (17, 1, 1, 1)][..],
        ),
        (TcpParams::linux(), &[(4, 2, 2, 2), (6, 1, 1, 1), (15, 2, 2, 2), (16, 1, 1, 1), (18, 1, 1, 1)][..]),
    ] {
        let params = TcpParams { ecn: true, quick_acks: 0, ..params };
        let mss = u64::from(params.mss);
        // Data 2, 3 and 5 of the first window of ten; 13 to 15 and 17 of the second.
        let plan = |direction, number, _: &Segment, _| {
            mark_if(direction == Direction::Forth && [4, 5, 7, 15, 16, 17, 19].contains(&number))
        };
        let control = Reno { ecn: EcnUse::Counted, ..Reno::fixed(params.mss, 10) };
        let mut pair = Pair::new(&params, control, Some(40 * mss), plan);
        pair.byte_time = 100;
        pair.connect();
        assert!(pair.finish(Nanos(2_000 * MS)));
        let counted: Vec<_> = pair
            .sender
            .control()
            .acks
            .iter()
            .filter(|ack| ack.acked == 0 || ack.marked > 0)
            .map(|ack| (ack.unacknowledged / mss, ack.acked / mss, ack.counted.unwrap_or(0) / mss, ack.marked / mss))
            .collect();
        assert_eq!(counted, expected);
    }
}

/// In ns-3 an ACK in recovery that does not end it counts as one segment, whatever it acknowledges.
#[test]
fn only_in_ns3_an_ack_that_advances_in_recovery_counts_as_a_segment() {
    for (params, counts_one) in [(TcpParams::ns3(), true), (TcpParams::linux(), false)] {
        let params = TcpParams { ecn: true, quick_acks: 0, ..params };
        let mss = u64::from(params.mss);
        // Data 2 and 6 of the first window are lost: the repair of the first acknowledges four segments.
        let lost = |direction, number, _: &Segment, _| Fate {
            lost: direction == Direction::Forth && [4, 8].contains(&number),
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::fixed(params.mss, 10), Some(40 * mss), lost);
        pair.byte_time = 100;
        pair.connect();
        assert!(pair.finish(Nanos(2_000 * MS)));
        let acks = &pair.sender.control().acks;
        let partial = acks.iter().find(|ack| ack.acked == 4 * mss && ack.phase == Phase::Recovery).unwrap();
        assert_eq!(partial.counted, Some(if counts_one { mss } else { 4 * mss }));
        assert_eq!(acks.iter().all(|ack| ack.counted == Some(ack.acked)), !counts_one);
    }
}

#[test]
fn each_change_between_marked_and_unmarked_triggers_an_ack_of_everything_before() {
    // RFC 8257 figure 1, delayed ACKs of two: data 0 and 1 unmarked, 2 marked, 3 marked, 4 marked, 5 unmarked.
    let params = TcpParams { ecn: true, quick_acks: 0, counted_echo_lags: false, ..TcpParams::ns3() };
    let mut receiver = Receiver::new(&params, EcnUse::Counted);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ..Segment::default() };
    receiver.receive(&syn, Ecn::Ect0, Nanos(0));
    assert_eq!(receiver.transmit(Nanos(0)).map(|(_, ecn)| ecn), Some(Ecn::Ect0));
    let mut answers = |number: u64, marked| {
        let segment =
            Segment { seq: 1 + 1_000 * number, ack: 1, length: 1_000, flags: Flags::ACK, ..Segment::default() };
        receiver.receive(&segment, if marked { Ecn::Ce } else { Ecn::Ect0 }, Nanos(0));
        let mut answers = Vec::new();
        while let Some((segment, _)) = receiver.transmit(Nanos(0)) {
            answers.push(((segment.ack - 1) / 1_000, segment.flags.contains(Flags::ECE)));
        }
        answers
    };
    assert_eq!(answers(0, false), []);
    assert_eq!(answers(1, false), [(2, false)]);
    // Nothing waits: there is no ACK for the change, and the count continues.
    assert_eq!(answers(2, true), []);
    assert_eq!(answers(3, true), [(4, true)]);
    assert_eq!(answers(4, true), []);
    assert_eq!(answers(5, false), [(5, true)]);
    assert_eq!(answers(6, false), [(7, false)]);
    assert_eq!(answers(7, false), []);
    assert_eq!(answers(8, true), [(8, false)]);
}

proptest! {
    #[test]
    fn counted_marks_are_reported_to_the_byte(seed: u64, one_in in 2_u64..6, ns3: bool) {
        let params = TcpParams { ecn: true, counted_echo_lags: false, ..if ns3 { TcpParams::ns3() } else { TcpParams::linux() } };
        let mss = u64::from(params.mss);
        let mut control = Reno::fixed(params.mss, 7);
        control.ecn = EcnUse::Counted;
        let mut state = seed | 1;
        let plan = move |direction, _, segment: &Segment, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            mark_if(direction == Direction::Forth && segment.length > 0 && (state >> 33).is_multiple_of(one_in))
        };
        let mut pair = Pair::new(&params, control, Some(100 * mss), plan);
        pair.connect();
        prop_assert!(pair.finish(Nanos(20_000 * MS)));
        let reported: u64 = pair.sender.control().acks.iter().map(|ack| ack.marked).sum();
                prop_assert_eq!(reported, pair.receiver.stats().marked * mss);
    }
}

/// A sender whose control is scalable sends its data as ECT(1), and each mark is echoed as for one that counts marks.
#[test]
fn data_of_a_scalable_control_is_ect_1_and_each_mark_is_echoed() {
    for (ecn, codepoint) in [(EcnUse::Scalable, Ecn::Ect1), (EcnUse::Counted, Ecn::Ect0)] {
        let params = TcpParams { ecn: true, ..TcpParams::default() };
        let mss = u64::from(params.mss);
        // Every third segment with data is marked, and one is lost.
        let mut copies = 0;
        let plan = move |direction, _, segment: &Segment, _| {
            let data = direction == Direction::Forth && segment.length > 0;
            let number = segment.seq / mss;
            copies += u64::from(data && number == 31);
            Fate {
                marked: data && number.is_multiple_of(3),
                lost: data && number == 31 && copies == 1,
                ..Fate::default()
            }
        };
        let control = Reno { ecn, ..Reno::fixed(params.mss, 12) };
        let mut pair = Pair::new(&params, control, Some(90 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(5_000 * MS)));
        let mut sent = std::collections::BTreeSet::new();
        for passed in &pair.passed {
            let repeated =
                !sent.insert((passed.direction == Direction::Forth, passed.segment.seq, passed.segment.length));
            if passed.segment.length > 0 {
                let capable = !repeated || params.ecn_on_repeats;
                assert_eq!(passed.ecn, if capable { codepoint } else { Ecn::NotEct });
            } else {
                assert!(matches!(passed.ecn, Ecn::NotEct) || passed.ecn == codepoint);
            }
        }
        // Segments 0, 3, .. 87, without those that were found by an ACK of two.
        let echoes = pair.sender.stats().echoes;
        assert!((25..=35).contains(&echoes), "{echoes}");
        assert_eq!(pair.receiver.stats().marked, 30);
    }
}
