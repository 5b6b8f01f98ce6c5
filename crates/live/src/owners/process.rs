//! The processes that hold sockets, and their names.

use super::cgroup;
use rustix::fs::{Dir, Mode, OFlags, open, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The processes that hold the requested sockets.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// Process ids by socket number.
    pids: BTreeMap<u32, u32>,
    /// Processes by their ids.
    processes: BTreeMap<u32, Process>,
    /// Processes whose open files this user may not list.
    pub(super) refused: BTreeSet<u32>,
    /// Processes with an open file whose link could be read.
    examined: BTreeSet<u32>,
}

/// A process with its name and cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    pub command: String,
    pub cgroup: Option<String>,
}

impl Holders {
    /// Searches the open files of all processes. Opens only files below `/proc/NUMBER`. Processes that end meanwhile are left out.
    pub(crate) fn find(sockets: &BTreeSet<u32>) -> Self {
        let mut holders = if sockets.is_empty() { Self::default() } else { Self::within(Path::new("/proc"), sockets) };
        let processes = holders.pids.values().filter_map(|pid| Some((*pid, Process::read(*pid)?)));
        holders.processes = processes.collect();
        holders
    }

    /// The same for the processes of a folder such as `/proc`.
    fn within(processes: &Path, sockets: &BTreeSet<u32>) -> Self {
        let mut holders = Self::default();
        let (mut name, mut is_first_there) = (Vec::new(), false);
        for entry in fs::read_dir(processes).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            is_first_there |= pid == 1;
            // Other errors mean that the process has ended.
            if let Err(Errno::ACCESS | Errno::PERM) = holders.look(&entry.path().join("fd"), pid, sockets, &mut name) {
                holders.refused.insert(pid);
            }
        }
        // Process 1 always exists. If it is hidden, so are all processes of other users (`hidepid` of proc(5)).
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
                // The user may list the folder, but not read the links in it.
                Err(why @ (Errno::ACCESS | Errno::PERM)) => return Err(why),
                // A file that is closed meanwhile is no longer held.
                Err(_) => continue,
            };
            self.examined.insert(pid);
            if let Some(socket) = link.to_str().ok().and_then(socket).filter(|socket| sockets.contains(socket)) {
                self.hold(socket, pid);
            }
            *name = link.into_bytes();
        }
        Ok(())
    }

    /// Records a holder. Of several, the oldest counts, because the others inherit from it. Process 1 counts only alone: it opens
    /// sockets for services.
    fn hold(&mut self, socket: u32, pid: u32) {
        let rank = |pid: u32| (pid == 1, pid);
        let holder = self.pids.entry(socket).or_insert(pid);
        if rank(pid) < rank(*holder) {
            *holder = pid;
        }
    }

    /// How many processes of other users could be examined, and how many could not.
    pub(super) fn others(&self) -> (usize, usize) {
        let own = geteuid().as_raw();
        let is_own = |pid: &&u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|data| data.uid() == own);
        let [examined, refused] =
            [&self.examined, &self.refused].map(|all| all.len() - all.iter().filter(is_own).count());
        (examined, refused)
    }

    /// The process that holds a socket; none if no process does, or none that this user may examine.
    pub(super) fn holder(&self, socket: u32) -> Option<Process> {
        self.processes.get(self.pids.get(&socket)?).cloned()
    }
}

impl Process {
    /// None if the process has ended.
    #[expect(clippy::disallowed_methods, reason = "/proc shows the current processes")]
    fn read(pid: u32) -> Option<Self> {
        let command = fs::read(format!("/proc/{pid}/comm")).ok()?;
        let command = String::from_utf8_lossy(&command).trim_end_matches('\n').to_owned();
        let cgroup = fs::read(format!("/proc/{pid}/cgroup")).ok();
        let cgroup = cgroup.and_then(|text| cgroup::path(&String::from_utf8_lossy(&text)));
        Some(Self { pid, command, cgroup })
    }
}

/// The socket's number in the link of an open file: `socket:[4711]`.
fn socket(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_sockets_are_recognized() {
        let links = ["socket:[4711]", "pipe:[4711]", "socket:[]", "socket:[99999999999]", "/dev/null", ""];
        assert_eq!(links.map(socket), [Some(4711), None, None, None, None, None]);
    }

    #[test]
    fn the_oldest_holder_counts_unless_it_is_process_1() {
        for (holders, expected) in [(vec![1, 40, 50], 40), (vec![50, 40, 1], 40), (vec![1], 1), (vec![7, 9], 7)] {
            let mut holding = Holders::default();
            holders.iter().for_each(|pid| holding.hold(5, *pid));
            assert_eq!(holding.pids.get(&5), Some(&expected), "{holders:?}");
        }
    }

    #[test]
    fn hidden_processes_count_as_refused() {
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
        let number = number.expect("the file exists").ino() as u32;
        let holder = Holders::find(&BTreeSet::from([number])).holder(number).expect("this process holds it");
        assert_eq!(holder.pid, std::process::id());
        assert!(!holder.command.is_empty() && holder.cgroup.is_some(), "{holder:?}");
        drop(socket);
        assert_eq!(Holders::find(&BTreeSet::from([number])).holder(number), None);
    }
}
