//! The levels of the queue: for each level, the flow that last raised the queue to it.
//!
//! This is the queue monitor of PrintQueue. There, each entry has a sequence number, and a newer entry invalidates the older ones above it.
//! In a FIFO queue, packets leave in the order of their arrival, so departures give all arrivals in order, each with the depth that it met:
//! levels above that depth no longer stand, and the packet's own bytes are the levels that it adds.

use queuescope_sketch::Share;
use queuescope_wire::FlowId;
use std::cmp::Reverse;

/// The levels of one queue, and a copy of them at its worst moment.
#[derive(Debug)]
pub(super) struct Levels {
    /// The flow that last raised the queue to `(i + 1) * step` bytes. Only the levels below `top` stand now.
    flows: Box<[u32]>,
    top: usize,
    /// The base-2 logarithm of the step in bytes, now and at the start.
    shift: u32,
    least_shift: u32,
    /// At the worst moment, `peak_top` levels stood: those below `intact` are still in `flows`, the others are here. Levels are
    /// saved before they are overwritten, so marking a new worst moment costs nothing, and a level is saved at most once each time
    /// that the queue sinks through it.
    saved: Box<[u32]>,
    peak_top: usize,
    intact: usize,
    /// Buffer for counting.
    sorted: Vec<u32>,
}

impl Levels {
    /// Creates `levels` levels of `step` bytes each (rounded up to a power of two). The step doubles when the levels do not reach the
    /// queue's depth.
    pub fn new(levels: usize, step: u64) -> Self {
        let shift = step.max(1).checked_next_power_of_two().map_or(63, u64::ilog2);
        Self {
            flows: vec![0; levels].into(),
            top: 0,
            shift,
            least_shift: shift,
            saved: vec![0; levels].into(),
            peak_top: 0,
            intact: 0,
            sorted: Vec::with_capacity(levels),
        }
    }

    /// The queue is empty.
    pub fn clear(&mut self) {
        (self.top, self.peak_top, self.intact, self.shift) = (0, 0, 0, self.least_shift);
    }

    /// The queue has sunk to this depth, before a packet comes.
    #[inline]
    pub fn fall_to(&mut self, depth: u64) {
        self.top = self.top.min((depth >> self.shift) as usize);
    }

    /// A packet of this flow raises the queue to this depth.
    #[inline]
    pub fn raise(&mut self, depth: u64, flow: FlowId) {
        while depth >> self.shift > self.flows.len() as u64 {
            self.widen();
        }
        let top = (depth >> self.shift) as usize;
        if top <= self.top {
            return;
        }
        if self.top < self.intact {
            self.saved[self.top..self.intact].copy_from_slice(&self.flows[self.top..self.intact]);
            self.intact = self.top;
        }
        self.flows[self.top..top].fill(flow.0);
        self.top = top;
    }

    /// Marks the current moment as the worst so far.
    #[inline]
    pub fn mark_peak(&mut self) {
        (self.peak_top, self.intact) = (self.top, self.top);
    }

    /// The flows of the levels at the worst moment, with the bytes of each flow's levels, largest first.
    pub fn culprits(&mut self) -> Vec<Share> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend(self.peak());
        sorted.sort_unstable();
        let step = 1 << self.shift;
        let share = |levels: &[u32]| Share { flow: FlowId(levels[0]), bytes: step * levels.len() as u64 };
        let mut shares: Vec<_> = sorted.chunk_by(|one, other| one == other).map(share).collect();
        shares.sort_unstable_by_key(|share| (Reverse(share.bytes), share.flow));
        self.sorted = sorted;
        shares
    }

    pub fn memory(&self) -> usize {
        size_of_val(&*self.flows) + size_of_val(&*self.saved) + self.sorted.capacity() * size_of::<u32>()
    }

    /// The memory for this number of levels, bytes.
    pub const fn memory_for(levels: usize) -> usize {
        3 * levels * size_of::<u32>()
    }

    /// The levels at the worst moment, lowest first.
    fn peak(&self) -> impl Iterator<Item = u32> {
        let intact = self.flows[..self.intact].iter();
        intact.chain(&self.saved[self.intact..self.peak_top]).copied()
    }

    /// Doubles the step: keeps every second level.
    #[cold]
    fn widen(&mut self) {
        self.saved[..self.intact].copy_from_slice(&self.flows[..self.intact]);
        self.intact = 0;
        for levels in [&mut self.flows, &mut self.saved] {
            for i in 0..levels.len() / 2 {
                levels[i] = levels[2 * i + 1];
            }
        }
        self.top /= 2;
        self.peak_top /= 2;
        self.shift += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn levels_above_the_depth_are_dropped_and_the_worst_moment_is_kept() {
        let mut levels = Levels::new(16, 100);
        assert_eq!(levels.shift, 7);
        levels.raise(400, FlowId(1));
        levels.mark_peak();
        levels.fall_to(200);
        levels.raise(300, FlowId(2));
        assert_eq!(levels.peak().collect::<Vec<_>>(), [1, 1, 1]);
        levels.mark_peak();
        assert_eq!(levels.peak().collect::<Vec<_>>(), [1, 2]);
    }

    proptest! {
        /// Compares with levels of one byte each, copied at each worst moment.
        #[test]
        fn levels_match_a_byte_by_byte_stack(
            steps in prop::collection::vec((0..400usize, 1..300usize, any::<bool>()), 1..80), room in 8..40usize
        ) {
            let mut levels = Levels::new(room, 4);
            let (mut stack, mut worst) = (Vec::new(), Vec::new());
            for (number, (sinks, size, peak)) in steps.into_iter().enumerate() {
                stack.truncate(stack.len().saturating_sub(sinks));
                levels.fall_to(stack.len() as u64);
                if peak {
                    levels.mark_peak();
                    worst.clone_from(&stack);
                }
                stack.resize(stack.len() + size, number as u32);
                levels.raise(stack.len() as u64, FlowId(number as u32));
                let step = 1 << levels.shift;
                let expected: Vec<_> = worst.iter().skip(step - 1).step_by(step).copied().collect();
                prop_assert_eq!(levels.peak().collect::<Vec<_>>(), expected);
            }
        }
    }
}
