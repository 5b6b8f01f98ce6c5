//! RED (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1993): drops or marks arrivals at random, the more
//! probably the longer the queue is on average.
//!
//! Section IV of the paper, with what ns-2 and ns-3 have added and use by default:
//!
//! - *gentle* (Floyd, 2000): above the highest threshold the probability goes on from `max_probability` to 1 at twice
//!   it.
//! - *wait*: after a drop none for 1/p packets, then one within as many again.
//! - *adaptive* (ARED; Floyd, Gummadi and Shenker 2001): `max_probability` follows the load; thresholds and weight come
//!   from the link. And *self-configuring* (Feng et al., INFOCOM 1999), and *nonlinear* (Zhou et al. 2006: the square).
//!
//! Behaviour is that of ns-3 3.37 in every comparison: nothing is dropped early unless more than one packet (or byte,
//! if thresholds are in bytes) waits; the first packet above the lowest threshold never is; ARED adapts at arrivals.
//! Deviations from ns-3:
//!
//! - With a `max_probability` that adapts, the gentle part starts from its present value. ns-3 keeps the line of the
//!   first one.
//! - Bytes since the last drop are counted in fractions of a mean packet. ns-3 rounds down to whole ones.
//! - A packet that is to be marked and finds no room is dropped, and only that is counted.
//! - Idle time starts when the last packet has been sent. In ns-3 it starts when a device asks an empty queue for a
//!   packet, which is the same where the device holds one packet.

mod state;

use self::state::{Curve, State, Verdict};
use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::Room;
use crate::random::Chance;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Draws, Ecn, Nanos, Packet, QueueId};

/// What a RED queue is made of. The defaults are ns-3's, which are ns-2's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedParams {
    /// How much it holds: 25 packets.
    pub limit: Limit,
    /// In what the queue is measured. Packets by default.
    pub unit: RedUnit,
    /// Between which averages packets are dropped early: from 5 to 15. None means that they follow from `target_delay`
    /// and the link.
    pub thresholds: Option<RedThresholds>,
    /// The mean wait to aim at, where the thresholds follow from it: 5 ms.
    pub target_delay: Nanos,
    /// The weight of an arrival in the average (`w_q`): 0.002. None means that it follows from the link, so that the
    /// average remembers a second. 1 means the queue as it is.
    pub weight: Option<f64>,
    /// The probability at the highest threshold (`max_p`): 1/50.
    pub max_probability: f64,
    /// Whether it goes on from there to 1 at twice the threshold, in place of at once. On.
    pub gentle: bool,
    /// Whether none is dropped for a while after a drop. On.
    pub wait: bool,
    /// Whether the probability rises with the square of the way between the thresholds, times 1.5. Off.
    pub nonlinear: bool,
    /// Whether and how `max_probability` follows the load. Not by default.
    pub adaptation: RedAdaptation,
    /// The mean size of packets: 500 bytes. What the link could have sent while idle is counted in it.
    pub mean_packet: ByteCount,
    /// Whether packets that are ECN-capable are marked where they would be dropped. Off.
    pub ecn: bool,
    /// Whether packets are dropped at an average above the highest threshold (twice that, if gentle) even so. On.
    pub hard_drop: bool,
    /// Whether packets are judged as they leave, by the queue that they leave behind, and marked or let go: what cannot be
    /// marked is left alone, and only what finds no room is dropped. So a switch does it that marks behind its queue; a mark
    /// is then not older than the queue that it tells of. Off.
    pub at_egress: bool,
    /// Whose random numbers it draws. Its own; ns-3's are for comparisons with it.
    pub draws: Draws,
}

/// In what a RED queue is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedUnit {
    /// Packets.
    #[default]
    Packets,
    /// Bytes: large packets are dropped more probably.
    Bytes,
}

/// The thresholds of a RED queue's average, in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedThresholds {
    /// Below it nothing is dropped early (`min_th`).
    pub min: f64,
    /// At it the probability is `max_probability` (`max_th`). Not less than `min`.
    pub max: f64,
}

/// How `max_probability` follows the load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RedAdaptation {
    /// It does not.
    #[default]
    Fixed,
    /// So that the average stays halfway between the thresholds (ARED).
    Adaptive(AredParams),
    /// By a factor, whenever the average leaves the thresholds (Feng et al.).
    SelfConfiguring {
        /// What it is divided by when the average falls below the lowest threshold: 3.
        decrease: f64,
        /// What it is multiplied by when the average rises above the highest: 2.
        increase: f64,
    },
}

/// How ARED adapts (Floyd, Gummadi and Shenker 2001).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AredParams {
    /// The least time between two changes: 0.5 s.
    pub interval: Nanos,
    /// What is added to the probability, but no more than a quarter of it: 0.01.
    pub alpha: f64,
    /// What it is multiplied by to decrease it: 0.9.
    pub beta: f64,
    /// Not below this. None means 0.01 or, if that is less, one in as many mean packets as the link sends in 100 ms (as
    /// ns-3).
    pub bottom: Option<f64>,
    /// Not above this: 0.5.
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
    /// ARED: thresholds and weight from the link, and an adaptive probability.
    pub fn adaptive(limit: Limit) -> Self {
        let adaptation = RedAdaptation::Adaptive(AredParams::default());
        Self { limit, thresholds: None, weight: None, adaptation, ..Self::default() }
    }

    /// Marks each ECN-capable arrival that finds `threshold` packets or more, and drops the others that do: what DCTCP
    /// asks of a switch (RFC 8257 section 3.1: both thresholds K, on the queue as it is).
    pub fn step(threshold: u64, limit: Limit) -> Self {
        let thresholds = Some(RedThresholds { min: threshold as f64, max: threshold as f64 });
        let fixed = Self { limit, thresholds, weight: Some(1.0), ..Self::default() };
        Self { gentle: false, wait: false, ecn: true, hard_drop: false, ..fixed }
    }
}

/// A RED queue.
#[derive(Debug)]
pub struct Red {
    queue: QueueId,
    /// Bytes that the link adds to each packet.
    overhead: u32,
    at_egress: bool,
    room: Room,
    curve: Curve,
    state: State,
    chance: Chance,
    fifo: Fifo,
    /// How a mark above the highest threshold is called: where there is but one, it is that threshold's.
    forced_mark: MarkReason,
    stats: RedStats,
}

/// What a RED queue counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that found no room.
    pub overlimit: u64,
    /// Packets dropped at random.
    pub early: u64,
    /// Packets dropped since the average was too high.
    pub forced: u64,
    /// Packets marked at random.
    pub marked_early: u64,
    /// Packets marked since the average was too high.
    pub marked_forced: u64,
    /// The same, where the queue itself is the average and there is but one threshold (DCTCP).
    pub marked_threshold: u64,
}

counters!(RedStats { offered, departed, overlimit, early, forced, marked_early, marked_forced, marked_threshold });

impl Red {
    /// An empty queue.
    pub fn new(params: RedParams, outlet: Outlet) -> Self {
        let curve = Curve::new(&params, outlet.rate);
        let step = curve.weight >= 1.0 && curve.min >= curve.max;
        Self {
            queue: outlet.queue,
            overhead: outlet.overhead,
            at_egress: params.at_egress,
            room: Room::new(params.limit, &outlet),
            state: State::new(params.max_probability),
            curve,
            chance: Chance::new(params.draws, outlet.seed),
            fifo: Fifo::default(),
            forced_mark: if step { MarkReason::Threshold } else { MarkReason::Forced },
            stats: RedStats::default(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &RedStats {
        &self.stats
    }

    /// The average, in packets or bytes, as the last arrival left it.
    pub fn average(&self) -> f64 {
        self.state.average
    }

    /// The probability at the highest threshold at present.
    pub fn max_probability(&self) -> f64 {
        self.state.max_probability
    }

    /// What becomes of a packet by the queue as it is.
    #[inline]
    fn judge(&mut self, size: ByteCount, now: Nanos) -> Verdict {
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
        let verdict = if self.at_egress { Verdict::Pass } else { self.judge(packet.size, now) };
        let markable = self.curve.ecn && packet.ecn.is_capable();
        let mark = match verdict {
            Verdict::Pass => None,
            Verdict::Early if markable => Some(MarkReason::Early),
            Verdict::Forced if markable && !self.curve.hard_drop => Some(self.forced_mark),
            Verdict::Early => return self.drop(packet, now, DropReason::Early, sink),
            Verdict::Forced => return self.drop(packet, now, DropReason::Forced, sink),
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
                Verdict::Pass => None,
                Verdict::Early => Some(MarkReason::Early),
                Verdict::Forced => Some(self.forced_mark),
            };
            // What shows CE already keeps it, and is not marked again.
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
