//! Evaluates a filter by examining all records.

use super::matches::{Bits, WORDS};
use super::sieve::Sieve;
use super::{Group, with_scratch};
use crate::expr::{Aggregates, Dnf, Filter, NoAggregates};
use crate::schema::Schema;

/// A filter without aggregates, for whole chunks.
#[derive(Debug)]
pub(crate) enum Scan {
    /// Term after term.
    Sieve(Sieve),
    /// All its terms at once.
    Group(Group),
    /// Record by record: it has too many terms.
    Slow(Filter),
}

impl Scan {
    /// The fastest scan for `dnf`.
    pub fn new(dnf: &Dnf, schema: &Schema) -> Self {
        if let Some(sieve) = Sieve::new(dnf, schema) {
            return Self::Sieve(sieve);
        }
        let (groups, _) = Group::all([(0, dnf)], schema);
        groups.into_iter().next().map_or_else(|| Self::Slow(Filter::new(dnf, schema)), Self::Group)
    }

    /// The matches among the records of a chunk, or among the first of them.
    pub fn bits(&self, rows: &[u8], size: usize) -> Bits {
        match self {
            Self::Sieve(sieve) => sieve.bits(rows, size),
            Self::Group(group) => {
                let mut found = [0; WORDS];
                with_scratch(|scratch| group.evaluate(rows, &mut scratch.set, |_, bits| found = *bits));
                found
            }
            Self::Slow(filter) => one_by_one(filter, rows, size, &NoAggregates),
        }
    }
}

/// The matches, with the same aggregates for all records.
fn one_by_one(filter: &Filter, rows: &[u8], size: usize, aggregates: &impl Aggregates) -> Bits {
    let mut found = [0; WORDS];
    for (place, record) in rows.chunks_exact(size).enumerate() {
        found[place / 64] |= u64::from(filter.matches(record, aggregates)) << (place % 64);
    }
    found
}
