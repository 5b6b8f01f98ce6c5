//! Kernels that have less than this one: as its types say when some of them have other names.

use super::{PROGRAMS, ProbeParams, RING_BUFFER, index, namespace, types};
use crate::{Probe, ProbeError};
use aya::{Btf, EbpfLoader, Endianness};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::DirEntry;
use std::{fs, thread};

/// The kernel's types, as if it had none of these; all of them are there before, or nothing would be tried.
#[allow(clippy::disallowed_methods, reason = "the kernel tells its types by a file")]
fn without(names: &[&str]) -> Result<Btf, ProbeError> {
    types()?;
    let mut bytes = fs::read("/sys/kernel/btf/vmlinux").expect("it was read just now");
    for name in names {
        let at = place_of(name, &bytes).unwrap_or_else(|| panic!("this kernel has no {name} that could be taken away"));
        bytes[at] = b'_';
    }
    Ok(Btf::parse(&bytes, Endianness::default()).expect("it is as right as before"))
}

/// Where a name is among the kernel's types.
fn place_of(name: &str, types: &[u8]) -> Option<usize> {
    let wanted = format!("\0{name}\0");
    types.windows(wanted.len()).position(|window| window == wanted.as_bytes()).map(|at| at + 1)
}

/// The first kernel that is known to have all reasons.
const WITH_ALL: [u32; 2] = [6, 18];

/// Those reasons that this kernel has: an older one than [`WITH_ALL`] has fewer anyway.
#[allow(clippy::disallowed_methods, reason = "the kernel tells its types and its release by files")]
fn known<'a>(test: &str, names: &[&'a str]) -> Vec<&'a str> {
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel tells it");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).flat_map(str::parse::<u32>);
    let has_all = [(); 2].map(|()| numbers.next().expect("it has two numbers")) >= WITH_ALL;
    let is_there = |name: &&&str| {
        let is_there = has_all || place_of(name, &types).is_some();
        if !is_there {
            println!("skipped: {test}: {release} has no {name} anyway");
        }
        is_there
    };
    names.iter().filter(is_there).copied().collect()
}

/// What becomes of a probe there, if this user may have one here.
fn traced(test: &str, names: &[&str]) -> Option<Result<(), ProbeError>> {
    let probe = |btf: &Btf| Probe::load([0, 0], btf, ProbeParams::default());
    if let Err(why) = types().and_then(|btf| probe(&btf)?.trace(&btf, &|| false)) {
        println!("skipped: {test}: {why}");
        return None;
    }
    Some(without(names).and_then(|btf| probe(&btf)?.trace(&btf, &|| false)))
}

#[test]
fn a_kernel_with_fewer_reasons_to_drop_is_enough() {
    let names = [
        "QDISC_OVERLIMIT",
        "QDISC_CONGESTED",
        "CAKE_FLOOD",
        "FQ_BAND_LIMIT",
        "FQ_HORIZON_LIMIT",
        "FQ_FLOW_LIMIT",
        "DUALPI2_STEP_DROP",
        "TC_EGRESS",
    ];
    let names = names.map(|name| format!("SKB_DROP_REASON_{name}"));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let test = "a_kernel_with_fewer_reasons_to_drop_is_enough";
    if let Some(traced) = traced(test, &known(test, &names)) {
        assert!(traced.is_ok(), "{traced:?}");
    }
}

#[test]
fn a_name_that_is_not_there_cannot_be_taken_away() {
    if let Err(why) = types() {
        return println!("skipped: a_name_that_is_not_there_cannot_be_taken_away: {why}");
    }
    assert!(std::panic::catch_unwind(|| without(&["NO_SUCH_NAME"]).map(drop)).is_err());
}

#[test]
fn a_kernel_without_a_tracepoint_is_told_by_its_name() {
    let test = "a_kernel_without_a_tracepoint_is_told_by_its_name";
    for (hidden, name) in [("btf_trace_qdisc_dequeue", "qdisc_dequeue"), ("btf_trace_kfree_skb", "kfree_skb")] {
        let Some(traced) = traced(test, &[hidden]) else { return };
        let told = traced.expect_err("it is not there").to_string();
        assert!(
            told.contains(&format!("this kernel has no tracepoint {name} (Linux ")) && told.contains("doctor"),
            "{told}"
        );
    }
}

#[test]
fn a_kernel_without_a_structure_is_refused() {
    let test = "a_kernel_without_a_structure_is_refused";
    if let Some(traced) = traced(test, &["Qdisc"]) {
        let told = traced.expect_err("it is not there").to_string();
        assert!(told.contains("load a program of tracing") && told.contains("doctor"), "{told}");
    }
}

#[test]
fn a_map_that_a_kernel_does_not_know_asks_for_another_kernel() {
    let test = "a_map_that_a_kernel_does_not_know_asks_for_another_kernel";
    if let Err(why) = types().and_then(|btf| Probe::load([0, 0], &btf, ProbeParams::default())) {
        return println!("skipped: {test}: {why}");
    }
    // Without entries none has it, and says what an older one says of a kind that is not there.
    let loaded = EbpfLoader::new().map_max_entries("config", 0).load(PROGRAMS).expect_err("it has no entries");
    let told = ProbeError::of("make the maps of the probe", RING_BUFFER, &loaded).to_string();
    assert!(told.contains("this kernel cannot (Invalid argument") && told.contains("Linux 5.8 or later"), "{told}");
}

/// How many programs, maps and links this thread holds: what is attached is so for as long as somebody holds it.
fn held() -> usize {
    let open = fs::read_dir("/proc/thread-self/fd").expect("it is there");
    let of = |entry: DirEntry| fs::read_link(entry.path()).unwrap_or_default();
    open.filter_map(Result::ok).map(of).filter(|target| target.to_string_lossy().contains("bpf")).count()
}

/// With open files and a network namespace of its own, so that other tests open and close none here.
fn alone(test: &'static str, task: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: only what this thread has open changes, to a copy, and its network namespace.
        #[allow(unsafe_code, reason = "there is no other way to what is its own")]
        match unsafe { unshare_unsafe(UnshareFlags::FILES | UnshareFlags::NEWNET) } {
            Ok(()) => task(),
            Err(why) => println!("skipped: {test}: {why}"),
        }
    };
    thread::spawn(run).join().expect("it does not panic");
}

#[test]
fn what_is_refused_halfway_leaves_nothing() {
    let test = "what_is_refused_halfway_leaves_nothing";
    alone(test, move || {
        let attach = |btf: &Btf, interface: &str| {
            let device = [namespace()?, index("lo")?];
            Probe::attach_by(btf, device, interface, ProbeParams::default(), &|| false)
        };
        if let Err(why) = types().and_then(|btf| attach(&btf, "lo")) {
            return println!("skipped: {test}: {why}");
        }
        let whole = types().expect("they were there");
        let before = held();
        // The second of two tracepoints is not there; both are, and the interface is not.
        let without = without(&["btf_trace_kfree_skb"]).expect("they were there");
        for (btf, interface, says) in
            [(&without, "lo", "no tracepoint"), (&whole, "no-such-one", "attach before the queue")]
        {
            let why = attach(btf, interface).map(drop).expect_err("something is not there").to_string();
            assert!(why.contains(says) && held() == before, "{why}: {} {before}", held());
        }
        let probe = attach(&whole, "lo").expect("it could before");
        assert!(held() > before);
        drop(probe);
        assert_eq!(held(), before);
    });
}
