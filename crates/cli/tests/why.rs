//! `why`: the culprits of a packet, a flow or a time; and what `analyze` reports on the worst packet and on groups.

#![allow(clippy::disallowed_methods, reason = "tests write what the program reads")]

use crate::common::{Report, file, list, number, printed, run};
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use serde_json::Value;
use std::path::Path;

/// The worked example of docs/explanation/culprits.md: 8 Mb/s; flow A sends four packets at 0 ms, B one each millisecond from 1 ms, V one.
const EXAMPLE: &str = "flow,size,enqueued,dequeued,class\n\
    A,1000,0,0,0\nA,1000,0,1000000,0\nA,1000,0,2000000,0\nA,1000,0,3000000,0\n\
    B,1000,1000000,4000000,0\nB,1000,2000000,5000000,0\nB,1000,3000000,6000000,1\nB,1000,4000000,7000000,0\n\
    V,1000,5000000,8000000,0\n";

fn example(words: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.csv");
    std::fs::write(&path, EXAMPLE).unwrap();
    json(&format!("why --json --departures {words}"), &path)
}

fn json(words: &str, path: &Path) -> Value {
    let text = printed(run(words, &[path]), 0);
    assert_eq!(text.lines().count(), 1);
    serde_json::from_str(&text).unwrap()
}

/// The flows of one kind at the first granularity, with their bytes.
fn flows(answer: &Value, kind: &str) -> Vec<(String, u64)> {
    let flows = list(answer, &format!("/{kind}/by/0/flows"));
    flows.iter().map(|part| (part["flow"].as_str().unwrap().to_owned(), number(part, "/bytes"))).collect()
}

fn named(parts: &[(&str, u64)]) -> Vec<(String, u64)> {
    parts.iter().map(|(flow, bytes)| ((*flow).to_owned(), *bytes)).collect()
}

#[test]
fn the_worked_example_is_right() {
    for words in ["--packet 9", "--flow V", "--flow v --at 5ms..9ms"] {
        let answer = example(words);
        assert_eq!(number(&answer, "/victim/delay_ns"), 3_000_000, "{words}");
        assert_eq!(flows(&answer, "direct"), named(&[("B", 3_000)]), "{words}");
        assert_eq!(flows(&answer, "indirect"), named(&[("A", 4_000), ("B", 1_000)]), "{words}");
        assert_eq!(flows(&answer, "original"), named(&[("A", 3_000)]), "{words}");
        assert_eq!((number(&answer, "/depth_bytes"), number(&answer, "/since_ns")), (3_000, 0), "{words}");
    }
    let answer = example("--packet 9");
    assert_eq!(list(&answer, "/direct/classes").len(), 2, "one of B's packets was of another class");
}

#[test]
fn a_range_and_a_moment_have_culprits() {
    let stretch = example("--at 1ms..3ms");
    assert_eq!(flows(&stretch, "direct"), named(&[("A", 2_000)]));
    assert_eq!(flows(&stretch, "indirect"), named(&[("A", 1_000)]));
    assert_eq!(flows(&stretch, "original"), named(&[("A", 3_000), ("B", 1_000)]));
    // A packet that leaves at 5 ms is still there when another arrives then.
    let moment = example("--at 5ms");
    assert!(moment["victim"].is_null());
    assert_eq!(flows(&moment, "direct"), named(&[("B", 3_000), ("V", 1_000)]));
    assert_eq!(flows(&moment, "original"), named(&[("A", 3_000), ("V", 1_000)]));
    let later = example("--at 1s");
    assert_eq!((number(&later, "/depth_packets"), number(&later, "/direct/bytes")), (0, 0));
}

#[test]
fn questions_without_an_answer_are_errors() {
    let demo = file("data/demo.pcap.xz");
    let refused = |words: &str, message: &str| {
        let output = run(&format!("why --rate 20mbps {words}"), &[&demo]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(message), "{words}: {errors}");
        assert!(!errors.contains("panicked"));
    };
    refused("", "required");
    refused("--packet 0", "0");
    refused("--packet 18950", "there is no packet 18950; it has 18949");
    refused("--packet 1 --at 1s", "cannot be used with");
    refused("--at 2s..1s", "is an empty time range");
    refused("--flow 192.0.2.99", "no flow has a name");
    refused("--flow tcp", "name one:");
    refused("--flow 198.16.2.132:14017 --at 7s..7.1s", "flows have");
    refused("--flow 40.127.99.80 --at 7s", "is a moment: write --at FROM..TO");
    refused(
        "--limit 100bytes --by dst --flow 198.16.2.132 --at 4s..5s",
        "were dropped: choose one of them with --packet",
    );
}

#[test]
fn a_frame_keeps_its_number_when_frames_are_split() {
    let demo = file("data/demo.pcap.xz");
    for number in [1, 7_229, 18_949] {
        let answer = json(&format!("why --json --rate 20mbps --split-gso --packet {number}"), &demo);
        assert_eq!(answer.pointer("/victim/packet").unwrap(), number);
    }
}

#[test]
fn a_dropped_packet_has_culprits() {
    let demo = file("data/demo.pcap.xz");
    let report = Report::analyze("--rate 10mbps --limit 20000bytes --tau 5ms", &[&demo]);
    assert_eq!(report.total("/totals/drops/overlimit"), 3_815);
    // Find the first packet that is dropped.
    let dropped = (7_000..8_000).find_map(|packet| {
        let answer = json(&format!("why --json --rate 10mbps --limit 20000bytes --packet {packet}"), &demo);
        answer["victim"]["delay_ns"].is_null().then_some(answer)
    });
    let answer = dropped.expect("a packet is dropped there");
    let size = number(&answer, "/victim/bytes");
    let depth = number(&answer, "/depth_bytes");
    assert!(depth <= 20_000 && depth + size > 20_000, "{depth} and {size}");
    assert_eq!(number(&answer, "/direct/bytes"), depth);
    assert_eq!(number(&answer, "/original/bytes"), depth);
}

#[test]
fn the_report_on_the_worst_packet_agrees_with_why() {
    let demo = file("data/demo.pcap.xz");
    let report = Report::analyze("--rate 20mbps --tau 5ms", &[&demo]);
    let worst = report.bursts.iter().max_by_key(|burst| number(burst, "/peak_delay_ns")).unwrap();
    let (from, to) = (number(worst, "/peak_at_ns"), number(worst, "/peak_at_ns") + 1);
    let moment = json(&format!("why --json --rate 20mbps --at {from}ns"), &demo);
    let stretch = json(&format!("why --json --rate 20mbps --at {from}ns..{to}ns"), &demo);
    assert_eq!(number(&stretch, "/victim/delay_ns"), number(worst, "/peak_delay_ns"));
    assert_eq!(number(worst, "/worst/since_ns"), number(&moment, "/since_ns"));
    for kind in ["direct", "indirect", "original"] {
        let estimate = worst.pointer(&format!("/worst/{kind}")).unwrap();
        let (found, exact) = (number(estimate, "/bytes") as f64, number(&moment, &format!("/{kind}/bytes")) as f64);
        assert!((found - exact).abs() < 0.05 * exact + 3_000.0, "{kind}: {found} reported, {exact} exactly");
        let first = estimate.pointer("/by/0/flows/0/flow").unwrap();
        assert_eq!(first, moment.pointer(&format!("/{kind}/by/0/flows/0/flow")).unwrap(), "{kind}");
    }
}

/// 41 hosts send three packets each to one port, at the same time. Two other hosts send a little elsewhere.
fn incast(path: &Path) {
    let mut writer = PcapWriter::new(std::fs::File::create(path).unwrap(), 1, 65_535).unwrap();
    let mut time = 1_000_000_000u64;
    for round in 0..200u32 {
        for host in 0..43u32 {
            let (dst, port) = if host < 41 { ([10, 0, 0, 7], 50_010) } else { ([10, 0, 0, 9], 443 + host as u16) };
            // The other hosts send in every third round only.
            if host >= 41 && round % 3 != 0 {
                continue;
            }
            time += 500;
            // The hosts are of many networks, each with its own port.
            let host = host.wrapping_mul(2_654_435_761);
            let src = [11 + (host >> 25) as u8, (host >> 16) as u8, (host >> 8) as u8, 1 + host as u8 % 200];
            writer.packet(Nanos(time), 1_014, &frame(src, dst, 20_000 + (host >> 18) as u16, port)).unwrap();
        }
    }
    writer.finish().unwrap();
}

fn frame(src: [u8; 4], dst: [u8; 4], src_port: u16, dst_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(1_000u16.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(src.into_iter().chain(dst));
    frame.extend(src_port.to_be_bytes().into_iter().chain(dst_port.to_be_bytes()));
    frame.extend([0; 8]);
    frame.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn an_incast_is_one_group() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("incast.pcap");
    incast(&path);
    let report = Report::analyze("--rate 1gbps", &[&path]);
    assert_eq!(report.bursts.len(), 1);
    let group = report.bursts[0].pointer("/groups/0").expect("what the senders have in common");
    assert_eq!(group["description"], "41 sources to 10.0.0.7:50010 (TCP)");
    assert_eq!((number(group, "/sources"), number(group, "/flows")), (41, 41));
    let answer = json("why --json --rate 1gbps --at 0s..1s", &path);
    assert_eq!(answer.pointer("/direct/groups/0/description").unwrap(), "41 sources to 10.0.0.7:50010 (TCP)");
    let text = printed(run("analyze --rate 1gbps", &[&path]), 0);
    assert!(text.contains("41 sources to 10.0.0.7:50010 (TCP)"), "{text}");
}

#[test]
fn ramped_lists_only_flows_that_ramped() {
    let demo = file("data/demo.pcap.xz");
    let all = Report::analyze("--rate 20mbps", &[&demo]);
    let some = Report::analyze("--rate 20mbps --ramped 4x", &[&demo]);
    let rows = |report: &Report| -> Vec<Value> {
        report.bursts.iter().flat_map(|burst| list(burst, "/culprits/0/flows").to_vec()).collect()
    };
    let jumped = |row: &Value| row["ramp"].as_f64().is_some_and(|factor| factor >= 4.0);
    let expected: Vec<_> = rows(&all).into_iter().filter(jumped).collect();
    assert!(!expected.is_empty() && expected.len() < rows(&all).len());
    assert_eq!(rows(&some), expected);
}
