//! Match tables.

use super::variable::{Operand, Variable};

/// A table: the entry that matches the keys gives values to variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchTable {
    /// Its name: letters, digits and underscores.
    pub name: &'static str,
    /// What it maps, in a sentence without a final period.
    pub about: &'static str,
    /// What is looked up.
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

impl TableEntries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Exact(entries) => entries.len(),
            Self::Ranges(entries) => entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
