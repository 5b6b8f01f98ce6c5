//! The process that sends a flow, on the monitored machine.

use crate::format::plain;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Characters of a path that fit a line.
const MOST: usize = 24;

/// The process that sends a flow, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Owner {
    /// The process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name of the process (`comm`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The path of its cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Its container according to that path, with the container runtime: `docker 3f2a9c0b1d2e`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its systemd unit according to that path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The id of the user that created its socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
}

impl Owner {
    /// The process, or else the user: `iperf3[4711]`, `uid 1000`.
    pub fn who(&self) -> Option<String> {
        match (&self.command, self.pid, self.uid) {
            (Some(command), Some(pid), _) => Some(format!("{}[{pid}]", plain(command))),
            (Some(command), None, _) => Some(plain(command)),
            (None, Some(pid), _) => Some(format!("[{pid}]")),
            (None, None, uid) => uid.map(|uid| format!("uid {uid}")),
        }
    }

    /// Where it runs: a container, or else a unit, or else, if the process is unknown, a cgroup other than the root.
    fn place(&self) -> Option<String> {
        let cgroup = self.cgroup.as_ref().filter(|path| self.pid.is_none() && *path != "/");
        let named = self.container.as_ref().or(self.unit.as_ref()).map(|place| plain(place));
        named.or_else(|| cgroup.map(|path| end(&plain(path))))
    }
}

/// The end of a long path.
fn end(path: &str) -> String {
    match path.char_indices().nth_back(MOST - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &path[at..]),
        _ => path.to_owned(),
    }
}

/// For a line of text: `iperf3[4711] in docker 3f2a9c0b1d2e`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.who(), self.place()) {
            (Some(who), Some(place)) => write!(f, "{who} in {place}"),
            (Some(one), None) | (None, Some(one)) => f.write_str(&one),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_part_of_an_owner_is_shown() {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let cases = [
            (("iperf3", 4711, "/docker/3f2a", "docker 3f2a", "", 0), "iperf3[4711] in docker 3f2a"),
            (("nginx", 812, "/system.slice/nginx.service", "", "nginx.service", 33), "nginx[812] in nginx.service"),
            (("iperf3", 4711, "/", "", "", 0), "iperf3[4711]"),
            (("iperf3", 4711, "/jobs/1", "", "", 0), "iperf3[4711]"),
            (("", 0, "/jobs/1", "", "", 33), "uid 33 in /jobs/1"),
            (("", 0, "/jobs/of/a/night/0123456789", "", "", 0), "…bs/of/a/night/0123456789"),
            (("", 0, "/jobs/a/night/0123456789", "", "", 0), "/jobs/a/night/0123456789"),
            (("nginx", 0, "", "", "nginx.service", 33), "nginx in nginx.service"),
            (("", 0, "", "", "nginx.service", 33), "uid 33 in nginx.service"),
            (("", 0, "", "docker 3f2a", "nginx.service", 0), "docker 3f2a"),
            (("\u{1b}[2J\u{202e}x", 5, "", "", "", 0), "\u{fffd}[2J\u{fffd}x[5]"),
            (("", 0, "", "", "", 0), ""),
        ];
        for ((command, pid, cgroup, container, unit, uid), expected) in cases {
            let number = |number: u32| (number > 0).then_some(number);
            let owner = Owner {
                pid: number(pid),
                command: some(command),
                cgroup: some(cgroup),
                container: some(container),
                unit: some(unit),
                uid: number(uid),
            };
            assert_eq!(owner.to_string(), expected, "{owner:?}");
        }
    }
}
