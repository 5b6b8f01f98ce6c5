//! Texts and bounds of keys that several congestion controls have.

use std::ops::RangeInclusive;

pub(super) const ONLY_IF_LIMITED: &str = "Whether the window grows only if it was what limited the sender.";
pub(super) const COUNTING: &str = "The unit in which growth is counted.";
pub(super) const RTT: &str = "The round-trip time that is used.";
pub(super) const ROUND: &str = "When a round trip ends.";
pub(super) const SEGMENTS: RangeInclusive<u64> = 0..=1_000_000_000;
