//! Amounts in bytes and in packets.

use crate::{Amount, Share};

/// The unit that fills a queue: bytes, or packets if the limit of the queue is in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
}

impl Amount {
    pub(super) fn from_share(share: &Share) -> Self {
        Self { bytes: share.bytes, packets: share.packets }
    }

    pub(super) fn by(self, measure: Measure) -> u64 {
        match measure {
            Measure::Bytes => self.bytes,
            Measure::Packets => self.packets,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    pub(super) fn max(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    pub(super) fn min(self, other: Self) -> Self {
        self.each(other, u64::min)
    }

    pub(super) fn less(self, other: Self) -> Self {
        self.each(other, |own, other| own.saturating_sub(other).max(1))
    }

    /// A share of this, at least 1 of each.
    pub(super) fn part(self, part: f64) -> Self {
        let of = |whole: u64| ((whole as f64 * part).ceil() as u64).max(1);
        Self { bytes: of(self.bytes), packets: of(self.packets) }
    }

    /// Whether this has at least as many bytes, or at least as many packets.
    pub(super) fn reaches(self, least: Self) -> bool {
        self.bytes >= least.bytes || self.packets >= least.packets
    }

    fn each(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self { bytes: join(self.bytes, other.bytes), packets: join(self.packets, other.packets) }
    }
}
