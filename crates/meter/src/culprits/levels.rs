//! Who raised the queue to each level that stands: PrintQueue's queue monitor, in bytes.

use super::ranking::{Ranking, Tally};
use super::record::Left;
use queuescope_wire::{Backlog, ByteCount, FlowId};

/// The queue as a pile of levels, each one byte high and owned by the packet that last raised the queue to it.
///
/// A packet that comes lays its bytes on top, one that leaves takes as many from the top, whoever's they are: what stands
/// below has not been left since it was last reached. So the owner of a level is the packet whose coming last raised the
/// queue from below to it, in any order of departure, since only the sum counts.
#[derive(Debug, Default)]
pub(super) struct Levels<'a> {
    /// From the bottom: the owner, and how many levels.
    pile: Vec<(&'a Left, u64)>,
    backlog: Backlog,
}

impl<'a> Levels<'a> {
    /// A packet comes.
    pub(super) fn rise(&mut self, left: &'a Left) {
        let size = u64::from(left.size);
        self.backlog.packets += 1;
        self.backlog.bytes += ByteCount(size);
        if size > 0 {
            self.pile.push((left, size));
        }
    }

    /// A packet that has come leaves.
    pub(super) fn fall(&mut self, left: &Left) {
        let mut size = u64::from(left.size);
        self.backlog.packets -= 1;
        self.backlog.bytes -= ByteCount(size);
        while size > 0
            && let Some((_, top)) = self.pile.last_mut()
        {
            let taken = size.min(*top);
            (size, *top) = (size - taken, *top - taken);
            if *top == 0 {
                self.pile.pop();
            }
        }
    }

    /// What is in the queue.
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The owners of the levels that stand.
    pub(super) fn owners(&self) -> Ranking<FlowId> {
        let mut tally = Tally::default();
        self.pile.iter().for_each(|(left, levels)| tally.add(left, *levels));
        tally.ranking()
    }
}
