//! Files that version 0.1 wrote: each of them can be read, and recorded to.
//!
//! They are in `tests/data/v0.1`, written by that version from the first 400 packets of `data/demo.pcap.xz` (`analyze`
//! and `record`, with a rate of 2 Mb/s) and from `sweep.toml`. `killed` is the folder of a recorder that was killed.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::{ROOT, file, integer, number, printed, run};
use queuescope_report::json::{Line, write_line};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const DATA: &str = "crates/cli/tests/data/v0.1";

/// A copy of a folder, so that the test may record to it.
fn copied(name: &str, to: &Path) -> PathBuf {
    let (from, to) = (file(DATA).join(name), to.join(name));
    copy(&from, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("there is room");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be listed");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("it has one").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("there is room")),
        }
    }
}

/// All values of a JSON value that are not tables or lists, as text, by their paths. The names of keys are left out,
/// since some have changed.
fn leaves(value: &Value, to: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| leaves(value, to)),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, to)),
        Value::String(text) => to.push(text.clone()),
        // As a float may be written with a fraction or without.
        Value::Number(number) if number.is_f64() => to.push(format!("{:e}", number.as_f64().unwrap_or(f64::NAN))),
        other => to.push(other.to_string()),
    }
}

#[test]
fn json_lines_are_read_with_all_their_values() {
    let mut kinds = Vec::new();
    for name in ["analyze", "why", "query", "sim", "sweep"] {
        let text = fs::read_to_string(file(DATA).join(format!("{name}.jsonl"))).expect("it is there");
        for old in text.lines() {
            let line: Line = serde_json::from_str(old).unwrap_or_else(|error| panic!("{name}: {error}: {old}"));
            let mut new = Vec::new();
            write_line(&line, &mut new).expect("there is room");
            let [old, mut new]: [Value; 2] =
                [old.as_bytes(), &new].map(|text| serde_json::from_slice(text).expect("it is JSON"));
            assert_eq!(new.as_object_mut().expect("a line is an object").remove("format_version"), Some(2.into()));
            let [mut before, mut after] = [Vec::new(), Vec::new()];
            leaves(&old, &mut before);
            leaves(&new, &mut after);
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after, "{name}");
            kinds.push(old["kind"].as_str().expect("it has one").to_owned());
        }
    }
    for kind in ["analysis", "burst", "summary", "why", "row", "answer", "sim", "sweep_cell", "sweep"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}");
    }
}

#[test]
fn a_folder_is_whole_and_is_recorded_to() {
    let directory = tempfile::tempdir().expect("there is room");
    let log = copied("log", directory.path());
    printed(run("log verify", &[&log]), 0);
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), "count\n400\n");
    let plan = printed(run("query --explain", &[&log, "dst_ip == 10.72.0.230".as_ref()]), 0);
    assert!(plan.contains("through indexes"), "{plan}");
    assert!(printed(run("log info", &[&log]), 0).contains("calls    400 records"));
    let alerts = printed(run("watch --all", &[&log]), 0);
    assert_eq!(alerts.lines().count(), 6);
    for alert in alerts.lines() {
        let alert: Value = serde_json::from_str(alert).expect("it is JSON");
        assert!(integer(&alert["at_ns"]).is_some(), "{alert}");
    }
    // The definitions of the folder go on; they need not be repeated.
    printed(run("record crates/cli/tests/data/whole.pcap --log", &[&log]), 0);
    printed(run("log verify", &[&log]), 0);
    let recorded = printed(run("query crates/cli/tests/data/whole.pcap --select count --csv", &[]), 0);
    let recorded: u64 = recorded.trim_start_matches("count\n").trim().parse().expect("it is a number");
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), format!("count\n{}\n", 400 + recorded));
}

#[test]
fn a_folder_of_a_queue_is_asked_as_before() {
    let directory = tempfile::tempdir().expect("there is room");
    let queued = copied("queued", directory.path());
    printed(run("log verify", &[&queued]), 0);
    let counted = printed(run("query --json --select count,sum(length)", &[&queued]), 0);
    let row: Value = serde_json::from_str(counted.lines().next().expect("there is a row")).expect("it is JSON");
    assert_eq!(number(&row, "/values/count"), 400);
    let met = printed(run("query --in-queue --select count --csv", &[&queued, "delay > 1ms".as_ref()]), 0);
    assert_ne!(met, "count\n0\n");
    // It goes on, with the text of its schema.
    let before = fs::read_to_string(queued.join("schema.toml")).expect("it is there");
    printed(run("analyze crates/cli/tests/data/whole.pcap --rate 2mbps --log", &[&queued]), 0);
    printed(run("log verify", &[&queued]), 0);
    assert_ne!(printed(run("query --select count --csv", &[&queued]), 0), "count\n400\n");
    assert_eq!(fs::read_to_string(queued.join("schema.toml")).expect("it is there"), before);
}

#[test]
fn a_folder_of_a_killed_recorder_goes_on() {
    let directory = tempfile::tempdir().expect("there is room");
    let killed = copied("killed", directory.path());
    assert_eq!(printed(run("query --select count --csv", &[&killed]), 0), "count\n42\n");
    printed(run("record crates/cli/tests/data/whole.pcap --log", &[&killed]), 0);
    printed(run("log verify", &[&killed]), 0);
    assert!(printed(run("log info", &[&killed]), 0).contains("\nn "));
}

#[test]
fn a_table_gives_the_report_of_its_version() {
    let report = crate::common::Report::analyze("--departures --tau 1ms", &[&file(DATA).join("departures.parquet")]);
    let old = fs::read_to_string(file(DATA).join("analyze.jsonl")).expect("it is there");
    let old: Value = serde_json::from_str(old.lines().last().expect("it has a summary")).expect("it is JSON");
    for count in ["/packets", "/bytes", "/flows", "/bursts", "/totals/peak_delay_ns"] {
        assert_eq!(report.total(count), number(&old, count), "{count}");
    }
}

#[test]
fn results_of_a_sweep_are_joined() {
    let merged = printed(run("merge --json", &[&file(DATA).join("sweep")]), 0);
    let old = fs::read_to_string(file(DATA).join("sweep.jsonl")).expect("it is there");
    assert_eq!(merged.lines().count(), old.lines().count());
    for (new, old) in merged.lines().zip(old.lines()) {
        let [new, old]: [Line; 2] = [new, old].map(|line| serde_json::from_str(line).expect("it is a line"));
        assert_eq!(new, old);
    }
    // Doubles do not have this seed.
    assert!(merged.contains(r#""seed":"9007199254740993""#));
}

#[test]
fn scenarios_and_definitions_need_no_version_and_may_have_one() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name: &str| directory.path().join(name);
    for (name, command) in [("sweep.toml", "sim --explain"), ("definitions.toml", "record data/demo.pcap.xz --log")] {
        let text = fs::read_to_string(file(DATA).join(name)).expect("it is there");
        for (first, status) in [("", 0), ("format = 1\n", 0), ("format = 2\n", 2)] {
            let (written, log) = (path(name), path(&format!("log{}", first.trim())));
            fs::write(&written, format!("{first}{text}")).expect("there is room");
            let output = match name {
                "sweep.toml" => run(command, &[&written]),
                _ => run(command, &[&log, "--definitions".as_ref(), &written]),
            };
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(status), "{name}: {first}: {errors}");
            assert!(status == 0 || errors.contains("use a newer version of queuescope"), "{errors}");
        }
    }
    assert!(Path::new(ROOT).join(DATA).exists());
}
