//! Stops reading early: after SIGINT, SIGTERM or SIGHUP, the work is finished as if the input had ended.

use crate::error::Error;
use crate::notes::noted;
use queuescope_report::model::Skipped;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use {
    signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    signal_hook::flag,
    signal_hook::iterator::Signals,
    signal_hook::low_level::{self, pipe},
    std::io::Write,
    std::os::unix::net::UnixStream,
    std::thread,
};

/// The signals that request a stop.
#[cfg(unix)]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// SIGHUP, which comes when the terminal is closed, unless the parent process has set it to be ignored (`nohup`).
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "the kernel shows ignored signals only in this file")]
fn sighup_unless_ignored() -> Option<i32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    (ignored & 1 << (SIGHUP - 1) == 0).then_some(SIGHUP)
}

/// A request to stop, set by a signal or by the program. Clones share it.
#[derive(Debug, Clone)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// Whether a reader stopped before the end of its input.
    obeyed: Arc<AtomicBool>,
    /// Becomes readable when a signal comes, which wakes a reader that waits for input.
    #[cfg(unix)]
    wake: Arc<UnixStream>,
    /// What is written to it becomes readable there.
    #[cfg(unix)]
    waker: Arc<UnixStream>,
}

impl Stop {
    /// A stop that no signal requests, only [`request`](Self::request). It needs a pair of sockets, to wake a reader that waits.
    ///
    /// ```
    /// use queuescope_ingest::Stop;
    ///
    /// let stop = Stop::manual()?;
    /// let requested_elsewhere = stop.clone();
    /// std::thread::spawn(move || requested_elsewhere.request()).join().expect("the thread ends");
    /// assert!(stop.is_requested());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the system if it has no sockets left.
    pub fn manual() -> io::Result<Self> {
        #[cfg(unix)]
        let (wake, waker) = UnixStream::pair()?;
        Ok(Self {
            requested: Arc::default(),
            obeyed: Arc::default(),
            #[cfg(unix)]
            wake: Arc::new(wake),
            #[cfg(unix)]
            waker: Arc::new(waker),
        })
    }

    /// Requests a stop, as a signal does. Another thread may do so while a reader waits for input.
    pub fn request(&self) {
        if !self.requested.swap(true, Ordering::Relaxed) {
            // If this fails, the reader is gone and does not need to be woken.
            #[cfg(unix)]
            let _ = (&*self.waker).write_all(&[0]);
        }
    }

    /// Installs signal handlers. The first SIGINT, SIGTERM or SIGHUP requests a stop; a second signal of any of these ends
    /// the process at once. A SIGHUP that is ignored (`nohup`) stays ignored. On systems other than Unix, signals end the
    /// process as usual.
    ///
    /// # Errors
    /// Fails if the handlers cannot be installed.
    #[cfg(unix)]
    pub fn on_signals() -> Result<Self, Error> {
        let requested = Arc::new(AtomicBool::new(false));
        let register = || -> io::Result<(UnixStream, UnixStream)> {
            let (wake, mut waker) = UnixStream::pair()?;
            let early = Arc::new(AtomicBool::new(false));
            for signal in SIGNALS.into_iter().chain(sighup_unless_ignored()) {
                // A signal between the next steps would be lost, since the default action is already replaced.
                flag::register(signal, Arc::clone(&early))?;
                // The order matters: the first signal must not see the flag that it sets itself.
                flag::register_conditional_default(signal, Arc::clone(&requested))?;
                flag::register(signal, Arc::clone(&requested))?;
                pipe::register(signal, waker.try_clone()?)?;
            }
            if early.load(Ordering::Relaxed) && !requested.swap(true, Ordering::Relaxed) {
                waker.write_all(&[0])?;
            }
            Ok((wake, waker))
        };
        let (wake, waker) = register().map_err(Error::Signals)?;
        Ok(Self { requested, obeyed: Arc::default(), wake: Arc::new(wake), waker: Arc::new(waker) })
    }

    /// The same, but calls `last` before the second signal ends the process, to restore state that outlives it, such as the
    /// terminal's.
    ///
    /// # Errors
    /// Fails if the handlers cannot be installed.
    #[cfg(unix)]
    pub fn on_signals_but_first(last: impl Fn() + Send + 'static) -> Result<Self, Error> {
        let requested = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&requested);
        let register = || -> io::Result<(UnixStream, UnixStream)> {
            let (wake, mut waker) = UnixStream::pair()?;
            let other = waker.try_clone()?;
            // The terminal being closed requests a stop too, and so does its quit key.
            let mut signals = Signals::new(SIGNALS.into_iter().chain([SIGHUP, SIGQUIT]))?;
            // Signal handlers may call hardly any functions, so a thread handles the signals.
            thread::Builder::new().name("signals".to_owned()).spawn(move || {
                for signal in signals.forever() {
                    // Both the kernel and a shell may send SIGHUP for a closed terminal.
                    if begun.swap(true, Ordering::Relaxed) && signal != SIGHUP {
                        last();
                        // This does not return.
                        let _ = low_level::emulate_default_handler(signal);
                    }
                    // If this fails, the reader is gone and does not need to be woken.
                    let _ = waker.write_all(&[0]);
                }
            })?;
            Ok((wake, other))
        };
        let (wake, waker) = register().map_err(Error::Signals)?;
        Ok(Self { requested, obeyed: Arc::default(), wake: Arc::new(wake), waker: Arc::new(waker) })
    }

    /// The same on systems without these signals, where a stop is never requested.
    ///
    /// # Errors
    /// Never fails.
    #[cfg(not(unix))]
    pub fn on_signals() -> Result<Self, Error> {
        Ok(Self { requested: Arc::default(), obeyed: Arc::default() })
    }

    /// Whether a stop was requested.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// A file descriptor that becomes readable when a signal comes, for code that waits for other events too.
    #[cfg(unix)]
    pub fn waker(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.wake)
    }

    /// Records that work was stopped before its end.
    pub fn obey(&self) {
        self.obeyed.store(true, Ordering::Relaxed);
    }

    /// Whether work was stopped before its end. An error of a reader after that is not damage.
    pub fn is_obeyed(&self) -> bool {
        self.obeyed.load(Ordering::Relaxed)
    }

    /// The same as a note for a report.
    pub fn note(&self) -> Option<Skipped> {
        noted(
            "stopped",
            self.is_obeyed().into(),
            "signal to stop came before the end; the rest of the input is missing",
        )
    }

    /// Waits until the file is readable, or a signal comes.
    #[cfg(unix)]
    fn wait(&self, file: &File) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            let mut either = [PollFd::new(file, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)];
            match poll(&mut either, None) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result.map(|_| ())?),
            }
        }
    }

    #[cfg(not(unix))]
    fn wait(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }
}

/// A file or standard input. After a signal, reading from it fails.
#[derive(Debug)]
pub struct Stoppable {
    file: File,
    is_live: bool,
    stop: Stop,
    /// Whether the stop ended reading from this file.
    is_stopped: Arc<AtomicBool>,
}

impl Stoppable {
    /// Reads a file.
    pub fn new(file: File, stop: &Stop) -> Self {
        let is_live = !file.metadata().is_ok_and(|metadata| metadata.is_file());
        Self { file, is_live, stop: stop.clone(), is_stopped: Arc::default() }
    }

    /// Reads standard input.
    ///
    /// # Errors
    /// Fails if standard input is closed.
    #[cfg(unix)]
    pub fn standard_input(stop: &Stop) -> io::Result<Self> {
        use std::os::fd::AsFd;
        Ok(Self::new(File::from(io::stdin().as_fd().try_clone_to_owned()?), stop))
    }

    /// The same on Windows.
    ///
    /// # Errors
    /// Fails if standard input is closed.
    #[cfg(windows)]
    pub fn standard_input(stop: &Stop) -> io::Result<Self> {
        use std::os::windows::io::AsHandle;
        Ok(Self::new(File::from(io::stdin().as_handle().try_clone_to_owned()?), stop))
    }

    /// Whether reading may block, as for a pipe.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Becomes true when the stop ends reading from this file.
    pub fn is_stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopped)
    }
}

impl Read for Stoppable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_live {
            self.stop.wait(&self.file)?;
        }
        if self.stop.is_requested() {
            // Return an error and not the end of the file: an incomplete record must not count as damage.
            self.stop.obey();
            self.is_stopped.store(true, Ordering::Relaxed);
            return Err(io::Error::other("a signal to stop came"));
        }
        self.file.read(into)
    }
}
