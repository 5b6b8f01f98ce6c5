//! Storage of the records: which positions may be written, how far they can be read, and from where on.

mod floor;
mod rows;
mod segments;
mod sequence;

pub(crate) use floor::Floor;
pub use rows::{Memory, MemoryError};

use crate::derive::CHUNK;
use floor::FlooredRows;
use rows::Rows;
pub(crate) use sequence::MOST;
use sequence::{Sequence, WINDOW};
use std::ops::Range;
use std::sync::Arc;

/// The most records that are completed at once: readers see a long batch piece by piece.
const PIECE: u64 = if WINDOW < 1024 { 1 } else { 1024 };

/// Records in one total order, appended by any number of writers and read by any number of readers.
#[derive(Debug)]
pub(crate) struct Store {
    sequence: Sequence,
    floored: Arc<FlooredRows>,
}

impl Store {
    /// Room for `records` records of `size` bytes, from position `first` on, which is the first floor.
    pub fn new(size: usize, first: u64, records: u64, when: Memory) -> Result<(Self, Arc<Floor>), MemoryError> {
        let end = first.checked_add(records).filter(|end| *end <= MOST);
        let room = first..end.ok_or(MemoryError::TooLarge { records, size })?;
        let floor = Floor::new(Rows::new(size, room.clone(), when)?, first);
        Ok((Self { sequence: Sequence::new(room), floored: Arc::clone(&floor.floored) }, floor))
    }

    /// Appends consecutive records, as many as fit; `records` must be a whole number of records. Returns their
    /// positions.
    #[inline]
    pub fn append(&self, records: &[u8]) -> Range<u64> {
        let size = self.size();
        let reserved = self.sequence.reserve((records.len() / size) as u64);
        let end = self.floored.rows.ready(reserved.end);
        let positions = reserved.start.min(end)..end;
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
        // SAFETY: (1) reserved positions are within the room, which sequence and rows share, and `append` got their memory; (2) no two reservations share a
        // position, and `append` passes its own once; (3) a piece is completed after this.
        unsafe { self.floored.rows.write(start, piece) }
    }

    /// Holds all records from a floor on whose append returned before this call, and perhaps more.
    ///
    /// # Panics
    /// Panics if the floor belongs to another store.
    #[inline]
    pub fn hold(&self, floor: &Arc<Floor>) -> HeldRecords {
        // A tail means nothing for other rows.
        assert!(Arc::ptr_eq(&floor.floored, &self.floored), "a floor of another log");
        HeldRecords { floor: Arc::clone(floor), tail: self.sequence.tail() }
    }

    /// The position behind the last record that is visible now.
    pub fn tail(&self) -> u64 {
        self.sequence.tail()
    }

    /// A floor above all earlier ones, for later readers.
    ///
    /// # Panics
    /// Panics if it is not above them, or if it is behind the tail.
    #[expect(unsafe_code, reason = "what is before a floor may be given back")]
    pub fn raise(&self, first: u64) -> Arc<Floor> {
        assert!(first <= self.tail(), "a floor at {first} is behind the tail");
        // SAFETY: positions before the tail are written by the writer that reserved them, and no writer reserves them again.
        unsafe { self.floored.raise(first) }
    }

    /// Gives back the memory of records that no reader can read any more. Data derived from the records before the
    /// result can be discarded, too.
    pub fn give_back(&self) -> u64 {
        self.floored.give_back()
    }

    /// Freezes the tail that readers see, and returns its position.
    pub fn freeze(&self) -> u64 {
        self.sequence.freeze()
    }

    /// Undoes one [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.sequence.thaw();
    }

    /// Waits until readers see all records before `end`, whose positions are reserved.
    pub fn wait_until_visible(&self, end: u64) {
        self.sequence.wait_until_visible(end);
    }

    /// The position behind the last one that there is room for.
    pub fn capacity(&self) -> u64 {
        self.sequence.capacity()
    }

    /// Bytes of a record.
    #[inline]
    pub fn size(&self) -> usize {
        self.floored.rows.size()
    }
}

/// The records from a floor on, before some tail. They never change, and stay in memory while this lives.
#[derive(Debug, Clone)]
pub(crate) struct HeldRecords {
    floor: Arc<Floor>,
    tail: u64,
}

impl HeldRecords {
    /// The readable records.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View { floored: &self.floor.floored, first: self.floor.first(), tail: self.tail }
    }
}

/// Records that are held. References to them live as long as the hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    floored: &'a FlooredRows,
    first: u64,
    tail: u64,
}

impl<'a> View<'a> {
    /// Bytes of a record.
    #[inline]
    pub fn size(&self) -> usize {
        self.floored.rows.size()
    }

    /// The position of the first record, a multiple of a block.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position behind the last record.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Bytes of memory of the records, including earlier ones that were not given back.
    pub fn bytes(&self) -> u64 {
        self.tail.saturating_sub(self.floored.given_back()) * self.size() as u64
    }

    /// The records at some positions, one after another. Those of a block always are.
    ///
    /// # Panics
    /// Panics if not all of them are in the view, or if they are not [adjacent](Self::adjacent).
    #[inline]
    #[expect(unsafe_code, reason = "the one place that reads rows")]
    pub fn rows(&self, positions: Range<u64>) -> &'a [u8] {
        assert!(self.first <= positions.start, "positions before the floor");
        assert!(positions.start <= positions.end && positions.end <= self.tail, "positions behind the tail");
        // SAFETY: (1) the tail was taken from the sequence of these rows (`Store::hold`), and the positions are before
        // it; (2) they are not before a floor of these rows, which is borrowed while the result lives: `floor` explains why
        // nothing behind it is given back.
        unsafe { self.floored.rows.read(positions) }
    }

    /// The end of the positions from `positions.start` on that lie one after another in memory.
    pub fn adjacent(&self, positions: Range<u64>) -> u64 {
        self.floored.rows.adjacent(positions)
    }

    /// Prefetches a record that will be read soon.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        self.floored.rows.prefetch(position);
    }

    /// The records of a chunk that are in the view.
    ///
    /// # Panics
    /// Panics if the chunk begins behind the tail, or before the floor.
    #[inline]
    pub fn chunk(&self, chunk: u64) -> &'a [u8] {
        self.rows(chunk * CHUNK..((chunk + 1) * CHUNK).min(self.tail))
    }

    /// One record.
    ///
    /// # Panics
    /// Panics if it is not in the view.
    #[inline]
    pub fn record(&self, position: u64) -> &'a [u8] {
        self.rows(position..position + 1)
    }
}
