//! Who sends a flow, as far as that can be told.

use super::cgroup::{Place, path_of};
use super::process::{Holders, Process};
use super::socket::Socket;
use std::collections::BTreeMap;

/// Who sends a flow. What is not known of it, or not the same of all that are meant, is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The number of the process.
    pub pid: Option<u32>,
    /// What the process calls itself, up to 15 bytes: any that it likes.
    pub command: Option<String>,
    /// The path of its cgroup, as `/proc/PID/cgroup` has it: of several hierarchies, the one that tells most.
    pub cgroup: Option<String>,
    /// The container, by that path: who made it and its number in short (`docker 3f2a9c0b1d2e`).
    pub container: Option<String>,
    /// The unit of systemd, by that path; of a container, the one in it.
    pub unit: Option<String>,
    /// The number of the user who made the socket.
    pub uid: Option<u32>,
}

/// What was found out of a flow.
#[derive(Debug)]
pub(super) enum Answer {
    /// It has no socket here, or has none any longer.
    Nobody,
    /// No process has its socket open any longer.
    Closed(Owner),
    /// Whoever has its socket open cannot be seen.
    Hidden(Owner),
    /// This is who has its socket open.
    Found(Owner),
}

impl Owner {
    /// What is the same of both; none if that is no more than the user.
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
        common.is_somebody().then_some(common)
    }

    /// Whether more than a user is known. All that is in the cgroup of all is no answer.
    fn is_somebody(&self) -> bool {
        let is_some_cgroup = self.cgroup.as_ref().is_some_and(|path| path != "/");
        self.pid.is_some()
            || self.command.is_some()
            || self.container.is_some()
            || self.unit.is_some()
            || is_some_cgroup
    }

    fn new(process: Option<Process>, cgroup: Option<String>, uid: Option<u32>) -> Self {
        let place = cgroup.as_deref().map(Place::of).unwrap_or_default();
        let (pid, command) = process.map(|process| (process.pid, process.command)).unzip();
        Self { pid, command, cgroup, container: place.container, unit: place.unit, uid }
    }
}

impl Answer {
    /// Of a flow with this socket. Cgroups that were found by their number are kept for the next.
    pub(super) fn of(socket: Option<Socket>, holders: &Holders, cgroups: &mut BTreeMap<u64, Option<String>>) -> Self {
        let Some(socket) = socket else { return Self::Nobody };
        let holder = socket.number.and_then(|number| holders.holder(number));
        if let Some(process) = holder {
            let cgroup = process.cgroup.clone();
            return Self::Found(Owner::new(Some(process), cgroup, Some(socket.uid)));
        }
        let mut path = |number| cgroups.entry(number).or_insert_with(|| path_of(number)).clone();
        let cgroup = socket.cgroup.and_then(&mut path);
        match socket.number {
            // Who holds it was not to be seen, or let go of it just now.
            Some(_) if !holders.refused.is_empty() => Self::Hidden(Owner::new(None, cgroup, Some(socket.uid))),
            Some(_) => Self::Closed(Owner::new(None, cgroup, Some(socket.uid))),
            // Of whom nobody holds any longer, the kernel no longer tells the user.
            None => match Owner::new(None, cgroup, None) {
                owner if owner.is_somebody() => Self::Closed(owner),
                _ => Self::Nobody,
            },
        }
    }
}
