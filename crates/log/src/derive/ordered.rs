//! A filter that compares attributes with aggregates: it sees the records one by one, in the order of the log.
//!
//! The aggregates that it names are what they are *before* the record that is looked at (paper, figure 2: a sequence
//! number is compared with the highest so far). Such a filter goes over the log by itself, with states of its own of
//! all aggregates that it depends on, also through the filters of these; so it can be added late and taken away without
//! a thought of others. Where records left memory, the aggregates know what they are of these, and it begins behind them.

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
    /// What the aggregates are before the next chunk.
    states: Vec<State>,
    next: u64,
}

/// The aggregates that are needed.
#[derive(Debug, Default)]
struct Needed {
    /// Each, and what of the records it takes in; all, if there is none.
    aggregates: Vec<(Arc<AggregateState>, Option<Filter>)>,
    /// Which of them an operand is, and which of its values; by operand.
    operands: Vec<(AggregateId, usize, usize)>,
}

/// The aggregates as they are before a record.
struct Now<'a> {
    needed: &'a Needed,
    states: &'a [State],
}

impl Pass {
    /// At the first record behind a floor, of a filter that names these.
    pub fn new(dnf: &Dnf, schema: &Schema, operands: &[Operand], floor: u64) -> Self {
        let mut needed = Needed::default();
        needed.add(schema, operands);
        needed.operands.sort_unstable_by_key(|(id, ..)| *id);
        let states = needed.aggregates.iter().map(|(aggregate, _)| aggregate.before_floor(floor)).collect();
        Self { filter: Filter::new(dnf, schema), needed, states, next: floor / CHUNK }
    }

    /// The chunk that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What it matches in the next chunk, which is whole.
    pub fn chunk(&mut self, rows: &[u8], size: usize) -> Bits {
        debug_assert_eq!(rows.len() / size, CHUNK as usize);
        // A user's function may panic; then nothing happened.
        let (bits, states) = self.go_over(rows, size);
        (self.states, self.next) = (states, self.next + 1);
        bits
    }

    /// What it matches in the first records of the next chunk, which stays the next.
    pub fn behind(&self, rows: &[u8], size: usize) -> Bits {
        self.go_over(rows, size).0
    }

    /// What it matches of records, and what the aggregates are behind them.
    fn go_over(&self, rows: &[u8], size: usize) -> (Bits, Vec<State>) {
        let Self { filter, needed, .. } = self;
        let mut states = self.states.clone();
        let mut bits = [0; WORDS];
        let mut counted = vec![false; states.len()];
        for (place, record) in rows.chunks_exact(size).enumerate() {
            let now = Now { needed, states: &states };
            bits[place / 64] |= u64::from(filter.matches(record, &now)) << (place % 64);
            for (counted, (_, filter)) in counted.iter_mut().zip(&needed.aggregates) {
                *counted = filter.as_ref().is_none_or(|filter| filter.matches(record, &now));
            }
            for ((counted, (aggregate, _)), state) in counted.iter().zip(&needed.aggregates).zip(&mut states) {
                if *counted {
                    aggregate.function.add(state, record);
                }
            }
        }
        (bits, states)
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
                self.add(schema, filter.map_or(&[], |filter| filter.operands.as_slice()));
            }
        }
    }
}

impl Aggregates for Now<'_> {
    fn value(&self, id: AggregateId) -> Number {
        match self.needed.operands.binary_search_by_key(&id, |(id, ..)| *id) {
            Ok(found) => {
                let (_, at, component) = self.needed.operands[found];
                self.needed.aggregates[at].0.function.value(&self.states[at], component)
            }
            Err(_) => Number::Unsigned(0),
        }
    }
}
