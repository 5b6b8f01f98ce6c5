//! The owner of each level of the queue: PrintQueue's queue monitor, in bytes.

use super::ranking::{Ranking, Tally};
use super::record::PackedDeparture;
use queuescope_wire::{Backlog, ByteCount, FlowId};

/// The queue as a pile of levels, each one byte high and owned by the packet that last raised the queue to it.
///
/// An arriving packet adds its bytes on top; a departing packet removes as many from the top, regardless of their owner. The levels below
/// have not been uncovered since they were last reached. So the owner of a level is the packet whose arrival last raised the queue to it, in
/// any order of departure, because only the sum matters.
#[derive(Debug, Default)]
pub(super) struct Levels<'a> {
    /// From the bottom: the owner, and how many levels.
    pile: Vec<(&'a PackedDeparture, u64)>,
    backlog: Backlog,
}

impl<'a> Levels<'a> {
    /// A packet arrives.
    pub(super) fn rise(&mut self, left: &'a PackedDeparture) {
        let size = u64::from(left.size);
        self.backlog.packets += 1;
        self.backlog.bytes += ByteCount(size);
        if size > 0 {
            self.pile.push((left, size));
        }
    }

    /// A packet that has arrived leaves.
    pub(super) fn fall(&mut self, left: &PackedDeparture) {
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

    /// The backlog.
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The owners of the current levels.
    pub(super) fn owners(&self) -> Ranking<FlowId> {
        let mut tally = Tally::default();
        self.pile.iter().for_each(|(left, levels)| tally.add(left, *levels));
        tally.ranking()
    }
}
