//! The times of drops, in bounded memory.

use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// Drops, in the order in which they were reported. Their number is exact. If there are too many entries, neighbours in the older half are
/// merged, and their times become less exact.
#[derive(Debug, Default)]
pub struct Losses {
    ranges: VecDeque<DropRange>,
}

/// Packets that were dropped at an unknown time in `[from, to]`.
#[derive(Debug, Clone, Copy)]
struct DropRange {
    from: Nanos,
    to: Nanos,
    packets: u64,
}

/// The largest number of separate entries.
const KEPT: usize = 1 << 18;

impl Losses {
    /// Packets were dropped at an unknown time in `[from, to]`.
    pub fn add(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if self.ranges.len() == KEPT {
            self.merge();
        }
        self.ranges.push_back(DropRange { from, to, packets });
    }

    /// Removes the drops that may have happened by `end`, and returns their number.
    pub fn take_until(&mut self, end: Nanos) -> u64 {
        let mut packets = 0;
        while let Some(stretch) = self.ranges.front().filter(|stretch| stretch.from <= end) {
            packets += stretch.packets;
            self.ranges.pop_front();
        }
        packets
    }

    /// Forgets drops before `start`.
    pub fn forget_before(&mut self, start: Nanos) {
        self.ranges.retain(|stretch| stretch.to >= start);
    }

    fn merge(&mut self) {
        let newer = self.ranges.split_off(KEPT / 2);
        let pairs = self.ranges.make_contiguous().chunks(2).map(|pair| DropRange {
            from: pair[0].from,
            to: pair.last().map_or(pair[0].to, |last| last.to),
            packets: pair.iter().map(|stretch| stretch.packets).sum(),
        });
        self.ranges = pairs.chain(newer).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_drop_is_lost_by_merging() {
        let mut losses = Losses::default();
        let all = 5 * KEPT as u64;
        (0..all).for_each(|time| losses.add(Nanos(time), Nanos(time), 1));
        assert!(losses.ranges.len() <= KEPT);
        // The newest are separate, and the older ones merged.
        losses.forget_before(Nanos(all - 100));
        assert_eq!(losses.take_until(Nanos(all - 51)), 50);
        assert_eq!((losses.take_until(Nanos(all)), losses.take_until(Nanos::MAX)), (50, 0));
        (0..all).for_each(|time| losses.add(Nanos(time), Nanos(time), 1));
        assert_eq!(losses.take_until(Nanos::MAX), all);
    }
}
