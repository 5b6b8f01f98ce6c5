//! Counts every kind of capture with the command, and compares with tshark (the table is `crates/wire/tests/data/tshark.tsv`).

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{Report, file, shared};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What tshark counts in one file. The table's header says how.
struct Row {
    file: &'static str,
    packets: u64,
    bytes: u64,
    ip_flows: u64,
    non_ip: u64,
    later_fragments: u64,
}

/// How much more than tshark the command counts.
struct Difference {
    file: &'static str,
    packets: i64,
    bytes: i64,
    /// Flows of frames without an IP header; tshark's column is of IP flows only.
    flows: i64,
    non_ip: i64,
    why: &'static str,
}

const NONE: Difference = Difference { file: "", packets: 0, bytes: 0, flows: 0, non_ip: 0, why: "" };

/// All known differences. Flows without IP are those that `tshark -Y 'not ip and not ipv6'` shows as distinct pairs of
/// MAC addresses (one address in a cooked capture) and EtherType.
const DIFFERENCES: &[Difference] = &[
    Difference { file: "formats/pppoe.pcap", flows: 5, why: "discovery and session frames of PPPoE", ..NONE },
    Difference { file: "formats/sll113.pcap", flows: 2, why: "ARP of two hosts", ..NONE },
    Difference { file: "formats/sll2-276.pcap", flows: 2, why: "ARP and reverse ARP of one host", ..NONE },
    Difference { file: "formats/vlan.pcap", flows: 57, why: "IPX, CDP, ARP and others of many hosts", ..NONE },
    Difference { file: "pcap/libtrace-ip-in-mpls.pcap.xz", flows: 2, why: "ARP of two hosts", ..NONE },
    Difference {
        file: "formats/complex.pcapng",
        packets: -3,
        bytes: -116,
        non_ip: -3,
        why: "tshark shows three custom blocks as frames; the report counts them as such",
        ..NONE
    },
    Difference {
        file: "pcap/mix-a-ndpi.pcap.xz",
        bytes: 170_888,
        why: "104 records are shorter than the IP length of the packet in them, which is taken (length_corrected)",
        ..NONE
    },
];

/// Larger captures take long without optimisation.
const LARGEST: u64 = 3 << 20;

fn rows() -> impl Iterator<Item = Row> {
    let table = include_str!("../../wire/tests/data/tshark.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    table.map(|line| {
        let [file, packets, bytes, ip_flows, non_ip, later_fragments] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row has six columns: {line}");
        };
        let number = |text: &str| text.parse::<u64>().unwrap();
        Row {
            file,
            packets: number(packets),
            bytes: number(bytes),
            ip_flows: number(ip_flows),
            non_ip: number(non_ip),
            later_fragments: number(later_fragments),
        }
    })
}

fn compare(row: &Row, path: &Path) {
    let report = Report::analyze("--rate 1tbps --limit none --by 5tuple", &[path]);
    let more = DIFFERENCES.iter().find(|difference| difference.file == row.file).unwrap_or(&NONE);
    let skipped = |reason: &str| report.summary["skipped"].get(reason).and_then(Value::as_u64).unwrap_or(0);
    println!("{}: {} flows, {}; {}", row.file, report.summary["flows"], report.summary["skipped"], more.why);
    let check = |what: &str, found: u64, tshark: u64, more: i64| {
        assert_eq!(found as i64 - tshark as i64, more, "{}: {what}: {found}, and tshark counts {tshark}", row.file);
    };
    check("packets", report.total("/packets"), row.packets, more.packets);
    check("departed", report.total("/totals/departed_packets"), row.packets, more.packets);
    check("bytes", report.total("/bytes"), row.bytes, more.bytes);
    check("flows", report.total("/flows"), row.ip_flows, more.flows);
    check("frames that are not IP", skipped("non_ip"), row.non_ip, more.non_ip);
    let later = skipped("later_fragments_matched") + skipped("later_fragments_unmatched");
    check("later fragments", later, row.later_fragments, 0);
    assert_eq!(skipped("length_corrected") > 0, more.bytes > 0, "{}: a note counts corrected sizes", row.file);
    assert_eq!(report.summary["flows_by_granularity"][0]["exact"], true, "{}", row.file);
}

#[test]
fn captures_in_the_repository_are_counted_as_tshark_does() {
    let mut compared = 0;
    for row in rows() {
        let path = file("data").join(row.file);
        if path.is_file() {
            compare(&row, &path);
            compared += 1;
        }
    }
    assert!(compared >= 9, "only {compared} of the captures of data/formats are in the table");
}

#[test]
fn captures_beside_the_repository_are_counted_as_tshark_does() {
    const TEST: &str = "captures_beside_the_repository_are_counted_as_tshark_does";
    let Some(directory) = shared(TEST, "pcap") else { return };
    for row in rows() {
        let path: PathBuf = directory.with_file_name("").join(row.file);
        match path.metadata().map(|metadata| metadata.len()) {
            Ok(length) if length <= LARGEST || row.file.contains("mix-a") => compare(&row, &path),
            Ok(_) => println!("skipped: {TEST}: {} is large", row.file),
            Err(_) => println!("skipped: {TEST}: there is no {}", row.file),
        }
    }
}
