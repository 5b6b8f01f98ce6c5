//! Kernels that have less than this one: as its types say when some of them have other names.

use super::{ProbeParams, types};
use crate::{Probe, ProbeError};
use aya::{Btf, Endianness};

/// The kernel's types, as if it had none of these.
#[allow(clippy::disallowed_methods, reason = "the kernel tells its types by a file")]
fn without(names: &[&str]) -> Result<Btf, ProbeError> {
    types()?;
    let mut bytes = std::fs::read("/sys/kernel/btf/vmlinux").expect("it was read just now");
    for name in names {
        let wanted = format!("\0{name}\0");
        let found = bytes.windows(wanted.len()).position(|window| window == wanted.as_bytes());
        // What an older kernel does not have anyway needs no hiding.
        if let Some(at) = found {
            bytes[at + 1] = b'_';
        }
    }
    Ok(Btf::parse(&bytes, Endianness::default()).expect("it is as right as before"))
}

/// What becomes of a probe there, if this user may have one here.
fn traced(test: &str, names: &[&str]) -> Option<Result<(), ProbeError>> {
    let probe = |btf: &Btf| Probe::load([0, 0], btf, ProbeParams::default());
    if let Err(why) = types().and_then(|btf| probe(&btf)?.trace(&btf)) {
        println!("skipped: {test}: {why}");
        return None;
    }
    Some(without(names).and_then(|btf| probe(&btf)?.trace(&btf)))
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
    ];
    let names = names.map(|name| format!("SKB_DROP_REASON_{name}"));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    if let Some(traced) = traced("a_kernel_with_fewer_reasons_to_drop_is_enough", &names) {
        assert!(traced.is_ok(), "{traced:?}");
    }
}

#[test]
fn a_kernel_without_a_tracepoint_is_told_by_its_name() {
    let test = "a_kernel_without_a_tracepoint_is_told_by_its_name";
    for (hidden, name) in [("btf_trace_qdisc_dequeue", "qdisc_dequeue"), ("btf_trace_kfree_skb", "kfree_skb")] {
        let Some(traced) = traced(test, &[hidden]) else { return };
        let told = traced.expect_err("it is not there").to_string();
        assert!(told.contains(&format!("this kernel has no tracepoint {name}")) && told.contains("doctor"), "{told}");
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
