//! The owner of a flow.

use super::cgroup::{CgroupOrigin, path_of};
use super::process::{Holders, Process};
use super::socket::Socket;
use std::collections::BTreeMap;

/// The owner of a flow. A field is none if it is unknown, or differs between the five-tuples of the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The id of the process.
    pub pid: Option<u32>,
    /// The command name of the process (`/proc/PID/comm`), up to 15 bytes. The process can set any name.
    pub command: Option<String>,
    /// The path of its cgroup as in `/proc/PID/cgroup`; of several hierarchies, the most specific path.
    pub cgroup: Option<String>,
    /// The container according to the cgroup: its runtime and its short id (`docker 3f2a9c0b1d2e`).
    pub container: Option<String>,
    /// The systemd unit according to the cgroup; for a container, the unit inside it.
    pub unit: Option<String>,
    /// The id of the user who created the socket.
    pub uid: Option<u32>,
}

/// The result of a lookup.
#[derive(Debug)]
pub(super) enum Answer {
    /// The flow has no local socket, or no longer one.
    Nobody,
    /// No process holds the socket any longer.
    Closed(Owner),
    /// The process that holds the socket cannot be seen.
    Hidden(Owner),
    /// The process that holds the socket.
    Found(Owner),
}

impl Owner {
    /// The fields that are equal in both owners; none if only the user is.
    #[must_use]
    pub fn common(&self, other: &Self) -> Option<Self> {
        fn same<T: Clone + PartialEq>(one: &Option<T>, other: &Option<T>) -> Option<T> {
            one.clone().filter(|_| one == other)
        }
        let common = Self {
            pid: same(&self.pid, &other.pid),
            command: same(&self.command, &other.command),
            cgroup: same(&self.cgroup, &other.cgroup),
            container: same(&self.container, &other.container),
            unit: same(&self.unit, &other.unit),
            uid: same(&self.uid, &other.uid),
        };
        common.is_identified().then_some(common)
    }

    /// Whether more than a user is known. The root cgroup, which contains everything, does not count.
    fn is_identified(&self) -> bool {
        let is_some_cgroup = self.cgroup.as_ref().is_some_and(|path| path != "/");
        self.pid.is_some()
            || self.command.is_some()
            || self.container.is_some()
            || self.unit.is_some()
            || is_some_cgroup
    }

    fn new(process: Option<Process>, cgroup: Option<String>, uid: Option<u32>) -> Self {
        let origin = cgroup.as_deref().map(CgroupOrigin::from_path).unwrap_or_default();
        let (pid, command) = process.map(|process| (process.pid, process.command)).unzip();
        Self { pid, command, cgroup, container: origin.container, unit: origin.unit, uid }
    }
}

impl Answer {
    /// The answer for a flow with this socket. `cgroups` caches the paths of cgroups by their ids.
    pub(super) fn new(socket: Option<Socket>, holders: &Holders, cgroups: &mut BTreeMap<u64, Option<String>>) -> Self {
        let Some(socket) = socket else { return Self::Nobody };
        let holder = socket.number.and_then(|number| holders.holder(number));
        if let Some(process) = holder {
            let cgroup = process.cgroup.clone();
            return Self::Found(Owner::new(Some(process), cgroup, Some(socket.uid)));
        }
        let mut path = |number| cgroups.entry(number).or_insert_with(|| path_of(number)).clone();
        let cgroup = socket.cgroup.and_then(&mut path);
        match socket.number {
            // The process cannot be seen, or has just closed the socket.
            Some(_) if !holders.refused.is_empty() => Self::Hidden(Owner::new(None, cgroup, Some(socket.uid))),
            Some(_) => Self::Closed(Owner::new(None, cgroup, Some(socket.uid))),
            // The kernel no longer reports the user of a socket that no process holds.
            None => match Owner::new(None, cgroup, None) {
                owner if owner.is_identified() => Self::Closed(owner),
                _ => Self::Nobody,
            },
        }
    }
}
