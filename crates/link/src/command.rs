//! Runs a program behind a link, and leaves no process behind when the program or the link ends.
//!
//! The program runs in namespaces of its own: a network namespace, in which the link is the only interface; a PID
//! namespace, whose first process (the keeper) stands between the program and the process that started it; and a mount namespace,
//! for a `/proc` that shows those processes. When the keeper ends, the kernel ends all other processes of the
//! namespace. The keeper ends when the program does. It also ends when the process that
//! started it is gone, for whatever reason: only that process holds the writing end of a pipe, the tie.

use queuescope_live::Namespace;
use queuescope_live::capabilities::{CapabilitySet, NAMESPACES, keep_only, passed_on, raised};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
pub use rustix::process::Signal;
use rustix::process::{Pid, WaitOptions, kill_process_group, set_parent_process_death_signal, wait};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio, exit};
use std::thread;

/// The first argument of the keeper, the process between the program and the process that started it.
pub const KEEPER: &str = "keep";

/// Where the output of a program goes.
#[derive(Debug)]
pub enum OutputTarget {
    /// Standard output and standard error stay those of this process.
    Inherit,
    /// Standard output goes to standard error.
    Stderr,
    /// Standard output and standard error go to a file; standard input is empty.
    File(File),
}

/// A program that runs behind a link.
#[derive(Debug)]
pub struct IsolatedCommand {
    keeper: Child,
    /// The keeper ends when this is closed. A signal number that is written here is sent on to the program.
    tie: OwnedFd,
}

impl IsolatedCommand {
    /// Runs the program `words` in `namespace`. `keeper` is an executable that calls [`keep`] with the arguments that follow
    /// [`KEEPER`].
    ///
    /// # Errors
    /// Fails if the keeper cannot be started. If the program itself cannot be run, the exit status shows that.
    pub fn run(namespace: &Namespace, keeper: &Path, words: &[OsString], output: OutputTarget) -> io::Result<Self> {
        let (tied, tie) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // Only the keeper inherits its end of the tie.
        fcntl_setfd(&tied, FdFlags::empty())?;
        let mut command = Command::new(keeper);
        command.arg(KEEPER).arg(tied.as_raw_fd().to_string()).arg("--").args(words);
        match output {
            OutputTarget::Inherit => {}
            OutputTarget::Stderr => drop(command.stdout(io::stderr().as_fd().try_clone_to_owned()?)),
            OutputTarget::File(file) => drop(command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file)),
        }
        let keeper = namespace.run(move || {
            // SAFETY: only children of this thread enter the new namespace. This thread keeps what it shares with others.
            #[allow(unsafe_code, reason = "only this call makes a namespace")]
            raised(|| unsafe { unshare_unsafe(UnshareFlags::NEWPID) })?;
            // The keeper makes a mount namespace, and drops its capabilities before the program starts.
            let child = passed_on(NAMESPACES, || command.spawn());
            drop(tied);
            child
        })?;
        Ok(Self { keeper, tie })
    }

    /// The program's exit status, if it has ended.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.keeper.try_wait()
    }

    /// Sends a signal to the program and all processes that it started, if they have not ended.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match rustix::io::write(&self.tie, &[signal.as_raw() as u8]) {
            Ok(_) | Err(Errno::PIPE) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// LinkEnds the program and all processes that it started.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.keeper.kill()?;
        self.keeper.wait()
    }
}

impl Drop for IsolatedCommand {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.end();
    }
}

/// The keeper's work: it runs the program, and reaps the processes that the program leaves behind. Returns the
/// exit status as shells report it, or why the program cannot be run.
///
/// # Errors
/// Fails if this process is not the first of its PID namespace, or a system call fails.
pub fn keep(tie: &OsStr, words: &[OsString]) -> io::Result<io::Result<u8>> {
    let number = tie.to_str().and_then(|tie| tie.parse::<i32>().ok());
    let number = number.filter(|number| *number > 2 && rustix::process::getpid() == Pid::INIT);
    let (Some(number), Some((program, arguments))) = (number, words.split_first()) else {
        return Err(io::Error::other("only `queuescope link` starts this command"));
    };
    // SAFETY: the starting process opened this descriptor for this process alone, and passed its number as an argument.
    #[allow(unsafe_code, reason = "a descriptor that is inherited is known by its number alone")]
    let tie = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&tie, FdFlags::CLOEXEC)?;
    // The parent death signal ends the keeper at once with the thread that started it, even while the keeper is stopped. Only the tie is
    // certain: that thread may have ended before this call, while another thread of its process, about to end, still held the tie.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    raised(mount_proc)?;
    // The program keeps the rights of its user, and no capabilities.
    keep_only(CapabilitySet::empty())?;
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(why) => return Ok(Err(why)),
    };
    let own = Pid::from_child(&child);
    thread::Builder::new().name("signals".to_owned()).spawn(move || forward_signals(&tie))?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == own => {
                let signalled = || status.terminating_signal().map(|signal| 128 + signal);
                return Ok(Ok(status.exit_status().or_else(signalled).unwrap_or(1) as u8));
            }
            // Reap processes that the program left behind.
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

/// Passes signals on to the program and all processes that it started, as a terminal would. When the tie is closed, ends this
/// process, and with it all others of the namespace.
fn forward_signals(tie: &OwnedFd) -> ! {
    let mut number = [0];
    while let Ok(1) = retry_on_intr(|| rustix::io::read(tie, &mut number)) {
        if let Some(signal) = Signal::from_named_raw(number[0].into()) {
            // kill(-1) reaches all processes but this one, the first of its namespace. They may have ended.
            let _ = kill_process_group(Pid::INIT, signal);
        }
    }
    exit(1)
}

/// Mounts a `/proc` that shows the processes of this namespace only.
fn mount_proc() -> io::Result<()> {
    // SAFETY: this process has one thread, and keeps its files.
    #[allow(unsafe_code, reason = "only this call makes a namespace")]
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&std::ffi::CStr>)?;
    Ok(())
}
