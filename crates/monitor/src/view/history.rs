//! The last seconds of a queue, slice by slice.

use queuescope_live::Slice;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// The number of remembered slices: 17 s, as many as a wide terminal has columns.
pub const SLICES: usize = 256;
/// The length of a slice as a power of two of nanoseconds, as in the probe: 67 ms.
pub const SHIFT: u32 = 26;
/// The number of slices that make up a "second" here: 1.007 s.
pub const SECOND: u64 = 15;

/// The sums of the last slices.
pub struct History {
    moments: BTreeMap<u64, Moment>,
    first: u64,
}

/// A slice, summed over all queues.
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

    /// Adds slices of all queues. A later call contains earlier slices again, with what was added since.
    pub fn slices(&mut self, slices: &[Slice]) {
        let mut sums: BTreeMap<u64, Moment> = BTreeMap::new();
        for slice in slices {
            sums.entry(slice_of(slice.start)).or_default().add(slice);
        }
        for (number, moment) in sums {
            let known = self.moments.entry(number).or_default();
            // A busy queue may have overwritten the oldest slices in the kernel.
            if moment.packets >= known.packets {
                *known = moment;
            }
        }
        while self.moments.len() > SLICES {
            self.moments.pop_first();
        }
    }

    /// The last complete slices before `now` and since the start.
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

    /// The sum of several slices.
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

/// The number of the slice that contains `at`.
pub fn slice_of(at: Nanos) -> u64 {
    at.0 >> SHIFT
}

/// Bytes in `slices` slices, as bits per second.
pub fn rate(bytes: u64, slices: u64) -> f64 {
    bytes as f64 * 8e9 / ((slices.max(1) << SHIFT) as f64)
}
