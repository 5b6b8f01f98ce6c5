//! What every queue discipline is, and what it owes the packets that it drops or marks.

use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId, Rate};

/// One queue. Whoever drives it (a replay, a simulator, a real-time link) says what time it is; times never decrease.
///
/// A packet that enters either departs, unchanged but for its ECN codepoint, or is told to the [`Sink`] as dropped: once,
/// and never both.
pub trait Discipline {
    /// A packet arrives. It, or another in its place, may be dropped or marked.
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink);

    /// The link is ready to send: the next packet, unless there is none. Packets may be dropped or marked on the way to it.
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure>;

    /// What waits at the moment.
    fn backlog(&self) -> Backlog;

    /// Whether it is to be asked once more, though it is empty, when the link has sent all: it changes by that.
    #[inline]
    fn polls_when_empty(&self) -> bool {
        false
    }

    /// When [`Self::on_timer`] is to be called next, if ever. It changes only in calls to this trait's other methods.
    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The time that [`Self::next_timer`] named has come.
    fn on_timer(&mut self, _now: Nanos) {}

    /// Whether packets leave in the order in which they came, all of them.
    fn is_fifo(&self) -> bool {
        false
    }

    /// How many queues its departures distinguish: their numbers are so many from the outlet's on.
    fn queues(&self) -> u16 {
        1
    }

    /// The probability with which it drops or marks a packet of classic traffic at the moment, if it keeps one.
    fn drop_probability(&self) -> Option<f64> {
        None
    }

    /// What it counted so far, each counter with its name in reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The link that a queue feeds, and which queue it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlet {
    /// The rate of the link; a limit in time is measured by it. Of a link whose rate varies, its mean.
    pub rate: Rate,
    /// Bytes that the link adds to each packet as it sends it (preamble, gap). They take its time and none of the queue's room.
    pub overhead: u32,
    /// The number that the queue's departures carry. A discipline of several queues numbers them from here.
    pub queue: QueueId,
    /// Seeds whatever in the discipline is random. Two queues with the same seed, parameters and arrivals do the same.
    pub seed: u64,
}

impl Outlet {
    /// How long the link needs to send what waits, with what it adds to each packet.
    #[inline]
    pub fn time_for(&self, backlog: Backlog) -> Nanos {
        self.rate.time_for(backlog.on_link(self.overhead))
    }
}

/// Told of what must be counted, whoever decides it.
pub trait Sink {
    /// A packet will not leave the queue, or was dropped behind it.
    fn dropped(&mut self, dropped: &Dropped);

    /// A packet's ECN codepoint was set to CE; `packet` shows it as it is now.
    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos);
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn dropped(&mut self, dropped: &Dropped) {
        S::dropped(self, dropped);
    }

    #[inline]
    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        S::marked(self, packet, reason, now);
    }
}

/// A packet that was dropped: the counterpart of a [`Departure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The packet.
    pub packet: Packet,
    /// The queue that it was in, or would have entered.
    pub queue: QueueId,
    /// When it had entered that queue; none if it never did.
    pub enqueued: Option<Nanos>,
    /// When it was dropped.
    pub at: Nanos,
    /// Why.
    pub reason: DropReason,
    /// What it cost the link all the same: its time to be sent, where it was dropped behind the queue.
    pub link_time: Nanos,
}

impl Dropped {
    /// A packet that did not enter a queue.
    pub fn on_arrival(packet: Packet, queue: QueueId, at: Nanos, reason: DropReason) -> Self {
        Self { packet, queue, enqueued: None, at, reason, link_time: Nanos::ZERO }
    }

    /// A packet that had entered a queue and did not leave it.
    pub fn from_queue(packet: Packet, queue: QueueId, enqueued: Nanos, at: Nanos, reason: DropReason) -> Self {
        Self { packet, queue, enqueued: Some(enqueued), at, reason, link_time: Nanos::ZERO }
    }
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue had no room for it.
    Overlimit,
    /// At random, with the probability that the discipline computed (RED between its thresholds, PIE).
    Early,
    /// The average queue was above the highest threshold (RED).
    Forced,
    /// Packets had waited longer than the target for too long (CoDel).
    Target,
    /// It was of the flow that had the most in the queue when that was full (FQ-CoDel).
    FattestFlow,
    /// Its flow had too much of the queue (ConQuest).
    FlowWeight,
    /// Its aggregate was too active (ABC).
    Activity,
    /// No queue is known to have dropped it: it came to a queue that is only seen from outside and was never seen again; in
    /// telemetry, it was lost on a link.
    Lost,
}

impl DropReason {
    /// All of them, in order: the place of each is its number.
    pub const ALL: [Self; 8] = [
        Self::Overlimit,
        Self::Early,
        Self::Forced,
        Self::Target,
        Self::FattestFlow,
        Self::FlowWeight,
        Self::Activity,
        Self::Lost,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overlimit => "overlimit",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Target => "target",
            Self::FattestFlow => "fattest-flow",
            Self::FlowWeight => "flow-weight",
            Self::Activity => "activity",
            Self::Lost => "lost",
        }
    }
}

/// Why a packet was marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkReason {
    /// At random, in place of a drop of [`DropReason::Early`].
    Early,
    /// In place of a drop of [`DropReason::Forced`].
    Forced,
    /// In place of a drop of [`DropReason::Target`].
    Target,
    /// It had waited longer than a fixed threshold, or the queue was longer than one (CoDel's CE threshold, DCTCP's K, DualPI2's
    /// step).
    Threshold,
    /// In place of a drop of [`DropReason::FlowWeight`].
    FlowWeight,
}

impl MarkReason {
    /// All of them, in order: the place of each is its number.
    pub const ALL: [Self; 5] = [Self::Early, Self::Forced, Self::Target, Self::Threshold, Self::FlowWeight];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Target => "target",
            Self::Threshold => "threshold",
            Self::FlowWeight => "flow-weight",
        }
    }
}
