//! A capture that is read from a file, or from a pipe while it is written.

use crate::stop::{Stop, Stoppable};
use queuescope_pcap::{CaptureReader, OpenError, ReadError};
use std::cell::Cell;
use std::fs::{Metadata, metadata};
use std::io;
use std::path::Path;

/// A capture, and whether reading it may block.
#[derive(Debug)]
pub struct CaptureInput {
    /// The reader of the capture.
    pub reader: CaptureReader,
    is_live: bool,
    stop: Option<Stop>,
}

impl CaptureInput {
    /// Opens a capture; `-` is standard input. It is read to its end, or until a signal comes if `stop` is given.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is not a capture.
    pub fn open(path: &Path, stop: Option<&Stop>) -> Result<Self, OpenError> {
        let Some(stop) = stop else { return open_capture(path).map(Self::from) };
        let is_live = Cell::new(false);
        let seen = |input: Stoppable| {
            is_live.set(input.is_live());
            input
        };
        let reader = if is_standard_input(path) {
            let name = "standard input";
            let unreadable = |why| OpenError::Unreadable { name: name.to_owned(), why };
            CaptureReader::new(seen(Stoppable::standard_input(stop).map_err(unreadable)?), name)?
        } else {
            CaptureReader::open_through(path, |file| seen(Stoppable::new(file, stop)))?
        };
        Ok(Self { reader, is_live: is_live.get(), stop: Some(stop.clone()) })
    }

    /// Whether reading the next packet may block until another process writes it. Write buffered output before that.
    #[inline]
    pub fn may_wait(&self) -> bool {
        self.is_live && !self.reader.has_next()
    }

    /// The error of a reader as damage of the capture, or `None` if the reader failed only because a signal stopped it.
    pub fn damage(&self, error: ReadError) -> Option<ReadError> {
        let stopped = self.stop.as_ref().is_some_and(Stop::is_obeyed);
        (!stopped).then_some(error)
    }
}

/// A capture that is read to its end. Signals do not stop it, and reading never counts as blocking.
impl From<CaptureReader> for CaptureInput {
    fn from(reader: CaptureReader) -> Self {
        Self { reader, is_live: false, stop: None }
    }
}

/// Opens a capture; `-` is standard input.
///
/// # Errors
/// Fails if it cannot be read, or is not a capture.
pub fn open_capture(path: &Path) -> Result<CaptureReader, OpenError> {
    if is_standard_input(path) { CaptureReader::new(io::stdin(), "standard input") } else { CaptureReader::open(path) }
}

/// Whether a path means standard input, which is `-`.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The size of a file in bytes, or `None` if it is not a regular file.
pub fn length(path: &Path) -> Option<u64> {
    metadata(path).ok().filter(Metadata::is_file).map(|metadata| metadata.len())
}
