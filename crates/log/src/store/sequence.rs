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
//!   The end that was stored for an earlier one is not behind this position, as no stretch is longer than `WINDOW`:
//!   [`Sequence::stretch`] takes none such. An end that was stored for a later one is found only by who works from a
//!   tail that has moved since, whose compare-and-swap fails.
//! - *A slot is not used again before it was read.* A writer that reserved `[start, end)` waits until `end` is within
//!   `WINDOW` of the tail. Then the tail is behind the position that the slot served before.
//! - *What returned before a reader began, it sees.* Completing and taking the tail are both after what orders append
//!   and reader (the append's return, the reader's begin), so the reader's loads see the completed slots: it follows
//!   them from whatever tail it finds.
//! - *The tail never moves back, and not while it is frozen.* It moves by compare-and-swap from the word that was read,
//!   and the word holds the number of those who hold it frozen.

use crate::primitive::{AtomicU64, Backoff, Ordering, prefetch};
use crossbeam_utils::CachePadded;
use std::ops::Range;

/// Positions between the tail and the last that can be written.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const WINDOW: u64 = 1 << 17;
/// Few enough for all of a model's slots to be used several times.
#[cfg(any(loom, shuttle))]
pub(crate) const WINDOW: u64 = 4;

/// Stretches whose slots are fetched ahead of the one that is followed.
const AHEAD: u64 = 8;

/// Bits of the tail's word that count who holds it frozen; the others are the position.
const FROZEN_BITS: u32 = 16;
const FROZEN: u64 = (1 << FROZEN_BITS) - 1;
/// Positions that the tail's word has room for.
pub(crate) const MOST: u64 = u64::MAX >> FROZEN_BITS;

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
    /// An order of these positions: all before them are taken to be complete.
    pub fn new(positions: Range<u64>) -> Self {
        let first = positions.start.min(MOST);
        Self {
            reserved: CachePadded::new(AtomicU64::new(first)),
            tail: CachePadded::new(AtomicU64::new(first << FROZEN_BITS)),
            ends: (0..WINDOW).map(|_| AtomicU64::new(0)).collect(),
            capacity: positions.end.clamp(first, MOST),
        }
    }

    /// The position behind the last.
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
    ///
    /// # Panics
    /// If 65 535 hold it.
    pub fn freeze(&self) -> FrozenTail<'_> {
        self.tail();
        let mut held = self.tail.load(Ordering::Acquire);
        loop {
            // One more would be a position more. Who forgets guards may come so far.
            assert!(held & FROZEN != FROZEN, "{FROZEN} hold the tail frozen, and no more can");
            match self.tail.compare_exchange(held, held + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return FrozenTail { sequence: self, position: held >> FROZEN_BITS },
                Err(now) => held = now,
            }
        }
    }

    /// Follows the completed stretches from a position.
    fn completed(&self, mut from: u64) -> u64 {
        while let Some(end) = self.stretch(from) {
            // Stretches are often of one length, and their slots written by another core.
            prefetch(self.slot(end + AHEAD * (end - from)));
            from = end;
        }
        from
    }

    /// The end of the stretch that begins at `start`, if it is complete.
    #[inline]
    fn stretch(&self, start: u64) -> Option<u64> {
        let end = self.slot(start).load(Ordering::Acquire);
        (end > start).then_some(end)
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

#[cfg(all(test, any(loom, shuttle)))]
mod models {
    //! Run by `cargo xtask models`.

    use super::{Sequence, WINDOW};
    use std::sync::Arc;

    #[cfg(loom)]
    use loom::{cell::UnsafeCell, thread};
    #[cfg(all(shuttle, not(loom)))]
    use shuttle::thread;

    /// Rows whose reads and writes the model watches.
    struct Rows {
        sequence: Sequence,
        #[cfg(loom)]
        rows: Vec<UnsafeCell<u64>>,
        /// Shuttle runs one thread at a time, so that a plain lock is never waited for.
        #[cfg(not(loom))]
        rows: Vec<std::sync::Mutex<u64>>,
    }

    impl Rows {
        fn new(capacity: u64) -> Arc<Self> {
            Arc::new(Self {
                sequence: Sequence::new(0..capacity),
                rows: (0..capacity).map(|_| Default::default()).collect(),
            })
        }

        fn append(&self, count: u64) -> u64 {
            let positions = self.sequence.reserve(count);
            self.sequence.wait_for_room(positions.end);
            for position in positions.clone() {
                self.write(position);
            }
            self.sequence.complete(positions.clone());
            positions.end
        }

        #[cfg(loom)]
        #[allow(unsafe_code)]
        fn write(&self, position: u64) {
            // SAFETY: loom tells if another thread has it.
            self.rows[position as usize].with_mut(|row| unsafe { *row = position + 1 });
        }

        #[cfg(loom)]
        #[allow(unsafe_code)]
        fn read(&self, position: u64) -> u64 {
            // SAFETY: loom tells if another thread writes it.
            self.rows[position as usize].with(|row| unsafe { *row })
        }

        #[cfg(not(loom))]
        fn write(&self, position: u64) {
            *self.rows[position as usize].lock().unwrap() = position + 1;
        }

        #[cfg(not(loom))]
        fn read(&self, position: u64) -> u64 {
            *self.rows[position as usize].lock().unwrap()
        }

        /// Reads all that is to be seen; how much that is.
        fn check(&self) -> u64 {
            let tail = self.sequence.tail();
            for position in 0..tail {
                assert_eq!(self.read(position), position + 1, "a record is seen before it is written");
            }
            tail
        }
    }

    fn model(run: impl Fn() + Send + Sync + 'static) {
        #[cfg(loom)]
        {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = Some(3);
            builder.check(run);
        }
        #[cfg(all(shuttle, not(loom)))]
        shuttle::check_random(run, 20_000);
    }

    #[test]
    fn readers_see_what_was_appended_and_nothing_else() {
        model(|| {
            let rows = Rows::new(4);
            let writers: Vec<_> = [1, 2]
                .into_iter()
                .map(|count| {
                    let rows = Arc::clone(&rows);
                    thread::spawn(move || rows.append(count))
                })
                .collect();
            let first = rows.check();
            assert!(rows.check() >= first, "the tail moved back");
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(rows.check(), 3, "what was appended is seen");
        });
    }

    #[test]
    fn what_an_append_returned_from_is_seen_by_its_thread() {
        model(|| {
            let rows = Rows::new(4);
            let other = {
                let rows = Arc::clone(&rows);
                thread::spawn(move || {
                    rows.append(1);
                })
            };
            let end = rows.append(1);
            // The other may hold back an earlier position.
            let tail = rows.check();
            assert!(tail >= end || end == 2, "an append before which all are complete is not seen");
            other.join().unwrap();
            assert_eq!(rows.check(), 2);
        });
    }

    #[test]
    fn slots_are_used_again_only_when_they_were_read() {
        model(|| {
            let rows = Rows::new(WINDOW + 2);
            for _ in 0..WINDOW - 1 {
                rows.append(1);
            }
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let rows = Arc::clone(&rows);
                    thread::spawn(move || rows.append(1))
                })
                .collect();
            rows.check();
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(rows.check(), WINDOW + 1);
        });
    }

    #[test]
    fn a_frozen_tail_stays_and_then_goes_on() {
        model(|| {
            let rows = Rows::new(4);
            let writer = {
                let rows = Arc::clone(&rows);
                thread::spawn(move || {
                    rows.append(1);
                    rows.append(1);
                })
            };
            let mover = {
                let rows = Arc::clone(&rows);
                thread::spawn(move || rows.check())
            };
            {
                let frozen = rows.sequence.freeze();
                assert_eq!(rows.check(), frozen.position(), "a frozen tail moved");
                let again = rows.sequence.freeze();
                assert_eq!(again.position(), frozen.position());
                drop(frozen);
                assert_eq!(rows.check(), again.position(), "one of two let it go");
            }
            writer.join().unwrap();
            mover.join().unwrap();
            assert_eq!(rows.check(), 2);
        });
    }
}
