//! Tail drop: first in, first out, and what does not fit is dropped.
//!
//! The queue of RFC 970 and of ConQuest's section 3.1; with [`Limit::None`] it is the unlimited buffer of its
//! section 5.1.

use crate::{Discipline, DropReason, Limit, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Nanos, Packet, QueueId, Rate};
use std::collections::VecDeque;

/// What a tail-drop queue is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailDropParams {
    /// How much it holds.
    pub limit: Limit,
    /// The rate of the link that it feeds, which a limit in time is measured by.
    pub rate: Rate,
    /// The number that its departures carry.
    pub queue: QueueId,
}

/// A tail-drop queue.
#[derive(Debug)]
pub struct TailDrop {
    queue: QueueId,
    room: Room,
    waiting: VecDeque<Waiting>,
    backlog: Backlog,
    stats: TailDropStats,
}

/// What a tail-drop queue counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailDropStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that found no room.
    pub overlimit: u64,
}

/// A limit in whole numbers, so that no packet costs a division. [`Limit::admits`] says the same in plain words.
#[derive(Debug)]
struct Room {
    /// Packets, with the new one.
    packets: u64,
    /// Bytes, with the new packet's.
    bytes: u64,
    /// Bytes before the new packet.
    bytes_before: u64,
}

impl Room {
    fn new(limit: Limit, rate: Rate) -> Self {
        let mut room = Self { packets: u64::MAX, bytes: u64::MAX, bytes_before: u64::MAX };
        match limit {
            Limit::None => {}
            Limit::Packets(packets) => room.packets = packets,
            Limit::Bytes(bytes) => room.bytes = bytes.0,
            Limit::Time(time) => {
                // The most bytes whose time, rounded down, is no longer than that.
                let work = (u128::from(time.0) + 1) * u128::from(rate.bits_per_second());
                room.bytes_before = u64::try_from((work - 1) / 8_000_000_000).unwrap_or(u64::MAX);
            }
        }
        room
    }

    #[inline]
    fn admits(&self, backlog: Backlog, size: ByteCount) -> bool {
        backlog.packets < self.packets
            && backlog.bytes.0 <= self.bytes_before
            && backlog.bytes.0.saturating_add(size.0) <= self.bytes
    }
}

#[derive(Debug)]
struct Waiting {
    packet: Packet,
    enqueued: Nanos,
    backlog_in: Backlog,
}

impl TailDrop {
    /// An empty queue.
    pub fn new(params: TailDropParams) -> Self {
        let (queue, room) = (params.queue, Room::new(params.limit, params.rate));
        Self { queue, room, waiting: VecDeque::new(), backlog: Backlog::default(), stats: TailDropStats::default() }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &TailDropStats {
        &self.stats
    }
}

impl Discipline for TailDrop {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        if !self.room.admits(self.backlog, packet.size) {
            self.stats.overlimit += 1;
            sink.dropped(packet, DropReason::Overlimit, now);
            return;
        }
        self.waiting.push_back(Waiting { packet, enqueued: now, backlog_in: self.backlog });
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let Waiting { packet, enqueued, backlog_in } = self.waiting.pop_front()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size;
        self.stats.departed += 1;
        let (queue, backlog_out) = (self.queue, self.backlog);
        Some(Departure { packet, queue, enqueued, dequeued: now, backlog_in, backlog_out })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_wire::{Class, Ecn, FlowId, PacketId};

    #[derive(Default)]
    struct Dropped(Vec<u64>);

    impl Sink for Dropped {
        fn dropped(&mut self, packet: Packet, reason: DropReason, _now: Nanos) {
            assert_eq!(reason, DropReason::Overlimit);
            self.0.push(packet.id.0);
        }
    }

    fn packet(id: u64, size: u64) -> Packet {
        Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
    }

    fn limit() -> impl Strategy<Value = Limit> {
        prop_oneof![
            Just(Limit::None),
            (0..6000u64).prop_map(|bytes| Limit::Bytes(ByteCount(bytes))),
            (0..6u64).prop_map(Limit::Packets),
            (0..6000u64).prop_map(|time| Limit::Time(Nanos(time))),
        ]
    }

    proptest! {
        /// No packet is lost uncounted or invented, the order is kept, the limit is held, and the backlog is the sum
        /// of what waits.
        #[test]
        fn every_packet_leaves_in_order_or_is_counted(
            limit in limit(), steps in prop::collection::vec(prop::option::of(40..1500u64), 0..60),
            rate in 5_000_000_000..12_000_000_000u64
        ) {
            let rate = Rate::from_bits_per_second(rate).unwrap();
            let mut queue = TailDrop::new(TailDropParams { limit, rate, queue: QueueId(3) });
            let (mut dropped, mut left, mut model) = (Dropped::default(), Vec::new(), VecDeque::new());
            let mut offered = 0;
            for (now, step) in steps.iter().enumerate() {
                let now = Nanos(now as u64);
                match step {
                    Some(size) => {
                        let before = queue.backlog();
                        let drops = dropped.0.len();
                        queue.enqueue(packet(offered, *size), now, &mut dropped);
                        let fits = limit.admits(before, ByteCount(*size), rate);
                        prop_assert_eq!(fits, dropped.0.len() == drops);
                        if fits {
                            model.push_back((offered, *size, now, before));
                        }
                        offered += 1;
                    }
                    None => {
                        let departure = queue.dequeue(now, &mut dropped);
                        let expected = model.pop_front();
                        prop_assert_eq!(departure.map(|d| (d.packet.id.0, d.packet.size.0, d.enqueued, d.backlog_in)), expected);
                        if let Some(departure) = departure {
                            prop_assert_eq!(departure.backlog_out, queue.backlog());
                            prop_assert_eq!((departure.dequeued, departure.queue), (now, QueueId(3)));
                            left.push(departure.packet.id.0);
                        }
                    }
                }
                let bytes = model.iter().map(|(_, size, ..)| *size).sum();
                prop_assert_eq!(queue.backlog(), Backlog { packets: model.len() as u64, bytes: ByteCount(bytes) });
                match limit {
                    Limit::Bytes(most) => prop_assert!(queue.backlog().bytes <= most),
                    Limit::Packets(most) => prop_assert!(queue.backlog().packets <= most),
                    Limit::None | Limit::Time(_) => {}
                }
            }
            let stats = *queue.stats();
            prop_assert_eq!(stats.offered, offered);
            prop_assert_eq!(stats.offered, stats.departed + stats.overlimit + queue.backlog().packets);
            prop_assert_eq!(stats.overlimit, dropped.0.len() as u64);
            prop_assert!(left.is_sorted());
        }
    }
}
