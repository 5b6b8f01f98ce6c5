//! The contract of each discipline of the family: every packet departs or is reported as dropped, queues keep their
//! order, and limits hold.

use crate::pie::{MS, RecordingSink, fire, packet};
use proptest::prelude::*;
use queuescope_queue::{
    Discipline, DualPi2, DualPi2Params, DualPi2Scheduler, Limit, Outlet, Pi2, Pi2Params, Pie, PieActivation, PieDelay,
    PieParams,
};
use queuescope_wire::{Backlog, ByteCount, Ecn, Nanos, QueueId, Rate};
use std::collections::BTreeMap;

/// The time since the last step in nanoseconds, and the size and codepoint of a packet that arrives; `None`: the link
/// dequeues.
type Step = (u64, Option<(u64, Ecn)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let what = prop_oneof![3 => (40..1500u64, ecn).prop_map(Some), 2 => Just(None)];
    prop::collection::vec((0..20 * MS, what), 0..300)
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::None),
        (0..40_000u64).prop_map(|bytes| Limit::Bytes(ByteCount(bytes))),
        (0..40u64).prop_map(Limit::Packets),
        (0..400 * MS).prop_map(|time| Limit::Time(Nanos(time))),
    ]
}

/// Runs the steps and checks the discipline's contract. `queue_of` returns the queue for a codepoint.
fn check<D: Discipline>(
    mut queue: D,
    outlet: Outlet,
    limit: Limit,
    steps: &[Step],
    queue_of: impl Fn(Ecn) -> u16,
) -> Result<(), TestCaseError> {
    let mut sink = RecordingSink::default();
    let mut now = Nanos(5 * MS);
    // The packets in the queue, by id: arrival, size, queue, codepoint.
    let mut waiting: BTreeMap<u64, (Nanos, u64, u16, Ecn)> = BTreeMap::new();
    let mut last_left: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut checked_drops, mut departures) = (0, 0);
    let check_drops =
        |sink: &RecordingSink, waiting: &mut BTreeMap<_, (Nanos, u64, u16, Ecn)>, checked: &mut usize, now: Nanos| {
            for dropped in &sink.dropped[*checked..] {
                let (since, _, home, _) = waiting.remove(&dropped.packet.id.0).unwrap();
                assert_eq!(dropped.queue, QueueId(home));
                assert_eq!(dropped.at, now);
                assert!(dropped.enqueued.is_none_or(|enqueued| enqueued == since));
            }
            *checked = sink.dropped.len();
        };
    for (id, (gap, what)) in (0u64..).zip(steps) {
        now = now + Nanos(*gap);
        fire(&mut queue, now);
        match what {
            Some((size, ecn)) => {
                waiting.insert(id, (now, *size, queue_of(*ecn), *ecn));
                queue.enqueue(packet(id, *size, *ecn), now, &mut sink);
                check_drops(&sink, &mut waiting, &mut checked_drops, now);
            }
            None => {
                let left = queue.dequeue(now, &mut sink);
                check_drops(&sink, &mut waiting, &mut checked_drops, now);
                prop_assert_eq!(left.is_none(), waiting.is_empty());
                if let Some(left) = left {
                    let id = left.packet.id.0;
                    departures += 1;
                    let (since, size, home, ecn) = waiting.remove(&id).unwrap();
                    prop_assert_eq!((left.enqueued, left.dequeued), (since, now));
                    prop_assert_eq!((left.packet.size.0, left.queue), (size, QueueId(home)));
                    prop_assert!(left.packet.ecn == ecn || left.packet.ecn == Ecn::Ce && ecn != Ecn::NotEct);
                    prop_assert!(last_left.insert(home, id).is_none_or(|last| last < id), "order within a queue");
                    prop_assert_eq!(left.backlog_out, queue.backlog());
                }
            }
        }
        let bytes = waiting.values().map(|(_, size, ..)| size).sum();
        prop_assert_eq!(queue.backlog(), Backlog { packets: waiting.len() as u64, bytes: ByteCount(bytes) });
        match limit {
            Limit::Bytes(most) => prop_assert!(queue.backlog().bytes <= most),
            Limit::Packets(most) => prop_assert!(queue.backlog().packets <= most),
            Limit::Time(most) => {
                let last = waiting.values().next_back().map_or(0, |(_, size, ..)| *size);
                prop_assert!(outlet.rate.time_for(ByteCount(bytes - last)) <= most);
            }
            Limit::None => {}
        }
    }
    // Every packet is in the queue, was dropped or has left.
    let arrivals = steps.iter().filter(|(_, what)| what.is_some()).count();
    prop_assert_eq!(arrivals, waiting.len() + sink.dropped.len() + departures);
    Ok(())
}

fn outlet() -> Outlet {
    Outlet { overhead: 0, rate: Rate::from_bits_per_second(400_000).unwrap(), queue: QueueId(3), seed: 11 }
}

proptest! {
    #[test]
    fn pie_reports_every_packet(steps in steps(), limit in limit(), delay in 0..3usize, activation in 0..3usize) {
        let delays = [
            PieDelay::Timestamps { zero_when_empty: true },
            PieDelay::DepartureRate { threshold: ByteCount(3000) },
            PieDelay::LinkRate,
        ];
        let activations =
            [PieActivation::Always, PieActivation::ThirdOfLimit, PieActivation::Delay(Nanos(30 * MS))];
        // Fast gains and a short burst allowance, so that drops and marks come within few packets.
        let params = PieParams {
            limit, delay: delays[delay], activation: activations[activation], alpha: 5.0, beta: 20.0,
            burst: queuescope_queue::PieBurst::Rfc8033(Nanos(20 * MS)), mark_below: Some(0.3), ..PieParams::default()
        };
        check(Pie::new(params, outlet()), outlet(), limit, &steps, |_| 3)?;
    }

    #[test]
    fn pi2_reports_every_packet(steps in steps(), limit in limit()) {
        let params = Pi2Params { limit, alpha: 5.0, beta: 20.0, ..Pi2Params::default() };
        check(Pi2::new(params, outlet()), outlet(), limit, &steps, |_| 3)?;
    }

    #[test]
    fn dual_pi2_reports_every_packet(
        steps in steps(), limit in limit(), shifted: bool, even: bool, spare_short: bool
    ) {
        let scheduler = if shifted {
            DualPi2Scheduler::TimeShiftedFifo(Nanos(50 * MS))
        } else {
            DualPi2Scheduler::WeightedRoundRobin { of: 16 }
        };
        let gains = DualPi2Params { alpha: 5.0, beta: 20.0, ..DualPi2Params::default() };
        let params = DualPi2Params { limit, scheduler, even, spare_short, ..gains };
        let queue_of = |ecn| if matches!(ecn, Ecn::Ect1 | Ecn::Ce) { 4 } else { 3 };
        check(DualPi2::new(params, outlet()), outlet(), limit, &steps, queue_of)?;
    }
}
