//! FQ-CoDel (RFC 8290): a queue for each hash of the flow, each under CoDel. Deficit round robin serves them, with a
//! preference for queues that just became active.
//!
//! Follows sections 3 and 4 of the RFC. All departures carry the outlet's id and the backlog of all queues together:
//! this is one queue in which each flow has a place of its own.
//!
//! Choices and deviations:
//!
//! - When there are no old queues, Linux removes a new queue at once that is found empty. Here, as in the RFC and ns-3,
//!   the queue moves to the list of old queues. The order of service is the same.
//! - Linux and ns-3 request a packet once more when the link has sent everything, which makes all queues inactive. A
//!   flow that sends again then counts as new. The RFC does not mention this. Here the ns-3 flavour does it; with the
//!   others, queues stay in their lists.
//! - After a batch of drops Linux also raises the drop count of that queue's CoDel. The RFC and this implementation do
//!   not.
//! - A limit in bytes may need more than one batch of drops. Batches repeat until the limit holds.
//! - If several queues have the same highest number of bytes, the one that is served first loses packets (Linux: the
//!   lowest index; ns-3: the queue that had its first packet first).

use crate::codel::{CodelLaw, CodelState, ControlledQueue};
use crate::counters::counters;
use crate::fifo::{Fifo, Waiting};
use crate::hash_queues::FlowHash;
use crate::limit::CompiledLimit;
use crate::{CodelFlavour, CodelParams, Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, FlowId, Nanos, Packet, QueueId};
use std::collections::VecDeque;
use std::num::{NonZeroU16, NonZeroU32};

/// The parameters of FQ-CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodelParams {
    /// The limit of all queues together. 10240 packets (RFC 8290 section 5.2). A limit in time is measured at the full
    /// rate of the link, and includes the new packet.
    pub limit: Limit,
    /// The most bytes of all queues together, in addition to the limit. None by default; Linux has 32 MB, counting
    /// buffers rather than packets.
    pub memory_limit: Option<ByteCount>,
    /// The number of queues: 1024 (RFC 8290 section 5.2).
    pub queues: NonZeroU16,
    /// The quantum, the bytes that a queue may send in its turn: 1514, the largest Ethernet frame (RFC 8290 section
    /// 5.2, ns-3: the MTU). A dequeue takes constant time if no packet is larger. A quantum of 0 counts as one byte.
    pub quantum: ByteCount,
    /// The most packets that are dropped at once from the queue with the most bytes: 64 (RFC 8290 section 4.1).
    pub drop_batch: NonZeroU32,
    /// The sojourn time that is acceptable for longer than an interval: 5 ms.
    pub target: Nanos,
    /// The interval, about the longest usual round-trip time: 100 ms.
    pub interval: Nanos,
    /// CoDel drops a packet only if more than this many bytes stay behind it in its queue. 1500 (ns-3).
    pub min_bytes: ByteCount,
    /// Whether ECN-capable packets are marked instead of dropped by CoDel. On (RFC 8290 section 5.2).
    pub ecn: bool,
    /// An ECN-capable packet with a longer sojourn time than this is marked. None by default (RFC 8290 section 5.2).
    pub ce_threshold: Option<Nanos>,
    /// The implementation of CoDel to follow. With that of ns-3 also its limit for each queue, its queues that an idle
    /// link makes inactive, and its choice among equally fat queues.
    pub flavour: CodelFlavour,
    /// How flows are assigned to queues. By hash (RFC 8290 section 4.1.1).
    pub placement: Placement,
}

/// How flows are assigned to queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// By a hash of the flow id and the outlet's seed. By chance some flows share a queue.
    #[default]
    Hash,
    /// By the flow id modulo the number of queues. Flows with neighbouring ids never share a queue. For comparisons
    /// with implementations whose hash separates the flows.
    Number,
}

impl Default for FqCodelParams {
    fn default() -> Self {
        let CodelParams { target, interval, min_bytes, ce_threshold, flavour, .. } = CodelParams::default();
        Self {
            limit: Limit::Packets(10_240),
            memory_limit: None,
            queues: const { NonZeroU16::new(1024).unwrap() },
            quantum: ByteCount(1514),
            drop_batch: const { NonZeroU32::new(64).unwrap() },
            target,
            interval,
            min_bytes,
            ecn: true,
            ce_threshold,
            flavour,
            placement: Placement::Hash,
        }
    }
}

/// An FQ-CoDel queue.
///
/// ```
/// use queuescope_queue::{Discipline, FqCodel, FqCodelParams, Outlet};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, FlowId, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = FqCodel::new(FqCodelParams::default(), outlet);
/// let (bulk, call) = (FlowId(1), FlowId(2));
/// for n in 0..101 {
///     let flow = if n < 100 { bulk } else { call };
///     let packet = Packet { id: PacketId(n), flow, size: ByteCount(1500), ..Packet::default() };
///     queue.enqueue(packet, Nanos::ZERO, &mut NoSink);
/// }
/// let mut leaving = std::iter::from_fn(|| queue.dequeue(Nanos(1), &mut NoSink));
/// let place = leaving.position(|departure| departure.packet.flow == call);
/// println!("the call came after 100 packets, and leaves after {place:?}");
/// assert!(place < Some(5));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct FqCodel {
    queue: QueueId,
    hash: FlowHash,
    placement: Placement,
    room: CompiledLimit,
    memory_limit: ByteCount,
    quantum: i64,
    drop_batch: u32,
    /// Follows ns-3 3.37 in three points. Each queue has the limit too, and drops arrivals when it is full: the queues
    /// are `CoDelQueueDisc`s with that limit, so a single flow fills its queue, and nothing is dropped from the fattest
    /// queue. The link requests a packet once more when it has sent everything, which makes all queues inactive (as in
    /// Linux). Of equally fat queues the one that had its first packet first loses, because ns-3 searches in that
    /// order, not in the order of service.
    as_ns3: bool,
    law: CodelLaw,
    flows: Vec<Flow>,
    /// Queues that became active and have not used up their first quantum. The first is served next.
    new: VecDeque<u16>,
    /// The other active queues.
    old: VecDeque<u16>,
    /// The number of queues that ever had a packet.
    known: u32,
    backlog: Backlog,
    stats: FqCodelStats,
}

/// The counters of an FQ-CoDel queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqCodelStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because their own queue was full (ns-3).
    pub overlimit: u64,
    /// Packets that were dropped from the queue with the most bytes, because the limit of all queues was reached.
    pub fattest_flow: u64,
    /// Packets that CoDel dropped.
    pub target: u64,
    /// Packets that CoDel marked instead of dropping them.
    pub marked_target: u64,
    /// Packets that were marked because their sojourn time was above the CE threshold.
    pub marked_threshold: u64,
    /// How often a queue became active.
    pub new_flows: u64,
}

counters!(FqCodelStats {
    offered,
    departed,
    overlimit,
    fattest_flow,
    target,
    marked_target,
    marked_threshold,
    new_flows,
});

/// One of the queues.
#[derive(Debug, Default)]
struct Flow {
    fifo: Fifo,
    control: CodelState,
    /// Bytes that it may still send in its turn.
    deficit: i64,
    /// Whether it is in one of the lists.
    active: bool,
    /// The position of this queue in the order of first packets, from 1; 0 if it had none yet.
    rank: u32,
}

impl FqCodel {
    /// Creates empty queues. The outlet's seed determines which flows share one.
    pub fn new(params: FqCodelParams, outlet: Outlet) -> Self {
        let FqCodelParams { limit, target, interval, min_bytes, ecn, ce_threshold, flavour, .. } = params;
        let queues = usize::from(params.queues.get());
        Self {
            queue: outlet.queue,
            hash: FlowHash::new(outlet.seed, params.queues),
            placement: params.placement,
            room: CompiledLimit::new(limit, &outlet),
            memory_limit: params.memory_limit.unwrap_or(ByteCount(u64::MAX)),
            quantum: i64::try_from(params.quantum.0).unwrap_or(i64::MAX / 2).clamp(1, i64::MAX / 2),
            drop_batch: params.drop_batch.get(),
            as_ns3: flavour == CodelFlavour::Ns3,
            law: CodelLaw::new(&CodelParams { limit, target, interval, min_bytes, ecn, ce_threshold, flavour }),
            flows: (0..queues).map(|_| Flow::default()).collect(),
            new: VecDeque::with_capacity(queues),
            old: VecDeque::with_capacity(queues),
            known: 0,
            backlog: Backlog::default(),
            stats: FqCodelStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &FqCodelStats {
        &self.stats
    }

    /// The index of a flow's queue.
    #[inline]
    fn queue_of(&self, flow: FlowId) -> u16 {
        match self.placement {
            Placement::Hash => self.hash.queue(flow),
            Placement::Number => (flow.0 % self.flows.len() as u32) as u16,
        }
    }

    /// Drops up to half of the bytes of the queue with the most bytes, and no more packets than a batch.
    fn drop_from_fattest(&mut self, now: Nanos, sink: &mut impl Sink) {
        let (mut fattest, mut most, mut best) = (None, 0, 0);
        for &number in self.new.iter().chain(&self.old) {
            let Flow { fifo, rank, .. } = &self.flows[usize::from(number)];
            let Backlog { packets, bytes } = fifo.backlog();
            let instead = bytes.0 > most || self.as_ns3 && bytes.0 == most && *rank < best;
            if packets > 0 && (fattest.is_none() || instead) {
                (fattest, most, best) = (Some(number), bytes.0, *rank);
            }
        }
        let Some(fattest) = fattest else { return };
        let fattest = &mut self.flows[usize::from(fattest)].fifo;
        let mut dropped = 0;
        for _ in 0..self.drop_batch {
            let Some(Waiting { packet, enqueued, .. }) = fattest.pop() else { return };
            self.backlog.packets -= 1;
            self.backlog.bytes -= packet.size;
            self.stats.fattest_flow += 1;
            sink.dropped(&Dropped::from_queue(packet, self.queue, enqueued, now, DropReason::FattestFlow));
            dropped += packet.size.0;
            if dropped >= most / 2 {
                return;
            }
        }
    }

    fn is_over_limit(&self) -> bool {
        self.backlog.packets > 0 && (!self.room.holds(self.backlog) || self.backlog.bytes > self.memory_limit)
    }
}

impl Discipline for FqCodel {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        let number = self.queue_of(packet.flow);
        let flow = &mut self.flows[usize::from(number)];
        if self.as_ns3 && !self.room.admits(flow.fifo.backlog(), packet.size) {
            self.stats.overlimit += 1;
            sink.dropped(&Dropped::on_arrival(packet, self.queue, now, DropReason::Overlimit));
            return;
        }
        flow.fifo.push_behind(packet, now, self.backlog);
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
        if !flow.active {
            flow.active = true;
            flow.deficit = self.quantum;
            if flow.rank == 0 {
                self.known += 1;
                flow.rank = self.known;
            }
            self.new.push_back(number);
            self.stats.new_flows += 1;
        }
        while self.is_over_limit() {
            self.drop_from_fattest(now, sink);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[usize::from(number)];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let mut line = FlowQueue {
                queue: self.queue,
                fifo: &mut flow.fifo,
                backlog: &mut self.backlog,
                stats: &mut self.stats,
                sink,
                now,
            };
            if let Some(first) = flow.control.next(&self.law, &mut line, now) {
                flow.deficit = flow.deficit.saturating_sub_unsigned(first.packet.size.0);
                self.stats.departed += 1;
                return Some(first.depart(self.queue, now, self.backlog));
            }
            list.pop_front();
            if from_new {
                // Not removed at once. Otherwise a flow that sends little would be new with each packet, and never
                // wait.
                self.old.push_back(number);
            } else {
                flow.active = false;
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    #[inline]
    fn polls_when_empty(&self) -> bool {
        self.as_ns3 && self.backlog.packets == 0 && !(self.new.is_empty() && self.old.is_empty())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// One of the queues, with the backlog that all share and the sink for drops and marks.
struct FlowQueue<'a, S> {
    queue: QueueId,
    fifo: &'a mut Fifo,
    backlog: &'a mut Backlog,
    stats: &'a mut FqCodelStats,
    sink: &'a mut S,
    now: Nanos,
}

impl<S: Sink> ControlledQueue for FlowQueue<'_, S> {
    #[inline]
    fn pop(&mut self) -> Option<Waiting> {
        let first = self.fifo.pop()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= first.packet.size;
        Some(first)
    }

    #[inline]
    fn bytes(&self) -> ByteCount {
        self.fifo.backlog().bytes
    }

    fn drop(&mut self, waiting: Waiting) {
        self.stats.target += 1;
        let Waiting { packet, enqueued, .. } = waiting;
        self.sink.dropped(&Dropped::from_queue(packet, self.queue, enqueued, self.now, DropReason::Target));
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason) {
        match reason {
            MarkReason::Threshold => self.stats.marked_threshold += 1,
            _ => self.stats.marked_target += 1,
        }
        self.sink.marked(packet, reason, self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::{Class, Ecn, PacketId, Rate};

    struct Drops(Vec<(u64, DropReason)>);

    impl Sink for Drops {
        fn dropped(&mut self, dropped: &Dropped) {
            self.0.push((dropped.packet.id.0, dropped.reason));
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    fn queue(params: FqCodelParams) -> FqCodel {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        FqCodel::new(params, Outlet { overhead: 0, rate, queue: QueueId(0), seed: 1 })
    }

    fn packet(id: u64, flow: u32, size: u64) -> Packet {
        Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
    }

    /// ns-3's test of deficits: quantum 90 and packets of 120 bytes. The flows' deficits and the lists after each step.
    #[test]
    fn deficits_follow_the_table() {
        let mut queue = queue(FqCodelParams { quantum: ByteCount(90), ..FqCodelParams::default() });
        let mut drops = Drops(Vec::new());
        let (a, b) = (queue.hash.queue(FlowId(0)), queue.hash.queue(FlowId(1)));
        assert_ne!(a, b);
        let flow = |queue: &FqCodel, number: u16| {
            let Flow { deficit, active, .. } = queue.flows[usize::from(number)];
            let list = match (queue.new.contains(&number), queue.old.contains(&number)) {
                (true, false) => "new",
                (false, true) => "old",
                (false, false) if !active => "inactive",
                _ => panic!("{queue:?}"),
            };
            (deficit, list)
        };
        let mut id = 0;
        let mut enqueue = |queue: &mut FqCodel, flow| {
            queue.enqueue(packet(id, flow, 120), Nanos(0), &mut Drops(Vec::new()));
            id += 1;
        };
        enqueue(&mut queue, 0);
        assert_eq!(flow(&queue, a), (90, "new"));
        assert_eq!(queue.dequeue(Nanos(0), &mut drops).unwrap().packet.flow, FlowId(0));
        assert_eq!(flow(&queue, a).0, -30);
        for flow in [0, 0, 1, 1] {
            enqueue(&mut queue, flow);
        }
        assert_eq!(flow(&queue, b), (90, "new"));
        for (served, now_a, now_b) in [
            (Some(1), (60, "old"), (-30, "new")),
            (Some(0), (-60, "old"), (60, "old")),
            (Some(1), (30, "old"), (-60, "old")),
            (Some(0), (-90, "old"), (30, "old")),
            (None, (90, "inactive"), (30, "inactive")),
        ] {
            let left = queue.dequeue(Nanos(0), &mut drops);
            assert_eq!(left.map(|left| left.packet.flow.0), served);
            assert_eq!((flow(&queue, a), flow(&queue, b)), (now_a, now_b), "{served:?}");
        }
        assert!(drops.0.is_empty());
    }

    /// RFC 8290 section 4.1: packets are dropped from the head of the queue with the most bytes, half of them or a
    /// batch.
    #[test]
    fn the_fattest_loses_half_or_a_batch() {
        let limit = Limit::Packets(10);
        let mut queue =
            queue(FqCodelParams { limit, drop_batch: NonZeroU32::new(3).unwrap(), ..FqCodelParams::default() });
        let mut drops = Drops(Vec::new());
        // Flow 1 has more packets, flow 0 more bytes: 4 of 1000 against 6 of 100.
        for id in 0..4 {
            queue.enqueue(packet(id, 0, 1000), Nanos(0), &mut drops);
        }
        for id in 4..10 {
            queue.enqueue(packet(id, 1, 100), Nanos(0), &mut drops);
        }
        assert!(drops.0.is_empty());
        queue.enqueue(packet(10, 2, 50), Nanos(0), &mut drops);
        assert_eq!(drops.0, [(0, DropReason::FattestFlow), (1, DropReason::FattestFlow)]);
        // Half of eleven is more than a batch.
        for id in 11..14 {
            queue.enqueue(packet(id, 1, 1500), Nanos(0), &mut drops);
        }
        let batch: Vec<_> = drops.0[2..].iter().map(|&(id, _)| id).collect();
        assert_eq!(batch, [4, 5, 6]);
        assert_eq!(queue.stats().fattest_flow, 5);
    }

    #[test]
    fn of_two_equally_fat_the_one_served_first_loses() {
        let mut queue = queue(FqCodelParams { limit: Limit::Packets(4), ..FqCodelParams::default() });
        let mut drops = Drops(Vec::new());
        for (id, flow) in [1, 0, 1, 0].into_iter().enumerate() {
            queue.enqueue(packet(id as u64, flow, 1000), Nanos(0), &mut drops);
        }
        queue.enqueue(packet(4, 2, 50), Nanos(0), &mut drops);
        assert_eq!(drops.0, [(0, DropReason::FattestFlow)]);
    }

    #[test]
    fn memory_is_a_limit_of_its_own() {
        let memory_limit = Some(ByteCount(5000));
        let mut queue = queue(FqCodelParams { memory_limit, ..FqCodelParams::default() });
        let mut drops = Drops(Vec::new());
        for id in 0..10 {
            queue.enqueue(packet(id, id as u32, 60), Nanos(0), &mut drops);
        }
        // It does not fit even alone.
        queue.enqueue(packet(10, 100, 5001), Nanos(0), &mut drops);
        assert_eq!(drops.0, [(10, DropReason::FattestFlow)]);
        assert_eq!(queue.backlog(), Backlog { packets: 10, bytes: ByteCount(600) });
    }
}
