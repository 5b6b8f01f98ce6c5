//! Frames of a capture that were read and are not sent yet.

use queuescope_wire::parse::Segments;
use queuescope_wire::{Ecn, MaskedKey, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// Frames that will be sent to the queue, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub arrivals: Vec<Arrival>,
    /// The keys of the arrivals that have one, in order.
    pub keys: Vec<MaskedKey>,
    /// The splits of the super-packets, in order.
    pub splits: VecDeque<Split>,
    /// Ids that no packet has, in order: those of frames that were left out.
    pub gaps: VecDeque<Range<u64>>,
}

/// A frame that will be sent to the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub now: Nanos,
    /// Its bytes in the queue, unless it is split.
    pub size: u32,
    /// The place of its flow among those that were met lately, if it has one.
    pub place: u32,
    /// Whether the batch has its key.
    pub has_key: bool,
    pub is_split: bool,
    pub ecn: Ecn,
}

/// The place of arrivals without one. They have a key.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// The packets that a super-packet becomes.
#[derive(Debug)]
pub(super) struct Split {
    pub segments: Segments,
    pub link_header: u16,
    pub has_ethernet_header: bool,
}

impl Batch {
    pub fn with_capacity(arrivals: usize) -> Self {
        Self { arrivals: Vec::with_capacity(arrivals), ..Self::default() }
    }

    /// Empties it, and keeps its memory.
    pub fn clear(&mut self) {
        self.arrivals.clear();
        self.keys.clear();
        self.splits.clear();
        self.gaps.clear();
    }
}
