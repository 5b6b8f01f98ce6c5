//! A program behind a link, of which nothing is left when it or the link ends.
//!
//! It is run in namespaces of its own: of network, where the link is its only interface; of processes, whose first one
//! stands between it and whoever began it; and of mounts, for a `/proc` that shows those processes. When that first process
//! ends, the kernel ends all others of the namespace. It ends when the program does. It also ends when the process that
//! started it is gone, for whatever reason: that process alone holds the writing end of a pipe, the tie.

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

/// The first argument of the process that stands between.
pub const KEEPER: &str = "keep";

/// Where what a program prints goes.
#[derive(Debug)]
pub enum Prints {
    /// Where it went before.
    Here,
    /// To standard error, all of it.
    Aside,
    /// To a file, all of it; and it reads nothing.
    Into(File),
}

/// A program that runs behind a link.
#[derive(Debug)]
pub struct Behind {
    keeper: Child,
    /// The keeper ends when this is closed. The numbers of signals that are written here are for the program.
    tie: OwnedFd,
}

impl Behind {
    /// Runs a program in `namespace`. `keeper` is a program that does [`keep`] with the arguments that it is given after
    /// [`KEEPER`].
    ///
    /// # Errors
    /// If it cannot be run: whether the program itself can, its status tells.
    pub fn run(namespace: &Namespace, keeper: &Path, words: &[OsString], prints: Prints) -> io::Result<Self> {
        let (tied, tie) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // The keeper has its end of it, and nobody else.
        fcntl_setfd(&tied, FdFlags::empty())?;
        let mut command = Command::new(keeper);
        command.arg(KEEPER).arg(tied.as_raw_fd().to_string()).arg("--").args(words);
        match prints {
            Prints::Here => {}
            Prints::Aside => drop(command.stdout(io::stderr().as_fd().try_clone_to_owned()?)),
            Prints::Into(file) => drop(command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file)),
        }
        let started = namespace.run(move || {
            // SAFETY: only children of this thread are in the new namespace, and what it shares with others stays.
            #[allow(unsafe_code, reason = "there is no other way to a namespace")]
            raised(|| unsafe { unshare_unsafe(UnshareFlags::NEWPID) })?;
            // The keeper makes a namespace, and gives up all that it may before the program begins.
            let child = passed_on(NAMESPACES, || command.spawn());
            drop(tied);
            child
        })?;
        Ok(Self { keeper: started, tie })
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.keeper.try_wait()
    }

    /// Sends the program, and all that it began, a signal, if they have not ended.
    ///
    /// # Errors
    /// Those of the system.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match rustix::io::write(&self.tie, &[signal.as_raw() as u8]) {
            Ok(_) | Err(Errno::PIPE) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Ends it, and all that it began.
    ///
    /// # Errors
    /// Those of the system.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.keeper.kill()?;
        self.keeper.wait()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.end();
    }
}

/// What the process does that stands between: it runs the program, and takes care of what that leaves behind. The
/// status to exit with, as shells have it, or why the program cannot be run.
///
/// # Errors
/// If it is not in namespaces of its own.
pub fn keep(tie: &OsStr, words: &[OsString]) -> io::Result<io::Result<u8>> {
    let number = tie.to_str().and_then(|tie| tie.parse::<i32>().ok());
    let number = number.filter(|number| *number > 2 && rustix::process::getpid() == Pid::INIT);
    let (Some(number), Some((program, arguments))) = (number, words.split_first()) else {
        return Err(io::Error::other("this is done by `queuescope link` alone"));
    };
    // SAFETY: it was opened for this process, which knows its number from who began it, and nothing else has it.
    #[allow(unsafe_code, reason = "the number is all that a new program has of a file")]
    let tie = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&tie, FdFlags::CLOEXEC)?;
    // It ends at once with the thread that started it, even while it is stopped. The tie alone is certain: the thread may have been gone
    // before this, while another thread of its process, about to end, still held the tie.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    raised(own_proc)?;
    // The program has the rights of its user, and no others.
    keep_only(CapabilitySet::empty())?;
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(why) => return Ok(Err(why)),
    };
    let own = Pid::from_child(&child);
    thread::Builder::new().name("signals".to_owned()).spawn(move || pass_on(&tie))?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == own => {
                let signalled = || status.terminating_signal().map(|signal| 128 + signal);
                return Ok(Ok(status.exit_status().or_else(signalled).unwrap_or(1) as u8));
            }
            // Others that it left behind.
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

/// Passes on the signals that are for the program, and for all that it began, as a terminal would. When the tie is closed, it ends this
/// process, and with it all others of the namespace.
fn pass_on(tie: &OwnedFd) -> ! {
    let mut number = [0];
    while let Ok(1) = retry_on_intr(|| rustix::io::read(tie, &mut number)) {
        if let Some(signal) = Signal::from_named_raw(number[0].into()) {
            // All processes but this one, which is the first of its namespace (kill(2): -1). They may have ended.
            let _ = kill_process_group(Pid::INIT, signal);
        }
    }
    exit(1)
}

/// Mounts a `/proc` that shows the processes of this namespace, and them alone.
fn own_proc() -> io::Result<()> {
    // SAFETY: this process has one thread, and its files stay as they are.
    #[allow(unsafe_code, reason = "there is no other way to a namespace")]
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&std::ffi::CStr>)?;
    Ok(())
}
