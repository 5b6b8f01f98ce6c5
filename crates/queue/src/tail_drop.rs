//! Tail drop: first in, first out; a packet that exceeds the limit is dropped.
//!
//! The queue of RFC 970 and of ConQuest's section 3.1; with [`Limit::None`] it is the unlimited buffer of its
//! section 5.1.

use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::{Discipline, DropReason, Dropped, Limit, Outlet, Sink};
use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId};

/// The parameters of a tail-drop queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailDropParams {
    /// The limit of the queue.
    pub limit: Limit,
}

/// A tail-drop queue.
///
/// ```
/// use queuescope_queue::{Discipline, Limit, Outlet, TailDrop, TailDropParams};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = TailDrop::new(TailDropParams { limit: Limit::Bytes(ByteCount(4_000)) }, outlet);
/// for n in 0..5 {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() };
///     queue.enqueue(packet, Nanos::ZERO, &mut NoSink); // a `Sink` that ignores drops
/// }
/// assert_eq!((queue.stats().overlimit, queue.backlog().packets), (3, 2));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct TailDrop {
    queue: QueueId,
    room: CompiledLimit,
    fifo: Fifo,
    stats: TailDropStats,
}

/// The counters of a tail-drop queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TailDropStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
}

counters!(TailDropStats { offered, departed, overlimit });

impl TailDrop {
    /// An empty queue.
    pub fn new(params: TailDropParams, outlet: Outlet) -> Self {
        let room = CompiledLimit::new(params.limit, &outlet);
        Self { queue: outlet.queue, room, fifo: Fifo::default(), stats: TailDropStats::default() }
    }

    /// The counters so far.
    pub fn stats(&self) -> &TailDropStats {
        &self.stats
    }
}

impl Discipline for TailDrop {
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
    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let first = self.fifo.pop()?;
        self.stats.departed += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MarkReason;
    use proptest::prelude::*;
    use queuescope_wire::{ByteCount, Class, Ecn, FlowId, PacketId, Rate};
    use std::collections::VecDeque;

    #[derive(Default)]
    struct Overflow(Vec<u64>);

    impl Sink for Overflow {
        fn dropped(&mut self, dropped: &Dropped) {
            assert_eq!((dropped.reason, dropped.enqueued), (DropReason::Overlimit, None));
            self.0.push(dropped.packet.id.0);
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
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
        /// Every packet departs or is counted as dropped, none is invented, the order is kept, the limit holds, and the
        /// backlog is the sum of the packets in the queue.
        #[test]
        fn every_packet_leaves_in_order_or_is_counted(
            limit in limit(), steps in prop::collection::vec(prop::option::of(40..1500u64), 0..60),
            rate in 5_000_000_000..12_000_000_000u64, overhead in prop_oneof![Just(0u32), 0..100u32]
        ) {
            let rate = Rate::from_bits_per_second(rate).unwrap();
            let outlet = Outlet { rate, overhead, queue: QueueId(3), seed: 0 };
            let mut queue = TailDrop::new(TailDropParams { limit }, outlet);
            let (mut dropped, mut left, mut model) = (Overflow::default(), Vec::new(), VecDeque::new());
            let mut offered = 0;
            for (now, step) in steps.iter().enumerate() {
                let now = Nanos(now as u64);
                match step {
                    Some(size) => {
                        let before = queue.backlog();
                        let drops = dropped.0.len();
                        queue.enqueue(packet(offered, *size), now, &mut dropped);
                        let fits = limit.admits(before, ByteCount(*size), &outlet);
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
