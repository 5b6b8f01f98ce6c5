//! The records as they were appended, one behind the other.
//!
//! All lie in one stretch of addresses that is as long as the log may become; the system gives memory to what is
//! written, and takes back what nobody reads any more. So no record lies across an edge, nothing is ever moved, and a
//! position is an address.

#![expect(unsafe_code, reason = "writers and readers of one stretch of memory, kept apart by positions")]

use crate::primitive::prefetch;
use memmap2::{MmapOptions, MmapRaw};
use std::ops::Range;

/// Bytes behind the last record, so that there is memory to map even for a log without room.
const PADDING: usize = 64;

/// Bytes that are given back at once, and where such pieces begin among addresses: a large page. Parts of one would be
/// made small pages of.
#[cfg(target_os = "linux")]
const PIECE: usize = 2 << 20;

/// When memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// When it is written: what is not needed is not used, but the first record of a page waits for the system.
    #[default]
    Lazy,
    /// All at once, when the log is made.
    Prefaulted,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// It would be longer than addresses are.
    #[error("a log of {records} records of {size} bytes is more than this machine can address")]
    TooLarge {
        /// Records asked for.
        records: u64,
        /// Bytes of each.
        size: usize,
    },
    /// The system does not give it.
    #[error("the system does not give {bytes} bytes for the log's records: ask for fewer records, or free memory")]
    Refused {
        /// Bytes asked for.
        bytes: usize,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Memory for records of one size.
#[derive(Debug)]
pub(crate) struct Rows {
    memory: MmapRaw,
    size: usize,
    /// The positions that there is room for.
    room: Range<u64>,
}

impl Rows {
    /// Room for records of `size` bytes at these positions.
    pub fn new(size: usize, room: Range<u64>, when: Memory) -> Result<Self, MemoryError> {
        let records = room.end - room.start;
        let bytes = usize::try_from(records).ok().and_then(|count| count.checked_mul(size)?.checked_add(PADDING));
        let bytes = bytes.filter(|bytes| *bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or(MemoryError::TooLarge { records, size })?;
        let refused = |source| MemoryError::Refused { bytes, source };
        let memory = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().map_err(refused)?;
        let memory = MmapRaw::from(memory);
        #[cfg(target_os = "linux")]
        {
            // Large pages are faster; without them it works as well.
            let _ = memory.advise(memmap2::Advice::HugePage);
            if when == Memory::Prefaulted {
                // Systems before Linux 5.14 do not know this; they give memory when it is written.
                let _ = memory.advise(memmap2::Advice::PopulateWrite);
            }
        }
        Ok(Self { memory, size, room })
    }

    /// Bytes of a record.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes records, of which `records` is a whole number, from a position on.
    ///
    /// # Safety
    /// 1. There is room for the positions.
    /// 2. The caller alone writes them, and once: it reserved them.
    /// 3. Nobody reads them until they are complete.
    #[inline]
    pub unsafe fn write(&self, position: u64, records: &[u8]) {
        debug_assert!(self.room.start <= position);
        debug_assert!(self.place(position) + records.len() <= self.place(self.room.end));
        // SAFETY: by (1) the target is within the mapping, which is not moved; by (2) and (3) no other reference to
        // these bytes exists. The source is a borrowed slice, so it is elsewhere.
        unsafe {
            let target = self.memory.as_mut_ptr().add(self.place(position));
            std::ptr::copy_nonoverlapping(records.as_ptr(), target, records.len());
        }
    }

    /// Has the processor fetch a record that will be read soon: a hint, which changes nothing.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        let start = self.memory.as_ptr().wrapping_add(self.place(position));
        prefetch(start);
        prefetch(start.wrapping_add(self.size.saturating_sub(1)));
    }

    /// The bytes of records.
    ///
    /// # Safety
    /// 1. The positions are below a tail that the caller took, so all of them are written and will not be again.
    /// 2. They are not given back before the answer is gone.
    #[inline]
    pub unsafe fn read(&self, positions: Range<u64>) -> &[u8] {
        debug_assert!(self.room.start <= positions.start && positions.start <= positions.end);
        debug_assert!(positions.end <= self.room.end);
        let (start, end) = (self.place(positions.start), self.place(positions.end));
        // SAFETY: by (1) what is there was written before the tail was moved over it, which the caller's taking of the
        // tail comes after; nobody writes there again, and by (2) the system does not either while it is read. It lies
        // within the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), end - start) }
    }

    /// Gives the memory of records back to the system, where it was given back before this up to `positions.start`: the
    /// pieces that end before `positions.end`. Other systems than Linux keep it.
    ///
    /// # Safety
    /// 1. All positions before `positions.end` are written, and will not be again.
    /// 2. Nobody reads them, now or later.
    pub unsafe fn give_back(&self, positions: Range<u64>) -> std::io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let base = self.memory.as_ptr() as usize;
            // A piece in which one stretch ends is the first of the next.
            let edge = |position: u64| ((base + self.place(position)) / PIECE * PIECE).saturating_sub(base);
            let (start, end) = (edge(positions.start), edge(positions.end));
            if start < end {
                let advice = memmap2::UncheckedAdvice::DontNeed;
                // SAFETY: the bytes become zero. All of them are before those of the last position, and within the
                // mapping; by (1) nobody has a reason to write there, and by (2) none to read.
                unsafe { self.memory.unchecked_advise_range(advice, start, end - start)? };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = positions;
        Ok(())
    }

    /// Where a position's record begins, in bytes.
    #[inline]
    fn place(&self, position: u64) -> usize {
        position.wrapping_sub(self.room.start) as usize * self.size
    }
}
