//! A snapshot as readers use it: the records, the stages, and what was computed about the last chunk.

use super::stages::{Counts, Stages};
use super::{Bits, CHUNK, WORDS, with_scratch};
use crate::schema::Reader;
use crate::store::{HeldRecords, Store, View};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The records before some position, and the data derived from them. They stay in memory while this lives.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    held: HeldRecords,
    pub stages: Arc<Stages>,
    tail: Arc<Mutex<Tail>>,
}

/// The matches of the filters in the chunk that the tail is in. They are not stored with the others because this chunk still grows. A
/// reader that comes again continues where it was, and knows how many matches there were since its first visit.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Identifies the filters by their counts. The weak reference lets a reader that stays away hold no records.
    of: Weak<Counts>,
    /// How often it was restarted.
    begun: u64,
    /// How many records each filter matched in whole chunks since then, by its place.
    sums: Vec<u64>,
    /// The same, plus the part of this chunk that was examined.
    counts: Vec<u64>,
    chunk: u64,
    /// How many of its records were examined.
    count: usize,
    filters: Vec<Bits>,
}

/// How many records each filter matched since a [`Tail`] was started, by its place.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// How often the tail was restarted: tallies of different starts cannot be compared.
    pub begun: u64,
    pub counts: Vec<u64>,
}

impl Reading {
    /// Stages, and the current records, which are more than those that the stages have seen.
    pub fn new(store: &Store, stages: Arc<Stages>, tail: Arc<Mutex<Tail>>) -> Self {
        Self { held: store.hold(&stages.floor), stages, tail }
    }

    /// The records.
    #[inline]
    pub fn view(&self) -> View<'_> {
        self.held.view()
    }

    /// Applies `of` to the matches of one filter in the chunk that the tail is in. The matches are computed for all
    /// filters at once. `None` if it is another chunk.
    pub fn in_tail<T>(&self, filter: usize, chunk: u64, of: impl FnOnce(&Bits) -> T) -> Option<T> {
        if chunk != self.view().tail() / CHUNK {
            return None;
        }
        self.tail().filters.get(filter).map(of)
    }

    /// How many matches each filter had since the tail was started: zero for an ordered filter.
    pub fn tallies(&self, into: &mut Tallies) {
        let tail = self.tail();
        into.begun = tail.begun;
        into.counts.clone_from(&tail.counts);
    }

    /// The results for the chunk that the tail is in, up to the tail.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view();
        let (chunk, count) = (view.tail() / CHUNK, (view.tail() % CHUNK) as usize);
        let known = std::ptr::eq(tail.of.as_ptr(), Arc::as_ptr(&self.stages.counts));
        let gone = tail.chunk < view.first() / CHUNK;
        if !known || gone || (tail.chunk, tail.count) > (chunk, count) {
            let filters = self.stages.filters.len();
            let (sums, filters) = (vec![0; filters], vec![[0; WORDS]; filters]);
            let (of, begun) = (Arc::downgrade(&self.stages.counts), tail.begun + 1);
            *tail = Tail { of, begun, counts: sums.clone(), sums, chunk, count: 0, filters };
        }
        let whole = tail.chunk < chunk;
        while tail.chunk < chunk {
            let (at, sums) = (tail.chunk as usize, &mut tail.sums);
            let mut add = |counts: &[u16]| {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(*count));
            };
            if self.stages.counts.look(at, |counts| add(counts)).is_none() {
                tail.go_on(CHUNK as usize, self);
                let Tail { sums, counts, .. } = &mut *tail;
                sums.copy_from_slice(counts);
            }
            (tail.chunk, tail.count) = (tail.chunk + 1, 0);
        }
        if whole {
            let Tail { sums, counts, filters, .. } = &mut *tail;
            counts.copy_from_slice(sums);
            filters.fill([0; WORDS]);
        }
        tail.go_on(count, self);
        tail
    }

    /// The first and the last time of a chunk's records.
    pub fn times(&self, chunk: u64, time: Reader) -> (u64, u64) {
        self.stages.times.look(chunk as usize, |times| *times).unwrap_or_else(|| {
            let (rows, size) = (self.view().chunk(chunk), self.view().size());
            let times = times(rows, size, time);
            if rows.len() == CHUNK as usize * size {
                self.stages.times.set(chunk as usize, times);
            }
            times
        })
    }
}

impl Tail {
    /// Examines more records of the chunk, up to `count`.
    fn go_on(&mut self, count: usize, reading: &Reading) {
        if self.count >= count {
            return;
        }
        // Whole words of bits, from the one that was not full.
        let (word, size) = (self.count / 64, reading.view().size());
        let new = &reading.view().chunk(self.chunk)[word * 64 * size..];
        with_scratch(|scratch| {
            reading.stages.evaluate(new, size, &mut scratch.set, |filter, bits| {
                self.filters[filter][word..].copy_from_slice(&bits[..WORDS - word]);
                self.counts[filter] = self.sums[filter] + u64::from(super::count(&self.filters[filter]));
            });
        });
        self.count = count;
    }
}

/// The first and the last time of records.
pub(super) fn times(rows: &[u8], size: usize, time: Reader) -> (u64, u64) {
    let keys = rows.chunks_exact(size).map(|record| time.key(record) as u64);
    keys.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
}
