//! DualPI2 against RFC 9332's pseudocode, and its parts against values computed by hand.

use crate::pie::{MS, RecordingSink, fire, outlet, packet};
use proptest::prelude::*;
use queuescope_queue::{Discipline, DropReason, DualPi2, DualPi2Params, DualPi2Scheduler, Limit, MarkReason};
use queuescope_wire::{ByteCount, Ecn, Nanos, QueueId};
use std::collections::VecDeque;

const US: u64 = 1_000;

/// The second pass of appendix A, with a time-shifted FIFO. As in the discipline, drops and marks of the L queue have a
/// count each, and a likelihood of 1 does not change the count.
struct Model {
    lq: VecDeque<(u64, u64, Nanos, Ecn)>,
    cq: VecDeque<(u64, u64, Nanos, Ecn)>,
    limit: u64,
    p: f64,
    p_c: f64,
    p_cl: f64,
    prevq: f64,
    c_count: f64,
    l_marks: f64,
    l_drops: f64,
}

/// A packet that left: its id, and whether it was marked.
type Left = (u64, bool);

fn recur(count: &mut f64, likelihood: f64) -> bool {
    if likelihood >= 1.0 {
        return true;
    }
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

impl Model {
    fn new(limit: u64) -> Self {
        Self {
            lq: VecDeque::new(),
            cq: VecDeque::new(),
            limit,
            p: 0.0,
            p_c: 0.0,
            p_cl: 0.0,
            prevq: 0.0,
            c_count: 0.0,
            l_marks: 0.0,
            l_drops: 0.0,
        }
    }

    fn enqueue(&mut self, id: u64, size: u64, ecn: Ecn, now: Nanos) -> bool {
        let bytes: u64 = self.lq.iter().chain(&self.cq).map(|(_, size, ..)| size).sum();
        if bytes + 1500 > self.limit {
            return false;
        }
        let queue = if matches!(ecn, Ecn::Ect1 | Ecn::Ce) { &mut self.lq } else { &mut self.cq };
        queue.push_back((id, size, now, ecn));
        true
    }

    fn dequeue(&mut self, now: Nanos, drops: &mut Vec<u64>) -> Option<Left> {
        let waited = |since: Nanos| (now - since).0 as f64 / 1e9;
        while !(self.lq.is_empty() && self.cq.is_empty()) {
            let l_first = match (self.lq.front(), self.cq.front()) {
                (Some(l), Some(c)) => (now - l.2).0 + 50 * MS >= (now - c.2).0,
                (l, _) => l.is_some(),
            };
            if l_first {
                let length = self.lq.len();
                let (id, _, since, _) = self.lq.pop_front().unwrap();
                if self.p_cl < 1.0 {
                    let native = if length > 1 { ((waited(since) - 800e-6) / 400e-6).clamp(0.0, 1.0) } else { 0.0 };
                    return Some((id, recur(&mut self.l_marks, native.max(self.p_cl))));
                }
                if recur(&mut self.l_drops, self.p_c) {
                    drops.push(id);
                    continue;
                }
                return Some((id, true));
            }
            let (id, _, _, ecn) = self.cq.pop_front().unwrap();
            if recur(&mut self.c_count, self.p_c) {
                if ecn == Ecn::NotEct || self.p_c >= 0.25 {
                    drops.push(id);
                    continue;
                }
                return Some((id, true));
            }
            return Some((id, false));
        }
        None
    }

    fn update(&mut self, now: Nanos) {
        let time =
            |queue: &VecDeque<(u64, u64, Nanos, Ecn)>| queue.front().map_or(0.0, |head| (now - head.2).0 as f64 / 1e9);
        let curq = time(&self.cq).max(time(&self.lq));
        self.p += 0.15 * (curq - 0.015) + 3.0 * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = (self.p * 2.0).min(1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }
}

fn shifted() -> DualPi2Params {
    DualPi2Params { scheduler: DualPi2Scheduler::TimeShiftedFifo(Nanos(50 * MS)), ..DualPi2Params::default() }
}

proptest! {
    #[test]
    fn dual_pi2_follows_the_pseudocode(
        steps in prop::collection::vec((0..3 * MS, prop::option::weighted(0.6, (40..1500u64, 0..4u8))), 0..600),
        limit in 5_000..500_000u64
    ) {
        let params = DualPi2Params { limit: Limit::Bytes(ByteCount(limit)), ..shifted() };
        let mut queue = DualPi2::new(params, outlet(8_000_000));
        let (mut model, mut sink, mut now, mut due) = (Model::new(limit), RecordingSink::default(), Nanos(0), None);
        let mut early = Vec::new();
        for (id, (gap, what)) in (0u64..).zip(&steps) {
            now = now + Nanos(*gap);
            while let Some(at) = due.filter(|due| *due <= now) {
                model.update(at);
                due = Some(at + Nanos(15 * MS));
            }
            fire(&mut queue, now);
            let drops = sink.dropped.len();
            match what {
                Some((size, bits)) => {
                    due = due.or(Some(now + Nanos(15 * MS)));
                    let ecn = Ecn::from_bits(*bits);
                    queue.enqueue(packet(id, *size, ecn), now, &mut sink);
                    prop_assert_eq!(model.enqueue(id, *size, ecn, now), sink.dropped.len() == drops);
                }
                None => {
                    let marks = sink.marked.len();
                    let left = queue.dequeue(now, &mut sink).map(|left| (left.packet.id.0, sink.marked.len() > marks));
                    prop_assert_eq!(left, model.dequeue(now, &mut early), "at {:?}", now);
                }
            }
            prop_assert!((queue.base_probability() - model.p).abs() < 1e-12);
        }
        let dropped = sink.dropped.iter().filter(|dropped| dropped.reason == DropReason::Early);
        let dropped: Vec<_> = dropped.map(|dropped| dropped.packet.id.0).collect();
        prop_assert_eq!(dropped, early);
    }
}

#[test]
fn defaults_follow_from_the_round_trip_time() {
    let params = DualPi2Params::default();
    assert_eq!((params.target, params.update), (Nanos(15 * MS), Nanos(15 * MS)));
    assert!((params.alpha - 0.15).abs() < 1e-12 && (params.beta - 3.0).abs() < 1e-12, "{params:?}");
    let other = DualPi2Params::for_round_trip(Nanos(MS), Nanos(1_500 * US));
    assert_eq!(other.update, Nanos(500 * US));
    assert!((other.beta - 200.0).abs() < 1e-9 && (other.alpha - 0.1 * 0.0005 / 2.25e-6).abs() < 1e-9, "{other:?}");
}

#[test]
fn the_ramp_is_linear_or_a_step() {
    let params = DualPi2Params::default();
    let at = |params: &DualPi2Params, micros: u64| params.ramp(Nanos(micros * US));
    assert_eq!([0, 800, 900, 1_000, 1_200, 5_000].map(|delay| at(&params, delay)), [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
    let step = params.with_step(Nanos(MS));
    assert_eq!([0, 999, 1_000, 1_001].map(|delay| at(&step, delay)), [0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn the_low_latency_queue_is_marked_by_its_own_step() {
    let mut queue = DualPi2::new(DualPi2Params::default().with_step(Nanos(MS)), outlet(100_000_000));
    let mut sink = RecordingSink::default();
    for id in 0..4 {
        queue.enqueue(packet(id, 1000, Ecn::Ect1), Nanos(0), &mut sink);
    }
    queue.enqueue(packet(4, 1000, Ecn::Ect0), Nanos(0), &mut sink);
    assert_eq!(queue.backlogs().1.packets, 4);
    queue.dequeue(Nanos(500 * US), &mut sink);
    assert!(sink.marked.is_empty(), "the delay is below the step");
    let left: Vec<_> = (0..4).map(|_| queue.dequeue(Nanos(2 * MS), &mut sink).unwrap()).collect();
    // The round robin serves the C queue after the first packet of L. The last packet of L was alone in its queue, so
    // the ramp does not mark it.
    assert_eq!(left.iter().map(|left| left.packet.id.0).collect::<Vec<_>>(), [4, 1, 2, 3]);
    assert_eq!(sink.marked, [(1, MarkReason::Threshold), (2, MarkReason::Threshold)]);
    assert_eq!(left.iter().map(|left| left.queue).collect::<Vec<_>>(), [3, 4, 4, 4].map(QueueId));
    assert_eq!(queue.stats().marked_ramp, 2);
}

#[test]
fn the_round_robin_gives_the_classic_queue_one_byte_of_sixteen() {
    let params = DualPi2Params { limit: Limit::None, update: Nanos(u64::MAX), ..DualPi2Params::default() };
    let mut queue = DualPi2::new(params, outlet(8_000_000));
    let mut sink = RecordingSink::default();
    for id in 0..3_200 {
        let ecn = if id % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
        queue.enqueue(packet(id, 1000, ecn), Nanos(0), &mut sink);
    }
    let classic = (0..1_600).filter(|_| queue.dequeue(Nanos(1), &mut sink).unwrap().queue == QueueId(3)).count();
    assert_eq!(classic, 100);
}

#[test]
fn a_time_shifted_fifo_serves_a_classic_packet_that_waited_long() {
    let mut queue = DualPi2::new(shifted(), outlet(8_000_000));
    let mut sink = RecordingSink::default();
    queue.enqueue(packet(0, 1000, Ecn::NotEct), Nanos(0), &mut sink);
    queue.enqueue(packet(1, 1000, Ecn::Ect1), Nanos(40 * MS), &mut sink);
    queue.enqueue(packet(2, 1000, Ecn::Ect1), Nanos(51 * MS), &mut sink);
    let order: Vec<_> = (0..3).map(|_| queue.dequeue(Nanos(60 * MS), &mut sink).unwrap().packet.id.0).collect();
    assert_eq!(order, [1, 0, 2]);
}

/// Overload by packets that ignore marks: both queues drop with p_C, and every other packet of the L queue is marked.
#[test]
fn overload_drops_in_both_queues() {
    let mut queue = DualPi2::new(DualPi2Params { limit: Limit::None, ..DualPi2Params::default() }, outlet(8_000_000));
    let mut sink = RecordingSink::default();
    let mut left = [0u64; 2];
    // A packet arrives every 500 us, half of them ECT(1) and half ECT(0). The link sends one every millisecond.
    for id in 0..60_000u64 {
        let now = Nanos(id * 500 * US);
        fire(&mut queue, now);
        let ecn = if id % 4 < 2 { Ecn::Ect1 } else { Ecn::Ect0 };
        queue.enqueue(packet(id, 1000, ecn), now, &mut sink);
        if id % 2 == 0
            && let Some(departure) = queue.dequeue(now, &mut sink)
        {
            left[usize::from(departure.queue.0 - 3)] += 1;
            if id > 40_000 && departure.queue.0 == 4 {
                assert_eq!(departure.packet.ecn, Ecn::Ce);
            }
        }
    }
    assert_eq!(queue.coupled_probability(), 1.0);
    let stats = *queue.stats();
    assert!(stats.early_classic > 1_000 && stats.early_low_latency > 1_000, "{stats:?}");
    // Half of the arrivals must be dropped: p_C settles near a half, and the delay near the target.
    assert!((0.4..0.6).contains(&queue.drop_probability()), "{}", queue.drop_probability());
    assert!(queue.backlog().packets < 60, "{:?}", queue.backlog());
    assert_eq!(stats.offered, 60_000);
    assert_eq!(left[0] + left[1] + queue.backlog().packets + sink.dropped.len() as u64, 60_000);
}
