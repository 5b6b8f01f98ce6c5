//! Ctrl-Z: the process stops if a shell is there that can let it go on.

use rustix::process::{Signal, kill_current_process_group};
use std::io;

/// What the kernel knows of a process, and who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    group: u32,
    session: u32,
}

/// Does what the terminal does on Ctrl-Z: SIGTSTP for all processes of this group. It does nothing where nobody could let them go
/// on, as in a container or at the far end of a connection; the kernel has the same rule (an orphaned process group).
///
/// # Errors
/// Those of the kernel.
pub fn stop() -> io::Result<()> {
    if is_job("self", process) {
        kill_current_process_group(Signal::TSTP)?;
    }
    Ok(())
}

/// Whether the first ancestor of a process that is of another group is of the same session, as a shell is.
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
    // A name may be no text.
    read(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{of}/stat")).ok()?))
}

/// Reads a line of `/proc/PID/stat` (proc(5)). The second field is a name in brackets and may hold anything.
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
    fn lines_of_the_kernel_are_read() {
        let line = "4711 (a) b) (c) S 10 20 30 34816 4711 4194304 1 2";
        assert_eq!(read(line), Some(Process { parent: 10, group: 20, session: 30 }));
        assert_eq!([read(""), read("1 (a) S 2 3"), read("1 (a) S a b c")], [None; 3]);
        assert!(process("self").is_some_and(|own| own.parent > 0));
    }

    #[test]
    fn a_job_has_a_shell_in_its_session() {
        // A shell, with a job of two processes; a leader of a session, with a process of its group, and the parent of another session.
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
