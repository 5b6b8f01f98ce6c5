//! Very many flows: the groups of a burst are computed from all of them, and have the names of known patterns.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{Report, list, number, printed, run};
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A packet on an Ethernet, `length` bytes long.
struct Sent {
    at: u64,
    src: [u8; 4],
    dst: [u8; 4],
    ports: (u16, u16),
    tcp: bool,
    length: u16,
}

impl Sent {
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        frame.extend((self.length - 14).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, if self.tcp { 6 } else { 17 }, 0, 0]);
        frame.extend(self.src);
        frame.extend(self.dst);
        frame.extend(self.ports.0.to_be_bytes());
        frame.extend(self.ports.1.to_be_bytes());
        if self.tcp {
            frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
        } else {
            frame.extend((self.length - 34).to_be_bytes());
            frame.extend([0, 0]);
        }
        frame.resize(self.length.into(), 0);
        frame
    }
}

/// A capture that begins with packets which fill the queue, so that all packets are in one burst.
fn capture(directory: &tempfile::TempDir, mut packets: Vec<Sent>) -> PathBuf {
    let path = directory.path().join("made.pcap");
    packets.iter_mut().for_each(|sent| sent.at += 1_000);
    let first =
        |n: u16| Sent { at: 0, src: [10, 8, 0, 1], dst: [10, 8, 0, 2], ports: (n, n), tcp: true, length: 1_500 };
    packets.extend((1..10).map(first));
    packets.sort_by_key(|sent| sent.at);
    let mut writer = PcapWriter::new(std::fs::File::create(&path).unwrap(), 1, 0).unwrap();
    for sent in packets {
        let frame = sent.frame();
        writer.packet(Nanos(1_700_000_000_000_000_000 + sent.at), frame.len() as u32, &frame).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// One host sends a SYN of 60 bytes to port 445 of each of 4000 other hosts, at once.
fn scan() -> Vec<Sent> {
    let to = |n: u16| [10, 64 + (n / 1_000) as u8, (n / 250) as u8, (n % 250) as u8];
    let probe = |n: u16| Sent {
        at: u64::from(n) * 100_000,
        src: [10, 0, 0, 9],
        dst: to(n),
        ports: (40_000 + n % 20_000, 445),
        tcp: true,
        length: 60,
    };
    (0..4_000).map(probe).collect()
}

/// Flows of one packet each between two /16s.
fn background(length: u16) -> Vec<Sent> {
    let flow = |n: u16| Sent {
        at: 50_000 + u64::from(n) * 200_000,
        src: [10, 2, (n / 250) as u8, (n % 250) as u8],
        dst: [10, 3, (n % 8) as u8, (n / 8) as u8],
        ports: (1_024 + n * 7, 2_048 + n * 13 % 50_000),
        tcp: n.is_multiple_of(2),
        length,
    };
    (0..2_000).map(flow).collect()
}

fn only_burst(path: &Path, words: &str) -> Value {
    let report = Report::analyze(words, &[path]);
    assert_eq!(report.bursts.len(), 1, "{:?}", report.bursts);
    report.bursts[0].clone()
}

fn group<'a>(burst: &'a Value, reading: &str) -> &'a Value {
    let named = |group: &&Value| group["description"] == reading;
    list(burst, "/groups").iter().find(named).unwrap_or_else(|| panic!("{reading} is not in {}", burst["groups"]))
}

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

#[test]
fn a_scan_and_the_flows_beside_it_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let packets = scan().into_iter().chain(background(400)).collect();
    let path = capture(&directory, packets);
    let burst = only_burst(&path, "--rate 5mbps --tau 1ms --limit none");
    let (bytes, packets) = (number(&burst, "/bytes") as f64, number(&burst, "/packets") as f64);
    assert_eq!((bytes, packets), (240_000.0 + 800_000.0 + 9.0 * 1_500.0, 6_009.0));

    let scan = group(&burst, "10.0.0.9 to 4000 destinations, port 445 (TCP)");
    assert_eq!((scan["explosion"].as_str(), number(scan, "/packets")), (Some("scan"), 4_000), "{scan}");
    assert!(close(&scan["share"], 240_000.0 / bytes), "{scan}");
    assert!(close(&scan["packets_share"], 4_000.0 / packets), "{scan}");
    assert!(close(&scan["share_error"], 0.0) && close(&scan["packets_share_error"], 0.0), "{scan}");

    let others = group(&burst, "2000 sources in 10.2.0.0/16 to 2000 destinations in 10.3.0.0/16");
    assert!(close(&others["share"], 800_000.0 / bytes) && others["explosion"].is_null(), "{others}");

    let text = printed(run("analyze --rate 5mbps --tau 1ms --limit none", &[&path]), 0);
    for line in [
        "75.9 %  2000 sources in 10.2.0.0/16 to 2000 destinations in 10.3.0.0/16",
        "22.8 %  scan: 10.0.0.9 to 4000 destinations, port 445 (TCP); 66.6 % of the packets",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

/// Patterns of very many flows beside [`background`], with their name and reading.
fn explosions() -> Vec<(Vec<Sent>, &'static str, &'static str)> {
    let sent = |n: u16, src: [u8; 4], dst: [u8; 4], ports: (u16, u16), tcp: bool, length: u16| Sent {
        at: u64::from(n) * 100_000,
        src,
        dst,
        ports,
        tcp,
        length,
    };
    let from = |n: u16| [(n % 200 + 20) as u8, (n / 7 % 250) as u8, (n / 250) as u8, (n % 250) as u8];
    let ports = (1..=3_000).map(|n| sent(n, [10, 0, 0, 9], [10, 9, 0, 1], (50_000, n), true, 60));
    let flood = (0..3_000).map(|n| sent(n, from(n), [10, 9, 0, 1], (1_024 + n, 53), false, 100));
    let incast = (0..40).flat_map(|n| (0..20).map(move |_| n));
    let incast = incast.map(|n| sent(n * 50, from(n * 77), [10, 9, 0, 1], (30_000 + n, 50_010), true, 1_000));
    vec![
        (ports.collect(), "scan", "10.0.0.9:50000 to 10.9.0.1 (TCP), 3000 flows"),
        (flood.collect(), "flood", "3000 sources to 10.9.0.1:53 (UDP)"),
        (incast.collect(), "incast", "40 sources to 10.9.0.1:50010 (TCP)"),
    ]
}

#[test]
fn patterns_have_their_names_in_every_view() {
    for (packets, explosion, reading) in explosions() {
        let directory = tempfile::tempdir().unwrap();
        let path = capture(&directory, packets.into_iter().chain(background(120)).collect());
        let burst = only_burst(&path, "--rate 2mbps --tau 1ms --limit none");
        assert_eq!(group(&burst, reading)["explosion"], explosion, "{burst}");

        let page = directory.path().join("page.html");
        let words = "analyze --rate 2mbps --tau 1ms --limit none --html";
        let text = printed(run(words, &[&page, &path]), 0);
        assert!(text.contains(&format!("{explosion}: {reading}")), "{text}");
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(&format!(r#""description":"{reading}","explosion":"{explosion}""#)), "{explosion}");
    }
}

/// If there are more flows than are kept, shares are estimates with a stated error.
#[test]
fn a_scan_of_very_many_flows_states_its_error() {
    const PROBES: u32 = 120_000;
    let directory = tempfile::tempdir().unwrap();
    let probe = |n: u32| {
        let [_, high, middle, low] = n.to_be_bytes();
        let (src, dst, ports) = ([10, 0, 0, 9], [10, 64 + high, middle, low], (40_000 + (n % 20_000) as u16, 445));
        Sent { at: u64::from(n) * 10_000, src, dst, ports, tcp: true, length: 60 }
    };
    // A large transfer that has as many bytes as the scan.
    let packet = |n: u32| {
        let (src, dst, ports) = ([10, 1, 1, 1], [10, 1, 1, 2], (443, 50_000));
        Sent { at: u64::from(n) * 200_000, src, dst, ports, tcp: true, length: 1_200 }
    };
    let packets = (0..PROBES).map(probe).chain((0..PROBES / 20).map(packet)).collect();
    let path = capture(&directory, packets);
    let words = "--rate 90mbps --tau 1ms --limit 20ms";
    let burst = only_burst(&path, words);
    let scan = list(&burst, "/groups").iter().find(|group| group["explosion"] == "scan");
    let scan = scan.unwrap_or_else(|| panic!("no scan is in {}", burst["groups"]));
    let reading = scan["description"].as_str().unwrap();
    assert!(
        reading.starts_with("10.0.0.9 to at least ") && reading.ends_with(" destinations, port 445 (TCP)"),
        "{scan}"
    );
    // 60 bytes of each probe against 1200 for every twentieth, minus drops.
    let flow = &list(&burst, "/culprits/0/flows")[0];
    let truth = number(&burst, "/bytes") - number(flow, "/bytes");
    let share = |name: &str| scan[name].as_f64().unwrap();
    let off = (share("share") - truth as f64 / number(&burst, "/bytes") as f64).abs();
    assert!(share("share_error") > 0.0 && share("share_error") < 0.05 && off <= share("share_error"), "{scan}");
    assert_eq!(scan["counted"], false);
    let text = printed(run(&format!("analyze {words}"), &[&path]), 0);
    for words in ["scan: 10.0.0.9 to at least ", "; share ±", "not all flows were tracked: shares of flows are ±"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

/// The table over all bursts is made of the heaviest flows of each, and states the error of that.
#[test]
fn a_table_over_all_bursts_states_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut packets = Vec::new();
    for burst in 0..3 {
        let later = |mut sent: Sent| {
            sent.at += burst * 10_000_000_000;
            sent
        };
        packets.extend(background(400).into_iter().map(later));
    }
    let path = capture(&directory, packets);
    let report = Report::analyze("--rate 5mbps --tau 1ms --limit none", &[&path]);
    let bytes: u64 = report.bursts.iter().map(|burst| number(burst, "/bytes")).sum();
    assert_eq!(report.bursts.len(), 3);
    // In each burst, one flow of 400 bytes may be missing.
    let error = report.summary.pointer("/culprits/0/share_error").unwrap();
    assert!(close(error, 1_200.0 / bytes as f64), "{error}");
    let text = printed(run("analyze --rate 5mbps --tau 1ms --limit none", &[&path]), 0);
    assert!(text.contains("over all bursts, by 5tuple (from the heaviest flows of each: a share may be"), "{text}");
}
