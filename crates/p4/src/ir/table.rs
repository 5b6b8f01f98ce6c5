//! Match tables.

use super::builder::Statement;
use super::variable::{Name, Operand, Variable};

/// A table: the entry that matches the keys gives values to variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchTable {
    /// Its name: letters, digits and underscores.
    pub name: Name,
    /// What it maps, in a sentence without a final period.
    pub about: Name,
    /// What is looked up. Without keys and entries, the table holds parameters, which a control plane can change while the switch runs.
    pub keys: Vec<Operand>,
    /// The entries.
    pub entries: TableEntries,
    /// The variables that take the values of the entry.
    pub results: Vec<Variable>,
    /// Their values if no entry matches.
    pub otherwise: Vec<u64>,
}

/// The entries of a table, each with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableEntries {
    /// By all keys. No two entries have the same.
    Exact(Vec<(Vec<u64>, Vec<u64>)>),
    /// By ranges of the only key, both ends included, in ascending order and without overlap.
    Ranges(Vec<((u64, u64), Vec<u64>)>),
}

/// A table whose entries choose what is done: one of several lists of assignments and accesses, all of which one stage does at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionTable {
    /// Its name: letters, digits and underscores.
    pub name: Name,
    /// What it chooses, in a sentence without a final period.
    pub about: Name,
    /// What is looked up.
    pub keys: Vec<Operand>,
    /// What the entries choose from.
    pub actions: Vec<TableAction>,
    /// The entries: a range of each key, both ends included, and an action. No packet matches two.
    pub entries: Vec<(Vec<(u64, u64)>, usize)>,
}

/// What an entry of an [`ActionTable`] does. [`Builder::action`](super::Builder::action) makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAction {
    pub(crate) name: Name,
    pub(crate) statements: Vec<Statement>,
}

impl ActionTable {
    /// The action for these keys, if an entry matches.
    pub(crate) fn action(&self, keys: &[u64]) -> Option<&TableAction> {
        let matches =
            |ranges: &[(u64, u64)]| ranges.iter().zip(keys).all(|((low, high), key)| (low..=high).contains(&key));
        self.entries.iter().find(|(ranges, _)| matches(ranges)).map(|(_, action)| &self.actions[*action])
    }

    /// How a key is matched in P4, by what its entries have: one value, any value, or ranges. `all` is the highest value.
    pub(crate) fn kind(&self, key: usize, all: u64) -> &'static str {
        let mut ranges = self.entries.iter().map(|(ranges, _)| ranges[key]);
        let is_value = |(low, high): (u64, u64)| low == high;
        if ranges.clone().all(is_value) {
            "exact"
        } else if ranges.all(|range| is_value(range) || range == (0, all)) {
            "ternary"
        } else {
            "range"
        }
    }
}

impl TableEntries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Exact(entries) => entries.len(),
            Self::Ranges(entries) => entries.len(),
        }
    }

    /// How a key is matched in P4. Ranges that differ in their lowest bits only are prefixes, as ternary memory has them; a Tofino matches no
    /// ranges of more than 20 bits.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Ranges(entries) if entries.iter().all(|(range, _)| is_prefix(*range)) => "ternary",
            Self::Ranges(_) => "range",
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a range has all numbers that agree in all but their lowest bits.
fn is_prefix((low, high): (u64, u64)) -> bool {
    let span = low ^ high;
    span.wrapping_add(1) & span == 0 && low & span == 0
}
