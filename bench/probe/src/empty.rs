//! Programs that do nothing, at the places of those of the probe.

use anyhow::{Context, Result};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{BtfTracePoint, LinkOrder, SchedClassifier, TcAttachType};
use aya::{Btf, Ebpf, include_bytes_aligned};

/// The compiled programs; their source is beside that of the probe.
static PROGRAMS: &[u8] = include_bytes_aligned!("../../../crates/live/bpf/empty.bpf.o");

/// The programs of tracing, and their tracepoints.
const TRACED: [(&str, &str); 2] = [("empty_dequeue", "qdisc_dequeue"), ("empty_dropped", "kfree_skb")];

/// Attaches the programs to an interface of this thread's network namespace, until the result is dropped.
pub fn attach(device: &str) -> Result<Ebpf> {
    let mut bpf = Ebpf::load(PROGRAMS)?;
    let types = Btf::from_sys_fs()?;
    for (name, tracepoint) in TRACED {
        let program: &mut BtfTracePoint = bpf.program_mut(name).context("it was compiled")?.try_into()?;
        program.load(tracepoint, &types)?;
        program.attach()?;
    }
    let stamp: &mut SchedClassifier = bpf.program_mut("empty_stamp").context("it was compiled")?.try_into()?;
    stamp.load()?;
    let options = TcAttachOptions::TcxOrder(LinkOrder::default());
    stamp.attach_with_options(device, TcAttachType::Egress, options)?;
    Ok(bpf)
}
