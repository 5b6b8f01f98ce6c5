//! The two records that all crates exchange: a [`Packet`] and its [`Departure`].

use crate::{ByteCount, Nanos};

/// A packet as a queue sees it: its flow and size, without its bytes.
///
/// ```
/// use queuescope_wire::{ByteCount, Ecn, FlowId, Packet, PacketId};
///
/// let packet = Packet { id: PacketId(7), flow: FlowId(1), size: ByteCount(1500), ecn: Ecn::Ect0, ..Packet::default() };
/// assert_eq!(packet.class.0, 0);
/// assert!(packet.ecn.is_capable());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packet {
    /// Its position in its input, from 0.
    pub id: PacketId,
    /// The flow it belongs to, at the finest granularity in use.
    pub flow: FlowId,
    /// The bytes that it occupies in the queue. The link's own overhead (preamble, gap) is a property of the link, and
    /// not included.
    pub size: ByteCount,
    /// The class of service it is queued in; 0 where there is only one.
    pub class: Class,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// A packet that left a queue. All analyses start from these records.
///
/// ```
/// use queuescope_wire::{Backlog, ByteCount, Departure, Nanos, Packet};
///
/// let departure = Departure {
///     packet: Packet { size: ByteCount(1500), ..Packet::default() },
///     enqueued: "10ms".parse()?,
///     dequeued: "12.5ms".parse()?,
///     backlog_in: Backlog { packets: 2, bytes: ByteCount(3000) },
///     ..Departure::default()
/// };
/// println!("waited {} behind {}", departure.sojourn(), departure.backlog_in.bytes); // waited 2.50 ms behind 3.00 kB
/// assert_eq!(departure.sojourn(), Nanos(2_500_000));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departure {
    /// The packet.
    pub packet: Packet,
    /// The queue it left.
    pub queue: QueueId,
    /// When it entered the queue (enqueue).
    pub enqueued: Nanos,
    /// When it left the queue (dequeue), which is when the link started to send it.
    pub dequeued: Nanos,
    /// The backlog when it entered, without the packet itself.
    pub backlog_in: Backlog,
    /// The backlog when it left, without the packet itself.
    pub backlog_out: Backlog,
}

impl Departure {
    /// The sojourn time: how long the packet waited in the queue.
    #[inline]
    pub fn sojourn(&self) -> Nanos {
        self.dequeued.saturating_sub(self.enqueued)
    }
}

/// The content of a queue.
///
/// ```
/// use queuescope_wire::{Backlog, ByteCount};
///
/// let backlog = Backlog { packets: 10, bytes: ByteCount(15_000) };
/// // Preamble, frame check sequence and gap of Ethernet are 24 bytes a packet.
/// assert_eq!(backlog.on_link(24), ByteCount(15_240));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in the queue.
    pub packets: u64,
    /// Their bytes.
    pub bytes: ByteCount,
}

impl Backlog {
    /// The bytes that a link sends for these packets if it adds `overhead` bytes to each.
    #[inline]
    pub fn on_link(self, overhead: u32) -> ByteCount {
        ByteCount(self.bytes.0.saturating_add(self.packets.saturating_mul(overhead.into())))
    }
}

/// A packet's position in its input, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// A small integer that stands for a flow while it is active; see [`crate::Flows`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The id as an index into per-flow tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a queue, where there are several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u16);

/// A class of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// The ECN field of an IP header (RFC 3168 section 5).
///
/// ```
/// use queuescope_wire::Ecn;
///
/// let traffic_class = 0b1011_1010;
/// let ecn = Ecn::from_bits(traffic_class);
/// assert_eq!(ecn, Ecn::Ect0);
/// assert!(ecn.is_capable());
/// assert_eq!(Ecn::Ce.bits(), 0b11);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// Not ECN-capable, or not an IP packet.
    #[default]
    NotEct,
    /// ECT(1), which L4S uses (RFC 9331).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// From the two low bits of the traffic class.
    pub fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two low bits of the traffic class.
    #[inline]
    pub fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// Whether a queue may mark the packet instead of dropping it.
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}
