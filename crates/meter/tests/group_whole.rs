//! Groups of whole bursts, from packets in order of departure, compared with a simple reference: every source, destination, prefix and port
//! with a tenth of the bytes or packets must be named, and no share may be wrong by more than its stated error.
//!
//! `QUEUESCOPE_BURSTS=1000` makes more bursts than `make test` does.

#![allow(clippy::disallowed_methods, reason = "a test may read files and the environment")]

use crate::made;
use crate::reference;

use queuescope_meter::{Amount, BurstFlowSums, GroupParams, Grouped, Sampled, group};
use queuescope_pcap::CaptureReader;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{FlowTable, Granularity, Nanos};
use reference::{Packet, Truth, Verdict};
use std::path::Path;

/// The groups of a burst, as in an analysis: flows that were idle for `queue` packets lose their ids.
fn grouped(packets: &[Packet], queue: u64, granularity: Granularity) -> Grouped {
    let (mut table, mut blame) = (FlowTable::with_limit(1 << 14), BurstFlowSums::new(1 << 14));
    blame.open();
    let mut total = Amount::default();
    for (now, (key, size)) in packets.iter().enumerate() {
        let now = now as u64;
        if table.is_full() {
            table.expire(Nanos(now.saturating_sub(queue)), |flow, key| blame.forget(flow, key));
        }
        let (flow, _) = table.intern(key, key.digest(), Nanos(now));
        blame.add(flow, *size, 0);
        total.bytes += u64::from(*size);
        total.packets += 1;
    }
    let flows = blame.close(|flow| *table.key(flow));
    let sampled = flows.sampled().map(|(stand_for, unit)| Sampled { stand_for, unit, total });
    group(flows.flows(), sampled, granularity, &GroupParams::default())
}

#[derive(Default)]
struct Totals {
    bursts: u64,
    sampled: u64,
    properties: usize,
    shares: usize,
    error: f64,
    off: f64,
    faults: Vec<String>,
}

impl Totals {
    fn add(&mut self, what: &str, packets: &[Packet], queue: u64) {
        self.add_by(Granularity::FiveTuple, what, packets, queue);
    }

    /// The same at another granularity.
    fn add_by(&mut self, granularity: Granularity, what: &str, packets: &[Packet], queue: u64) {
        let packets: Vec<_> = packets.iter().map(|(key, size)| (granularity.project(key), *size)).collect();
        let truth = Truth::of(&packets, granularity == Granularity::Connection);
        let grouped = grouped(&packets, queue, granularity);
        let verdict: Verdict = truth.judge(&grouped);
        self.bursts += 1;
        self.sampled += u64::from(verdict.error > 0.0);
        self.properties += verdict.properties;
        self.shares += verdict.shares;
        self.error = self.error.max(verdict.error);
        self.off = self.off.max(verdict.off);
        let faults = verdict.unnamed.into_iter().map(|unnamed| format!("{what}: {unnamed} is not named"));
        self.faults.extend(faults.chain(verdict.wrong.into_iter().map(|wrong| format!("{what}: {wrong}"))));
    }

    fn report(&self, what: &str) {
        println!(
            "{what}: {} bursts, {} of them sampled; {} properties with a tenth; {} shares, at most {:.3} % off, at most \
             {:.3} % stated",
            self.bursts,
            self.sampled,
            self.properties,
            self.shares,
            self.off * 100.0,
            self.error * 100.0
        );
        assert!(self.faults.is_empty(), "{} faults, the first: {}", self.faults.len(), self.faults[0]);
    }
}

#[test]
fn every_group_of_made_bursts_is_named() {
    let bursts =
        std::env::var("QUEUESCOPE_BURSTS").map_or(30, |text| text.parse().expect("QUEUESCOPE_BURSTS is a number"));
    let mut totals = Totals::default();
    for seed in 0..bursts {
        let made = made::burst(seed);
        totals.add(&format!("burst {seed}"), &made.packets, made.queue);
    }
    totals.report("made bursts");
    assert!(totals.sampled > 0 && totals.properties as u64 > bursts);
}

/// A connection has the properties of both of its ends.
#[test]
fn every_group_of_made_connections_is_named() {
    let bursts =
        std::env::var("QUEUESCOPE_BURSTS").map_or(20, |text| text.parse().expect("QUEUESCOPE_BURSTS is a number"));
    let mut totals = Totals::default();
    for seed in 0..bursts {
        // Hosts with connections among themselves are at either end.
        let mut packets = made::burst(seed).packets;
        packets.extend(made::peers(seed));
        totals.add_by(Granularity::Connection, &format!("burst {seed}"), &packets, 1_000);
    }
    totals.report("made connections");
    assert!(totals.properties as u64 > bursts);
}

/// Most ids of the burst are released before it ends, so that a sample of the flows is kept.
#[test]
fn a_burst_of_very_many_flows_is_described_by_a_sample() {
    let mut totals = Totals::default();
    let packets = made::scan_beside(200_000, 1);
    totals.add("scan", &packets, 500);
    assert_eq!(totals.sampled, 1);
    totals.report("a scan of 200 000");
}

/// Parts of real captures, each treated as a burst.
#[test]
fn every_group_of_captures_is_named() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut totals = Totals::default();
    for name in [
        "data/demo.pcap.xz",
        "../shared/data/pcap/zeek-echo-1000flows.pcap.xz",
        "../shared/data/pcap/auckland2-2000-part1.pcap.xz",
        "../shared/data/pcap/mix-a-ndpi.pcap.xz",
    ] {
        let path = root.join(name);
        if !path.exists() {
            println!("skipped: every_group_of_captures_is_named: there is no {name}");
            continue;
        }
        let packets = packets(&path);
        for length in [100, 1_000, 10_000, packets.len()] {
            // Only some of the short ones, to limit the time.
            for (number, burst) in packets.chunks(length).step_by(1 + packets.len() / length / 100).enumerate() {
                totals.add(&format!("{name}, burst {number} of {length} packets"), burst, 1_000);
            }
        }
    }
    totals.report("stretches of captures");
}

fn packets(path: &Path) -> Vec<Packet> {
    let (mut reader, mut parser) = (CaptureReader::open(path).unwrap(), Parser::new(Tunnel::Outer));
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        packets.push((Granularity::FiveTuple.project(&frame.key), frame.size));
    }
    packets
}
