//! Which positions a writer may write, and how far readers may read: one total order without holes.
//!
//! Records have positions: 0, 1, 2 and so on. A writer
//!
//! 1. *reserves* positions with one fetch-and-add (no two writers get the same one, and none is skipped),
//! 2. writes the records there,
//! 3. *completes* them: it stores, in the slot of the first position, the position behind the last.
//!
//! The *tail* is a position such that all positions before it are complete. The thread that needs a newer tail moves it, from
//! one completed stretch to the next by their slots: each reader when it begins, a writer now and then. So a reader sees
//! every record whose append returned before it began, and no writer waits for another. A writer that is stopped between 1
//! and 3 delays what readers see, but no other writer.
//!
//! Why this is correct:
//!
//! - *A reader of positions before the tail sees what was written there.* Completing is a release store of the slot
//!   behind the writes; moving the tail over the stretch is an acquire load of the slot, then a compare-and-swap that
//!   releases; taking the tail is an acquire load of a value of that swap, or of a later one, since the tail changes by
//!   read-modify-write alone and these continue the release sequence.
//! - *A slot never misleads.* There are `WINDOW` slots, so each serves many positions, `WINDOW` apart.
//!   The end that was stored for an earlier position is not behind this one, as no stretch is longer than `WINDOW`:
//!   [`Sequence::stretch`] rejects it. An end that was stored for a later position is found only by a thread that works from a
//!   tail that has moved since, so its compare-and-swap fails.
//! - *A slot is not reused before it was read.* A writer that reserved `[start, end)` waits until `end` is within
//!   `WINDOW` of the tail. Then the tail is behind the earlier position of the slot.
//! - *A reader sees all appends that returned before it began.* Whatever orders the append's return before the reader's begin also orders
//!   the completion before the reader's loads. So these see the completed slots: the reader follows
//!   them from whatever tail it finds.
//! - *The tail never moves back, and never while it is frozen.* It moves by compare-and-swap from the word that was read,
//!   and the word includes the number of threads that hold it frozen.

use crate::primitive::{AtomicU64, Backoff, Ordering, Patience, prefetch};
use crossbeam_utils::CachePadded;
use std::ops::Range;

/// Positions between the tail and the last that can be written.
#[cfg(not(any(loom, shuttle)))]
pub(crate) const WINDOW: u64 = 1 << 17;
/// So few that a model uses all slots several times.
#[cfg(any(loom, shuttle))]
pub(crate) const WINDOW: u64 = 4;

/// Stretches whose slots are prefetched ahead of the current one.
const AHEAD: u64 = 8;

/// Bits of the tail's word that count the holders of a frozen tail; the other bits are the position.
const FROZEN_BITS: u32 = 16;
const FROZEN: u64 = (1 << FROZEN_BITS) - 1;
/// The highest position that the tail's word has room for.
pub(crate) const MOST: u64 = u64::MAX >> FROZEN_BITS;

/// The order of the records.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// The next position that no writer has reserved.
    reserved: CachePadded<AtomicU64>,
    /// The tail, and how many threads hold it frozen.
    tail: CachePadded<AtomicU64>,
    /// For each position, by its remainder: the end of the stretch that begins there.
    ends: Box<[AtomicU64]>,
    capacity: u64,
}

impl Sequence {
    /// An order of these positions; all earlier ones count as complete.
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

    /// Reserves the next `count` positions, or as many as are left.
    #[inline]
    pub fn reserve(&self, count: u64) -> Range<u64> {
        // No other memory depends on it, so no ordering is needed.
        let start = self.reserved.fetch_add(count, Ordering::Relaxed).min(self.capacity);
        start..(start + count).min(self.capacity)
    }

    /// Waits until the positions before `end` can be written, of which the caller reserved up to `WINDOW`.
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

    /// Marks positions as written: at least one and at most `WINDOW`.
    #[inline]
    pub fn complete(&self, written: Range<u64>) {
        debug_assert!(written.start < written.end && written.end - written.start <= WINDOW);
        self.slot(written.start).store(written.end, Ordering::Release);
    }

    /// Moves the tail as far as possible, unless it is frozen, and returns it.
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

    /// A possibly old tail; this does not move it.
    #[inline]
    pub fn known_tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire) >> FROZEN_BITS
    }

    /// Moves the tail, then freezes it there, until it is thawed as often as it was frozen (paper section 4). Returns its position.
    ///
    /// # Panics
    /// Panics if it is frozen 65 535 times.
    pub fn freeze(&self) -> u64 {
        self.tail();
        let mut held = self.tail.load(Ordering::Acquire);
        loop {
            // One more would change the position. Leaking guards can reach this number.
            assert!(held & FROZEN != FROZEN, "{FROZEN} hold the tail frozen, and no more can");
            match self.tail.compare_exchange(held, held + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return held >> FROZEN_BITS,
                Err(now) => held = now,
            }
        }
    }

    /// Undoes one [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        let held = self.tail.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(held & FROZEN != 0, "the tail was not frozen");
    }

    /// Waits until readers see all positions before `end`, which are complete or will be without the caller.
    pub fn wait_until_visible(&self, end: u64) {
        let patience = Patience::default();
        while self.tail() < end {
            patience.wait();
        }
    }

    /// Follows the completed stretches from a position.
    fn completed(&self, mut from: u64) -> u64 {
        while let Some(end) = self.stretch(from) {
            // Stretches are often of equal length, and their slots were written by another core.
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

#[cfg(all(test, any(loom, shuttle)))]
mod models {
    //! Run by `cargo xtask models`.

    use super::{Sequence, WINDOW};
    use std::sync::Arc;

    #[cfg(loom)]
    use loom::{cell::UnsafeCell, thread};
    #[cfg(all(shuttle, not(loom)))]
    use shuttle::thread;

    /// Rows whose reads and writes the model checks.
    struct Rows {
        sequence: Sequence,
        #[cfg(loom)]
        rows: Vec<UnsafeCell<u64>>,
        /// Shuttle runs one thread at a time, so a plain lock never waits.
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
            // SAFETY: loom reports an error if another thread accesses it.
            self.rows[position as usize].with_mut(|row| unsafe { *row = position + 1 });
        }

        #[cfg(loom)]
        #[allow(unsafe_code)]
        fn read(&self, position: u64) -> u64 {
            // SAFETY: loom reports an error if another thread writes it.
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

        /// Reads everything visible; returns how much that is.
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
    fn a_thread_sees_its_own_appends() {
        model(|| {
            let rows = Rows::new(4);
            let other = {
                let rows = Arc::clone(&rows);
                thread::spawn(move || {
                    rows.append(1);
                })
            };
            let end = rows.append(1);
            // The other thread may delay an earlier position.
            let tail = rows.check();
            assert!(tail >= end || end == 2, "an append before which all are complete is not seen");
            other.join().unwrap();
            assert_eq!(rows.check(), 2);
        });
    }

    #[test]
    fn slots_are_reused_only_after_they_were_read() {
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
            let frozen = rows.sequence.freeze();
            assert_eq!(rows.check(), frozen, "a frozen tail moved");
            assert_eq!(rows.sequence.freeze(), frozen);
            rows.sequence.thaw();
            assert_eq!(rows.check(), frozen, "one of two let it go");
            rows.sequence.thaw();
            writer.join().unwrap();
            mover.join().unwrap();
            assert_eq!(rows.check(), 2);
        });
    }

    #[test]
    fn an_append_that_was_waited_for_is_before_all_later_cuts() {
        model(|| {
            let (one, other) = (Rows::new(4), Rows::new(4));
            let writer = {
                let (one, other) = (Arc::clone(&one), Arc::clone(&other));
                thread::spawn(move || {
                    let end = one.append(1);
                    one.sequence.wait_until_visible(end);
                    other.append(1);
                })
            };
            // The second is frozen while the first still is, so a cut that has the effect has the cause.
            let causes = one.sequence.freeze();
            let effects = other.sequence.freeze();
            one.sequence.thaw();
            other.sequence.thaw();
            assert!(effects <= causes, "an effect without its cause");
            writer.join().unwrap();
            assert_eq!((one.check(), other.check()), (1, 1));
        });
    }
}
