//! Ctrl-Z: stops the process if a shell exists that can continue it.

use rustix::process::{Signal, kill_current_process_group};
use std::io;

/// The parent, process group and session of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    group: u32,
    session: u32,
}

/// Does what a terminal in normal mode does on Ctrl-Z: sends SIGTSTP to all processes of this group. Does nothing if no shell could
/// continue them, as in a container or a remote connection. The kernel has the same rule for orphaned process groups.
///
/// # Errors
/// Returns the error of the system call.
pub fn stop() -> io::Result<()> {
    if is_job("self", process) {
        kill_current_process_group(Signal::TSTP)?;
    }
    Ok(())
}

/// Whether the nearest ancestor outside the process group is in the same session, as a job's shell is.
fn is_job(of: &str, process: impl Fn(&str) -> Option<Process>) -> bool {
    let Some(own) = process(of) else { return false };
    let mut parent = process(&own.parent.to_string());
    while let Some(before) = parent.filter(|parent| parent.group == own.group) {
        parent = process(&before.parent.to_string());
    }
    parent.is_some_and(|parent| parent.session == own.session)
}

#[expect(clippy::disallowed_methods, reason = "only /proc says whose job this is")]
fn process(of: &str) -> Option<Process> {
    // The process name may not be UTF-8.
    read(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{of}/stat")).ok()?))
}

/// Parses a line of `/proc/PID/stat` (proc(5)). The second field is the name in brackets, which may hold any byte.
fn read(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut numbers = fields.split_ascii_whitespace().skip(1).map(|field| field.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Process { parent: next()?, group: next()?, session: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_stat_are_parsed() {
        let line = "4711 (a) b) (c) S 10 20 30 34816 4711 4194304 1 2";
        assert_eq!(read(line), Some(Process { parent: 10, group: 20, session: 30 }));
        assert_eq!([read(""), read("1 (a) S 2 3"), read("1 (a) S a b c")], [None; 3]);
        assert!(process("self").is_some_and(|own| own.parent > 0));
    }

    #[test]
    fn a_job_has_a_shell_in_its_session() {
        // A shell with a job of two processes; a session leader with a process of its group; and the parent of another session.
        let family = |of: &str| {
            let (parent, group, session) = match of {
                "100" => (1, 100, 100),
                "101" => (100, 101, 100),
                "102" => (101, 101, 100),
                "200" => (100, 200, 200),
                "201" => (200, 200, 200),
                _ => return None,
            };
            Some(Process { parent, group, session })
        };
        let jobs = ["100", "101", "102", "200", "201", "300"].map(|of| is_job(of, family));
        assert_eq!(jobs, [false, true, true, false, false, false]);
    }
}
