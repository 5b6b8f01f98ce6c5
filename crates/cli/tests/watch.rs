//! Aggregates and triggers of packets that are recorded: values are stored with the folder, and alerts are printed.

#![allow(clippy::disallowed_methods, reason = "a test looks at what was written")]

use crate::common::{file, integer, printed, run};
use serde_json::Value;
use std::path::Path;

const DEFINED: &str = "--filter call=udp --aggregate calls=count@call --aggregate bytes=sum(length) --trigger many=calls>100 \
                       --trigger burst=bytes>250KB@10ms/100ms";

/// A parameter of a recipe that has two values.
const TWICE: &str = "--definitions recipes/path-conformance.toml --set switch=1 --set switch=2";

fn alerts(folder: &Path) -> Vec<Value> {
    let text = printed(run("watch --all", &[folder]), 0);
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// Queries the folder for calls.
fn query_calls(log: &Path, options: &str) -> std::process::Output {
    run(&format!("query {options}"), &[log, Path::new("udp")])
}

#[test]
fn triggers_fire_by_the_timestamps_of_packets() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let recorded = printed(run(&format!("record {DEFINED} --log"), &[&log, &demo]), 0);
    assert!(recorded.contains("times a trigger fired"), "{recorded}");
    let first = alerts(&log);
    let named = |name: &str| first.iter().filter(|alert| alert["trigger"] == name).count();
    assert_eq!(named("many"), 1, "a trigger fires when its condition becomes true, not while it stays true: {first:?}");
    assert!(named("burst") > 1, "{first:?}");
    // The alert is about the packets up to its time. A query gives the same time.
    let many = first.iter().find(|alert| alert["trigger"] == "many").expect("it fired");
    let times = printed(query_calls(&log, "--select ts --csv --limit 101"), 0);
    let last: u64 = times.lines().last().and_then(|line| line.parse().ok()).expect("it is a time");
    let at = integer(&many["at_ns"]).expect("it is a number");
    assert!(at > last && at < last + 20_000_000, "{at} after {last}");
    assert_eq!(many["value"].as_f64().map(|value| value > 100.0), Some(true));

    // Another recording has the same alerts: they do not depend on the speed of recording.
    let other = folder.path().join("other");
    printed(run(&format!("record {DEFINED} --log"), &[&other, &demo]), 0);
    assert_eq!(alerts(&other), first);

    // The next recording does not append to an incomplete line.
    let torn = other.join("alerts.jsonl");
    let text = std::fs::read(&torn).expect("it is there");
    std::fs::write(&torn, &text[..text.len() - 5]).expect("there is room");
    printed(run("record --log", &[&other, &demo]), 1);
    assert!(alerts(&other).starts_with(&first[..first.len() - 1]));

    // The definitions stay with the folder, and the next recording continues their values.
    let info = printed(run("log info", &[&log]), 0);
    let calls: u64 = printed(query_calls(&log, "--select count --csv"), 0)
        .lines()
        .nth(1)
        .and_then(|line| line.parse().ok())
        .expect("it is a number");
    assert!(info.contains(&format!("calls    {}", with_commas(calls))), "{info}");
    printed(run("record --log", &[&log, &demo]), 0);
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains(&format!("calls    {}", with_commas(2 * calls))), "{info}");
    // A recorder that was killed stored no values. They are computed from the records.
    std::fs::remove_file(log.join("aggregates.json")).expect("it is there");
    printed(run(&format!("record {DEFINED} --log"), &[&log, &demo]), 0);
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains(&format!("calls    {}", with_commas(3 * calls))), "{info}");
    assert!(printed(run("log verify", &[&log]), 0).contains("intact"));
}

#[test]
fn invalid_definitions_are_refused_before_recording() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    for words in ["--filter a", "--filter a=nonsense", "--aggregate a=count@b", "--trigger t=a>1", "--set a=b", TWICE] {
        assert_eq!(run(&format!("record {words} --log"), &[&log, &demo]).status.code(), Some(2), "{words}");
        assert!(!log.exists(), "{words}");
    }
    // A name cannot get another definition.
    printed(run("record --filter a=tcp --log", &[&log, &demo]), 0);
    assert_eq!(run("record --filter a=udp --log", &[&log, &demo]).status.code(), Some(2));
    // A path that is not a recorded folder, and a folder without alerts.
    assert_eq!(run("watch", &[folder.path()]).status.code(), Some(2));
    assert_eq!(printed(run("watch --all", &[&log]), 0), "");
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
