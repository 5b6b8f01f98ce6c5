//! What this machine and this user can do, found out by doing it.

mod grant;

use crate::capabilities::{CapabilitySet, NAMESPACES, OWNERS, PACKETS, PROBE, Seer, TUN, names, raised};
use crate::capture::{Capture, CaptureError, CaptureParams};
use crate::probe::types;
use crate::{Acting, Control, Controls, Namespace, Probe, ProbeError, ProbeParams, Tun, owners};
pub use grant::{Gain, Grant};

/// Something that is needed for something, and whether it is there.
#[derive(Debug)]
pub struct Ability {
    /// What it is called in a test's list of what it needs.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The commands that need it.
    pub commands: &'static [&'static str],
    /// Why it is not there.
    pub missing: Option<String>,
    /// What is there in part only.
    pub note: Option<String>,
    /// What cannot be done without it.
    pub costs: &'static str,
    /// The capabilities that the process must have.
    pub needs: CapabilitySet,
    /// What else has to be done on this machine, in words: another kernel, a module.
    pub mend: Option<&'static str>,
}

/// What each ability is, which commands need it, what they cannot do without it, and what capabilities it takes.
struct About {
    name: &'static str,
    about: &'static str,
    commands: &'static [&'static str],
    costs: &'static str,
    needs: CapabilitySet,
}

const DOOR: &str = "sudo modprobe tun && sudo chmod 0666 /dev/net/tun";
const TYPES: &str = "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have it since 2021";

/// In the order in which they are told.
const ABOUT: [About; 9] = [
    About {
        name: "namespaces",
        about: "network namespaces of its own",
        commands: &["link", "compare", "experiment"],
        costs: "link, and tests of the probe and of captures; the rest is tried among this machine's own interfaces",
        needs: NAMESPACES,
    },
    About {
        name: "tun",
        about: "network interfaces in user space, /dev/net/tun",
        commands: &["link", "compare", "experiment"],
        costs: "link",
        needs: TUN,
    },
    About {
        name: "btf",
        about: "types of the kernel, /sys/kernel/btf/vmlinux",
        commands: &["live", "traffic"],
        costs: "live",
        needs: CapabilitySet::empty(),
    },
    About {
        name: "ringbuf",
        about: "maps of eBPF, with a ring buffer",
        commands: &["live"],
        costs: "live",
        needs: PROBE,
    },
    About { name: "tp_btf", about: "tracepoints of qdiscs", commands: &["live"], costs: "live", needs: PROBE },
    About { name: "tcx", about: "programs before a qdisc", commands: &["live"], costs: "live", needs: PROBE },
    About {
        name: "owners",
        about: "whose flows are: processes of others",
        commands: &["live"],
        costs: "processes of other users in what live tells of flows",
        needs: OWNERS,
    },
    About {
        name: "packets",
        about: "copies of the packets of an interface",
        commands: &["capture"],
        costs: "capture",
        needs: PACKETS,
    },
    About {
        name: "struct_ops",
        about: "congestion controls as programs of the kernel",
        commands: &["traffic", "compare", "experiment"],
        costs: "congestion controls that the kernel has not got by itself, in traffic",
        needs: PROBE,
    },
];

impl Ability {
    /// The names of all of them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ABOUT.iter().map(|about| about.name)
    }

    /// What grants it, in words.
    pub fn grant(&self) -> String {
        self.mend.map_or_else(|| names(self.needs).join(", "), str::to_owned)
    }
}

/// Tries everything, in a network namespace of its own; nothing stays.
pub fn abilities() -> Vec<Ability> {
    abilities_seen_by(None)
}

/// The same where a thread sees the processes of all users.
pub fn abilities_seen_by(seer: Option<&Seer>) -> Vec<Ability> {
    let namespace = Namespace::new();
    let here = |try_it: fn() -> Result<(), ProbeError>| match &namespace {
        Ok(namespace) => namespace.run(move || raised(try_it)),
        // Then on what there is, which is no less true.
        Err(_) => raised(try_it),
    };
    let traced = || {
        let btf = types()?;
        Probe::load([0, 0], &btf, ProbeParams::default())?.trace(&btf, &|| false)
    };
    let before = || {
        let mut probe = Probe::load([0, 0], &types()?, ProbeParams::default())?;
        probe.stamp("lo", &|| false)?;
        probe.act(&Acting::default())
    };
    let seen = owners::try_out(seer);
    let closed = seen.as_ref().ok().filter(|closed| **closed > 0).map(|closed| {
        format!(
            "processes of other users that stay closed, by a security module or a user namespace: {closed}; flows of theirs have a \
             user and a cgroup"
        )
    });
    ABOUT
        .into_iter()
        .map(|About { name, about, commands, costs, needs }| {
            let why = match name {
                "namespaces" => namespace.as_ref().map(drop).map_err(told),
                // It goes with what made it.
                "tun" => here(|| Tun::open("doctor%d").map(drop)).map_err(|why| told(&why)),
                "btf" => types().map(drop).map_err(|why| (why.why(), Some(TYPES))),
                "ringbuf" => {
                    here(|| Probe::load([0, 0], &types()?, ProbeParams::default()).map(drop)).map_err(|why| told(&why))
                }
                "tp_btf" => here(traced).map_err(|why| told(&why)),
                "tcx" => here(before).map_err(|why| told(&why)),
                "owners" => seen.as_ref().map(drop).map_err(told),
                "packets" => captured(&namespace).map_err(|why| (why, None)),
                // One tells of all: they need the same.
                _ => Controls::load(&[Control::Vegas]).map(drop).map_err(|error| told(&error.why)),
            };
            let (missing, mend) = why.err().unzip();
            let note = closed.clone().filter(|_| name == "owners");
            Ability { name, about, commands, missing, note, costs, needs, mend: mend.flatten() }
        })
        .collect()
}

/// Why something cannot be done, and what has to be mended if that is no capability: what the kernel has not, or a door that is locked.
fn told(why: &ProbeError) -> (String, Option<&'static str>) {
    let machine = match why {
        ProbeError::NoTracepoint { .. } => Some("a kernel that has it"),
        ProbeError::NoKernel { since, .. } => Some(*since),
        ProbeError::Refused { what: Tun::DOOR, .. } => Some(DOOR),
        _ => None,
    };
    (why.why(), machine)
}

/// Opens a capture of the loopback interface, which every namespace has.
fn captured(namespace: &Result<Namespace, ProbeError>) -> Result<(), String> {
    let open = || match Capture::open("lo", CaptureParams::default()) {
        Ok(_) => Ok(()),
        // What grants it is told anyway.
        Err(CaptureError::Refused { why, .. }) => Err(why.to_string()),
        Err(other) => Err(other.to_string()),
    };
    match namespace {
        Ok(namespace) => namespace.run(open),
        Err(_) => open(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grants_a_tracepoint_is_a_kernel() {
        let missing = ProbeError::NoTracepoint { tracepoint: "qdisc_dequeue", since: "Linux 4.14 has it" };
        let why = "this kernel has no tracepoint qdisc_dequeue (Linux 4.14 has it)".to_owned();
        assert_eq!(told(&missing), (why, Some("a kernel that has it")));
        let old = ProbeError::NoKernel { what: "attach", why: "no".to_owned(), since: "Linux 6.6 or later" };
        assert_eq!(told(&old).1, Some("Linux 6.6 or later"));
        let refused = |what| told(&ProbeError::Refused { what, why: "no".to_owned() }).1;
        assert_eq!(refused("load"), None);
        assert!(refused(Tun::DOOR).is_some_and(|what| what.contains("modprobe tun")));
    }

    #[test]
    fn each_has_a_name_of_its_own_and_is_tried() {
        let found = abilities();
        let names: std::collections::BTreeSet<_> = Ability::names().collect();
        assert!(names.len() == ABOUT.len() && found.iter().map(|ability| ability.name).eq(Ability::names()));
    }
}
