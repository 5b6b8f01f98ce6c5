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
    /// The matches among them: of each 64 records, a word for each filter. So a reader that comes often touches little memory.
    words: Vec<u64>,
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
        let tail = self.tail();
        let words = tail.words.chunks_exact(tail.counts.len().max(1));
        let mut bits = [0; WORDS];
        for (bits, words) in bits.iter_mut().zip(words) {
            *bits = *words.get(filter)?;
        }
        Some(of(&bits))
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
            let (sums, words) = (vec![0; filters], vec![0; filters * WORDS]);
            let (of, begun) = (Arc::downgrade(&self.stages.counts), tail.begun + 1);
            *tail = Tail { of, begun, counts: sums.clone(), sums, chunk, count: 0, words };
        }
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
            tail.next_chunk();
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
    /// Goes to the next chunk.
    fn next_chunk(&mut self) {
        let used = self.count.div_ceil(64) * self.counts.len();
        self.words[..used].fill(0);
        self.counts.copy_from_slice(&self.sums);
        (self.chunk, self.count) = (self.chunk + 1, 0);
    }

    /// Examines more records of the chunk, up to `count`.
    fn go_on(&mut self, count: usize, reading: &Reading) {
        if self.count >= count {
            return;
        }
        // Whole words, from the one that was not full.
        let (word, size, filters) = (self.count / 64, reading.view().size(), self.counts.len());
        let new = &reading.view().chunk(self.chunk)[word * 64 * size..count * size];
        with_scratch(|scratch| {
            for (word, rows) in (word..).zip(new.chunks(64 * size)) {
                let known = &mut self.words[word * filters..(word + 1) * filters];
                reading.stages.evaluate_word(rows, size, &mut scratch.set, |filter, bits| {
                    // The matches that were known are still there.
                    self.counts[filter] += u64::from((bits ^ known[filter]).count_ones());
                    known[filter] = bits;
                });
            }
        });
        self.count = count;
    }
}

/// The first and the last time of records.
pub(super) fn times(rows: &[u8], size: usize, time: Reader) -> (u64, u64) {
    let keys = rows.chunks_exact(size).map(|record| time.key(record) as u64);
    keys.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
}
