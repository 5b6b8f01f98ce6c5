//! Nanoseconds per frame: this crate's parser against etherparse, on the same frames, to the same keys.
//!
//! `cargo bench -p queuescope-wire --bench parse` prints the table of `docs/explanation/parsing.md`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::captures::{self, Record};
use etherparse::{PacketBuilder, TcpHeader, VlanId};
use queuescope_wire::FlowKey;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::hint::black_box;
use std::time::Instant;

/// Frames in one run, and runs of each parser, which alternate.
const FRAMES: usize = 100_000;
const RUNS: usize = 41;

fn main() {
    println!("nanoseconds per frame: fastest run (median run)");
    println!("{:<30} {:>6} {:>16} {:>16} {:>7}", "frames", "bytes", "etherparse", "queuescope", "ratio");
    for (name, frames) in synthetic().into_iter().chain(captured()) {
        compare(name, &frames);
    }
}

fn compare(name: &str, frames: &[Record]) {
    let frames: Vec<&Record> = frames.iter().cycle().take(FRAMES).collect();
    let mut parser = Parser::new(Tunnel::Outer);
    let mut own = || {
        let mut sum = 0;
        for frame in &frames {
            let parsed = parser.parse(black_box(LinkType::Ethernet), frame.original_len, black_box(&frame.data));
            sum ^= fold(&parsed.key) ^ u128::from(parsed.size);
        }
        sum
    };
    let mut rival = || {
        let mut sum = 0;
        for frame in &frames {
            sum ^= fold(&common::reference::key(black_box(&frame.data))) ^ u128::from(frame.original_len);
        }
        sum
    };
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..RUNS {
        times[0].push(time(&mut rival));
        times[1].push(time(&mut own));
    }
    let [(rival, rival_median), (own, own_median)] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        (times[0], times[RUNS / 2])
    });
    let mean = frames.iter().map(|frame| frame.data.len()).sum::<usize>() / frames.len();
    let shown = |fastest: f64, median: f64| format!("{fastest:.1} ({median:.1})");
    let (left, right) = (shown(rival, rival_median), shown(own, own_median));
    println!("{name:<30} {mean:>6} {left:>16} {right:>16} {:>6.1}x", rival / own);
}

/// Nanoseconds per frame of one run.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn time(run: &mut impl FnMut() -> u128) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_nanos() as f64 / FRAMES as f64
}

/// Uses every field of a key, so that the compiler cannot remove its computation.
fn fold(key: &FlowKey) -> u128 {
    let small = [key.src_port, key.dst_port, key.vlan, key.ethertype, key.protocol.into(), key.dscp.into()];
    small.iter().fold(key.src ^ key.dst.rotate_left(32), |sum, &field| sum ^ u128::from(field))
}

/// A thousand frames each, from and to different addresses and ports.
fn synthetic() -> Vec<(&'static str, Vec<Record>)> {
    let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let v4 = |n: u16| ([10, 0, (n >> 8) as u8, n as u8], [192, 168, 0, n as u8]);
    let v6 = |n: u16| {
        let address = |last: u16| {
            let mut address = [0x20; 16];
            address[14..].copy_from_slice(&last.to_be_bytes());
            address
        };
        (address(n), address(!n))
    };
    let tcp = |n: u16| TcpHeader::new(1024 + n, 443, 1, 65_535);
    let record = |write: &dyn Fn(u16, &mut Vec<u8>)| {
        let frame = |n| {
            let mut data = Vec::new();
            write(n, &mut data);
            Record { original_len: data.len() as u32, data }
        };
        (0..1000).map(frame).collect::<Vec<_>>()
    };
    let payload = [0; 400];
    vec![
        (
            "Ethernet, IPv4, TCP",
            record(&|n, data| {
                ethernet().ipv4(v4(n).0, v4(n).1, 64).tcp_header(tcp(n)).write(data, &payload).unwrap();
            }),
        ),
        (
            "Ethernet, IPv6, UDP",
            record(&|n, data| ethernet().ipv6(v6(n).0, v6(n).1, 64).udp(1024 + n, 443).write(data, &payload).unwrap()),
        ),
        (
            "Ethernet, VLAN, IPv4, UDP",
            record(&|n, data| {
                let vlan = VlanId::try_new(n).unwrap();
                ethernet()
                    .single_vlan(vlan)
                    .ipv4(v4(n).0, v4(n).1, 64)
                    .udp(1024 + n, 443)
                    .write(data, &payload)
                    .unwrap();
            }),
        ),
    ]
}

/// Real captures of Ethernet, if they are available.
fn captured() -> Vec<(&'static str, Vec<Record>)> {
    let Some(directory) = captures::directory() else { return Vec::new() };
    let files = [
        ("mix-a-ndpi (8 thousand flows)", "pcap/mix-a-ndpi.pcap.xz"),
        ("l4s-skype-fqcodel", "pcap/l4s-skype-fqcodel.pcap.xz"),
        ("libtrace-ip-in-mpls", "pcap/libtrace-ip-in-mpls.pcap.xz"),
        ("ndpi-firefox-full", "pcap/ndpi-firefox-full.pcap.xz"),
    ];
    files.into_iter().filter_map(|(name, file)| Some((name, captures::read(&directory.join(file))?.1))).collect()
}
