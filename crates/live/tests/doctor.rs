//! What `abilities` reports is what this machine can do.

use queuescope_live::capture::{Capture, CaptureParams};
use queuescope_live::{Namespace, Probe, ProbeParams, Tun, abilities};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

#[test]
fn a_probe_is_attached_where_nothing_is_missing_and_nowhere_else() {
    let found = abilities();
    let is_there = |name: &str| found.iter().any(|ability| ability.name == name && ability.missing.is_none());
    let all = ["btf", "ringbuf", "tp_btf", "tcx"].into_iter().all(is_there);
    let attach = || Probe::attach("lo", ProbeParams::default()).map(drop).map_err(|error| error.to_string());
    let attached = match Namespace::new() {
        Ok(namespace) => namespace.run(attach),
        Err(_) => attach(),
    };
    assert_eq!(attached.is_ok(), all, "{attached:?}: {found:?}");
    assert_eq!(Namespace::new().is_ok(), is_there("namespaces"));
    let missing = Probe::attach("missing0", ProbeParams::default()).map(drop).expect_err("there is none");
    assert!(missing.to_string().contains("no interface missing0"), "{missing}");
}

#[test]
fn packets_are_copied_where_nothing_is_missing_and_nowhere_else() {
    let found = abilities();
    let missing = found.iter().find(|ability| ability.name == "packets").expect("it is an ability").missing.as_deref();
    let open = || Capture::open("lo", CaptureParams::default()).map(drop).map_err(|error| error.to_string());
    let opened = match Namespace::new() {
        Ok(namespace) => namespace.run(open),
        Err(_) => open(),
    };
    assert_eq!(opened.is_ok(), missing.is_none(), "{opened:?}: {missing:?}");
    // The reason of a missing right is the kernel's error.
    let refused = without_capabilities();
    let packets = refused.iter().find(|(name, _)| *name == "packets");
    assert!(packets.is_some_and(|(_, why)| why.starts_with("Operation not permitted")), "{refused:?}");
    // Every user can read the kernel's types, if there are any.
    let has_types = |all: &[(&str, String)]| all.iter().all(|(name, _)| *name != "btf");
    let before: Vec<_> = found.iter().filter_map(|one| Some((one.name, one.missing.clone()?))).collect();
    assert_eq!(has_types(&refused), has_types(&before), "{refused:?}");
}

#[test]
fn an_interface_in_user_space_is_made_where_nothing_is_missing_and_nowhere_else() {
    let found = abilities();
    let missing = found.iter().find(|ability| ability.name == "tun").expect("it is an ability").missing.as_deref();
    let make = || Tun::open("doctor%d").map(drop).map_err(|error| error.to_string());
    let made = match Namespace::new() {
        Ok(namespace) => namespace.run(make),
        Err(_) => make(),
    };
    assert_eq!(made.is_ok(), missing.is_none(), "{made:?}: {missing:?}");
    // An accessible /dev/net/tun is not enough.
    if made.is_ok() {
        let refused = without_capabilities();
        let tun = refused.iter().find(|(name, _)| *name == "tun");
        let is_refused = |why: &str| why.starts_with("make a TUN interface: Operation not permitted");
        assert!(tun.is_some_and(|(_, why)| is_refused(why) || why.starts_with("open /dev/net/tun")), "{refused:?}");
    }
}

#[test]
fn processes_of_others_are_seen_where_nothing_is_missing_and_nowhere_else() {
    let test = "processes_of_others_are_seen_where_nothing_is_missing_and_nowhere_else";
    // A process of the user nobody, until its input is closed.
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).uid(65_534).gid(65_534);
    let mut other = match command.spawn() {
        Ok(other) => other,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let is_seen = std::fs::read_link(format!("/proc/{}/fd/0", other.id())).is_ok();
    let missing = abilities().into_iter().find(|ability| ability.name == "owners").expect("it is an ability").missing;
    let refused = without_capabilities();
    drop(other.stdin.take());
    assert!(other.wait().expect("it ends").success());
    // There may be other processes that cannot be seen.
    assert!(is_seen || missing.is_some());
    let why = refused.iter().find(|(name, _)| *name == "owners").map(|(_, why)| &why[..]).unwrap_or_default();
    assert!(why.starts_with("look at open files: permission denied for "), "{refused:?}");
}

/// The abilities that a thread without capabilities lacks, and why.
fn without_capabilities() -> Vec<(&'static str, String)> {
    let refused = thread::spawn(|| {
        clear_capabilities()
            .map(|()| abilities().into_iter().filter_map(|ability| Some((ability.name, ability.missing?))).collect())
    });
    refused.join().expect("it does not panic").expect("a thread may give up what it may")
}

/// Drops all capabilities of this thread and of those that it starts.
fn clear_capabilities() -> rustix::io::Result<()> {
    let nothing = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, nothing)
}
