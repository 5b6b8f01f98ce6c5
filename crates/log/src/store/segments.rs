//! Memory of records in segments, each mapped when the first of its records comes, and unmapped when none is read any more.
//!
//! Segments are mapped in order, under a lock. `ready` counts them. A writer that reserved positions behind the last one maps
//! more, then writes. Why a thread finds the address of its segment:
//!
//! - *A writer* loads `ready` (acquire) and goes on when it covers its positions. The address was stored before `ready` was (release).
//! - *A reader* reads before a tail. The writer of these positions had found the address before it completed them, so the
//!   order of memory that shows the reader the records also shows it the address.
//!
//! The first segment that cannot be mapped ends the log: no later one is tried. So no position behind it is ever
//! written, and the written positions have no hole.

use crate::primitive::{AtomicPtr, AtomicU64, Mutex, Ordering, nulls};
use std::sync::PoisonError;

/// Segments of memory of the type `M`.
#[derive(Debug)]
pub(super) struct Segments<M> {
    /// The address of each.
    bases: Box<[AtomicPtr<u8>]>,
    /// The number of segments that were mapped.
    ready: AtomicU64,
    mapped: Mutex<Mapped<M>>,
}

#[derive(Debug)]
struct Mapped<M> {
    /// `None`: it was unmapped.
    memory: Vec<Option<M>>,
    /// Segments before this one were unmapped.
    first: usize,
    /// Whether one could not be mapped.
    refused: bool,
}

impl<M> Segments<M> {
    /// Up to `most` segments, of which none is mapped.
    pub fn new(most: usize) -> Self {
        let mapped = Mutex::new(Mapped { memory: Vec::new(), first: 0, refused: false });
        Self { bases: nulls(most), ready: AtomicU64::new(0), mapped }
    }

    /// The number of segments that were mapped.
    #[inline]
    pub fn ready(&self) -> u64 {
        self.ready.load(Ordering::Acquire)
    }

    /// The address of a segment that was mapped: null or stale after it was unmapped.
    #[inline]
    pub fn base(&self, segment: usize) -> *mut u8 {
        self.bases[segment].load(Ordering::Relaxed)
    }

    /// Maps segments until there are `count`, or until one is refused. Returns their number.
    ///
    /// # Errors
    /// Returns the error of `map`; later calls map nothing.
    #[cold]
    pub fn grow<E>(&self, count: u64, map: impl Fn() -> Result<(M, *mut u8), E>) -> (u64, Result<(), E>) {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let most = count.min(self.bases.len() as u64);
        while (mapped.memory.len() as u64) < most && !mapped.refused {
            match map() {
                Ok((memory, base)) => {
                    self.bases[mapped.memory.len()].store(base, Ordering::Relaxed);
                    mapped.memory.push(Some(memory));
                    self.ready.store(mapped.memory.len() as u64, Ordering::Release);
                }
                Err(error) => {
                    mapped.refused = true;
                    return (mapped.memory.len() as u64, Err(error));
                }
            }
        }
        (mapped.memory.len() as u64, Ok(()))
    }

    /// Applies `with` to the memory of a segment, unless that is not mapped.
    pub fn with<T>(&self, segment: usize, with: impl FnOnce(&M) -> T) -> Option<T> {
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.memory.get(segment)?.as_ref().map(with)
    }

    /// Unmaps the segments before one. The caller knows that no thread uses their memory, now or later.
    pub fn unmap(&self, before: usize) {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, end) = (mapped.first, before.min(mapped.memory.len()));
        if first < end {
            mapped.first = end;
            let gone: Vec<_> = mapped.memory[first..end].iter_mut().map(Option::take).collect();
            // Not under the lock: it takes long, and a writer that needs a segment would wait.
            drop(mapped);
            drop(gone);
        }
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod models {
    //! Run by `cargo xtask models`.

    use super::Segments;
    use crate::primitive::{AtomicU64, Ordering};
    use crate::store::sequence::Sequence;
    use std::sync::Arc;

    #[cfg(loom)]
    use loom::{cell::UnsafeCell, thread};
    #[cfg(all(shuttle, not(loom)))]
    use shuttle::thread;

    /// A record's memory. Mapping it is a write, which the model checks like any other.
    #[cfg(loom)]
    type Cell = UnsafeCell<u64>;
    #[cfg(not(loom))]
    type Cell = std::sync::Mutex<u64>;

    /// What memory has after it was mapped.
    const FRESH: u64 = u64::MAX;

    struct Rows {
        sequence: Sequence,
        segments: Segments<()>,
        /// One record each.
        rows: Vec<Cell>,
        /// The segment that is refused once.
        refused: AtomicU64,
    }

    impl Rows {
        fn new(capacity: u64, refused: u64) -> Arc<Self> {
            Arc::new(Self {
                sequence: Sequence::new(0..capacity),
                segments: Segments::new(capacity as usize),
                rows: (0..capacity).map(|_| Cell::new(0)).collect(),
                refused: AtomicU64::new(refused),
            })
        }

        /// Appends one record, if there is room.
        fn append(&self) -> Option<u64> {
            let positions = self.sequence.reserve(1);
            if positions.end > self.segments.ready() {
                let map = || {
                    let next = self.segments.ready();
                    if next == self.refused.load(Ordering::Relaxed) {
                        // It would succeed now.
                        self.refused.store(u64::MAX, Ordering::Relaxed);
                        return Err(());
                    }
                    self.write(next, FRESH);
                    Ok(((), std::ptr::without_provenance_mut(next as usize + 1)))
                };
                let (ready, _) = self.segments.grow(positions.end, map);
                if positions.end > ready {
                    return None;
                }
            }
            assert_eq!(self.segments.base(positions.start as usize).addr() as u64, positions.start + 1);
            self.write(positions.start, positions.start);
            self.sequence.complete(positions.clone());
            Some(positions.start)
        }

        #[cfg(loom)]
        #[allow(unsafe_code)]
        fn write(&self, position: u64, value: u64) {
            // SAFETY: loom reports an error if another thread accesses it.
            self.rows[position as usize].with_mut(|row| unsafe { *row = value });
        }

        #[cfg(loom)]
        #[allow(unsafe_code)]
        fn read(&self, position: u64) -> u64 {
            // SAFETY: loom reports an error if another thread writes it.
            self.rows[position as usize].with(|row| unsafe { *row })
        }

        #[cfg(not(loom))]
        fn write(&self, position: u64, value: u64) {
            *self.rows[position as usize].lock().unwrap() = value;
        }

        #[cfg(not(loom))]
        fn read(&self, position: u64) -> u64 {
            *self.rows[position as usize].lock().unwrap()
        }

        /// Reads everything visible; returns how much that is.
        fn check(&self) -> u64 {
            let tail = self.sequence.tail();
            for position in 0..tail {
                let base = self.segments.base(position as usize).addr() as u64;
                assert_eq!(base, position + 1, "a reader does not find a segment");
                assert_eq!(self.read(position), position, "a record is seen before it is written");
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
    fn writers_and_readers_find_the_segments_that_another_thread_mapped() {
        model(|| {
            let rows = Rows::new(3, u64::MAX);
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let rows = Arc::clone(&rows);
                    thread::spawn(move || rows.append().expect("there is room"))
                })
                .collect();
            rows.check();
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(rows.check(), 2);
        });
    }

    #[test]
    fn a_segment_that_is_refused_leaves_no_hole() {
        model(|| {
            let rows = Rows::new(4, 1);
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let rows = Arc::clone(&rows);
                    thread::spawn(move || [rows.append(), rows.append()])
                })
                .collect();
            let appended: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).flatten().collect();
            assert_eq!(appended, [0], "the records before the refused segment, and no other");
            assert_eq!(rows.check(), 1);
            assert_eq!(rows.append(), None, "a log that is full stays full");
        });
    }
}
