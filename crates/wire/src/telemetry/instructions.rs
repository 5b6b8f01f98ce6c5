//! The bitmap that states which metadata are there.

/// The instruction bitmap of INT (INT sections 5.8 and 5.9), and `RepMdBits` of a report (TRF section 3.3.1). Bit 0 is the
/// most significant one.
///
/// ```
/// use queuescope_wire::telemetry::Instructions;
///
/// let bits = Instructions(0b1001_1000_0000_0000);
/// assert!(bits.has(Instructions::NODE) && bits.has(Instructions::QUEUE));
/// // Node and queue have a word each, the ingress time two.
/// assert_eq!(bits.words(), 4);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Instructions(
    /// The bits as in the header.
    pub u16,
);

impl Instructions {
    /// Bit 0: node identifier. Reserved in reports, whose group header has it.
    pub const NODE: Self = Self::bit(0);
    /// Bit 1: level 1 interfaces.
    pub const INTERFACES: Self = Self::bit(1);
    /// Bit 2: hop latency.
    pub const LATENCY: Self = Self::bit(2);
    /// Bit 3: queue identifier and occupancy.
    pub const QUEUE: Self = Self::bit(3);
    /// Bit 4: ingress timestamp, in two words.
    pub const INGRESS_TIME: Self = Self::bit(4);
    /// Bit 5: egress timestamp, in two words.
    pub const EGRESS_TIME: Self = Self::bit(5);
    /// Bit 6: level 2 interfaces, in two words.
    pub const LOGICAL_INTERFACES: Self = Self::bit(6);
    /// Bit 7: transmit utilisation of the egress interface.
    pub const UTILISATION: Self = Self::bit(7);
    /// Bit 8: buffer identifier and occupancy.
    pub const BUFFER: Self = Self::bit(8);
    /// Bits 9 to 14: reserved. A later minor version may give each a word (INT section 5.8).
    pub const RESERVED: Self = Self(0x007e);
    /// Bit 15: checksum complement in a packet; queue identifier and drop reason in a report.
    pub const LAST: Self = Self::bit(15);

    /// The bits that have two words instead of one.
    const LONG: Self = Self(Self::INGRESS_TIME.0 | Self::EGRESS_TIME.0 | Self::LOGICAL_INTERFACES.0);

    const fn bit(number: u16) -> Self {
        Self(0x8000 >> number)
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits that are set in both.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Words of 4 bytes that the metadata of these bits have together.
    #[inline]
    pub fn words(self) -> usize {
        (self.0.count_ones() + self.and(Self::LONG).0.count_ones()) as usize
    }
}
