//! Reading records from files, each frame checked.

use super::FRAME;
use super::frame::{FILE_HEADER, FRAME_HEADER, FRAME_MAGIC, FileHeader, FrameHeader};
use std::io::{self, Read, Seek, SeekFrom};

/// Frames of a file, one after another.
#[derive(Debug)]
pub(crate) struct Scan<R> {
    input: R,
    header: FileHeader,
    /// Where the next frame begins, and the position of its first record.
    offset: u64,
    next: u64,
    frames: u64,
    records: Vec<u8>,
    /// Bytes that the file had when it was opened: what was written since may be written still.
    length: u64,
    end: Option<End>,
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It was closed.
    Closed,
    /// With a whole frame: who wrote it is still there, or was stopped.
    Open,
    /// So many bytes are the beginning of something that was not written to its end.
    Torn(u64),
    /// There are bytes that were not written so, and behind them others that were.
    Damaged(&'static str),
}

impl<R: Read + Seek> Scan<R> {
    /// Reads the header; `None` if the file is shorter than that, as one is that was just made.
    ///
    /// # Errors
    /// What is wrong with the header, or those of the system.
    pub fn new(mut input: R, length: u64) -> io::Result<Result<Option<Self>, &'static str>> {
        let mut bytes = [0; FILE_HEADER];
        if fill(&mut input, &mut bytes)? < FILE_HEADER {
            return Ok(Ok(None));
        }
        let Some(header) = FileHeader::read(&bytes) else {
            return Ok(Err("its first bytes are no header of records"));
        };
        let (offset, next) = (FILE_HEADER as u64, header.first);
        Ok(Ok(Some(Self { input, header, offset, next, frames: 0, records: Vec::new(), length, end: None })))
    }

    pub fn header(&self) -> FileHeader {
        self.header
    }

    /// Where the last whole frame ends.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The position behind the last record.
    pub fn next_position(&self) -> u64 {
        self.next
    }

    /// Whole frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How the file ends, when all frames were read.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The records of the next frame, at the end none.
    ///
    /// # Errors
    /// Those of the system.
    pub fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let mut bytes = [0; FRAME_HEADER];
        let found = fill(&mut self.input, &mut bytes)?;
        if found == 0 {
            self.end = Some(End::Open);
            return Ok(None);
        }
        let Some(header) = FrameHeader::read(&bytes).filter(|_| found == FRAME_HEADER) else {
            return self.ends_here("a frame's header is not as it was written");
        };
        if header.position != self.next {
            return self.ends_here("a frame is not the one that comes next");
        }
        if header.records == 0 {
            let closed = fill(&mut self.input, &mut [0])? == 0;
            self.end = Some(if closed { End::Closed } else { End::Damaged("there is something behind its end") });
            return Ok(None);
        }
        let size = header.records as usize * self.header.record_size as usize;
        if size > FRAME.max(self.header.record_size as usize) {
            return self.ends_here("a frame is longer than any");
        }
        self.records.resize(size, 0);
        if fill(&mut self.input, &mut self.records)? < size || crc32fast::hash(&self.records) != header.checksum {
            return self.ends_here("records are not as they were written");
        }
        self.offset += (FRAME_HEADER + size) as u64;
        self.next += u64::from(header.records);
        self.frames += 1;
        Ok(Some(&self.records))
    }

    /// What is not whole is torn, unless something whole comes behind it. What came since the file was opened is neither.
    fn ends_here(&mut self, why: &'static str) -> io::Result<Option<&[u8]>> {
        if self.offset >= self.length {
            self.end = Some(End::Open);
            return Ok(None);
        }
        self.input.seek(SeekFrom::Start(self.offset + 1))?;
        let (mut rest, mut length, mut damaged) = (Vec::with_capacity(FRAME), 1, false);
        loop {
            let kept = rest.len();
            let left = self.length.saturating_sub(self.offset + length);
            rest.resize(kept + FRAME.min(usize::try_from(left).unwrap_or(FRAME)), 0);
            let more = fill(&mut self.input, &mut rest[kept..])?;
            rest.truncate(kept + more);
            length += more as u64;
            damaged |= rest.windows(FRAME_HEADER).any(|bytes| {
                let header = bytes.first_chunk().filter(|_| bytes[..4] == FRAME_MAGIC).and_then(FrameHeader::read);
                header.is_some_and(|header| header.position >= self.next)
            });
            if more == 0 || damaged {
                break;
            }
            // A header may lie across the edge.
            rest.drain(..rest.len().saturating_sub(FRAME_HEADER - 1));
        }
        self.end = Some(if damaged { End::Damaged(why) } else { End::Torn(length) });
        Ok(None)
    }
}

/// Reads until the buffer is full or the input ends; how much there was.
fn fill(input: &mut impl Read, mut buffer: &mut [u8]) -> io::Result<usize> {
    let all = buffer.len();
    while !buffer.is_empty() {
        match input.read(buffer) {
            Ok(0) => break,
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all - buffer.len())
}
