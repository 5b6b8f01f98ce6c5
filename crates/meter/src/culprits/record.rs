//! The records of packets that left or were dropped, and their packed form.

use queuescope_wire::{Class, Departure, FlowId, Nanos, PacketId};
use std::ops::Range;

/// A packet that left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// The packet. Among those that came at the same nanosecond, the smaller number came first.
    pub packet: PacketId,
    /// Its flow, at the finest granularity.
    pub flow: FlowId,
    /// Its class of service.
    pub class: Class,
    /// The size, bytes.
    pub size: u32,
    /// The arrival.
    pub enqueued: Nanos,
    /// The departure: when the link started to send it.
    pub dequeued: Nanos,
}

impl Departed {
    /// The sojourn time.
    pub fn sojourn(&self) -> Nanos {
        self.dequeued.saturating_sub(self.enqueued)
    }
}

impl From<&Departure> for Departed {
    fn from(departure: &Departure) -> Self {
        let packet = &departure.packet;
        Self {
            packet: packet.id,
            flow: packet.flow,
            class: packet.class,
            size: u32::try_from(packet.size.0).unwrap_or(u32::MAX),
            enqueued: departure.enqueued,
            dequeued: departure.dequeued,
        }
    }
}

/// A packet that was dropped on arrival and was never in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The packet.
    pub packet: PacketId,
    /// Its flow, at the finest granularity.
    pub flow: FlowId,
    /// Its class of service.
    pub class: Class,
    /// The size, bytes.
    pub size: u32,
    /// The arrival.
    pub at: Nanos,
}

/// The order of arrivals: by time, and by number at equal times.
pub(super) type Arrival = (Nanos, u64);

/// A [`Departed`] in 32 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedDeparture {
    pub enqueued: Nanos,
    pub dequeued: Nanos,
    packet: Tagged,
    pub flow: FlowId,
    pub size: u32,
}

/// A [`Dropped`] in 24 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedDrop {
    pub at: Nanos,
    packet: Tagged,
    flow: FlowId,
    size: u32,
}

/// A packet's number in the upper 56 bits, and its class in the lower 8. At 10^9 packets a second the numbers last for two years.
#[derive(Debug, Clone, Copy)]
struct Tagged(u64);

const _: () = assert!(size_of::<PackedDeparture>() == 32 && size_of::<PackedDrop>() == 24);

impl Tagged {
    fn new(packet: PacketId, class: Class) -> Self {
        debug_assert!(packet.0 >> 56 == 0, "packets are numbered from 0");
        Self((packet.0 << 8) | u64::from(class.0))
    }

    fn packet(self) -> u64 {
        self.0 >> 8
    }

    fn class(self) -> Class {
        Class(self.0 as u8)
    }
}

impl PackedDeparture {
    pub(super) fn class(&self) -> Class {
        self.packet.class()
    }

    pub(super) fn packet(&self) -> PacketId {
        PacketId(self.packet.packet())
    }

    pub(super) fn arrival(&self) -> Arrival {
        (self.enqueued, self.packet.packet())
    }

    /// The part of its sojourn time that is within `during`; none if it is empty.
    pub(super) fn waits(&self, during: &Range<Nanos>) -> Option<Range<Nanos>> {
        let wait = self.enqueued.max(during.start)..self.dequeued.min(during.end);
        (wait.start < wait.end).then_some(wait)
    }
}

impl PackedDrop {
    pub(super) fn packet(&self) -> PacketId {
        PacketId(self.packet.packet())
    }
}

impl From<&Departed> for PackedDeparture {
    fn from(departed: &Departed) -> Self {
        let &Departed { packet, flow, class, size, enqueued, dequeued } = departed;
        Self { enqueued, dequeued, packet: Tagged::new(packet, class), flow, size }
    }
}

impl From<&PackedDeparture> for Departed {
    fn from(left: &PackedDeparture) -> Self {
        let &PackedDeparture { enqueued, dequeued, packet, flow, size } = left;
        Self { packet: PacketId(packet.packet()), flow, class: packet.class(), size, enqueued, dequeued }
    }
}

impl From<&Dropped> for PackedDrop {
    fn from(dropped: &Dropped) -> Self {
        let &Dropped { packet, flow, class, size, at } = dropped;
        Self { at, packet: Tagged::new(packet, class), flow, size }
    }
}

impl From<&PackedDrop> for Dropped {
    fn from(lost: &PackedDrop) -> Self {
        let &PackedDrop { at, packet, flow, size } = lost;
        Self { packet: PacketId(packet.packet()), flow, class: packet.class(), size, at }
    }
}
