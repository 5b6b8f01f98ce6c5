//! Which thread derives which chunk, how derived data changes, and how it is discarded with the records that leave memory.

use super::aggregate::AggregateState;
use super::cells::PerBlock;
use super::function::{Function, State, Working};
use super::stages::{IndexState, Stages};
use super::{BLOCK, CHUNK, FilterState, with_scratch};
use crate::expr::{AggregateId, Dnf, NameError};
use crate::schema::{AttributeId, Schema};
use crate::store::{Floor, Store};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// The stages, and how far writers are with them.
#[derive(Debug)]
pub(crate) struct Derived {
    stages: RwLock<Arc<Stages>>,
    changing: Mutex<Changing>,
    /// Whether the stages are empty: looking at the stages costs writers more.
    idle: AtomicBool,
    /// The next chunk and the next block that no writer took.
    chunks: AtomicU64,
    blocks: AtomicU64,
    /// Blocks that there can be.
    all: Range<usize>,
}

/// State for the thread that changes the stages, which holds it alone.
#[derive(Debug, Default)]
struct Changing {
    /// The last number that was given.
    last: u64,
    /// All aggregates that are in use, including removed ones: each must include records before these leave memory.
    aggregates: Vec<Weak<AggregateState>>,
}

impl Derived {
    /// Nothing is derived yet. The log begins at a floor and ends before `end` at the latest.
    pub fn new(floor: Arc<Floor>, end: u64) -> Self {
        let first = floor.first();
        let all = (first / BLOCK) as usize..end.div_ceil(BLOCK) as usize;
        Self {
            stages: RwLock::new(Arc::new(Stages::new(floor, all.clone()))),
            changing: Mutex::default(),
            idle: AtomicBool::new(true),
            chunks: AtomicU64::new(first / CHUNK),
            blocks: AtomicU64::new(first / BLOCK),
            all,
        }
    }

    /// The current stages.
    pub fn stages(&self) -> Arc<Stages> {
        Arc::clone(&self.stages.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Derives the data of the chunks and blocks that no writer took yet.
    pub fn advance(&self, store: &Store, schema: &Schema) {
        // Even if nothing is derived: otherwise a writer that waits for room would move the tail a whole window at once.
        let tail = store.tail();
        if self.idle.load(Ordering::Relaxed) {
            return;
        }
        while let Some(chunk) = take(&self.chunks, tail / CHUNK) {
            // After the chunk was taken: a thread that adds a stage then knows which chunks it has to derive itself.
            let stages = self.stages();
            // If the chunk left memory in the meantime, the thread that released it has derived its data.
            if chunk * CHUNK >= stages.floor.first() {
                let held = store.hold(&stages.floor);
                stages.chunk(chunk, held.view(), schema.time().map(|time| schema.reader(time)));
            }
        }
        while let Some(block) = take(&self.blocks, tail / BLOCK) {
            let stages = self.stages();
            if block * BLOCK >= stages.floor.first() {
                let held = store.hold(&stages.floor);
                with_scratch(|scratch| {
                    for index in &stages.indexes {
                        index.block(block, held.view(), schema, scratch);
                    }
                });
            }
        }
    }

    /// Adds a filter; then, while writers continue, finds its matches in the chunks that writers have passed.
    pub fn add_filter(&self, dnf: Dnf, schema: &Schema, store: &Store) -> u64 {
        let mut new = None;
        let (id, stages) = self.swap(|stages, changing| {
            let (id, operands) = (changing.last, stages.named(&dnf));
            let state = FilterState::new(id, dnf, schema, self.all.clone(), operands, stages.floor.first());
            let mut filters = stages.filters.clone();
            filters.push(Arc::clone(new.insert(Arc::new(state))));
            stages.with_filters(filters, self.all.clone(), schema)
        });
        if let Some(state) = new {
            let chunks = self.take_over(&self.chunks, CHUNK, &stages, store);
            let held = store.hold(&stages.floor);
            chunks.for_each(|chunk| state.fill(chunk, held.view()));
            state.catch_up(|| store.hold(&stages.floor));
        }
        id
    }

    /// Adds an aggregate, as [`add_filter`](Self::add_filter) does, with a name for each of its values. `before` is its state over
    /// records that have left memory; the empty state if not given.
    pub fn add_aggregate(
        &self,
        names: &[&str],
        filter: Option<u64>,
        function: &Function,
        before: Option<State>,
        schema: &Schema,
        store: &Store,
    ) -> Result<AggregateId, NameError> {
        let working = Working::new(function, schema);
        assert_eq!(names.len(), working.values(), "an aggregate has a name for each of its values");
        let before = before.unwrap_or_else(|| working.empty());
        let mut new = None;
        let mut first = 0;
        let (_, stages) = self.try_swap(|stages, changing| {
            let mut scope = stages.scope(schema);
            for name in names {
                scope.add_aggregate(name)?;
            }
            let filter =
                filter.map(|id| stages.filter(id).cloned().unwrap_or_else(|| panic!("there is no filter {id}")));
            let floor = stages.floor.first();
            let state = new.insert(Arc::new(AggregateState::new(working, filter, self.all.clone(), floor, before)));
            changing.aggregates.retain(|other| other.strong_count() > 0);
            changing.aggregates.push(Arc::downgrade(state));
            let mut stages = stages.clone();
            first = stages.next;
            for (value, name) in names.iter().enumerate() {
                stages.operands.insert(AggregateId(stages.next), ((*name).to_owned(), (Arc::clone(state), value)));
                stages.next += 1;
            }
            Ok(stages)
        })?;
        if let Some(state) = new {
            let chunks = self.take_over(&self.chunks, CHUNK, &stages, store);
            let held = store.hold(&stages.floor);
            chunks.for_each(|chunk| state.fill(chunk, held.view()));
        }
        Ok(AggregateId(first))
    }

    /// Adds an index, as [`add_filter`](Self::add_filter) does. An attribute has one index at most; `false` if it exists already.
    pub fn add_index(&self, attribute: AttributeId, schema: &Schema, store: &Store) -> bool {
        let state = Arc::new(IndexState { attribute, blocks: PerBlock::new(self.all.clone()) });
        let mut new = false;
        let (_, stages) = self.swap(|stages, _| {
            new = stages.index(attribute).is_none();
            let mut stages = stages.clone();
            if new {
                stages.indexes.push(Arc::clone(&state));
            }
            stages
        });
        if new {
            let blocks = self.take_over(&self.blocks, BLOCK, &stages, store);
            let held = store.hold(&stages.floor);
            blocks.for_each(|block| with_scratch(|scratch| state.block(block, held.view(), schema, scratch)));
        }
        new
    }

    /// Removes a filter. Its memory is freed when the last earlier reader is done.
    pub fn remove_filter(&self, id: u64, schema: &Schema) -> bool {
        let mut there = false;
        self.swap(|stages, _| {
            let filters: Vec<_> = stages.filters.iter().filter(|filter| filter.id != id).cloned().collect();
            there = filters.len() < stages.filters.len();
            stages.with_filters(filters, self.all.clone(), schema)
        });
        there
    }

    /// Removes an aggregate with all its values, as [`remove_filter`](Self::remove_filter) does. Its names can be used again,
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

    /// Removes an index, as [`remove_filter`](Self::remove_filter) does.
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

    /// Releases the records before a position, in whole blocks before the tail. Frees the memory of these and earlier records that no
    /// reader holds any more; returns up to which position.
    pub fn release(&self, before: u64, store: &Store) -> u64 {
        let mut changing = self.changing();
        changing.aggregates.retain(|aggregate| aggregate.strong_count() > 0);
        self.raise(before, store, &changing);
        let given_back = store.give_back();
        self.stages().forget(given_back);
        for aggregate in changing.aggregates.iter().filter_map(Weak::upgrade) {
            aggregate.forget(given_back);
        }
        given_back
    }

    /// Replaces the stages by ones with a higher floor, once all that is needed of the records before it is computed.
    /// Nothing is added in the meantime.
    fn raise(&self, before: u64, store: &Store, changing: &Changing) {
        let stages = self.stages();
        let held = store.hold(&stages.floor);
        let floor = before.min(held.view().tail()) / BLOCK * BLOCK;
        if floor <= stages.floor.first() {
            return;
        }
        stages.filters.iter().for_each(|filter| filter.settle(floor, held.view()));
        for aggregate in changing.aggregates.iter().filter_map(Weak::upgrade) {
            aggregate.settle(floor, held.view());
        }
        self.put(stages.above(store.raise(floor)));
    }

    /// Replaces the stages. The new ones get a number that no others had.
    fn swap(&self, with: impl FnOnce(&Stages, &mut Changing) -> Stages) -> (u64, Arc<Stages>) {
        let Ok(new) = self.try_swap(|stages, changing| Ok::<_, Infallible>(with(stages, changing)));
        new
    }

    fn try_swap<E>(
        &self,
        with: impl FnOnce(&Stages, &mut Changing) -> Result<Stages, E>,
    ) -> Result<(u64, Arc<Stages>), E> {
        let mut changing = self.changing();
        changing.last += 1;
        let stages = with(&self.stages(), &mut changing)?;
        Ok((changing.last, self.put(stages)))
    }

    fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the thread that changes the stages.
    fn put(&self, stages: Stages) -> Arc<Stages> {
        // A thread that adds something derives the data of chunks that writers have passed without it.
        self.idle.store(stages.is_empty(), Ordering::Relaxed);
        let new = Arc::new(stages.complete());
        let mut place = self.stages.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, Arc::clone(&new));
        // Drop the old stages after the lock is released, so that other threads need not wait for that.
        drop(place);
        drop(old);
        new
    }

    /// The chunks or blocks from the floor on that writers may have taken before they knew these stages, which are in place now.
    /// Complete ones are not left to a single writer: they may be many, if there were no stages before.
    fn take_over(&self, next: &AtomicU64, size: u64, stages: &Stages, store: &Store) -> Range<u64> {
        let whole = store.tail() / size;
        stages.floor.first() / size..next.fetch_max(whole, Ordering::AcqRel).max(whole)
    }
}

/// Takes the next number below `end`.
fn take(next: &AtomicU64, end: u64) -> Option<u64> {
    next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < end).then_some(now + 1)).ok()
}
