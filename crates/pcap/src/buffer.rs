//! The buffer of a reader: filled in large chunks, borrowed in slices. It grows only with bytes that arrived.

use std::io::{self, Read as _};

use queuescope_unpack::Unpacked;

/// Bytes that are read at once. Large enough that the cost of a system call per packet is negligible, small enough to
/// stay in a second-level cache between the kernel's copy and parsing.
const CHUNK: usize = 256 << 10;

/// Bytes of the decompressed stream that are read and not yet consumed.
pub(crate) struct Buffer {
    source: Box<Unpacked>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the stream of the first byte of `bytes`.
    base: u64,
    /// Whether the stream has ended.
    is_over: bool,
    /// The error that ended it. Every further read returns it: a decoder that is called again may describe another one.
    failed: Option<io::Error>,
}

impl Buffer {
    pub(crate) fn new(source: Unpacked) -> Self {
        Self {
            source: Box::new(source),
            bytes: vec![0; CHUNK],
            start: 0,
            end: 0,
            base: 0,
            is_over: false,
            failed: None,
        }
    }

    /// Offset in the decompressed stream of the first unconsumed byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Bytes of the (compressed) source consumed so far.
    pub(crate) fn input_read(&self) -> u64 {
        self.source.consumed()
    }

    /// The bytes read and not yet consumed.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Makes at least `count` bytes available. Returns false if the stream ends before.
    #[inline]
    pub(crate) fn need(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.start >= count { Ok(true) } else { self.refill(count) }
    }

    /// Consumes `count` bytes, which must be available, and returns `length` of them, starting at `from`.
    ///
    /// The slice is valid until the next [`need`](Self::need).
    #[inline]
    pub(crate) fn take(&mut self, count: usize, from: usize, length: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        debug_assert!(self.start <= self.end && from + length <= count);
        &self.bytes[start + from..start + from + length]
    }

    #[cold]
    fn refill(&mut self, count: usize) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        if let Some(error) = &self.failed {
            return Err(same(error));
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        // If the unconsumed bytes fill more than half of the buffer, moving them pays off only for a few bytes.
        if self.end > self.bytes.len() / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        while self.end < count {
            if self.end == self.bytes.len() {
                // Doubles only as bytes arrive, so that a wrong length in a short file costs no memory.
                self.bytes.resize(count.min(self.bytes.len() * 2), 0);
            }
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    self.is_over = true;
                    return Ok(false);
                }
                Ok(read) => self.end += read,
                Err(error) => return Err(same(self.failed.insert(error))),
            }
        }
        Ok(true)
    }
}

/// An error of the same kind and text.
fn same(error: &io::Error) -> io::Error {
    let described = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(described, io::Error::from_raw_os_error)
}
