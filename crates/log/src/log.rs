//! The log: records in one order, and queries on it.

use crate::derive::{AggregateState, BLOCK, CHUNK, Derived, Function, Reading, State, Tail, Tallies, Usage};
use crate::expr::{AggregateId, Dnf, NameError, Number, Scope};
use crate::query::Query;
use crate::schema::{AttributeId, Schema};
use crate::store::{MOST, Memory, MemoryError, Store};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Records of one schema in one total order, appended by any number of threads and read by any number of others.
/// Appending and reading do not wait for each other.
///
/// A reader takes a [`Snapshot`]: all records before some position, and the data derived from them. It has every record
/// whose append returned before the snapshot was taken, unless an earlier record is still being written or the tail is
/// [frozen](crate::FrozenTail); with [`append_visible`](Self::append_visible) it has them always.
///
/// Old records can be [released](Self::release). Later snapshots begin behind them, and their memory is freed when
/// no earlier snapshot is left; aggregates still include them.
///
/// ```
/// use queuescope_log::{Log, Memory, Options, Schema, departure};
/// use queuescope_wire::{ByteCount, Departure, FlowKey, Nanos, Packet, PacketId};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// let mut record = [0; departure::SIZE];
/// for n in 0..100 {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() };
///     let left = Departure { packet, dequeued: Nanos(n * 10_000), ..Departure::default() };
///     departure::fill(&mut record, &left, &FlowKey::default());
///     assert_eq!(log.append(&record).refused, 0);
/// }
/// let scope = log.scope();
/// let late = log.add_filter(scope.parse("delay > 500us")?.dnf(&scope)?);
/// let snapshot = log.snapshot();
/// let count = snapshot.filter(late).ok_or("the filter is gone")?.matched().count();
/// println!("{count} of {} packets waited for more than 500 us", snapshot.len());
/// assert_eq!(count, 49);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log {
    schema: Schema,
    store: Store,
    derived: Derived,
}

/// Options of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most records that it can have, including those that it releases. Addresses are reserved for all of them, unless memory
    /// is [growing](Memory::Growing).
    pub records: u64,
    /// When memory is taken.
    pub memory: Memory,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the log may be full"]
pub struct Appended {
    /// The positions of the appended records.
    pub positions: Range<u64>,
    /// How many further records were refused because the log is full.
    pub refused: u64,
}

/// A filter of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId(u64);

impl Log {
    /// Records are released in multiples of this.
    pub const BLOCK: u64 = BLOCK;
    /// The most positions that a log has.
    pub const POSITIONS: u64 = MOST;

    /// An empty log.
    ///
    /// # Errors
    /// Fails if there is not enough memory for it.
    pub fn new(schema: Schema, options: Options) -> Result<Self, MemoryError> {
        Self::starting_at(schema, options, 0)
    }

    /// A log whose first record will have the position `first`, as if there had been earlier records that were released.
    /// [`add_aggregate_from`](Self::add_aggregate_from) sets the states of aggregates over these.
    ///
    /// # Errors
    /// Fails if there is not enough memory for it, or if positions would exceed 48 bits.
    ///
    /// # Panics
    /// Panics if `first` is not a multiple of [`BLOCK`](Self::BLOCK).
    pub fn starting_at(schema: Schema, options: Options, first: u64) -> Result<Self, MemoryError> {
        assert!(first.is_multiple_of(BLOCK), "a log begins with a block, and {first} is in the middle of one");
        let (store, floor) = Store::new(schema.record_size(), first, options.records, options.memory)?;
        Ok(Self { derived: Derived::new(floor, store.capacity()), store, schema })
    }

    /// The schema of its records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends consecutive records. They get consecutive positions, and become visible in pieces
    /// of a thousand at most. Records that do not fit are refused.
    ///
    /// # Panics
    /// Panics if `records` is not a whole number of records.
    #[inline]
    pub fn append(&self, records: &[u8]) -> Appended {
        let size = self.store.size();
        assert!(
            records.len().is_multiple_of(size),
            "{} bytes are not a whole number of records of {size}",
            records.len()
        );
        let positions = self.store.append(records);
        if positions.start / CHUNK != positions.end / CHUNK {
            self.derived.advance(&self.store, &self.schema);
        }
        let refused = (records.len() / size) as u64 - (positions.end - positions.start);
        Appended { positions, refused }
    }

    /// Like [`append`](Self::append), and returns when readers see the records. This takes as long as a [frozen tail](crate::FrozenTail) and
    /// writers of earlier positions take.
    ///
    /// What happens after it, on whatever host, is after these records in each snapshot of several logs.
    ///
    /// # Panics
    /// As [`append`](Self::append).
    pub fn append_visible(&self, records: &[u8]) -> Appended {
        let appended = self.append(records);
        self.wait_until_visible(appended.positions.end);
        appended
    }

    /// Waits until readers see the records before a position, which were appended or are being appended by other threads.
    pub fn wait_until_visible(&self, position: u64) {
        self.store.wait_until_visible(position);
    }

    /// Adds a filter. When this returns, its matches are known for all existing records; they are computed
    /// here, while writers continue.
    ///
    /// # Panics
    /// Panics if it names attributes that the schema does not have, or an aggregate that does not exist.
    pub fn add_filter(&self, dnf: Dnf) -> FilterId {
        FilterId(self.derived.add_filter(dnf, &self.schema, &self.store))
    }

    /// Removes a filter; returns whether it existed. Earlier snapshots still have it.
    pub fn remove_filter(&self, filter: FilterId) -> bool {
        self.derived.remove_filter(filter.0, &self.schema)
    }

    /// Adds an aggregate over all records or over those that a filter matches, as [`add_filter`](Self::add_filter)
    /// does. It does not include records that were released before; it keeps including records that are released later. Each of its values
    /// gets a name for use in expressions. Returns the id of the first value; the others have the following ids.
    ///
    /// # Errors
    /// Fails if one of the names is taken, or is not a valid name.
    ///
    /// # Panics
    /// Panics if the number of names differs from the number of values, if the filter does not exist, or if the attribute belongs to another
    /// schema or is not [comparable](crate::Attribute::is_comparable); also for [`Function::Distinct`], which only queries compute.
    pub fn add_aggregate(
        &self,
        names: &[&str],
        filter: Option<FilterId>,
        function: &Function,
    ) -> Result<AggregateId, NameError> {
        self.derived.add_aggregate(names, filter.map(|id| id.0), function, None, &self.schema, &self.store)
    }

    /// Like [`add_aggregate`](Self::add_aggregate), with the aggregate's state over the records before [`Snapshot::first`], which left memory:
    /// the result of [`Snapshot::state_before`]. Use it before any record is released, or if no other thread releases records.
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

    /// Removes an aggregate with all its values; returns whether it existed. Earlier snapshots, and filters
    /// that name it, still have it.
    pub fn remove_aggregate(&self, aggregate: AggregateId) -> bool {
        self.derived.remove_aggregate(aggregate)
    }

    /// The names that expressions can use: the schema's attributes and the current aggregates.
    pub fn scope(&self) -> Scope<'_> {
        self.derived.stages().scope(&self.schema)
    }

    /// Adds an index of an attribute; returns `false` if there is one already. It covers all records when this returns.
    ///
    /// # Panics
    /// Panics if the attribute belongs to another schema, or is not [comparable](crate::Attribute::is_comparable).
    pub fn add_index(&self, attribute: AttributeId) -> bool {
        assert!(self.schema.attribute(attribute).is_comparable(), "what has no order has no index");
        self.derived.add_index(attribute, &self.schema, &self.store)
    }

    /// Removes an index; returns whether it existed. Earlier snapshots still have it.
    pub fn remove_index(&self, attribute: AttributeId) -> bool {
        self.derived.remove_index(attribute)
    }

    /// Releases the records before a position, which is rounded down to a whole [`BLOCK`](Self::BLOCK) and to at most the tail:
    /// later snapshots begin behind them. Earlier snapshots still have them. Positions
    /// and aggregates stay as they are.
    ///
    /// This call also frees the memory of released records that no snapshot has any more, and of all data derived from each; it
    /// returns up to which position. Call it again to free what snapshots held in the meantime; `release(0)` does only
    /// that. On Linux the memory of the records goes back to the system in pieces of 2 MiB, elsewhere only
    /// when the log is dropped. Room in the log does not come back: [`Options::records`] counts all records together.
    ///
    /// Data that is still needed of the records (aggregates, filters that name aggregates) is computed
    /// first. Writers and readers continue in the meantime; threads that add or remove a filter, an index or an aggregate wait.
    pub fn release(&self, before: u64) -> u64 {
        self.derived.release(before, &self.store)
    }

    /// Freezes the tail that readers see; [`FrozenTail`](crate::FrozenTail) thaws it.
    pub(crate) fn freeze(&self) -> u64 {
        self.store.freeze()
    }

    /// Undoes one [`freeze`](Self::freeze).
    pub(crate) fn thaw(&self) {
        self.store.thaw();
    }

    /// The records that readers see: those whose append returned before this call, unless an earlier one is still being written or the tail
    /// is [frozen](crate::FrozenTail).
    pub fn snapshot(&self) -> Snapshot<'_> {
        self.snapshot_with(Arc::default())
    }

    /// The same for a reader that comes again, with its earlier results about the last chunk.
    pub(crate) fn snapshot_with(&self, tail: Arc<Mutex<Tail>>) -> Snapshot<'_> {
        // The stages first: the records that they have seen are then older than the view.
        let stages = self.derived.stages();
        Snapshot { schema: &self.schema, reading: Reading::new(&self.store, stages, tail) }
    }
}

impl AsRef<Self> for Log {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The records before some position, without those that were released before it was taken. The records and all
/// query results never change, and the records stay in memory while this lives. References into it cannot outlive it:
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
    /// The position of its first record: those before it were released. If it is empty, the position of the next
    /// record.
    pub fn first(&self) -> u64 {
        self.reading.view().first()
    }

    /// The position behind its last record: the number of records including those that were released.
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
    /// Panics if there is no record at this position, or if it was released.
    pub fn record(&self, position: u64) -> &[u8] {
        self.reading.view().record(position)
    }

    /// Consecutive records.
    ///
    /// # Panics
    /// Panics if not all of them are there, or if they are in two segments of a log with [`Memory::Growing`], which [`adjacent`](Self::adjacent)
    /// avoids.
    pub fn records(&self, positions: Range<u64>) -> &[u8] {
        self.reading.view().rows(positions)
    }

    /// The first of some consecutive records: as many as lie one after another in memory. These are all of them, unless the log's memory is
    /// [growing](Memory::Growing).
    ///
    /// # Panics
    /// Panics if not all of these are there.
    pub fn adjacent(&self, positions: Range<u64>) -> &[u8] {
        let view = self.reading.view();
        view.rows(positions.start..view.adjacent(positions))
    }

    /// A query for all records, which can be narrowed.
    pub fn query(&self) -> Query<'_> {
        Query::new(&self.reading, self.schema)
    }

    /// A query for the matches of a filter; `None` if the filter did not exist when the snapshot was taken.
    pub fn filter(&self, filter: FilterId) -> Option<Query<'_>> {
        self.reading.stages.filter(filter.0).map(|state| self.query().of_filter(state))
    }

    /// Bytes of memory of the records, including released records that are not freed yet, and of the current data derived from
    /// them.
    pub fn usage(&self) -> Usage {
        Usage { records: self.reading.view().bytes(), ..self.reading.stages.usage() }
    }

    /// The value of an aggregate; `None` if it did not exist when the snapshot was taken. It includes records that were released since
    /// it was added.
    pub fn value(&self, aggregate: AggregateId) -> Option<Number> {
        let (state, value) = self.aggregate(aggregate)?;
        Some(state.function.value(&self.state(state), value))
    }

    /// The state of the aggregate of which [`value`](Self::value) returns one value, over the records before a position
    /// only: the input of [`Log::add_aggregate_from`]. `None` if it did not exist when the snapshot was taken.
    ///
    /// # Panics
    /// Panics if the position is not from [`first`](Self::first) to [`len`](Self::len).
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

    /// How much filters matched since the tail's owner came first.
    pub(crate) fn tallies(&self, into: &mut Tallies) {
        self.reading.tallies(into);
    }

    /// Which of the tallies belongs to an aggregate, if that is a count of a filter that exists.
    pub(crate) fn tallied(&self, aggregate: &AggregateState) -> Option<usize> {
        let filter = aggregate.counted().filter(|filter| !filter.is_ordered())?;
        self.reading.stages.place(filter.id)
    }

    /// An aggregate's state over all records, including released ones.
    pub(crate) fn state(&self, aggregate: &AggregateState) -> State {
        aggregate.up_to(self.len(), &self.reading)
    }

    /// An aggregate's state over the records from a position on that are in memory.
    pub(crate) fn state_from(&self, aggregate: &AggregateState, position: u64) -> State {
        aggregate.over(position.max(self.first())..self.len(), &self.reading)
    }
}
