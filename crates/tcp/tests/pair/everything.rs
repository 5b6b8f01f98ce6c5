//! Whatever the link does, all data arrives.

use crate::pair::link::{Direction, Fate, Pair};
use crate::pair::reno::Reno;
use proptest::prelude::*;
use queuescope_tcp::{EcnUse, Flags, LossDetection, Receiver, Sacks, Segment, Sender, TcpParams, Timestamps};
use queuescope_wire::{Ecn, Nanos};

const SECOND: u64 = 1_000_000_000;

fn profiles() -> Vec<TcpParams> {
    let linux = TcpParams::linux();
    let ns3 = TcpParams::ns3();
    vec![
        linux,
        ns3,
        TcpParams { sack: false, ..linux },
        TcpParams { sack: false, ..ns3 },
        TcpParams { detection: LossDetection::Rfc6675, reduction: None, ..linux },
        TcpParams { timestamp_tick: None, limited_transmit: false, ..linux },
    ]
}

/// A generator of its own, so that the link's random events do not depend on where they are drawn.
struct Chances(u64);

impl Chances {
    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.draw().is_multiple_of(n)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

#[test]
fn a_clean_link_causes_no_retransmissions() {
    for params in profiles() {
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(1_000_000), |_, _, _, _| Fate::default());
        pair.connect();
        assert!(pair.finish(Nanos(20 * SECOND)));
        assert_eq!((pair.receiver.delivered(), pair.sender.stats().repeated), (1_000_000, 0));
        assert_eq!(pair.receiver.stats().duplicates, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn everything_arrives_once_and_in_order(
        profile in 0..6_usize,
        bytes in 0_u64..400_000,
        seed: u64,
        loss in prop_oneof![Just(0_u64), 3_u64..200],
        ack_loss in prop_oneof![Just(0_u64), 3_u64..100],
        reorder in prop_oneof![Just(0_u64), 2_u64..50],
        duplicate in prop_oneof![Just(0_u64), 2_u64..50],
        mark in prop_oneof![Just(0_u64), 2_u64..50],
        ecn: bool,
        byte_time in 0_u64..3_000,
        window in 1_u64..40,
    ) {
        let params = TcpParams { ecn, ..profiles()[profile] };
        let mut chances = Chances(seed);
        let plan = move |direction: Direction, _: u64, _: &_, _| Fate {
            lost: chances.one_in(if direction == Direction::Forth { loss } else { ack_loss }),
            later: if chances.one_in(reorder) { chances.draw() % 30_000_000 } else { 0 },
            again_after: chances.one_in(duplicate).then(|| chances.draw() % 20_000_000),
            marked: chances.one_in(mark),
            window: None,
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, window), Some(bytes), plan);
        pair.byte_time = byte_time;
        pair.connect();
        prop_assert!(pair.finish(Nanos(3_600 * SECOND)), "stuck at {} of {bytes}", pair.receiver.delivered());
        prop_assert_eq!(pair.receiver.delivered(), bytes);
        prop_assert_eq!(pair.sender.in_flight(), 0);
        prop_assert!(pair.sender.next_timer().is_none());
    }
}

/// Any segment: its numbers are near those in use.
fn any_segment() -> impl Strategy<Value = Segment> {
    let number = || prop_oneof![0_u64..60_000, Just(0), Just(1), Just(1 << 40)];
    let flags = prop::sample::subsequence(
        vec![Flags::FIN, Flags::SYN, Flags::PSH, Flags::ACK, Flags::ACK, Flags::ECE, Flags::CWR],
        0..7,
    );
    let window = prop_oneof![0_u64..100_000, Just(0), Just(u64::MAX)];
    let blocks = prop::collection::vec((number(), number()), 0..4);
    (number(), number(), window, 0_u32..3_000, flags, any::<(u32, u32)>(), blocks).prop_map(
        |(seq, ack, window, length, flags, (value, echo), blocks)| {
            let mut sacks = Sacks::default();
            for (start, end) in blocks {
                sacks.push(start..end);
            }
            let flags = flags.into_iter().fold(Flags::ACK, |all, flag| all | flag);
            Segment {
                seq,
                ack,
                window,
                length,
                flags,
                timestamps: Some(Timestamps { value, echo }),
                sacks,
                without_mss: false,
            }
        },
    )
}

proptest! {
    #[test]
    fn no_segment_makes_an_end_panic(
        profile in 0..6_usize,
        segments in prop::collection::vec((any_segment(), 0_u64..400_000_000), 0..60),
        honest: bool,
    ) {
        let params = TcpParams { ecn: true, ..profiles()[profile] };
        let mut sender = Sender::new(&params, Reno::new(params.mss, 10), Some(50_000));
        let mut receiver = Receiver::new(&params, EcnUse::Counted);
        let mut now = Nanos(0);
        sender.connect(now);
        if honest {
            let answer = Segment { ack: 1, window: 65_535, flags: Flags::SYN | Flags::ACK | Flags::ECE, ..Segment::default() };
            sender.receive(&answer, Ecn::NotEct, now);
            receiver.receive(&Segment { flags: Flags::SYN, ..Segment::default() }, Ecn::NotEct, now);
        }
        for (segment, later) in segments {
            now = Nanos(now.0 + later);
            sender.on_timer(now);
            receiver.on_timer(now);
            sender.receive(&segment, Ecn::Ce, now);
            receiver.receive(&segment, Ecn::Ce, now);
            let left = std::iter::from_fn(|| sender.transmit(now)).take(1_000).count();
            let answers = std::iter::from_fn(|| receiver.transmit(now)).take(1_000).count();
            prop_assert!(left < 1_000 && answers < 1_000);
            prop_assert!(sender.next_timer().is_none_or(|at| at >= now) && receiver.next_timer().is_none_or(|at| at >= now));
            prop_assert!(sender.in_flight() <= 50_000 + 20 * u64::from(params.mss));
        }
    }
}
