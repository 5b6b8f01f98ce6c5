//! Several tail-drop queues of one port, and the scheduler that serves them.
//!
//! A driver puts it behind a [`Pipeline`](crate::Pipeline), whose [`Ingress::Enqueue`](crate::Ingress::Enqueue) names
//! the queue. Used as a [`Discipline`], it takes a packet's class as the index of its queue.
//!
//! A departure carries the id of the queue that it left, counted from the outlet's. Its `backlog_in` and `backlog_out`
//! cover *all* queues of the port: that is what may be sent before it, depending on the scheduler.
//!
//! Deficit round robin is that of Shreedhar and Varghese (SIGCOMM 1995). A queue that becomes active joins the end of
//! the list of active queues with no deficit. Each turn adds the quantum. An emptied queue leaves the list and loses
//! its deficit. Round robin is the same list with one packet per turn. Strict priority does not interrupt a packet that
//! the link is sending.

use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::{Discipline, DropReason, Dropped, Limit, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Nanos, Packet, QueueId};
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// The parameters of the queues of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiQueueParams {
    /// The number of queues. 8 by default: the priorities of IEEE 802.1Q.
    pub queues: NonZeroU16,
    /// Which queue is served next.
    pub scheduler: Scheduler,
    /// The limit of each queue. A limit in time is measured at the full rate of the link.
    pub limit: Limit,
    /// The limit of all queues together.
    pub shared_limit: Limit,
}

impl Default for MultiQueueParams {
    fn default() -> Self {
        Self {
            queues: const { NonZeroU16::new(8).unwrap() },
            scheduler: Scheduler::default(),
            limit: Limit::None,
            shared_limit: Limit::None,
        }
    }
}

impl MultiQueueParams {
    /// One queue with a limit.
    pub fn one(limit: Limit) -> Self {
        Self { queues: NonZeroU16::MIN, scheduler: Scheduler::RoundRobin, limit, shared_limit: Limit::None }
    }
}

/// Which queue of a port is served next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The queues with packets in turn, one packet each.
    #[default]
    RoundRobin,
    /// The queues with packets in turn, on average a quantum of bytes each. A dequeue takes constant time if the
    /// quantum is at least the largest packet's size. A quantum of 0 counts as one byte.
    Deficit {
        /// Bytes per turn.
        quantum: ByteCount,
    },
    /// The queue with the lowest index that has packets: queue 0 before all others.
    StrictPriority,
}

/// Several tail-drop queues of one port.
///
/// ```
/// use queuescope_queue::{Limit, MultiQueue, MultiQueueParams, Outlet, Scheduler};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let params = MultiQueueParams { scheduler: Scheduler::StrictPriority, ..MultiQueueParams::default() };
/// let mut port = MultiQueue::new(params, outlet);
/// for queue in [7, 3, 0] {
///     let packet = Packet { id: PacketId(u64::from(queue)), size: ByteCount(100), ..Packet::default() };
///     port.enqueue_to(queue, packet, Nanos::ZERO, &mut NoSink);
/// }
/// let order: Vec<_> = std::iter::from_fn(|| port.dequeue(Nanos(1), &mut NoSink)).map(|left| left.queue.0).collect();
/// assert_eq!(order, [0, 3, 7]);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct MultiQueue {
    first: QueueId,
    limit: CompiledLimit,
    shared_limit: CompiledLimit,
    queues: Vec<Fifo>,
    backlog: Backlog,
    turns: SchedulerState,
    stats: MultiQueueStats,
}

/// The counters of the queues of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MultiQueueStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because a limit was reached.
    pub overlimit: u64,
    /// Of these, packets that were within the limit of their own queue.
    pub over_shared_limit: u64,
}

counters!(MultiQueueStats { offered, departed, overlimit, over_shared_limit });

impl MultiQueue {
    /// Empty queues.
    pub fn new(params: MultiQueueParams, outlet: Outlet) -> Self {
        let queues = usize::from(params.queues.get());
        Self {
            first: outlet.queue,
            limit: CompiledLimit::new(params.limit, &outlet),
            shared_limit: CompiledLimit::new(params.shared_limit, &outlet),
            queues: (0..queues).map(|_| Fifo::default()).collect(),
            backlog: Backlog::default(),
            turns: SchedulerState::new(params.scheduler, queues),
            stats: MultiQueueStats::default(),
        }
    }

    /// Enqueues a packet into one of the queues, by index from 0. An index beyond the last means the last.
    #[inline]
    pub fn enqueue_to(&mut self, queue: u16, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        let number = usize::from(queue).min(self.queues.len() - 1);
        let fifo = &mut self.queues[number];
        let fits = self.limit.admits(fifo.backlog(), packet.size);
        if !fits || !self.shared_limit.admits(self.backlog, packet.size) {
            self.stats.overlimit += 1;
            self.stats.over_shared_limit += u64::from(fits);
            sink.dropped(&Dropped::on_arrival(packet, self.id(number), now, DropReason::Overlimit));
            return;
        }
        let was_empty = fifo.backlog().packets == 0;
        fifo.push_behind(packet, now, self.backlog);
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
        if was_empty {
            self.turns.activate(number);
        }
    }

    /// Dequeues the next packet of the queue that is served next, or returns `None` if all are empty.
    #[inline]
    pub fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        self.dequeue_weighted(now, sink, |_| 1)
    }

    /// The same, with a weight for each queue by its index: with [`Scheduler::Deficit`], a turn is worth that many quanta. It
    /// is read when a turn begins; 0 counts as 1. Other schedulers have no weights.
    #[inline]
    pub fn dequeue_weighted(
        &mut self,
        now: Nanos,
        _sink: &mut impl Sink,
        weight: impl Fn(u16) -> u32,
    ) -> Option<Departure> {
        let number = self.turns.next(&self.queues, weight)?;
        let first = self.queues[number].pop()?;
        self.turns.served(number, first.packet.size, self.queues[number].backlog().packets == 0);
        self.backlog.packets -= 1;
        self.backlog.bytes -= first.packet.size;
        self.stats.departed += 1;
        Some(first.depart(self.id(number), now, self.backlog))
    }

    /// The backlog of all queues.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The backlog of one queue, by index from 0; empty for an index that does not exist.
    #[inline]
    pub fn backlog_of(&self, queue: u16) -> Backlog {
        self.queues.get(usize::from(queue)).map_or_else(Backlog::default, Fifo::backlog)
    }

    /// The counters so far.
    pub fn stats(&self) -> &MultiQueueStats {
        &self.stats
    }

    #[inline]
    fn id(&self, number: usize) -> QueueId {
        QueueId(self.first.0.wrapping_add(number as u16))
    }
}

impl Discipline for MultiQueue {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.enqueue_to(u16::from(packet.class.0), packet, now, sink);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        self.dequeue(now, sink)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn is_fifo(&self) -> bool {
        self.queues.len() == 1
    }

    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// The state of a scheduler.
#[derive(Debug)]
enum SchedulerState {
    RoundRobin {
        /// The queues with packets. The first is served next.
        active: VecDeque<usize>,
    },
    Deficit {
        quantum: u64,
        active: VecDeque<usize>,
        /// Bytes that each queue may still send in its turn.
        deficits: Vec<u64>,
        /// Whether the first active queue has received its quantum for this turn.
        granted: bool,
    },
    StrictPriority {
        /// A bit for each queue that has packets.
        active: Vec<u64>,
    },
}

impl SchedulerState {
    fn new(scheduler: Scheduler, queues: usize) -> Self {
        let active = VecDeque::with_capacity(queues);
        match scheduler {
            Scheduler::RoundRobin => Self::RoundRobin { active },
            Scheduler::Deficit { quantum } => {
                Self::Deficit { quantum: quantum.0.max(1), active, deficits: vec![0; queues], granted: false }
            }
            Scheduler::StrictPriority => Self::StrictPriority { active: vec![0; queues.div_ceil(64)] },
        }
    }

    /// Records that an empty queue has received a packet.
    #[inline]
    fn activate(&mut self, number: usize) {
        match self {
            Self::RoundRobin { active } | Self::Deficit { active, .. } => active.push_back(number),
            Self::StrictPriority { active } => active[number / 64] |= 1 << (number % 64),
        }
    }

    /// The queue that is served next.
    #[inline]
    fn next(&mut self, queues: &[Fifo], weight: impl Fn(u16) -> u32) -> Option<usize> {
        match self {
            Self::RoundRobin { active } => active.front().copied(),
            Self::Deficit { quantum, active, deficits, granted } => loop {
                let number = *active.front()?;
                if !*granted {
                    let turn = quantum.saturating_mul(weight(number as u16).max(1).into());
                    deficits[number] = deficits[number].saturating_add(turn);
                    *granted = true;
                }
                if queues[number].front().is_none_or(|first| first.packet.size.0 <= deficits[number]) {
                    return Some(number);
                }
                active.rotate_left(1);
                *granted = false;
            },
            Self::StrictPriority { active } => {
                let word = active.iter().position(|&word| word != 0)?;
                Some(word * 64 + active[word].trailing_zeros() as usize)
            }
        }
    }

    /// Records that the queue that was served has sent a packet, and whether it is empty now.
    #[inline]
    fn served(&mut self, number: usize, size: ByteCount, emptied: bool) {
        match self {
            Self::RoundRobin { active } => {
                active.pop_front();
                if !emptied {
                    active.push_back(number);
                }
            }
            Self::Deficit { active, deficits, granted, .. } => {
                deficits[number] -= size.0;
                if emptied {
                    active.pop_front();
                    deficits[number] = 0;
                    *granted = false;
                }
            }
            Self::StrictPriority { active } => {
                if emptied {
                    active[number / 64] &= !(1 << (number % 64));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MarkReason;
    use proptest::prelude::*;
    use queuescope_wire::{Class, Ecn, FlowId, PacketId, Rate};

    /// Expects drops and records them.
    #[derive(Default)]
    struct Drops(Vec<(u64, QueueId)>);

    impl Sink for Drops {
        fn dropped(&mut self, dropped: &Dropped) {
            assert_eq!((dropped.reason, dropped.enqueued), (DropReason::Overlimit, None));
            self.0.push((dropped.packet.id.0, dropped.queue));
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    fn packet(id: u64, size: u64) -> Packet {
        Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
    }

    fn queues(count: u16, scheduler: Scheduler, limit: Limit, shared_limit: Limit) -> MultiQueue {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let params = MultiQueueParams { queues: NonZeroU16::new(count).unwrap(), scheduler, limit, shared_limit };
        MultiQueue::new(params, Outlet { overhead: 0, rate, queue: QueueId(10), seed: 0 })
    }

    /// Enqueues packets as (queue, size), with ids from 0, and returns the order in which they leave.
    fn order(scheduler: Scheduler, packets: &[(u16, u64)]) -> Vec<u64> {
        let mut port = queues(3, scheduler, Limit::None, Limit::None);
        let mut sink = Drops::default();
        for (id, &(queue, size)) in packets.iter().enumerate() {
            port.enqueue_to(queue, packet(id as u64, size), Nanos(0), &mut sink);
        }
        std::iter::from_fn(|| port.dequeue(Nanos(1), &mut sink)).map(|left| left.packet.id.0).collect()
    }

    #[test]
    fn round_robin_takes_a_packet_of_each() {
        let packets = [(1, 100), (1, 100), (1, 100), (0, 900), (0, 900), (2, 50)];
        assert_eq!(order(Scheduler::RoundRobin, &packets), [0, 3, 5, 1, 4, 2]);
    }

    #[test]
    fn strict_priority_takes_the_first_queue_first() {
        let packets = [(2, 100), (1, 100), (2, 100), (0, 900), (1, 900), (0, 50)];
        assert_eq!(order(Scheduler::StrictPriority, &packets), [3, 5, 1, 4, 0, 2]);
    }

    /// The example of the paper's figures 2 and 3: quantum 500. The first queue holds 200, 750 and 20, the next one 500
    /// and 500. In the first round the 200 leaves and 300 stay as deficit, which with the next quantum suffice for 750.
    #[test]
    fn deficits_carry_over_to_the_next_turn() {
        let packets = [(0, 200), (0, 750), (0, 20), (1, 500), (1, 500), (2, 501)];
        let scheduler = Scheduler::Deficit { quantum: ByteCount(500) };
        // Round 1: 0; then 500 of queue 1; 501 does not fit. Round 2: 750 and 20 (deficit 800); 500; then 501.
        assert_eq!(order(scheduler, &packets), [0, 3, 1, 2, 4, 5]);
    }

    #[test]
    fn an_emptied_queue_keeps_no_deficit() {
        let mut port = queues(2, Scheduler::Deficit { quantum: ByteCount(1000) }, Limit::None, Limit::None);
        let mut sink = Drops::default();
        port.enqueue_to(0, packet(0, 100), Nanos(0), &mut sink);
        assert_eq!(port.dequeue(Nanos(0), &mut sink).unwrap().packet.id, PacketId(0));
        // With 900 bytes of deficit left it could send both at once.
        for (id, (queue, size)) in [(0, 1000), (0, 900), (1, 1000)].into_iter().enumerate() {
            port.enqueue_to(queue, packet(id as u64 + 1, size), Nanos(0), &mut sink);
        }
        let left: Vec<_> = std::iter::from_fn(|| port.dequeue(Nanos(1), &mut sink)).map(|d| d.packet.id.0).collect();
        assert_eq!(left, [1, 3, 2]);
    }

    #[test]
    fn departures_show_the_backlog_of_all_queues() {
        let mut port = queues(3, Scheduler::StrictPriority, Limit::None, Limit::None);
        let mut sink = Drops::default();
        port.enqueue_to(2, packet(0, 100), Nanos(0), &mut sink);
        port.enqueue_to(0, packet(1, 30), Nanos(5), &mut sink);
        port.enqueue_to(9, packet(2, 7), Nanos(6), &mut sink);
        let backlog = |packets, bytes| Backlog { packets, bytes: ByteCount(bytes) };
        assert_eq!(
            (port.backlog(), port.backlog_of(2), port.backlog_of(1)),
            (backlog(3, 137), backlog(2, 107), backlog(0, 0))
        );
        assert_eq!((port.backlog_of(9), port.queues()), (Backlog::default(), 3));
        let first = port.dequeue(Nanos(7), &mut sink).unwrap();
        assert_eq!((first.queue, first.backlog_in, first.backlog_out), (QueueId(10), backlog(1, 100), backlog(2, 107)));
        let second = port.dequeue(Nanos(8), &mut sink).unwrap();
        assert_eq!((second.queue, second.backlog_in, second.backlog_out), (QueueId(12), backlog(0, 0), backlog(1, 7)));
    }

    #[test]
    fn each_limit_holds() {
        let mut port = queues(2, Scheduler::RoundRobin, Limit::Packets(2), Limit::Bytes(ByteCount(350)));
        let mut sink = Drops::default();
        for (id, (queue, size)) in [(0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (1, 50)].into_iter().enumerate() {
            port.enqueue_to(queue, packet(id as u64, size), Nanos(0), &mut sink);
        }
        assert_eq!(sink.0, [(2, QueueId(10)), (4, QueueId(11))]);
        let stats = MultiQueueStats { offered: 6, departed: 0, overlimit: 2, over_shared_limit: 1 };
        assert_eq!(port.stats(), &stats);
    }

    /// A turn of weight 3 is worth three quanta; the weight is read when it begins.
    #[test]
    fn a_turn_is_as_many_quanta_as_the_weight() {
        let mut port = queues(2, Scheduler::Deficit { quantum: ByteCount(100) }, Limit::None, Limit::None);
        let mut sink = Drops::default();
        for id in 0..12 {
            port.enqueue_to((id % 2) as u16, packet(id, 100), Nanos(0), &mut sink);
        }
        let mut left = |count, weights: [u32; 2]| -> Vec<u16> {
            let weight = |queue| weights[usize::from(queue)];
            (0..count).map(|_| port.dequeue_weighted(Nanos(1), &mut sink, weight).unwrap().queue.0 - 10).collect()
        };
        assert_eq!(left(4, [3, 1]), [0, 0, 0, 1]);
        assert_eq!(left(4, [1, 3]), [0, 1, 1, 1]);
        assert_eq!(left(4, [0, 0]), [0, 1, 0, 1], "0 counts as 1");
    }

    fn scheduler() -> impl Strategy<Value = Scheduler> {
        prop_oneof![
            Just(Scheduler::RoundRobin),
            (0..3000u64).prop_map(|quantum| Scheduler::Deficit { quantum: ByteCount(quantum) }),
            Just(Scheduler::StrictPriority),
        ]
    }

    proptest! {
        /// While two queues always have packets, their sent bytes differ by no more than the fairness bound of deficit
        /// round robin: a quantum and two of the largest packets.
        #[test]
        fn deficit_round_robin_is_fair_in_bytes(
            quantum in 1..3000u64, sizes in prop::collection::vec((40..1500u64, 40..1500u64), 100)
        ) {
            let mut port = queues(2, Scheduler::Deficit { quantum: ByteCount(quantum) }, Limit::None, Limit::None);
            let mut sink = Drops::default();
            for (first, second) in sizes {
                port.enqueue_to(0, packet(0, first), Nanos(0), &mut sink);
                port.enqueue_to(1, packet(0, second), Nanos(0), &mut sink);
            }
            let mut sent = [0i64; 2];
            while port.backlog_of(0).packets > 1 && port.backlog_of(1).packets > 1 {
                let left = port.dequeue(Nanos(1), &mut sink).unwrap();
                sent[usize::from(left.queue.0 - 10)] += left.packet.size.0 as i64;
                prop_assert!((sent[0] - sent[1]).unsigned_abs() <= quantum + 2 * 1500);
            }
        }

        /// The link never idles while a packet waits, and the backlog is the sum of the queues.
        #[test]
        fn the_link_never_idles_while_a_packet_waits(
            scheduler in scheduler(), steps in prop::collection::vec(prop::option::of((0..5u16, 1..1500u64)), 0..80)
        ) {
            let mut port = queues(5, scheduler, Limit::None, Limit::None);
            let mut sink = Drops::default();
            for (now, step) in steps.into_iter().enumerate() {
                match step {
                    Some((queue, size)) => port.enqueue_to(queue, packet(0, size), Nanos(now as u64), &mut sink),
                    None => {
                        let before = port.backlog();
                        let left = port.dequeue(Nanos(now as u64), &mut sink);
                        prop_assert_eq!(left.is_some(), before.packets > 0);
                    }
                }
                let parts: Vec<_> = (0..5).map(|queue| port.backlog_of(queue)).collect();
                let packets = parts.iter().map(|part| part.packets).sum();
                let bytes = ByteCount(parts.iter().map(|part| part.bytes.0).sum());
                prop_assert_eq!(port.backlog(), Backlog { packets, bytes });
            }
        }
    }
}
