//! The log: records in one order, and what is asked of them.

use crate::derive::{AggregateState, CHUNK, Derived, Function, Reading, State, Tail, Tallies, Usage};
use crate::expr::{AggregateId, Dnf, NameError, Number, Scope};
use crate::query::Query;
use crate::schema::{AttributeId, Schema};
use crate::store::{FrozenTail, Memory, MemoryError, Store};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Records of one schema in one total order, appended by any number of threads and read by any number of others
/// without one waiting for another.
///
/// A reader takes a [`Snapshot`]: all records before some position, and all that follows from them. It has every record
/// whose append returned before it was taken.
#[derive(Debug)]
pub struct Log {
    schema: Schema,
    store: Store,
    derived: Derived,
}

/// How a log is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most records that it can have. Room for them is reserved as addresses; memory is taken as `memory` says.
    pub records: u64,
    /// When memory is taken.
    pub memory: Memory,
}

/// What became of records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the log may be full"]
pub struct Appended {
    /// Their positions.
    pub positions: Range<u64>,
    /// How many more there were, for which there was no room.
    pub refused: u64,
}

/// A filter of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId(u64);

impl Log {
    /// An empty log.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn new(schema: Schema, options: Options) -> Result<Self, MemoryError> {
        let store = Store::new(schema.record_size(), options.records, options.memory)?;
        Ok(Self { derived: Derived::new(store.capacity()), store, schema })
    }

    /// What its records are made of.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends records that lie one behind the other. They get positions one behind the other, and are seen in pieces
    /// of a thousand at most. What has no room is refused.
    ///
    /// # Panics
    /// If `records` is not a whole number of records.
    #[inline]
    pub fn append(&self, records: &[u8]) -> Appended {
        let size = self.store.size();
        assert!(records.len().is_multiple_of(size), "{} bytes are no whole number of records of {size}", records.len());
        let positions = self.store.append(records);
        if positions.start / CHUNK != positions.end / CHUNK {
            self.derived.advance(self.store.view(), &self.schema);
        }
        let refused = (records.len() / size) as u64 - (positions.end - positions.start);
        Appended { positions, refused }
    }

    /// Adds a filter. When this returns, what it matches is known of all records; they are gone through here, while
    /// writers write on.
    ///
    /// # Panics
    /// If it is about attributes that the schema does not have, or an aggregate that is not there.
    pub fn add_filter(&self, dnf: Dnf) -> FilterId {
        FilterId(self.derived.add_filter(dnf, &self.schema, || self.store.view()))
    }

    /// Takes a filter away; whether it was there. Snapshots that were taken before still have it.
    pub fn remove_filter(&self, filter: FilterId) -> bool {
        self.derived.remove_filter(filter.0, &self.schema)
    }

    /// Adds an aggregate over all records or over those that a filter matches, as [`add_filter`](Self::add_filter)
    /// does. Each of its values has a name by which expressions call it; the answer is the id of the first, those of
    /// the others follow.
    ///
    /// # Errors
    /// If something else has one of the names, or it is none.
    ///
    /// # Panics
    /// If there are not as many names as values, or the filter is not there, or the attribute is another schema's or
    /// not [comparable](crate::Attribute::is_comparable).
    pub fn add_aggregate(
        &self,
        names: &[&str],
        filter: Option<FilterId>,
        function: &Function,
    ) -> Result<AggregateId, NameError> {
        self.derived.add_aggregate(names, filter.map(|id| id.0), function, &self.schema, || self.store.view())
    }

    /// Takes an aggregate away, with all its values; whether it was there. Snapshots that were taken before, and filters
    /// that name it, still have it.
    pub fn remove_aggregate(&self, aggregate: AggregateId) -> bool {
        self.derived.remove_aggregate(aggregate)
    }

    /// What expressions can speak of: the schema's attributes and the aggregates that there are now.
    pub fn scope(&self) -> Scope<'_> {
        self.derived.stages().scope(&self.schema)
    }

    /// Adds an index of an attribute; `false` if there is one already. It covers all records when this returns.
    ///
    /// # Panics
    /// If it is another schema's attribute, or not [comparable](crate::Attribute::is_comparable).
    pub fn add_index(&self, attribute: AttributeId) -> bool {
        assert!(self.schema.attribute(attribute).is_comparable(), "what has no order has no index");
        self.derived.add_index(attribute, &self.schema, || self.store.view())
    }

    /// Takes an index away; whether it was there. Snapshots that were taken before still have it.
    pub fn remove_index(&self, attribute: AttributeId) -> bool {
        self.derived.remove_index(attribute)
    }

    /// Holds what readers see, until the answer is dropped.
    ///
    /// # Panics
    /// If 65 535 answers are there.
    pub fn freeze_tail(&self) -> FrozenTail<'_> {
        self.store.freeze()
    }

    /// All records whose append returned before this, and perhaps more.
    pub fn snapshot(&self) -> Snapshot<'_> {
        self.snapshot_with(Arc::default())
    }

    /// The same for who comes again, with what was worked out of the last chunk then.
    pub(crate) fn snapshot_with(&self, tail: Arc<Mutex<Tail>>) -> Snapshot<'_> {
        // The stages first: what they have been given is then older than the view.
        let stages = self.derived.stages();
        Snapshot { schema: &self.schema, reading: Reading::new(self.store.view(), stages, tail) }
    }
}

/// The records before some position. They, and all that is asked of them here, never change.
#[derive(Debug, Clone)]
pub struct Snapshot<'a> {
    schema: &'a Schema,
    reading: Reading<'a>,
}

impl<'a> Snapshot<'a> {
    /// How many records it has.
    pub fn len(&self) -> u64 {
        self.reading.view.tail()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A record.
    ///
    /// # Panics
    /// If there is none at this position.
    pub fn record(&self, position: u64) -> &'a [u8] {
        self.reading.view.record(position)
    }

    /// Records one behind the other.
    ///
    /// # Panics
    /// If not all of them are there.
    pub fn records(&self, positions: Range<u64>) -> &'a [u8] {
        self.reading.view.rows(positions)
    }

    /// Asks for all records, to begin with.
    pub fn query(&self) -> Query<'a> {
        Query::new(self.reading.clone(), self.schema)
    }

    /// Asks for what a filter matches; `None` if it was not there when the snapshot was taken.
    pub fn filter(&self, filter: FilterId) -> Option<Query<'a>> {
        self.reading.stages.filter(filter.0).map(|state| self.query().of_filter(state))
    }

    /// Bytes of memory that the records take, and what is derived from them now.
    pub fn usage(&self) -> Usage {
        Usage { records: self.len() * self.reading.view.size() as u64, ..self.reading.stages.usage() }
    }

    /// The value of an aggregate; `None` if it was not there when the snapshot was taken.
    pub fn value(&self, aggregate: AggregateId) -> Option<Number> {
        let (state, value) = self.aggregate(aggregate)?;
        Some(state.function.value(&self.state(state, 0..self.len()), value))
    }

    /// An aggregate, and which of its values this is.
    pub(crate) fn aggregate(&self, id: AggregateId) -> Option<(&Arc<AggregateState>, usize)> {
        self.reading.stages.aggregate(id)
    }

    /// How much filters matched since who has the tail came first.
    pub(crate) fn tallies(&self, into: &mut Tallies) {
        self.reading.tallies(into);
    }

    /// Which of the tallies is an aggregate's, if it is a count of a filter that is there.
    pub(crate) fn tallied(&self, aggregate: &AggregateState) -> Option<usize> {
        let filter = aggregate.counted().filter(|filter| !filter.is_ordered())?;
        self.reading.stages.place(filter.id)
    }

    /// What an aggregate is of some records.
    pub(crate) fn state(&self, aggregate: &AggregateState, positions: Range<u64>) -> State {
        aggregate.over(positions, &self.reading)
    }
}
