//! Who may write where, and how far readers may read: one total order without holes.
//!
//! Records have positions: 0, 1, 2 and so on. A writer
//!
//! 1. *reserves* positions with one fetch-and-add (no two writers get the same, none is left out),
//! 2. writes the records there,
//! 3. *completes* them: it stores, in the slot of the first position, the position behind the last.
//!
//! The *tail* is a position such that all before it are complete. Whoever needs it moved moves it, following the slots
//! from completed stretch to completed stretch: each reader when it begins, a writer now and then. So a reader sees
//! every record whose append returned before it began, no writer waits for another, and one that is stopped between 1
//! and 3 holds back what readers see but nobody's work.
//!
//! Why this is sound:
//!
//! - *A reader of positions before the tail sees what was written there.* Completing is a release store of the slot
//!   behind the writes; moving the tail over the stretch is an acquire load of the slot, then a compare-and-swap that
//!   releases; taking the tail is an acquire load of a value of that swap, or of a later one, since the tail changes by
//!   read-modify-write alone and these continue the release sequence.
//! - *A slot says nothing wrong.* There are `WINDOW` slots, so one has served many positions, each `WINDOW` apart.
//!   The end that was stored for an earlier one is not behind this position, as no stretch is longer than `WINDOW`; an
//!   end that a later one stored is more than `WINDOW` behind this position. [`Sequence::stretch`] takes neither.
//! - *A slot is not used again before it was read.* A writer that reserved `[start, end)` waits until `end` is within
//!   `WINDOW` of the tail. Then the tail is behind the position that the slot served before.
//! - *The tail never moves back, and not while it is frozen.* It moves by compare-and-swap from the word that was read,
//!   and the word holds the number of those who hold it frozen.

use crate::primitive::{AtomicU64, Backoff, Ordering};
use crossbeam_utils::CachePadded;
use std::ops::Range;

/// Positions between the tail and the last that can be written.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const WINDOW: u64 = 1 << 17;
/// Few enough for all of a model's slots to be used several times.
#[cfg(any(loom, shuttle))]
pub(crate) const WINDOW: u64 = 4;

/// Bits of the tail's word that count who holds it frozen; the others are the position.
const FROZEN_BITS: u32 = 16;
const FROZEN: u64 = (1 << FROZEN_BITS) - 1;

/// The order of the records.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// The next position that no writer has.
    reserved: CachePadded<AtomicU64>,
    /// The tail, and how many hold it frozen.
    tail: CachePadded<AtomicU64>,
    /// Of each position, by its remainder: where the stretch ends that begins with it.
    ends: Box<[AtomicU64]>,
    capacity: u64,
}

impl Sequence {
    /// An order of so many positions.
    pub fn new(capacity: u64) -> Self {
        Self {
            reserved: CachePadded::new(AtomicU64::new(0)),
            tail: CachePadded::new(AtomicU64::new(0)),
            ends: (0..WINDOW).map(|_| AtomicU64::new(0)).collect(),
            capacity: capacity.min(u64::MAX >> FROZEN_BITS),
        }
    }

    /// Positions in all.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes the next `count` positions, or as many as are left.
    #[inline]
    pub fn reserve(&self, count: u64) -> Range<u64> {
        // Nothing is read or written for it, so no order with other memory is needed.
        let start = self.reserved.fetch_add(count, Ordering::Relaxed).min(self.capacity);
        start..(start + count).min(self.capacity)
    }

    /// Waits until the positions before `end`, of which the caller reserved up to `WINDOW`, can be written.
    #[inline]
    pub fn wait_for_room(&self, end: u64) {
        if end > self.known_tail() + WINDOW {
            self.wait(end);
        }
    }

    #[cold]
    fn wait(&self, end: u64) {
        let backoff = Backoff::default();
        while end > self.tail() + WINDOW {
            backoff.wait();
        }
    }

    /// Says that positions are written, of which there is at least one and not more than `WINDOW`.
    #[inline]
    pub fn complete(&self, written: Range<u64>) {
        debug_assert!(written.start < written.end && written.end - written.start <= WINDOW);
        self.slot(written.start).store(written.end, Ordering::Release);
    }

    /// The position up to which all are complete, unless that is frozen.
    pub fn tail(&self) -> u64 {
        let mut word = self.tail.load(Ordering::Acquire);
        loop {
            let from = word >> FROZEN_BITS;
            if word & FROZEN != 0 {
                return from;
            }
            let to = self.completed(from);
            if to == from {
                return from;
            }
            match self.tail.compare_exchange(word, to << FROZEN_BITS, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return to,
                Err(now) => word = now,
            }
        }
    }

    /// A tail that was; it is not moved.
    #[inline]
    pub fn known_tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire) >> FROZEN_BITS
    }

    /// Moves the tail, then holds it there until the answer is dropped (paper section 4).
    pub fn freeze(&self) -> FrozenTail<'_> {
        self.tail();
        // No more than some thousand can hold it: each has a guard.
        let word = self.tail.fetch_add(1, Ordering::AcqRel);
        FrozenTail { sequence: self, position: word >> FROZEN_BITS }
    }

    /// Follows the completed stretches from a position.
    fn completed(&self, mut from: u64) -> u64 {
        while let Some(end) = self.stretch(from) {
            from = end;
        }
        from
    }

    /// The end of the stretch that begins at `start`, if it is complete.
    #[inline]
    fn stretch(&self, start: u64) -> Option<u64> {
        let end = self.slot(start).load(Ordering::Acquire);
        (end > start && end - start <= WINDOW).then_some(end)
    }

    #[inline]
    fn slot(&self, position: u64) -> &AtomicU64 {
        &self.ends[(position % WINDOW) as usize]
    }
}

/// A tail that does not move while this lives. Writers write on, up to a window of records, and then wait.
#[derive(Debug)]
pub struct FrozenTail<'a> {
    sequence: &'a Sequence,
    position: u64,
}

impl FrozenTail<'_> {
    /// How many records readers see.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Drop for FrozenTail<'_> {
    fn drop(&mut self) {
        self.sequence.tail.fetch_sub(1, Ordering::AcqRel);
    }
}
