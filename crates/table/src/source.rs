//! Where a text table's bytes come from: counted, decompressed by their magic number, and bounded per row.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest row of a text table, in bytes. What is longer is a quote left open.
pub(crate) const LONGEST_ROW: u64 = 1 << 20;

/// How a text table is compressed; told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// xz.
    Xz,
}

impl Compression {
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // A skippable frame, with which some writers begin.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        })
    }
}

/// Decompressed bytes, of which only so many come between two calls of [`allow_row`](Self::allow_row).
pub(crate) struct Source {
    inner: Box<dyn Read + Send>,
    left: u64,
    overrun: bool,
}

/// How many bytes were taken from the input so far, before decompression.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub fn bytes(&self) -> u64 {
        // A counter that is only shown: no other memory depends on it.
        self.0.load(Ordering::Relaxed)
    }
}

impl Source {
    /// Looks at the first bytes, and decompresses if they say so.
    pub fn open(raw: impl Read + Send + 'static) -> io::Result<(Self, Compression, Progress)> {
        let progress = Progress::default();
        let mut raw = Counted { inner: raw, progress: progress.clone() };
        let start = first_bytes(&mut raw, 6)?;
        let compression = Compression::of(&start);
        let raw = BufReader::with_capacity(1 << 16, Cursor::new(start).chain(raw));
        let inner: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(raw)?),
            Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(raw)),
        };
        Ok((Self { inner, left: LONGEST_ROW, overrun: false }, compression, progress))
    }

    /// Puts bytes that were already read back in front.
    pub fn put_back(self, start: Vec<u8>) -> Self {
        Self { inner: Box::new(Cursor::new(start).chain(self.inner)), ..self }
    }

    /// Lets another row be read.
    pub fn allow_row(&mut self) {
        self.left = LONGEST_ROW;
    }

    /// Whether reading stopped because a row was too long.
    pub fn overrun(&self) -> bool {
        self.overrun
    }
}

impl Read for Source {
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

/// The first `count` bytes, or all there are.
pub(crate) fn first_bytes(from: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(count);
    from.take(count as u64).read_to_end(&mut start)?;
    Ok(start)
}

struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
