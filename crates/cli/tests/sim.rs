//! `sim`: what it prints and writes.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{file, list, number, printed, run, run_with_input};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const SMALL: &str = "crates/cli/tests/data/sim.toml";

fn lines(words: &str) -> Vec<Value> {
    let text = printed(run(&format!("sim {SMALL} --json {words}"), &[]), 0);
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn sim(words: &str) -> Value {
    lines(words).into_iter().find(|line| line["kind"] == "sim").expect("there is a line about the simulation")
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(file("docs/report.schema.json")).unwrap()).unwrap()
}

#[test]
fn every_line_matches_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for words in ["", "--set link.discipline=fq-codel", "--set link.pipeline=pie-dp", "--meter bottleneck-back"] {
        for line in lines(words) {
            let errors: Vec<_> = validator.iter_errors(&line).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{words}: {errors:?}");
        }
    }
}

/// The overhead of a scenario and of `analyze` have the same syntax and the same errors.
#[test]
fn an_overhead_has_the_same_syntax_everywhere() {
    let capture = "analyze crates/cli/tests/data/whole.pcap --rate 1mbps --json";
    for (text, of_frames, of_packets) in
        [("none", 0, 0), ("38", 38, 38), ("38B", 38, 38), ("0.2kB", 200, 200), ("ethernet", 24, 38)]
    {
        let first = printed(run(&format!("{capture} --overhead {text}"), &[]), 0);
        let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
        assert_eq!(number(&first, "/setup/overhead_bytes"), of_frames, "{text}");
        let link = &sim(&format!("--set link.overhead={text} --set duration=1s --set warmup=0s"))["links"][0];
        assert_eq!(number(link, "/overhead_bytes"), of_packets, "{text}");
    }
    let complaint = |words: String| {
        let output = run(&words, &[]);
        assert_eq!(output.status.code(), Some(2), "{words}");
        // Undo the wrapping of long lines.
        String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (text, why) in [
        ("38KB", "more than 256 bytes, the most that a link adds to a packet"),
        ("38b", "may be bit or B"),
        ("cable", "the name is unknown"),
    ] {
        let commands = [format!("{capture} --overhead {text}"), format!("sim {SMALL} --set link.overhead={text}")];
        for complaint in commands.map(complaint) {
            let parts =
                [&format!("'{text}' is not an overhead"), why, "none, ethernet, or a number of bytes up to 256"];
            assert!(parts.iter().all(|part| complaint.contains(*part)), "{complaint}");
        }
    }
}

/// Packets offered to a link are sent, dropped or still queued, and the receivers' goodput fits the bytes sent.
#[test]
fn counts_agree() {
    for words in ["", "--set link.discipline=codel", "--set link.discipline=pie --set link.limit=100packets"] {
        let sim = sim(words);
        let link = &list(&sim, "/links")[0];
        let dropped: u64 = link["drops"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        let (offered, sent) = (number(link, "/offered_packets"), number(link, "/sent_packets"));
        // The packets that waited at the end of the warm-up are sent or dropped after it: at most a full queue.
        assert!(offered.abs_diff(sent + dropped) <= 100, "{words}: {offered} {sent} {dropped}");
        let groups = list(link, "/groups");
        assert_eq!(
            groups.iter().map(|group| group["name"].as_str().unwrap()).collect::<Vec<_>>(),
            ["downloads", "call"]
        );
        assert_eq!(groups.iter().map(|group| number(group, "/sojourn/count")).sum::<u64>(), sent);
        let counted = (number(&sim, "/duration_ns") - number(&sim, "/warmup_ns")) as f64 / 1e9;
        let goodput: f64 = list(&sim, "/groups").iter().map(|group| group["goodput_bps"].as_f64().unwrap()).sum();
        let carried = number(link, "/sent_bytes") as f64 * 8.0 / counted;
        assert!(goodput < carried && goodput > 0.9 * carried, "{words}: {goodput} of {carried}");
        let share = link["utilisation"].as_f64().unwrap();
        assert!((share - (carried / 5e6).min(1.0)).abs() < 1e-9, "{share}");
        // Samples are taken at the start and every tenth of a second. The bytes between them add up.
        let samples = list(&sim, "/samples");
        assert_eq!(samples.len(), 31);
        let late = samples.iter().filter(|sample| number(sample, "/at_ns") > number(&sim, "/warmup_ns"));
        let summed: u64 = late.map(|sample| number(&list(sample, "/links")[0], "/sent_bytes")).sum();
        assert!(number(link, "/sent_bytes").abs_diff(summed) <= 3_000, "{words}");
    }
}

/// Short flows, one after another: their goodput over the run adds up to what the link carries, their goodput over
/// their lifetimes does not.
#[test]
fn goodput_over_the_run_adds_up_and_over_lifetimes_does_not() {
    let scenario = "duration = \"4s\"\n[link]\nrate = \"27mbps\"\ndelay = \"1ms\"\n[[flows]]\nname = \"pages\"\ncount = 10\n\
                    stagger = \"200ms\"\nbytes = \"200kB\"\n";
    let output = printed(run_with_input("sim - --json", scenario.as_bytes()), 0);
    let mut lines = output.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let sim = lines.find(|line| line["kind"] == "sim").expect("there is a line about the simulation");
    let sum = |rows: &str, key: &str| list(&sim, rows).iter().map(|row| row[key].as_f64().expect(key)).sum::<f64>();
    let (over_run, over_lifetimes) = (sum("/flows", "goodput_bps"), sum("/flows", "lifetime_goodput_bps"));
    assert!((over_run - sum("/groups", "goodput_bps")).abs() < 1.0, "{over_run}");
    assert!((over_run - 10.0 * 200_000.0 * 8.0 / 4.0).abs() < 1.0 && over_run <= 27e6, "{over_run}");
    assert!(over_lifetimes > 2.0 * 27e6, "{over_lifetimes}");
    let (flows, group) = (list(&sim, "/flows"), &list(&sim, "/groups")[0]);
    let most = flows.iter().map(|flow| flow["lifetime_goodput_bps"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(group["most_lifetime_goodput_bps"], most);
    let text = printed(run_with_input("sim -", scenario.as_bytes()), 0);
    assert!(text.contains("goodput is over the run, least and most over the lifetime of a flow"), "{text}");
}

#[test]
fn the_seed_determines_the_output() {
    let of = |words: &str| printed(run(&format!("sim {SMALL} --json {words}"), &[]), 0);
    let red = "--set link.discipline=red";
    assert_eq!(of(red), of(red));
    assert_ne!(of(red), of(&format!("{red} --set seed=2")));
}

/// `--explain` prints a scenario that has the same results.
#[test]
fn an_explained_scenario_runs_the_same() {
    let words = "--set link.discipline=pie --set flows.downloads.count=3";
    let explained = printed(run(&format!("sim {SMALL} --explain {words}"), &[]), 0);
    assert!(explained.contains("target = \"15ms\""), "{explained}");
    let again = printed(run_with_input("sim - --json", explained.as_bytes()), 0);
    let direct = printed(run(&format!("sim {SMALL} --json {words}"), &[]), 0);
    let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&again), body(&direct));
}

#[test]
fn errors_show_where_the_scenario_is_wrong() {
    for (words, shown) in [
        ("--set link.rat=5mbps", "rate"),
        ("--set link.rate=5", "unit"),
        ("--set link.discipline=coddle", "codel"),
        ("--set duration=0s", "duration"),
        ("--meter bottelneck", "bottleneck"),
    ] {
        let output = run(&format!("sim {SMALL} {words}"), &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{words}: {error}");
        assert!(error.contains(shown), "{words}: {error}");
    }
    let missing = run("sim nowhere.toml", &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere.toml"));
    // The trace replaces the rate, so the limit must not be a time at that rate.
    let trace = run(&format!("sim {SMALL} --set link.trace=nowhere.down --set link.limit=100packets"), &[]);
    let error = String::from_utf8_lossy(&trace.stderr);
    assert!(trace.status.code() == Some(2) && error.contains("nowhere.down"), "{error}");
}

/// A failed start leaves an older report as it was.
#[test]
fn a_wrong_scenario_leaves_outputs_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("old.html");
    fs::write(&html, "old").unwrap();
    let output = run(&format!("sim {SMALL} --set link.rate=never --html"), &[&html]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&html).unwrap(), "old");
}

#[test]
fn the_page_and_the_tables_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let (html, packets, hops) = (path("page.html"), path("packets.parquet"), path("hops.parquet"));
    let words =
        format!("sim {SMALL} --html {} --parquet {} --telemetry {}", html.display(), packets.display(), hops.display());
    printed(run(&words, &[]), 0);
    assert!(fs::read_to_string(&html).unwrap().contains("Two downloads and a call."));
    for table in [&packets, &hops] {
        let bytes = fs::read(table).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{}", table.display());
    }
    // The departures of the bottleneck can be analysed like any table of departures.
    let again = printed(run(&format!("analyze {} --departures --json", packets.display()), &[]), 0);
    let summary: Value = serde_json::from_str(again.lines().last().unwrap()).unwrap();
    let sent = number(&list(&sim(""), "/links")[0], "/sent_packets");
    // Packets that waited at the end of the warm-up are sent after it, and are not analysed.
    assert!(sent.abs_diff(number(&summary, "/packets")) < 60);
}

/// Every example scenario runs: for a moment only, unless something in it starts later.
#[test]
fn the_scenarios_run() {
    let mut names: Vec<_> = fs::read_dir(file("scenarios")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    assert!(names.len() >= 12);
    for path in names {
        let mut output = run("sim --no-sweep --set duration=300ms --set warmup=0s --json", &[&path]);
        if String::from_utf8_lossy(&output.stderr).contains("the traffic starts after the end of the scenario") {
            output = run("sim --no-sweep --json", &[&path]);
        }
        let text = printed(output, 0);
        let sim = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let sim = sim.into_iter().find(|line| line["kind"] == "sim").unwrap();
        assert!(number(&sim, "/hops") > 0, "{}", path.display());
    }
}

/// Each meter's question is about its own link, and options of the command line take precedence. The results are those of a run
/// with this meter alone.
#[test]
fn each_meter_of_a_scenario_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metered.toml");
    let meters =
        "\n[[meters]]\ntau = \"3ms\"\nalpha = 0.2\nby = \"src\"\n\n[[meters]]\nreverse = true\ntau = \"100us\"\n";
    fs::write(&path, fs::read_to_string(file(SMALL)).unwrap() + meters).unwrap();
    let of = |words: &str| -> Vec<Value> {
        let text = printed(run(&format!("sim --json {words}"), &[&path]), 0);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let kinds = |lines: &[Value], kind: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["kind"] == kind).cloned().collect()
    };
    let both = of("");
    let (setup, queues) = (&both[0]["setup"], kinds(&both, "queue"));
    assert_eq!((number(setup, "/tau_ns"), &setup["granularities"]), (3_000_000, &serde_json::json!(["src"])));
    assert_eq!(setup["alpha"].as_f64(), Some(0.2));
    assert_eq!((queues.len(), &queues[0]["link"]), (1, &"bottleneck-back".into()));
    assert_eq!(number(&queues[0], "/setup/tau_ns"), 100_000);
    let summaries = kinds(&both, "summary");
    let alone = of("--meter bottleneck-back");
    assert_eq!(number(&alone[0], "/setup/tau_ns"), 100_000);
    assert_eq!(&summaries[1..], kinds(&alone, "summary"));
    let alone = of("--meter bottleneck");
    assert_eq!(&alone[0]["setup"], setup);
    assert_eq!(&summaries[..1], kinds(&alone, "summary"));
    assert!(kinds(&alone, "queue").is_empty());
    assert!(number(&summaries[1], "/packets") > 100 && summaries[0]["packets"] != summaries[1]["packets"]);
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(both.iter().all(|line| validator.is_valid(line)));

    let given = of("--meter bottleneck --tau 2ms --alpha 5% --by conn");
    assert_eq!((number(&given[0], "/setup/tau_ns"), given[0]["setup"]["alpha"].as_f64()), (2_000_000, Some(0.05)));
    assert_eq!(given[0]["setup"]["granularities"], serde_json::json!(["conn"]));
    let given = of("--tau 2ms --alpha 5% --by conn");
    for setup in [&given[0]["setup"], &kinds(&given, "queue")[0]["setup"]] {
        assert_eq!((number(setup, "/tau_ns"), &setup["granularities"]), (2_000_000, &serde_json::json!(["conn"])));
        assert_eq!(setup["alpha"].as_f64(), Some(0.05));
    }
    assert!(kinds(&of("--meter none"), "queue").is_empty());
    let text = printed(run("sim --meter none", &[&path]), 0);
    assert!(
        text.contains("bottleneck tail-drop") && !text.contains("The queue of") && !text.contains("burst"),
        "{text}"
    );
    let swept = run("sim --meter none --seeds 2", &[&path]);
    assert_eq!((swept.status.code(), swept.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(String::from_utf8_lossy(&swept.stderr).contains("--no-sweep"));
}

/// The constants for "not given" are the defaults of the command line.
#[test]
fn default_constants_match_the_command_line() {
    let setup = lines("")[0]["setup"].clone();
    assert_eq!(setup["alpha"].as_f64(), Some(queuescope_analysis::ALPHA));
    let by: Vec<_> = queuescope_cli::args::Keys::DEFAULT.iter().map(ToString::to_string).collect();
    assert_eq!(setup["granularities"], serde_json::json!(by));
}
