//! The blocks of data out of order that changed last. A receiver reports them first (RFC 2018 section 4).

/// Blocks that are remembered: one more than fit in an ACK with a timestamp, in case one of them is filled in (Linux
/// and ns-3 also keep four).
const KEPT: usize = 4;

/// Half-open ranges of sequence numbers, the one that changed last first. Empty ranges are unused entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecentBlocks {
    blocks: [(u64, u64); KEPT],
}

impl RecentBlocks {
    /// Adds a changed block. It absorbs blocks that begin within it. Blocks below `next` are no longer out of order.
    pub(crate) fn put(&mut self, block: (u64, u64), next: u64) {
        let before = self.blocks;
        self.blocks = [(0, 0); KEPT];
        self.blocks[0] = block;
        let others = before.into_iter().filter(|other| other.0 >= next && !(block.0..block.1).contains(&other.0));
        for (place, other) in self.blocks[1..].iter_mut().zip(others) {
            *place = other;
        }
    }

    /// Adds the range `came`, joined with the remembered blocks that it touches.
    pub(crate) fn join(&mut self, came: (u64, u64), next: u64) {
        let (mut start, mut end) = came;
        for other in self.blocks {
            if other.1 == start {
                start = other.0;
            }
            if other.0 == end {
                end = other.1;
            }
        }
        self.put((start, end), next);
    }

    /// Blocks that are still out of order, the one that changed last first.
    pub(crate) fn from(&self, next: u64) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.into_iter().filter(move |block| block.0 >= next && block.0 < block.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_block_does_not_come_back() {
        let mut recent = RecentBlocks::default();
        for start in [10, 20, 30, 40, 50] {
            recent.join((start, start + 5), 1);
        }
        assert_eq!(recent.from(1).collect::<Vec<_>>(), [(50, 55), (40, 45), (30, 35), (20, 25)]);
        // It touches (10, 15), which is forgotten, and (20, 25), which is not.
        recent.join((15, 20), 1);
        assert_eq!(recent.from(1).collect::<Vec<_>>(), [(15, 25), (50, 55), (40, 45), (30, 35)]);
        recent.join((45, 50), 26);
        assert_eq!(recent.from(26).collect::<Vec<_>>(), [(40, 55), (30, 35)]);
        recent.put((30, 55), 26);
        assert_eq!(recent.from(26).collect::<Vec<_>>(), [(30, 55)]);
        assert_eq!(recent.from(55).count(), 0);
    }
}
