//! Disks that fail. None waits for a real disk: the loss of power is simulated.

use crate::journal::Disk;
use crate::store::{Store, Written};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk reports an error.
    Io,
    /// The disk is full: half of the bytes are written.
    Full,
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(if self == Self::Io { 5 } else { 28 })
    }
}

/// A disk of which one call fails, and perhaps all calls after it.
#[derive(Debug, Clone)]
pub struct Failing {
    fault: Fault,
    state: Arc<(Mutex<Failures>, Condvar)>,
}

#[derive(Debug, Default)]
struct Failures {
    /// Calls until it fails; `None`: it does not fail.
    left: Option<usize>,
    /// Whether later calls fail, too.
    lasting: bool,
    count: u64,
}

impl Failing {
    /// Fails from this call on, counted from 1.
    pub fn new(fault: Fault, left: usize, lasting: bool) -> Self {
        let failures = Failures { left: Some(left), lasting, count: 0 };
        Self { fault, state: Arc::new((Mutex::new(failures), Condvar::new())) }
    }

    /// Does not fail until `fail` or `fail_once` is called.
    pub fn later(fault: Fault) -> Self {
        let store = Self::new(fault, 0, true);
        store.fail(false);
        store
    }

    /// Fails from now on, or works from now on.
    pub fn fail(&self, fail: bool) {
        let mut state = self.state.0.lock().expect("nobody panics");
        (state.left, state.lasting) = (fail.then_some(1), true);
    }

    /// Fails only this call, counted from the next, which is 1. Earlier failures are forgotten.
    pub fn fail_once(&self, at: usize) {
        *self.state.0.lock().expect("nobody panics") = Failures { left: Some(at), lasting: false, count: 0 };
    }

    pub fn has_failed(&self) -> bool {
        self.state.0.lock().expect("nobody panics").count > 0
    }

    /// Waits until this many calls have failed.
    pub fn wait(&self, count: u64) {
        let state = self.state.0.lock().expect("nobody panics");
        drop(self.state.1.wait_while(state, |state| state.count < count).expect("nobody panics"));
    }

    fn call(&self) -> io::Result<()> {
        let mut state = self.state.0.lock().expect("nobody panics");
        let Some(left) = &mut state.left else { return Ok(()) };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return Ok(());
        }
        if !state.lasting {
            state.left = None;
        }
        state.count += 1;
        self.state.1.notify_all();
        Err(self.fault.error())
    }
}

impl Store for Failing {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>> {
        self.call()?;
        Ok(Box::new(FailingFile(Disk.create(path)?, self.clone())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        Disk.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        Disk.make_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        Disk.remove_folder(path)
    }

    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        self.call()
    }
}

struct FailingFile(Box<dyn Written>, Failing);

impl Write for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.1.call() {
            if self.1.fault == Fault::Full {
                self.0.write_all(&bytes[..bytes.len() / 2])?;
            }
            return Err(error);
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Written for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.1.call()
    }
}

/// A disk that takes at most this many bytes at once, and is interrupted in between: not a fault.
#[derive(Debug)]
pub struct Pieces(pub usize);

struct PiecesFile {
    file: Box<dyn Written>,
    most: usize,
    interrupted: bool,
}

impl Store for Pieces {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>> {
        Ok(Box::new(PiecesFile { file: Disk.create(path)?, most: self.0, interrupted: false }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        Disk.make_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        Disk.remove_folder(path)
    }

    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl Write for PiecesFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        self.file.write(&bytes[..bytes.len().min(self.most)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Written for PiecesFile {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
