//! When the receiver acknowledges, and what its ACKs report.

use crate::pair::link::{Direction, Fate, Pair, Passed};
use crate::pair::reno::Reno;
use proptest::prelude::*;
use queuescope_tcp::{EcnUse, Flags, Receiver, Segment, TcpParams, Timestamps};
use queuescope_wire::{Ecn, Nanos};

const MS: u64 = 1_000_000;

/// Pure ACKs after the handshake: the time in milliseconds, and the acknowledged number in segments.
fn acks(pair: &Pair, mss: u64) -> Vec<(u64, u64)> {
    let acks = pair
        .passed
        .iter()
        .filter(|p: &&Passed| p.direction == Direction::Back && !p.segment.flags.contains(Flags::SYN));
    acks.map(|passed| (passed.at.0 / MS, (passed.segment.ack - 1) / mss)).collect()
}

#[test]
fn every_second_segment_is_acknowledged_and_the_odd_one_later() {
    let linux = TcpParams { quick_acks: 0, ..TcpParams::linux() };
    let ns3 = TcpParams { quick_acks: 0, ..TcpParams::ns3() };
    for (params, timeout) in [(linux, 40), (ns3, 200)] {
        let mss = u64::from(params.mss);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(5 * mss), |_, _, _, _| Fate::default());
        pair.sender.keep_open();
        pair.connect();
        pair.run_until(Nanos(1_000 * MS));
        // Data arrives at 30 ms.
        assert_eq!(acks(&pair, mss), [(30, 2), (30, 4), (30 + timeout, 5)]);
        assert_eq!(pair.receiver.stats().delayed_acks, 1);
    }
}

#[test]
fn each_of_the_first_segments_is_acknowledged_if_the_profile_says_so() {
    let params = TcpParams { quick_acks: 3, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(7 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    assert!(pair.finish(Nanos(1_000 * MS)));
    let numbers: Vec<_> = acks(&pair, mss).iter().map(|ack| ack.1).collect();
    // The last segment carries the FIN.
    assert_eq!(numbers, [1, 2, 3, 5, 7]);
}

/// A receiver that has answered a SYN; segments have 1 000 bytes.
fn listener(params: &TcpParams) -> Receiver {
    let mut receiver = Receiver::new(&TcpParams { quick_acks: 0, ..*params }, EcnUse::Classic);
    let flags = Flags::SYN | Flags::ECE | Flags::CWR;
    receiver.receive(&Segment { flags, ..Segment::default() }, Ecn::NotEct, Nanos(0));
    assert!(receiver.transmit(Nanos(0)).is_some() && receiver.transmit(Nanos(0)).is_none());
    receiver
}

fn data(number: u64) -> Segment {
    Segment { seq: 1 + 1_000 * number, ack: 1, length: 1_000, flags: Flags::ACK, ..Segment::default() }
}

/// The receiver's immediate answer: the number acknowledged and the blocks, in segments.
fn answer(receiver: &mut Receiver, number: u64) -> Option<(u64, Vec<(u64, u64)>)> {
    receiver.receive(&data(number), Ecn::NotEct, Nanos(0));
    let (segment, _) = receiver.transmit(Nanos(0))?;
    let blocks = segment.sacks.iter().map(|block| ((block.start - 1) / 1_000, (block.end - 1) / 1_000)).collect();
    assert_eq!(receiver.transmit(Nanos(0)), None);
    Some(((segment.ack - 1) / 1_000, blocks))
}

#[test]
fn data_out_of_order_is_acknowledged_at_once_with_the_newest_block_first() {
    let mut receiver = listener(&TcpParams::ns3());
    assert_eq!(answer(&mut receiver, 0), None);
    assert_eq!(answer(&mut receiver, 2), Some((1, vec![(2, 3)])));
    assert_eq!(answer(&mut receiver, 3), Some((1, vec![(2, 4)])));
    assert_eq!(answer(&mut receiver, 6), Some((1, vec![(6, 7), (2, 4)])));
    assert_eq!(answer(&mut receiver, 8), Some((1, vec![(8, 9), (6, 7), (2, 4)])));
    assert_eq!(answer(&mut receiver, 10), Some((1, vec![(10, 11), (8, 9), (6, 7)])));
    // A block that grows comes first again. Two blocks that meet become one, and the fourth last is reported again.
    assert_eq!(answer(&mut receiver, 7), Some((1, vec![(6, 9), (10, 11), (2, 4)])));
    assert_eq!(answer(&mut receiver, 4), Some((1, vec![(2, 5), (6, 9), (10, 11)])));
    // A hole is filled: acknowledged at once too.
    assert_eq!(answer(&mut receiver, 1), Some((5, vec![(6, 9), (10, 11)])));
    assert_eq!(answer(&mut receiver, 5), Some((9, vec![(10, 11)])));
    assert_eq!(answer(&mut receiver, 9), Some((11, vec![])));
    assert_eq!(receiver.delivered(), 11_000);
}

#[test]
fn a_block_that_touches_a_forgotten_one_is_joined_or_not_as_the_profile_says() {
    for forgets_blocks in [false, true] {
        let mut receiver = listener(&TcpParams { forgets_blocks, ..TcpParams::ns3() });
        for number in [10, 8, 6, 4, 2] {
            assert_eq!(answer(&mut receiver, number).unwrap().1[0], (number, number + 1));
        }
        // The block (10, 11) is the fifth last.
        let first = if forgets_blocks { (11, 12) } else { (10, 12) };
        assert_eq!(answer(&mut receiver, 11), Some((0, vec![first, (2, 3), (4, 5)])));
        // Data that arrives twice changes nothing where blocks are forgotten.
        let blocks = if forgets_blocks { vec![(11, 12), (2, 3), (4, 5)] } else { vec![(4, 5), (10, 12), (2, 3)] };
        assert_eq!(answer(&mut receiver, 4), Some((0, blocks)));
        for number in [0, 1, 3, 5, 7] {
            assert!(answer(&mut receiver, number).is_none_or(|(_, blocks)| blocks.len() <= 3));
        }
        // All remembered blocks are in order; the others were reported before.
        let rest = if forgets_blocks { vec![(11, 12)] } else { vec![(10, 12)] };
        assert_eq!(answer(&mut receiver, 0), Some((9, rest)));
        assert_eq!(answer(&mut receiver, 9), Some((12, vec![])));
    }
}

#[test]
fn data_that_arrives_twice_is_reported_if_the_profile_says_so() {
    for (params, reports) in [(TcpParams::linux(), true), (TcpParams::ns3(), false)] {
        let params = TcpParams { quick_acks: 0, delayed_ack_count: 1, ..params };
        let mut receiver = listener(&params);
        assert_eq!(answer(&mut receiver, 0), Some((1, vec![])));
        assert_eq!(answer(&mut receiver, 0), Some((1, if reports { vec![(0, 1)] } else { vec![] })));
        assert_eq!(answer(&mut receiver, 3), Some((1, vec![(3, 4)])));
        let twice = if reports { vec![(3, 4), (3, 4)] } else { vec![(3, 4)] };
        assert_eq!(answer(&mut receiver, 3), Some((1, twice)));
        assert_eq!(receiver.stats().duplicates, 2);
    }
}

#[test]
fn data_beyond_the_window_is_dropped_and_answered() {
    let mut receiver = listener(&TcpParams { receive_window: 5_000, ..TcpParams::ns3() });
    assert_eq!(answer(&mut receiver, 4), Some((0, vec![(4, 5)])));
    assert_eq!(answer(&mut receiver, 6), Some((0, vec![(4, 5)])));
    assert_eq!(receiver.stats().beyond_window, 1);
}

#[test]
fn the_timestamp_of_the_first_waiting_segment_is_echoed() {
    // RFC 7323 section 4.3, example A: with a delayed ACK, the earliest.
    let mut receiver = listener(&TcpParams::ns3());
    let stamped = |number, value| Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..data(number) };
    let mut echo = |number, value| {
        receiver.receive(&stamped(number, value), Ecn::NotEct, Nanos(0));
        receiver.transmit(Nanos(0)).map(|(segment, _)| segment.timestamps.unwrap().echo)
    };
    assert_eq!(echo(0, 5), None);
    assert_eq!(echo(1, 7), Some(5));
    assert_eq!(echo(2, 8), None);
    assert_eq!(echo(3, 9), Some(8));
    // Example B: out of order, that of the last segment in order; a segment that fills a hole gives its own.
    assert_eq!(echo(5, 11), Some(8));
    assert_eq!(echo(6, 12), Some(8));
    assert_eq!(echo(4, 13), Some(13));
}

proptest! {
    #[test]
    fn it_knows_which_bytes_arrived(pieces in prop::collection::vec((0_u64..60, 1_u32..12), 1..120)) {
        let mut receiver = listener(&TcpParams { delayed_ack_count: 1, ..TcpParams::linux() });
        // Which of the numbers from 1 on arrived.
        let mut came = [false; 80];
        for (offset, length) in pieces {
            let seq = 1 + offset;
            let segment = Segment { seq, ack: 1, length, flags: Flags::ACK, ..Segment::default() };
            let twice = came[seq as usize..(seq + u64::from(length)) as usize].iter().all(|&byte| byte);
            came[seq as usize..(seq + u64::from(length)) as usize].fill(true);
            receiver.receive(&segment, Ecn::NotEct, Nanos(0));
            let answer = receiver.transmit(Nanos(0)).map(|(answer, _)| answer);
            prop_assert!(answer.is_some() && receiver.transmit(Nanos(0)).is_none());
            let answer = answer.unwrap_or_default();
            let next = (1..).find(|&number| !came[number as usize]).unwrap_or(0);
            prop_assert_eq!((answer.ack, receiver.delivered()), (next, next - 1));
            let mut blocks: Vec<_> = answer.sacks.iter().collect();
            if twice {
                prop_assert_eq!(blocks.remove(0), seq..seq + u64::from(length));
            }
            for block in &blocks {
                // A whole island: all of it arrived, and neither neighbour.
                prop_assert!(block.start > next && came[block.start as usize..block.end as usize].iter().all(|&byte| byte));
                prop_assert!(!came[block.start as usize - 1] && !came[block.end as usize]);
            }
            let islands = (next as usize..79).filter(|&number| !came[number] && came[number + 1]).count();
            prop_assert!(blocks.len() <= islands && (islands == 0 || !blocks.is_empty() || twice));
            if seq > next && !twice {
                prop_assert!(blocks.first().is_some_and(|block| block.contains(&seq)));
            }
        }
    }
}
