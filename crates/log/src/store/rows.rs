//! The records as they were appended, one after another.
//!
//! All records are in one range of addresses that is as long as the log may become; the system provides memory for what is
//! written, and takes back what is no longer read. So no record crosses a boundary, nothing is ever moved, and a
//! position determines an address.

#![expect(unsafe_code, reason = "writers and readers of one stretch of memory, kept apart by positions")]

use crate::primitive::prefetch;
use memmap2::{MmapOptions, MmapRaw};
use std::ops::Range;

/// Bytes behind the last record, so that there is memory to map even for a log without room.
const PADDING: usize = 64;

/// Memory is given back in pieces of this size, aligned to it: a large page. Giving back a part of one would split it into
/// small pages.
#[cfg(target_os = "linux")]
const PIECE: usize = 2 << 20;

/// When memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// On the first write: unused memory is not taken, but the first record of a page waits for the system.
    #[default]
    Lazy,
    /// All at once, when the log is made.
    Prefaulted,
}

/// Why a log could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// It would exceed the address space.
    #[error("a log of {records} records of {size} bytes is more than this machine can address")]
    TooLarge {
        /// Requested number of records.
        records: u64,
        /// Size of a record in bytes.
        size: usize,
    },
    /// The system refuses the memory.
    #[error(
        "cannot reserve {bytes} bytes of address space for the log's records: raise the limit (ulimit -v), or make the log smaller"
    )]
    Refused {
        /// Requested bytes.
        bytes: usize,
        /// The error of the system call.
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
            // Large pages are faster; it also works without them.
            let _ = memory.advise(memmap2::Advice::HugePage);
            if when == Memory::Prefaulted {
                // Linux before 5.14 does not support this; it provides memory on the first write.
                let _ = memory.advise(memmap2::Advice::PopulateWrite);
            }
        }
        Ok(Self { memory, size, room })
    }

    /// Bytes of a record.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes consecutive records from a position on; `records` must be a whole number of records.
    ///
    /// # Safety
    /// 1. There is room for the positions.
    /// 2. Only the caller writes them, and only once: it reserved them.
    /// 3. No thread reads them until they are complete.
    #[inline]
    pub unsafe fn write(&self, position: u64, records: &[u8]) {
        debug_assert!(self.room.start <= position);
        debug_assert!(self.place(position) + records.len() <= self.place(self.room.end));
        // SAFETY: by (1) the target is within the mapping, which is not moved; by (2) and (3) no other reference to
        // these bytes exists. The source is a borrowed slice, so it does not overlap.
        unsafe {
            let target = self.memory.as_mut_ptr().add(self.place(position));
            std::ptr::copy_nonoverlapping(records.as_ptr(), target, records.len());
        }
    }

    /// Prefetches a record that will be read soon: a hint without other effects.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        let start = self.memory.as_ptr().wrapping_add(self.place(position));
        prefetch(start);
        prefetch(start.wrapping_add(self.size.saturating_sub(1)));
    }

    /// The bytes of records.
    ///
    /// # Safety
    /// 1. The positions are below a tail that the caller took, so all of them are written and will not be written again.
    /// 2. They are not given back while the result lives.
    #[inline]
    pub unsafe fn read(&self, positions: Range<u64>) -> &[u8] {
        debug_assert!(self.room.start <= positions.start && positions.start <= positions.end);
        debug_assert!(positions.end <= self.room.end);
        let (start, end) = (self.place(positions.start), self.place(positions.end));
        // SAFETY: by (1) the bytes were written before the tail was moved over them, which happened before the caller took
        // the tail; no thread writes there again, and by (2) the system does not change them either while they are read. They are
        // within the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), end - start) }
    }

    /// Gives memory of records back to the system: the pieces that end before `positions.end`. Memory before `positions.start` must have been
    /// given back earlier. Systems other than Linux keep the memory.
    ///
    /// # Safety
    /// 1. All positions before `positions.end` are written, and will not be written again.
    /// 2. No thread reads them, now or later.
    pub unsafe fn give_back(&self, positions: Range<u64>) -> std::io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let base = self.memory.as_ptr() as usize;
            // A piece in which one range ends is the first of the next.
            let edge = |position: u64| ((base + self.place(position)) / PIECE * PIECE).saturating_sub(base);
            let (start, end) = (edge(positions.start), edge(positions.end));
            if start < end {
                let advice = memmap2::UncheckedAdvice::DontNeed;
                // SAFETY: the bytes become zero. All of them are before those of the last position, and within the
                // mapping; by (1) no thread writes there any more, and by (2) none reads.
                unsafe { self.memory.unchecked_advise_range(advice, start, end - start)? };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = positions;
        Ok(())
    }

    /// Offset of a position's record in bytes.
    #[inline]
    fn place(&self, position: u64) -> usize {
        position.wrapping_sub(self.room.start) as usize * self.size
    }
}
