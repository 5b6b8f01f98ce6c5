//! Checksums of files, piece by piece, so that any part can be checked without reading the whole file.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 32 << 10;

/// The CRC-32 of each piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sums {
    pub bytes: u64,
    pub crc32: Vec<u32>,
}

/// A file whose bytes are checked before they are returned.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    file: Arc<File>,
    sums: Arc<Sums>,
}

/// Reads from an offset on.
#[derive(Debug)]
pub(crate) struct CheckedReader {
    file: Checked,
    at: u64,
    /// Bytes that were read ahead.
    bytes: Bytes,
}

/// Counts and sums bytes on their way to a file.
#[derive(Debug)]
pub(crate) struct Summing<W> {
    out: W,
    bytes: u64,
    crc32: Vec<u32>,
    piece: crc32fast::Hasher,
}

impl<W: Write> Summing<W> {
    pub fn new(out: W) -> Self {
        Self { out, bytes: 0, crc32: Vec::new(), piece: crc32fast::Hasher::new() }
    }

    /// The file, and its checksums.
    pub fn finish(mut self) -> (W, Sums) {
        if !self.bytes.is_multiple_of(PIECE as u64) {
            self.crc32.push(self.piece.finalize());
        }
        (self.out, Sums { bytes: self.bytes, crc32: self.crc32 })
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PIECE - (self.bytes % PIECE as u64) as usize;
        let count = self.out.write(&bytes[..bytes.len().min(room)])?;
        self.piece.update(&bytes[..count]);
        self.bytes += count as u64;
        if count == room {
            self.crc32.push(std::mem::take(&mut self.piece).finalize());
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Checked {
    pub fn new(file: File, sums: Arc<Sums>) -> Self {
        Self { file: Arc::new(file), sums }
    }

    /// The bytes between two offsets; each piece that they touch is checked.
    fn read(&self, start: u64, end: u64) -> Result<Bytes> {
        let general = |why: String| ParquetError::General(why);
        if start > end || end > self.sums.bytes {
            return Err(general(format!("bytes {start} to {end} were requested, and it has {}", self.sums.bytes)));
        }
        let (first, last) = (start / PIECE as u64, end.div_ceil(PIECE as u64));
        let from = first * PIECE as u64;
        let mut bytes = vec![0; ((last * PIECE as u64).min(self.sums.bytes).max(from) - from) as usize];
        self.file.read_exact_at(&mut bytes, from).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => general(format!("it has fewer than its {} bytes", self.sums.bytes)),
            _ => ParquetError::External(error.into()),
        })?;
        for (number, piece) in (first..).zip(bytes.chunks(PIECE)) {
            if self.sums.crc32.get(number as usize) != Some(&crc32fast::hash(piece)) {
                let at = number * PIECE as u64;
                return Err(general(format!(
                    "bytes {at} to {} are not as they were written",
                    at + piece.len() as u64 - 1
                )));
            }
        }
        Ok(Bytes::from(bytes).slice((start - from) as usize..(end - from) as usize))
    }
}

/// A file of which some parts were read, each at once: pages are much shorter than the pieces that are checked.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    file: Checked,
    /// The offset of each part, and its bytes; sorted.
    parts: Arc<[(u64, Bytes)]>,
}

impl Fetched {
    /// Reads parts of a file, each an offset and a length.
    pub fn new(file: Checked, parts: impl Iterator<Item = (u64, u64)>) -> Result<Self> {
        let read = |(at, length): (u64, u64)| Ok((at, file.read(at, at.saturating_add(length))?));
        let mut parts = parts.map(read).collect::<Result<Vec<_>>>()?;
        parts.sort_unstable_by_key(|(at, _)| *at);
        Ok(Self { file, parts: parts.into() })
    }

    /// The bytes of a part from an offset on.
    fn part(&self, start: u64) -> Option<Bytes> {
        let (at, bytes) = self.parts.get(self.parts.partition_point(|(at, _)| *at <= start).checked_sub(1)?)?;
        let skipped = usize::try_from(start - at).ok().filter(|skipped| *skipped < bytes.len())?;
        Some(bytes.slice(skipped..))
    }
}

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Fetched {
    type T = CheckedReader;

    fn get_read(&self, start: u64) -> Result<CheckedReader> {
        let bytes = self.part(start).unwrap_or_default();
        Ok(CheckedReader { file: self.file.clone(), at: start + bytes.len() as u64, bytes })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match self.part(start).filter(|bytes| bytes.len() >= length) {
            Some(bytes) => Ok(bytes.slice(..length)),
            None => self.file.get_bytes(start, length),
        }
    }
}

impl Length for Checked {
    fn len(&self) -> u64 {
        self.sums.bytes
    }
}

impl ChunkReader for Checked {
    type T = CheckedReader;

    fn get_read(&self, start: u64) -> Result<CheckedReader> {
        Ok(CheckedReader { file: self.clone(), at: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.read(start, start.saturating_add(length as u64))
    }
}

impl Read for CheckedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            let end = self.file.sums.bytes.min((self.at / PIECE as u64 + 1) * PIECE as u64);
            self.bytes = self.file.read(self.at.min(end), end).map_err(io::Error::other)?;
            self.at = end;
        }
        let part = self.bytes.split_to(into.len().min(self.bytes.len()));
        into[..part.len()].copy_from_slice(&part);
        Ok(part.len())
    }
}

/// Compares the length of a file with its checksums' length: `Some` is what is wrong.
pub(crate) fn length(bytes: u64, sums: &Sums) -> Option<String> {
    (bytes != sums.bytes).then(|| format!("it has {bytes} bytes, and should have {}", sums.bytes))
}

/// Checks a whole file: `Some` is what is wrong.
pub(crate) fn check(file: File, sums: &Sums) -> io::Result<Option<String>> {
    if let Some(why) = length(file.metadata()?.len(), sums) {
        return Ok(Some(why));
    }
    let mut input = BufReader::with_capacity(PIECE * 8, file);
    input.seek(SeekFrom::Start(0))?;
    let mut piece = vec![0; PIECE];
    for (number, sum) in sums.crc32.iter().enumerate() {
        let at = number * PIECE;
        let piece = &mut piece[..PIECE.min((sums.bytes as usize).saturating_sub(at))];
        input.read_exact(piece)?;
        if crc32fast::hash(piece) != *sum {
            return Ok(Some(format!("bytes {at} to {} are not as they were written", at + piece.len() - 1)));
        }
    }
    let whole = sums.crc32.len() as u64 == sums.bytes.div_ceil(PIECE as u64);
    Ok((!whole).then(|| "it does not have as many checksums as pieces".to_owned()))
}
