//! The process that removes P4air's queues if the one that made them is killed. The programs of a process vanish with it, but a qdisc does not.
//!
//! It waits at its standard input, which the kernel closes when the other process ends in any way, and holds a name that only one process of a
//! network namespace can have.

use super::P4airError;
use super::shaper::remove_from;
use crate::Interfaces;
use crate::capabilities::{TUN, passed_on};
use rustix::event::{Timespec, poll};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// How the guard is started: a program that calls [`guard`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// An addition to its environment.
    pub environment: Option<(OsString, OsString)>,
}

/// The guard, which removes the queues unless it is dismissed.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

/// What the guard answers: it is ready, or another one is.
const READY: &str = "ready";
const BUSY: &str = "busy";
/// What it gets once the queues are removed.
const DONE: u8 = b'.';
/// How often and how long it tries to become the one guard of an interface: one whose process was killed just now still has to remove the queues.
const TRIES: u32 = 40;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Guard {
    /// Starts the guard of an interface; `None` if it has one already.
    pub fn start(command: &GuardCommand, index: u32) -> Result<Option<Self>, P4airError> {
        let failed = |why| P4airError::Guard { why };
        let mut program = Command::new(&command.program);
        program.args(&command.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        program.envs(command.environment.clone());
        // A signal to the group of this process must not reach it: it is needed then.
        program.process_group(0);
        let mut child = passed_on(TUN, || program.spawn()).map_err(failed)?;
        let mut input = child.stdin.take();
        let Some((to, from)) = input.as_mut().zip(child.stdout.take()) else {
            return Err(failed(io::Error::other("it has no standard input")));
        };
        writeln!(to, "{index}").map_err(failed)?;
        let answers = BufReader::new(from).lines().map_while(Result::ok);
        let answer = answers.into_iter().find(|line| [READY, BUSY].contains(&line.as_str()));
        match answer.as_deref() {
            Some(READY) => Ok(Some(Self { child, input })),
            Some(_) => {
                let _ = child.wait();
                Ok(None)
            }
            None => {
                let ended = child.wait().map_err(failed)?;
                Err(failed(io::Error::other(format!("it ended at once, with {ended}"))))
            }
        }
    }

    /// Whether it has not been killed.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it, because the queues are removed.
    pub fn dismiss(mut self) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(&[DONE]);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself now, after it has removed what is there.
        let _ = self.child.wait();
    }
}

/// Guards the queues of an interface of this network namespace: reads the interface's index from standard input, prints that it is ready, waits until
/// standard input is closed, and removes the queues then, unless it got a byte that says they are removed. It must not end by signals that end a
/// session.
///
/// # Errors
/// Fails if it gets no index, or if the kernel refuses.
pub fn guard() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input.read_line(&mut line)?;
    let index: u32 = line.trim_end().parse().map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
    let mut output = io::stdout();
    let Some(_held) = hold(index)? else {
        return output.write_all(format!("\n{BUSY}\n").as_bytes());
    };
    let netlink = Interfaces::open()?;
    output.write_all(format!("\n{READY}\n").as_bytes())?;
    output.flush()?;
    let mut rest = Vec::new();
    // An error here means as much as the end.
    let _ = input.read_to_end(&mut rest);
    if rest.first() == Some(&DONE) { Ok(()) } else { remove_from(&netlink, index) }
}

/// Takes the name that only one guard of an interface can have; `None` if another process keeps it.
fn hold(index: u32) -> io::Result<Option<UnixListener>> {
    let name = SocketAddr::from_abstract_name(format!("queuescope-p4air-{index}"))?;
    for _ in 0..TRIES {
        match UnixListener::bind_addr(&name) {
            Ok(held) => return Ok(Some(held)),
            Err(why) if why.kind() == ErrorKind::AddrInUse => {}
            Err(why) => return Err(why),
        }
        // A signal only shortens the pause.
        let _ = poll(&mut [], Some(&PAUSE));
    }
    Ok(None)
}
