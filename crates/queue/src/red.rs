//! RED (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1993): drops or marks arrivals at random. The
//! probability grows with the average queue length.
//!
//! Follows section IV of the paper, with the additions that ns-2 and ns-3 enable by default:
//!
//! - *gentle* (Floyd, 2000): above the highest threshold the probability goes on from `max_probability` to 1 at twice
//!   the threshold.
//! - *wait*: after a drop there is none for 1/p packets, then one within another 1/p packets.
//! - *adaptive* (ARED; Floyd, Gummadi and Shenker 2001): `max_probability` follows the load; thresholds and weight
//!   follow from the link. Also *self-configuring* (Feng et al., INFOCOM 1999), and *nonlinear* (Zhou et al. 2006: the
//!   square).
//!
//! Behaviour is that of ns-3 3.37 in every comparison. Nothing is dropped early unless more than one packet (or byte,
//! if thresholds are in bytes) waits. The first packet above the lowest threshold is never dropped early. ARED adapts
//! at arrivals.
//! Deviations from ns-3:
//!
//! - With an adaptive `max_probability`, the gentle part starts from its current value. ns-3 keeps the line of the
//!   first value.
//! - Bytes since the last drop are counted in fractions of a mean packet. ns-3 rounds down to whole packets.
//! - A packet that is to be marked and finds the queue full is dropped, and counts only as that.
//! - Idle time starts when the last packet has been sent. In ns-3 it starts when a device requests a packet from an
//!   empty queue, which is the same if the device holds one packet.

mod state;
mod switch;

pub use switch::{SwitchRed, SwitchVerdict};

use self::state::{RedCurve, RedState, RedVerdict};
use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::random::RandomSource;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Draws, Ecn, Nanos, Packet, QueueId};

/// The parameters of a RED queue. The defaults are those of ns-3, which are those of ns-2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedParams {
    /// The limit of the queue: 25 packets.
    pub limit: Limit,
    /// The unit of the queue length. Packets by default.
    pub unit: RedUnit,
    /// The averages between which packets are dropped early: from 5 to 15. `None`: they follow from `target_delay` and
    /// the link.
    pub thresholds: Option<RedThresholds>,
    /// The mean sojourn time to aim at, if the thresholds follow from it: 5 ms.
    pub target_delay: Nanos,
    /// The weight of an arrival in the average (`w_q`): 0.002. `None`: it follows from the link, so that the average
    /// covers a second. 1 means the current queue.
    pub weight: Option<f64>,
    /// The probability at the highest threshold (`max_p`): 1/50.
    pub max_probability: f64,
    /// Whether the probability rises from there to 1 at twice the threshold, instead of at once. On.
    pub gentle: bool,
    /// Whether there are no drops for a while after a drop. On.
    pub wait: bool,
    /// Whether the probability rises with the square of the position between the thresholds, times 1.5. Off.
    pub nonlinear: bool,
    /// Whether and how `max_probability` follows the load. Not by default.
    pub adaptation: RedAdaptation,
    /// The mean size of packets: 500 bytes. It converts the idle time of the link to packets.
    pub mean_packet: ByteCount,
    /// Whether ECN-capable packets are marked instead of dropped. Off.
    pub ecn: bool,
    /// Whether ECN-capable packets, too, are dropped at an average above the highest threshold (twice that, if gentle).
    /// On.
    pub hard_drop: bool,
    /// Whether packets are judged at dequeue, by the queue that they leave behind. A packet is then marked or passes:
    /// one that is not ECN-capable is left alone, and only what exceeds the limit is dropped. A switch that marks
    /// behind its queue does the same. The mark is then no older than the queue length that it reports. Off.
    pub at_egress: bool,
    /// The source of random numbers. Its own; those of ns-3 are for comparisons with it.
    pub draws: Draws,
}

/// The unit of a RED queue's length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedUnit {
    /// Packets.
    #[default]
    Packets,
    /// Bytes: large packets have a higher drop probability.
    Bytes,
}

/// The thresholds of a RED queue's average, in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedThresholds {
    /// Below this average nothing is dropped early (`min_th`).
    pub min: f64,
    /// At this average the probability is `max_probability` (`max_th`). Not less than `min`.
    pub max: f64,
}

/// How `max_probability` follows the load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RedAdaptation {
    /// It is constant.
    #[default]
    Fixed,
    /// It keeps the average halfway between the thresholds (ARED).
    Adaptive(AredParams),
    /// It changes by a factor whenever the average leaves the thresholds (Feng et al.).
    SelfConfiguring {
        /// The divisor when the average falls below the lowest threshold: 3.
        decrease: f64,
        /// The factor when the average rises above the highest threshold: 2.
        increase: f64,
    },
}

/// The parameters of ARED (Floyd, Gummadi and Shenker 2001).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AredParams {
    /// The least time between two changes: 0.5 s.
    pub interval: Nanos,
    /// The increment of the probability, but at most a quarter of it: 0.01.
    pub alpha: f64,
    /// The factor that decreases it: 0.9.
    pub beta: f64,
    /// The lowest value. `None`: 0.01 or, if that is less, the inverse of the mean packets that the link sends in 100
    /// ms (as ns-3).
    pub bottom: Option<f64>,
    /// The highest value: 0.5.
    pub top: f64,
}

impl Default for AredParams {
    fn default() -> Self {
        Self { interval: Nanos(500_000_000), alpha: 0.01, beta: 0.9, bottom: None, top: 0.5 }
    }
}

impl Default for RedParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(25),
            unit: RedUnit::Packets,
            thresholds: Some(RedThresholds { min: 5.0, max: 15.0 }),
            target_delay: Nanos(5_000_000),
            weight: Some(0.002),
            max_probability: 0.02,
            gentle: true,
            wait: true,
            nonlinear: false,
            adaptation: RedAdaptation::Fixed,
            mean_packet: ByteCount(500),
            ecn: false,
            hard_drop: true,
            at_egress: false,
            draws: Draws::Own,
        }
    }
}

impl RedParams {
    /// ARED: thresholds and weight follow from the link, and the probability is adaptive.
    pub fn adaptive(limit: Limit) -> Self {
        let adaptation = RedAdaptation::Adaptive(AredParams::default());
        Self { limit, thresholds: None, weight: None, adaptation, ..Self::default() }
    }

    /// Marks each ECN-capable arrival that finds at least `threshold` packets, and drops others that do. DCTCP requires
    /// this of a switch (RFC 8257 section 3.1: both thresholds are K, on the current queue).
    pub fn step(threshold: u64, limit: Limit) -> Self {
        let thresholds = Some(RedThresholds { min: threshold as f64, max: threshold as f64 });
        let fixed = Self { limit, thresholds, weight: Some(1.0), ..Self::default() };
        Self { gentle: false, wait: false, ecn: true, hard_drop: false, ..fixed }
    }
}

/// A RED queue.
///
/// ```
/// use queuescope_queue::{Discipline, Limit, Outlet, Red, RedParams};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Ecn, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// // As DCTCP requires: a packet that finds 20 packets or more is marked.
/// let outlet = Outlet { rate: "10gbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = Red::new(RedParams::step(20, Limit::Packets(100)), outlet);
/// for n in 0..50 {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ecn: Ecn::Ect0, ..Packet::default() };
///     queue.enqueue(packet, Nanos::ZERO, &mut NoSink);
/// }
/// assert_eq!(queue.stats().marked_threshold, 30);
/// assert_eq!(queue.backlog().packets, 50, "nothing was dropped");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct Red {
    queue: QueueId,
    /// Bytes that the link adds to each packet.
    overhead: u32,
    at_egress: bool,
    room: CompiledLimit,
    curve: RedCurve,
    state: RedState,
    chance: RandomSource,
    fifo: Fifo,
    /// The reason of a mark above the highest threshold. If both thresholds are equal, it is that of a threshold.
    forced_mark: MarkReason,
    stats: RedStats,
}

/// The counters of a RED queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
    /// Packets dropped at random.
    pub early: u64,
    /// Packets dropped because the average was too high.
    pub forced: u64,
    /// Packets marked at random.
    pub marked_early: u64,
    /// Packets marked because the average was too high.
    pub marked_forced: u64,
    /// Packets marked because the queue was at the threshold, where both thresholds are equal and the average is the current
    /// queue (DCTCP).
    pub marked_threshold: u64,
}

counters!(RedStats { offered, departed, overlimit, early, forced, marked_early, marked_forced, marked_threshold });

impl Red {
    /// An empty queue.
    pub fn new(params: RedParams, outlet: Outlet) -> Self {
        let curve = RedCurve::new(&params, outlet.rate);
        let step = curve.weight >= 1.0 && curve.ramp.min >= curve.ramp.max;
        Self {
            queue: outlet.queue,
            overhead: outlet.overhead,
            at_egress: params.at_egress,
            room: CompiledLimit::new(params.limit, &outlet),
            state: RedState::new(params.max_probability),
            curve,
            chance: RandomSource::new(params.draws, outlet.seed),
            fifo: Fifo::default(),
            forced_mark: if step { MarkReason::Threshold } else { MarkReason::Forced },
            stats: RedStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &RedStats {
        &self.stats
    }

    /// The average after the last arrival, in packets or bytes.
    pub fn average(&self) -> f64 {
        self.state.average
    }

    /// The current probability at the highest threshold.
    pub fn max_probability(&self) -> f64 {
        self.state.max_probability
    }

    /// The decision on a packet, by the current queue.
    #[inline]
    fn judge(&mut self, size: ByteCount, now: Nanos) -> RedVerdict {
        let chance = &mut self.chance;
        self.state.arrival(&self.curve, self.fifo.backlog(), size, now, || chance.unit())
    }

    /// Marks a packet.
    #[inline]
    fn mark(&mut self, packet: &mut Packet, reason: MarkReason, now: Nanos, sink: &mut impl Sink) {
        packet.ecn = Ecn::Ce;
        match reason {
            MarkReason::Early => self.stats.marked_early += 1,
            MarkReason::Threshold => self.stats.marked_threshold += 1,
            _ => self.stats.marked_forced += 1,
        }
        sink.marked(packet, reason, now);
    }

    fn drop(&mut self, packet: Packet, now: Nanos, reason: DropReason, sink: &mut impl Sink) {
        match reason {
            DropReason::Early => self.stats.early += 1,
            DropReason::Forced => self.stats.forced += 1,
            _ => self.stats.overlimit += 1,
        }
        sink.dropped(&Dropped::on_arrival(packet, self.queue, now, reason));
    }
}

impl Discipline for Red {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        let backlog = self.fifo.backlog();
        let verdict = if self.at_egress { RedVerdict::Pass } else { self.judge(packet.size, now) };
        let markable = self.curve.ecn && packet.ecn.is_capable();
        let mark = match verdict {
            RedVerdict::Pass => None,
            RedVerdict::Early if markable => Some(MarkReason::Early),
            RedVerdict::Forced if markable && !self.curve.hard_drop => Some(self.forced_mark),
            RedVerdict::Early => return self.drop(packet, now, DropReason::Early, sink),
            RedVerdict::Forced => return self.drop(packet, now, DropReason::Forced, sink),
        };
        if !self.room.admits(backlog, packet.size) {
            return self.drop(packet, now, DropReason::Overlimit, sink);
        }
        let mut packet = packet;
        if let Some(reason) = mark {
            self.mark(&mut packet, reason, now, sink);
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        let Some(mut first) = self.fifo.pop() else {
            self.state.idle_since = self.state.idle_since.min(now);
            return None;
        };
        self.stats.departed += 1;
        if self.at_egress {
            let reason = match self.judge(first.packet.size, now) {
                RedVerdict::Pass => None,
                RedVerdict::Early => Some(MarkReason::Early),
                RedVerdict::Forced => Some(self.forced_mark),
            };
            // A packet that already carries CE keeps it, and is not marked again.
            if let Some(reason) = reason.filter(|_| first.packet.ecn.is_capable() && first.packet.ecn != Ecn::Ce) {
                self.mark(&mut first.packet, reason, now, sink);
            }
        }
        let backlog = self.fifo.backlog();
        if backlog.packets == 0 {
            let on_link = first.packet.size.0 + u64::from(self.overhead);
            let sending = (on_link as f64 * self.curve.nanos_per_byte) as u64;
            self.state.idle_since = now.saturating_add(Nanos(sending));
        }
        Some(first.depart(self.queue, now, backlog))
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
