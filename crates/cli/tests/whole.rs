//! Properties of any analysis: runs repeat exactly, sums are right, and an incast shows at its destination.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{Report, captures, file, list, number, printed, run, shared};
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use std::path::{Path, PathBuf};

/// Options and captures to run: short and long queues, split and whole frames, several granularities.
fn runs(test: &str) -> Vec<(String, PathBuf)> {
    let mut runs = vec![
        ("--rate 20mbps".to_owned(), file("data/demo.pcap.xz")),
        (
            "--rate 5mbps --limit 30packets --split-gso --by 5tuple,conn,src,dst/24".to_owned(),
            file("data/demo.pcap.xz"),
        ),
        ("--rate 10mbps --limit 64KiB --speedup 3 --overhead ethernet --tau 2ms".to_owned(), file("data/demo.pcap.xz")),
        ("--rate 20mbps --across-classes 5ms --alpha 5% --expiry clean".to_owned(), file("data/demo.pcap.xz")),
    ];
    for path in captures() {
        runs.push(("--rate 1mbps --tau 1ms --speedup 10 --limit 20packets".to_owned(), path));
    }
    if let Some(path) = shared(test, "pcap/auckland2-2000-part1.pcap.xz") {
        runs.push(("--rate 4mbps --limit 100ms".to_owned(), path));
    }
    runs
}

#[test]
fn two_runs_give_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let run_into = |name: &str, words: &str| {
        let out = |kind: &str| directory.path().join(format!("{name}.{kind}"));
        let (page, capture, table) = (out("html"), out("pcapng"), out("parquet"));
        let flags = ["--html".as_ref(), page.as_path(), "--pcapng".as_ref(), &capture, "--parquet".as_ref(), &table];
        let mut results = vec![printed(run(&format!("analyze data/demo.pcap.xz {words}"), &flags), 0).into_bytes()];
        results.push(printed(run(&format!("analyze data/demo.pcap.xz --json {words}"), &[]), 0).into_bytes());
        results.extend([page, capture, table].map(|path| std::fs::read(path).unwrap()));
        results
    };
    for words in ["--rate 20mbps", "--rate 8mbps --split-gso --limit 50ms --by 5tuple,dst,src/16"] {
        let (one, other) = (run_into("one", words), run_into("other", words));
        for (number, kind) in ["text", "json", "html", "pcapng", "parquet"].into_iter().enumerate() {
            assert!(!one[number].is_empty());
            assert!(one[number] == other[number], "{words}: {kind} differs");
        }
    }
}

#[test]
fn outputs_do_not_change_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let (page, capture, table) = (directory.path().join("a"), directory.path().join("b"), directory.path().join("c"));
    let words = "analyze data/demo.pcap.xz --json --rate 20mbps";
    let plain = printed(run(words, &[]), 0);
    let flags = ["--html".as_ref(), page.as_path(), "--pcapng".as_ref(), &capture, "--parquet".as_ref(), &table];
    assert!(plain == printed(run(words, &flags), 0));
}

#[test]
fn sums_are_right() {
    for (words, path) in runs("sums_are_right") {
        let report = Report::analyze(&words, &[&path]);
        check_sums(&report, &format!("{words} {}", path.display()), words.contains("--split-gso"));
    }
}

fn check_sums(report: &Report, what: &str, split: bool) {
    let drops: u64 =
        report.summary["totals"]["drops"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let departed = report.total("/totals/departed_packets");
    if split {
        assert!(departed + drops >= report.total("/packets"), "{what}");
    } else {
        assert_eq!(departed + drops, report.total("/packets"), "{what}");
    }
    assert!(report.total("/totals/departed_bytes") <= report.total("/bytes"), "{what}");
    let mut percentiles = list(&report.summary, "/totals/delay_percentiles").iter().map(|pair| number(pair, "/1"));
    assert!(percentiles.by_ref().is_sorted(), "{what}: percentiles grow");
    shares(list(&report.summary, "/culprits"), what);
    let tau = number(&report.first, "/setup/tau_ns");
    let across = what.contains("--across-classes");
    let mut last = 0;
    for burst in &report.bursts {
        let (start, packets) = (number(burst, "/start_ns"), number(burst, "/packets"));
        assert!(number(burst, "/packets_over_tau") <= packets, "{what}: {burst}");
        assert!(number(burst, "/packets_over_tau") > 0, "{what}: {burst}");
        assert!(number(burst, "/peak_delay_ns") <= report.total("/totals/peak_delay_ns"), "{what}: {burst}");
        assert!(number(burst, "/peak_depth_bytes") <= report.total("/totals/peak_depth_bytes"), "{what}: {burst}");
        // A burst ends when a packet leaves that waited less than half of tau. Packets that arrived after the next one may have
        // arrived before that moment, so bursts of a FIFO overlap by less than half of tau. With --across-classes they may overlap by more.
        assert!(across || start + tau / 2 >= last, "{what}: a burst begins at {start}, the one before ends at {last}");
        assert!(number(burst, "/bytes") <= report.total("/totals/departed_bytes"), "{what}: {burst}");
        last = start + number(burst, "/length_ns");
        let culprits = list(burst, "/culprits");
        shares(culprits, what);
        for level in culprits {
            let flows = list(level, "/flows");
            let bytes: u64 = flows.iter().map(|flow| number(flow, "/bytes")).sum();
            let carried: u64 = flows.iter().map(|flow| number(flow, "/packets")).sum();
            assert!(bytes <= number(burst, "/bytes") && carried <= packets, "{what}: {burst}");
            assert!(
                flows.iter().all(|flow| number(flow, "/peak_bytes") <= number(burst, "/peak_depth_bytes")),
                "{what}: {burst}"
            );
        }
    }
    for score in list(&report.summary, "/sketch") {
        let outcomes =
            number(score, "/true_positives") + number(score, "/false_positives") + number(score, "/false_negatives");
        assert!(outcomes <= number(score, "/queries"), "{what}: {score}");
    }
}

/// Checks that shares are sorted, and that each of them and their sum are at most 1.
fn shares(levels: &[serde_json::Value], what: &str) {
    for level in levels {
        let shares: Vec<_> = list(level, "/flows").iter().map(|flow| flow["share"].as_f64().unwrap()).collect();
        assert!(shares.iter().rev().is_sorted(), "{what}: {level}");
        let sum: f64 = shares.iter().sum();
        assert!((0.0..=1.0 + 1e-9).contains(&sum), "{what}: shares are {sum} together: {level}");
        assert!(shares.len() as u64 <= number(level, "/flows_total"), "{what}: {level}");
    }
}

/// A UDP frame from `source` to 10.9.0.`to`.
fn frame(source: u16, to: u8, payload: usize) -> Vec<u8> {
    let [high, low] = source.to_be_bytes();
    let length = |below: usize| u16::try_from(below + payload).unwrap().to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(length(28));
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 1, high, low, 10, 9, 0, to, 0x10, 0x00, 0x20, 0x00]);
    frame.extend(length(8));
    frame.extend([0, 0]);
    frame.resize(frame.len() + payload, 0);
    frame
}

/// 50 sources send 20 packets each to one destination at once, while another destination gets a little all the time.
fn incast(path: &Path) {
    let mut packets = Vec::new();
    for number in 0..200 {
        packets.push((number * 500_000, frame(1_000, 7, 400)));
    }
    for round in 0..20 {
        for source in 0..50 {
            packets.push((50_000_000 + round * 10_000 + u64::from(source) * 100, frame(source, 1, 1_000)));
        }
    }
    packets.sort_by_key(|(time, _)| *time);
    let mut writer = PcapWriter::new(std::fs::File::create(path).unwrap(), 1, 0).unwrap();
    for (time, frame) in packets {
        writer.packet(Nanos(1_700_000_000_000_000_000 + time), frame.len() as u32, &frame).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn an_incast_shows_at_its_destination() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("incast.pcap");
    incast(&path);
    let report = Report::analyze("--rate 1gbps --by 5tuple,dst", &[&path]);
    assert_eq!(report.bursts.len(), 1, "{:?}", report.bursts);
    let burst = &report.bursts[0];
    assert_eq!(number(burst, "/culprits/0/flows_total"), 51);
    for flow in list(burst, "/culprits/0/flows") {
        assert!(flow["share"].as_f64().unwrap() < 0.05, "{flow}");
    }
    let heaviest = &list(burst, "/culprits/1/flows")[0];
    assert_eq!(heaviest["flow"], "> 10.9.0.1");
    assert!(heaviest["share"].as_f64().unwrap() >= 0.8, "{heaviest}");
    assert_eq!(number(heaviest, "/packets"), 1_000);
    // 1000 packets of 1042 bytes come within 195 us, and take 8.3 ms.
    let wait = number(burst, "/peak_delay_ns");
    assert!((8_000_000..8_400_000).contains(&wait), "{wait}");
}

#[test]
fn a_queue_matches_a_calculation_by_hand() {
    // Packets of 1042 bytes take 8336 ns each at 1 Gbit/s. 50 of them arrive 100 ns apart.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.pcap");
    let mut writer = PcapWriter::new(std::fs::File::create(&path).unwrap(), 1, 0).unwrap();
    for number in 0..50 {
        writer.packet(Nanos(1_000_000_000 + number * 100), 1042, &frame(number as u16, 1, 1_000)).unwrap();
    }
    writer.finish().unwrap();
    let report = Report::analyze("--rate 1gbps --tau 100us --limit none", &[&path]);
    assert_eq!(report.total("/totals/peak_delay_ns"), 49 * (8336 - 100));
    let burst = &report.bursts[0];
    // Packet n waits n * 8236 ns: the first to wait 100 us is the 13th.
    assert_eq!(number(burst, "/start_ns"), 13 * 100);
    assert_eq!(number(burst, "/packets_over_tau"), 50 - 13);
    assert_eq!(number(burst, "/peak_at_ns"), 49 * 100);
    // The backlog that each packet met, from the table: packet n arrives while the first is sent, and n - 1 wait.
    let table = directory.path().join("train.parquet");
    Report::analyze("--rate 1gbps --limit none --parquet", &[&table, &path]);
    let met = |column: &str| {
        Report::analyze(&format!("--departures --columns size={column}"), &[&table]).total("/totals/departed_bytes")
    };
    assert_eq!(met("backlog_packets"), 48 * 49 / 2);
    assert_eq!(met("backlog_bytes"), 48 * 49 / 2 * 1042);
    // With a limit of 10 packets, one is on the link and ten wait. All others are dropped while the first is sent.
    let report = Report::analyze("--rate 1gbps --tau 1us --limit 10packets", &[&path]);
    let drops = report.total("/totals/drops/overlimit");
    assert_eq!(report.total("/totals/departed_packets") + drops, 50);
    assert!((38..=39).contains(&drops), "{drops}");
}
