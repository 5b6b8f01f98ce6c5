//! Aggregates: values computed from all records, or from those that a filter matches.

use super::cells::PerChunk;
use super::function::{State, Working};
use super::matches::{Bits, Matches, WORDS, clear_from, clear_to, ones};
use super::reading::Reading;
use super::{CHUNK, CHUNKS, FilterState};
use crate::store::View;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An aggregate, and its state for each chunk.
#[derive(Debug)]
pub(crate) struct AggregateState {
    pub function: Working,
    /// The filter whose records it covers; `None`: all records.
    pub filter: Option<Arc<FilterState>>,
    chunks: PerChunk<State>,
    before: Mutex<Before>,
}

/// The states of an aggregate over all records before some chunks, including records that left memory.
#[derive(Debug)]
struct Before {
    /// Before each floor that readers may have.
    floors: BTreeMap<u64, State>,
    /// Up to the furthest position of any reader, and where the last reader was that was not so far.
    ahead: (u64, State),
    behind: (u64, State),
}

impl AggregateState {
    /// An aggregate over some blocks; `state` covers all records before the position of a floor.
    pub fn new(
        function: Working,
        filter: Option<Arc<FilterState>>,
        blocks: Range<usize>,
        floor: u64,
        state: State,
    ) -> Self {
        let first = (floor / CHUNK, state);
        let before = Before { floors: BTreeMap::from([first]), ahead: first, behind: first };
        // A count is the number of the filter's matches.
        let blocks = if matches!(function, Working::Count) { blocks.start..blocks.start } else { blocks };
        Self { function, filter, chunks: PerChunk::new(blocks), before: Mutex::new(before) }
    }

    /// The filter whose matches it counts, if that is all that it does.
    pub fn counted(&self) -> Option<&FilterState> {
        matches!(self.function, Working::Count).then_some(self.filter.as_deref()).flatten()
    }

    /// Computes its state for a whole chunk, if that is not known.
    pub fn fill(&self, chunk: u64, view: View<'_>) {
        if let Some(filter) = &self.filter {
            filter.fill(chunk, view);
        }
        if !matches!(self.function, Working::Count) && self.chunks.look(chunk as usize, |_| ()).is_none() {
            let bits = match &self.filter {
                Some(filter) => filter.known(chunk, Matches::bits).unwrap_or([0; WORDS]),
                None => [u64::MAX; WORDS],
            };
            let state = self.of_bits(chunk, &bits, view);
            self.chunks.set(chunk as usize, state);
        }
    }

    /// Its state over some records of the view.
    pub fn over(&self, positions: Range<u64>, reading: &Reading) -> State {
        let (mut at, mut state) = (positions.start, self.function.empty());
        while at < positions.end {
            let chunk = at / CHUNK;
            let next = ((chunk + 1) * CHUNK).min(positions.end);
            let of_chunk =
                if next - at == CHUNK { self.whole(chunk, reading.view()) } else { self.part(at..next, reading) };
            self.function.join(&mut state, &of_chunk);
            at = next;
        }
        state
    }

    /// Its state over all records before a position of the view, which may be its end, including those before its floor.
    pub fn up_to(&self, end: u64, reading: &Reading) -> State {
        let chunk = end / CHUNK;
        let mut state = self.before(chunk, reading.view());
        if chunk * CHUNK < end {
            let more = self.part(chunk * CHUNK..end, reading);
            self.function.join(&mut state, &more);
        }
        state
    }

    /// Its state over all records before a chunk; it continues from earlier results.
    fn before(&self, chunk: u64, view: View<'_>) -> State {
        let mut before = self.lock();
        let (mut at, mut state) = before.nearest(chunk).unwrap_or((view.first() / CHUNK, self.function.empty()));
        while at < chunk {
            let more = self.whole(at, view);
            self.function.join(&mut state, &more);
            at += 1;
        }
        if at >= before.ahead.0 {
            before.ahead = (at, state);
        } else {
            before.behind = (at, state);
        }
        state
    }

    /// Its state over all records before a floor that was settled.
    pub fn before_floor(&self, floor: u64) -> State {
        let known = self.lock().nearest(floor / CHUNK);
        known.map_or_else(|| self.function.empty(), |(_, state)| state)
    }

    /// Computes its state over all records before a position that will be a floor.
    pub fn settle(&self, floor: u64, view: View<'_>) {
        let state = self.before(floor / CHUNK, view);
        self.lock().floors.insert(floor / CHUNK, state);
    }

    /// Discards what readers do not need whose floor is this one or a later one.
    pub fn forget(&self, floor: u64) {
        let chunk = floor / CHUNK;
        self.lock().floors.retain(|at, _| *at >= chunk);
        self.chunks.forget(chunk as usize / CHUNKS);
        if let Some(filter) = &self.filter {
            filter.forget(floor);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a whole chunk.
    fn whole(&self, chunk: u64, view: View<'_>) -> State {
        self.fill(chunk, view);
        match (&self.function, &self.filter) {
            (Working::Count, None) => [CHUNK.into(), 0, 0, 0],
            (Working::Count, Some(filter)) => [filter.known(chunk, Matches::count).unwrap_or(0).into(), 0, 0, 0],
            _ => self.chunks.look(chunk as usize, |state| *state).unwrap_or_else(|| self.function.empty()),
        }
    }

    /// The state of some records of one chunk.
    fn part(&self, positions: Range<u64>, reading: &Reading) -> State {
        let chunk = positions.start / CHUNK;
        let start = chunk * CHUNK;
        let places = (positions.start - start) as usize..(positions.end - start) as usize;
        if matches!(self.function, Working::Count) {
            let count = self.filter.as_ref().map(|filter| filter.count(chunk, places.clone(), reading).into());
            return [count.unwrap_or(places.len() as u128), 0, 0, 0];
        }
        let mut bits = self.filter.as_ref().map_or([u64::MAX; WORDS], |filter| filter.bits(chunk, reading));
        clear_from(&mut bits, places.end);
        clear_to(&mut bits, places.start);
        self.of_bits(chunk, &bits, reading.view())
    }

    fn of_bits(&self, chunk: u64, bits: &Bits, view: View<'_>) -> State {
        let mut state = self.function.empty();
        let (rows, size) = (view.chunk(chunk), view.size());
        for place in ones(bits) {
            self.function.add(&mut state, &rows[place * size..(place + 1) * size]);
        }
        state
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        self.chunks.heap(|_| 0)
    }
}

impl Before {
    /// The known state of the records before a chunk, or before the nearest earlier one.
    fn nearest(&self, chunk: u64) -> Option<(u64, State)> {
        let floor = self.floors.range(..=chunk).next_back().map(|(at, state)| (*at, *state));
        let others = [self.ahead, self.behind].into_iter().filter(|(at, _)| *at <= chunk);
        floor.into_iter().chain(others).max_by_key(|(at, _)| *at)
    }
}
