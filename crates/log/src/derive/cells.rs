//! One value for each block or chunk, computed once by the first thread that needs it, and discarded when no reader needs it any more.
//!
//! Reading or setting a value takes a shared lock on its part for a short time; only
//! discarding values takes it exclusively. A chunk is looked up once for its thousand records.

use super::CHUNKS;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One value for each block. Room is allocated when it is needed: a log may be made for many more records than come.
#[derive(Debug)]
pub(crate) struct PerBlock<T> {
    blocks: Range<usize>,
    /// Empty if no room is allocated yet, or if none is needed any more.
    parts: Box<[RwLock<Cells<T>>]>,
    /// Blocks before this one have no values, and get none.
    first: AtomicUsize,
}

/// Values that are each set once.
type Cells<T> = Box<[OnceLock<T>]>;

/// Blocks for which room is allocated at once.
const PART: usize = 1024;

impl<T> PerBlock<T> {
    /// For these blocks.
    pub fn new(blocks: Range<usize>) -> Self {
        let parts = (0..blocks.len().div_ceil(PART)).map(|_| RwLock::default()).collect();
        Self { first: AtomicUsize::new(blocks.start), blocks, parts }
    }

    /// Applies `of` to a block's value, if that is set.
    #[inline]
    pub fn look<R>(&self, block: usize, of: impl FnOnce(&T) -> R) -> Option<R> {
        let place = block.checked_sub(self.blocks.start)?;
        shared(self.parts.get(place / PART)?).get(place % PART)?.get().map(of)
    }

    /// Sets a block's value, if it is not set yet and still needed.
    ///
    /// # Panics
    /// Panics if the block is out of range.
    pub fn set(&self, block: usize, value: T) {
        // An earlier call set the same value.
        self.cell(block, |cell| drop(cell.set(value)));
    }

    /// Applies `with` to a block's cell, unless that is not needed any more.
    fn cell(&self, block: usize, with: impl FnOnce(&OnceLock<T>)) {
        assert!(self.blocks.contains(&block), "there is no block {block}");
        let place = block - self.blocks.start;
        let part = &self.parts[place / PART];
        let mut cells = shared(part);
        if cells.is_empty() {
            drop(cells);
            let mut alone = alone(part);
            if alone.is_empty() && block >= self.first.load(Ordering::Relaxed) {
                *alone = room(PART.min(self.blocks.len() - place / PART * PART));
            }
            drop(alone);
            cells = shared(part);
        }
        // Under the lock: a value that is set before the exclusive lock is taken will be discarded then.
        if block >= self.first.load(Ordering::Relaxed)
            && let Some(cell) = cells.get(place % PART)
        {
            with(cell);
        }
    }

    /// Discards the values of the blocks before one: nothing reads them any more.
    pub fn forget(&self, before: usize) {
        let before = before.clamp(self.blocks.start, self.blocks.end);
        let from = self.first.fetch_max(before, Ordering::Relaxed);
        let mut at = from - self.blocks.start;
        let end = before - self.blocks.start;
        while at < end {
            let next = ((at / PART + 1) * PART).min(end);
            let mut cells = alone(&self.parts[at / PART]);
            // Dropped after the lock is released.
            let gone: (Cells<T>, Vec<_>) = if next.is_multiple_of(PART) || next == self.blocks.len() {
                (std::mem::take(&mut *cells), Vec::new())
            } else {
                let there = cells.iter_mut().take((next - 1) % PART + 1).skip(at % PART);
                (Cells::default(), there.filter_map(OnceLock::take).collect())
            };
            drop(cells);
            drop(gone);
            at = next;
        }
    }

    /// Bytes that all values take, where `of` returns the heap bytes of each.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        let of_part = |part: &RwLock<Cells<T>>| {
            let cells = shared(part);
            size_of_val(&**cells) + cells.iter().filter_map(OnceLock::get).map(&of).sum::<usize>()
        };
        size_of_val(&*self.parts) + self.parts.iter().map(of_part).sum::<usize>()
    }
}

/// One value for each chunk. Room for a block's chunks is allocated with the first of them.
#[derive(Debug)]
pub(crate) struct PerChunk<T> {
    blocks: PerBlock<Cells<T>>,
}

impl<T> PerChunk<T> {
    /// For the chunks of these blocks.
    pub fn new(blocks: Range<usize>) -> Self {
        Self { blocks: PerBlock::new(blocks) }
    }

    /// Applies `of` to a chunk's value, if that is set.
    #[inline]
    pub fn look<R>(&self, chunk: usize, of: impl FnOnce(&T) -> R) -> Option<R> {
        self.blocks.look(chunk / CHUNKS, |block| block[chunk % CHUNKS].get().map(of))?
    }

    /// Sets a chunk's value, if it is not set yet and still needed.
    ///
    /// # Panics
    /// Panics if the chunk is out of range.
    pub fn set(&self, chunk: usize, value: T) {
        self.blocks.cell(chunk / CHUNKS, |block| {
            // An earlier call set the same value.
            let _ = block.get_or_init(|| room(CHUNKS))[chunk % CHUNKS].set(value);
        });
    }

    /// Discards the values of the chunks of the blocks before one: nothing reads them any more.
    pub fn forget(&self, before: usize) {
        self.blocks.forget(before);
    }

    /// Bytes that all values take, where `of` returns the heap bytes of each.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        self.blocks.heap(|block| size_of_val(&**block) + block.iter().filter_map(OnceLock::get).map(&of).sum::<usize>())
    }
}

fn room<T>(count: usize) -> Cells<T> {
    (0..count).map(|_| OnceLock::new()).collect()
}

fn shared<T>(part: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    part.read().unwrap_or_else(PoisonError::into_inner)
}

fn alone<T>(part: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    part.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone)]
    enum Event {
        Set(usize, u8),
        Forget(usize),
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn the_first_value_stays_until_it_is_discarded(
            start in 0..3000usize,
            count in 1..2600usize,
            events in prop::collection::vec(prop_oneof![
                6 => (0..2600usize, any::<u8>()).prop_map(|(at, value)| Event::Set(at, value)),
                1 => (0..2600usize).prop_map(Event::Forget),
            ], 0..60),
        ) {
            let cells = PerBlock::new(start..start + count);
            let chunks = PerChunk::new(start..start + count);
            let (mut plain, mut first) = (BTreeMap::new(), start);
            for event in events {
                match event {
                    Event::Set(at, value) => {
                        let block = start + at % count;
                        cells.set(block, Box::new(value));
                        chunks.set(block * CHUNKS + 7, value);
                        if block >= first {
                            plain.entry(block).or_insert(value);
                        }
                    }
                    Event::Forget(at) => {
                        first = first.max(start + at.min(count));
                        cells.forget(start + at);
                        chunks.forget(start + at);
                        plain.retain(|block, _| *block >= first);
                    }
                }
                for block in start.saturating_sub(1)..start + count + 1 {
                    prop_assert_eq!(cells.look(block, |value| **value), plain.get(&block).copied());
                    prop_assert_eq!(chunks.look(block * CHUNKS + 7, |value| *value), plain.get(&block).copied());
                    prop_assert_eq!(chunks.look(block * CHUNKS, |value| *value), None);
                }
                let (bytes, parts) = (plain.len(), size_of_val(&*cells.parts));
                let there = cells.heap(|_| 1);
                prop_assert!(there >= parts + bytes);
                // Everything is discarded: no room is left either.
                prop_assert!(first < start + count || there == parts);
            }
        }
    }
}
