//! [`Discipline`], the contract of every queue, and how it reports the packets that it drops or marks.

use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId, Rate};

/// One queue. The driver (a replay, a simulator, a real-time link) passes the time; times never decrease.
///
/// # Rules
///
/// - **Packets.** Each packet that enters either departs, unchanged except for its ECN codepoint, or is reported to the
///   [`Sink`] as dropped: exactly one of the two, exactly once. The ids of the packets in the queue are distinct.
/// - **Order.** Packets may depart in any order. If [`is_fifo`](Self::is_fifo) is true, they depart in the order of
///   their arrival.
/// - **Backlog.** After each call, [`backlog`](Self::backlog) is exactly the packets that have entered and have neither
///   departed nor been dropped. A driver calls [`dequeue`](Self::dequeue) as long as packets wait.
/// - **Shaping.** `dequeue` may return `None` while packets wait, because none of them may leave yet. The link then stays
///   idle, and calls `dequeue` again after each timer and after each arrival. A discipline without a timer is called again
///   at the next arrival only; packets that it never releases stay in the queue.
/// - **Timers.** [`next_timer`](Self::next_timer) changes only in the calls of the other methods. After
///   [`on_timer`](Self::on_timer), it is later than the time at which the timer was due, or `None`.
///
/// A driver panics, and names the discipline, if it cannot continue because a rule is broken. The wrapper
/// [`Checked`](crate::Checked) checks all rules at each call.
///
/// ```
/// use queuescope_queue::{Discipline, Fifo, Outlet, Sink};
/// use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId};
///
/// /// Lets a packet leave every `gap` at most.
/// struct Paced { fifo: Fifo, queue: QueueId, gap: Nanos, ready: Nanos, timer: Option<Nanos> }
///
/// impl Discipline for Paced {
///     fn enqueue(&mut self, packet: Packet, now: Nanos, _sink: &mut impl Sink) {
///         self.fifo.push(packet, now);
///     }
///
///     fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
///         if now < self.ready {
///             self.timer = Some(self.ready);
///             return None;
///         }
///         let first = self.fifo.pop()?;
///         self.ready = now + self.gap;
///         Some(first.depart(self.queue, now, self.fifo.backlog()))
///     }
///
///     fn backlog(&self) -> Backlog {
///         self.fifo.backlog()
///     }
///
///     fn next_timer(&self) -> Option<Nanos> {
///         self.timer
///     }
///
///     fn on_timer(&mut self, _now: Nanos) {
///         self.timer = None;
///     }
/// }
/// ```
pub trait Discipline {
    /// Enqueues a packet that arrives. The queue may drop or mark it, or another packet in its place.
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink);

    /// Dequeues the next packet when the link is ready to send. Returns `None` if no packet waits, or if none of them may
    /// leave yet. The queue may drop or mark packets on the way.
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure>;

    /// The current backlog.
    fn backlog(&self) -> Backlog;

    /// Whether the link must call [`Self::dequeue`] once more on the empty queue when it has sent everything, because
    /// that call changes the queue's state. It is false after that call.
    #[inline]
    fn polls_when_empty(&self) -> bool {
        false
    }

    /// When to call [`Self::on_timer`] next, if ever. It changes only in calls to this trait's other methods.
    /// [`Nanos::MAX`] means never.
    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Called at the time that [`Self::next_timer`] returned. It sets the timer to a later time, or clears it. If packets
    /// wait before an idle link, the link then calls [`Self::dequeue`].
    fn on_timer(&mut self, _now: Nanos) {}

    /// The name in messages: by default that of the type.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Whether packets depart in the order of their arrival. False by default, and for CoDel, which drops packets that have
    /// waited.
    fn is_fifo(&self) -> bool {
        false
    }

    /// How many queues its departures distinguish. Their ids are consecutive, starting at the outlet's.
    fn queues(&self) -> u16 {
        1
    }

    /// The current probability of a drop or mark for a packet of classic traffic, if the discipline has one.
    fn drop_probability(&self) -> Option<f64> {
        None
    }

    /// The counters so far, each with its name in reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The link that a queue feeds, and the id of the queue.
///
/// ```
/// use queuescope_queue::Outlet;
/// use queuescope_wire::{Backlog, ByteCount, Nanos, QueueId};
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 24, queue: QueueId(0), seed: 1 };
/// let backlog = Backlog { packets: 10, bytes: ByteCount(12_260) };
/// assert_eq!(outlet.time_for(backlog), Nanos(10_000_000), "12 500 bytes on the link");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlet {
    /// The rate of the link, which converts a limit in time. For a link of varying rate, its mean.
    pub rate: Rate,
    /// Bytes that the link adds to each packet (preamble, gap). They take time on the link, and no room in the queue.
    pub overhead: u32,
    /// The id that the queue's departures carry. A discipline with several queues numbers them from here.
    pub queue: QueueId,
    /// The seed of all randomness in the discipline. Two queues with the same seed, parameters and arrivals behave
    /// identically.
    pub seed: u64,
}

impl Outlet {
    /// How long the link needs to send the backlog, including what it adds to each packet.
    #[inline]
    pub fn time_for(&self, backlog: Backlog) -> Nanos {
        self.rate.time_for(backlog.on_link(self.overhead))
    }
}

/// Receives every drop and every mark.
///
/// ```
/// use queuescope_queue::{Discipline, Dropped, Limit, MarkReason, Outlet, Sink, TailDrop, TailDropParams};
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
///
/// #[derive(Default)]
/// struct Counts { drops: u64, marks: u64 }
///
/// impl Sink for Counts {
///     fn dropped(&mut self, dropped: &Dropped) {
///         println!("{} at {}", dropped.reason.name(), dropped.at);
///         self.drops += 1;
///     }
///     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {
///         self.marks += 1;
///     }
/// }
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = TailDrop::new(TailDropParams { limit: Limit::Packets(3) }, outlet);
/// let mut counts = Counts::default();
/// for n in 0..5 {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() };
///     queue.enqueue(packet, Nanos(n), &mut counts);
/// }
/// assert_eq!((counts.drops, counts.marks), (2, 0));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
pub trait Sink {
    /// A packet will not leave the queue, or was dropped behind it.
    fn dropped(&mut self, dropped: &Dropped);

    /// A packet's ECN codepoint was set to CE. `packet` shows it after the change.
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
    /// The queue that held it, or that it would have entered.
    pub queue: QueueId,
    /// When it entered that queue; `None` if it never did.
    pub enqueued: Option<Nanos>,
    /// When it was dropped.
    pub at: Nanos,
    /// The reason.
    pub reason: DropReason,
    /// The time on the link that it wasted, if it was dropped behind the queue.
    pub link_time: Nanos,
}

impl Dropped {
    /// A packet that was dropped before it entered a queue.
    pub fn on_arrival(packet: Packet, queue: QueueId, at: Nanos, reason: DropReason) -> Self {
        Self { packet, queue, enqueued: None, at, reason, link_time: Nanos::ZERO }
    }

    /// A packet that had entered a queue and was dropped there.
    pub fn from_queue(packet: Packet, queue: QueueId, enqueued: Nanos, at: Nanos, reason: DropReason) -> Self {
        Self { packet, queue, enqueued: Some(enqueued), at, reason, link_time: Nanos::ZERO }
    }
}

/// Why a packet was dropped.
///
/// ```
/// use queuescope_queue::DropReason;
///
/// let names = DropReason::ALL.map(DropReason::name);
/// println!("{}", names.join(", "));
/// assert_eq!(DropReason::ALL.iter().position(|&reason| reason == DropReason::Early), Some(1));
/// ```
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
    /// It was at the head of the queue with the most bytes when the limit was reached (FQ-CoDel).
    FattestFlow,
    /// Its flow had too much of the queue (ConQuest).
    FlowWeight,
    /// Its aggregate was too active (ABC).
    Activity,
    /// No queue is known to have dropped it. It entered a queue that is only observed from outside and was never seen
    /// again; in telemetry, it was lost on a link.
    Lost,
    /// Its flow filled its share of the link in slow start (P4air).
    SlowStart,
    /// Its flow sent more than its share of the link (P4air).
    FairShare,
}

impl DropReason {
    /// All reasons. The number of a reason is its index here.
    pub const ALL: [Self; 10] = [
        Self::Overlimit,
        Self::Early,
        Self::Forced,
        Self::Target,
        Self::FattestFlow,
        Self::FlowWeight,
        Self::Activity,
        Self::Lost,
        Self::SlowStart,
        Self::FairShare,
    ];

    /// The name in reports.
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
            Self::SlowStart => "slow-start",
            Self::FairShare => "fair-share",
        }
    }
}

/// Why a packet was marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkReason {
    /// At random, instead of a drop of [`DropReason::Early`].
    Early,
    /// Instead of a drop of [`DropReason::Forced`].
    Forced,
    /// Packets had waited longer than the target for too long: instead of a drop of [`DropReason::Target`], or by ECN#,
    /// which does not drop for it.
    Target,
    /// Its sojourn time, or the queue length, was above a fixed threshold (CoDel's CE threshold, DCTCP's K, DualPI2's
    /// step, ECN#'s instantaneous target).
    Threshold,
    /// Instead of a drop of [`DropReason::FlowWeight`].
    FlowWeight,
    /// Instead of a drop of [`DropReason::FairShare`].
    FairShare,
}

impl MarkReason {
    /// All reasons. The number of a reason is its index here.
    pub const ALL: [Self; 6] =
        [Self::Early, Self::Forced, Self::Target, Self::Threshold, Self::FlowWeight, Self::FairShare];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Target => "target",
            Self::Threshold => "threshold",
            Self::FlowWeight => "flow-weight",
            Self::FairShare => "fair-share",
        }
    }
}
