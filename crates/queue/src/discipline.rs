//! What every queue discipline is, and what it owes the packets that it drops.

use queuescope_wire::{Backlog, Departure, Nanos, Packet};

/// One queue. Whoever drives it (a replay, a simulator, a real-time link) says what time it is; times never decrease.
pub trait Discipline {
    /// A packet arrives. It, or another in its place, may be dropped.
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink);

    /// The link is ready to send: the next packet, unless there is none. Packets may be dropped on the way to it.
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure>;

    /// What waits at the moment.
    fn backlog(&self) -> Backlog;
}

/// Told of what must be counted, whoever decides it.
pub trait Sink {
    /// A packet will not leave the queue.
    fn dropped(&mut self, packet: Packet, reason: DropReason, now: Nanos);
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue had no room for it.
    Overlimit,
    /// It came and never left, and nobody saw why: the queue is only seen from outside.
    Lost,
}

impl DropReason {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overlimit => "overlimit",
            Self::Lost => "lost",
        }
    }
}
