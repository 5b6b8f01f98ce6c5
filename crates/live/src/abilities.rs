//! Which operations this machine and this user can perform, tested by trying them.

mod grant;

use crate::capabilities::{CapabilitySet, NAMESPACES, OWNERS, PACKETS, PROBE, Seer, TUN, names, raised};
use crate::capture::{Capture, CaptureError, CaptureParams};
use crate::probe::{Device, types};
use crate::{Acting, Control, Controls, Namespace, Probe, ProbeError, ProbeParams, Tun, owners};
pub use grant::{Gain, Grant};

/// An operation that some command needs, and whether it is available.
#[derive(Debug)]
pub struct Ability {
    /// The name that tests use in their list of requirements.
    pub name: &'static str,
    /// A description.
    pub about: &'static str,
    /// The commands that need it.
    pub commands: &'static [&'static str],
    /// Why it is not available; none if it is.
    pub missing: Option<String>,
    /// A restriction, if it is available only in part.
    pub note: Option<String>,
    /// What does not work without it: the end of a line that begins with "without:".
    pub costs: &'static str,
    /// The capabilities that it needs.
    pub needs: CapabilitySet,
    /// What else the machine needs, in words, such as another kernel or a module.
    pub mend: Option<&'static str>,
}

/// The fixed properties of an ability: name, description, commands, what is lost without it, capabilities.
struct About {
    name: &'static str,
    about: &'static str,
    commands: &'static [&'static str],
    costs: &'static str,
    needs: CapabilitySet,
}

const OPEN_TUN_DEVICE: &str = "sudo modprobe tun && sudo chmod 0666 /dev/net/tun";
const TYPES: &str = "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have it since 2021";

/// All abilities, in the order of the output.
const ABOUT: [About; 9] = [
    About {
        name: "namespaces",
        about: "network namespaces of its own",
        commands: &["link", "compare", "experiment"],
        costs: "`link`, `compare` and `experiment --real` do not work",
        needs: NAMESPACES,
    },
    About {
        name: "tun",
        about: "network interfaces in user space, /dev/net/tun",
        commands: &["link", "compare", "experiment"],
        costs: "`link`, `compare` and `experiment --real` do not work",
        needs: TUN,
    },
    About {
        name: "btf",
        about: "types of the kernel, /sys/kernel/btf/vmlinux",
        commands: &["live", "traffic"],
        costs: "`live` does not work, nor do congestion controls that the kernel lacks, in `traffic`",
        needs: CapabilitySet::empty(),
    },
    About {
        name: "ringbuf",
        about: "maps of eBPF, shared with this process",
        commands: &["live"],
        costs: "`live` does not work",
        needs: PROBE,
    },
    About {
        name: "tp_btf",
        about: "tracepoints of qdiscs",
        commands: &["live"],
        costs: "`live` does not work",
        needs: PROBE,
    },
    About {
        name: "tcx",
        about: "programs before a qdisc",
        commands: &["live"],
        costs: "`live` does not work",
        needs: PROBE,
    },
    About {
        name: "owners",
        about: "owners of flows: processes of other users",
        commands: &["live"],
        costs: "`live` does not name the processes of other users as owners of flows",
        needs: OWNERS,
    },
    About {
        name: "packets",
        about: "copies of the packets of an interface",
        commands: &["capture"],
        costs: "`capture` does not work",
        needs: PACKETS,
    },
    About {
        name: "struct_ops",
        about: "congestion controls as eBPF programs in the kernel",
        commands: &["traffic", "compare", "experiment"],
        costs: "congestion controls that the kernel lacks do not work in `traffic`, `compare` and `experiment --real`",
        needs: PROBE,
    },
];

impl Ability {
    /// The names of all abilities.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ABOUT.iter().map(|about| about.name)
    }

    /// What makes the ability available, in words.
    pub fn grant(&self) -> String {
        self.mend.map_or_else(|| names(self.needs).join(", "), str::to_owned)
    }
}

/// Tries everything in a network namespace of its own; no changes remain.
pub fn abilities() -> Vec<Ability> {
    abilities_seen_by(None)
}

/// Like [`abilities`], with a thread that can see the processes of all users.
pub fn abilities_seen_by(seer: Option<&Seer>) -> Vec<Ability> {
    let namespace = Namespace::new();
    let here = |try_it: fn() -> Result<(), ProbeError>| match &namespace {
        Ok(namespace) => namespace.run(move || raised(try_it)),
        // Without a namespace of its own, the tests use the existing interfaces.
        Err(_) => raised(try_it),
    };
    let traced = || {
        let btf = types()?;
        Probe::load(Device::default(), &btf, ProbeParams::default())?.trace(&btf, &|| false)
    };
    let before = || {
        let mut probe = Probe::load(Device::default(), &types()?, ProbeParams::default())?;
        probe.stamp("lo", &|| false)?;
        probe.act(&Acting::default())
    };
    let seen = owners::try_out(seer);
    let closed = seen.as_ref().ok().filter(|closed| **closed > 0).map(|closed| {
        format!(
            "processes of other users that a security module or a user namespace hides: {closed}; their flows have only a \
             user and a cgroup"
        )
    });
    ABOUT
        .into_iter()
        .map(|About { name, about, commands, costs, needs }| {
            let why = match name {
                "namespaces" => namespace.as_ref().map(drop).map_err(cause),
                // A TUN interface disappears when it is closed.
                "tun" => here(|| Tun::open("doctor%d").map(drop)).map_err(|why| cause(&why)),
                "btf" => types().map(drop).map_err(|why| (why.why(), Some(TYPES))),
                "ringbuf" => here(|| Probe::load(Device::default(), &types()?, ProbeParams::default()).map(drop))
                    .map_err(|why| cause(&why)),
                "tp_btf" => here(traced).map_err(|why| cause(&why)),
                "tcx" => here(before).map_err(|why| cause(&why)),
                "owners" => seen.as_ref().map(drop).map_err(cause),
                "packets" => captured(&namespace).map_err(|why| (why, None)),
                // One control is enough: all need the same.
                _ => Controls::load(&[Control::Vegas]).map(drop).map_err(|error| cause(&error.why)),
            };
            let (missing, mend) = why.err().unzip();
            let note = closed.clone().filter(|_| name == "owners");
            Ability { name, about, commands, missing, note, costs, needs, mend: mend.flatten() }
        })
        .collect()
}

/// Why an operation fails, and what must change if that is not a capability: the kernel, or access to a device.
fn cause(why: &ProbeError) -> (String, Option<&'static str>) {
    let machine = match why {
        ProbeError::NoTracepoint { .. } => Some("a kernel that has it"),
        ProbeError::NoKernel { since, .. } => Some(*since),
        ProbeError::Refused { what: Tun::OPEN_DEVICE, .. } => Some(OPEN_TUN_DEVICE),
        _ => None,
    };
    (why.why(), machine)
}

/// Opens a capture of the loopback interface, which every namespace has.
fn captured(namespace: &Result<Namespace, ProbeError>) -> Result<(), String> {
    let open = || match Capture::open("lo", CaptureParams::default()) {
        Ok(_) => Ok(()),
        // `Ability::grant` names what grants it.
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
    fn a_missing_tracepoint_needs_another_kernel() {
        let missing = ProbeError::NoTracepoint { tracepoint: "qdisc_dequeue", since: "Linux 4.14 has it" };
        let why = "this kernel has no tracepoint qdisc_dequeue (Linux 4.14 has it)".to_owned();
        assert_eq!(cause(&missing), (why, Some("a kernel that has it")));
        let old = ProbeError::NoKernel { what: "attach", why: "no".to_owned(), since: "Linux 6.6 or later" };
        assert_eq!(cause(&old).1, Some("Linux 6.6 or later"));
        let refused = |what| cause(&ProbeError::Refused { what, why: "no".to_owned() }).1;
        assert_eq!(refused("load"), None);
        assert!(refused(Tun::OPEN_DEVICE).is_some_and(|what| what.contains("modprobe tun")));
    }

    #[test]
    fn every_ability_has_a_unique_name_and_is_tried() {
        let found = abilities();
        let names: std::collections::BTreeSet<_> = Ability::names().collect();
        assert!(names.len() == ABOUT.len() && found.iter().map(|ability| ability.name).eq(Ability::names()));
    }
}
