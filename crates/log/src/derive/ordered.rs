//! A filter that compares attributes with aggregates: it sees the records one by one, in the order of the log.
//!
//! The aggregates that it names have their values *before* the record in question (paper, figure 2: a sequence
//! number is compared with the highest so far). Such a filter passes over the log by itself, with its own states of
//! all aggregates that it depends on, including those of the filters of these aggregates. So it can be added late and removed
//! independently of others. Where records have left memory, the aggregates know their states over these, and the filter begins behind them.

use super::CHUNK;
use super::aggregate::AggregateState;
use super::function::State;
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

/// How far the filter is.
#[derive(Debug)]
pub(crate) struct Pass {
    filter: Filter,
    needed: Needed,
    /// The states of the aggregates before the next chunk.
    states: Vec<State>,
    next: u64,
}

/// The aggregates that are needed.
#[derive(Debug, Default)]
struct Needed {
    /// Each aggregate, and the filter whose records it covers; `None`: all records.
    aggregates: Vec<(Arc<AggregateState>, Option<Filter>)>,
    /// For each operand: its aggregate, and which of its values.
    operands: Vec<(AggregateId, usize, usize)>,
}

/// The aggregates as they are before a record.
struct AggregatesBefore<'a> {
    needed: &'a Needed,
    states: &'a [State],
}

impl Pass {
    /// At the first record behind a floor, for a filter that names these operands.
    pub fn new(dnf: &Dnf, schema: &Schema, operands: &[Operand], floor: u64) -> Self {
        let mut needed = Needed::default();
        needed.add(schema, operands);
        needed.operands.sort_unstable_by_key(|(id, ..)| *id);
        let states = needed.aggregates.iter().map(|(aggregate, _)| aggregate.before_floor(floor)).collect();
        Self { filter: Filter::new(dnf, schema), needed, states, next: floor / CHUNK }
    }

    /// The next chunk.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The matches in the next chunk, which is whole.
    pub fn chunk(&mut self, rows: &[u8], size: usize) -> Bits {
        debug_assert_eq!(rows.len() / size, CHUNK as usize);
        // A user's function may panic; then the state must stay as it was.
        let (bits, states) = self.go_over(rows, size);
        (self.states, self.next) = (states, self.next + 1);
        bits
    }

    /// The matches among the first records of the next chunk, which stays the next.
    pub fn behind(&self, rows: &[u8], size: usize) -> Bits {
        self.go_over(rows, size).0
    }

    /// The matches among records, and the states of the aggregates behind them.
    fn go_over(&self, rows: &[u8], size: usize) -> (Bits, Vec<State>) {
        let Self { filter, needed, .. } = self;
        let mut states = self.states.clone();
        let mut bits = [0; WORDS];
        let mut counted = vec![false; states.len()];
        for (place, record) in rows.chunks_exact(size).enumerate() {
            let now = AggregatesBefore { needed, states: &states };
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
    /// Adds operands, and those of their aggregates' filters. This ends, because an aggregate exists before the filters
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

impl Aggregates for AggregatesBefore<'_> {
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
