//! Values of a packet, and what operations take.

use crate::Gress;
use std::borrow::Cow;

/// A name, or a description in a few words.
pub type Name = Cow<'static, str>;

/// A value of the packet that is processed. It begins as zero, unless it is an [`Input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable(pub(crate) usize);

/// What a number counts. Operations on different units are an error; shifts and slices of times change the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number: an identifier, a random number, a probability, a product.
    Number,
    /// A time in units of 2^`shift` nanoseconds.
    Nanos {
        /// The power of two.
        shift: u32,
    },
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Cells of the packet buffer, of 80 bytes each.
    Cells,
}

/// What a packet brings along. A target converts its own units to these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// The port that the packet leaves by.
    Port,
    /// When the packet entered the queue, in nanoseconds, modulo 2^48.
    Enqueued,
    /// When it left the queue, in nanoseconds, modulo 2^48.
    Dequeued,
    /// Whether it comes from the switch's packet generator: 1 or 0.
    Generated,
    /// The ECN field of its IP header: 0 is not ECN-capable, 1 is ECT(1), 2 is ECT(0), 3 is CE (RFC 3168).
    Ecn,
    /// The source address: that of IPv4, or the last 32 bits of that of IPv6.
    Source,
    /// The destination address, likewise.
    Destination,
    /// The source port of TCP or UDP, and behind it the destination port. Zero for other protocols, behind IPv4 options, and for all fragments but the first.
    Ports,
    /// The protocol of the IP header: 6 for TCP, 17 for UDP. Of IPv6, the first next header.
    Protocol,
    /// The length of the packet as the switch counts it, in bytes. Known behind the queue.
    Length,
    /// When the packet arrived, in nanoseconds, modulo 2^48. Known before the queue.
    Arrived,
    /// Whether it is a copy that was fed back from behind the queue: 1 or 0. Known before the queue.
    FedBack,
    /// The length of the queue when the packet entered it, in cells of the packet buffer. BMv2 counts packets instead. Known behind the queue.
    Depth,
    /// The port that the packet came in by. Known before the queue.
    ArrivalPort,
    /// The length in the IP header, in bytes: the whole packet of IPv4, and what is behind the header of IPv6.
    IpLength,
    /// The packets that the queue held when the packet entered it, without this one. Known behind the queue.
    QueueLength,
    /// The packets that the queue held when the packet left it, without this one. Known behind the queue.
    LengthBehind,
    /// Whether it has a valid activity header, behind that of Ethernet: 1 or 0.
    HasActivity,
    /// Whether it has the EtherType of an activity header, and not a valid one: it is cut short, or followed by another. 1 or 0.
    Malformed,
    /// The activity in its header, in two's complement with 8 fraction bits; zero without a header.
    Activity,
    /// The identification of IPv4; zero for IPv6.
    Identification,
    /// The sequence number of TCP. Of UDP, its length, and behind it its checksum, which covers the payload. Zero where there are no [`Ports`](Self::Ports).
    Sequence,
    /// The acknowledgement number of TCP; zero for other protocols.
    Acknowledgement,
    /// The length of the IPv4 header in units of four bytes; zero for IPv6, whose [`IpLength`](Self::IpLength) is without its header. Known
    /// before the queue.
    IpWords,
    /// The length of the TCP header in units of four bytes; zero for packets whose TCP header is not parsed: those without one, and those
    /// without [`Ports`](Self::Ports). Known before the queue.
    TcpWords,
    /// The flags of the TCP header: bit 1 is SYN, bit 4 is ACK (RFC 9293). Zero without one. Known before the queue.
    TcpFlags,
    /// The receive window in the TCP header, as it is there: not scaled. Zero without one. Known before the queue.
    Window,
    /// The checksum of the TCP header. Zero without one. Known before the queue.
    TcpChecksum,
    /// A slot of the packet's note, below [`NOTES`]. The note is zero when a packet arrives. A program writes it, as it writes a variable. It goes with
    /// the packet to the half behind the queue, and with copies and recirculated packets to the half before it. It does not leave the switch.
    Note(u8),
}

/// The slots of a note: four of 16 bits, then eight of 8 bits.
pub const NOTES: usize = 12;
/// The wide slots.
const WIDE_NOTES: u8 = 4;
const NOTE_NAMES: [&str; NOTES] = [
    "note_0", "note_1", "note_2", "note_3", "note_4", "note_5", "note_6", "note_7", "note_8", "note_9", "note_10",
    "note_11",
];

/// A value that an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// All bits of a variable.
    Variable(Variable),
    /// Some bits of a variable.
    Slice {
        /// The variable.
        of: Variable,
        /// The lowest of these bits.
        low: u32,
        /// Their number.
        bits: u32,
    },
    /// A constant, in the unit of what it is combined with.
    Constant(u64),
}

impl Variable {
    /// `bits` bits from bit `low` on.
    pub fn slice(self, low: u32, bits: u32) -> Operand {
        Operand::Slice { of: self, low, bits }
    }
}

impl From<Variable> for Operand {
    fn from(variable: Variable) -> Self {
        Self::Variable(variable)
    }
}

impl From<u64> for Operand {
    fn from(constant: u64) -> Self {
        Self::Constant(constant)
    }
}

impl Unit {
    /// Nanoseconds.
    pub const NANOS: Self = Self::Nanos { shift: 0 };

    /// The unit of a number without its lowest bits.
    pub(crate) fn without_low_bits(self, bits: u32) -> Self {
        match self {
            Self::Nanos { shift } => Self::Nanos { shift: shift + bits },
            // The high bits of a count, such as half of a number of packets, are still such a count.
            unit => unit,
        }
    }
}

impl Input {
    /// All inputs.
    pub const ALL: [Self; 28 + NOTES] = [
        Self::Port,
        Self::Enqueued,
        Self::Dequeued,
        Self::Generated,
        Self::Ecn,
        Self::Source,
        Self::Destination,
        Self::Ports,
        Self::Protocol,
        Self::Length,
        Self::Arrived,
        Self::FedBack,
        Self::Depth,
        Self::ArrivalPort,
        Self::IpLength,
        Self::QueueLength,
        Self::LengthBehind,
        Self::HasActivity,
        Self::Malformed,
        Self::Activity,
        Self::Identification,
        Self::Sequence,
        Self::Acknowledgement,
        Self::IpWords,
        Self::TcpWords,
        Self::TcpFlags,
        Self::Window,
        Self::TcpChecksum,
        Self::Note(0),
        Self::Note(1),
        Self::Note(2),
        Self::Note(3),
        Self::Note(4),
        Self::Note(5),
        Self::Note(6),
        Self::Note(7),
        Self::Note(8),
        Self::Note(9),
        Self::Note(10),
        Self::Note(11),
    ];

    /// What the parser finds in a TCP header.
    pub const OF_TCP: [Self; 4] = [Self::TcpWords, Self::TcpFlags, Self::Window, Self::TcpChecksum];

    /// What the parser finds about the activity header.
    pub const OF_ACTIVITY: [Self; 3] = [Self::HasActivity, Self::Malformed, Self::Activity];

    /// What identifies a flow: 104 bits, in this order.
    pub const FLOW: [Self; 4] = [Self::Source, Self::Destination, Self::Ports, Self::Protocol];

    /// What identifies a packet on both sides of a router, which changes none of it (ConQuest section 6.2): 200 bits, in this order.
    pub const PACKET: [Self; 8] = [
        Self::Source,
        Self::Destination,
        Self::Ports,
        Self::Protocol,
        Self::IpLength,
        Self::Identification,
        Self::Sequence,
        Self::Acknowledgement,
    ];

    /// What the parser finds behind the ports.
    pub(crate) const OF_NUMBERS: [Self; 2] = [Self::Sequence, Self::Acknowledgement];

    /// Its name in a program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Enqueued => "enqueued",
            Self::Dequeued => "dequeued",
            Self::Generated => "generated",
            Self::Ecn => "ecn",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Ports => "ports",
            Self::Protocol => "protocol",
            Self::Length => "length",
            Self::Arrived => "arrived",
            Self::FedBack => "fed_back",
            Self::Depth => "depth",
            Self::ArrivalPort => "arrival_port",
            Self::IpLength => "ip_length",
            Self::QueueLength => "queue_length",
            Self::LengthBehind => "length_behind",
            Self::HasActivity => "has_activity",
            Self::Malformed => "malformed",
            Self::Activity => "activity",
            Self::Identification => "identification",
            Self::Sequence => "sequence",
            Self::Acknowledgement => "acknowledgement",
            Self::IpWords => "ip_words",
            Self::TcpWords => "tcp_words",
            Self::TcpFlags => "tcp_flags",
            Self::Window => "window",
            Self::TcpChecksum => "tcp_checksum",
            Self::Note(slot) => NOTE_NAMES.get(usize::from(slot)).copied().unwrap_or("note"),
        }
    }

    /// Its width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::Port | Self::ArrivalPort => 9,
            Self::Enqueued | Self::Dequeued | Self::Arrived => 48,
            Self::Generated | Self::FedBack | Self::HasActivity | Self::Malformed => 1,
            Self::Ecn => 2,
            Self::Source | Self::Destination | Self::Ports | Self::Sequence | Self::Acknowledgement => 32,
            Self::Protocol | Self::TcpFlags => 8,
            Self::IpWords | Self::TcpWords => 4,
            Self::Note(slot) if slot >= WIDE_NOTES => 8,
            Self::Length
            | Self::IpLength
            | Self::Activity
            | Self::Identification
            | Self::Window
            | Self::TcpChecksum
            | Self::Note(_) => 16,
            Self::Depth | Self::QueueLength | Self::LengthBehind => 19,
        }
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::Length | Self::IpLength => Unit::Bytes,
            Self::Depth => Unit::Cells,
            Self::QueueLength | Self::LengthBehind => Unit::Packets,
            Self::Port
            | Self::Generated
            | Self::Ecn
            | Self::Source
            | Self::Destination
            | Self::Ports
            | Self::Protocol
            | Self::FedBack
            | Self::ArrivalPort
            | Self::HasActivity
            | Self::Malformed
            | Self::Activity
            | Self::Identification
            | Self::Sequence
            | Self::Acknowledgement
            | Self::IpWords
            | Self::TcpWords
            | Self::TcpFlags
            | Self::Window
            | Self::TcpChecksum
            | Self::Note(_) => Unit::Number,
            Self::Enqueued | Self::Dequeued | Self::Arrived => Unit::NANOS,
        }
    }

    /// Whether a program may assign it: only slots of the note.
    pub fn is_note(self) -> bool {
        matches!(self, Self::Note(_))
    }

    /// Whether a half of the pipeline knows it.
    pub fn is_known_at(self, gress: Gress) -> bool {
        match self {
            Self::Arrived
            | Self::FedBack
            | Self::ArrivalPort
            | Self::IpWords
            | Self::TcpWords
            | Self::TcpFlags
            | Self::Window
            | Self::TcpChecksum => gress == Gress::Ingress,
            Self::Enqueued
            | Self::Dequeued
            | Self::Generated
            | Self::Length
            | Self::Depth
            | Self::QueueLength
            | Self::LengthBehind => gress == Gress::Egress,
            _ => true,
        }
    }
}

impl Operand {
    /// The variable that it reads.
    pub(crate) fn variable(self) -> Option<Variable> {
        match self {
            Self::Variable(variable) | Self::Slice { of: variable, .. } => Some(variable),
            Self::Constant(_) => None,
        }
    }
}

/// A number whose lowest `bits` bits are ones.
pub(crate) fn ones(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS.saturating_sub(bits)).unwrap_or(0)
}
