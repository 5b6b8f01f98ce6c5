//! What waits in order, with what each packet met: the store that the disciplines are built on.

use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId};
use std::collections::VecDeque;

/// Packets that wait in the order in which they came.
#[derive(Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
    backlog: Backlog,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// It.
    pub packet: Packet,
    /// When it came.
    pub enqueued: Nanos,
    /// What was in the queue when it came, without itself.
    pub backlog_in: Backlog,
}

impl Fifo {
    /// The last one now is `packet`.
    #[inline]
    pub fn push(&mut self, packet: Packet, now: Nanos) {
        self.push_behind(packet, now, self.backlog);
    }

    /// The same, where this is one of several queues and the packet met `backlog_in` in all of them.
    #[inline]
    pub fn push_behind(&mut self, packet: Packet, now: Nanos, backlog_in: Backlog) {
        self.waiting.push_back(Waiting { packet, enqueued: now, backlog_in });
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
    }

    /// The first one.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        if self.waiting.is_empty() {
            // Begin anew at the start of the ring: a queue that is mostly empty stays in one cache line and not in all of it.
            self.waiting.clear();
        }
        self.backlog.packets -= 1;
        self.backlog.bytes -= first.packet.size;
        Some(first)
    }

    /// The first one, which stays.
    #[inline]
    pub fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// What waits.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Waiting {
    /// It leaves `queue`, in which `backlog_out` stays.
    #[inline]
    pub fn depart(self, queue: QueueId, now: Nanos, backlog_out: Backlog) -> Departure {
        let Self { packet, enqueued, backlog_in } = self;
        Departure { packet, queue, enqueued, dequeued: now, backlog_in, backlog_out }
    }
}
