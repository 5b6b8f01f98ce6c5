//! CoDel against the pseudocode of RFC 8289, sequences computed by hand, and the expectations of ns-3's tests.

use crate::disciplines::codel_model::{Action, Model, QueuedPacket};
use crate::disciplines::harness::rate;
use proptest::prelude::*;
use queuescope_queue::{
    Codel, CodelFlavour, CodelParams, CodelStats, Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink,
};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};

/// Records the drops and marks of a dequeue.
#[derive(Default)]
struct Actions(Vec<Action>);

impl Sink for Actions {
    fn dropped(&mut self, dropped: &Dropped) {
        assert_eq!(dropped.reason, DropReason::Target);
        self.0.push(Action::Drop(dropped.packet.id.0));
    }

    fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
        self.0.push(Action::Mark(packet.id.0));
    }
}

/// Counts drops because of the limit, and fails on any other drop or mark.
#[derive(Default)]
struct OverlimitOnly(u64);

impl Sink for OverlimitOnly {
    fn dropped(&mut self, dropped: &Dropped) {
        assert_eq!(dropped.reason, DropReason::Overlimit);
        self.0 += 1;
    }

    fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
        panic!("{packet:?} was marked");
    }
}

fn codel(params: CodelParams) -> Codel {
    Codel::new(params, Outlet { overhead: 0, rate: rate(), queue: QueueId(0), seed: 0 })
}

fn packet(id: u64, size: u64, ecn: Ecn) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(size), class: Class(0), ecn }
}

fn millis(time: u64) -> Nanos {
    Nanos(time * 1_000_000)
}

/// A queue of `count` packets of 1000 bytes that arrived at time 0.
fn filled(params: CodelParams, count: u64, ecn: Ecn) -> Codel {
    let mut queue = codel(params);
    for id in 0..count {
        queue.enqueue(packet(id, 1000, ecn), Nanos(0), &mut OverlimitOnly::default());
    }
    queue
}

fn limit_500(flavour: CodelFlavour) -> CodelParams {
    CodelParams { limit: Limit::Packets(500), flavour, ..CodelParams::default() }
}

/// Dequeues at these milliseconds. Returns after each: (packets in the queue, drops so far, marks so far).
fn dequeue_at(mut queue: Codel, times: &[u64]) -> Vec<(u64, u64, u64)> {
    let mut actions = Actions::default();
    let mut step = |&time| {
        assert!(queue.dequeue(millis(time), &mut actions).is_some());
        let CodelStats { target, marked_target, marked_threshold, .. } = *queue.stats();
        (queue.backlog().packets, target, marked_target + marked_threshold)
    };
    times.iter().map(&mut step).collect()
}

/// ns-3's test of drops. With the exact square root the next drops are due at 310.0, 380.7 and 438.4 ms; with Newton's
/// steps at 310, 360, 416.3 and 465 ms.
#[test]
fn twenty_packets_at_once_are_dropped_as_in_ns3_tests() {
    for (flavour, last) in
        [(CodelFlavour::Rfc, (13, 3, 0)), (CodelFlavour::Linux, (12, 4, 0)), (CodelFlavour::Ns3, (12, 4, 0))]
    {
        let queue = filled(limit_500(flavour), 20, Ecn::NotEct);
        let expected = [(19, 0, 0), (17, 1, 0), (16, 1, 0), last];
        assert_eq!(dequeue_at(queue, &[10, 210, 210, 420]), expected, "{flavour:?}");
    }
}

#[test]
fn a_dequeue_marks_at_most_one_packet() {
    for flavour in [CodelFlavour::Rfc, CodelFlavour::Linux, CodelFlavour::Ns3] {
        let queue = filled(CodelParams { ecn: true, ..limit_500(flavour) }, 20, Ecn::Ect0);
        let expected = [(19, 0, 0), (18, 0, 1), (17, 0, 1), (16, 0, 2)];
        assert_eq!(dequeue_at(queue, &[10, 210, 210, 420]), expected, "{flavour:?}");
    }
}

#[test]
fn a_packet_that_cannot_be_marked_is_dropped() {
    for (ecn, codepoint) in [(true, Ecn::NotEct), (false, Ecn::Ect0)] {
        let queue = filled(CodelParams { ecn, ..limit_500(CodelFlavour::Rfc) }, 20, codepoint);
        assert_eq!(dequeue_at(queue, &[10, 210, 210, 420])[3], (13, 3, 0));
    }
}

#[test]
fn the_ce_threshold_marks_each_packet_that_waited_longer() {
    let ce_threshold = Some(millis(2));
    for flavour in [CodelFlavour::Rfc, CodelFlavour::Linux, CodelFlavour::Ns3] {
        let params = CodelParams { ecn: true, ce_threshold, ..limit_500(flavour) };
        assert_eq!(
            dequeue_at(filled(params, 20, Ecn::Ect1), &[1, 2, 3, 10]),
            [(19, 0, 0), (18, 0, 0), (17, 0, 1), (16, 0, 2)]
        );
        assert_eq!(dequeue_at(filled(params, 20, Ecn::NotEct), &[3, 10]), [(19, 0, 0), (18, 0, 0)]);
    }
}

#[test]
fn an_arrival_above_the_limit_is_dropped() {
    for limit in [Limit::Packets(500), Limit::Bytes(ByteCount(500_000))] {
        let mut queue = codel(CodelParams { limit, ..CodelParams::default() });
        let mut sink = OverlimitOnly::default();
        for id in 0..503 {
            queue.enqueue(packet(id, 1000, Ecn::NotEct), Nanos(0), &mut sink);
        }
        assert_eq!((sink.0, queue.stats().overlimit, queue.backlog().packets), (3, 3, 500));
    }
}

/// The control law over a second of standing queue, computed by hand. The first drop is an interval after the sojourn
/// time is first above the target. The next drop is 100 ms / sqrt(n) after the n-th.
#[test]
fn the_gap_between_drops_shrinks_with_the_square_root_of_their_count() {
    let mut queue = filled(CodelParams { limit: Limit::None, ..CodelParams::default() }, 5000, Ecn::NotEct);
    let mut drops = Vec::new();
    for time in 100..1100 {
        let mut actions = Actions::default();
        queue.dequeue(millis(time), &mut actions);
        drops.extend(actions.0.iter().filter(|action| matches!(action, Action::Drop(_))).map(|_| time - 100));
    }
    let mut due = 100.0;
    let mut expected = Vec::new();
    for count in 1.. {
        // The dequeue at the next whole millisecond drops.
        expected.push((due - 1e-6f64).ceil() as u64);
        due += 100.0 / f64::from(count).sqrt();
        if due > 999.0 {
            break;
        }
    }
    assert_eq!(expected[..5], [100, 200, 271, 329, 379]);
    assert_eq!(drops, expected);
}

/// Two overloads, computed by hand. In the first, the count of drops grows by 3, to 4. An overload less than 16
/// intervals after its end starts from a count of 3. A later one starts from 1.
#[test]
fn an_overload_soon_after_another_starts_at_its_rate_of_drops() {
    for (pause, spacing) in [(300, 100.0 / 3f64.sqrt()), (1600 + 500, 100.0)] {
        let mut queue = codel(CodelParams { limit: Limit::None, ..CodelParams::default() });
        let mut id = 0;
        let mut sink = Actions::default();
        // Packets have a sojourn time of 50 ms, and one is sent every 1 ms. Drops are due 100, 200, 270.7 and 328.4 ms
        // after the first dequeue.
        let mut overload = |queue: &mut Codel, from: u64, length: u64| {
            let mut drops = Vec::new();
            for time in from..from + 50 + length {
                for _ in 0..3 {
                    queue.enqueue(packet(id, 1000, Ecn::NotEct), millis(time), &mut sink);
                    id += 1;
                }
                if time >= from + 50 {
                    let mut actions = Actions::default();
                    queue.dequeue(millis(time), &mut actions);
                    drops.extend(
                        actions.0.iter().filter(|action| matches!(action, Action::Drop(_))).map(|_| time - from - 50),
                    );
                }
            }
            while queue.dequeue(millis(from + 50 + length), &mut Actions::default()).is_some() {}
            drops
        };
        assert_eq!(overload(&mut queue, 0, 360), [100, 200, 271, 329]);
        let second = overload(&mut queue, 410 + pause, 100 + 101);
        assert_eq!(second[..2], [100, 100 + spacing.ceil() as u64], "{second:?}");
    }
}

/// ns-3's unit is 1024 ns. Its target of 5 ms becomes 4882 units, 4 999 168 ns. Packets with exactly that sojourn time
/// are above the target.
#[test]
fn times_of_ns3_are_in_units_of_1024_nanoseconds() {
    let first_drop = |flavour, wait: u64| {
        let mut queue = codel(CodelParams { flavour, ..CodelParams::default() });
        let mut actions = Actions::default();
        (0..200).position(|number| {
            queue.enqueue(packet(number, 1500, Ecn::NotEct), millis(number), &mut OverlimitOnly::default());
            let leaves = number.checked_sub(4).map(|before| Nanos(millis(before).0 + wait));
            leaves.is_some_and(|now| queue.dequeue(now, &mut actions).is_some() && queue.stats().target > 0)
        })
    };
    assert_eq!(first_drop(CodelFlavour::Ns3, 4_999_167), None);
    // Above the target since 4.999 168 ms, 4882 units. An interval is 97 656 units, so a drop needs more than 102 538;
    // 104.999 168 ms is exactly 102 538.
    assert_eq!(first_drop(CodelFlavour::Ns3, 4_999_168), Some(4 + 101));
    // 104.999 999 ms is 102 539 units.
    assert_eq!(first_drop(CodelFlavour::Ns3, 4_999_999), Some(4 + 100));
    for flavour in [CodelFlavour::Rfc, CodelFlavour::Linux] {
        assert_eq!(first_drop(flavour, 4_999_999), None);
        assert!(first_drop(flavour, 5_000_000).is_some());
    }
}

/// Packets are dropped only while more than one packet of the largest size stays in the queue.
#[test]
fn a_slow_link_with_one_packet_in_the_queue_drops_nothing() {
    for (flavour, drops) in [(CodelFlavour::Rfc, false), (CodelFlavour::Linux, false), (CodelFlavour::Ns3, true)] {
        let mut queue = codel(CodelParams { flavour, ..CodelParams::default() });
        let mut actions = Actions::default();
        for time in 0..30u64 {
            // After each dequeue, exactly 1500 bytes are in the queue, which is enough for ns-3 to drop.
            while queue.backlog().packets < 2 {
                queue.enqueue(packet(0, 1500, Ecn::NotEct), millis(time * 50), &mut OverlimitOnly::default());
            }
            queue.dequeue(millis(time * 50 + 50), &mut actions);
        }
        assert_eq!(queue.stats().target > 0, drops, "{flavour:?}");
    }
}

fn flavour() -> impl Strategy<Value = CodelFlavour> {
    prop_oneof![Just(CodelFlavour::Rfc), Just(CodelFlavour::Linux), Just(CodelFlavour::Ns3)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// CoDel drops, marks and sends the same packets in the same order as the pseudocode.
    #[test]
    fn codel_follows_the_pseudocode(
        flavour in flavour(), ecn: bool, target in 1..20u64, interval in 10..200u64, min_bytes in 0..3000u64,
        ce_threshold in prop::option::of(1..50u64),
        bursts in prop::collection::vec(
            (1..100_000_000u64, prop::collection::vec((40..1501u64, any::<bool>()), 0..12), 0..6usize), 1..80
        )
    ) {
        let params = CodelParams {
            limit: Limit::None,
            target: millis(target),
            interval: millis(interval),
            min_bytes: ByteCount(min_bytes),
            ecn,
            ce_threshold: ce_threshold.map(millis),
            flavour,
        };
        let (mut queue, mut model) = (codel(params), Model::new(params));
        let (mut now, mut number) = (0, 0);
        for (gap, packets, dequeues) in bursts {
            now += gap;
            for (size, markable) in packets {
                let ecn = if markable { Ecn::Ect0 } else { Ecn::NotEct };
                queue.enqueue(packet(number, size, ecn), Nanos(now), &mut OverlimitOnly::default());
                model.queue.push_back(QueuedPacket { number, size, arrived: now, markable });
                number += 1;
            }
            // Some dequeues follow at once, others after 4 or 8 ms.
            for dequeue in 0..dequeues {
                now += (dequeue as u64 % 3) * 4_000_000;
                let mut actions = Actions::default();
                let left = queue.dequeue(Nanos(now), &mut actions);
                actions.0.extend(left.map(|left| Action::Leave(left.packet.id.0)));
                prop_assert_eq!(actions.0, model.deque(now));
            }
        }
    }
}
