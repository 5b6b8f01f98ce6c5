//! A snapshot as readers use it: the records, the stages, and what was worked out of the last chunk.

use super::stages::Stages;
use super::{Bits, CHUNK, WORDS, with_scratch};
use crate::schema::Reader;
use crate::store::View;
use std::sync::{Arc, Mutex, PoisonError};

/// The records before some position, and what is derived from them.
#[derive(Debug, Clone)]
pub(crate) struct Reading<'a> {
    pub view: View<'a>,
    pub stages: Arc<Stages>,
    tail: Arc<Mutex<Tail>>,
}

/// What the filters match in the chunk that the tail is in: that is not kept with the others, since it grows. A reader
/// that comes again goes on where it was.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    stages: Option<Arc<Stages>>,
    chunk: u64,
    /// How many of its records were looked at.
    count: usize,
    filters: Vec<Bits>,
}

impl<'a> Reading<'a> {
    /// A view, and the stages as they were before it was taken.
    pub fn new(view: View<'a>, stages: Arc<Stages>, tail: Arc<Mutex<Tail>>) -> Self {
        Self { view, stages, tail }
    }

    /// What one of the stages' filters matches in the chunk that the tail is in; of all of them at once. `None` if it
    /// is another chunk.
    pub fn in_tail(&self, filter: usize, chunk: u64) -> Option<Bits> {
        if chunk != self.view.tail() / CHUNK {
            return None;
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = self.view.chunk(chunk);
        let count = rows.len() / self.view.size();
        let known = tail.stages.as_ref().is_some_and(|stages| Arc::ptr_eq(stages, &self.stages));
        if !known || tail.chunk != chunk || tail.count > count {
            let filters = vec![[0; WORDS]; self.stages.filters.len()];
            *tail = Tail { stages: Some(Arc::clone(&self.stages)), chunk, count: 0, filters };
        }
        if tail.count < count {
            // Whole words of bits, from the one that was not full.
            let word = tail.count / 64;
            let new = &rows[word * 64 * self.view.size()..];
            with_scratch(|scratch| {
                self.stages.evaluate(new, self.view.size(), &mut scratch.set, |filter, bits| {
                    tail.filters[filter][word..].copy_from_slice(&bits[..WORDS - word]);
                });
            });
            tail.count = count;
        }
        tail.filters.get(filter).copied()
    }

    /// The first and the last time of a chunk's records.
    pub fn times(&self, chunk: u64, time: Reader) -> (u64, u64) {
        let known = |chunk| self.stages.times.get(chunk as usize).copied();
        known(chunk).unwrap_or_else(|| {
            let rows = self.view.chunk(chunk);
            let times = times(rows, self.view.size(), time);
            if rows.len() == CHUNK as usize * self.view.size() {
                self.stages.times.set(chunk as usize, times);
            }
            times
        })
    }
}

/// The first and the last time of records.
pub(super) fn times(rows: &[u8], size: usize, time: Reader) -> (u64, u64) {
    let keys = rows.chunks_exact(size).map(|record| time.key(record) as u64);
    keys.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
}
