//! The current stages: what is derived, and from which records.

use super::aggregate::AggregateState;
use super::cells::{PerBlock, PerChunk};
use super::ordered::Operand;
use super::reading::times;
use super::{BLOCK, Bits, FilterState, Group, Scratch, Sorted, set, with_scratch};
use crate::expr::{AggregateId, Dnf, Scope};
use crate::schema::{AttributeId, Reader, Schema};
use crate::store::{Floor, View};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Up to this many filters are faster alone than together.
const ALONE: usize = 2;

/// An index, and its blocks.
#[derive(Debug)]
pub(crate) struct IndexState {
    pub attribute: AttributeId,
    pub blocks: PerBlock<Arc<Sorted>>,
}

/// The number of records of each chunk that each filter matches, by its place; for chunks that came since these filters exist.
pub(crate) type Counts = PerChunk<Box<[u16]>>;

/// An aggregate, and which of its values.
pub(crate) type ValueOf = (Arc<AggregateState>, usize);

/// Memory of a log in bytes.
///
/// ```
/// use queuescope_log::{Log, Memory, Options, Schema, departure};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// log.append(&[0; 100 * departure::SIZE]);
/// let usage = log.snapshot().usage();
/// println!("{} bytes, {} of them records", usage.total(), usage.records);
/// assert!(usage.records >= 100 * departure::SIZE as u64);
/// # Ok::<(), queuescope_log::MemoryError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Records in memory.
    pub records: u64,
    /// Matches of filters.
    pub filters: u64,
    /// Indexes.
    pub indexes: u64,
    /// Aggregates.
    pub aggregates: u64,
    /// Times of chunks.
    pub times: u64,
}

impl Usage {
    /// The total.
    pub fn total(&self) -> u64 {
        self.records + self.filters + self.indexes + self.aggregates + self.times
    }
}

/// All that is derived from records. It is never changed, only replaced.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// Where the records begin that it is derived from.
    pub floor: Arc<Floor>,
    /// In the order of their ids.
    pub filters: Vec<Arc<FilterState>>,
    pub indexes: Vec<Arc<IndexState>>,
    /// The name of each aggregate value, and the value.
    pub(super) operands: BTreeMap<AggregateId, (String, ValueOf)>,
    /// The next id.
    pub(super) next: u32,
    /// Aggregates that must process each chunk: the others count the matches of these filters.
    working: Arc<[Arc<AggregateState>]>,
    /// The first and the last time of each chunk.
    pub times: Arc<PerChunk<(u64, u64)>>,
    /// Replaced whenever filters change.
    pub counts: Arc<Counts>,
    groups: Arc<[Group]>,
    /// Filters that are in no group, by their places.
    alone: Arc<[usize]>,
}

impl Stages {
    /// Nothing is derived yet, from records from a floor on, in these blocks.
    pub fn new(floor: Arc<Floor>, blocks: Range<usize>) -> Self {
        Self {
            floor,
            filters: Vec::new(),
            indexes: Vec::new(),
            operands: BTreeMap::new(),
            next: 0,
            working: Arc::default(),
            times: Arc::new(PerChunk::new(blocks.clone())),
            counts: Arc::new(PerChunk::new(blocks.start..blocks.start)),
            groups: Arc::default(),
            alone: Arc::default(),
        }
    }

    /// The index of an attribute.
    pub fn index(&self, attribute: AttributeId) -> Option<&Arc<IndexState>> {
        self.indexes.iter().find(|index| index.attribute == attribute)
    }

    /// The filter with this id.
    pub fn filter(&self, id: u64) -> Option<&Arc<FilterState>> {
        self.place(id).map(|place| &self.filters[place])
    }

    /// The place of the filter with this id among the filters.
    pub fn place(&self, id: u64) -> Option<usize> {
        self.filters.binary_search_by_key(&id, |filter| filter.id).ok()
    }

    /// Passes to `emit` the matches among at most a chunk of records, for filters that decide each record alone; by their places.
    pub fn evaluate(&self, rows: &[u8], size: usize, scratch: &mut set::Scratch, mut emit: impl FnMut(usize, &Bits)) {
        for group in &*self.groups {
            group.evaluate(rows, scratch, &mut emit);
        }
        for place in &*self.alone {
            emit(*place, &self.filters[*place].look(rows, size));
        }
    }

    /// The same for at most 64 records, as words.
    pub fn evaluate_word(
        &self,
        rows: &[u8],
        size: usize,
        scratch: &mut set::Scratch,
        mut emit: impl FnMut(usize, u64),
    ) {
        for group in &*self.groups {
            group.evaluate_word(rows, scratch, &mut emit);
        }
        for place in &*self.alone {
            emit(*place, self.filters[*place].look(rows, size)[0]);
        }
    }

    /// The aggregate with this id, and which of its values is meant.
    pub fn aggregate(&self, id: AggregateId) -> Option<(&Arc<AggregateState>, usize)> {
        let (_, (aggregate, value)) = self.operands.get(&id)?;
        Some((aggregate, *value))
    }

    /// All aggregates, each once.
    fn aggregates(&self) -> impl Iterator<Item = &Arc<AggregateState>> {
        self.operands.values().filter(|(_, (_, value))| *value == 0).map(|(_, (aggregate, _))| aggregate)
    }

    /// The aggregates that an expression names.
    pub(super) fn named(&self, dnf: &Dnf) -> Vec<Operand> {
        let operand = |id: AggregateId| {
            let (aggregate, component) = self
                .aggregate(id)
                .unwrap_or_else(|| panic!("there is no aggregate {}; it may have been removed", id.0));
            Operand { id, aggregate: Arc::clone(aggregate), component }
        };
        dnf.aggregates().into_iter().map(operand).collect()
    }

    /// The names that expressions can use.
    pub fn scope<'a>(&self, schema: &'a Schema) -> Scope<'a> {
        Scope::with_aggregates(schema, self.operands.iter().map(|(id, (name, _))| (*id, name.clone())))
    }

    /// Bytes that all derived data takes.
    pub fn usage(&self) -> Usage {
        // A filter that was removed but is still used by an aggregate is still there.
        let there = |filter: &&Arc<FilterState>| self.place(filter.id).is_some();
        let needed = self.aggregates().filter_map(|aggregate| aggregate.filter.as_ref());
        let taken_away: BTreeMap<u64, _> =
            needed.filter(|filter| !there(filter)).map(|filter| (filter.id, filter)).collect();
        let taken_away = taken_away.into_values();
        let of_index = |index: &Arc<IndexState>| index.blocks.heap(|sorted| size_of::<Sorted>() + sorted.heap()) as u64;
        Usage {
            records: 0,
            filters: self.filters.iter().chain(taken_away).map(|filter| filter.heap() as u64).sum::<u64>()
                + self.counts.heap(|counts| size_of_val(&**counts)) as u64,
            indexes: self.indexes.iter().map(of_index).sum(),
            aggregates: self.aggregates().map(|aggregate| aggregate.heap() as u64).sum(),
            times: self.times.heap(|_| 0) as u64,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.indexes.is_empty() && self.aggregates().next().is_none()
    }

    /// Derives the data of a whole chunk.
    pub(super) fn chunk(&self, chunk: u64, view: View<'_>, time: Option<Reader>) {
        let rows = view.chunk(chunk);
        if !self.filters.is_empty() {
            let mut counts = vec![0; self.filters.len()].into_boxed_slice();
            with_scratch(|scratch| {
                self.evaluate(rows, view.size(), &mut scratch.set, |place, bits| {
                    counts[place] = self.filters[place].set(chunk, bits);
                });
            });
            self.counts.set(chunk as usize, counts);
        }
        if let Some(time) = time {
            self.times.set(chunk as usize, times(rows, view.size(), time));
        }
        for filter in self.filters.iter().filter(|filter| filter.is_ordered()) {
            filter.try_go_on(view);
        }
        for aggregate in &*self.working {
            // Otherwise the thread that runs the filter's pass is ahead, or a reader computes it.
            if aggregate.filter.as_ref().is_none_or(|filter| filter.knows(chunk)) {
                aggregate.fill(chunk, view);
            }
        }
    }

    /// The same stages with other filters.
    pub(super) fn with_filters(&self, filters: Vec<Arc<FilterState>>, blocks: Range<usize>, schema: &Schema) -> Self {
        let plain = || filters.iter().enumerate().filter(|(_, state)| !state.is_ordered());
        let together = plain().count() > ALONE || plain().any(|(_, state)| !state.is_simple());
        let (groups, alone) = if together {
            Group::all(plain().map(|(place, state)| (place, &state.dnf)), schema)
        } else {
            (Vec::new(), plain().map(|(place, _)| place).collect())
        };
        let counts = Arc::new(PerChunk::new(blocks));
        Self { counts, groups: groups.into(), alone: alone.into(), filters, ..self.clone() }
    }

    /// The same stages, as writers use them.
    pub(super) fn complete(self) -> Self {
        let counts = |aggregate: &&Arc<AggregateState>| {
            let filter = aggregate.counted().filter(|filter| !filter.is_ordered());
            filter.is_some_and(|filter| self.place(filter.id).is_some())
        };
        let working = self.aggregates().filter(|aggregate| !counts(aggregate)).cloned().collect();
        Self { working, ..self }
    }

    /// The same stages for records from another floor on.
    pub(super) fn above(&self, floor: Arc<Floor>) -> Self {
        Self { floor, ..self.clone() }
    }

    /// Discards the data of records before a floor, which nothing reads any more.
    pub(super) fn forget(&self, floor: u64) {
        let block = (floor / BLOCK) as usize;
        self.filters.iter().for_each(|filter| filter.forget(floor));
        self.indexes.iter().for_each(|index| index.blocks.forget(block));
        self.times.forget(block);
        self.counts.forget(block);
    }
}

impl IndexState {
    /// Sorts a whole block, if that is not done.
    pub(super) fn block(&self, block: u64, view: View<'_>, schema: &Schema, scratch: &mut Scratch) {
        if self.blocks.look(block as usize, |_| ()).is_some() {
            return;
        }
        let rows = view.rows(block * BLOCK..(block + 1) * BLOCK);
        let reader = schema.reader(self.attribute);
        let bits = schema.attribute(self.attribute).place.bits;
        let sorted = Sorted::new(reader, bits, rows, view.size(), &mut scratch.index);
        self.blocks.set(block as usize, Arc::new(sorted));
    }
}
