//! A link with its queue.

use crate::event::Turn;
use crate::packets::Packets;
use crate::replay::Retries;
use crate::summary::Times;
use crate::topology::{LinkId, LinkParams};
use crate::workload::Random;
use crate::{Observer, Transmitter, seed};
use queuescope_queue::{AnyDiscipline, Discipline, DropReason, Dropped, MarkReason, MultiQueue, Port, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Nanos, Packet, PacketId, Rate};
use std::collections::VecDeque;
use std::ops::Range;

/// The rate of a link.
#[derive(Debug, Clone)]
pub enum LinkRate {
    /// A constant rate, in bits per second of everything that the link sends, with its overhead.
    Constant(Rate),
    /// The rate of a trace.
    Varying(crate::RateTrace),
}

impl LinkRate {
    /// The bytes that can be sent in an interval of time, exactly.
    pub fn capacity(&self, during: Range<Nanos>) -> ByteCount {
        match self {
            Self::Constant(rate) => rate.bytes_in(during.end.saturating_sub(during.start)),
            Self::Varying(trace) => trace.capacity(during),
        }
    }

    /// The rate, or its mean.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Varying(trace) => trace.mean_rate(),
        }
    }
}

/// A link in a running simulation.
#[derive(Debug)]
pub(crate) struct Link {
    pub id: LinkId,
    pub queue: Queue,
    pub transmitter: Sending,
    pub delay: Nanos,
    /// Bytes that it adds to each packet as it sends it; the queue does not count them.
    pub overhead: u32,
    /// The share of packets lost on it, and their random numbers; `None` if no packet is lost.
    loss: Option<(f64, Random)>,
    /// The switch whose port it is, and the number of the port.
    pub switch: Option<(u32, Port)>,
    /// Whether an event will serve the queue.
    pub serving: bool,
    /// Whether it is idle although packets wait, because the discipline holds them back: until the next timer or arrival.
    pub held_back: bool,
    /// How often in a row a timer came at the same time without a packet that may leave.
    pub retries: Retries,
    /// When the discipline's timer event comes; the latest possible time if there is none.
    pub timer: Nanos,
    /// Packets in flight on it, with their arrival times and their turns then: those of when they were sent.
    pub sent: VecDeque<(Nanos, PacketId, Turn)>,
    /// The turn in which the current transmission ends.
    pub turn: Turn,
    pub stats: LinkStats,
}

/// What holds the packets that wait for a link.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each packet would follow the pointer")]
pub(crate) enum Queue {
    One(AnyDiscipline),
    Many(MultiQueue),
}

/// How a link sends.
#[derive(Debug, Clone)]
pub(crate) enum Sending {
    Constant(Transmitter),
    Varying(Box<crate::Varying>),
}

/// Counters of a link since the warm-up.
#[derive(Debug, Clone)]
pub struct LinkStats {
    /// Arrivals at its queue. Bytes are those that the queue counts, here and below: without the link's overhead.
    pub offered: Backlog,
    /// Packets that it sent, including those that were lost on it.
    pub sent: Backlog,
    /// Packets that it sent and that were lost on it, at random. No queue dropped them.
    pub lost: u64,
    /// Packets that its queue dropped, by reason.
    pub drops: [u64; DropReason::ALL.len()],
    /// Packets that were marked, by reason.
    pub marks: [u64; MarkReason::ALL.len()],
    /// Transmission time that it lost because packets were dropped behind the queue.
    pub wasted: Nanos,
    /// The longest queue that a packet found, in bytes.
    pub longest: ByteCount,
    /// The name of the discipline.
    discipline: &'static str,
    /// Counters of each group of flows, by group number, up to the last group with packets.
    groups: Option<Vec<GroupStats>>,
}

/// Counters of a group of flows at a link with a measured queue, since the warm-up.
#[derive(Debug, Clone, Default)]
pub struct GroupStats {
    /// Sojourn times of packets that were sent.
    pub sojourn: Times,
    /// Packets that were sent and lost on the link.
    pub lost: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that were marked.
    pub marked: u64,
}

impl Link {
    pub fn new(id: LinkId, params: &LinkParams, queue: Queue, switch: Option<(u32, Port)>, seed: u64) -> Self {
        let (seed, name) = (seed::derive(!seed, u64::from(id.0)), queue.name());
        Self {
            id,
            queue,
            transmitter: Sending::new(&params.rate),
            delay: params.delay,
            overhead: params.overhead,
            loss: (params.loss > 0.0).then(|| (params.loss, Random::new(seed))),
            switch,
            serving: false,
            held_back: false,
            retries: Retries::default(),
            timer: Nanos::MAX,
            sent: VecDeque::new(),
            turn: Turn::default(),
            stats: LinkStats::new(params.measured, name),
        }
    }

    /// Whether a packet of a group that is sent on it is lost.
    #[inline]
    pub fn loses(&mut self, group: u32) -> bool {
        let is_lost = self.loss.as_mut().is_some_and(|(share, chance)| chance.open() < *share);
        if is_lost {
            self.stats.lost += 1;
            if let Some(group) = self.stats.group(group) {
                group.lost += 1;
            }
        }
        is_lost
    }
}

impl Queue {
    #[inline]
    pub fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        match self {
            Self::One(discipline) => discipline.dequeue(now, sink),
            Self::Many(queues) => queues.dequeue(now, sink),
        }
    }

    #[inline]
    pub fn backlog(&self) -> Backlog {
        match self {
            Self::One(discipline) => discipline.backlog(),
            Self::Many(queues) => queues.backlog(),
        }
    }

    #[inline]
    pub fn polls_when_empty(&self) -> bool {
        match self {
            Self::One(discipline) => discipline.polls_when_empty(),
            Self::Many(_) => false,
        }
    }

    /// The name of the discipline.
    pub fn name(&self) -> &'static str {
        match self {
            Self::One(discipline) => discipline.name(),
            Self::Many(_) => "queues",
        }
    }

    #[inline]
    pub fn next_timer(&self) -> Option<Nanos> {
        match self {
            Self::One(discipline) => discipline.next_timer(),
            Self::Many(_) => None,
        }
    }
}

impl Sending {
    fn new(rate: &LinkRate) -> Self {
        match rate {
            LinkRate::Constant(rate) => Self::Constant(Transmitter::new(*rate)),
            LinkRate::Varying(trace) => Self::Varying(Box::new(crate::Varying::new(trace.clone()))),
        }
    }

    #[inline]
    pub fn free_at(&self) -> Nanos {
        match self {
            Self::Constant(transmitter) => transmitter.free_at(),
            Self::Varying(varying) => varying.free_at(),
        }
    }

    /// When the last bit of its packets is sent.
    #[inline]
    pub fn finished_at(&self) -> Nanos {
        match self {
            Self::Constant(transmitter) => transmitter.free_at(),
            Self::Varying(varying) => varying.finished_at(),
        }
    }

    #[inline]
    pub fn wait_until(&mut self, now: Nanos) {
        match self {
            Self::Constant(transmitter) => transmitter.wait_until(now),
            Self::Varying(varying) => varying.wait_until(now),
        }
    }

    #[inline]
    pub fn send(&mut self, size: ByteCount) {
        match self {
            Self::Constant(transmitter) => transmitter.send(size),
            Self::Varying(varying) => varying.send(size),
        }
    }
}

impl LinkStats {
    fn new(measured: bool, discipline: &'static str) -> Self {
        Self {
            offered: Backlog::default(),
            sent: Backlog::default(),
            lost: 0,
            drops: [0; DropReason::ALL.len()],
            marks: [0; MarkReason::ALL.len()],
            wasted: Nanos::ZERO,
            longest: ByteCount(0),
            discipline,
            groups: measured.then(Vec::new),
        }
    }

    /// Resets all counters.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.is_measured(), self.discipline);
    }

    /// Whether sojourn times and groups of flows are recorded.
    pub fn is_measured(&self) -> bool {
        self.groups.is_some()
    }

    /// Sojourn times of packets that were sent, if they are recorded.
    pub fn sojourn(&self) -> Option<Times> {
        let mut all = Times::new();
        for group in self.groups.as_ref()? {
            all.add(&group.sojourn);
        }
        Some(all)
    }

    /// Counters of each group of flows, by group number; groups at the end without packets are missing.
    pub fn groups(&self) -> &[GroupStats] {
        self.groups.as_deref().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn departed(&mut self, departure: &Departure, group: u32) {
        self.sent.packets += 1;
        self.sent.bytes += departure.packet.size;
        if let Some(group) = self.group(group) {
            group.sojourn.record(departure.sojourn());
        }
    }

    #[inline]
    fn group(&mut self, group: u32) -> Option<&mut GroupStats> {
        let groups = self.groups.as_mut()?;
        if groups.len() <= group as usize {
            groups.resize_with(group as usize + 1, GroupStats::default);
        }
        groups.get_mut(group as usize)
    }
}

/// Receives the drops and marks of a queue.
pub(crate) struct LinkSink<'a, O> {
    pub link: LinkId,
    pub stats: &'a mut LinkStats,
    pub packets: &'a mut Packets,
    /// Owners of packets that are gone.
    pub gone: &'a mut Vec<crate::packets::Owner>,
    pub observer: &'a mut O,
}

impl<O: Observer> Sink for LinkSink<'_, O> {
    fn dropped(&mut self, dropped: &Dropped) {
        if !self.packets.has(dropped.packet.id) {
            unknown_packet(self.stats.discipline, "dropped", &dropped.packet);
        }
        self.stats.drops[dropped.reason as usize] += 1;
        let packet = self.packets.remove(dropped.packet.id);
        self.gone.push(packet.owner);
        if let Some(group) = self.stats.group(packet.group) {
            group.dropped += 1;
        }
        self.observer.dropped(self.link, dropped, &packet, self.packets.headers(dropped.packet.id));
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        if !self.packets.has(packet.id) {
            unknown_packet(self.stats.discipline, "marked", packet);
        }
        self.stats.marks[reason as usize] += 1;
        let on_its_way = self.packets.at(packet.id);
        if let Some(group) = self.stats.group(on_its_way.group) {
            group.marked += 1;
        }
        self.observer.marked(self.link, packet, reason, now, on_its_way);
    }
}

/// Panics: a discipline gave a packet that it did not have.
#[cold]
pub(crate) fn unknown_packet(discipline: &str, verb: &str, packet: &Packet) -> ! {
    panic!(
        "the discipline '{discipline}' {verb} {packet:?}, which it did not have: wrap the discipline in queuescope_queue::Checked \
         to find the call"
    );
}
