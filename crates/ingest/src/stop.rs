//! An end before the input's: on SIGINT, SIGTERM and SIGHUP, what was read is finished as if nothing more came.

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

/// Those that ask for an end.
#[cfg(unix)]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// That the terminal is gone asks for an end too, unless whoever began this has it ignored (`nohup`).
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "the system tells what is ignored in a file, if it does")]
fn hang_up() -> Option<i32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    (ignored & 1 << (SIGHUP - 1) == 0).then_some(SIGHUP)
}

/// Whether a signal asked for an end. Those who share it are asked together.
#[derive(Debug, Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// Whether a reader was stopped before the end of what it reads.
    obeyed: Arc<AtomicBool>,
    /// Has something to read once a signal came, so that who waits for input wakes up.
    #[cfg(unix)]
    wake: Arc<UnixStream>,
}

impl Stop {
    /// From now on, the first SIGINT, SIGTERM or SIGHUP asks for an end, and the second of any ends the process at once; a SIGHUP that
    /// is ignored (`nohup`) stays so. Elsewhere than on Unix they end it as ever.
    ///
    /// # Errors
    /// If the system refuses.
    #[cfg(unix)]
    pub fn on_signals() -> Result<Self, Error> {
        let asked = Arc::new(AtomicBool::new(false));
        let register = || -> io::Result<UnixStream> {
            let (wake, mut waker) = UnixStream::pair()?;
            let early = Arc::new(AtomicBool::new(false));
            for signal in SIGNALS.into_iter().chain(hang_up()) {
                // What comes between the next steps would do nothing, since the default is gone by then.
                flag::register(signal, Arc::clone(&early))?;
                // In this order: the first signal does not find what it sets itself.
                flag::register_conditional_default(signal, Arc::clone(&asked))?;
                flag::register(signal, Arc::clone(&asked))?;
                pipe::register(signal, waker.try_clone()?)?;
            }
            if early.load(Ordering::Relaxed) && !asked.swap(true, Ordering::Relaxed) {
                waker.write_all(&[0])?;
            }
            Ok(wake)
        };
        let wake = Arc::new(register().map_err(Error::Signals)?);
        Ok(Self { asked, obeyed: Arc::default(), wake })
    }

    /// The same for who has something to put in order that outlives the process: that is done before the second signal ends it.
    ///
    /// # Errors
    /// If the system refuses.
    #[cfg(unix)]
    pub fn on_signals_but_first(last: impl Fn() + Send + 'static) -> Result<Self, Error> {
        let asked = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&asked);
        let register = || -> io::Result<UnixStream> {
            let (wake, mut waker) = UnixStream::pair()?;
            // A terminal that goes away asks for an end, too, and so may a key on it.
            let mut signals = Signals::new(SIGNALS.into_iter().chain([SIGHUP, SIGQUIT]))?;
            // A handler of signals may do next to nothing, so a thread takes them.
            thread::Builder::new().name("signals".to_owned()).spawn(move || {
                for signal in signals.forever() {
                    // That the terminal is gone may be said by the kernel and by a shell.
                    if begun.swap(true, Ordering::Relaxed) && signal != SIGHUP {
                        last();
                        // It does not come back.
                        let _ = low_level::emulate_default_handler(signal);
                    }
                    // Nobody waits any more if it fails.
                    let _ = waker.write_all(&[0]);
                }
            })?;
            Ok(wake)
        };
        let wake = Arc::new(register().map_err(Error::Signals)?);
        Ok(Self { asked, obeyed: Arc::default(), wake })
    }

    /// The same where there are no such signals.
    ///
    /// # Errors
    /// None.
    #[cfg(not(unix))]
    pub fn on_signals() -> Result<Self, Error> {
        Ok(Self { asked: Arc::default(), obeyed: Arc::default() })
    }

    /// Whether a signal came.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Has something to read once a signal came, for who waits for other things, too.
    #[cfg(unix)]
    pub fn waker(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.wake)
    }

    /// Something ends here that would have gone on.
    pub fn obey(&self) {
        self.obeyed.store(true, Ordering::Relaxed);
    }

    /// Whether something ended before its end: an error of a reader after that is none.
    pub fn is_obeyed(&self) -> bool {
        self.obeyed.load(Ordering::Relaxed)
    }

    /// The same for a report.
    pub fn note(&self) -> Option<Skipped> {
        noted(
            "stopped",
            self.is_obeyed().into(),
            "signal to stop came before the end; what would have followed is not there",
        )
    }

    /// Returns when there is something to read, or a signal came.
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

/// A file, or standard input, that fails to read on once a signal came.
#[derive(Debug)]
pub struct Stoppable {
    file: File,
    is_live: bool,
    stop: Stop,
}

impl Stoppable {
    /// Reads a file.
    pub fn new(file: File, stop: &Stop) -> Self {
        let is_live = !file.metadata().is_ok_and(|metadata| metadata.is_file());
        Self { file, is_live, stop: stop.clone() }
    }

    /// Reads standard input.
    ///
    /// # Errors
    /// If there is none.
    #[cfg(unix)]
    pub fn standard_input(stop: &Stop) -> io::Result<Self> {
        use std::os::fd::AsFd;
        Ok(Self::new(File::from(io::stdin().as_fd().try_clone_to_owned()?), stop))
    }

    /// The same elsewhere.
    ///
    /// # Errors
    /// If there is none.
    #[cfg(windows)]
    pub fn standard_input(stop: &Stop) -> io::Result<Self> {
        use std::os::windows::io::AsHandle;
        Ok(Self::new(File::from(io::stdin().as_handle().try_clone_to_owned()?), stop))
    }

    /// Whether it may let its reader wait, as a pipe does.
    pub fn is_live(&self) -> bool {
        self.is_live
    }
}

impl Read for Stoppable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_live {
            self.stop.wait(&self.file)?;
        }
        if self.stop.is_requested() {
            // No end: a record that is not whole yet is not damaged.
            self.stop.obey();
            return Err(io::Error::other("a signal to stop came"));
        }
        self.file.read(into)
    }
}
