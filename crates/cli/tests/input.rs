//! `--input`: packets that are left out do not affect the analysis, but still count in packet numbers.

#![allow(clippy::disallowed_methods, reason = "tests write what the program reads")]

use crate::common;
use crate::common::{Report, file, list, number, packets, printed, run};
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{Frame, LinkType, Parser, Tunnel};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const DEMO: &str = "data/demo.pcap.xz";
const SMALL: &str = "crates/cli/tests/data/sim.toml";

/// The numbers, from 1, of the frames of a capture that satisfy `holds`.
fn numbers(path: &Path, holds: impl Fn(&Frame) -> bool) -> Vec<usize> {
    let mut parser = Parser::new(Tunnel::Outer);
    let mut meant =
        |(_, link, _, length, data): &common::Captured| holds(&parser.parse(LinkType::from_dlt(*link), *length, data));
    let numbered = packets(path).into_iter().enumerate();
    numbered.filter_map(|(index, packet)| meant(&packet).then_some(index + 1)).collect()
}

/// Writes the frames with these numbers to a file.
fn filtered(path: &Path, numbers: &[usize], directory: &Path) -> PathBuf {
    let found = packets(path);
    let out = directory.join("filtered.pcap");
    let mut writer = PcapWriter::new(std::fs::File::create(&out).unwrap(), found[0].1, 1 << 18).unwrap();
    for number in numbers {
        let (_, _, time, length, data) = &found[number - 1];
        writer.packet(Nanos(time.unwrap()), *length, data).unwrap();
    }
    writer.finish().unwrap();
    out
}

/// The figures without the input's name and the notes on it.
fn figures(mut value: Value) -> Value {
    for about in ["input", "skipped"] {
        value.as_object_mut().unwrap().remove(about);
    }
    value
}

fn skipped(value: &Value) -> u64 {
    match &value["skipped"] {
        Value::Array(notes) => {
            notes.iter().find(|note| note["reason"] == "left_out_by_input").map_or(0, |note| number(note, "/count"))
        }
        counts => counts["left_out_by_input"].as_u64().unwrap_or_default(),
    }
}

fn is_large_tcp(frame: &Frame) -> bool {
    frame.key.protocol == 6 && frame.size > 1_000
}

fn is_udp(frame: &Frame) -> bool {
    frame.key.protocol == 17
}

#[test]
fn input_equals_an_analysis_of_a_capture_that_was_filtered_before() {
    let (demo, directory) = (file(DEMO), tempfile::tempdir().unwrap());
    let (udp, large) = (numbers(&demo, is_udp), numbers(&demo, is_large_tcp));
    for (expression, meant) in [("udp", udp), ("tcp and length > 1000B", large)] {
        let all = packets(&demo).len();
        assert!(meant.len() > 1_000 && meant.len() < all - 1_000);
        let before = filtered(&demo, &meant, directory.path());
        for words in
            ["--rate 5mbps", "--rate 10mbps --split-gso --limit 30packets --by conn", "--rate 1gbps --speedup 100"]
        {
            let mut one = Report::analyze(&format!("{words} --input"), &[expression.as_ref(), &demo]);
            let other = Report::analyze(words, &[&before]);
            assert_eq!(one.first["setup"].as_object_mut().unwrap().remove("input_filter"), Some(json!(expression)));
            assert_eq!(figures(one.first), figures(other.first), "{expression} {words}");
            assert_eq!(one.bursts, other.bursts, "{expression} {words}");
            assert_eq!(skipped(&one.summary), (all - meant.len()) as u64);
            assert_eq!(figures(one.summary), figures(other.summary), "{expression} {words}");
        }
    }
    // An expression that holds for every packet changes nothing.
    let (one, other) =
        (Report::analyze("--rate 5mbps --input true", &[&demo]), Report::analyze("--rate 5mbps", &[&demo]));
    assert_eq!((one.summary, one.bursts), (other.summary, other.bursts));
}

#[test]
fn the_annotated_capture_has_the_packets_that_were_left_out() {
    let (path, directory) = (file("data/formats/sll113.pcap"), tempfile::tempdir().unwrap());
    let (all, meant) = (packets(&path), numbers(&path, is_udp));
    assert!(!meant.is_empty() && meant.len() < all.len());
    let out = directory.path().join("out.pcapng");
    let report = Report::analyze("--rate 100kbps --limit 10packets --input udp --pcapng", &[&out, &path]);
    assert_eq!(report.total("/packets"), meant.len() as u64);
    let content = |packets: Vec<common::Captured>| -> Vec<_> {
        packets.into_iter().map(|(_, link, time, length, data)| (link, time, length, data)).collect()
    };
    assert_eq!(content(packets(&out)), content(all.clone()));
    let text = String::from_utf8_lossy(&std::fs::read(&out).unwrap()).into_owned();
    assert_eq!(text.matches("queuescope: left out by --input").count(), all.len() - meant.len());
    assert_eq!(text.matches("queuescope: ").count(), all.len());
}

fn why(words: &str, paths: &[&Path]) -> Value {
    serde_json::from_str(&printed(run(&format!("why --json {words}"), paths), 0)).unwrap()
}

#[test]
fn packets_keep_their_numbers_in_the_file() {
    let (demo, directory) = (file(DEMO), tempfile::tempdir().unwrap());
    let meant = numbers(&demo, is_large_tcp);
    let before = filtered(&demo, &meant, directory.path());
    let expression = "tcp and length > 1000B".as_ref();
    for words in ["--rate 5mbps", "--rate 5mbps --split-gso"] {
        for own in [0, meant.len() / 2, meant.len() - 1] {
            let one = why(&format!("{words} --packet {} --input", meant[own]), &[expression, &demo]);
            let other = why(&format!("{words} --packet {}", own + 1), &[&before]);
            let (number, own) = (json!(meant[own]), json!(own + 1));
            assert_eq!((&one["victim"]["packet"], &other["victim"]["packet"]), (&number, &own), "{words}");
            let rest = |answer: Value| {
                let mut answer = figures(answer);
                answer.as_object_mut().unwrap().remove("question");
                answer["victim"]["packet"].take();
                answer
            };
            assert_eq!(rest(one), rest(other), "{words}");
        }
    }
    let left_out = (1..).find(|number| !meant.contains(number)).unwrap();
    let refused = |words: &str, message: &str| {
        let output = run(words, &[&demo]);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(message), "{words}: {errors}");
    };
    let words = |number: usize| format!("why --rate 5mbps --input len>1000 --packet {number}");
    refused(&words(left_out), &format!("--input leaves packet {left_out} out"));
    refused(&words(18_950), "there is no packet 18950; it has 18949");
    refused("why --rate 5mbps --at 1s --input false", "--input leaves every packet out");
}

const TABLE: &str = "flow,size,enqueued,dequeued,class\n\
    10.0.0.1:1 > 10.0.0.9:80 tcp,1000,0,1000000,0\n[2001:db8::1]:1 > [2001:db8::9]:80 tcp,1000,0,2000000,1\n\
    a host,1000,0,3000000,0\n10.0.0.1 > 10.0.0.9,1000,1000000,4000000,0\n10.0.0.2:5 > 10.0.0.9:80 udp,500,0,5000000,1\n";

#[test]
fn rows_of_a_table_are_chosen_and_keep_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.csv");
    std::fs::write(&path, TABLE).unwrap();
    let chosen = |expression: &str| Report::analyze("--departures --tau 1ns --input", &[expression.as_ref(), &path]);
    for (expression, rows) in [
        ("class == 0", 3),
        ("dst_port == 80", 3),
        ("dst net 10.0.0.0/8", 3),
        ("src_ip == 2001:db8::1", 1),
        ("delay >= 3ms and tcp", 0),
        ("delay >= 3ms", 3),
        ("src_ip == ::", 1),
        ("size < 600B or packet == 1", 2),
    ] {
        let report = chosen(expression);
        assert_eq!((report.total("/packets"), skipped(&report.summary)), (rows, 5 - rows), "{expression}");
        assert_eq!(report.summary["skipped"]["unnamed_flows"], 1);
    }
    let before = directory.path().join("before.csv");
    let kept: Vec<_> = TABLE.lines().filter(|line| !line.ends_with(",1")).collect();
    std::fs::write(&before, kept.join("\n")).unwrap();
    let (one, other) = (chosen("class = 0"), Report::analyze("--departures --tau 1ns", &[&before]));
    assert_eq!((figures(one.summary), one.bursts), (figures(other.summary), other.bursts));
    let answer = why("--departures --packet 4 --input class=0", &[&path]);
    assert_eq!((number(&answer, "/victim/packet"), number(&answer, "/direct/packets")), (4, 2));
    let output = run("why --departures --packet 2 --input class=0", &[&path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--input leaves row 2 out"));
}

/// The lines of a simulation: the one about the network, and the report of its meter.
fn sim(expression: Option<&str>, paths: &[&Path]) -> (Value, Report) {
    let chosen: Vec<&Path> = expression.iter().flat_map(|text| ["--input".as_ref(), Path::new(text)]).collect();
    let paths: Vec<_> = chosen.into_iter().chain(paths.iter().copied()).collect();
    let text = printed(run(&format!("sim {SMALL} --tau 1ms --json"), &paths), 0);
    let (about, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.contains("\"kind\":\"sim\""));
    (serde_json::from_str(about[0]).unwrap(), Report::parse(&rest.join("\n")))
}

#[test]
fn a_meter_analyses_the_chosen_packets_and_the_link_carries_all() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("all.parquet");
    let (about, all) = sim(None, &["--parquet".as_ref(), &table]);
    let drops =
        |report: &Report| report.summary.pointer("/totals/drops/overlimit").and_then(Value::as_u64).unwrap_or(0);
    let (mut packets, mut dropped) = (0, 0);
    for expression in ["udp", "not udp"] {
        let (same, report) = sim(Some(expression), &[]);
        assert_eq!(same, about, "the link carries all");
        assert_eq!(report.total("/packets") + skipped(&report.summary), all.total("/packets"));
        packets += report.total("/packets");
        dropped += drops(&report);
        // A table of all departures gives the same result.
        let other = Report::analyze("--departures --tau 1ms --input", &[expression.as_ref(), &table]);
        for pointer in
            ["/totals/departed_packets", "/totals/departed_bytes", "/totals/peak_delay_ns", "/totals/peak_depth_bytes"]
        {
            assert_eq!(report.total(pointer), other.total(pointer), "{expression}: {pointer}");
        }
        let flows: Vec<_> = report.bursts.iter().flat_map(|burst| list(burst, "/culprits/0/flows")).collect();
        let is_udp = |flow: &Value| flow["flow"].as_str().unwrap().ends_with("udp");
        assert!(
            !flows.is_empty() && flows.into_iter().all(|flow| is_udp(flow) == (expression == "udp")),
            "{expression}"
        );
    }
    assert_eq!((packets, dropped), (all.total("/packets"), drops(&all)));
    assert!(dropped > 0);
    // Attributes of a packet that is dropped as it arrives.
    let (_, report) = sim(Some("delay == 0 and backlog_in == 0 and packets_out == 0 and enqueued > 0"), &[]);
    assert_eq!(drops(&report), dropped);
    let (_, report) = sim(Some("delay > 1ms"), &[]);
    assert!(report.total("/packets") > 0 && drops(&report) == 0);
}

#[test]
fn an_invalid_expression_leaves_older_files_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let html = directory.path().join("report.html");
    std::fs::write(&html, "older").unwrap();
    for words in [
        format!("analyze {DEMO} --rate 1gbps"),
        format!("tap {DEMO} --egress data/formats/sll113.pcap"),
        format!("sim {SMALL}"),
    ] {
        let output = run(&format!("{words} --input nonsense --html"), &[&html]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("nonsense"), "{words}");
        assert_eq!(std::fs::read_to_string(&html).unwrap(), "older", "{words}");
    }
}

/// The rows of a query with JSON output, and its last line.
fn rows(words: &str, paths: &[&Path]) -> (Vec<Value>, Value) {
    let text = printed(run(&format!("query --json {words}"), paths), 0);
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = lines.pop().unwrap();
    (lines.into_iter().map(|mut line| line["values"].take()).collect(), answer)
}

#[test]
fn a_table_that_analyze_wrote_can_be_queried() {
    let (demo, directory) = (file(DEMO), tempfile::tempdir().unwrap());
    let table = directory.path().join("departures.parquet");
    let report = Report::analyze("--rate 20mbps --parquet", &[&table, &demo]);
    let (sums, answer) = rows("--departures --select count,sum(length),max(delay),min(enqueued)", &[&table]);
    assert_eq!(answer["skipped"], json!({}), "every name is a flow's");
    assert_eq!(sums[0]["count"], report.summary["totals"]["departed_packets"]);
    assert_eq!(sums[0]["sum(length)"], report.summary["totals"]["departed_bytes"]);
    assert_eq!(number(&sums[0], "/max(delay)"), report.total("/totals/peak_delay_ns"));
    assert_eq!(sums[0]["min(enqueued)"], answer["first_ns"]);
    let (flows, _) = rows("--departures --group flow --select count", &[&table]);
    assert_eq!(flows.len() as u64, report.total("/flows"));
    // The addresses match the flows' names.
    let (meant, _) = rows("--departures --group flow --select count", &[&table, "udp and dst port 3480".as_ref()]);
    assert!(!meant.is_empty());
    let fits = |row: &Value| row["flow"].as_str().is_some_and(|name| name.ends_with(":3480 udp"));
    assert!(flows.iter().filter(|row| fits(row)).eq(meant.iter()), "{meant:?}");
    // A query of the capture finds the same number, because no packet was dropped.
    let (frames, _) = rows("--select count", &[&demo, "udp and dst port 3480".as_ref()]);
    let counted: u64 = meant.iter().map(|row| number(row, "/count")).sum();
    assert_eq!(frames[0]["count"], counted);
    let (late, answer) = rows("--departures --from 1s --to 2s --select count,min(dequeued),max(dequeued)", &[&table]);
    let since = |name: &str| common::integer(&late[0][name]).unwrap() - number(&answer, "/first_ns");
    assert!(since("min(dequeued)") >= 1_000_000_000 && since("max(dequeued)") < 2_000_000_000);
    let out = directory.path().join("udp.parquet");
    let (_, answer) =
        rows("--departures --select enqueued,dequeued,flow,length --parquet", &[&out, &table, "udp".as_ref()]);
    assert!(number(&answer, "/matched") > 4_000 && out.exists());
}
