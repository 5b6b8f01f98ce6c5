//! Reads records from journals, and checks each frame.

use super::FRAME;
use super::frame::{FILE_HEADER, FRAME_HEADER, FileHeader, FrameHeader};
use super::frame_search::FrameSearch;
use std::io::{self, Read, Seek};

/// The frames of a file, one after another.
#[derive(Debug)]
pub(crate) struct Scan<R> {
    input: R,
    header: FileHeader,
    /// Where the next frame begins, and the position of its first record.
    offset: u64,
    next: u64,
    frames: u64,
    records: Vec<u8>,
    /// The length of the file when it was opened. Bytes behind it may still be being written.
    length: u64,
    end: Option<End>,
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It was closed.
    Closed,
    /// With a whole frame: its writer is still running, or was stopped.
    Open,
    /// With an incomplete part that was never synced.
    Torn {
        /// Bytes from there on.
        bytes: u64,
        /// The number of records in whole frames among them, and the position behind the last.
        behind: (u64, u64),
    },
    /// With bytes that are not as they were written, although they were synced.
    Damaged(&'static str),
}

impl<R: Read + Seek> Scan<R> {
    /// Reads the header. If there is no whole header, returns how the file ends.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn new(mut input: R, length: u64) -> io::Result<Result<Self, End>> {
        let mut bytes = [0; FILE_HEADER];
        let found = fill(&mut input, &mut bytes)?;
        if let Some(header) = FileHeader::read(&bytes).filter(|_| found == FILE_HEADER) {
            let (offset, next) = (FILE_HEADER as u64, header.first);
            return Ok(Ok(Self { input, header, offset, next, frames: 0, records: Vec::new(), length, end: None }));
        }
        let behind = FrameSearch { input: &mut input, length, next: 0, record_size: 0 }.records(0)?;
        Ok(Err(match behind {
            // Nothing is written behind a header that is not synced.
            Some(_) => End::Torn { bytes: length, behind: (0, 0) },
            None => End::Damaged("its first bytes are no header of records"),
        }))
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

    /// The number of whole frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How the file ends, once all frames were read.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The records of the next frame; `None` at the end.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        if self.end.is_some() {
            return Ok(None);
        }
        if self.offset >= self.length {
            // Frames that came since are for the next reader; otherwise this one might never finish.
            self.end = Some(End::Open);
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

    /// An incomplete frame is torn, unless it was synced. A frame that was written since the file was opened is neither.
    fn ends_here(&mut self, why: &'static str) -> io::Result<Option<&[u8]>> {
        self.end = Some(if self.offset >= self.length {
            End::Open
        } else {
            let record_size = self.header.record_size as usize;
            let mut behind = FrameSearch { input: &mut self.input, length: self.length, next: self.next, record_size };
            match behind.records(self.offset)? {
                Some(behind) => End::Torn { bytes: self.length - self.offset, behind },
                None => End::Damaged(why),
            }
        });
        Ok(None)
    }
}

/// Reads until the buffer is full or the input ends; returns the number of bytes.
pub(super) fn fill(input: &mut impl Read, mut buffer: &mut [u8]) -> io::Result<usize> {
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
