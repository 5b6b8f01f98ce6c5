//! How many packets were dropped when, in bounded memory.

use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// Drops, in the order in which they were heard of. Their number is exact. Of too many, neighbours among the older half become one: then
/// it is less exact when they were.
#[derive(Debug, Default)]
pub struct Losses {
    stretches: VecDeque<Stretch>,
}

/// Packets that were dropped some time in `[from, to]`.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Nanos,
    to: Nanos,
    packets: u64,
}

/// Stretches that are kept apart.
const KEPT: usize = 1 << 18;

impl Losses {
    /// Packets were dropped, some time in `[from, to]`.
    pub fn add(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if self.stretches.len() == KEPT {
            self.merge();
        }
        self.stretches.push_back(Stretch { from, to, packets });
    }

    /// Takes those that may have been dropped by `end`, and tells how many there were.
    pub fn take_until(&mut self, end: Nanos) -> u64 {
        let mut packets = 0;
        while let Some(stretch) = self.stretches.front().filter(|stretch| stretch.from <= end) {
            packets += stretch.packets;
            self.stretches.pop_front();
        }
        packets
    }

    /// Forgets those that were dropped before `start`.
    pub fn forget_before(&mut self, start: Nanos) {
        self.stretches.retain(|stretch| stretch.to >= start);
    }

    fn merge(&mut self) {
        let newer = self.stretches.split_off(KEPT / 2);
        let pairs = self.stretches.make_contiguous().chunks(2).map(|pair| Stretch {
            from: pair[0].from,
            to: pair.last().map_or(pair[0].to, |last| last.to),
            packets: pair.iter().map(|stretch| stretch.packets).sum(),
        });
        self.stretches = pairs.chain(newer).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_lost_however_many_there_are() {
        let mut losses = Losses::default();
        let all = 5 * KEPT as u64;
        (0..all).for_each(|time| losses.add(Nanos(time), Nanos(time), 1));
        assert!(losses.stretches.len() <= KEPT);
        // The newest are known one by one, and the older ones together.
        losses.forget_before(Nanos(all - 100));
        assert_eq!(losses.take_until(Nanos(all - 51)), 50);
        assert_eq!((losses.take_until(Nanos(all)), losses.take_until(Nanos::MAX)), (50, 0));
        (0..all).for_each(|time| losses.add(Nanos(time), Nanos(time), 1));
        assert_eq!(losses.take_until(Nanos::MAX), all);
    }
}
