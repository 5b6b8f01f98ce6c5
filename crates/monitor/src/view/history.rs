//! The last seconds of a queue, slice by slice.

use queuescope_live::Slice;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Slices that are remembered: 17 s, as wide as a wide terminal.
pub const SLICES: usize = 256;
/// A slice as a power of two of nanoseconds, as the probe has it: 67 ms.
pub const SHIFT: u32 = 26;
/// Slices of what is called a second here: 1.007 s.
pub const SECOND: u64 = 15;

/// What happened, by slice.
pub struct History {
    moments: BTreeMap<u64, Moment>,
    first: u64,
}

/// A slice, of all queues together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    pub packets: u64,
    pub bytes: u64,
    pub delay_sum: u64,
    pub delay_max: u64,
    pub depth_bytes: u64,
    pub depth_packets: u64,
}

impl History {
    pub fn new(origin: Nanos) -> Self {
        Self { moments: BTreeMap::new(), first: slice_of(origin) }
    }

    /// Slices of all queues; what is known of them is told again, with what came since.
    pub fn slices(&mut self, slices: &[Slice]) {
        let mut told: BTreeMap<u64, Moment> = BTreeMap::new();
        for slice in slices {
            told.entry(slice_of(slice.start)).or_default().add(slice);
        }
        for (number, moment) in told {
            let known = self.moments.entry(number).or_default();
            // Of the oldest, a queue that is busy no longer knows.
            if moment.packets >= known.packets {
                *known = moment;
            }
        }
        while self.moments.len() > SLICES {
            self.moments.pop_first();
        }
    }

    /// The last whole slices before `now`, since it is watched.
    pub fn until(&self, now: Nanos) -> Vec<Moment> {
        let end = slice_of(now);
        let first = end.saturating_sub(SLICES as u64).max(self.first).min(end);
        (first..end).map(|number| self.moments.get(&number).copied().unwrap_or_default()).collect()
    }
}

impl Moment {
    fn add(&mut self, slice: &Slice) {
        self.packets += slice.packets;
        self.bytes += slice.bytes;
        self.delay_sum = self.delay_sum.saturating_add(slice.delay_sum.0);
        self.delay_max = self.delay_max.max(slice.delay_max.0);
        self.depth_bytes = self.depth_bytes.max(u64::from(slice.backlog_max));
        self.depth_packets = self.depth_packets.max(u64::from(slice.length_max));
    }

    /// Several as one.
    pub fn all(moments: &[Self]) -> Self {
        moments.iter().fold(Self::default(), |all, one| Self {
            packets: all.packets + one.packets,
            bytes: all.bytes + one.bytes,
            delay_sum: all.delay_sum.saturating_add(one.delay_sum),
            delay_max: all.delay_max.max(one.delay_max),
            depth_bytes: all.depth_bytes.max(one.depth_bytes),
            depth_packets: all.depth_packets.max(one.depth_packets),
        })
    }
}

/// The number of the slice that a moment is in.
pub fn slice_of(at: Nanos) -> u64 {
    at.0 >> SHIFT
}

/// Bytes in so many slices as bits per second.
pub fn rate(bytes: u64, slices: u64) -> f64 {
    bytes as f64 * 8e9 / ((slices.max(1) << SHIFT) as f64)
}
