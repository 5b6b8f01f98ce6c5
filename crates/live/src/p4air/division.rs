//! The division of the queues among the groups, as the kernel has it (`bpf/division.h`).

use super::P4airGroup;
use std::ops::Range;

/// The flows of each group of P4air, and the queues of those of long-lived flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct P4airDivision {
    /// How many flows a queue may have before its group counts as full.
    pub flows_per_queue: u32,
    /// How many times a queue moved to another group.
    pub given: u32,
    /// The first queue of each group, and the end of the last one's.
    bounds: [u32; 5],
    flows: [u32; 6],
    in_queue: Vec<u32>,
}

/// Where the parts of `struct division` begin, in words.
const BOUNDS: usize = 3;
const FLOWS: usize = BOUNDS + 8;
const GIVEN: usize = FLOWS + 8 + 4 + 4 + 1;
const IN_QUEUE: usize = GIVEN + 1;
/// Queues of long-lived flows that there is room for.
const QUEUES: usize = 64;

impl P4airDivision {
    /// The size of `struct division` in words.
    pub(crate) const WORDS: usize = IN_QUEUE + 2 * QUEUES;

    /// The division before there are flows: new flows are delay-based, so that group has all queues but one for each other group.
    pub(crate) fn new(queues: u32) -> Self {
        let last = |others: u32| queues.saturating_sub(others);
        let bounds = [0, last(3), last(2), last(1), queues];
        Self { flows_per_queue: 1, given: 0, bounds, flows: [0; 6], in_queue: vec![0; queues as usize] }
    }

    /// The number of flows of a group.
    pub fn flows(&self, group: P4airGroup) -> u32 {
        self.flows[group as usize]
    }

    /// The queues of a group of long-lived flows; none for ants and mice, which have one each.
    pub fn queues(&self, group: P4airGroup) -> Range<u32> {
        match P4airGroup::LONG_LIVED.iter().position(|one| *one == group) {
            Some(kind) => self.bounds[kind]..self.bounds[kind + 1],
            None => 0..0,
        }
    }

    /// The number of flows in each queue of long-lived flows.
    pub fn in_queues(&self) -> &[u32] {
        &self.in_queue
    }

    pub(crate) fn words(&self) -> [u32; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        (words[1], words[2]) = (self.in_queue.len() as u32, self.flows_per_queue);
        words[BOUNDS..BOUNDS + 5].copy_from_slice(&self.bounds);
        words
    }

    pub(crate) fn from_words(words: &[u32; Self::WORDS]) -> Self {
        let queues = (words[1] as usize).min(QUEUES);
        Self {
            flows_per_queue: words[2],
            given: words[GIVEN],
            bounds: std::array::from_fn(|bound| words[BOUNDS + bound]),
            flows: std::array::from_fn(|group| words[FLOWS + group]),
            in_queue: words[IN_QUEUE..IN_QUEUE + queues].to_vec(),
        }
    }
}
