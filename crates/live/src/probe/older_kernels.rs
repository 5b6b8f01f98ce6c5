//! Simulates kernels with fewer features, by renaming some of this kernel's types.

use super::{Device, PROGRAMS, ProbeParams, RING_BUFFER, types};
use crate::{Probe, ProbeError};
use aya::{Btf, EbpfLoader, Endianness};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::DirEntry;
use std::{fs, thread};

/// The kernel's types without those in `names`. All of them must exist; otherwise the test would check nothing.
#[allow(clippy::disallowed_methods, reason = "the kernel's types are in a file")]
fn without(names: &[&str]) -> Result<Btf, ProbeError> {
    types()?;
    let mut bytes = fs::read("/sys/kernel/btf/vmlinux").expect("it was readable before");
    for name in names {
        let at = place_of(name, &bytes).unwrap_or_else(|| panic!("this kernel has no {name} that could be removed"));
        bytes[at] = b'_';
    }
    Ok(Btf::parse(&bytes, Endianness::default()).expect("only names have changed"))
}

/// The position of a name in the kernel's types.
fn place_of(name: &str, types: &[u8]) -> Option<usize> {
    let wanted = format!("\0{name}\0");
    types.windows(wanted.len()).position(|window| window == wanted.as_bytes()).map(|at| at + 1)
}

/// The first kernel that is known to have all drop reasons.
const WITH_ALL: [u32; 2] = [6, 18];

/// The reasons that this kernel has. A kernel older than [`WITH_ALL`] may lack some.
#[allow(clippy::disallowed_methods, reason = "the kernel's types and release are in files")]
fn known<'a>(test: &str, names: &[&'a str]) -> Vec<&'a str> {
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the file exists");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).flat_map(str::parse::<u32>);
    let has_all = [(); 2].map(|()| numbers.next().expect("a release has two numbers")) >= WITH_ALL;
    let is_there = |name: &&&str| {
        let is_there = has_all || place_of(name, &types).is_some();
        if !is_there {
            println!("skipped: {test}: {release} has no {name} anyway");
        }
        is_there
    };
    names.iter().filter(is_there).copied().collect()
}

/// Attaches a probe with those names removed; none if this user may not attach any.
fn traced(test: &str, names: &[&str]) -> Option<Result<(), ProbeError>> {
    let probe = |btf: &Btf| Probe::load(Device::default(), btf, ProbeParams::default());
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
fn removing_an_unknown_name_panics() {
    if let Err(why) = types() {
        return println!("skipped: removing_an_unknown_name_panics: {why}");
    }
    assert!(std::panic::catch_unwind(|| without(&["NO_SUCH_NAME"]).map(drop)).is_err());
}

#[test]
fn the_error_names_a_missing_tracepoint() {
    let test = "the_error_names_a_missing_tracepoint";
    for (hidden, name) in [("btf_trace_qdisc_dequeue", "qdisc_dequeue"), ("btf_trace_kfree_skb", "kfree_skb")] {
        let Some(traced) = traced(test, &[hidden]) else { return };
        let message = traced.expect_err("the tracepoint is missing").to_string();
        assert!(
            message.contains(&format!("this kernel has no tracepoint {name} (since Linux "))
                && message.contains("doctor"),
            "{message}"
        );
    }
}

#[test]
fn a_kernel_without_a_structure_is_refused() {
    let test = "a_kernel_without_a_structure_is_refused";
    if let Some(traced) = traced(test, &["Qdisc"]) {
        let message = traced.expect_err("the structure is missing").to_string();
        assert!(message.contains("load a program of tracing") && message.contains("doctor"), "{message}");
    }
}

#[test]
fn an_unsupported_map_needs_another_kernel() {
    let test = "an_unsupported_map_needs_another_kernel";
    if let Err(why) = types().and_then(|btf| Probe::load(Device::default(), &btf, ProbeParams::default())) {
        return println!("skipped: {test}: {why}");
    }
    // Every kernel refuses a map without entries, with the error of an old kernel for an unknown type.
    let loaded = EbpfLoader::new().map_max_entries("victims", 0).load(PROGRAMS).expect_err("the map has no entries");
    let message = ProbeError::since("make the maps of the probe", RING_BUFFER, &loaded).to_string();
    assert!(
        message.contains("this kernel does not support it (Invalid argument") && message.contains("Linux 5.8 or later"),
        "{message}"
    );
}

/// The number of programs, maps and links that this thread holds open, and so keeps attached.
fn held_objects() -> usize {
    let open = fs::read_dir("/proc/thread-self/fd").expect("/proc is mounted");
    let of = |entry: DirEntry| fs::read_link(entry.path()).unwrap_or_default();
    open.filter_map(Result::ok).map(of).filter(|target| target.to_string_lossy().contains("bpf")).count()
}

/// Runs `task` in a thread with its own file table and network namespace, so that other tests do not change these.
fn alone(test: &'static str, task: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: only this thread's file table, as a copy, and its network namespace change.
        #[allow(unsafe_code, reason = "no safe function unshares the file table")]
        match unsafe { unshare_unsafe(UnshareFlags::FILES | UnshareFlags::NEWNET) } {
            Ok(()) => task(),
            Err(why) => println!("skipped: {test}: {why}"),
        }
    };
    thread::spawn(run).join().expect("the task does not panic");
}

#[test]
fn a_failed_attachment_leaves_nothing_behind() {
    let test = "a_failed_attachment_leaves_nothing_behind";
    alone(test, move || {
        let attach = |btf: &Btf, interface: &str| {
            let device = Device::named("lo")?;
            Probe::attach_by(btf, device, interface, ProbeParams::default(), &|| false)
        };
        if let Err(why) = types().and_then(|btf| attach(&btf, "lo")) {
            return println!("skipped: {test}: {why}");
        }
        let whole = types().expect("they were readable before");
        let before = held_objects();
        // First the second of two tracepoints is missing, then the interface.
        let without = without(&["btf_trace_kfree_skb"]).expect("they were readable before");
        for (btf, interface, expected) in
            [(&without, "lo", "no tracepoint"), (&whole, "missing0", "attach before the queue")]
        {
            let why = attach(btf, interface).map(drop).expect_err("something is missing").to_string();
            assert!(why.contains(expected) && held_objects() == before, "{why}: {} {before}", held_objects());
        }
        let probe = attach(&whole, "lo").expect("it could be attached before");
        assert!(held_objects() > before);
        drop(probe);
        assert_eq!(held_objects(), before);
    });
}
