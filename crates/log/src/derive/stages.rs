//! What is derived now, and who derives which chunk.

use super::cells::{PerBlock, PerChunk};
use super::{BLOCK, CHUNK, Group, Matches, Scratch, Sorted, WORDS, with_scratch};
use crate::expr::{Dnf, Filter, NoAggregates};
use crate::schema::{AttributeId, Schema};
use crate::store::View;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A filter, and what it matches in each chunk.
#[derive(Debug)]
pub(crate) struct FilterState {
    pub dnf: Dnf,
    pub filter: Filter,
    pub matches: PerChunk<Matches>,
}

/// An index, and its blocks.
#[derive(Debug)]
pub(crate) struct IndexState {
    pub attribute: AttributeId,
    pub blocks: PerBlock<Sorted>,
}

/// All that is derived from records. It is never changed, but put in place of another.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stages {
    pub filters: Vec<(u64, Arc<FilterState>)>,
    pub indexes: Vec<Arc<IndexState>>,
    groups: Arc<[Group]>,
    /// Filters that are in no group.
    alone: Arc<[usize]>,
}

/// The stages, and how far writers are with them.
#[derive(Debug)]
pub(crate) struct Derived {
    stages: RwLock<Arc<Stages>>,
    /// Who changes the stages.
    changing: Mutex<u64>,
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

    /// The filter of this id.
    pub fn filter(&self, id: u64) -> Option<&Arc<FilterState>> {
        self.filters.iter().find(|(other, _)| *other == id).map(|(_, state)| state)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.indexes.is_empty()
    }

    /// The filters' chunk, of whole chunks.
    fn chunk(&self, chunk: u64, view: View<'_>, scratch: &mut Scratch) {
        let rows = view.rows(chunk * CHUNK..(chunk + 1) * CHUNK);
        let at = chunk as usize;
        for group in &*self.groups {
            group.evaluate(rows, &mut scratch.set, |filter, bits| {
                self.filters[filter].1.matches.set(at, Matches::of(bits));
            });
        }
        for filter in &*self.alone {
            let state = &self.filters[*filter].1;
            let mut bits = [0; WORDS];
            for (place, record) in rows.chunks_exact(view.size()).enumerate() {
                bits[place / 64] |= u64::from(state.filter.matches(record, &NoAggregates)) << (place % 64);
            }
            state.matches.set(at, Matches::of(&bits));
        }
    }

    /// The same with other filters.
    fn with_filters(&self, filters: Vec<(u64, Arc<FilterState>)>, schema: &Schema) -> Self {
        let named = filters.iter().enumerate().map(|(name, (_, state))| (name, &state.dnf));
        let (groups, alone) = Group::all(named, schema);
        Self { groups: groups.into(), alone: alone.into(), filters, indexes: self.indexes.clone() }
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
            stages: RwLock::default(),
            changing: Mutex::default(),
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
        if self.stages().is_empty() {
            return;
        }
        while let Some(chunk) = take(&self.chunks, view.tail() / CHUNK) {
            // After it was taken: who adds a stage then knows which chunks it has to make itself.
            let stages = self.stages();
            with_scratch(|scratch| stages.chunk(chunk, view, scratch));
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
    pub fn add_filter<'a>(&self, dnf: Dnf, schema: &Schema, view: impl Fn() -> View<'a>) -> u64 {
        let filter = Filter::new(&dnf, schema);
        let state = Arc::new(FilterState { dnf, filter, matches: PerChunk::new(self.most) });
        let (id, taken) = self.change(&self.chunks, CHUNK, &view, |stages, id| {
            let mut filters = stages.filters.clone();
            filters.push((id, Arc::clone(&state)));
            stages.with_filters(filters, schema)
        });
        let own = Stages::default().with_filters(vec![(id, state)], schema);
        let view = view();
        for chunk in 0..taken {
            if own.filters[0].1.matches.get(chunk as usize).is_none() {
                with_scratch(|scratch| own.chunk(chunk, view, scratch));
            }
        }
        id
    }

    /// Adds an index, as [`add_filter`](Self::add_filter) does. There is one of an attribute; `None` if it was there.
    pub fn add_index<'a>(&self, attribute: AttributeId, schema: &Schema, view: impl Fn() -> View<'a>) -> bool {
        let state = Arc::new(IndexState { attribute, blocks: PerBlock::new(self.most) });
        let mut new = false;
        let (_, taken) = self.change(&self.blocks, BLOCK, &view, |stages, _| {
            new = stages.index(attribute).is_none();
            let mut stages = stages.clone();
            if new {
                stages.indexes.push(Arc::clone(&state));
            }
            stages
        });
        if new {
            let view = view();
            for block in 0..taken {
                with_scratch(|scratch| state.block(block, view, schema, scratch));
            }
        }
        new
    }

    /// Takes a filter away; its memory is free when the last reader that began before is done.
    pub fn remove_filter(&self, id: u64, schema: &Schema) -> bool {
        let mut there = false;
        self.swap(|stages, _| {
            let filters: Vec<_> = stages.filters.iter().filter(|(other, _)| *other != id).cloned().collect();
            there = filters.len() < stages.filters.len();
            stages.with_filters(filters, schema)
        });
        there
    }

    /// Takes an index away; its memory is free when the last reader that began before is done.
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

    /// Puts other stages in place, and tells how many chunks or blocks writers may have taken without knowing them.
    fn change<'a>(
        &self,
        next: &AtomicU64,
        size: u64,
        view: &impl Fn() -> View<'a>,
        with: impl FnOnce(&Stages, u64) -> Stages,
    ) -> (u64, u64) {
        let id = self.swap(with);
        // What is whole now is not left to a writer: it may be much, if there were no stages before.
        let whole = view().tail() / size;
        let taken = next.fetch_max(whole, Ordering::AcqRel).max(whole);
        (id, taken)
    }

    fn swap(&self, with: impl FnOnce(&Stages, u64) -> Stages) -> u64 {
        let mut last = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let stages = Arc::new(with(&self.stages(), *last));
        *self.stages.write().unwrap_or_else(PoisonError::into_inner) = stages;
        *last
    }
}

/// Takes the next number below `end`.
fn take(next: &AtomicU64, end: u64) -> Option<u64> {
    next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < end).then_some(now + 1)).ok()
}
