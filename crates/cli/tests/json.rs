//! The JSON lines: their schema, their order, and that they say what the text says.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

mod common;

use common::{Report, captures, file, list, number, printed, run, shared};
use serde_json::Value;

fn schema() -> String {
    std::fs::read_to_string(file("docs/report.schema.json")).expect("the schema is in the repository")
}

/// Every line of an analysis is what the schema says.
fn validate(words: &str, paths: &[&std::path::Path]) {
    validate_command(&format!("analyze --json {words}"), paths);
}

/// Every line of a command is what the schema says.
fn validate_command(words: &str, paths: &[&std::path::Path]) {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
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
fn the_schema_in_the_repository_is_that_of_the_program() {
    assert!(
        printed(run("generate schema", &[]), 0) == schema(),
        "docs/report.schema.json is old: queuescope generate schema > docs/report.schema.json"
    );
}

#[test]
fn the_schema_refuses_what_is_no_line() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut line = Report::of("--rate 10mbps crates/cli/tests/data/whole.pcap", &[]).summary;
    assert!(validator.is_valid(&line));
    line["packets"] = "six".into();
    assert!(!validator.is_valid(&line));
    assert!(!validator.is_valid(&serde_json::json!({ "kind": "verse" })));
}

#[test]
fn every_line_is_what_the_schema_says() {
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
    if let Some(path) = shared("every_line_is_what_the_schema_says", "pcap/auckland2-2000-part1.pcap.xz") {
        validate("--rate 10mbps --across-classes 10ms", &[&path]);
    }
}

#[test]
fn the_lines_say_what_the_text_says() {
    let words = "data/demo.pcap.xz --rate 20mbps";
    let report = Report::of(words, &[]);
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
    let all = Report::of("data/demo.pcap.xz --rate 20mbps", &[]);
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
fn as_many_bursts_are_kept_as_were_asked_for() {
    let all = Report::of("data/demo.pcap.xz --rate 20mbps", &[]);
    let report = Report::of("data/demo.pcap.xz --rate 20mbps --most-bursts 5", &[]);
    assert_eq!(report.bursts.len(), 5);
    assert_eq!(report.total("/bursts"), all.bursts.len() as u64, "those left out are counted");
    // The longest were kept.
    let mut peaks: Vec<_> = all.bursts.iter().map(|burst| number(burst, "/peak_delay_ns")).collect();
    peaks.sort_unstable();
    let least = report.bursts.iter().map(|burst| number(burst, "/peak_delay_ns")).min().unwrap();
    assert_eq!(least, peaks[peaks.len() - 5]);
}

#[test]
fn a_granularity_that_is_named_twice_is_told_once() {
    let report = Report::of("data/demo.pcap.xz --rate 20mbps --by dst,5tuple,dst", &[]);
    let names: Vec<_> = list(&report.summary, "/culprits").iter().map(|level| level["granularity"].clone()).collect();
    assert_eq!(names, ["dst", "5tuple"]);
}

/// An independent simulation of the queue in exact fractions found these numbers; among the bursts are three of one
/// packet that was hit, and drops before the first packet of a burst left.
#[test]
fn bursts_of_one_packet_are_found_and_drops_are_counted_from_a_bursts_start() {
    let report = Report::of("data/demo.pcap.xz --rate 20mbps --tau 5ms --limit none --most-bursts 9999", &[]);
    assert_eq!(report.bursts.len(), 52);
    let report = Report::of("data/demo.pcap.xz --rate 20mbps --tau 1ms --limit none --most-bursts 9999", &[]);
    assert_eq!(report.bursts.len(), 203);
    let report = Report::of("data/demo.pcap.xz --rate 10mbps --limit 20000bytes --tau 5ms", &[]);
    let drops: Vec<_> = [0, 2, 9, 14, 17].iter().map(|&index| report.bursts[index]["drops"].as_u64()).collect();
    assert_eq!(drops, [6, 14, 18, 88, 500].map(Some));
}
