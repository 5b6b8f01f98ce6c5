//! Registers, and what their units do in one access (a stateful ALU).

use super::condition::Comparison;
use super::operation::{saturated, signed};
use super::variable::{Name, Operand, Unit, ones};

/// An array of words in the memory of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterArray {
    /// Its name: letters, digits and underscores.
    pub name: Name,
    /// What it holds, in a sentence without a final period.
    pub about: Name,
    /// The width of a word: 8, 16 or 32 bits; 64 for a pair of words of 32 bits ([`PairAction`](super::PairAction)), the first in the low half.
    pub bits: u32,
    /// What a word counts; of a pair, the second word.
    pub unit: Unit,
    /// The number of words.
    pub entries: u64,
    /// The value of each word at the start.
    pub initial: u64,
}

/// What a register's unit does with one word: it evaluates up to two conditions, changes the word, and returns one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterAction {
    /// Its name: letters, digits and underscores.
    pub name: Name,
    /// Conditions on the word before the change.
    pub conditions: Vec<AluCondition>,
    /// The change: the first whose condition holds. The word stays as it is if none does.
    pub updates: Vec<AluUpdate>,
    /// What the packet takes along.
    pub output: AluOutput,
}

/// A comparison in the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AluCondition {
    /// The left value.
    pub left: AluExpression,
    /// How they are compared, as unsigned numbers of the word's width.
    pub comparison: Comparison,
    /// The right value.
    pub right: AluTerm,
}

/// A change of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AluUpdate {
    /// When it is made.
    pub when: When,
    /// The new word.
    pub value: AluExpression,
}

/// When an update is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// If this condition of the action holds.
    Holds(usize),
    /// If it does not hold.
    Fails(usize),
}

/// A value in the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AluTerm {
    /// The word.
    Word,
    /// A value of the packet, or a constant.
    Value(Operand),
}

/// A computation of the unit, on numbers of the word's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AluExpression {
    /// The term itself.
    Term(AluTerm),
    /// The sum, modulo two to the power of the width.
    Add(AluTerm, AluTerm),
    /// The first less the second, modulo two to the power of the width.
    Subtract(AluTerm, AluTerm),
    /// The sum; at most the largest number.
    AddSaturating(AluTerm, AluTerm),
    /// The first less the second; at least zero.
    SubtractSaturating(AluTerm, AluTerm),
    /// The sum of numbers in two's complement; at least the smallest and at most the largest.
    AddSigned(AluTerm, AluTerm),
    /// The word, moved towards the term by this power of two of the difference, rounded down: an average with exponential weights. A
    /// Tofino's unit cannot shift.
    MoveTowards(AluTerm, u32),
}

/// What an access returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AluOutput {
    /// The word before the change.
    Before,
    /// The word after the change.
    After,
    /// One if this condition of the action held, otherwise zero.
    Condition(usize),
    /// A value that is computed with the word before the change. The word stays as it is: a unit computes two values, and one of them would be
    /// the change.
    Computed(AluExpression),
    /// Nothing: the variable that takes the output keeps its value.
    Nothing,
}

impl AluExpression {
    /// Its terms.
    pub(crate) fn terms(self) -> Vec<AluTerm> {
        match self {
            Self::Term(one) => vec![one],
            Self::MoveTowards(one, _) => vec![AluTerm::Word, one],
            Self::Add(one, other)
            | Self::Subtract(one, other)
            | Self::AddSaturating(one, other)
            | Self::SubtractSaturating(one, other)
            | Self::AddSigned(one, other) => vec![one, other],
        }
    }

    pub(crate) fn value(self, bits: u32, read: &impl Fn(AluTerm) -> u64) -> u64 {
        let all = match self {
            Self::Term(one) => read(one),
            Self::Add(one, other) => read(one).wrapping_add(read(other)),
            Self::Subtract(one, other) => read(one).wrapping_sub(read(other)),
            Self::AddSaturating(one, other) => read(one).saturating_add(read(other)).min(ones(bits)),
            Self::SubtractSaturating(one, other) => read(one).saturating_sub(read(other)),
            Self::MoveTowards(to, shift) => {
                let word = read(AluTerm::Word);
                let change = (i128::from(read(to)) - i128::from(word)) >> shift;
                word.wrapping_add_signed(change as i64)
            }
            Self::AddSigned(one, other) => saturated(signed(read(one), bits) + signed(read(other), bits), bits),
        };
        all & ones(bits)
    }
}

impl AluCondition {
    /// Whether it depends on the word, and not on the packet alone.
    pub(crate) fn reads_word(&self) -> bool {
        self.left.terms().into_iter().chain([self.right]).any(|term| term == AluTerm::Word)
    }
}

impl RegisterAction {
    /// The values of the packet that it reads.
    pub(crate) fn operands(&self) -> Vec<Operand> {
        let of_condition = |condition: &AluCondition| [condition.left.terms(), vec![condition.right]].concat();
        let terms = self.conditions.iter().flat_map(of_condition);
        let terms = terms.chain(self.updates.iter().flat_map(|update| update.value.terms()));
        let terms = terms.chain(match self.output {
            AluOutput::Computed(value) => value.terms(),
            _ => Vec::new(),
        });
        let values = terms.filter_map(|term| match term {
            AluTerm::Word => None,
            AluTerm::Value(operand) => Some(operand),
        });
        values.collect()
    }

    /// Changes a word of `bits` bits. Returns the output, if the action has one.
    pub(crate) fn apply(&self, word: &mut u64, bits: u32, read: impl Fn(Operand) -> u64) -> Option<u64> {
        let before = *word;
        let read = |term| match term {
            AluTerm::Word => before,
            AluTerm::Value(operand) => read(operand),
        };
        let holds = |condition: &AluCondition| {
            condition.comparison.holds(&condition.left.value(bits, &read), &read(condition.right))
        };
        let holds: Vec<bool> = self.conditions.iter().map(holds).collect();
        let is_made = |update: &&AluUpdate| match update.when {
            When::Always => true,
            When::Holds(condition) => holds[condition],
            When::Fails(condition) => !holds[condition],
        };
        if let Some(update) = self.updates.iter().find(is_made) {
            *word = update.value.value(bits, &read);
        }
        match self.output {
            AluOutput::Before => Some(before),
            AluOutput::After => Some(*word),
            AluOutput::Condition(condition) => Some(holds[condition].into()),
            AluOutput::Computed(value) => Some(value.value(bits, &read)),
            AluOutput::Nothing => None,
        }
    }
}
