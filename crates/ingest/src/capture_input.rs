//! A capture that is read from a file, or from a pipe while it is written.

use crate::stop::{Stop, Stoppable};
use queuescope_pcap::{CaptureReader, OpenError, ReadError};
use std::cell::{Cell, RefCell};
use std::fs::{Metadata, metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
        Self::open_unless_stopped(path, stop).map_err(|NotOpened { why, .. }| why)
    }

    /// The same, with an error that shows whether a stop caused it.
    pub(crate) fn open_unless_stopped(path: &Path, stop: Option<&Stop>) -> Result<Self, NotOpened> {
        let Some(stop) = stop else { return Ok(open_capture(path)?.into()) };
        let is_live = Cell::new(false);
        let is_stopped: RefCell<Arc<AtomicBool>> = RefCell::default();
        let seen = |input: Stoppable| {
            is_live.set(input.is_live());
            is_stopped.replace(input.is_stopped());
            input
        };
        let opened = if is_standard_input(path) {
            let name = "standard input";
            let unreadable = |why| OpenError::Unreadable { name: name.to_owned(), why };
            CaptureReader::new(seen(Stoppable::standard_input(stop).map_err(unreadable)?), name)
        } else {
            CaptureReader::open_through(path, |file| seen(Stoppable::new(file, stop)))
        };
        match opened {
            Ok(reader) => Ok(Self { reader, is_live: is_live.get(), stop: Some(stop.clone()) }),
            Err(why) => Err(NotOpened { why, is_stopped: is_stopped.into_inner().load(Ordering::Relaxed) }),
        }
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

/// Why a capture was not opened.
#[derive(Debug)]
pub(crate) struct NotOpened {
    pub why: OpenError,
    /// Whether a stop ended reading before the kind of the capture was known.
    pub is_stopped: bool,
}

impl From<OpenError> for NotOpened {
    fn from(why: OpenError) -> Self {
        Self { why, is_stopped: false }
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
