//! Where records are: who may write which of them, how far they can be read, and from where on.

mod floor;
mod rows;
mod sequence;

pub(crate) use floor::Floor;
pub use rows::{Memory, MemoryError};
pub use sequence::FrozenTail;

use crate::derive::CHUNK;
use floor::Ground;
use rows::Rows;
pub(crate) use sequence::MOST;
use sequence::{Sequence, WINDOW};
use std::ops::Range;
use std::sync::Arc;

/// Records that are completed at once, at most: readers see a long batch piece by piece.
const PIECE: u64 = if WINDOW < 1024 { 1 } else { 1024 };

/// Records in one total order, which any number of writers append to and readers read.
#[derive(Debug)]
pub(crate) struct Store {
    sequence: Sequence,
    ground: Arc<Ground>,
}

impl Store {
    /// Room for so many records of `size` bytes, from a position on, which is the first floor.
    pub fn new(size: usize, first: u64, records: u64, when: Memory) -> Result<(Self, Arc<Floor>), MemoryError> {
        let end = first.checked_add(records).filter(|end| *end <= MOST);
        let room = first..end.ok_or(MemoryError::TooLarge { records, size })?;
        let floor = Floor::new(Rows::new(size, room.clone(), when)?, first);
        Ok((Self { sequence: Sequence::new(room), ground: Arc::clone(&floor.ground) }, floor))
    }

    /// Appends records, of which `records` is a whole number, one behind the other; as many as there is room for. Their
    /// positions are the answer.
    #[inline]
    pub fn append(&self, records: &[u8]) -> Range<u64> {
        let size = self.size();
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
        // SAFETY: (1) what is reserved is in the room that both parts have in common; (2) no two reservations have a
        // position in common, and `append` goes over its own once; (3) it completes a piece after this.
        unsafe { self.ground.rows.write(start, piece) }
    }

    /// Holds all records from a floor on whose append returned before this, and perhaps more.
    ///
    /// # Panics
    /// If it is another store's floor.
    #[inline]
    pub fn hold(&self, floor: &Arc<Floor>) -> Held {
        // A tail says nothing of other rows.
        assert!(Arc::ptr_eq(&floor.ground, &self.ground), "a floor of another log");
        Held { floor: Arc::clone(floor), tail: self.sequence.tail() }
    }

    /// The position behind the last record that is seen now.
    pub fn tail(&self) -> u64 {
        self.sequence.tail()
    }

    /// A floor above all that there were, for who comes from now on.
    ///
    /// # Panics
    /// If it is not above them, or behind the tail.
    #[expect(unsafe_code, reason = "what is before a floor may be given back")]
    pub fn raise(&self, first: u64) -> Arc<Floor> {
        assert!(first <= self.tail(), "a floor at {first} is behind the tail");
        // SAFETY: what is before the tail is written, by one who reserved it, and nobody reserves it again.
        unsafe { self.ground.raise(first) }
    }

    /// Gives the memory of records back that nobody can read any more. All that is derived from the records before the
    /// answer can go too.
    pub fn give_back(&self) -> u64 {
        self.ground.give_back()
    }

    /// Holds what readers see.
    pub fn freeze(&self) -> FrozenTail<'_> {
        self.sequence.freeze()
    }

    /// The position behind the last that there is room for.
    pub fn capacity(&self) -> u64 {
        self.sequence.capacity()
    }

    /// Bytes of a record.
    #[inline]
    pub fn size(&self) -> usize {
        self.ground.rows.size()
    }
}

/// The records from a floor on, before some tail. They never change, and stay while this lives.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    floor: Arc<Floor>,
    tail: u64,
}

impl Held {
    /// What can be read.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View { ground: &self.floor.ground, first: self.floor.first(), tail: self.tail }
    }
}

/// Records that somebody holds. What is read of them lives as long as that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    ground: &'a Ground,
    first: u64,
    tail: u64,
}

impl<'a> View<'a> {
    /// Bytes of a record.
    #[inline]
    pub fn size(&self) -> usize {
        self.ground.rows.size()
    }

    /// The position of the first record, a multiple of a block's.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position behind the last record.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Bytes of memory that the records have, with those of earlier ones that were not given back.
    pub fn bytes(&self) -> u64 {
        self.tail.saturating_sub(self.ground.given_back()) * self.size() as u64
    }

    /// The records at some positions, one behind the other.
    ///
    /// # Panics
    /// If not all of them are in the view.
    #[inline]
    #[expect(unsafe_code, reason = "the one place that reads rows")]
    pub fn rows(&self, positions: Range<u64>) -> &'a [u8] {
        assert!(self.first <= positions.start, "positions before the floor");
        assert!(positions.start <= positions.end && positions.end <= self.tail, "positions behind the tail");
        // SAFETY: (1) the tail was taken from the sequence of these rows (`Store::hold`), and the positions are before
        // it; (2) they are not before a floor of these rows, which is borrowed while the answer lives: `floor` says why
        // what is behind it is not given back.
        unsafe { self.ground.rows.read(positions) }
    }

    /// Has the processor fetch a record that will be read soon.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        self.ground.rows.prefetch(position);
    }

    /// The records of a chunk that are in the view.
    ///
    /// # Panics
    /// If the chunk begins behind the tail, or before the floor.
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
