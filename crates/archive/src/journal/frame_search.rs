//! Searches for whole frames behind an incomplete one.

use super::frame::{FRAME_HEADER, FRAME_MAGIC, FrameHeader};
use super::scan::fill;
use super::{FRAME, POSITIONS};
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes that are searched at once.
const SEARCHED: usize = 1 << 16;

/// A search for frames behind an incomplete one.
#[derive(Debug)]
pub(super) struct FrameSearch<'a, R> {
    pub input: &'a mut R,
    /// The length of the file.
    pub length: u64,
    /// Frames of records before this position do not belong to this place.
    pub next: u64,
    /// Size of a record in bytes.
    pub record_size: usize,
}

impl<R: Read + Seek> FrameSearch<'_, R> {
    /// The number of records in whole frames behind an offset, and the position behind the last of them; `None` if a frame header says that the
    /// bytes at the offset were synced.
    pub fn records(&mut self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let ((mut records, mut last), mut at) = ((0, 0), offset + 1);
        while let Some((found, header)) = self.find(at)? {
            if header.synced > offset {
                return Ok(None);
            }
            at = found + 1;
            if let Some(end) = self.end(found, header)? {
                records += u64::from(header.records);
                if header.records > 0 {
                    last = last.max(header.position + u64::from(header.records));
                }
                at = end;
            }
        }
        Ok(Some((records, last)))
    }

    /// The next frame header from an offset on.
    fn find(&mut self, mut from: u64) -> io::Result<Option<(u64, FrameHeader)>> {
        self.input.seek(SeekFrom::Start(from))?;
        // Usually there is one right here.
        let (mut rest, mut wanted) = (Vec::new(), FRAME_HEADER);
        loop {
            let kept = rest.len();
            let left = usize::try_from(self.length.saturating_sub(from + kept as u64)).unwrap_or(wanted);
            rest.resize(kept + wanted.min(left), 0);
            let more = fill(self.input, &mut rest[kept..])?;
            rest.truncate(kept + more);
            let found = rest.windows(FRAME_HEADER).enumerate().find_map(|(at, bytes)| {
                let header = bytes.first_chunk().filter(|_| bytes[..4] == FRAME_MAGIC).and_then(FrameHeader::read);
                header
                    .filter(|header| (self.next..POSITIONS).contains(&header.position))
                    .map(|header| (from + at as u64, header))
            });
            if found.is_some() || more == 0 {
                return Ok(found);
            }
            // A header may cross the edge of the buffer.
            let gone = rest.len().saturating_sub(FRAME_HEADER - 1);
            rest.drain(..gone);
            (from, wanted) = (from + gone as u64, SEARCHED);
        }
    }

    /// Where the frame ends, if its records are whole.
    fn end(&mut self, offset: u64, header: FrameHeader) -> io::Result<Option<u64>> {
        let size = header.records as usize * self.record_size;
        if size > FRAME.max(self.record_size) {
            return Ok(None);
        }
        let from = offset + FRAME_HEADER as u64;
        self.input.seek(SeekFrom::Start(from))?;
        let mut records = vec![0; size];
        let whole = fill(self.input, &mut records)? == size && crc32fast::hash(&records) == header.checksum;
        Ok(whole.then_some(from + size as u64))
    }
}
