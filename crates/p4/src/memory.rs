//! The memory of a program's registers, and the units that find their entries.

use crate::place::blocks_of;
use crate::program::{Op, Program, StepAction};
use crate::target::Target;

#[derive(Debug, Clone)]
pub(crate) struct RegisterInfo {
    pub name: String,
    /// The bits of each word of an entry.
    pub words: Vec<u32>,
    pub entries: u64,
    /// The part of the program's memory that it counts as.
    pub part: Option<&'static str>,
    /// The fields that its unit reads, in all actions. Unknown for steps in words, and 0 there.
    pub inputs: u64,
}

impl RegisterInfo {
    /// The bits that the program needs.
    pub fn bits(&self) -> u64 {
        self.entries * self.words.iter().copied().map(u64::from).sum::<u64>()
    }

    /// The bits that it takes on a switch, where a word has 1, 8, 16 or 32 bits, and both words of a pair as many.
    pub fn placed_bits(&self) -> u64 {
        let widest = self.words.iter().copied().max().unwrap_or(0);
        let word = if widest <= 1 { 1 } else { widest.next_power_of_two().max(8) };
        self.entries * u64::from(word) * self.words.len() as u64
    }
}

impl Program {
    /// The named parts of the memory and their bits, in the order of their first registers ([`Program::part`]). These are
    /// the bits that the program needs; the words of a switch may be wider.
    pub fn memory(&self) -> Vec<(&'static str, u64)> {
        let mut parts: Vec<(&'static str, u64)> = Vec::new();
        for register in &self.registers {
            let Some(part) = register.part else { continue };
            match parts.iter_mut().find(|(name, _)| *name == part) {
                Some((_, bits)) => *bits += register.bits(),
                None => parts.push((part, register.bits())),
            }
        }
        parts
    }

    /// Blocks of static memory that all registers take on a switch, with its words and one block each for the access.
    pub fn register_blocks(&self, target: &Target) -> u64 {
        self.registers.iter().map(|register| blocks_of(register, &target.per_stage)).sum()
    }

    /// How many hashes it computes.
    pub fn hashes(&self) -> u64 {
        self.steps.iter().filter(|step| step.does == StepAction::Compute(Op::Hash)).count() as u64
    }

    /// How many registers have entries that a field names.
    pub fn indexed_registers(&self) -> u64 {
        let is_indexed = |register: &usize| {
            let mut entries = (0..self.steps.len()).filter_map(|step| self.entry_of(step));
            entries.any(|entry| entry.register.0 == *register && entry.index.is_some())
        };
        (0..self.registers.len()).filter(is_indexed).count() as u64
    }
}
