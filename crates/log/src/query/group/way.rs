//! How functions of a query are computed: most have a state of four words, and counts of distinct values have one that grows.

use crate::columns::{Keys, Selected};
use crate::derive::{Function, State, Working};
use crate::expr::Number;
use crate::schema::{Reader, Schema};
use queuescope_wire::Distinct;

/// The state of a function over the records of a group.
#[derive(Debug, Clone)]
pub enum PartState {
    /// Of all other functions.
    Words(State),
    /// Of [`Function::Distinct`].
    Distinct(Distinct),
}

impl PartState {
    /// The words, if the function has a state of words.
    pub fn words(&self) -> Option<&State> {
        match self {
            Self::Words(words) => Some(words),
            Self::Distinct(_) => None,
        }
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        match self {
            Self::Words(_) => 0,
            Self::Distinct(distinct) => distinct.heap(),
        }
    }
}

impl From<State> for PartState {
    fn from(words: State) -> Self {
        Self::Words(words)
    }
}

impl PartialEq for PartState {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Words(one), Self::Words(other)) => one == other,
            (Self::Distinct(one), Self::Distinct(other)) => one.to_bytes() == other.to_bytes(),
            (Self::Words(_), Self::Distinct(_)) | (Self::Distinct(_), Self::Words(_)) => false,
        }
    }
}

impl Eq for PartState {}

/// A function together with what it needs of the schema.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Words(Working),
    Distinct(Reader),
}

impl Way {
    /// A function on records of a schema.
    pub fn new(function: &Function, schema: &Schema) -> Self {
        match function {
            Function::Distinct(id) => {
                assert!(schema.attribute(*id).is_comparable(), "values that are not compared are not distinguished");
                Self::Distinct(schema.reader(*id))
            }
            _ => Self::Words(Working::new(function, schema)),
        }
    }

    /// The state of no records.
    pub fn empty(&self) -> PartState {
        match self {
            Self::Words(working) => PartState::Words(working.empty()),
            Self::Distinct(_) => PartState::Distinct(Distinct::of_values()),
        }
    }

    /// Adds a record. A state of another function is unchanged, here and below.
    #[inline]
    pub fn add(&self, state: &mut PartState, record: &[u8]) {
        match (self, state) {
            (Self::Words(working), PartState::Words(words)) => working.add(words, record),
            (Self::Distinct(reader), PartState::Distinct(distinct)) => distinct.insert_value(reader.key(record)),
            _ => {}
        }
    }

    /// Adds the selected records of a batch, whose attribute has these keys.
    pub fn add_keys(&self, state: &mut PartState, keys: &Keys, selected: Selected<'_>) {
        match (self, state) {
            (Self::Words(working), PartState::Words(words)) => working.add_keys(words, keys, selected),
            (_, PartState::Distinct(distinct)) => keys.each(selected, |key| distinct.insert_value(key)),
            _ => {}
        }
    }

    /// Adds a number of records, for a count.
    ///
    /// # Panics
    /// Panics for a function of the caller.
    pub fn add_count(&self, state: &mut PartState, records: u64) {
        if let (Self::Words(working), PartState::Words(words)) = (self, state) {
            working.add_count(words, records);
        }
    }

    /// Adds the state of other records.
    pub fn join(&self, state: &mut PartState, other: &PartState) {
        match (self, state, other) {
            (Self::Words(working), PartState::Words(words), PartState::Words(other)) => working.join(words, other),
            (_, PartState::Distinct(distinct), PartState::Distinct(other)) => distinct.join(other),
            _ => {}
        }
    }

    /// Whether this can be the state of some records, as far as joining and evaluating it needs that: it may come from outside.
    pub fn allows(&self, state: &PartState) -> bool {
        match (self, state) {
            (Self::Words(working), PartState::Words(words)) => working.allows(words),
            (Self::Distinct(_), PartState::Distinct(_)) => true,
            _ => false,
        }
    }

    /// The number of its values.
    pub fn values(&self) -> usize {
        match self {
            Self::Words(working) => working.values(),
            Self::Distinct(_) => 1,
        }
    }

    /// One of its values.
    pub fn value(&self, state: &PartState, value: usize) -> Number {
        match (self, state) {
            (Self::Words(working), PartState::Words(words)) => working.value(words, value),
            (_, PartState::Distinct(distinct)) => Number::Unsigned(distinct.count().into()),
            _ => Number::Unsigned(0),
        }
    }
}
