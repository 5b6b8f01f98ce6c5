//! Tests in pcap's words find the packets that tcpdump finds, if it is installed.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use queuescope_log::packet::{self, Captured};
use queuescope_log::{Filter, NoAggregates, Scope};
use queuescope_wire::Nanos;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::io::Write;
use std::process::{Command, Stdio};

/// Filters that both read alike; `docs/reference/expressions.md` lists the differences.
const FILTERS: &[&str] = &[
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "ip",
    "ip6",
    "arp",
    "not tcp",
    "port 443",
    "src port 443",
    "dst port 53",
    "port 80 or 443",
    "tcp port (80 or 443)",
    "portrange 1-1023",
    "dst portrange 1024-65535",
    "src or dst port 80",
    "udp and not port 53",
    "tcp port 443 and net 10.0.0.0/8",
    "net 10",
    "net 192.168.1",
    "src net 10.1",
    "host 10.1.0.7",
    "src 10.1.0.7",
    "src and dst net 10",
    "src net 10.1.0.0 mask 255.255.255.0",
    "ip6 host 2001:db8::7",
    "dst net 2001:db8::/32",
    "ip src net 192.168.0.0/16",
    "less 60",
    "greater 100",
    "tcp and greater 200",
    "less 60 or greater 500",
    "broadcast",
    "multicast",
    "ether multicast",
    "ip6 multicast",
    "ether proto 0x0806",
    r"ether proto \ip",
    "ip proto 17",
    "ip6 proto 6",
    r"ip proto \tcp",
    "proto 6",
    "ether host 02:00:00:00:00:07",
    "ether src 02:00:00:00:00:07",
    "(tcp or udp) and port 80",
    "not port 80 and not arp",
    "len <= 100",
    "len > 500 and udp",
];

/// A frame of a kind that tcpdump's filters can parse, with values that often match.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let port = || prop::sample::select(vec![22, 53, 80, 443, 1023, 1024, 8080, 50_000]);
    let low = || prop::sample::select(vec![1, 7, 9]);
    let net = || prop::sample::select(vec![[10, 1, 0], [10, 2, 0], [192, 168, 1], [172, 16, 0]]);
    let mac = || {
        let own = [2, 0, 0, 0, 0, 7];
        prop::sample::select(vec![own, [2, 0, 0, 0, 0, 8], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1]])
    };
    let ends = ((net(), low()), (net(), low()), (mac(), mac()));
    let shape = (0..7u8, any::<bool>(), prop::sample::select(vec![0, 1, 40, 100, 600]));
    (ends, port(), port(), shape).prop_map(|(ends, src_port, dst_port, (kind, group, payload))| {
        let ((src_net, src), (dst_net, dst), (src_mac, dst_mac)) = ends;
        let link = PacketBuilder::ethernet2(src_mac, dst_mac);
        let payload = vec![0; payload];
        let mut bytes = Vec::new();
        let v4 = |[a, b, c]: [u8; 3], d| [a, b, c, d];
        let v6 = |prefix: [u8; 2], last| {
            let mut address = [0; 16];
            address[..2].copy_from_slice(&prefix);
            (address[2], address[3], address[15]) = (0x0d, 0xb8, last);
            address
        };
        let (from4, to4) = (v4(src_net, src), v4(dst_net, dst));
        let (from6, to6) = (v6([0x20, 1], src), v6(if group { [0xff, 2] } else { [0x20, 1] }, dst));
        match kind {
            0 => link.ipv4(from4, to4, 64).tcp(src_port, dst_port, 1, 1000).write(&mut bytes, &payload),
            1 => link.ipv4(from4, to4, 64).udp(src_port, dst_port).write(&mut bytes, &payload),
            2 => link.ipv4(from4, to4, 64).icmpv4_echo_request(1, 2).write(&mut bytes, &payload),
            3 => link.ipv6(from6, to6, 64).tcp(src_port, dst_port, 1, 1000).write(&mut bytes, &payload),
            4 => link.ipv6(from6, to6, 64).udp(src_port, dst_port).write(&mut bytes, &payload),
            5 => link.ipv6(from6, to6, 64).icmpv6_echo_request(1, 2).write(&mut bytes, &payload),
            _ => {
                bytes.extend([dst_mac, src_mac].concat());
                bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
                bytes.extend([0; 20]);
                Ok(())
            }
        }
        .expect("it is written to memory");
        bytes
    })
}

/// A capture file of these frames.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [1, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// How many frames of a capture tcpdump passes, or why it did not run.
fn tcpdump(capture: &[u8], filter: &str) -> Result<usize, String> {
    let command = Command::new("tcpdump")
        .args(["-r", "-", "-w", "-", filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = command.map_err(|error| error.to_string())?;
    // The output is smaller than the input, which fits into the pipes' buffers.
    let sent = child.stdin.take().map(|mut stdin| stdin.write_all(capture));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() || !matches!(sent, Some(Ok(()))) {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let (mut at, mut count) = (24, 0);
    while let Some(length) = output.stdout.get(at + 8..at + 12).and_then(|bytes| bytes.first_chunk()) {
        at += 16 + u32::from_le_bytes(*length) as usize;
        count += 1;
    }
    Ok(count)
}

#[test]
fn words_of_pcap_find_what_tcpdump_finds() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("skipped: words_of_pcap_find_what_tcpdump_finds: tcpdump is not installed");
        return;
    }
    let frames = prop::collection::vec(frame(), 250).new_tree(&mut TestRunner::deterministic());
    let frames = frames.expect("nothing is rejected").current();
    let capture = capture(&frames);
    let scope = Scope::new(packet::schema());
    let mut parser = Parser::new(Tunnel::Outer);
    let records: Vec<_> = frames
        .iter()
        .map(|data| {
            let (link, original_len) = (LinkType::Ethernet, data.len() as u32);
            let frame = parser.parse(link, original_len, data);
            let mut record = [0; packet::SIZE];
            packet::fill(&mut record, &Captured { at: Nanos(1), link, original_len, data }, &frame, None);
            record
        })
        .collect();
    let mut found = 0;
    for text in FILTERS {
        let expr = scope.parse(text).unwrap_or_else(|error| panic!("{error}"));
        let filter = Filter::new(&expr.dnf(&scope).expect("it is small"), packet::schema());
        let ours = records.iter().filter(|record| filter.matches(*record, &NoAggregates)).count();
        assert_eq!(Ok(ours), tcpdump(&capture, text), "{text}");
        found += usize::from(ours > 0 && ours < frames.len());
    }
    assert_eq!(found, FILTERS.len(), "each filter finds some and not all");
}
