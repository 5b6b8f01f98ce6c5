//! What this machine and this user can do, found out by doing it.

use crate::capture::{Capture, CaptureError, CaptureParams};
use crate::probe::types;
use crate::{Acting, Control, Controls, Namespace, Probe, ProbeError, ProbeParams, Tun, owners};

/// Something that is needed for something, and whether it is there.
#[derive(Debug)]
pub struct Ability {
    /// What it is called in a test's list of what it needs.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Why it is not there.
    pub missing: Option<String>,
    /// What cannot be done without it.
    pub costs: &'static str,
    /// What gives it to this user, or to the machine.
    pub grant: &'static str,
}

/// What gives a user the capabilities for all of it at once, since each setcap takes away what was granted before,
const ALL: &str = "sudo setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep \"$(command -v queuescope)\"";
/// and with those that do more than most need.
const NAMESPACES: &str =
    "sudo setcap cap_sys_admin,cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep \"$(command -v queuescope)\"";
const OTHERS: &str = "sudo setcap cap_sys_ptrace,cap_dac_read_search,cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep \
                      \"$(command -v queuescope)\"";

/// Tries everything, in a network namespace of its own; nothing stays.
pub fn abilities() -> Vec<Ability> {
    let namespace = Namespace::new();
    let here = |try_it: fn() -> Result<(), ProbeError>| match &namespace {
        Ok(namespace) => namespace.run(try_it),
        // Then on what there is, which is no less true.
        Err(_) => try_it(),
    };
    let traced = here(|| {
        let btf = types()?;
        Probe::load([0, 0], &btf, ProbeParams::default())?.trace(&btf, &|| false)
    });
    let before = here(|| {
        let mut probe = Probe::load([0, 0], &types()?, ProbeParams::default())?;
        probe.stamp("lo", &|| false)?;
        probe.act(&Acting::default())
    });
    let ability = |name, about, why: Option<&ProbeError>, costs, grant| {
        let grant = why.map_or(grant, |why| grant_of(why, grant));
        Ability { name, about, missing: why.map(ProbeError::why), costs, grant }
    };
    vec![
        ability(
            "namespaces",
            "network namespaces of its own",
            namespace.as_ref().err(),
            "link, and tests of the probe and of captures; the rest is tried among this machine's own interfaces",
            NAMESPACES,
        ),
        ability(
            "tun",
            "network interfaces in user space, /dev/net/tun",
            // It goes with what made it.
            here(|| Tun::open("doctor%d").map(drop)).as_ref().err(),
            "link",
            ALL,
        ),
        ability(
            "btf",
            "types of the kernel, /sys/kernel/btf/vmlinux",
            types().as_ref().err(),
            "live",
            "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have it since 2021",
        ),
        ability(
            "ringbuf",
            "maps of eBPF, with a ring buffer",
            here(|| Probe::load([0, 0], &types()?, ProbeParams::default()).map(drop)).as_ref().err(),
            "live",
            ALL,
        ),
        ability("tp_btf", "tracepoints of qdiscs", traced.as_ref().err(), "live", ALL),
        ability("tcx", "programs before a qdisc", before.as_ref().err(), "live", ALL),
        ability(
            "owners",
            "whose flows are: processes of others",
            owners::try_out().as_ref().err(),
            "processes of other users in what live tells of flows",
            OTHERS,
        ),
        Ability {
            name: "packets",
            about: "copies of the packets of an interface",
            missing: captured(&namespace),
            costs: "capture",
            grant: ALL,
        },
        ability(
            "struct_ops",
            "congestion controls as programs of the kernel",
            // One tells of all: they need the same.
            Controls::load(&[Control::Vegas]).map_err(|error| error.why).as_ref().err(),
            "congestion controls that the kernel has not got by itself, in traffic",
            ALL,
        ),
    ]
}

/// No user is granted what the kernel has not, or a door that is locked before him.
fn grant_of(why: &ProbeError, grant: &'static str) -> &'static str {
    match why {
        ProbeError::NoTracepoint { .. } => "a kernel that has it",
        ProbeError::NoKernel { since, .. } => since,
        ProbeError::Refused { what: Tun::DOOR, .. } => "sudo modprobe tun && sudo chmod 0666 /dev/net/tun",
        _ => grant,
    }
}

/// Opens a capture of the loopback interface, which every namespace has.
fn captured(namespace: &Result<Namespace, ProbeError>) -> Option<String> {
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
    .err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grants_a_tracepoint_is_a_kernel() {
        let missing = ProbeError::NoTracepoint { tracepoint: "qdisc_dequeue", since: "Linux 4.14 has it" };
        assert_eq!(missing.why(), "this kernel has no tracepoint qdisc_dequeue (Linux 4.14 has it)");
        assert_eq!(grant_of(&missing, "setcap"), "a kernel that has it");
        let old = ProbeError::NoKernel { what: "attach", why: "no".to_owned(), since: "Linux 6.6 or later" };
        assert_eq!(grant_of(&old, "setcap"), "Linux 6.6 or later");
        let refused = |what| ProbeError::Refused { what, why: "no".to_owned() };
        assert_eq!(grant_of(&refused("load"), "setcap"), "setcap");
        assert!(grant_of(&refused(Tun::DOOR), "setcap").contains("modprobe tun"));
    }
}
