//! Outputs besides the report: the annotated capture, the table, the page. And tables as input.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common;
use crate::common::{Report, file, list, number, packets, printed, run, run_with_input, shared};
use std::path::Path;
use std::process::Command;

/// Checks that `--pcapng` writes a capture unchanged and in order. Returns its comments, if tshark is installed.
fn annotates(path: &Path, words: &str) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.pcapng");
    let report = Report::analyze(&format!("{words} --pcapng"), &[&out, path]);
    let (before, after) = (packets(path), packets(&out));
    assert_eq!(before.len(), after.len(), "{}", path.display());
    assert_eq!(report.total("/packets"), after.len() as u64);
    let mut interfaces = std::collections::BTreeMap::new();
    let mut last = 0;
    for (number, (old, new)) in before.iter().zip(&after).enumerate() {
        // A packet without a time gets that of the packet before it.
        assert_eq!(old.2.unwrap_or(last), new.2.unwrap(), "{}: time of packet {number}", path.display());
        last = new.2.unwrap();
        assert_eq!((old.1, old.3), (new.1, new.3), "{}: packet {number}", path.display());
        assert!(old.4 == new.4, "{}: bytes of packet {number}", path.display());
        let now = *interfaces.entry(old.0).or_insert(new.0);
        assert_eq!(now, new.0, "{}: interface of packet {number}", path.display());
    }
    let mut distinct: Vec<_> = interfaces.values().collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), interfaces.len(), "interfaces stay apart");
    comments(&out).inspect(|comments| assert_eq!(comments.len(), after.len()))
}

/// The comments of a capture, if tshark is installed.
fn comments(path: &Path) -> Option<Vec<String>> {
    let tshark = Command::new("tshark").args(["-n", "-T", "fields", "-e", "frame.comment", "-r"]).arg(path).output();
    let Some(output) = tshark.ok().filter(|output| output.status.success()) else {
        println!("skipped: comments of {}: there is no tshark", path.display());
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn captures_come_back_with_comments() {
    let many = annotates(&file("data/formats/many-interfaces.pcapng"), "--rate 100kbps");
    assert!(many.iter().flatten().all(|comment| comment.starts_with("queuescope: ")), "{many:?}");
    if let Some(many) = many {
        assert!(many.iter().any(|comment| comment.contains("did not wait")), "{many:?}");
        assert!(many.iter().any(|comment| comment.contains("waited") && comment.contains(" % of ")), "{many:?}");
    }
    for path in common::captures() {
        annotates(&path, "--rate 1mbps");
    }
    for name in ["formats/eth-nanosecond.pcap", "formats/complex.pcapng"] {
        if let Some(path) = shared("captures_come_back_with_comments", name) {
            annotates(&path, "--rate 10mbps");
        }
    }
}

#[test]
fn drops_are_in_the_annotated_capture() {
    let path = file("data/formats/sll113.pcap");
    let words = "--rate 1mbps --limit 10packets --speedup 5";
    let drops = Report::analyze(words, &[&path]).total("/totals/drops/overlimit");
    assert!(drops > 10, "{drops}");
    if let Some(comments) = annotates(&path, words) {
        let dropped = comments.iter().filter(|comment| comment.contains("dropped")).count();
        assert_eq!(dropped as u64, drops);
    }
}

#[test]
fn super_packets_that_are_split_are_written_in_one_piece() {
    let path = file("data/demo.pcap.xz");
    let (whole, split) =
        (Report::analyze("--rate 20mbps", &[&path]), Report::analyze("--rate 20mbps --split-gso", &[&path]));
    assert!(whole.total("/totals/super_packets") > 500);
    assert!(split.total("/totals/departed_packets") > split.total("/packets"));
    assert!(split.total("/totals/departed_bytes") >= whole.total("/totals/departed_bytes"));
    annotates(&path, "--rate 20mbps --split-gso");
    // Some segments of a frame may be dropped and others not.
    annotates(&path, "--rate 5mbps --split-gso --limit 20packets");
}

#[test]
fn a_table_gives_the_same_analysis() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("out.parquet");
    let words = "--rate 20mbps --tau 10ms --by 5tuple data/demo.pcap.xz";
    let first = Report::analyze(&format!("{words} --parquet"), &[&table]);
    let second = Report::analyze("--departures --tau 10ms", &[&table]);
    assert_eq!(second.first["input"]["format"].as_str().unwrap().to_lowercase(), "parquet");
    for pointer in ["/packets", "/bytes", "/flows", "/bursts", "/totals/peak_delay_ns", "/totals/departed_bytes"] {
        assert_eq!(first.total(pointer), second.total(pointer), "{pointer}");
    }
    for (one, other) in first.bursts.iter().zip(&second.bursts) {
        for pointer in
            ["/start_ns", "/length_ns", "/peak_delay_ns", "/peak_at_ns", "/packets_over_tau", "/packets", "/bytes"]
        {
            assert_eq!(number(one, pointer), number(other, pointer), "{pointer}: {one} {other}");
        }
        let culprits = |burst| {
            let flows = list(burst, "/culprits/0/flows").iter();
            let mut flows: Vec<_> = flows
                .map(|flow| (number(flow, "/bytes"), number(flow, "/packets"), flow["flow"].to_string()))
                .collect();
            flows.sort();
            flows
        };
        let (one, other) = (culprits(one), culprits(other));
        // Equal flows may be listed in another order, and others of them left out of the list.
        let named =
            |flows: &[(u64, u64, String)]| flows.iter().filter(|flow| flow.0 > 2_000).cloned().collect::<Vec<_>>();
        assert_eq!(named(&one), named(&other));
    }
    // In both, the backlog is the queue that the departing packet met.
    let (one, other) = (first.total("/totals/peak_depth_bytes"), second.total("/totals/peak_depth_bytes"));
    assert!(one.abs_diff(other) <= 65_535, "{one} {other}");
}

#[test]
fn a_table_with_drops_and_without_bursts_gives_the_same_totals() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("out.parquet");
    let words = "--rate 1mbps --limit 10packets --speedup 5 --tau 1ms --by 5tuple data/formats/sll113.pcap";
    let first = Report::analyze(&format!("{words} --parquet"), &[&table]);
    let second = Report::analyze("--departures --tau 1ms", &[&table]);
    assert_eq!(first.total("/totals/departed_packets"), second.total("/packets"));
    assert_eq!(first.total("/totals/departed_bytes"), second.total("/bytes"));
}

#[test]
fn the_page_is_complete_and_has_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let report = Report::analyze("data/demo.pcap.xz --rate 20mbps --html", &[&page]);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype html>")));
    assert!(page.trim_end().ends_with("</html>"));
    for flow in list(&report.summary, "/culprits/1/flows") {
        let name = flow["flow"].as_str().unwrap().trim_start_matches("> ");
        assert!(page.contains(name), "{name}");
    }
    for burst in &report.bursts {
        assert!(page.contains(&number(burst, "/peak_delay_ns").to_string()));
    }
    // It loads nothing else.
    for outside in ["<script src", "<link rel=\"stylesheet\" href=\"http", "@import", "src=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// Two classes under strict priority. Each millisecond a packet of the high class arrives and leaves almost at once. The second packet of the
/// low class waits until they have all passed.
fn strict_priority() -> String {
    const MS: u64 = 1_000_000;
    let mut rows = String::from("flow,size,enqueued,dequeued,class\nlow,1500,0,0,0\n");
    for number in 1..40 {
        rows += &format!("high,1500,{},{},1\n", number * MS - 1_000, number * MS);
    }
    rows + &format!("low,1500,{},{},0\n", MS / 2, 40 * MS)
}

#[test]
fn a_high_class_is_blamed_for_the_wait_of_a_low_one() {
    let report = Report::parse(&printed(
        run_with_input("analyze --json - --departures --tau 5ms", strict_priority().as_bytes()),
        0,
    ));
    // The low packet's wait is one burst, in which the high class left.
    assert_eq!(report.bursts.len(), 1, "{:?}", report.bursts);
    let culprit = &list(&report.bursts[0], "/culprits/0/flows")[0];
    assert_eq!(culprit["flow"], "high");
    assert!(culprit["share"].as_f64().unwrap() > 0.9, "{culprit}");
    // The packets of the high class hardly waited: only the low one is a victim.
    assert_eq!(number(&report.bursts[0], "/packets_over_tau"), 1);
    assert_eq!(report.summary["sketch"][0]["queries"], 1);
}

#[test]
fn across_classes_finds_that_the_high_class_contributes() {
    // Twice: the low class waits, so the next packets of the high class are queried too.
    let first = strict_priority();
    let shift = 41_000_000;
    let mut both = first.clone();
    for line in first.lines().skip(1) {
        let [flow, size, enqueued, dequeued, class] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let later = |time: &str| time.parse::<u64>().unwrap() + shift;
        both.push_str(&format!("{flow},{size},{},{},{class}\n", later(enqueued), later(dequeued)));
    }
    let of = |words: &str| {
        let words = format!("analyze --json - --departures --tau 5ms {words}");
        Report::parse(&printed(run_with_input(&words, both.as_bytes()), 0))
    };
    let (own, across) = (of(""), of("--across-classes 20ms"));
    let queries = |report: &Report| report.summary["sketch"][0]["queries"].as_u64().unwrap();
    let found = |report: &Report| report.summary["sketch"][0]["true_positives"].as_u64().unwrap();
    assert_eq!(queries(&own), 2, "only the low class's packets waited");
    assert!(queries(&across) > 20, "{}", across.summary["sketch"]);
    assert!(found(&across) > 20, "{}", across.summary["sketch"]);
    assert_eq!(across.summary["culprits"][0]["flows"][0]["flow"], "high");
}

#[test]
fn names_of_flows_are_not_trusted() {
    let hostile =
        ["<script>alert(1)</script>", "\u{1b}[31mred", "</script><img src=x>", "a\u{202e}b", "line\nbreak", "quote\"d"];
    let mut table = String::from("flow,size,enqueued,dequeued\n");
    for (number, name) in hostile.iter().enumerate() {
        let name = name.replace('"', "\"\"");
        table.push_str(&format!("\"{name}\",1500,{},{}\n", number, 100_000 + 1_000 * number));
    }
    let directory = tempfile::tempdir().unwrap();
    let (path, page) = (directory.path().join("in.csv"), directory.path().join("out.html"));
    std::fs::write(&path, table).unwrap();
    let report = Report::analyze("--departures --tau 1us --html", &[&page, &path]);
    let names: Vec<_> =
        list(&report.bursts[0], "/culprits/0/flows").iter().map(|flow| flow["flow"].as_str().unwrap()).collect();
    for name in &hostile {
        assert!(names.contains(name), "JSON has names unchanged: {name:?} {names:?}");
    }
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "names are escaped in the page");
    let text = printed(run("analyze --departures --tau 1us", &[&path]), 0);
    assert!(!text.contains('\u{1b}'), "no control character of a name reaches the terminal");
    assert!(!text.contains("\nbreak"), "a name stays on its line");
}

#[test]
fn rows_in_any_order_give_the_same_answer() {
    let sorted = strict_priority();
    let mut lines: Vec<_> = sorted.lines().skip(1).collect();
    let words = "analyze --json - --departures --tau 5ms";
    let first = Report::parse(&printed(run_with_input(words, sorted.as_bytes()), 0));
    lines.reverse();
    let shuffled = format!("flow,size,enqueued,dequeued,class\n{}\n", lines.join("\n"));
    let second = Report::parse(&printed(run_with_input(words, shuffled.as_bytes()), 0));
    assert_eq!(first.bursts, second.bursts);
    assert_eq!(first.summary["totals"], second.summary["totals"]);
    let skipped = second.summary["skipped"].as_object().unwrap();
    assert!(!skipped.is_empty(), "a note says that rows were out of order: {skipped:?}");
}

#[test]
fn a_malformed_row_is_named_and_the_rest_is_read() {
    let table = "flow,size,enqueued,dequeued\na,100,0,10\nb,12x,5,20\nc,100,9,30\n";
    let output = run_with_input("analyze --json - --departures --tau 1ns", table.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = Report::parse(&printed(output, 1));
    assert_eq!(report.total("/packets"), 2);
    let damage = report.summary["damage"].as_str().unwrap();
    assert!(damage.contains("line 3") && damage.contains("12x"), "{damage}");
    assert!(errors.contains("line 3"), "{errors}");
    assert!(report.summary["skipped"].as_object().unwrap().values().any(|count| *count == 1));
}

#[test]
fn an_enqueue_time_of_zero_is_accepted() {
    let table = "flow,size,enqueued,dequeued\na,100,0,1700000000000000000\n";
    let report = Report::parse(&printed(run_with_input("analyze --json - --departures", table.as_bytes()), 0));
    assert_eq!(report.total("/totals/peak_delay_ns"), 1_700_000_000_000_000_000);
}

#[test]
fn a_damaged_parquet_file_is_an_error_and_not_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let parquet = directory.path().join("damaged.parquet");
    printed(run("analyze --rate 1mbps --parquet", &[&parquet, &file("data/formats/many-interfaces.pcapng")]), 0);
    let whole = std::fs::read(&parquet).unwrap();
    let step = whole.len() / 60;
    let mut refused = 0;
    for at in (0..whole.len()).step_by(step) {
        let mut damaged = whole.clone();
        damaged[at..(at + 4).min(whole.len())].fill(0xff);
        std::fs::write(&parquet, &damaged).unwrap();
        let output = run("analyze --departures", &[&parquet]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked"), "byte {at}: {errors}");
        assert!(matches!(output.status.code(), Some(0..=2)), "byte {at}: {:?}", output.status);
        assert_eq!(output.status.success(), errors.is_empty(), "byte {at}: {errors}");
        refused += u32::from(!output.status.success());
    }
    assert!(refused > 0, "no damage was noticed");
}

#[test]
fn an_unreadable_input_leaves_older_reports_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let [html, parquet] = ["old.html", "new.parquet"].map(|name| directory.path().join(name));
    std::fs::write(&html, "an older report").unwrap();
    for input in [directory.path().join("none.pcap"), file("README.md")] {
        let words = ["analyze".into(), input, "--rate".into(), "1mbps".into()];
        let outputs = ["--html".into(), html.clone(), "--parquet".into(), parquet.clone()];
        let paths: Vec<std::path::PathBuf> = words.into_iter().chain(outputs).collect();
        let paths: Vec<_> = paths.iter().map(std::path::PathBuf::as_path).collect();
        assert_eq!(run("", &paths).status.code(), Some(2));
        assert_eq!(std::fs::read_to_string(&html).unwrap(), "an older report");
        assert!(!parquet.exists());
    }
}

/// The outputs are created first, before anything that takes time or may fail. A failure leaves existing files as they were.
#[test]
fn an_output_that_cannot_be_created_is_refused_first() {
    let directory = tempfile::tempdir().unwrap();
    let (older, whole) = (directory.path().join("older.html"), "crates/cli/tests/data/whole.pcap");
    std::fs::write(&older, "an older report").unwrap();
    let log = directory.path().join("log");
    printed(run(&format!("record {whole} --log"), &[&log]), 0);
    let place = |name: &str| directory.path().join(name).display().to_string();
    let (folder, log) = (place("."), log.display());
    for (missing, why) in
        [(place("none/x"), "No such file"), (place("older.html/x"), "Not a directory"), (folder, "Is a directory")]
    {
        let kinds = [
            // Captures without common packets: that is known only after reading them.
            format!("tap {whole} --egress data/formats/sll113.pcap --html"),
            format!("analyze {whole} --rate 1mbps --html {} --pcapng", older.display()),
            format!("sim scenarios/codel.toml --html {} --telemetry", older.display()),
            format!("query {log} --parquet"),
        ];
        for words in &kinds {
            let output = run(&format!("{words} {missing}"), &[]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
            assert!(errors.contains(&format!("cannot write {missing}: {why}")), "{words}: {errors}");
            assert!(output.stdout.is_empty() && errors.matches("error:").count() == 1, "{words}: {errors}");
            assert_eq!(std::fs::read_to_string(&older).unwrap(), "an older report", "{words}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing was created: {left:?}");
}

/// A table of packets that wait for these times in milliseconds, one after the other.
fn waiting(waits: &[u64]) -> String {
    let row = |(second, wait): (usize, &u64)| {
        let came = second as u64 * 1_000_000_000;
        format!("a,1500,{came},{}\n", came + wait * 1_000_000)
    };
    waits.iter().enumerate().map(row).fold("flow,size,enqueued,dequeued\n".to_owned(), |rows, row| rows + &row)
}

/// A burst that is not kept has a number all the same; one that stays below the final tau has none.
#[test]
fn bursts_are_numbered_as_they_happen() {
    let numbers = |waits: &[u64], words: &str| -> Vec<u64> {
        let words = format!("analyze --json - --departures {words}");
        let report = Report::parse(&printed(run_with_input(&words, waiting(waits).as_bytes()), 0));
        report.bursts.iter().map(|burst| number(burst, "/number")).collect()
    };
    assert_eq!(numbers(&[5, 2, 8, 3], "--tau 1ms"), [1, 2, 3, 4]);
    assert_eq!(numbers(&[5, 2, 8, 3], "--tau 1ms --most-bursts 2"), [1, 3]);
    assert_eq!(numbers(&[5, 80, 3, 30, 70], ""), [1, 2, 3]);
    assert_eq!(numbers(&[5, 80, 3, 30, 70], "--most-bursts 2"), [1, 3]);
}

#[test]
fn a_query_writes_a_table_that_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("packets.parquet");
    let output = printed(run("query data/demo.pcap.xz udp --select src_ip,length,ts --parquet", &[&table]), 0);
    assert!(output.starts_with("4,875 of 18,949 packets"), "{output}");
    let report = Report::analyze("--departures --columns flow=src_ip,size=length,enqueued=ts,dequeued=ts", &[&table]);
    assert_eq!(report.total("/packets"), 4875);
    // An unreadable input leaves an existing table as it was.
    let before = std::fs::read(&table).unwrap();
    assert_eq!(run("query data/none.pcap --parquet", &[&table]).status.code(), Some(2));
    assert!(std::fs::read(&table).unwrap() == before);
}
