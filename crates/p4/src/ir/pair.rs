//! Registers whose entries are pairs of words, and what their units do in one access: compare and swap.
//!
//! A pair is a word of 64 bits in the description: its first word is the low half. A Tofino's unit has both words at once.

use super::action::{AluCondition, AluExpression, AluTerm};
use super::variable::{Name, Operand, ones};

/// The bits of each word of a pair.
pub(crate) const HALF_BITS: u32 = 32;
/// The bits of a pair.
pub(crate) const PAIR_BITS: u32 = 2 * HALF_BITS;

/// What a register's unit does with a pair: if any of its conditions holds, both words change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairAction {
    /// Its name: letters, digits and underscores.
    pub name: Name,
    /// One or two conditions on the words before the change.
    pub conditions: Vec<PairCondition>,
    /// The new words: the first, and the second.
    pub words: [Operand; 2],
    /// What the packet takes along.
    pub output: PairOutput,
}

/// A comparison of one word of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCondition {
    /// The word that [`AluTerm::Word`] is.
    pub of: Half,
    /// The comparison.
    pub condition: AluCondition,
}

/// One word of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// A plain number.
    First,
    /// A number in the unit of the register.
    Second,
}

/// What an access to a pair returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairOutput {
    /// One if the words changed, otherwise zero.
    Changed,
    /// The word before the change if they changed, otherwise zero.
    Before(Half),
}

impl Half {
    /// This word of a pair.
    fn of(self, pair: u64) -> u64 {
        match self {
            Self::First => pair & ones(HALF_BITS),
            Self::Second => pair >> HALF_BITS,
        }
    }

    /// Its name in P4.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

impl PairAction {
    /// The values of the packet that it reads.
    pub(crate) fn operands(&self) -> Vec<Operand> {
        let terms =
            self.conditions.iter().flat_map(|it| [it.condition.left.terms(), vec![it.condition.right]].concat());
        let values = terms.filter_map(|term| match term {
            AluTerm::Word => None,
            AluTerm::Value(operand) => Some(operand),
        });
        values.chain(self.words).collect()
    }

    /// The words that it reads.
    pub(crate) fn halves(&self) -> impl Iterator<Item = Half> {
        let returns = |half| self.output == PairOutput::Before(half);
        let reads = move |half: &Half| returns(*half) || self.conditions.iter().any(|it| it.of == *half);
        [Half::First, Half::Second].into_iter().filter(reads)
    }

    /// Changes a pair, and returns the output.
    pub(crate) fn apply(&self, pair: &mut u64, read: impl Fn(Operand) -> u64) -> u64 {
        let before = *pair;
        let changes = self.conditions.iter().any(|PairCondition { of, condition }| {
            let value = |term| match term {
                AluTerm::Word => of.of(before),
                AluTerm::Value(operand) => read(operand),
            };
            condition.comparison.holds(&condition.left.value(HALF_BITS, &value), &value(condition.right))
        });
        if changes {
            let [first, second] = self.words.map(&read);
            *pair = second << HALF_BITS | first & ones(HALF_BITS);
        }
        match self.output {
            PairOutput::Changed => changes.into(),
            PairOutput::Before(half) if changes => half.of(before),
            PairOutput::Before(_) => 0,
        }
    }
}

impl PairCondition {
    /// A comparison of a word with a value.
    pub fn of_word(of: Half, comparison: super::Comparison, right: impl Into<Operand>) -> Self {
        let condition =
            AluCondition { left: AluExpression::Term(AluTerm::Word), comparison, right: AluTerm::Value(right.into()) };
        Self { of, condition }
    }
}
