//! Where records are: who may write which of them, and how far they can be read.

mod rows;
mod sequence;

pub use rows::{Memory, MemoryError};
pub use sequence::FrozenTail;

use crate::derive::CHUNK;
use rows::Rows;
use sequence::{Sequence, WINDOW};
use std::ops::Range;

/// Records that are completed at once, at most: readers see a long batch piece by piece.
const PIECE: u64 = if WINDOW < 1024 { 1 } else { 1024 };

/// Records in one total order, which any number of writers append to and readers read.
#[derive(Debug)]
pub(crate) struct Store {
    sequence: Sequence,
    rows: Rows,
}

impl Store {
    /// Room for so many records of `size` bytes.
    pub fn new(size: usize, capacity: u64, when: Memory) -> Result<Self, MemoryError> {
        let rows = Rows::new(size, capacity, when)?;
        Ok(Self { sequence: Sequence::new(capacity), rows })
    }

    /// Appends records, of which `records` is a whole number, one behind the other; as many as there is room for. Their
    /// positions are the answer.
    #[inline]
    pub fn append(&self, records: &[u8]) -> Range<u64> {
        let size = self.rows.size();
        let positions = self.sequence.reserve((records.len() / size) as u64);
        let (mut start, mut records) = (positions.start, records);
        while start < positions.end {
            let end = positions.end.min(start + PIECE);
            let (piece, rest) = records.split_at((end - start) as usize * size);
            self.sequence.wait_for_room(end);
            self.write(start, piece);
            self.sequence.complete(start..end);
            (start, records) = (end, rest);
        }
        positions
    }

    #[inline]
    #[expect(unsafe_code, reason = "the one place that writes rows")]
    fn write(&self, start: u64, piece: &[u8]) {
        // SAFETY: (1) what is reserved is below the capacity, which both parts have in common; (2) no two reservations
        // have a position in common, and `append` goes over its own once; (3) it completes a piece after this.
        unsafe { self.rows.write(start, piece) }
    }

    /// All records whose append returned before this, and perhaps more.
    pub fn view(&self) -> View<'_> {
        View { store: self, tail: self.sequence.tail() }
    }

    /// Holds what readers see.
    pub fn freeze(&self) -> FrozenTail<'_> {
        self.sequence.freeze()
    }

    /// Records in all that there is room for.
    pub fn capacity(&self) -> u64 {
        self.sequence.capacity()
    }

    /// Bytes of a record.
    pub fn size(&self) -> usize {
        self.rows.size()
    }
}

/// The records before some tail. They never change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    store: &'a Store,
    tail: u64,
}

impl<'a> View<'a> {
    /// Bytes of a record.
    pub fn size(&self) -> usize {
        self.store.size()
    }

    /// How many records it has.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The records at some positions, one behind the other.
    ///
    /// # Panics
    /// If not all of them are in the view.
    #[inline]
    #[expect(unsafe_code, reason = "the one place that reads rows")]
    pub fn rows(&self, positions: Range<u64>) -> &'a [u8] {
        assert!(positions.start <= positions.end && positions.end <= self.tail, "positions behind the tail");
        // SAFETY: the view's tail was taken from the sequence, and the positions are before it.
        unsafe { self.store.rows.read(positions) }
    }

    /// Has the processor fetch a record that will be read soon.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        self.store.rows.prefetch(position);
    }

    /// The records of a chunk that are in the view.
    ///
    /// # Panics
    /// If the chunk begins behind the tail.
    #[inline]
    pub fn chunk(&self, chunk: u64) -> &'a [u8] {
        self.rows(chunk * CHUNK..((chunk + 1) * CHUNK).min(self.tail))
    }

    /// One record.
    ///
    /// # Panics
    /// If it is not in the view.
    #[inline]
    pub fn record(&self, position: u64) -> &'a [u8] {
        self.rows(position..position + 1)
    }
}
