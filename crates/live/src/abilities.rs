//! What this machine and this user can do, found out by doing it.

use crate::capture::{Capture, CaptureError, CaptureParams};
use crate::probe::types;
use crate::{Acting, Namespace, Probe, ProbeError, ProbeParams};
use rustix::fs::{Mode, OFlags, open};

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

/// Tries everything, in a network namespace of its own; nothing stays.
pub fn abilities() -> Vec<Ability> {
    let namespace = Namespace::new();
    let here = |try_it: fn() -> Result<(), ProbeError>| match &namespace {
        Ok(namespace) => namespace.run(try_it),
        // Then on what there is, which is no less true.
        Err(_) => try_it(),
    };
    let known = |result: Result<(), ProbeError>| result.err().map(|error| error.why());
    // All at once: each setcap takes away what was granted before.
    let capabilities = "sudo setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep \"$(command -v queuescope)\"";
    let traced = here(|| {
        let btf = types()?;
        Probe::load([0, 0], &btf, ProbeParams::default())?.trace(&btf)
    });
    vec![
        Ability {
            name: "namespaces",
            about: "network namespaces of its own",
            missing: namespace.as_ref().err().map(ProbeError::why),
            costs: "tests of the probe and of captures; the rest is tried among this machine's own interfaces",
            grant: "sudo setcap cap_sys_admin,cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep \"$(command -v queuescope)\"",
        },
        Ability {
            name: "tun",
            about: "network interfaces in user space, /dev/net/tun",
            missing: known(tun()),
            costs: "interfaces whose other end is a program",
            grant: "sudo modprobe tun && sudo chmod 0666 /dev/net/tun",
        },
        Ability {
            name: "btf",
            about: "types of the kernel, /sys/kernel/btf/vmlinux",
            missing: known(types().map(drop)),
            costs: "live",
            grant: "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have it since 2021",
        },
        Ability {
            name: "ringbuf",
            about: "maps of eBPF, with a ring buffer",
            missing: known(here(|| Probe::load([0, 0], &types()?, ProbeParams::default()).map(drop))),
            costs: "live",
            grant: capabilities,
        },
        Ability {
            name: "tp_btf",
            about: "tracepoints of qdiscs",
            grant: grant_of(traced.as_ref().err(), capabilities),
            missing: known(traced),
            costs: "live",
        },
        Ability {
            name: "tcx",
            about: "programs before a qdisc",
            missing: known(here(|| {
                let mut probe = Probe::load([0, 0], &types()?, ProbeParams::default())?;
                probe.stamp("lo")?;
                probe.act(&Acting::default())
            })),
            costs: "live",
            grant: capabilities,
        },
        Ability {
            name: "packets",
            about: "copies of the packets of an interface",
            missing: captured(&namespace),
            costs: "capture",
            grant: capabilities,
        },
    ]
}

/// No user is granted a tracepoint that is not there.
fn grant_of(why: Option<&ProbeError>, capabilities: &'static str) -> &'static str {
    match why {
        Some(ProbeError::NoTracepoint { .. }) => "a kernel that has it",
        _ => capabilities,
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

/// Opens the door to interfaces in user space.
fn tun() -> Result<(), ProbeError> {
    let opened = open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    opened.map(drop).map_err(|why| ProbeError::System { what: "/dev/net/tun", why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grants_a_tracepoint_is_a_kernel() {
        let missing = ProbeError::NoTracepoint { tracepoint: "qdisc_dequeue", since: "Linux 4.14 has it" };
        assert_eq!(missing.why(), "this kernel has no tracepoint qdisc_dequeue (Linux 4.14 has it)");
        assert_eq!(grant_of(Some(&missing), "setcap"), "a kernel that has it");
        let refused = ProbeError::Refused { what: "load", why: "no".to_owned() };
        assert_eq!([grant_of(Some(&refused), "setcap"), grant_of(None, "setcap")], ["setcap"; 2]);
    }
}
