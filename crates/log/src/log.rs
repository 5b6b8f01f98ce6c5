//! The log: records in one order, and what is asked of them.

use crate::derive::{AggregateState, BLOCK, CHUNK, Derived, Function, Reading, State, Tail, Tallies, Usage};
use crate::expr::{AggregateId, Dnf, NameError, Number, Scope};
use crate::query::Query;
use crate::schema::{AttributeId, Schema};
use crate::store::{FrozenTail, MOST, Memory, MemoryError, Store};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Records of one schema in one total order, appended by any number of threads and read by any number of others
/// without one waiting for another.
///
/// A reader takes a [`Snapshot`]: all records before some position, and all that follows from them. It has every record
/// whose append returned before it was taken.
///
/// Old records can be [released](Self::release). Later snapshots begin behind them, and their memory is given back when
/// no earlier one is left; aggregates still count them.
#[derive(Debug)]
pub struct Log {
    schema: Schema,
    store: Store,
    derived: Derived,
}

/// How a log is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most records that it can have, with those that it releases. Room for them is reserved as addresses; memory is
    /// taken as `memory` says.
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
    /// Records that are released at once.
    pub const BLOCK: u64 = BLOCK;
    /// Positions that a log has, at most.
    pub const POSITIONS: u64 = MOST;

    /// An empty log.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn new(schema: Schema, options: Options) -> Result<Self, MemoryError> {
        Self::starting_at(schema, options, 0)
    }

    /// A log whose first record will have the position `first`, as if all before it had been there and were released.
    /// What aggregates are of them is told when these are added: [`add_aggregate_from`](Self::add_aggregate_from).
    ///
    /// # Errors
    /// If there is no room for it, also as a number: positions have 48 bits.
    ///
    /// # Panics
    /// If `first` is not a multiple of [`BLOCK`](Self::BLOCK).
    pub fn starting_at(schema: Schema, options: Options, first: u64) -> Result<Self, MemoryError> {
        assert!(first.is_multiple_of(BLOCK), "a log begins with a block, and {first} is in the middle of one");
        let (store, floor) = Store::new(schema.record_size(), first, options.records, options.memory)?;
        Ok(Self { derived: Derived::new(floor, store.capacity()), store, schema })
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
            self.derived.advance(&self.store, &self.schema);
        }
        let refused = (records.len() / size) as u64 - (positions.end - positions.start);
        Appended { positions, refused }
    }

    /// Adds a filter. When this returns, what it matches is known of all records that are there; they are gone through
    /// here, while writers write on.
    ///
    /// # Panics
    /// If it is about attributes that the schema does not have, or an aggregate that is not there.
    pub fn add_filter(&self, dnf: Dnf) -> FilterId {
        FilterId(self.derived.add_filter(dnf, &self.schema, &self.store))
    }

    /// Takes a filter away; whether it was there. Snapshots that were taken before still have it.
    pub fn remove_filter(&self, filter: FilterId) -> bool {
        self.derived.remove_filter(filter.0, &self.schema)
    }

    /// Adds an aggregate over all records or over those that a filter matches, as [`add_filter`](Self::add_filter)
    /// does: what was released before is not in it, what is released later stays in it. Each of its values has a name by
    /// which expressions call it; the answer is the id of the first, those of the others follow.
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
        self.derived.add_aggregate(names, filter.map(|id| id.0), function, None, &self.schema, &self.store)
    }

    /// The same, with what the aggregate is of the records before [`Snapshot::first`], which left memory: what
    /// [`Snapshot::state_before`] told of them. It is for who alone releases records, or before any is released.
    ///
    /// # Errors
    /// As [`add_aggregate`](Self::add_aggregate).
    ///
    /// # Panics
    /// As [`add_aggregate`](Self::add_aggregate).
    pub fn add_aggregate_from(
        &self,
        names: &[&str],
        filter: Option<FilterId>,
        function: &Function,
        before: State,
    ) -> Result<AggregateId, NameError> {
        self.derived.add_aggregate(names, filter.map(|id| id.0), function, Some(before), &self.schema, &self.store)
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
        self.derived.add_index(attribute, &self.schema, &self.store)
    }

    /// Takes an index away; whether it was there. Snapshots that were taken before still have it.
    pub fn remove_index(&self, attribute: AttributeId) -> bool {
        self.derived.remove_index(attribute)
    }

    /// Releases the records before a position, which is rounded down to a whole [`BLOCK`](Self::BLOCK) and at most up to the tail:
    /// snapshots that are taken from now on begin behind them. Those that were taken before still have them. Positions,
    /// and what aggregates are, stay as they are.
    ///
    /// The memory of the records that no snapshot has any more is given back here, and all that was derived of each; the
    /// answer is up to which position. So who wants back what snapshots held meanwhile calls again; `release(0)` does only
    /// that. On Linux the memory of the records themselves goes back to the system in pieces of 2 MiB, elsewhere not
    /// before the log is dropped. Room in the log does not come back: [`Options::records`] is of all together.
    ///
    /// What is not known of the records yet and is needed of them (aggregates, filters that name aggregates) is worked
    /// out first. Writers and readers go on meanwhile; who adds a filter, an index or an aggregate, or removes one, waits.
    pub fn release(&self, before: u64) -> u64 {
        self.derived.release(before, &self.store)
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
        Snapshot { schema: &self.schema, reading: Reading::new(&self.store, stages, tail) }
    }
}

/// The records before some position, without those that were released before it was taken. They, and all that is asked
/// of them here, never change, and they stay in memory while this lives. What is read does not outlive it:
///
/// ```compile_fail,E0505
/// # use queuescope_log::{Log, Memory, Options, Schema};
/// # let log = Log::new(Schema::packet().clone(), Options { records: 1000, memory: Memory::Lazy }).unwrap();
/// let snapshot = log.snapshot();
/// let record = snapshot.record(0);
/// drop(snapshot);
/// assert!(!record.is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot<'a> {
    schema: &'a Schema,
    reading: Reading,
}

impl Snapshot<'_> {
    /// The position of its first record: those before it were released. It is where the next one will be, if there is
    /// none.
    pub fn first(&self) -> u64 {
        self.reading.view().first()
    }

    /// The position behind its last record: how many there are, with those that were released.
    pub fn len(&self) -> u64 {
        self.reading.view().tail()
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.first() == self.len()
    }

    /// A record.
    ///
    /// # Panics
    /// If there is none at this position, or none any more.
    pub fn record(&self, position: u64) -> &[u8] {
        self.reading.view().record(position)
    }

    /// Records one behind the other.
    ///
    /// # Panics
    /// If not all of them are there.
    pub fn records(&self, positions: Range<u64>) -> &[u8] {
        self.reading.view().rows(positions)
    }

    /// Asks for all records, to begin with.
    pub fn query(&self) -> Query<'_> {
        Query::new(&self.reading, self.schema)
    }

    /// Asks for what a filter matches; `None` if it was not there when the snapshot was taken.
    pub fn filter(&self, filter: FilterId) -> Option<Query<'_>> {
        self.reading.stages.filter(filter.0).map(|state| self.query().of_filter(state))
    }

    /// Bytes of memory that the records take, with those that were released and not given back, and what is derived from
    /// them now.
    pub fn usage(&self) -> Usage {
        Usage { records: self.reading.view().bytes(), ..self.reading.stages.usage() }
    }

    /// The value of an aggregate; `None` if it was not there when the snapshot was taken. Records that were released since
    /// it was added are in it.
    pub fn value(&self, aggregate: AggregateId) -> Option<Number> {
        let (state, value) = self.aggregate(aggregate)?;
        Some(state.function.value(&self.state(state), value))
    }

    /// What is known of an aggregate that [`value`](Self::value) tells one value of, but of the records before a position
    /// only: what [`Log::add_aggregate_from`] takes. `None` if it was not there when the snapshot was taken.
    ///
    /// # Panics
    /// If the position is not from [`first`](Self::first) to [`len`](Self::len).
    pub fn state_before(&self, aggregate: AggregateId, position: u64) -> Option<State> {
        let there = self.first() <= position && position <= self.len();
        assert!(there, "position {position} is not in the snapshot, which is {}..{}", self.first(), self.len());
        let (state, _) = self.aggregate(aggregate)?;
        Some(state.up_to(position, &self.reading))
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

    /// What an aggregate is of all records, also those that were released.
    pub(crate) fn state(&self, aggregate: &AggregateState) -> State {
        aggregate.up_to(self.len(), &self.reading)
    }

    /// What an aggregate is of the records from a position on that are there.
    pub(crate) fn state_from(&self, aggregate: &AggregateState, position: u64) -> State {
        aggregate.over(position.max(self.first())..self.len(), &self.reading)
    }
}
