//! What one node measured of a packet.

use super::{Instructions, WORD};

/// What one node (a switch, router or network card) measured of a packet (INT section 4).
///
/// A field is none if the node was not asked for it, or could not provide it (`unavailable`). INT does not fix
/// the units of latency, times, occupancies and utilisation, nor the epoch of the times: nodes choose them and publish them
/// beside the data plane (INT section 4). Times of different nodes compare only if their clocks are synchronised.
///
/// ```
/// use queuescope_wire::telemetry::{Hop, IntMd};
///
/// let header = [
///     0x20, 0, 2, 6, // version 2, two words a hop, six more hops may follow
///     0x90, 0, 0, 0, 0, 0, 0, 0, // node, queue
///     0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, // node 9 does not know its queue
///     0, 0, 0, 8, 1, 0, 0, 40, // node 8, queue 1
/// ];
/// let md = IntMd::read(&header, header.len())?;
/// let hops: Vec<Hop> = md.hops().collect();
/// assert_eq!((hops[0].node, hops[0].queue_occupancy), (Some(9), None));
/// assert_eq!((hops[1].node, hops[1].queue, hops[1].queue_occupancy), (Some(8), Some(1), Some(40)));
/// # Ok::<(), queuescope_wire::telemetry::MalformedInt>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hop<'a> {
    /// The node, unique within its domain.
    pub node: Option<u32>,
    /// Level 1 interface that the packet came in by: usually the physical port.
    pub ingress_interface: Option<u16>,
    /// Level 1 interface that the packet left by: usually the physical port.
    pub egress_interface: Option<u16>,
    /// Time that the packet spent within the node, in the node's units: nanoseconds, microseconds or 2^-32 s.
    pub latency: Option<u32>,
    /// The queue, usually numbered by egress port.
    pub queue: Option<u8>,
    /// What the packet saw in the queue, 24 bits, in the node's units: bytes, cells or packets.
    pub queue_occupancy: Option<u32>,
    /// When the packet came in, by the node's clock and in its units.
    pub ingress_time: Option<u64>,
    /// When the packet was processed at its egress, by the node's clock and in its units.
    pub egress_time: Option<u64>,
    /// Level 2 interface that the packet came in by: usually a logical one.
    pub logical_ingress_interface: Option<u32>,
    /// Level 2 interface that the packet left by: usually a logical one.
    pub logical_egress_interface: Option<u32>,
    /// Utilisation of the egress interface, in the node's units: percent, or tenths or hundredths of it.
    pub tx_utilisation: Option<u32>,
    /// The buffer, which several queues may share.
    pub buffer: Option<u8>,
    /// What the packet saw in the buffer, 24 bits, in the node's units.
    pub buffer_occupancy: Option<u32>,
    /// What keeps the transport checksum correct although this hop was inserted (INT section 5.6). Only in packets.
    pub checksum_complement: Option<u32>,
    /// Why the packet was dropped. Only in reports.
    pub drop_reason: Option<DropReason>,
    /// Metadata that the node could not provide: all their bits are 1 (INT section 5.8).
    pub unavailable: Instructions,
    /// Reserved bits that were set. Their metadata, a word each, were skipped; `raw` has them.
    pub unknown: Instructions,
    /// Domain specific metadata, whose form the domain defines. With the source's own, of which other hops have none.
    pub domain_specific: &'a [u8],
    /// All metadata of this hop as they were received.
    pub raw: &'a [u8],
}

/// Why and where a packet was dropped (TRF section 3.3.1, bit 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DropReason {
    /// The queue.
    pub queue: u8,
    /// The reason, from the node's list.
    pub reason: u8,
}

/// Where metadata are, which determines the meaning of bits 0 and 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// The stack in a packet (INT section 5.8).
    Stack,
    /// The main contents of a report (TRF section 3.3.1).
    Report,
}

impl<'a> Hop<'a> {
    /// Reads the metadata of one node. None if `raw` has fewer bytes than `instructions` need.
    pub(super) fn read(instructions: Instructions, raw: &'a [u8], within: Within) -> Option<Self> {
        let mut words = Words { left: raw, unavailable: Instructions::default() };
        let mut hop = Hop { raw, ..Self::default() };
        let has = |bit| instructions.has(bit);
        if has(Instructions::NODE) {
            match within {
                Within::Stack => hop.node = words.word(Instructions::NODE)?,
                Within::Report => words.skip(1)?,
            }
        }
        if has(Instructions::INTERFACES) {
            let halves = words.word(Instructions::INTERFACES)?.map(|word| ((word >> 16) as u16, word as u16));
            (hop.ingress_interface, hop.egress_interface) = halves.unzip();
        }
        if has(Instructions::LATENCY) {
            hop.latency = words.word(Instructions::LATENCY)?;
        }
        if has(Instructions::QUEUE) {
            (hop.queue, hop.queue_occupancy) = words.word(Instructions::QUEUE)?.map(split).unzip();
        }
        if has(Instructions::INGRESS_TIME) {
            hop.ingress_time = words.long(Instructions::INGRESS_TIME)?;
        }
        if has(Instructions::EGRESS_TIME) {
            hop.egress_time = words.long(Instructions::EGRESS_TIME)?;
        }
        if has(Instructions::LOGICAL_INTERFACES) {
            let halves = words.long(Instructions::LOGICAL_INTERFACES)?.map(|long| ((long >> 32) as u32, long as u32));
            (hop.logical_ingress_interface, hop.logical_egress_interface) = halves.unzip();
        }
        if has(Instructions::UTILISATION) {
            hop.tx_utilisation = words.word(Instructions::UTILISATION)?;
        }
        if has(Instructions::BUFFER) {
            (hop.buffer, hop.buffer_occupancy) = words.word(Instructions::BUFFER)?.map(split).unzip();
        }
        hop.unknown = instructions.and(within.unknown());
        words.skip(instructions.and(Instructions::RESERVED).words())?;
        if has(Instructions::LAST) {
            match within {
                // Behind the domain's metadata, as the last of the hop.
                Within::Stack => hop.checksum_complement = words.last(Instructions::LAST)?,
                // Before them, as the last of the baseline.
                Within::Report => hop.drop_reason = words.word(Instructions::LAST)?.map(DropReason::from_word),
            }
        }
        Some(Hop { unavailable: words.unavailable, domain_specific: words.left, ..hop })
    }
}

impl DropReason {
    fn from_word(word: u32) -> Self {
        let [queue, reason, _, _] = word.to_be_bytes();
        Self { queue, reason }
    }
}

impl Within {
    /// The bits without a meaning.
    fn unknown(self) -> Instructions {
        match self {
            Self::Stack => Instructions::RESERVED,
            Self::Report => Instructions(Instructions::RESERVED.0 | Instructions::NODE.0),
        }
    }
}

/// An identifier of 8 bits and a number of 24.
fn split(word: u32) -> (u8, u32) {
    ((word >> 24) as u8, word & 0x00ff_ffff)
}

/// Metadata that are left to read.
struct Words<'a> {
    left: &'a [u8],
    unavailable: Instructions,
}

impl Words<'_> {
    /// The next word; none within if all its bits are 1.
    fn word(&mut self, bit: Instructions) -> Option<Option<u32>> {
        let (bytes, left) = self.left.split_first_chunk()?;
        self.left = left;
        let word = u32::from_be_bytes(*bytes);
        Some(self.available(bit, word != u32::MAX).then_some(word))
    }

    /// The next two words as one number; none within if all its bits are 1.
    fn long(&mut self, bit: Instructions) -> Option<Option<u64>> {
        let (bytes, left) = self.left.split_first_chunk()?;
        self.left = left;
        let long = u64::from_be_bytes(*bytes);
        Some(self.available(bit, long != u64::MAX).then_some(long))
    }

    /// The last word; none within if all its bits are 1.
    fn last(&mut self, bit: Instructions) -> Option<Option<u32>> {
        let (left, bytes) = self.left.split_last_chunk()?;
        self.left = left;
        let word = u32::from_be_bytes(*bytes);
        Some(self.available(bit, word != u32::MAX).then_some(word))
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        self.left = self.left.get(words * WORD..)?;
        Some(())
    }

    fn available(&mut self, bit: Instructions, available: bool) -> bool {
        self.unavailable.0 |= if available { 0 } else { bit.0 };
        available
    }
}
