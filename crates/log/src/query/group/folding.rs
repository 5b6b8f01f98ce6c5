//! Functions over all records, and the methods of queries that compute functions.

use super::way::{PartState, Way};
use super::{GroupKey, Grouped, Grouping};
use crate::columns::{KeyBatch, Selected};
use crate::derive::Function;
use crate::expr::Number;
use crate::query::Matched;
use crate::schema::{AttributeId, Schema};

/// Computes functions over records, which are added one by one.
///
/// ```
/// use queuescope_log::{Folding, Function, Number, Schema, departure};
///
/// let schema = Schema::departure();
/// let length = schema.find("length").ok_or("unknown attribute")?;
/// let mut folding = Folding::new(schema, &[Function::Count, Function::Sum(length)]);
/// for _ in 0..3 {
///     folding.add(&[0; departure::SIZE]);
/// }
/// assert_eq!(folding.finish(), [Number::Unsigned(3), Number::Unsigned(0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Folding {
    /// The functions, and the attribute of each that has one.
    ways: Vec<(Option<AttributeId>, Way)>,
    states: Vec<PartState>,
}

impl Folding {
    /// No records yet.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn new(schema: &Schema, functions: &[Function]) -> Self {
        let way = |function: &Function| (function.attribute(), Way::new(function, schema));
        let ways: Vec<_> = functions.iter().map(way).collect();
        Self { states: ways.iter().map(|(_, way)| way.empty()).collect(), ways }
    }

    /// Adds a record.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        for ((_, way), state) in self.ways.iter().zip(&mut self.states) {
            way.add(state, record);
        }
    }

    /// Adds the selected records of a batch, which has the attributes of all functions.
    ///
    /// # Panics
    /// Panics for a function of the caller: it needs whole records.
    pub fn add_batch(&mut self, batch: &KeyBatch, selected: Selected<'_>) {
        for ((attribute, way), state) in self.ways.iter().zip(&mut self.states) {
            match attribute {
                Some(id) => way.add_keys(state, batch.keys(*id), selected),
                None => way.add_count(state, selected.len() as u64),
            }
        }
    }

    /// Adds the results of other records, for the same functions.
    pub fn join(&mut self, other: &Self) {
        for (((_, way), state), other) in self.ways.iter().zip(&mut self.states).zip(&other.states) {
            way.join(state, other);
        }
    }

    /// The state of each function, for [`Grouping::add_part`] of a grouping without keys.
    pub fn states(&self) -> &[PartState] {
        &self.states
    }

    /// The values of all functions, one after another.
    pub fn finish(self) -> Vec<Number> {
        let each = self.ways.iter().zip(&self.states);
        each.flat_map(|((_, way), state)| (0..way.values()).map(|value| way.value(state, value))).collect()
    }
}

impl Matched<'_> {
    /// Computes functions for each group of records.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn group(self, keys: &[GroupKey], functions: &[Function]) -> Grouped {
        let mut grouping = Grouping::new(self.schema(), keys, functions);
        self.for_each(|_, record| grouping.add(record));
        grouping.finish()
    }

    /// Computes functions over all records: the values of all functions, one after another.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn fold(self, functions: &[Function]) -> Vec<Number> {
        let mut folding = Folding::new(self.schema(), functions);
        self.for_each(|_, record| folding.add(record));
        folding.finish()
    }
}
