//! A filter that compares attributes with aggregates: it sees the records one by one, in the order of the log.
//!
//! The aggregates that it names are what they are *before* the record that is looked at (paper, figure 2: a sequence
//! number is compared with the highest so far). Such a filter goes over the log by itself, with states of its own of
//! all aggregates that it depends on, also through the filters of these; so it can be added late and taken away without
//! a thought of others.

use super::CHUNK;
use super::aggregate::{AggregateState, State};
use super::matches::{Bits, WORDS};
use crate::expr::{AggregateId, Aggregates, Dnf, Filter, Number};
use crate::schema::Schema;
use std::sync::Arc;

/// An aggregate that a filter names.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub id: AggregateId,
    pub aggregate: Arc<AggregateState>,
    /// Which of its values.
    pub component: usize,
}

/// How far it is.
#[derive(Debug)]
pub(crate) struct Pass {
    filter: Filter,
    needed: Needed,
    next: u64,
}

/// The aggregates that are needed, and what they are.
#[derive(Debug, Clone)]
struct Needed {
    aggregates: Vec<(Arc<AggregateState>, Option<Filter>)>,
    states: Vec<State>,
    /// Which of them an operand is, and which of its values; by operand.
    operands: Vec<(AggregateId, usize, usize)>,
}

impl Pass {
    /// At the first record, of a filter that names these.
    pub fn new(dnf: &Dnf, schema: &Schema, operands: &[Operand]) -> Self {
        let mut needed = Needed { aggregates: Vec::new(), states: Vec::new(), operands: Vec::new() };
        needed.add(schema, operands);
        needed.operands.sort_unstable_by_key(|(id, ..)| *id);
        Self { filter: Filter::new(dnf, schema), needed, next: 0 }
    }

    /// The chunk that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What it matches in the next chunk, which is whole.
    pub fn chunk(&mut self, rows: &[u8], size: usize) -> Bits {
        debug_assert_eq!(rows.len() / size, CHUNK as usize);
        self.next += 1;
        self.needed.go_over(&self.filter, rows, size)
    }

    /// What it matches in the first records of the next chunk, which stays the next.
    pub fn behind(&self, rows: &[u8], size: usize) -> Bits {
        self.needed.clone().go_over(&self.filter, rows, size)
    }
}

impl Needed {
    /// Adds operands, and those of their aggregates' filters. It ends, since an aggregate is there before the filters
    /// that name it.
    fn add(&mut self, schema: &Schema, operands: &[Operand]) {
        for Operand { id, aggregate, component } in operands {
            if self.operands.iter().any(|(other, ..)| other == id) {
                continue;
            }
            let known = self.aggregates.iter().position(|(other, _)| Arc::ptr_eq(other, aggregate));
            self.operands.push((*id, known.unwrap_or(self.aggregates.len()), *component));
            if known.is_none() {
                let filter = aggregate.filter.as_ref();
                let counted = filter.map(|filter| Filter::new(&filter.dnf, schema));
                self.aggregates.push((Arc::clone(aggregate), counted));
                self.states.push(aggregate.function.empty());
                self.add(schema, filter.map_or(&[], |filter| filter.operands.as_slice()));
            }
        }
    }

    fn go_over(&mut self, filter: &Filter, rows: &[u8], size: usize) -> Bits {
        let mut bits = [0; WORDS];
        let mut counted = vec![false; self.aggregates.len()];
        for (place, record) in rows.chunks_exact(size).enumerate() {
            bits[place / 64] |= u64::from(filter.matches(record, self)) << (place % 64);
            for (counted, (_, filter)) in counted.iter_mut().zip(&self.aggregates) {
                *counted = filter.as_ref().is_none_or(|filter| filter.matches(record, self));
            }
            for (index, (aggregate, _)) in self.aggregates.iter().enumerate() {
                if counted[index] {
                    aggregate.function.add(&mut self.states[index], record);
                }
            }
        }
        bits
    }
}

impl Aggregates for Needed {
    fn value(&self, id: AggregateId) -> Number {
        match self.operands.binary_search_by_key(&id, |(id, ..)| *id) {
            Ok(found) => {
                let (_, at, component) = self.operands[found];
                self.aggregates[at].0.function.value(&self.states[at], component)
            }
            Err(_) => Number::Unsigned(0),
        }
    }
}
