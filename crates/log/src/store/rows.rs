//! The records as they were appended, one behind the other.
//!
//! All lie in one stretch of addresses that is as long as the log may become; the system gives memory to what is
//! written. So no record lies across an edge, nothing is ever moved, and a position is an address.

#![expect(unsafe_code, reason = "writers and readers of one stretch of memory, kept apart by positions")]

use crate::primitive::prefetch;
use memmap2::{MmapOptions, MmapRaw};
use std::ops::Range;

/// Bytes behind the last record, so that there is memory to map even for a log without room.
const PADDING: usize = 64;

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
    capacity: u64,
}

impl Rows {
    /// Room for so many records of `size` bytes.
    pub fn new(size: usize, capacity: u64, when: Memory) -> Result<Self, MemoryError> {
        let bytes = usize::try_from(capacity).ok().and_then(|count| count.checked_mul(size)?.checked_add(PADDING));
        let bytes = bytes.filter(|bytes| *bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or(MemoryError::TooLarge { records: capacity, size })?;
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
        Ok(Self { memory, size, capacity })
    }

    /// Bytes of a record.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes records, of which `records` is a whole number, from a position on.
    ///
    /// # Safety
    /// 1. The positions are below the capacity.
    /// 2. The caller alone writes them, and once: it reserved them.
    /// 3. Nobody reads them until they are complete.
    #[inline]
    pub unsafe fn write(&self, position: u64, records: &[u8]) {
        debug_assert!(position as usize * self.size + records.len() <= self.capacity as usize * self.size);
        // SAFETY: by (1) the target is within the mapping, which is not moved; by (2) and (3) no other reference to
        // these bytes exists. The source is a borrowed slice, so it is elsewhere.
        unsafe {
            let target = self.memory.as_mut_ptr().add(position as usize * self.size);
            std::ptr::copy_nonoverlapping(records.as_ptr(), target, records.len());
        }
    }

    /// Has the processor fetch a record that will be read soon: a hint, which changes nothing.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        let start = self.memory.as_ptr().wrapping_add(position as usize * self.size);
        prefetch(start);
        prefetch(start.wrapping_add(self.size.saturating_sub(1)));
    }

    /// The bytes of records.
    ///
    /// # Safety
    /// The positions are below a tail that the caller took, so all of them are written and will not be again.
    #[inline]
    pub unsafe fn read(&self, positions: Range<u64>) -> &[u8] {
        debug_assert!(positions.start <= positions.end && positions.end <= self.capacity);
        let (start, end) = (positions.start as usize * self.size, positions.end as usize * self.size);
        // SAFETY: what is before a tail was written before the tail was moved over it, which the caller's taking of the
        // tail comes after; and nobody writes there again. It lies within the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), end - start) }
    }
}
