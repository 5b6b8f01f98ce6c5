//! The queue monitor: a stack by depth.

use super::{PrintQueueError, within};

/// A stack by depth: the flow of the packet that last brought the queue to each level, with its number.
///
/// A packet changes the stack if it finds another level than the packet before it did. If the queue fell, the packet's entry has a higher number
/// than those above it, which no longer stand. PrintQueue calls this its queue monitor.
///
/// ```
/// use queuescope_sketch::{DepthStack, DepthStackParams};
///
/// let mut stack = DepthStack::new(DepthStackParams::default())?;
/// for (flow, depth) in [('a', 0), ('a', 20), ('b', 40), ('c', 20), ('d', 30)] {
///     stack.record(flow, depth);
/// }
/// // The queue fell to 20 cells before flow d came: flow b has left it.
/// let standing: Vec<_> = stack.standing().map(|raised| (raised.level, raised.flow)).collect();
/// assert_eq!(standing, [(0, 'a'), (20, 'c'), (30, 'd')]);
/// # Ok::<(), queuescope_sketch::PrintQueueError>(())
/// ```
#[derive(Debug, Clone)]
pub struct DepthStack<F> {
    params: DepthStackParams,
    entries: Vec<(u32, F)>,
    /// The level that the last packet found.
    top: Option<u32>,
    packets: u32,
}

/// The dimensions of [`DepthStack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthStackParams {
    /// A level is 2^step_bits cells of the packet buffer. 0 to 10.
    pub step_bits: u32,
    /// There are 2^level_bits levels. A deeper queue is at the last one. 1 to 16.
    pub level_bits: u32,
}

/// An entry that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised<F> {
    /// The level, in steps.
    pub level: u32,
    /// The flow of the packet that found the queue there.
    pub flow: F,
    /// The number of this packet.
    pub number: u32,
}

/// Those of the published program: 32 768 levels of a cell of 80 bytes each.
impl Default for DepthStackParams {
    fn default() -> Self {
        Self { step_bits: 0, level_bits: 15 }
    }
}

impl DepthStackParams {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first dimension that is out of range.
    pub fn check(&self) -> Result<(), PrintQueueError> {
        within("step-bits", self.step_bits, 0, 10)?;
        within("level-bits", self.level_bits, 1, 16)
    }

    /// The highest level.
    pub fn highest(&self) -> u32 {
        (1 << self.level_bits) - 1
    }
}

impl<F: Copy + Default> DepthStack<F> {
    /// A stack without entries.
    ///
    /// # Errors
    /// Fails if a dimension is out of range.
    pub fn new(params: DepthStackParams) -> Result<Self, PrintQueueError> {
        params.check()?;
        Ok(Self { params, entries: vec![(0, F::default()); 1 << params.level_bits], top: None, packets: 0 })
    }

    /// The stack of a switch, by the words of its registers: the number and the flow of each level's packet, and the level that the last packet
    /// found.
    /// In the program's register, the level is 0xffffffff before the first packet: `None`. (BMv2 stores the XOR of a word with its initial value.)
    ///
    /// # Errors
    /// Fails if a dimension is out of range, if there are not as many levels, or if the last packet's is not one of them.
    pub fn from_entries(
        params: DepthStackParams,
        entries: Vec<(u32, F)>,
        top: Option<u32>,
        packets: u32,
    ) -> Result<Self, PrintQueueError> {
        params.check()?;
        let levels = params.highest() + 1;
        within("number of levels", entries.len() as u32, levels, levels)?;
        within("last level", top.unwrap_or(0), 0, params.highest())?;
        Ok(Self { params, entries, top, packets })
    }

    /// A packet of a flow found `depth` cells in the queue. Packets come in the order in which they enter the queue.
    pub fn record(&mut self, flow: F, depth: u32) {
        self.packets = self.packets.wrapping_add(1);
        let level = (depth >> self.params.step_bits).min(self.params.highest());
        if Some(level) != self.top {
            self.entries[level as usize] = (self.packets, flow);
        }
        self.top = Some(level);
    }

    /// The level that the last packet found; none before the first.
    pub fn top(&self) -> Option<u32> {
        self.top
    }

    /// The number of packets, modulo 2^32.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// An entry, whether or not it stands: the number of its packet and its flow. The number 0 stands for none.
    pub fn entry(&self, level: usize) -> Option<(u32, F)> {
        self.entries.get(level).copied()
    }

    /// The entries that stand, from the lowest level on: each has a higher number than all below it. Wrong once the number of packets has wrapped,
    /// until all levels have been written again.
    pub fn standing(&self) -> impl Iterator<Item = Raised<F>> {
        let mut highest = 0;
        let levels = self.entries.iter().zip(0..self.top.map_or(0, |top| top + 1));
        levels.filter_map(move |((number, flow), level)| {
            let stands = *number > highest;
            highest = highest.max(*number);
            stands.then_some(Raised { level, flow: *flow, number: *number })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(packets: &[(char, u32)], params: DepthStackParams) -> Vec<(u32, char)> {
        let mut stack = DepthStack::new(params).expect("they are valid");
        packets.iter().for_each(|(flow, depth)| stack.record(*flow, *depth));
        stack.standing().map(|raised| (raised.level, raised.flow)).collect()
    }

    #[test]
    fn a_lower_level_ends_those_above_it() {
        let params = DepthStackParams::default();
        assert_eq!(standing(&[('a', 5), ('b', 9), ('c', 3)], params), [(3, 'c')]);
        assert_eq!(standing(&[('a', 5), ('b', 9), ('c', 7), ('d', 12)], params), [(5, 'a'), (7, 'c'), (12, 'd')]);
        // The same level twice: the first packet raised it.
        assert_eq!(standing(&[('a', 5), ('b', 5)], params), [(5, 'a')]);
    }

    #[test]
    fn levels_are_steps_of_cells_and_end() {
        let params = DepthStackParams { step_bits: 4, level_bits: 3 };
        assert_eq!(standing(&[('a', 15), ('b', 16), ('c', 31), ('d', 500)], params), [(0, 'a'), (1, 'b'), (7, 'd')]);
    }

    #[test]
    fn words_of_a_switch_give_the_same_answers() {
        let params = DepthStackParams { step_bits: 0, level_bits: 2 };
        let mut stack = DepthStack::new(params).expect("they are valid");
        [('a', 0), ('b', 3), ('c', 1)].into_iter().for_each(|(flow, depth)| stack.record(flow, depth));
        let entries: Vec<_> = (0..).map_while(|level| stack.entry(level)).collect();
        let again = DepthStack::from_entries(params, entries.clone(), stack.top(), stack.packets());
        let standing: Vec<_> = again.expect("they are complete").standing().collect();
        assert_eq!(standing, stack.standing().collect::<Vec<_>>());
        assert_eq!(standing.len(), 2);
        let error =
            |entries, top| DepthStack::from_entries(params, entries, top, 3).expect_err("it is wrong").to_string();
        assert_eq!(error(entries[1..].to_vec(), None), "number of levels must be 4, not 3");
        assert_eq!(error(entries, Some(4)), "last level must be 0 to 3, not 4");
    }

    #[test]
    fn dimensions_are_checked() {
        for (step_bits, level_bits, text) in
            [(11, 1, "step-bits must be 0 to 10, not 11"), (0, 17, "level-bits must be 1 to 16, not 17")]
        {
            let params = DepthStackParams { step_bits, level_bits };
            assert_eq!(params.check().expect_err("it is out of range").to_string(), text);
        }
    }
}
