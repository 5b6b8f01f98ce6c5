//! The lines of JSON: their schema, their order, and their agreement with the text.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{Report, captures, file, list, number, printed, run, run_with_input, shared};
use serde_json::Value;

fn schema() -> String {
    std::fs::read_to_string(file("docs/report.schema.json")).expect("the schema is in the repository")
}

/// Checks that every line of an analysis matches the schema.
fn validate(words: &str, paths: &[&std::path::Path]) {
    validate_command(&format!("analyze --json {words}"), paths);
}

/// Checks that every line of a command matches the schema.
fn validate_command(words: &str, paths: &[&std::path::Path]) {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let output = run(words, paths);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{words} {paths:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() >= 2 && text.ends_with('\n'));
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{words} {paths:?}: {errors:?}: {line}");
    }
}

#[test]
fn the_schema_in_the_repository_is_current() {
    assert!(
        printed(run("generate schema", &[]), 0) == schema(),
        "docs/report.schema.json is old: queuescope generate schema > docs/report.schema.json"
    );
}

#[test]
fn the_schema_refuses_invalid_lines() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut line = Report::analyze("--rate 10mbps crates/cli/tests/data/whole.pcap", &[]).summary;
    assert!(validator.is_valid(&line));
    line["packets"] = "six".into();
    assert!(!validator.is_valid(&line));
    assert!(!validator.is_valid(&serde_json::json!({ "kind": "verse" })));
}

#[test]
fn every_line_matches_the_schema() {
    for path in captures() {
        validate("--rate 1mbps --by 5tuple,conn,src/24,vlan,dscp --estimator inner,outer,overlap", &[&path]);
    }
    validate("data/demo.pcap.xz --rate 20mbps --limit 20ms --split-gso", &[]);
    validate("crates/cli/tests/data/departures.csv --departures --tau 10us", &[]);
    validate("crates/cli/tests/data/cut.pcap --rate 1gbps", &[]);
    validate("crates/cli/tests/data/corrupt.pcapng --rate 1mbps", &[]);
    validate_command("p4 fit --json", &[]);
    validate_command("query data/demo.pcap.xz udp --limit 5 --json", &[]);
    validate_command(
        "query data/demo.pcap.xz --group src_ip,ts/1s --select mean(ttl),max(src_mac),sum(length) --json",
        &[],
    );
    if let Some(path) = shared("every_line_matches_the_schema", "pcap/auckland2-2000-part1.pcap.xz") {
        validate("--rate 10mbps --across-classes 10ms", &[&path]);
    }
}

#[test]
fn the_lines_agree_with_the_text() {
    let words = "data/demo.pcap.xz --rate 20mbps";
    let report = Report::analyze(words, &[]);
    let text = printed(run(&format!("analyze {words}"), &[]), 0);
    let thousands = |number: u64| {
        let digits = number.to_string();
        let first = digits.len() % 3;
        let groups = digits.as_bytes()[first..].chunks(3).map(|group| std::str::from_utf8(group).unwrap());
        [&digits[..first]].into_iter().filter(|group| !group.is_empty()).chain(groups).collect::<Vec<_>>().join(",")
    };
    let flows = report.total("/flows");
    assert!(text.contains(&format!("{} packets", thousands(report.total("/packets")))));
    assert!(
        text.contains(&format!("{} flows by 5tuple", thousands(flows)))
            || text.contains(&format!("{} flows", thousands(flows)))
    );
    assert!(text.contains(&format!("{} bursts with delays of", thousands(report.total("/bursts")))));
    for (reason, count) in report.summary["skipped"].as_object().unwrap() {
        let note = format!("{} {reason}", thousands(count.as_u64().unwrap()));
        assert!(text.contains(&note), "{note}");
    }
    for culprit in list(&report.summary, "/culprits/0/flows").iter().take(3) {
        assert!(text.contains(culprit["flow"].as_str().unwrap()));
    }
}

#[test]
fn the_first_and_last_line_agree_with_the_rest() {
    let all = Report::analyze("data/demo.pcap.xz --rate 20mbps", &[]);
    for key in ["packets", "bytes", "flows", "bursts", "skipped", "damage"] {
        assert!(all.summary.get(key).is_some(), "{key}");
    }
    assert_eq!(all.first["setup"]["rate_bps"], 20_000_000);
    assert_eq!(all.summary["packets"], all.summary["totals"]["packets"]);
    assert_eq!(all.summary["flows"], all.summary["flows_by_granularity"][0]["flows"]);
    let peak = all.bursts.iter().map(|burst| number(burst, "/peak_delay_ns")).max().unwrap();
    assert_eq!(peak, all.total("/totals/peak_delay_ns"));
    let numbers: Vec<_> = all.bursts.iter().map(|burst| number(burst, "/number")).collect();
    assert_eq!(numbers, (1..=all.bursts.len() as u64).collect::<Vec<_>>());
}

#[test]
fn the_number_of_bursts_can_be_limited() {
    let all = Report::analyze("data/demo.pcap.xz --rate 20mbps", &[]);
    let report = Report::analyze("data/demo.pcap.xz --rate 20mbps --most-bursts 5", &[]);
    assert_eq!(report.bursts.len(), 5);
    assert_eq!(report.total("/bursts"), all.bursts.len() as u64, "those left out are counted");
    // Those with the longest delays are kept.
    let mut peaks: Vec<_> = all.bursts.iter().map(|burst| number(burst, "/peak_delay_ns")).collect();
    peaks.sort_unstable();
    let least = report.bursts.iter().map(|burst| number(burst, "/peak_delay_ns")).min().unwrap();
    assert_eq!(least, peaks[peaks.len() - 5]);
}

#[test]
fn a_granularity_that_is_given_twice_is_reported_once() {
    let report = Report::analyze("data/demo.pcap.xz --rate 20mbps --by dst,5tuple,dst", &[]);
    let names: Vec<_> = list(&report.summary, "/culprits").iter().map(|level| level["granularity"].clone()).collect();
    assert_eq!(names, ["dst", "5tuple"]);
}

/// An independent simulation of the queue in exact fractions found these numbers. Three of the bursts have only one packet
/// that was hit, and some have drops before their first packet left.
#[test]
fn bursts_of_one_packet_are_found_and_drops_count_from_the_start_of_a_burst() {
    let report = Report::analyze("data/demo.pcap.xz --rate 20mbps --tau 5ms --limit none --most-bursts 9999", &[]);
    assert_eq!(report.bursts.len(), 52);
    let report = Report::analyze("data/demo.pcap.xz --rate 20mbps --tau 1ms --limit none --most-bursts 9999", &[]);
    assert_eq!(report.bursts.len(), 203);
    let report = Report::analyze("data/demo.pcap.xz --rate 10mbps --limit 20000bytes --tau 5ms", &[]);
    let drops: Vec<_> = [0, 2, 9, 14, 17].iter().map(|&index| report.bursts[index]["drops"].as_u64()).collect();
    assert_eq!(drops, [6, 14, 18, 88, 500].map(Some));
}

/// A capture of Ethernet frames of 1514 bytes at these microseconds, with the first 60 bytes of each.
fn frames(times: &[u32]) -> Vec<u8> {
    let mut ip = [0; 46];
    (ip[0], ip[2], ip[3], ip[8], ip[9]) = (0x45, 0x05, 0xdc, 64, 17);
    (ip[12], ip[15], ip[16], ip[19]) = (10, 1, 10, 2);
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &ip[..]].concat();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |time: &u32| [words(&[1_700_000_000, *time, 60, 1514]), frame.clone()].concat();
    let records: Vec<u8> = times.iter().flat_map(record).collect();
    [words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]), records].concat()
}

/// The overhead of a link takes time on the link and no room in the queue: ten frames fit, and each takes the time of 1538 bytes.
#[test]
fn overhead_takes_time_and_no_room() {
    for overhead in ["24", "ethernet"] {
        let words = format!("analyze - --json --rate 8gbps --limit 15140B --overhead {overhead}");
        let report = Report::parse(&printed(run_with_input(&words, &frames(&[0; 20])), 0));
        assert_eq!(number(&report.first, "/setup/overhead_bytes"), 24, "{overhead}");
        let totals = ["departed_packets", "departed_bytes", "bytes", "peak_delay_ns", "peak_depth_bytes"];
        let totals = totals.map(|name| report.total(&format!("/totals/{name}")));
        // Nine frames are before the last one that fits. A byte takes a nanosecond.
        assert_eq!(totals, [10, 15_140, 20 * 1514, 9 * 1538, 9 * 1514], "{overhead}");
        assert_eq!(report.total("/totals/drops/overlimit"), 10, "{overhead}");
        // A microsecond after the first frame, 538 bytes of it are left to send.
        let words = format!("why - --json --rate 8gbps --overhead {overhead} --packet 2");
        let why: Value = serde_json::from_str(printed(run_with_input(&words, &frames(&[0, 1])), 0).trim_end()).unwrap();
        let [waited, left] = ["/victim/delay_ns", "/on_link/remaining_ns"].map(|name| number(&why, name));
        assert_eq!((waited, left), (538, 538), "{why}");
    }
}
