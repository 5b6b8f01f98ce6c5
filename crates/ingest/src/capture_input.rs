//! A capture as it comes: from a file, or from a pipe that may let its reader wait.

use crate::stop::{Stop, Stoppable};
use queuescope_pcap::{CaptureReader, OpenError, ReadError};
use std::cell::Cell;
use std::fs::{Metadata, metadata};
use std::io;
use std::path::Path;

/// A capture, and whether it may let its reader wait.
#[derive(Debug)]
pub struct CaptureInput {
    /// The capture.
    pub reader: CaptureReader,
    is_live: bool,
    stop: Option<Stop>,
}

impl CaptureInput {
    /// Opens a capture, or standard input as one, to be read until its end or until a signal comes.
    ///
    /// # Errors
    /// If it cannot be read, or is no capture.
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

    /// Whether reading the next packet may wait for somebody else to write it. What was read until then is to be handed over.
    #[inline]
    pub fn may_wait(&self) -> bool {
        self.is_live && !self.reader.has_next()
    }

    /// What an error of the reader says of the capture: nothing if it is only that it was to stop.
    pub fn damage(&self, error: ReadError) -> Option<ReadError> {
        let stopped = self.stop.as_ref().is_some_and(Stop::is_obeyed);
        (!stopped).then_some(error)
    }
}

/// It is read to its end, whatever comes, by somebody who has nothing to hand over.
impl From<CaptureReader> for CaptureInput {
    fn from(reader: CaptureReader) -> Self {
        Self { reader, is_live: false, stop: None }
    }
}

/// Opens a capture, or standard input as one.
///
/// # Errors
/// If it cannot be read, or is no capture.
pub fn open_capture(path: &Path) -> Result<CaptureReader, OpenError> {
    if is_standard_input(path) { CaptureReader::new(io::stdin(), "standard input") } else { CaptureReader::open(path) }
}

/// Whether a path means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// How long a file is, where that can be known.
pub fn length(path: &Path) -> Option<u64> {
    metadata(path).ok().filter(Metadata::is_file).map(|metadata| metadata.len())
}
