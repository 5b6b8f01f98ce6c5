//! The cost for each packet of a burst of keeping its flows, and of finding what they have in common:
//! `cargo run --release -p queuescope-meter --example burst_cost [CAPTURE]`. It measures processor time (Linux), so that other programs
//! matter less.

#[path = "../tests/group/made.rs"]
#[allow(dead_code, reason = "the tests make more")]
mod made;
#[path = "../tests/group/random.rs"]
mod random;

use queuescope_meter::{Amount, BurstFlowSums, GroupParams, Sampled, group};
use queuescope_pcap::CaptureReader;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{FlowId, FlowKey, FlowTable, Granularity, Nanos};
use std::time::Duration;

/// A packet of a burst: its flow and its size in bytes.
pub type Packet = (FlowKey, u32);

mod reference {
    pub use super::Packet;
}

/// A flow is idle after this number of packets.
const QUEUE: u64 = 1_000;

// An example is a command, and measures.
#[allow(clippy::disallowed_methods)]
fn main() {
    println!("burst                         packets    flows  kept, ns/packet  grouped, ns/packet");
    for (flows, packets) in [(10, 100), (92, 500), (1_000, 6_000), (1_000, 100_000), (10_000, 100_000)] {
        let random = &mut random::Random(1);
        let background = made::scan_beside(flows, 7);
        let burst: Vec<_> = (0..packets).map(|_| background[random.below(flows) as usize]).collect();
        cost("many packets a flow", &burst);
    }
    for probes in [4_000, 30_000, 100_000, 1_000_000] {
        cost("a scan beside transfers", &made::scan_beside(probes, 1));
    }
    if let Some(path) = std::env::args().nth(1) {
        let (mut reader, mut parser) = (CaptureReader::open(path.as_ref()).unwrap(), Parser::new(Tunnel::Outer));
        let mut packets = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
            packets.push((Granularity::FiveTuple.project(&frame.key), frame.size));
        }
        for length in [500, 5_000, 50_000] {
            cost("of the capture", &packets[packets.len() / 2 - length / 2..][..length]);
        }
    }
}

/// Repeats the same burst for a while.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn cost(what: &str, packets: &[Packet]) {
    let (mut alone, mut kept, mut grouped) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut rounds, mut flows) = (0, 0);
    let mut blame = BurstFlowSums::new(1 << 14);
    while kept + grouped < Duration::from_millis(200) && rounds < 100_000 {
        let start = on_processor();
        std::hint::black_box(pass(packets, |_, _| {}, |_, _| {}));
        alone += on_processor() - start;
        let start = on_processor();
        blame.open();
        let shared = std::cell::RefCell::new(&mut blame);
        let add = |flow, size| {
            shared.borrow_mut().add(flow, size, 0);
        };
        let table = pass(packets, add, |flow, key| shared.borrow_mut().forget(flow, key));
        let (time, rows) = close(&mut blame, &table, packets, &mut flows);
        kept += (on_processor() - start).saturating_sub(time);
        grouped += time;
        assert!(rows < 100);
        rounds += 1;
    }
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(rounds) / packets.len() as f64;
    let (kept, grouped) = (each(kept.saturating_sub(alone)), each(grouped));
    println!("{what:27}  {:8}  {flows:7}  {kept:15.1}  {grouped:18.1}", packets.len());
}

/// Passes the packets of a burst, with the ids of their flows.
fn pass(packets: &[Packet], add: impl Fn(FlowId, u32), forget: impl Fn(FlowId, &FlowKey)) -> FlowTable<FlowKey> {
    let mut table = FlowTable::with_limit(1 << 14);
    for (now, (key, size)) in packets.iter().enumerate() {
        let now = now as u64;
        if table.is_full() {
            table.expire(Nanos(now.saturating_sub(QUEUE)), &forget);
        }
        let (flow, _) = table.intern(key, key.digest(), Nanos(now));
        add(flow, *size);
    }
    table
}

/// Ends the burst; returns the time to group its flows, and the number of groups.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn close(
    blame: &mut BurstFlowSums<FlowKey>,
    table: &FlowTable<FlowKey>,
    packets: &[Packet],
    count: &mut u64,
) -> (Duration, usize) {
    let flows = blame.close(|flow| *table.key(flow));
    let start = on_processor();
    let bytes = packets.iter().map(|(_, size)| u64::from(*size)).sum();
    let total = Amount { bytes, packets: packets.len() as u64 };
    let sampled = flows.sampled().map(|(stand_for, unit)| Sampled { stand_for, unit, total });
    let found = group(flows.flows(), sampled, Granularity::FiveTuple, &GroupParams::default());
    let time = on_processor().saturating_sub(start);
    *count = flows.heaviest(256).flows;
    (time, found.rows.len())
}

/// The processor time of this thread so far.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0))
}
