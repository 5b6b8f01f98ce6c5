//! The disciplines and switch programs of the PIE family against plain models and published results.

mod conservation;
mod dual_pi2;
mod egress_pi;
mod model;
mod orderings;
mod pi2;
mod rfc;
mod switch;

use queuescope_queue::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// Records every drop and every mark.
#[derive(Debug, Default)]
pub struct RecordingSink {
    /// The packets that were dropped.
    pub dropped: Vec<Dropped>,
    /// The ids of the packets that were marked, with the reason.
    pub marked: Vec<(u64, MarkReason)>,
}

impl RecordingSink {
    /// The number of packets that were dropped for this reason.
    pub fn drop_count(&self, reason: DropReason) -> usize {
        self.dropped.iter().filter(|dropped| dropped.reason == reason).count()
    }
}

impl Sink for RecordingSink {
    fn dropped(&mut self, dropped: &Dropped) {
        self.dropped.push(*dropped);
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, _now: Nanos) {
        assert_eq!(packet.ecn, Ecn::Ce);
        self.marked.push((packet.id.0, reason));
    }
}

/// A packet of flow 0.
pub fn packet(id: u64, size: u64, ecn: Ecn) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(size), class: Class(0), ecn }
}

/// A link of this rate behind queue 3.
pub fn outlet(bits_per_second: u64) -> Outlet {
    Outlet { overhead: 0, rate: Rate::from_bits_per_second(bits_per_second).unwrap(), queue: QueueId(3), seed: 7 }
}

/// Calls the timers that are due by `now`.
pub fn fire<D: Discipline>(queue: &mut D, now: Nanos) {
    while let Some(due) = queue.next_timer().filter(|due| *due <= now) {
        queue.on_timer(due);
        assert!(queue.next_timer().is_none_or(|next| next > due), "each call moves the timer on");
    }
}
