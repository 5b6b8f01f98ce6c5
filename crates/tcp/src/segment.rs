//! A TCP header, and the length of the payload in place of its bytes.

use std::ops::{BitOr, Range};

/// A TCP segment. Sequence numbers count bytes from 0 and do not wrap: the SYN is number 0, the first byte of data
/// number 1.
///
/// ```
/// use queuescope_tcp::{Flags, Segment, Timestamps};
///
/// let segment = Segment { seq: 1, ack: 1, length: 1448, flags: Flags::ACK, ..Segment::default() };
/// assert_eq!(segment.end(), 1449);
/// assert_eq!(segment.header_bytes(), 20);
/// let with_times = Segment { timestamps: Some(Timestamps::default()), ..segment };
/// assert_eq!(with_times.header_bytes(), 32);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of the first byte.
    pub seq: u64,
    /// The next byte that is expected from the other side, if [`Flags::ACK`] is set.
    pub ack: u64,
    /// The receive window in bytes, after scaling.
    pub window: u64,
    /// Bytes of payload.
    pub length: u32,
    /// The control bits.
    pub flags: Flags,
    /// The timestamp option (RFC 7323), if it is used.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements (RFC 2018).
    pub sacks: Sacks,
    /// Whether a SYN lacks the option with the maximum segment size.
    pub without_mss: bool,
}

/// The timestamp option (RFC 7323 section 3), in ticks of the clocks of the two ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock (TSval).
    pub value: u32,
    /// The other end's clock, echoed (TSecr).
    pub echo: u32,
}

impl Segment {
    /// The sequence number after its last byte: a SYN and a FIN take one number each.
    pub fn end(&self) -> u64 {
        let controls = u64::from(self.flags.contains(Flags::SYN)) + u64::from(self.flags.contains(Flags::FIN));
        self.seq + u64::from(self.length) + controls
    }

    /// Bytes of TCP header with its options, padded to a multiple of four (RFC 9293 section 3.1).
    pub fn header_bytes(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { 10 } else { 0 };
        let sacks = if self.sacks.is_empty() { 0 } else { 2 + 8 * self.sacks.len() as u32 };
        // Maximum segment size, window scale and SACK permitted: on a SYN only.
        let on_syn = match (self.flags.contains(Flags::SYN), self.without_mss) {
            (false, _) => 0,
            (true, false) => 4 + 3 + 2,
            (true, true) => 3 + 2,
        };
        20 + (timestamps + sacks + on_syn).next_multiple_of(4)
    }
}

/// The control bits of a header (RFC 9293 section 3.1; ECE and CWR of RFC 3168 section 6.1).
///
/// ```
/// use queuescope_tcp::Flags;
///
/// let flags = Flags::from_bits(0x12);
/// assert_eq!(flags, Flags::SYN | Flags::ACK);
/// assert!(flags.contains(Flags::SYN) && !flags.contains(Flags::FIN));
/// assert_eq!(flags.bits(), 0x12);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Push.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(1 << 4);
    /// ECN echo: congestion was experienced in the other direction.
    pub const ECE: Self = Self(1 << 6);
    /// The sender has reduced its congestion window.
    pub const CWR: Self = Self(1 << 7);

    /// The flags in byte 13 of a header.
    #[inline]
    pub fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Byte 13 of a header with these flags.
    #[inline]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether all flags of `other` are set.
    #[inline]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Up to three blocks of data that arrived out of order, as half-open ranges of sequence numbers; newest first (RFC
/// 2018 section 4).
///
/// ```
/// use queuescope_tcp::Sacks;
///
/// let mut sacks = Sacks::default();
/// sacks.push(4345..5793);
/// sacks.push(1449..2897);
/// assert_eq!(sacks.len(), 2);
/// let bytes: u64 = sacks.iter().map(|block| block.end - block.start).sum();
/// assert_eq!(bytes, 2 * 1448);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sacks {
    blocks: [(u64, u64); 3],
    count: u8,
}

impl Sacks {
    /// The most blocks: as many as fit beside a timestamp.
    pub const MOST: usize = 3;

    /// Adds a block; has no effect if there are three.
    pub fn push(&mut self, block: Range<u64>) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = (block.start, block.end);
            self.count += 1;
        }
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks, in the order in which they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.blocks[..self.len()].iter().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_long_as_on_the_wire() {
        let mut segment = Segment { length: 1448, ..Segment::default() };
        assert_eq!(segment.header_bytes(), 20);
        segment.timestamps = Some(Timestamps::default());
        assert_eq!(segment.header_bytes(), 32);
        segment.sacks.push(5..9);
        assert_eq!(segment.header_bytes(), 40);
        segment.sacks.push(1..2);
        segment.sacks.push(3..4);
        assert_eq!(segment.header_bytes(), 56);
        segment.sacks.push(7..8);
        assert_eq!(segment.sacks.iter().collect::<Vec<_>>(), [5..9, 1..2, 3..4]);
        assert_eq!((segment.header_bytes(), segment.end()), (56, 1448));
        segment = Segment { flags: Flags::SYN, timestamps: Some(Timestamps::default()), ..Segment::default() };
        assert_eq!((segment.header_bytes(), segment.end()), (40, 1));
        segment.without_mss = true;
        assert_eq!(segment.header_bytes(), 36);
    }
}
