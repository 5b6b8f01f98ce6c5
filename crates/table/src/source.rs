//! The bytes of a text table: counted, decompressed, and limited per row.

use queuescope_unpack::{Compression, Unpacked};
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest row of a text table, in bytes. A longer row is an unclosed quote.
pub(crate) const LONGEST_ROW: u64 = 1 << 20;

/// Decompressed bytes, limited to [`LONGEST_ROW`] between two calls of [`allow_row`](Self::allow_row).
pub(crate) struct TableSource {
    inner: Box<dyn Read + Send>,
    left: u64,
    overrun: bool,
}

/// How many bytes were read from the input so far, before decompression.
#[derive(Debug, Clone, Default)]
pub(crate) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    pub fn bytes(&self) -> u64 {
        // The counter is only displayed: no other memory depends on it.
        self.0.load(Ordering::Relaxed)
    }
}

impl TableSource {
    /// Examines the first bytes, and decompresses if they are of a compressed format.
    pub fn open(raw: impl Read + Send + 'static) -> io::Result<(Self, Compression, BytesRead)> {
        let progress = BytesRead::default();
        let bytes = Unpacked::new(Box::new(CountingReader { inner: raw, progress: progress.clone() }))?;
        let compression = bytes.compression();
        Ok((Self { inner: Box::new(bytes), left: LONGEST_ROW, overrun: false }, compression, progress))
    }

    /// Puts bytes that were read already back in front.
    pub fn put_back(self, start: Vec<u8>) -> Self {
        Self { inner: Box::new(Cursor::new(start).chain(self.inner)), ..self }
    }

    /// Allows another row to be read.
    pub fn allow_row(&mut self) {
        self.left = LONGEST_ROW;
    }

    /// Whether reading stopped because a row was too long.
    pub fn overrun(&self) -> bool {
        self.overrun
    }
}

impl Read for TableSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            self.overrun = true;
            return Err(io::Error::other("a row is too long"));
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.inner.read(&mut buffer[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// The first `count` bytes, or all if there are fewer.
pub(crate) fn first_bytes(from: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(count);
    from.take(count as u64).read_to_end(&mut start)?;
    Ok(start)
}

struct CountingReader<R> {
    inner: R,
    progress: BytesRead,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
