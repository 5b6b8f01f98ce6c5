//! The records as they were appended, one after another.
//!
//! All records are in one range of addresses that is as long as the log may become, or in [segments](super::segments) of equal
//! length that are mapped as records come. The system provides memory for what is written, and takes back what is no longer read.
//! So no record crosses a boundary, nothing is ever moved, and a position determines an address.

#![expect(unsafe_code, reason = "writers and readers of one stretch of memory, kept apart by positions")]

use super::segments::Segments;
use crate::derive::BLOCK;
use crate::primitive::prefetch;
use memmap2::{MmapOptions, MmapRaw};
use std::ops::Range;

/// Bytes behind the last record, so that there is memory to map even for a log without room.
const PADDING: usize = 64;

/// Memory is given back in pieces of this size, aligned to it: a large page. Giving back a part of one would split it into
/// small pages.
#[cfg(target_os = "linux")]
const PIECE: usize = 2 << 20;

/// The least bytes of a segment: mapping one takes some microseconds.
const SEGMENT: usize = 128 << 20;

/// When memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// On the first write: unused memory is not taken, but the first record of a page waits for the system.
    #[default]
    Lazy,
    /// All at once, when the log is made.
    Prefaulted,
    /// On the first write, and also addresses only then, in segments of 128 to 256 MiB. [Released](crate::Log::release) segments give their addresses
    /// back. For logs that may get far more records than stay in memory. If the system refuses a segment, the log is full. Each access
    /// to a record looks up its segment.
    Growing,
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
    segments: Segments<MmapRaw>,
    /// The number of records of a segment is two to the power of this.
    shift: u32,
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
        let segment = (SEGMENT / size.max(1)).next_power_of_two().max(BLOCK as usize) as u64;
        if when == Memory::Growing && segment < records {
            let most = records.div_ceil(segment) as usize;
            let rows = Self { segments: Segments::new(most), shift: segment.trailing_zeros(), size, room };
            // The first now: a limit that is too low ends the log before it begins.
            rows.segments.grow(1, || rows.map()).1?;
            return Ok(rows);
        }
        // One segment, whatever the position.
        let rows = Self { segments: Segments::new(1), shift: u64::BITS - 1, size, room };
        rows.segments.grow(1, || map(bytes, when)).1?;
        Ok(rows)
    }

    /// Gets memory for the positions before `end`, as far as there is any. Returns the position up to which there is.
    #[inline]
    pub fn ready(&self, end: u64) -> u64 {
        let ready = self.behind(self.segments.ready());
        if end <= ready { end } else { self.grow(end) }
    }

    #[cold]
    fn grow(&self, end: u64) -> u64 {
        let segment = ((end - 1 - self.room.start) >> self.shift) + 1;
        let (ready, _) = self.segments.grow(segment, || self.map());
        end.min(self.behind(ready))
    }

    /// The position behind a number of segments.
    #[inline]
    fn behind(&self, segments: u64) -> u64 {
        (segments << self.shift).saturating_add(self.room.start)
    }

    /// Maps a segment of many.
    fn map(&self) -> Result<(MmapRaw, *mut u8), MemoryError> {
        map((self.size << self.shift) + PADDING, Memory::Growing)
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
        debug_assert!(self.room.start <= position && position + (records.len() / self.size) as u64 <= self.room.end);
        let (first, rest) = records.split_at(records.len().min(self.left(position)));
        // SAFETY: the caller's promise holds for each part.
        unsafe { self.write_adjacent(position, first) };
        if !rest.is_empty() {
            // SAFETY: as above. The rest is in one segment, because that is longer than a piece of an append.
            unsafe { self.write_adjacent(position + (first.len() / self.size) as u64, rest) };
        }
    }

    /// Writes records of one segment.
    ///
    /// # Safety
    /// As [`write`](Self::write), and all positions are in one segment.
    #[inline]
    unsafe fn write_adjacent(&self, position: u64, records: &[u8]) {
        debug_assert!(records.len() <= self.left(position));
        let (base, place) = self.place(position);
        debug_assert!(!base.is_null());
        // SAFETY: by (1) the target is within the mapping, which is not moved; by (2) and (3) no other reference to
        // these bytes exists. The source is a borrowed slice, so it does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(records.as_ptr(), base.add(place), records.len()) }
    }

    /// Prefetches a record that will be read soon: a hint without other effects.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        let (base, place) = self.place(position);
        let start = base.wrapping_add(place);
        prefetch(start);
        prefetch(start.wrapping_add(self.size.saturating_sub(1)));
    }

    /// The end of the positions from `positions.start` on that lie one after another in memory.
    #[inline]
    pub fn adjacent(&self, positions: Range<u64>) -> u64 {
        let in_segment = self.offset(positions.start) & self.mask();
        positions.end.min(positions.start.saturating_add(self.mask() - in_segment + 1))
    }

    /// The bytes of records.
    ///
    /// # Safety
    /// 1. The positions are below a tail that the caller took, so all of them are written and will not be written again.
    /// 2. They are not given back while the result lives.
    ///
    /// # Panics
    /// Panics if they are not [adjacent](Self::adjacent).
    #[inline]
    pub unsafe fn read(&self, positions: Range<u64>) -> &[u8] {
        debug_assert!(self.room.start <= positions.start && positions.end <= self.room.end);
        let count = (positions.end - positions.start) as usize;
        if count == 0 {
            // There may be no segment yet.
            return &[];
        }
        assert!(self.adjacent(positions.clone()) == positions.end, "records of two segments are not adjacent");
        let (base, place) = self.place(positions.start);
        // SAFETY: by (1) the bytes were written before the tail was moved over them, which happened before the caller took
        // the tail; no thread writes there again, and by (2) the system does not change or unmap them while they are read. They are
        // within the mapping of their segment.
        unsafe { std::slice::from_raw_parts(base.add(place), count * self.size) }
    }

    /// Gives memory of records back to the system: whole segments of several, and the pieces that end before `positions.end`. Memory before
    /// `positions.start` must have been given back earlier. Systems other than Linux keep the pieces.
    ///
    /// # Safety
    /// 1. All positions before `positions.end` are written, and will not be written again.
    /// 2. No thread reads them, now or later.
    pub unsafe fn give_back(&self, positions: Range<u64>) -> std::io::Result<()> {
        let last = (self.offset(positions.end) >> self.shift) as usize;
        self.segments.unmap(last);
        #[cfg(target_os = "linux")]
        {
            let start = positions.start.max(self.behind(last as u64));
            let pieces = |memory: &MmapRaw| {
                let base = memory.as_ptr() as usize;
                // A piece in which one range ends is the first of the next.
                let edge = |position: u64| ((base + self.place(position).1) / PIECE * PIECE).saturating_sub(base);
                let (start, end) = (edge(start), edge(positions.end));
                if start < end {
                    let advice = memmap2::UncheckedAdvice::DontNeed;
                    // SAFETY: the bytes become zero. All of them are before those of the last position, and within the
                    // mapping; by (1) no thread writes there any more, and by (2) none reads.
                    unsafe { memory.unchecked_advise_range(advice, start, end - start)? };
                }
                Ok(())
            };
            self.segments.with(last, pieces).unwrap_or(Ok(()))
        }
        #[cfg(not(target_os = "linux"))]
        Ok(())
    }

    /// The address of a position's segment, and the record's offset in it in bytes.
    #[inline]
    fn place(&self, position: u64) -> (*mut u8, usize) {
        let offset = self.offset(position);
        (self.segments.base((offset >> self.shift) as usize), (offset & self.mask()) as usize * self.size)
    }

    /// Bytes from a position to the end of its segment.
    #[inline]
    fn left(&self, position: u64) -> usize {
        ((self.mask() - (self.offset(position) & self.mask())) as usize + 1).saturating_mul(self.size)
    }

    #[inline]
    fn offset(&self, position: u64) -> u64 {
        position.wrapping_sub(self.room.start)
    }

    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.shift) - 1
    }
}

/// Maps memory, and returns its address.
fn map(bytes: usize, when: Memory) -> Result<(MmapRaw, *mut u8), MemoryError> {
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
    #[cfg(not(target_os = "linux"))]
    let _ = when;
    let base = memory.as_mut_ptr();
    Ok((memory, base))
}
