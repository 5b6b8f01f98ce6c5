//! `--victims` chooses the packets whose delay is examined, and `--show` the flows that are listed. All packets stay in the queue.

#![allow(clippy::disallowed_methods, reason = "tests write what the program reads")]

use crate::common::{Report, list, number, printed, run};
use proptest::prelude::*;
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ETHERNET: u32 = 1;
const MS: u64 = 1_000_000;
const HEAVY: &str = "10.0.0.1:4000 > 10.0.0.9:9 udp";
const LIGHT: &str = "10.0.0.2:4000 > 10.0.0.9:10 udp";

/// A frame from host `10.0.0.SOURCE` to a port of `10.0.0.9`.
fn frame(source: u8, port: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, source, 8, 0];
    let network = u16::try_from(length - 14).expect("it is short");
    frame.extend([0x45, 0]);
    frame.extend(network.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, 9]);
    frame.extend([4000_u16, port, network - 20, 0].iter().flat_map(|word| word.to_be_bytes()));
    frame.resize(length, 0);
    frame
}

/// 100 packets of 1000 bytes arrive at once. Then one of 100 bytes arrives every 100 ms, five times. Also returns how long these wait on a
/// link that takes 8 ms for a large packet.
fn capture(directory: &Path) -> (PathBuf, Vec<u64>) {
    let path = directory.join("two.pcap");
    let mut writer = PcapWriter::new(std::fs::File::create(&path).unwrap(), ETHERNET, 1 << 16).unwrap();
    (0..100).for_each(|n| writer.packet(Nanos(n * 10), 1000, &frame(1, 9, 1000)).unwrap());
    let (mut free, mut waits) = (100 * 8 * MS, Vec::new());
    for n in 1..=5 {
        writer.packet(Nanos(n * 100 * MS), 100, &frame(2, 10, 100)).unwrap();
        waits.push(free - n * 100 * MS);
        free += 8 * MS / 10;
    }
    writer.finish().unwrap();
    (path, waits)
}

fn flows(culprits: &Value) -> Vec<&str> {
    list(culprits, "/flows").iter().map(|flow| flow["flow"].as_str().unwrap()).collect()
}

const QUEUE: &str = "--rate 1mbps --limit none --tau 10ms";

#[test]
fn delays_are_of_victims_and_culprits_are_of_the_whole_queue() {
    let directory = tempfile::tempdir().unwrap();
    let (path, waits) = capture(directory.path());
    let light = "udp and dst_port == 10".as_ref();
    let all = Report::analyze(QUEUE, &[&path]);
    let report = Report::analyze(&format!("{QUEUE} --victims"), &[light, &path]);
    assert_eq!(report.first["setup"]["victims_filter"], "udp and dst_port == 10");
    assert_eq!(report.summary["totals"]["victims"], json!({ "packets": 5, "bytes": "500", "dropped": 0 }));
    assert_eq!(report.summary["skipped"]["not_victims"], 100);
    // Delays are those of victims, and the backlog is that of all packets.
    assert_eq!(report.total("/totals/peak_delay_ns"), waits[0]);
    assert_eq!(report.summary["totals"]["waited_share"], 1.0);
    for same in ["/packets", "/totals/departed_packets", "/totals/peak_depth_bytes"] {
        assert_eq!(report.total(same), all.total(same), "{same}");
    }
    let [burst] = report.bursts.as_slice() else { panic!("{:?}", report.bursts) };
    assert_eq!((number(burst, "/packets_over_tau"), number(burst, "/peak_delay_ns")), (5, waits[0]));
    assert_eq!(number(burst, "/start_ns"), 100 * MS, "it begins when the first victim arrives");
    // The packets that left from then on: from the 13th on, which leaves after 96 ms and is sent until 104 ms.
    let heavy = 100 - 13;
    let culprits = &burst["culprits"][0];
    assert_eq!(flows(culprits)[0], HEAVY);
    assert_eq!(number(culprits, "/flows/0/packets"), heavy);
    assert_eq!(culprits["flows"][0]["share"], (heavy * 1000) as f64 / (heavy * 1000 + 500) as f64);
    // The worst packet is the worst victim, not the worst of all packets.
    let worst = &burst["worst"];
    assert_eq!(flows(&worst["direct"]["by"][0]), [HEAVY]);
    assert_eq!(number(worst, "/direct/bytes"), heavy * 1000);
    assert!(worst["original"].is_null(), "another packet waited longer");

    let text = printed(run(&format!("analyze {QUEUE} --victims"), &[light, &path]), 0);
    assert!(text.contains("udp and dst_port == 10: 5 packets, 500 B; delays and bursts are of victims"), "{text}");
    assert!(text.contains(HEAVY) && text.contains("100.0 % of victims waited"), "{text}");
    let nobody = printed(run(&format!("analyze {QUEUE} --victims dst_port==11"), &[&path]), 0);
    assert!(nobody.contains("No bursts: no victim waited 10.0 ms"), "{nobody}");
}

#[test]
fn only_some_flows_are_listed_and_the_others_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = capture(directory.path());
    let all = Report::analyze(QUEUE, &[&path]);
    let report = Report::analyze(&format!("{QUEUE} --show dst_port==10"), &[&path]);
    assert_eq!(report.first["setup"]["show_filter"], "dst_port==10");
    let (one, other) = (&report.bursts[0]["culprits"], &all.bursts[0]["culprits"]);
    assert_eq!(flows(&one[0]), [LIGHT]);
    let bytes = number(&all.bursts[0], "/bytes");
    assert_eq!(one[0]["flows"][0]["share"], 500.0 / bytes as f64, "shares are of the whole queue");
    let hidden = &one[0]["not_shown"];
    assert_eq!((number(hidden, "/flows"), number(hidden, "/bytes")), (1, bytes - 500));
    assert_eq!(hidden["share"], (bytes - 500) as f64 / bytes as f64);
    // Aggregates by destination lack the port, so all of them are listed.
    assert_eq!(one[1], other[1]);
    for pointer in ["/totals/peak_delay_ns", "/totals/waited_share"] {
        assert_eq!(report.summary.pointer(pointer), all.summary.pointer(pointer), "{pointer}");
    }
    let text = printed(run(&format!("analyze {QUEUE} --show dst_port==10"), &[&path]), 0);
    assert!(text.contains("99.5 %  1 not shown") && text.contains(LIGHT) && !text.contains(HEAVY), "{text}");
    let output = run(&format!("analyze {QUEUE} --show delay>1ms"), &[&path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--victims chooses packets"));
}

#[test]
fn why_accepts_victims_and_show() {
    let directory = tempfile::tempdir().unwrap();
    let (path, waits) = capture(directory.path());
    let light = "udp and dst_port == 10".as_ref();
    let why = |words: &str| -> Value {
        let words = format!("why --json --rate 1mbps --limit none {words} --victims");
        serde_json::from_str(&printed(run(&words, &[light, &path]), 0)).unwrap()
    };
    let answer = why("");
    assert_eq!(answer["question"], "why packets of which 'udp and dst_port == 10' holds waited");
    assert_eq!((number(&answer, "/packets"), number(&answer, "/total_delay_ns")), (5, waits.iter().sum()));
    assert_eq!(number(&answer, "/victim/delay_ns"), waits[0]);
    assert_eq!(flows(&answer["direct"]["by"][0]), [HEAVY, LIGHT]);
    assert_eq!(number(&answer, "/direct/by/0/flows/0/bytes"), (100 - 13) * 1000);
    // The packets that left before the first victim arrived, without the very first packet, which never waited.
    assert_eq!(number(&answer, "/indirect/bytes"), 12 * 1000);
    let some = why("--show dst_port==10");
    assert_eq!(flows(&some["direct"]["by"][0]), [LIGHT]);
    assert_eq!(number(&some, "/direct/by/0/not_shown/flows"), 1);
    assert_eq!(some["direct"]["bytes"], answer["direct"]["bytes"]);
    let late = why("--at 350ms..1s");
    assert_eq!(number(&late, "/packets"), 5, "all of them wait then");
    let later = why("--at 790ms..1s --flow 10.0.0.2:4000");
    assert!(later["question"].as_str().unwrap().contains("of which 'udp and dst_port == 10' holds, waited from"));
    let refused = |words: &str, message: &str| {
        let output = run(&format!("why --rate 1mbps --limit none {words}"), &[&path]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(message), "{words}: {errors}");
    };
    refused("--victims dst_port==11", "no packet matches 'dst_port==11'");
    refused("--victims icmp", "no packet matches 'icmp'");
    refused("--victims dst_port==11 --flow 10.0.0.2:4000", "matches 'dst_port==11'");
    refused("--victims dst_port==10 --at 3600s..3601s", "no packet of which 'dst_port==10' holds waited from");
    refused("--victims dst_port==10 --at 1ms", "wait for a range of time");
    refused("--victims packet==3", "`packet` cannot be used for victims");
    refused("--victims dst_port==10 --packet 3", "cannot be used with");
}

#[test]
fn the_old_flag_names_the_new_ones() {
    for words in ["analyze x --rate 1gbps", "why x --rate 1gbps --at 1s", "tap x --egress y", "sim x", "live x", "link"]
    {
        for expression in [" udp", ""] {
            let output = run(&format!("{words} --where{expression}"), &[]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
            for flag in ["--victims", "--show", "--input"] {
                assert!(errors.contains(flag), "{words}: {errors}");
            }
        }
        let help = printed(run(&format!("{} --help", words.split(' ').next().unwrap()), &[]), 0);
        assert!(!help.contains("--where") && help.contains("--victims") && help.contains("--input"), "{help}");
    }
}

/// A packet that left a FIFO which sends a byte each nanosecond.
#[derive(Debug, Clone, Copy)]
struct Departed {
    flow: usize,
    size: u64,
    enqueued: u64,
    dequeued: u64,
}

fn fifo(arrivals: &[(u64, u64, usize)]) -> Vec<Departed> {
    let (mut now, mut free) = (0, 0);
    let left = |(gap, size, flow): &(u64, u64, usize)| {
        now += gap;
        let dequeued = free.max(now);
        free = dequeued + size;
        Departed { flow: *flow, size: *size, enqueued: now, dequeued }
    };
    arrivals.iter().map(left).collect()
}

fn name(flow: usize) -> String {
    format!("10.0.0.{flow}:1 > 10.9.0.1:{flow} udp")
}

/// The bytes of packets, by flow.
fn sums<'a>(packets: impl IntoIterator<Item = &'a Departed>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    packets.into_iter().for_each(|left| *sums.entry(name(left.flow)).or_default() += left.size);
    sums
}

fn listed(culprits: &Value) -> BTreeMap<String, u64> {
    let flow = |flow: &Value| (flow["flow"].as_str().unwrap().to_owned(), number(flow, "/bytes"));
    list(culprits, "/flows").iter().map(flow).collect()
}

/// For each burst that a victim met: the number of victims hit, their longest delay, and the bytes by flow of all departures in it.
fn bursts(left: &[Departed], victim: usize, tau: u64) -> Vec<(u64, u64, BTreeMap<String, u64>)> {
    let wait = |n: usize| left[n].dequeued - left[n].enqueued;
    let is_hit = |n: &usize| left[*n].flow == victim && wait(*n) >= tau;
    let (mut bursts, mut at, mut ended) = (Vec::new(), 0, None::<u64>);
    while let Some(first) = (at..left.len()).find(is_hit) {
        let start = ended.map_or(left[first].enqueued, |ended| left[first].enqueued.max(ended + 1));
        let idle = |n: usize| n > first && left[n].enqueued > left[n - 1].dequeued + tau;
        at = (first..left.len()).find(|n| wait(*n) * 2 < tau || idle(*n)).unwrap_or(left.len());
        ended = Some(left[at - 1].dequeued);
        let longest = (first..at).filter(|n| left[*n].flow == victim).map(wait).max().unwrap_or_default();
        let members = left[..at].iter().filter(|left| left.dequeued >= start);
        bursts.push(((first..at).filter(is_hit).count() as u64, longest, sums(members)));
    }
    bursts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares with a plain computation: the whole queue first, then the victims.
    #[test]
    fn culprits_are_those_of_the_whole_queue(
        arrivals in prop::collection::vec((0..60u64, 1..90u64, 1..6usize), 1..120), victim in 1..6usize, tau in 5..120u64
    ) {
        let left = fifo(&arrivals);
        let mut table = "flow,size,enqueued,dequeued\n".to_owned();
        for Departed { flow, size, enqueued, dequeued } in &left {
            table += &format!("{},{size},{enqueued},{dequeued}\n", name(*flow));
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("left.csv");
        std::fs::write(&path, table).unwrap();
        let report = Report::analyze(&format!("--departures --alpha 0.0001 --tau {tau}ns --victims dst_port=={victim}"), &[&path]);
        let figures = |burst: &Value| {
            (number(burst, "/packets_over_tau"), number(burst, "/peak_delay_ns"), listed(&burst["culprits"][0]))
        };
        prop_assert_eq!(report.bursts.iter().map(figures).collect::<Vec<_>>(), bursts(&left, victim, tau));
        let victims: Vec<_> = (0..left.len()).filter(|n| left[*n].flow == victim).collect();
        let longest = victims.iter().map(|n| left[*n].dequeued - left[*n].enqueued).max().unwrap_or_default();
        prop_assert_eq!(report.total("/totals/peak_delay_ns"), longest);
        prop_assert_eq!(report.total("/totals/victims/packets"), victims.len() as u64);

        // The packets that left while a victim waited, each once.
        let direct: BTreeSet<_> = victims.iter().flat_map(|n| (0..*n).filter(|m| left[*m].dequeued >= left[*n].enqueued)).collect();
        let output = run(&format!("why --json --departures --alpha 0.0001 --victims dst_port=={victim}"), &[&path]);
        if longest == 0 {
            let why = if victims.is_empty() { "no packet matches" } else { "none had to wait for another" };
            prop_assert!(String::from_utf8_lossy(&output.stderr).contains(why));
        } else {
            let answer: Value = serde_json::from_str(&printed(output, 0)).unwrap();
            prop_assert_eq!(listed(&answer["direct"]["by"][0]), sums(direct.iter().map(|n| &left[*n])));
        }
    }
}

/// If flows of a granularity lack an attribute of `--show`, all of them are listed, and each view has a note.
#[test]
fn lists_that_show_cannot_filter_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let note = "lists that --show does not filter (by dst), because their flows lack attributes that it uses (src_ip)";
    for words in ["analyze data/demo.pcap.xz --rate 20mbps", "why data/demo.pcap.xz --rate 20mbps --packet 500"] {
        let said = |more: &str, show: &str| {
            printed(run(&format!("{words} --by 5tuple,dst {more} --show"), &[show.as_ref()]), 0)
        };
        assert!(said("", "src_ip == 10.72.0.88").contains(note), "{words}");
        assert!(said("--json", "src_ip == 10.72.0.88").contains("show_not_applied"), "{words}");
        // Flows of both granularities have the destination.
        assert!(!said("--json", "dst_ip == 10.72.0.88").contains("show_not_applied"), "{words}");
    }
    printed(
        run(
            "analyze data/demo.pcap.xz --rate 20mbps --by 5tuple,dst --show",
            &["src_ip == 10.72.0.88".as_ref(), "--html".as_ref(), &page],
        ),
        0,
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("--show does not filter (by dst)"));
}
