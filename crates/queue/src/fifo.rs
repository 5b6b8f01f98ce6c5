//! A FIFO of packets, each with the time and backlog of its arrival: the store of all disciplines.

use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId};
use std::collections::VecDeque;

/// Packets in the order of their arrival.
///
/// ```
/// use queuescope_queue::Fifo;
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
///
/// let mut fifo = Fifo::default();
/// for n in 0..3 {
///     fifo.push(Packet { id: PacketId(n), size: ByteCount(500), ..Packet::default() }, Nanos(n));
/// }
/// let first = fifo.pop().ok_or("the queue is empty")?;
/// let departure = first.depart(QueueId(0), Nanos(100), fifo.backlog());
/// assert_eq!((departure.packet.id, departure.sojourn()), (PacketId(0), Nanos(100)));
/// assert_eq!(departure.backlog_out.bytes, ByteCount(1000));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
    backlog: Backlog,
}

/// A packet in a queue.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The packet.
    pub packet: Packet,
    /// When it arrived.
    pub enqueued: Nanos,
    /// The backlog that it found, without itself.
    pub backlog_in: Backlog,
}

impl Fifo {
    /// Appends `packet`.
    #[inline]
    pub fn push(&mut self, packet: Packet, now: Nanos) {
        self.push_behind(packet, now, self.backlog);
    }

    /// Appends `packet` to one of several queues; `backlog_in` is the backlog of all of them.
    #[inline]
    pub fn push_behind(&mut self, packet: Packet, now: Nanos, backlog_in: Backlog) {
        self.waiting.push_back(Waiting { packet, enqueued: now, backlog_in });
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        if self.waiting.is_empty() {
            // Start again at the beginning of the ring, so that a mostly empty queue stays in one cache line.
            self.waiting.clear();
        }
        self.backlog.packets -= 1;
        self.backlog.bytes -= first.packet.size;
        Some(first)
    }

    /// The first packet, which stays.
    #[inline]
    pub fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// The packets and bytes in the queue.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Waiting {
    /// The departure of this packet from `queue`, which leaves `backlog_out` behind.
    #[inline]
    pub fn depart(self, queue: QueueId, now: Nanos, backlog_out: Backlog) -> Departure {
        let Self { packet, enqueued, backlog_in } = self;
        Departure { packet, queue, enqueued, dequeued: now, backlog_in, backlog_out }
    }
}
