//! Which process holds a socket, and what it is called.

use super::cgroup;
use rustix::fs::{Dir, Mode, OFlags, open, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who holds the sockets that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// Numbers of processes by the number of the socket,
    found: BTreeMap<u32, u32>,
    /// and how these processes are called.
    called: BTreeMap<u32, Process>,
    /// Processes whose files may not be looked at.
    pub(super) refused: BTreeSet<u32>,
    /// Processes that had a file whose name could be read.
    seen: BTreeSet<u32>,
}

/// A process, as it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    pub command: String,
    pub cgroup: Option<String>,
}

impl Holders {
    /// Looks at the files of all processes; those that end meanwhile are not there. What is opened is below `/proc/NUMBER`.
    pub(crate) fn of(sockets: &BTreeSet<u32>) -> Self {
        let mut holders = if sockets.is_empty() { Self::default() } else { Self::within(Path::new("/proc"), sockets) };
        let called = holders.found.values().filter_map(|pid| Some((*pid, Process::of(*pid)?)));
        holders.called = called.collect();
        holders
    }

    /// The same of those that a folder tells.
    fn within(processes: &Path, sockets: &BTreeSet<u32>) -> Self {
        let mut holders = Self::default();
        let (mut name, mut is_first_there) = (Vec::new(), false);
        for entry in fs::read_dir(processes).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            is_first_there |= pid == 1;
            // Of other errors, the process has ended.
            if let Err(Errno::ACCESS | Errno::PERM) = holders.look(&entry.path().join("fd"), pid, sockets, &mut name) {
                holders.refused.insert(pid);
            }
        }
        // Somebody begins all; who does not see him sees none of others (`hidepid` of proc(5)).
        if !is_first_there {
            holders.refused.insert(1);
        }
        holders
    }

    fn look(&mut self, at: &Path, pid: u32, sockets: &BTreeSet<u32>, name: &mut Vec<u8>) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(at, flags, Mode::empty())?;
        for entry in Dir::read_from(&folder)? {
            let link = match readlinkat(&folder, entry?.file_name(), std::mem::take(name)) {
                Ok(link) => link,
                // Who may look at the folder may not at what is in it.
                Err(why @ (Errno::ACCESS | Errno::PERM)) => return Err(why),
                // What is closed meanwhile is no longer held.
                Err(_) => continue,
            };
            self.seen.insert(pid);
            if let Some(socket) = link.to_str().ok().and_then(socket).filter(|socket| sockets.contains(socket)) {
                self.hold(socket, pid);
            }
            *name = link.into_bytes();
        }
        Ok(())
    }

    /// Of several, it is the first one begun, which the others have it from, unless that is who begins all: it opens sockets for
    /// those who serve them.
    fn hold(&mut self, socket: u32, pid: u32) {
        let rank = |pid: u32| (pid == 1, pid);
        let holder = self.found.entry(socket).or_insert(pid);
        if rank(pid) < rank(*holder) {
            *holder = pid;
        }
    }

    /// How many processes of other users could be looked at, and how many not.
    pub(super) fn others(&self) -> (usize, usize) {
        let own = geteuid().as_raw();
        let is_own = |pid: &&u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|data| data.uid() == own);
        let [seen, refused] = [&self.seen, &self.refused].map(|all| all.len() - all.iter().filter(is_own).count());
        (seen, refused)
    }

    /// Who holds a socket; none if nobody does any longer, or nobody who may be looked at.
    pub(super) fn holder(&self, socket: u32) -> Option<Process> {
        self.called.get(self.found.get(&socket)?).cloned()
    }
}

impl Process {
    /// None if it has ended.
    #[expect(clippy::disallowed_methods, reason = "what is there now is asked")]
    fn of(pid: u32) -> Option<Self> {
        let command = fs::read(format!("/proc/{pid}/comm")).ok()?;
        let command = String::from_utf8_lossy(&command).trim_end_matches('\n').to_owned();
        let cgroup = fs::read(format!("/proc/{pid}/cgroup")).ok();
        let cgroup = cgroup.and_then(|text| cgroup::path(&String::from_utf8_lossy(&text)));
        Some(Self { pid, command, cgroup })
    }
}

/// The number of a socket, from where a file of a process leads: `socket:[4711]`.
fn socket(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_sockets_are_told_from_others() {
        let links = ["socket:[4711]", "pipe:[4711]", "socket:[]", "socket:[99999999999]", "/dev/null", ""];
        assert_eq!(links.map(socket), [Some(4711), None, None, None, None, None]);
    }

    #[test]
    fn of_several_holders_it_is_the_first_but_for_who_begins_all() {
        for (holders, expected) in [(vec![1, 40, 50], 40), (vec![50, 40, 1], 40), (vec![1], 1), (vec![7, 9], 7)] {
            let mut found = Holders::default();
            holders.iter().for_each(|pid| found.hold(5, *pid));
            assert_eq!(found.found.get(&5), Some(&expected), "{holders:?}");
        }
    }

    #[test]
    fn processes_that_are_hidden_are_as_those_that_may_not_be_looked_at() {
        let processes = tempfile::tempdir().expect("there is room");
        let refused = || Holders::within(processes.path(), &BTreeSet::from([5])).refused;
        fs::create_dir_all(processes.path().join("40/fd")).expect("there is room");
        assert_eq!(refused(), BTreeSet::from([1]));
        fs::create_dir_all(processes.path().join("1/fd")).expect("there is room");
        assert_eq!(refused(), BTreeSet::new());
    }

    #[test]
    fn this_process_is_found_by_its_socket() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("there is a port");
        let number = fs::metadata(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket)));
        let number = number.expect("it is there").ino() as u32;
        let found = Holders::of(&BTreeSet::from([number])).holder(number).expect("it is held");
        assert_eq!(found.pid, std::process::id());
        assert!(!found.command.is_empty() && found.cgroup.is_some(), "{found:?}");
        drop(socket);
        assert_eq!(Holders::of(&BTreeSet::from([number])).holder(number), None);
    }
}
