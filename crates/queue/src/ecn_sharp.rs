//! ECN# (Zhang, Bai and Chen, CoNEXT 2019): marks bursts at once, and a standing queue now and then.
//!
//! For DCTCP in data centres whose round-trip times differ. A threshold for the longest of them leaves a standing queue
//! to flows with short ones; a lower threshold costs throughput. ECN# has the high threshold, and marks a packet now and
//! then while a queue below it stands. It marks departing packets, and drops only what does not fit into the queue.
//!
//! - *Instantaneous*: a packet whose sojourn time is above `instant_target` is marked.
//! - *Persistent*: when the sojourn time has been at or above `persistent_target` for longer than `persistent_interval`,
//!   one packet is marked, and a further one each `persistent_interval` / sqrt(count), as in CoDel. A packet below the
//!   target ends this.
//!
//! The details are those of the authors' program for ns-3 (`ns3-ecn-sharp`):
//!
//! - The first persistent mark comes after the end of the first interval, not at it.
//! - The next mark is due one spacing after the time of the last one, not after the time at which that was due.
//! - The count starts at 1 each time. CoDel continues a recent one.
//! - Only departing packets change the state. An empty queue does not; its next packet has a short sojourn time.
//! - The persistent decision does not depend on the instantaneous one. A packet that is due both marks is marked once,
//!   here with the reason [`MarkReason::Threshold`].
//! - A packet that is not ECN-capable departs unmarked. A persistent mark that was due is spent on it. Here it is counted
//!   (`not_capable`).
//!
//! That program marks only ECT(1), which is what its hosts send. Here every ECN-capable packet is marked.

use crate::codel::spacing;
use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, Departure, Ecn, Nanos, Packet, QueueId};

/// The parameters of an ECN# queue. The times are those of the paper's testbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnSharpParams {
    /// The limit of the queue. 1000 packets by default, as for CoDel; it is not the paper's.
    pub limit: Limit,
    /// `ins_target`: packets with a longer sojourn time are marked. A high percentile of the round-trip times, times the
    /// congestion control's lambda: 200 us.
    pub instant_target: Nanos,
    /// `pst_target`: the sojourn time that is acceptable for longer than an interval: 85 us.
    pub persistent_target: Nanos,
    /// `pst_interval`: how long the sojourn time may be at or above that target. About the longest usual round-trip time:
    /// 200 us.
    pub persistent_interval: Nanos,
}

impl Default for EcnSharpParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            instant_target: Nanos(200_000),
            persistent_target: Nanos(85_000),
            persistent_interval: Nanos(200_000),
        }
    }
}

/// An ECN# queue.
///
/// ```
/// use queuescope_queue::{Discipline, EcnSharp, EcnSharpParams, Outlet};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Ecn, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "10gbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = EcnSharp::new(EcnSharpParams::default(), outlet);
/// // A packet comes every 1.2 us, which is the time that the link takes for one, and waits for 100 us: a standing queue.
/// for n in 0..1000 {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ecn: Ecn::Ect0, ..Packet::default() };
///     queue.enqueue(packet, Nanos(n * 1200), &mut NoSink);
///     if n * 1200 >= 100_000 {
///         queue.dequeue(Nanos(n * 1200), &mut NoSink);
///     }
/// }
/// // The paper's threshold for the longest round-trip time marks nothing of it.
/// assert_eq!(queue.stats().marked_threshold, 0);
/// assert!(queue.stats().marked_target > 0);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct EcnSharp {
    params: EcnSharpParams,
    queue: QueueId,
    room: CompiledLimit,
    control: EcnSharpState,
    fifo: Fifo,
    stats: EcnSharpStats,
}

/// The counters of an ECN# queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnSharpStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
    /// Packets that were marked because the queue stood, and not because of their own sojourn time.
    pub marked_target: u64,
    /// Packets that were marked because of their own sojourn time.
    pub marked_threshold: u64,
    /// Packets that were due a mark and left without one, because they are not ECN-capable.
    pub not_capable: u64,
}

counters!(EcnSharpStats { offered, departed, overlimit, marked_target, marked_threshold, not_capable });

impl EcnSharp {
    /// An empty queue.
    pub fn new(params: EcnSharpParams, outlet: Outlet) -> Self {
        Self {
            params,
            queue: outlet.queue,
            room: CompiledLimit::new(params.limit, &outlet),
            control: EcnSharpState::default(),
            fifo: Fifo::default(),
            stats: EcnSharpStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &EcnSharpStats {
        &self.stats
    }

    /// Marks a departing packet if it can be marked.
    fn mark(&mut self, packet: &mut Packet, reason: MarkReason, now: Nanos, sink: &mut impl Sink) {
        if !packet.ecn.is_capable() {
            self.stats.not_capable += 1;
            return;
        }
        match reason {
            MarkReason::Threshold => self.stats.marked_threshold += 1,
            _ => self.stats.marked_target += 1,
        }
        packet.ecn = Ecn::Ce;
        sink.marked(packet, reason, now);
    }
}

impl Discipline for EcnSharp {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        if !self.room.admits(self.fifo.backlog(), packet.size) {
            self.stats.overlimit += 1;
            sink.dropped(&Dropped::on_arrival(packet, self.queue, now, DropReason::Overlimit));
            return;
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        let mut first = self.fifo.pop()?;
        self.stats.departed += 1;
        let sojourn = now.saturating_sub(first.enqueued);
        if let Some(reason) = self.control.decide(&self.params, sojourn, now) {
            self.mark(&mut first.packet, reason, now, sink);
        }
        Some(first.depart(self.queue, now, self.fifo.backlog()))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn is_fifo(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// The state of the persistent marks.
#[derive(Debug, Default)]
struct EcnSharpState {
    /// `first_above_time`, plus an interval: while packets are at or above the target, when they will have been for an
    /// interval.
    until: Option<Nanos>,
    /// `marking_state`: whether persistent marks are made.
    marking: bool,
    /// `marking_next`: when the next one is due.
    next: Nanos,
    /// `marking_count`: how many were due since this began.
    count: u32,
}

impl EcnSharpState {
    /// The reason to mark the packet that departs now, if any.
    #[inline]
    fn decide(&mut self, params: &EcnSharpParams, sojourn: Nanos, now: Nanos) -> Option<MarkReason> {
        let persistent = self.stands(params, sojourn, now) && self.is_due(params.persistent_interval, now);
        if sojourn > params.instant_target {
            Some(MarkReason::Threshold)
        } else {
            persistent.then_some(MarkReason::Target)
        }
    }

    /// Whether packets have been at or above the target for longer than an interval.
    #[inline]
    fn stands(&mut self, params: &EcnSharpParams, sojourn: Nanos, now: Nanos) -> bool {
        if sojourn < params.persistent_target {
            self.until = None;
            self.marking = false;
            return false;
        }
        now > *self.until.get_or_insert(now.saturating_add(params.persistent_interval))
    }

    /// Whether a persistent mark is due in a standing queue. If so, sets when the next one is due.
    #[inline]
    fn is_due(&mut self, interval: Nanos, now: Nanos) -> bool {
        if self.marking && now < self.next {
            return false;
        }
        self.count = if self.marking { self.count.saturating_add(1) } else { 1 };
        self.marking = true;
        self.next = now.saturating_add(spacing(interval, self.count));
        true
    }
}
