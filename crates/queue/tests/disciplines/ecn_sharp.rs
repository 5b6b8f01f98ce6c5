//! ECN# against decisions computed by hand, a plain model, and what the paper promises.

use crate::disciplines::harness::rate;
use proptest::prelude::*;
use queuescope_queue::{
    Discipline, DropReason, Dropped, EcnSharp, EcnSharpParams, EcnSharpStats, Limit, MarkReason, Outlet, Sink,
};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};

/// The marks of a run: the packet and the reason.
#[derive(Default)]
struct Marks(Vec<(u64, MarkReason)>);

impl Sink for Marks {
    fn dropped(&mut self, dropped: &Dropped) {
        panic!("{dropped:?} without a limit");
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, _now: Nanos) {
        assert_eq!(packet.ecn, Ecn::Ce);
        self.0.push((packet.id.0, reason));
    }
}

/// A departure: its time, and the sojourn time of the packet, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    now: u64,
    sojourn: u64,
    ecn: Ecn,
}

fn unlimited() -> EcnSharpParams {
    EcnSharpParams { limit: Limit::None, ..EcnSharpParams::default() }
}

fn packet(id: u64, ecn: Ecn) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(1500), class: Class(0), ecn }
}

fn empty(params: EcnSharpParams) -> EcnSharp {
    EcnSharp::new(params, Outlet { overhead: 0, rate: rate(), queue: QueueId(0), seed: 0 })
}

/// Lets packets leave at these times. The decision depends on nothing else, so the queue holds one packet at a time.
/// Returns the reason for which each was marked, and the counters.
fn decisions(params: EcnSharpParams, leaving: &[Leaving]) -> (Vec<Option<MarkReason>>, EcnSharpStats) {
    let mut queue = empty(params);
    let decide = |(id, &Leaving { now, sojourn, ecn }): (usize, &Leaving)| {
        let mut marks = Marks::default();
        queue.enqueue(packet(id as u64, ecn), Nanos(now - sojourn), &mut marks);
        let left = queue.dequeue(Nanos(now), &mut marks).unwrap();
        assert_eq!(left.packet.ecn, if marks.0.is_empty() { ecn } else { Ecn::Ce });
        match marks.0[..] {
            [] => None,
            [(of, reason)] => {
                assert_eq!(of, id as u64);
                Some(reason)
            }
            _ => panic!("{:?}: one packet was marked twice", marks.0),
        }
    };
    let reasons = leaving.iter().enumerate().map(decide).collect();
    (reasons, *queue.stats())
}

/// With the default targets of 200 us and 85 us and the interval of 200 us. The spacings of persistent marks are 200 us,
/// 141.421 us, 115.470 us, 100 us and 89.442 us.
#[test]
fn decisions_computed_by_hand() {
    let (no, instant, persistent) = (None, Some(MarkReason::Threshold), Some(MarkReason::Target));
    let table = [
        (1_000_000, 84_999, no),
        (1_010_000, 85_000, no), // At the target: the interval begins, and ends at 1210 us.
        (1_100_000, 150_000, no),
        (1_150_000, 200_001, instant),
        (1_160_000, 200_000, no),         // At the instantaneous target, not above it.
        (1_210_000, 100_000, no),         // At the end of the interval, not after it.
        (1_210_001, 100_000, persistent), // The first. The next is due at 1410.001 us.
        (1_300_000, 250_000, instant),
        (1_410_000, 100_000, no),
        (1_410_001, 100_000, persistent), // The second. The next is due 141.421 us later, at 1551.422 us.
        (1_551_421, 100_000, no),
        (1_553_000, 100_000, persistent), // The third is late. The next is due 115.470 us later, at 1668.470 us.
        (1_668_469, 100_000, no),
        (1_668_470, 100_000, persistent), // The fourth. The next is due at 1768.470 us.
        (1_768_470, 300_000, instant),    // The fifth, which is marked for both. The next is due at 1857.912 us.
        (1_857_911, 100_000, no),
        (1_857_912, 84_999, no),  // Below the target: a mark was due, and the marks end.
        (1_858_000, 100_000, no), // The next interval ends at 2058 us.
        (2_058_000, 100_000, no),
        (2_058_001, 100_000, persistent), // The count begins at 1 again: the next is due 200 us later.
        (2_258_000, 100_000, no),
        (2_258_001, 100_000, persistent),
    ];
    let leaving = table.map(|(now, sojourn, _)| Leaving { now, sojourn, ecn: Ecn::Ect0 });
    let (reasons, stats) = decisions(unlimited(), &leaving);
    assert_eq!(reasons, table.map(|(_, _, reason)| reason));
    let expected = EcnSharpStats { offered: 22, departed: 22, marked_target: 6, marked_threshold: 3, ..stats };
    assert_eq!((stats, stats.not_capable, stats.overlimit), (expected, 0, 0));
}

/// A mark that is due meets a packet that is not ECN-capable. The packet leaves unmarked, and the next mark is due a
/// spacing later, as in the authors' program.
#[test]
fn a_packet_that_is_not_capable_leaves_and_uses_up_the_mark() {
    let leave = |now: u64, sojourn: u64, ecn| Leaving { now: now * 1000, sojourn: sojourn * 1000, ecn };
    let leaving = [
        leave(1000, 100, Ecn::Ect0),
        leave(1201, 100, Ecn::NotEct), // The first mark is due.
        leave(1202, 100, Ecn::Ect0),
        leave(1300, 500, Ecn::NotEct), // Above the instantaneous target.
        leave(1400, 100, Ecn::Ect1),
        leave(1401, 100, Ecn::Ect1), // The second mark.
        leave(1402, 300, Ecn::Ce),   // It has CE already, and is counted all the same.
    ];
    let (reasons, stats) = decisions(unlimited(), &leaving);
    let (instant, persistent) = (Some(MarkReason::Threshold), Some(MarkReason::Target));
    assert_eq!(reasons, [None, None, None, None, None, persistent, instant]);
    assert_eq!((stats.marked_target, stats.marked_threshold, stats.not_capable), (1, 1, 2));
}

#[test]
fn only_a_full_queue_drops() {
    /// Records the drops.
    #[derive(Default)]
    struct Drops(Vec<(u64, DropReason)>);
    impl Sink for Drops {
        fn dropped(&mut self, dropped: &Dropped) {
            self.0.push((dropped.packet.id.0, dropped.reason));
        }
        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} is not ECN-capable");
        }
    }
    let mut queue = empty(EcnSharpParams { limit: Limit::Packets(3), ..EcnSharpParams::default() });
    let mut drops = Drops::default();
    for id in 0..5 {
        queue.enqueue(packet(id, Ecn::NotEct), Nanos(0), &mut drops);
    }
    // They wait for much longer than every target.
    for second in 1..4 {
        assert!(queue.dequeue(Nanos(second * 1_000_000_000), &mut drops).is_some());
    }
    assert_eq!(drops.0, [(3, DropReason::Overlimit), (4, DropReason::Overlimit)]);
    assert_eq!((queue.stats().overlimit, queue.stats().not_capable, queue.stats().departed), (2, 3, 3));
}

/// The decision on the last of these departures, by reading all of them again: a model without state.
///
/// The packets at or above the persistent target that left one after the other, up to the last, are a run. The first mark
/// is due when more than an interval has passed since the first of them left. The first packet that leaves when a mark is
/// due has it, and the next is due an interval over the root of their number later.
fn model(params: &EcnSharpParams, departed: &[Leaving]) -> Option<MarkReason> {
    let interval = params.persistent_interval.0;
    let last = departed.last()?;
    let below = departed.iter().rposition(|left| left.sojourn < params.persistent_target.0);
    let run = &departed[below.map_or(0, |below| below + 1)..];
    let mut due = run.first().map_or(0, |first| first.now + interval + 1);
    let (mut count, mut persistent) = (0, false);
    for left in run {
        persistent = left.now >= due;
        if persistent {
            count += 1;
            // In integers: the largest whole number that is not above interval / sqrt(count).
            due = left.now + (interval * interval / count).isqrt();
        }
    }
    match last.ecn {
        Ecn::NotEct => None,
        _ if last.sojourn > params.instant_target.0 => Some(MarkReason::Threshold),
        _ => persistent.then_some(MarkReason::Target),
    }
}

/// Parameters and departures. All times are multiples of 1 ns, or of 5 us: then many are exactly at a target or at the end
/// of an interval.
fn run() -> impl Strategy<Value = (EcnSharpParams, Vec<Leaving>)> {
    prop_oneof![Just(1), Just(5_000)].prop_flat_map(|unit| (params(unit), departures(unit)))
}

fn params(unit: u64) -> impl Strategy<Value = EcnSharpParams> {
    let times = (0..300_000 / unit, 0..200_000 / unit, 1..300_000 / unit);
    times.prop_map(move |(instant, persistent, interval)| EcnSharpParams {
        limit: Limit::None,
        instant_target: Nanos(instant * unit),
        persistent_target: Nanos(persistent * unit),
        persistent_interval: Nanos(interval * unit),
    })
}

/// Departures with gaps of up to 20 us. Sojourn times wander, so that most runs above a target are long.
fn departures(unit: u64) -> impl Strategy<Value = Vec<Leaving>> {
    let ecn = prop_oneof![3 => Just(Ecn::Ect0), 2 => Just(Ecn::Ect1), 1 => Just(Ecn::NotEct), 1 => Just(Ecn::Ce)];
    let most = 20_000 / unit;
    let step = (prop_oneof![1 => Just(0), 4 => 1..=most], 0..=2 * most, ecn);
    (0..300_000 / unit, prop::collection::vec(step, 0..300)).prop_map(
        move |(first, steps): (u64, Vec<(u64, u64, Ecn)>)| {
            let (mut now, mut sojourn) = (1_000_000_000, first);
            let leave = |(gap, change, ecn): (u64, u64, Ecn)| {
                now += gap * unit;
                sojourn = (sojourn + change).saturating_sub(most).min(400_000 / unit);
                Leaving { now, sojourn: sojourn * unit, ecn }
            };
            steps.into_iter().map(leave).collect()
        },
    )
}

/// Departures every microsecond from a queue that stands at 100 us, and what is marked of it.
#[test]
fn a_standing_queue_is_marked_more_and_more_often() {
    let leaving: Vec<_> =
        (0..1200).map(|us| Leaving { now: (1000 + us) * 1000, sojourn: 100_000, ecn: Ecn::Ect0 }).collect();
    let (reasons, stats) = decisions(unlimited(), &leaving);
    let marked: Vec<_> = (0..1200).filter(|&us| reasons[us].is_some()).collect();
    // After 200 us. Then spacings of 200, 141.4, 115.5, 100, 89.4, 81.6, 75.6 and 70.7 us, each rounded up to the next
    // packet.
    assert_eq!(marked, [201, 401, 543, 659, 759, 849, 931, 1007, 1078, 1145]);
    assert_eq!((stats.marked_target, stats.marked_threshold), (10, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ecn_sharp_follows_the_model((params, leaving) in run()) {
        let (reasons, _) = decisions(params, &leaving);
        for (left, reason) in (1..).zip(reasons) {
            prop_assert_eq!(reason, model(&params, &leaving[..left]), "packet {} of {:?}", left - 1, leaving);
        }
    }

    #[test]
    fn marks_are_those_that_the_targets_allow((params, leaving) in run()) {
        let (reasons, stats) = decisions(params, &leaving);
        for (left, reason) in leaving.iter().zip(&reasons) {
            let instant = left.sojourn > params.instant_target.0 && left.ecn.is_capable();
            prop_assert_eq!(*reason == Some(MarkReason::Threshold), instant, "{:?}", left);
            if left.sojourn < params.persistent_target.0 && left.sojourn <= params.instant_target.0 {
                prop_assert_eq!(*reason, None, "{:?}", left);
            }
        }
        let marks = |of| reasons.iter().filter(|reason| **reason == Some(of)).count() as u64;
        prop_assert_eq!(stats.marked_target, marks(MarkReason::Target));
        prop_assert_eq!(stats.marked_threshold, marks(MarkReason::Threshold));
    }

    /// In each run above the persistent target, nothing is marked in the first interval, and the n-th mark is followed
    /// by none for an interval / sqrt(n).
    #[test]
    fn persistent_marks_keep_their_distance((params, leaving) in run()) {
        let params = EcnSharpParams { instant_target: Nanos::MAX, ..params };
        let leaving: Vec<_> = leaving.into_iter().map(|left| Leaving { ecn: Ecn::Ect0, ..left }).collect();
        let (reasons, _) = decisions(params, &leaving);
        let interval = params.persistent_interval.0 as f64;
        let (mut began, mut marks): (_, Vec<u64>) = (None, Vec::new());
        for (left, reason) in leaving.iter().zip(reasons) {
            if left.sojourn < params.persistent_target.0 {
                (began, marks) = (None, Vec::new());
                continue;
            }
            let since = (left.now - *marks.last().or(began.as_ref()).unwrap_or(&left.now)) as f64;
            // Rounded down to a nanosecond.
            let spacing = interval / (marks.len().max(1) as f64).sqrt() - 1.0;
            began = began.or(Some(left.now));
            match reason {
                Some(_) => {
                    prop_assert!(since > spacing, "{left:?} after {since} ns, not {spacing}");
                    marks.push(left.now);
                }
                None => prop_assert!(since <= spacing + 1.0, "{left:?} is not marked after {since} ns"),
            }
        }
    }
}
