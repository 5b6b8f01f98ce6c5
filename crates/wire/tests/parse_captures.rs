//! Real captures: counts of queuescope against those of tshark.

use crate::common;
use crate::common::captures;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Family, FlowKey, Granularity};
use std::collections::BTreeSet;

/// Counts of tshark for one file. The header of the table has the commands.
struct Row<'a> {
    file: &'a str,
    packets: u64,
    bytes: u64,
    ip_flows: usize,
    non_ip: u64,
    later_fragments: u64,
}

fn rows() -> Vec<Row<'static>> {
    let table = include_str!("data/tshark.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &'static str| {
        let [file, packets, bytes, ip_flows, non_ip, later_fragments] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row has six columns: {line}");
        };
        let number = |text: &str| text.parse::<u64>().unwrap();
        Row {
            file,
            packets: number(packets),
            bytes: number(bytes),
            ip_flows: number(ip_flows) as usize,
            non_ip: number(non_ip),
            later_fragments: number(later_fragments),
        }
    };
    table.map(row).collect()
}

#[test]
fn captures_hold_the_flows_that_tshark_counts() {
    let Some(directory) = captures::directory() else { return };
    let mut compared = 0;
    for row in rows() {
        let Some((link, records)) = captures::read(&directory.join(row.file)) else { continue };
        compared += 1;
        let mut parser = Parser::new(Tunnel::Outer);
        let (mut flows, mut bytes, mut corrected, mut non_ip, mut later) = (BTreeSet::new(), 0, 0, 0, 0);
        for record in &records {
            let fragments =
                |parser: &Parser| parser.stats().later_fragments_matched + parser.stats().later_fragments_unmatched;
            let before = fragments(&parser);
            let frame = parser.parse(LinkType::from_dlt(link), record.original_len, &record.data);
            bytes += u64::from(record.original_len);
            corrected += u64::from(frame.size != record.original_len);
            match (frame.key.family, fragments(&parser) - before) {
                (Family::Link, _) => non_ip += 1,
                (_, 0) => _ = flows.insert(Granularity::FiveTuple.project(&frame.key)),
                (_, more) => later += more,
            }
        }
        let counted: Vec<_> = parser.stats().iter().filter(|(_, count, _)| *count > 0).collect();
        println!("{}: {counted:?}", row.file);
        assert_eq!(records.len() as u64, row.packets, "{}: packets", row.file);
        assert_eq!(parser.stats().length_corrected, corrected, "{}: sizes that differ are counted", row.file);
        assert_eq!(bytes, row.bytes, "{}: bytes", row.file);
        assert_eq!(flows.len(), row.ip_flows, "{}: directed five-tuples", row.file);
        assert_eq!(non_ip, row.non_ip, "{}: frames that are not IP", row.file);
        assert_eq!(later, row.later_fragments, "{}: later fragments", row.file);
    }
    assert!(compared > 0, "{} holds none of the captures", directory.display());
}

#[test]
fn etherparse_reads_the_same_keys() {
    let Some(directory) = captures::directory() else { return };
    for row in rows() {
        let Some((1, records)) = captures::read(&directory.join(row.file)) else { continue };
        let mut parser = Parser::new(Tunnel::Outer);
        let (mut same, mut known) = (0, 0);
        for record in &records {
            let before = *parser.stats();
            let key = parser.parse(LinkType::Ethernet, record.original_len, &record.data).key;
            // Only what etherparse supports: no fragments, no MPLS or PPPoE, transport headers fully captured.
            let reference = common::reference::key(&record.data);
            let plain = queuescope_wire::parse::ParseStats { frames: before.frames + 1, ..before } == *parser.stats();
            if plain && reference.family != Family::Link && (reference.src_port != 0 || key.src_port == 0) {
                known += 1;
                same += u64::from(reference == FlowKey { ..key });
            }
        }
        println!("{}: {known} of {} compared", row.file, records.len());
        assert_eq!(same, known, "{}", row.file);
    }
}
