//! What is derived now, and who derives which chunk.

use super::aggregate::{AggregateState, Function, Working};
use super::cells::{PerBlock, PerChunk};
use super::ordered::Operand;
use super::reading::times;
use super::{BLOCK, Bits, CHUNK, FilterState, Group, Scratch, Sorted, set, with_scratch};
use crate::expr::{AggregateId, Dnf, NameError, Scope};
use crate::schema::{AttributeId, Reader, Schema};
use crate::store::View;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// As many filters are each faster alone than together.
const ALONE: usize = 2;

/// An index, and its blocks.
#[derive(Debug)]
pub(crate) struct IndexState {
    pub attribute: AttributeId,
    pub blocks: PerBlock<Sorted>,
}

/// An aggregate, and which of its values.
pub(crate) type ValueOf = (Arc<AggregateState>, usize);

/// Bytes of memory that a log takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The records.
    pub records: u64,
    /// What filters matched.
    pub filters: u64,
    /// Indexes.
    pub indexes: u64,
    /// Aggregates.
    pub aggregates: u64,
    /// When chunks of records were.
    pub times: u64,
}

impl Usage {
    /// All together.
    pub fn total(&self) -> u64 {
        self.records + self.filters + self.indexes + self.aggregates + self.times
    }
}

/// All that is derived from records. It is never changed, but another put in its place.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// In the order of their ids.
    pub filters: Vec<Arc<FilterState>>,
    pub indexes: Vec<Arc<IndexState>>,
    /// The name of each aggregate's values, and what it names.
    operands: BTreeMap<AggregateId, (String, ValueOf)>,
    /// The number of the next id.
    next: u32,
    /// The first and the last time of each chunk.
    pub times: Arc<PerChunk<(u64, u64)>>,
    /// How many records of each chunk each filter matches, by its place; of chunks that came since these filters are.
    pub counts: Arc<PerChunk<Box<[u16]>>>,
    groups: Arc<[Group]>,
    /// Filters that are in no group, by their places.
    alone: Arc<[usize]>,
}

/// The stages, and how far writers are with them.
#[derive(Debug)]
pub(crate) struct Derived {
    stages: RwLock<Arc<Stages>>,
    /// Who changes the stages, and the last number that was given.
    changing: Mutex<u64>,
    /// Whether the stages are empty: a look at them costs writers more.
    idle: AtomicBool,
    /// The next chunk and the next block that no writer took.
    chunks: AtomicU64,
    blocks: AtomicU64,
    /// Blocks that there can be.
    most: usize,
}

impl Stages {
    /// The index of an attribute.
    pub fn index(&self, attribute: AttributeId) -> Option<&Arc<IndexState>> {
        self.indexes.iter().find(|index| index.attribute == attribute)
    }

    /// The filter of this number.
    pub fn filter(&self, id: u64) -> Option<&Arc<FilterState>> {
        self.place(id).map(|place| &self.filters[place])
    }

    /// Where the filter of this number is among the filters.
    pub fn place(&self, id: u64) -> Option<usize> {
        self.filters.binary_search_by_key(&id, |filter| filter.id).ok()
    }

    /// Which records, of a chunk at most, the filters match that need no more than the record; by their places.
    pub fn evaluate(&self, rows: &[u8], size: usize, scratch: &mut set::Scratch, mut tell: impl FnMut(usize, &Bits)) {
        for group in &*self.groups {
            group.evaluate(rows, scratch, &mut tell);
        }
        for place in &*self.alone {
            tell(*place, &self.filters[*place].look(rows, size));
        }
    }

    /// The aggregate of this id, and which of its values is meant.
    pub fn aggregate(&self, id: AggregateId) -> Option<(&Arc<AggregateState>, usize)> {
        let (_, (aggregate, value)) = self.operands.get(&id)?;
        Some((aggregate, *value))
    }

    /// All aggregates, each once.
    fn aggregates(&self) -> impl Iterator<Item = &Arc<AggregateState>> {
        self.operands.values().filter(|(_, (_, value))| *value == 0).map(|(_, (aggregate, _))| aggregate)
    }

    /// The aggregates that an expression names.
    fn named(&self, dnf: &Dnf) -> Vec<Operand> {
        let operand = |id: AggregateId| {
            let (aggregate, component) = self
                .aggregate(id)
                .unwrap_or_else(|| panic!("there is no aggregate {}; it may have been removed", id.0));
            Operand { id, aggregate: Arc::clone(aggregate), component }
        };
        dnf.aggregates().into_iter().map(operand).collect()
    }

    /// What expressions can speak of.
    pub fn scope<'a>(&self, schema: &'a Schema) -> Scope<'a> {
        Scope::with_aggregates(schema, self.operands.iter().map(|(id, (name, _))| (*id, name.clone())))
    }

    /// Bytes that all take.
    pub fn usage(&self) -> Usage {
        // What was taken away and aggregates still need is still there.
        let there = |filter: &&Arc<FilterState>| self.place(filter.id).is_some();
        let needed = self.aggregates().filter_map(|aggregate| aggregate.filter.as_ref());
        let taken_away: BTreeMap<u64, _> =
            needed.filter(|filter| !there(filter)).map(|filter| (filter.id, filter)).collect();
        let taken_away = taken_away.into_values();
        let of_index = |index: &Arc<IndexState>| index.blocks.heap(Sorted::heap) as u64;
        Usage {
            records: 0,
            filters: self.filters.iter().chain(taken_away).map(|filter| filter.heap() as u64).sum::<u64>()
                + self.counts.heap(|counts| size_of_val(&**counts)) as u64,
            indexes: self.indexes.iter().map(of_index).sum(),
            aggregates: self.aggregates().map(|aggregate| aggregate.heap() as u64).sum(),
            times: self.times.heap(|_| 0) as u64,
        }
    }

    fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.indexes.is_empty() && self.aggregates().next().is_none()
    }

    /// What follows from a whole chunk.
    fn chunk(&self, chunk: u64, view: View<'_>, time: Option<Reader>) {
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
        for aggregate in self.aggregates() {
            // Else who has the filter's pass is ahead, or a reader finds it.
            if aggregate.filter.as_ref().is_none_or(|filter| filter.known(chunk).is_some()) {
                aggregate.fill(chunk, view);
            }
        }
    }

    /// The same with other filters.
    fn with_filters(&self, filters: Vec<Arc<FilterState>>, blocks: usize, schema: &Schema) -> Self {
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
}

impl IndexState {
    fn block(&self, block: u64, view: View<'_>, schema: &Schema, scratch: &mut Scratch) {
        let rows = view.rows(block * BLOCK..(block + 1) * BLOCK);
        let reader = schema.reader(self.attribute);
        let bits = schema.attribute(self.attribute).place.bits;
        self.blocks.get_or_make(block as usize, || Sorted::new(reader, bits, rows, view.size(), &mut scratch.index));
    }
}

impl Derived {
    /// Nothing yet, of a log of so many records at most.
    pub fn new(capacity: u64) -> Self {
        Self {
            stages: RwLock::new(Arc::new(Stages {
                filters: Vec::new(),
                indexes: Vec::new(),
                operands: BTreeMap::new(),
                next: 0,
                times: Arc::new(PerChunk::new(capacity.div_ceil(BLOCK) as usize)),
                counts: Arc::new(PerChunk::new(0)),
                groups: Arc::default(),
                alone: Arc::default(),
            })),
            changing: Mutex::default(),
            idle: AtomicBool::new(true),
            chunks: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            most: capacity.div_ceil(BLOCK) as usize,
        }
    }

    /// The stages as they are.
    pub fn stages(&self) -> Arc<Stages> {
        Arc::clone(&self.stages.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes what follows from the view's chunks and blocks that no writer took yet.
    pub fn advance(&self, view: View<'_>, schema: &Schema) {
        if self.idle.load(Ordering::Relaxed) {
            return;
        }
        while let Some(chunk) = take(&self.chunks, view.tail() / CHUNK) {
            // After it was taken: who adds a stage then knows which chunks it has to make itself.
            let stages = self.stages();
            stages.chunk(chunk, view, schema.time().map(|time| schema.reader(time)));
        }
        while let Some(block) = take(&self.blocks, view.tail() / BLOCK) {
            let stages = self.stages();
            with_scratch(|scratch| {
                for index in &stages.indexes {
                    index.block(block, view, schema, scratch);
                }
            });
        }
    }

    /// Adds a filter; then, while writers write on, finds what it matches in the chunks that they are done with. `view`
    /// takes a new view of the records.
    pub fn add_filter<'a>(&self, dnf: Dnf, schema: &Schema, new_view: impl Fn() -> View<'a>) -> u64 {
        let mut state = None;
        let id = self.swap(|stages, id| {
            let operands = stages.named(&dnf);
            let new = state.insert(Arc::new(FilterState::new(id, dnf, schema, self.most, operands)));
            let mut filters = stages.filters.clone();
            filters.push(Arc::clone(new));
            stages.with_filters(filters, self.most, schema)
        });
        let taken = self.take_over(&self.chunks, CHUNK, &new_view);
        if let Some(state) = state {
            let view = new_view();
            (0..taken).for_each(|chunk| state.fill(chunk, view));
            state.catch_up(&new_view);
        }
        id
    }

    /// Adds an aggregate, as [`add_filter`](Self::add_filter) does, with a name for each of its values.
    pub fn add_aggregate<'a>(
        &self,
        names: &[&str],
        filter: Option<u64>,
        function: &Function,
        schema: &Schema,
        view: impl Fn() -> View<'a>,
    ) -> Result<AggregateId, NameError> {
        let working = Working::new(function, schema);
        assert_eq!(names.len(), working.values(), "an aggregate has a name for each of its values");
        let mut state = None;
        let mut first = 0;
        self.try_swap(|stages, _| {
            let mut scope = stages.scope(schema);
            for name in names {
                scope.add_aggregate(name)?;
            }
            let filter =
                filter.map(|id| stages.filter(id).cloned().unwrap_or_else(|| panic!("there is no filter {id}")));
            let new = state.insert(Arc::new(AggregateState::new(working, filter, self.most)));
            let mut stages = stages.clone();
            first = stages.next;
            for (value, name) in names.iter().enumerate() {
                stages.operands.insert(AggregateId(stages.next), ((*name).to_owned(), (Arc::clone(new), value)));
                stages.next += 1;
            }
            Ok(stages)
        })?;
        let taken = self.take_over(&self.chunks, CHUNK, &view);
        if let Some(state) = state {
            let view = view();
            (0..taken).for_each(|chunk| state.fill(chunk, view));
        }
        Ok(AggregateId(first))
    }

    /// Adds an index, as [`add_filter`](Self::add_filter) does. There is one of an attribute; `false` if it was there.
    pub fn add_index<'a>(&self, attribute: AttributeId, schema: &Schema, view: impl Fn() -> View<'a>) -> bool {
        let state = Arc::new(IndexState { attribute, blocks: PerBlock::new(self.most) });
        let mut new = false;
        self.swap(|stages, _| {
            new = stages.index(attribute).is_none();
            let mut stages = stages.clone();
            if new {
                stages.indexes.push(Arc::clone(&state));
            }
            stages
        });
        if new {
            let taken = self.take_over(&self.blocks, BLOCK, &view);
            let view = view();
            (0..taken).for_each(|block| with_scratch(|scratch| state.block(block, view, schema, scratch)));
        }
        new
    }

    /// Takes a filter away; its memory is free when the last reader that began before is done.
    pub fn remove_filter(&self, id: u64, schema: &Schema) -> bool {
        let mut there = false;
        self.swap(|stages, _| {
            let filters: Vec<_> = stages.filters.iter().filter(|filter| filter.id != id).cloned().collect();
            there = filters.len() < stages.filters.len();
            stages.with_filters(filters, self.most, schema)
        });
        there
    }

    /// Takes an aggregate away, with all its values, as [`remove_filter`](Self::remove_filter) does. Its names are free,
    /// its ids are not used again.
    pub fn remove_aggregate(&self, id: AggregateId) -> bool {
        let mut there = false;
        self.swap(|stages, _| {
            let mut new = stages.clone();
            if let Some((gone, _)) = stages.aggregate(id) {
                there = true;
                new.operands.retain(|_, (_, (other, _))| !Arc::ptr_eq(other, gone));
            }
            new
        });
        there
    }

    /// Takes an index away, as [`remove_filter`](Self::remove_filter) does.
    pub fn remove_index(&self, attribute: AttributeId) -> bool {
        let mut there = false;
        self.swap(|stages, _| {
            let mut stages = stages.clone();
            there = stages.index(attribute).is_some();
            stages.indexes.retain(|index| index.attribute != attribute);
            stages
        });
        there
    }

    /// Puts other stages in place of these. They are given a number that no others had.
    fn swap(&self, with: impl FnOnce(&Stages, u64) -> Stages) -> u64 {
        let Ok(id) = self.try_swap(|stages, id| Ok::<_, Infallible>(with(stages, id)));
        id
    }

    fn try_swap<E>(&self, with: impl FnOnce(&Stages, u64) -> Result<Stages, E>) -> Result<u64, E> {
        let mut last = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let stages = Arc::new(with(&self.stages(), *last)?);
        // Who adds something goes over what writers do not know of it yet.
        self.idle.store(stages.is_empty(), Ordering::Relaxed);
        *self.stages.write().unwrap_or_else(PoisonError::into_inner) = stages;
        Ok(*last)
    }

    /// How many chunks or blocks writers may have taken before they knew the stages of now. What is whole is not left
    /// to a writer: it may be much, if there were no stages before.
    fn take_over<'a>(&self, next: &AtomicU64, size: u64, view: &impl Fn() -> View<'a>) -> u64 {
        let whole = view().tail() / size;
        next.fetch_max(whole, Ordering::AcqRel).max(whole)
    }
}

/// Takes the next number below `end`.
fn take(next: &AtomicU64, end: u64) -> Option<u64> {
    next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < end).then_some(now + 1)).ok()
}
