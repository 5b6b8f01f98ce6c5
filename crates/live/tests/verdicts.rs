//! What left of a packet's flow while it waited, according to the probe, beside the exact bytes, which follow from all reports. As root.

#![cfg(target_os = "linux")]

use crate::common::{Ends, settled};
use crate::qdisc::set_segment;
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, include_bytes_aligned};
use queuescope_live::{Counters, Headers, Probe, ProbeParams};
use queuescope_wire::Granularity;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::collections::BTreeMap;
use std::net::UdpSocket;

/// A program that overwrites what some qdiscs overwrite of a packet's note.
static OVERWRITING: &[u8] = include_bytes_aligned!("../bpf/overwriting.bpf.o");

/// The shares at which a flow may count as contributing.
const ALPHAS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];
/// Of the packets judged as contributing, and of those that are, this share must be right and found, at each alpha.
const PRECISION: f64 = 0.97;
const RECALL: f64 = 0.97;
/// The largest share of packets that get no verdict, because what is beside the probe overwrote their notes.
const UNJUDGED: f64 = 0.1;

/// The thousandths of the packets that the flows before the second, the third and so on send together; the last sends the rest.
const PARTS: [u64; 9] = [340, 560, 680, 790, 850, 910, 945, 970, 988];

/// Payload of a packet on the wire.
const PAYLOAD: usize = 1400;

/// A packet that the probe reported.
#[derive(Debug, Clone, Copy)]
struct PacketReport {
    enqueued: u64,
    dequeued: u64,
    digest: u64,
    bytes: u32,
    packets: u32,
    flow: u64,
    all: u64,
}

/// Bytes that had left by a time.
#[derive(Default)]
struct Sums(Vec<(u64, u64)>);

impl Sums {
    fn add(&mut self, report: &PacketReport) {
        let before = self.0.last().map_or(0, |(_, sum)| *sum);
        self.0.push((report.dequeued, before + u64::from(report.bytes)));
    }

    fn before(&self, at: u64) -> u64 {
        self.0.partition_point(|(time, _)| *time < at).checked_sub(1).map_or(0, |place| self.0[place].1)
    }

    fn meanwhile(&self, report: &PacketReport) -> u64 {
        self.before(report.dequeued) - self.before(report.enqueued)
    }
}

/// Packets with several segments each, of flows whose shares are near the values of alpha, until a thousand have waited for longer than tau.
fn measured(ends: &Ends, segments: usize, beside: Beside) -> (Vec<PacketReport>, Counters) {
    ends.near.run(move || {
        let params = ProbeParams { all: true, headers: Headers::OfFlow, ..ProbeParams::default() };
        let attach = || Probe::attach("near0", params).unwrap_or_else(|error| panic!("{error}"));
        // The program that was attached first runs first.
        let before = (beside == Beside::ProbeBefore).then(attach);
        let mut probe = attach();
        let after = (beside == Beside::ProbeAfter).then(attach);
        let mut bpf = (beside == Beside::Overwriting).then(|| Ebpf::load(OVERWRITING).expect("it is a program"));
        if let Some(bpf) = &mut bpf {
            let program = bpf.program_mut("overwriting").expect("it is there");
            let program: &mut SchedClassifier = program.try_into().expect("it is one");
            program.load().expect("it may run");
            let behind = TcAttachOptions::TcxOrder(LinkOrder::default());
            program.attach_with_options("near0", TcAttachType::Egress, behind).expect("there is room");
        }
        let sockets: Vec<_> = (0..10)
            .map(|_| {
                let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
                set_segment(&socket, PAYLOAD as i32);
                socket
            })
            .collect();
        let mut parser = Parser::new(Tunnel::Outer);
        let mut reports = Vec::new();
        let mut take = |probe: &mut Probe| {
            let read = probe.left(|left| {
                // Headers are those of an earlier packet of the flow, unless it is the first.
                let parsed = parser.parse(LinkType::Ethernet, left.bytes, left.headers);
                assert_eq!(left.digest, Granularity::FiveTuple.project(&parsed.key).digest(), "{:x?}", left.headers);
                reports.push(PacketReport {
                    enqueued: left.enqueued.0,
                    dequeued: left.dequeued.0,
                    digest: left.digest,
                    bytes: left.bytes,
                    packets: left.packets,
                    flow: left.flow,
                    all: left.all,
                });
            });
            read.expect("it is there")
        };
        let mut counted = Counters::default();
        for n in 0..100_000usize {
            let chance = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let socket = PARTS.partition_point(|part| (part << 32) / 1000 <= chance);
            // Nobody answers; errors that the far end reports come later.
            let _ = sockets[socket].send_to(&vec![0; PAYLOAD * segments], "10.9.0.2:9");
            if n % 20 == 0 {
                take(&mut probe);
                counted = probe.counters().expect("it is there");
                if counted.congested > 1000 * if segments > 1 { 15 } else { 1 } {
                    break;
                }
            }
        }
        assert!(counted.congested > 1000, "{counted:?}");
        settled(&mut probe, |probe| _ = take(probe));
        probe.detach().expect("it can");
        while take(&mut probe) > 0 {}
        drop((before, after));
        let counted = probe.counters().expect("they stay");
        (reports, counted)
    })
}

/// Compares the verdicts at each alpha, and the estimates, with the exact ones.
fn judge(what: &str, mut reports: Vec<PacketReport>, counted: &Counters) {
    reports.sort_by_key(|report| report.dequeued);
    let (mut all, mut flows) = (Sums::default(), BTreeMap::<u64, Sums>::new());
    for report in &reports {
        all.add(report);
        flows.entry(report.digest).or_default().add(report);
    }
    let tau = ProbeParams::default().tau;
    let waited: Vec<_> = reports.iter().filter(|report| Nanos(report.dequeued - report.enqueued) > tau).collect();
    let mut exact = 0;
    for report in &waited {
        exact +=
            u32::from(flows[&report.digest].meanwhile(report) == report.flow && all.meanwhile(report) == report.all);
    }
    println!("{what}: {} reports, {} congested, {exact} exact, {counted:?}", reports.len(), waited.len());
    // Packets without a verdict are counted, and there are few; the others have the right one.
    let unjudged = counted.unjudged as f64;
    assert!(unjudged <= UNJUDGED * waited.len() as f64, "{what}: {counted:?}");
    for alpha in ALPHAS {
        let (mut right, mut wrong, mut missed) = (0.0, 0.0, 0.0);
        for report in &waited {
            let is = flows[&report.digest].meanwhile(report) as f64 > alpha * all.meanwhile(report) as f64;
            let is_estimated = report.flow as f64 > alpha * report.all as f64;
            match (is, is_estimated) {
                (true, true) => right += 1.0,
                (false, true) => wrong += 1.0,
                (true, false) => missed += 1.0,
                (false, false) => {}
            }
        }
        let judged = f64::max(missed - unjudged, 0.0);
        let (precision, recall) = (right / f64::max(right + wrong, 1.0), right / f64::max(right + judged, 1.0));
        println!("{what}: alpha {alpha}: {right} are, precision {precision:.4}, recall {recall:.4}");
        assert!(right + missed > 30.0, "{what}: alpha {alpha}: {right} {missed}");
        let is_right = precision >= PRECISION && recall >= RECALL;
        assert!(is_right, "{what}: alpha {alpha}: precision {precision} recall {recall}, {counted:?}");
    }
    // A packet of another processor may leave just when one is stamped.
    assert!(f64::from(exact) >= 0.9 * waited.len() as f64, "{what}: {exact} of {}", waited.len());
}

/// What else is before the queue: a program that overwrites notes as some qdiscs do, or another probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Overwriting,
    ProbeBefore,
    ProbeAfter,
}

/// A name, a queue, segments of each packet sent, what else is before the queue, and segments of the reported packets.
const CASES: [(&str, &str, usize, Beside, u32); 6] = [
    ("packets", SLOW, 1, Beside::Nothing, 1),
    ("super-packets", "tbf rate 300mbit burst 100kb limit 4mb", 30, Beside::Nothing, 30),
    ("super-packets that the qdisc splits", "tbf rate 100mbit burst 10kb limit 4mb", 30, Beside::Nothing, 1),
    ("packets whose notes are overwritten", SLOW, 1, Beside::Overwriting, 1),
    ("packets that another probe stamped", SLOW, 1, Beside::ProbeBefore, 1),
    ("packets that another probe finds stamped", SLOW, 1, Beside::ProbeAfter, 1),
];

const SLOW: &str = "tbf rate 50mbit burst 20kb limit 2mb";

#[test]
fn verdicts_are_those_of_the_exact_bytes() {
    let test = "verdicts_are_those_of_the_exact_bytes";
    for (what, queue, segments, beside, packets) in CASES {
        let ends = match Ends::new(queue) {
            Ok(ends) => ends,
            Err(why) => return println!("skipped: {test}: {why}"),
        };
        let (reports, counted) = measured(&ends, segments, beside);
        let alike = reports.iter().filter(|report| report.packets == packets).count();
        assert!(alike * 10 > reports.len() * 9, "{what}: {alike} of {}", reports.len());
        judge(what, reports, &counted);
    }
}
