//! `analyze --log` and `sim --log`: the folder agrees with the capture, the tables and the reports. And `--in-queue`: the
//! packets that shared the queue with the packets of a query.

#![allow(clippy::disallowed_methods, reason = "tests read and write what the program does")]

use crate::common::{ROOT, captures, file, list, number, printed, run};
use queuescope_log::Schema;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SMALL: &str = "crates/cli/tests/data/sim.toml";

/// The rows of a query: the text of each column by its name.
type Rows = Vec<BTreeMap<String, String>>;

fn query(path: &Path, words: &[&str]) -> Rows {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    let command = command.current_dir(ROOT).args(["query", "--csv"]).arg(path).args(words).stderr(Stdio::piped());
    let text = printed(command.output().expect("the command runs"), 0);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("it is a row")).collect()
}

/// The rows, with one column renamed.
fn renamed(rows: Rows, old: &str, new: &str) -> Rows {
    let rename = |mut row: BTreeMap<String, String>| {
        let value = row.remove(old).expect("it is there");
        row.insert(new.to_owned(), value);
        row
    };
    rows.into_iter().map(rename).collect()
}

fn of(row: &BTreeMap<String, String>, name: &str) -> u64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} is no number: {row:?}"))
}

/// A folder that a command recorded, with a table of the same run.
struct LoggedRun {
    directory: TempDir,
    report: Vec<Value>,
}

impl LoggedRun {
    fn new(words: &str, paths: &[&Path]) -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let [log, table] = ["log", "table.parquet"].map(|name| directory.path().join(name));
        let outputs = ["--log".as_ref(), log.as_path(), "--parquet".as_ref(), table.as_path()];
        let paths: Vec<_> = paths.iter().copied().chain(outputs).collect();
        let text = printed(run(words, &paths), 0);
        let report = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        Self { directory, report }
    }

    fn query(&self, words: &[&str]) -> Rows {
        query(&self.directory.path().join("log"), words)
    }

    fn table(&self, words: &[&str]) -> Rows {
        let words: Vec<_> = words.iter().copied().chain(["--departures"]).collect();
        query(&self.directory.path().join("table.parquet"), &words)
    }

    /// A count of the summary under `skipped`, or 0.
    fn skipped(&self, name: &str) -> u64 {
        self.summary()["skipped"].get(name).map_or(0, |count| count.as_u64().expect("it is a number"))
    }

    /// The summary of the first queue.
    fn summary(&self) -> &Value {
        self.report.iter().find(|line| line["kind"] == "summary").expect("there is a summary")
    }

    fn drops(&self) -> u64 {
        let drops = &self.summary()["totals"]["drops"];
        drops.as_object().into_iter().flatten().map(|(_, count)| count.as_u64().expect("it is a number")).sum()
    }
}

/// The names of all attributes of packets.
fn headers() -> String {
    Schema::packet().attributes().iter().map(|attribute| attribute.name.as_str()).collect::<Vec<_>>().join(",")
}

/// The columns that tables and logs share, under the names of tables (a table's `packet` is the row's number).
const BOTH: &str = "enqueued,dequeued,delay,class,src_ip,dst_ip,src_port,dst_port,protocol";

/// Compares a log of a capture with the table of departures, the capture itself, and the report.
fn check(path: &Path, words: &str) {
    let what = format!("{} {words}", path.display());
    let logged = LoggedRun::new(&format!("analyze --json {words}"), &[path]);
    let left = logged.query(&["dropped == no", "--select", &format!("{BOTH},occupied")]);
    let table = logged.table(&["--select", &format!("{BOTH},length")]);
    assert_eq!(left.len(), table.len(), "{what}");
    for (one, other) in renamed(left, "occupied", "length").iter().zip(&table) {
        assert_eq!(one, other, "{what}");
    }
    let all = logged.query(&["--select", &format!("packet,occupied,dropped,enqueued,dequeued,delay,{}", headers())]);
    assert_eq!(all.len() as u64, logged.skipped("recorded"), "{what}");
    assert_eq!(all.iter().filter(|row| row["dropped"] != "0").count() as u64, logged.drops(), "{what}");
    assert!(all.is_sorted_by_key(|row| of(row, "dequeued")), "{what}");
    assert!(all.iter().all(|row| of(row, "dequeued") - of(row, "enqueued") == of(row, "delay")), "{what}");
    if words.contains("--split-gso") {
        return;
    }
    // Without `--split-gso`, the packet's number is the frame's.
    let frames = query(path, &["--select", &headers()]);
    assert_eq!(all.len(), frames.len(), "{what}");
    for mut row in all {
        for own in ["occupied", "dropped", "enqueued", "dequeued", "delay"] {
            row.remove(own);
        }
        let place = row.remove("packet").expect("it is there").parse::<usize>().expect("it is a number");
        assert_eq!(row, frames[place - 1], "{what}: frame {place}");
    }
}

#[test]
fn a_log_of_a_capture_has_its_headers_and_its_departures() {
    for path in captures() {
        check(&path, "--rate 1mbps --limit 5packets --overhead ethernet");
    }
    check(&file("data/formats/sll113.pcap"), "--rate 1mbps --limit 10packets --speedup 5");
    check(&file("data/demo.pcap.xz"), "--rate 20mbps --limit 20ms");
}

#[test]
fn segments_of_super_packets_have_the_headers_of_the_frame_and_lengths_of_their_own() {
    let demo = file("data/demo.pcap.xz");
    check(&demo, "--rate 20mbps --limit 20ms --split-gso");
    let logged = LoggedRun::new("analyze --json --split-gso --rate 100mbps", &[&demo]);
    let parts = logged.query(&[
        "tcp",
        "--group",
        "tcp_seq,ip_length",
        "--select",
        "count,max(length),sum(length),sum(occupied)",
    ]);
    // `ip_length` is the frame's. The lengths of the segments are their own, so a sum over them is what the wire carried.
    let split: Vec<_> = parts.iter().filter(|row| of(row, "ip_length") > 1500 && of(row, "count") > 1).collect();
    assert!(split.len() > 100, "{}", split.len());
    for row in split {
        assert!(of(row, "max(length)") <= 1514, "{row:?}");
        assert_eq!(of(row, "sum(length)"), of(row, "sum(occupied)"), "{row:?}");
    }
}

/// Computes the backlog of each packet from the times of all departures.
#[test]
fn backlogs_match_the_departures() {
    let logged =
        LoggedRun::new("analyze --json --rate 300kbps --limit none", &[&file("data/formats/many-interfaces.pcapng")]);
    let select = "enqueued,dequeued,occupied,backlog_in,packets_in,backlog_out,packets_out";
    let rows = logged.query(&["--select", select]);
    let mut deepest = 0;
    for (place, row) in rows.iter().enumerate() {
        let sum = |rows: &[&BTreeMap<String, String>]| {
            (rows.len() as u64, rows.iter().map(|row| of(row, "occupied")).sum::<u64>())
        };
        let before: Vec<_> = rows[..place].iter().filter(|old| of(old, "dequeued") >= of(row, "enqueued")).collect();
        let behind: Vec<_> =
            rows[place + 1..].iter().filter(|new| of(new, "enqueued") <= of(row, "dequeued")).collect();
        assert_eq!((of(row, "packets_in"), of(row, "backlog_in")), sum(&before), "{row:?}");
        assert_eq!((of(row, "packets_out"), of(row, "backlog_out")), sum(&behind), "{row:?}");
        deepest = deepest.max(before.len());
    }
    assert!(deepest > 3, "{deepest}");
}

#[test]
fn packets_that_input_leaves_out_are_not_recorded() {
    let demo = file("data/demo.pcap.xz");
    let logged = LoggedRun::new("analyze --json --rate 20mbps --input udp", &[&demo]);
    let [all, udp] = ["", "udp"].map(|expression| logged.query(&[expression, "--select", "count"]));
    assert_eq!(all, udp);
    assert_eq!(of(&all[0], "count"), logged.skipped("recorded"));
    assert_eq!(18_949 - logged.skipped("recorded"), logged.skipped("left_out_by_input"));
}

#[test]
fn each_flow_has_its_own_number() {
    let logged = LoggedRun::new("analyze --json --rate 20mbps", &[&file("data/demo.pcap.xz")]);
    let flows = logged.query(&["--group", "flow,src_ip,dst_ip,src_port,dst_port,protocol,src_mac,dst_mac"]);
    let numbers: BTreeSet<_> = flows.iter().map(|row| of(row, "flow")).collect();
    assert_eq!(numbers.len() as u64, numbers.last().expect("there are flows") + 1);
    let table = logged.table(&["--group", "flow"]);
    assert_eq!(numbers.len(), table.len());
}

#[test]
fn a_log_of_a_simulation_has_its_departures() {
    let logged = LoggedRun::new(&format!("sim --json {SMALL}"), &[]);
    let select = format!("{BOTH},occupied,length,ts,has_tcp,has_udp,queue");
    let mut left = logged.query(&["dropped == no", "--select", &select]);
    for row in &mut left {
        let own = |row: &mut BTreeMap<String, String>, name| row.remove(name).expect("it is there");
        // Packets here have no link header, and there is one link.
        assert_eq!(own(row, "length"), row["occupied"]);
        assert_eq!((own(row, "ts"), own(row, "queue").as_str()), (row["enqueued"].clone(), "0"));
        let has = (own(row, "has_tcp"), own(row, "has_udp"));
        assert_eq!(row["protocol"], if has == ("1".to_owned(), "0".to_owned()) { "6" } else { "17" }, "{has:?}");
    }
    let table = logged.table(&["--select", &format!("{BOTH},length")]);
    assert_eq!(renamed(left, "occupied", "length"), table);
    assert!(logged.query(&["--select", "dequeued"]).is_sorted_by_key(|row| of(row, "dequeued")));
    let dropped = logged.query(&["dropped == overlimit", "--select", "count"]);
    assert_eq!((of(&dropped[0], "count"), logged.drops() > 20), (logged.drops(), true));
    // The headers have sequence numbers and lengths of the segments.
    let tcp = logged.query(&["dst_port == 5001 and tcp_flags == ACK", "--select", "tcp_seq,payload_length,tcp_ack"]);
    assert!(tcp.iter().filter(|row| of(row, "payload_length") == 1448).count() > 500);
}

#[test]
fn each_link_has_its_queue_number() {
    let words = "sim scenarios/parking-lot.toml --json --set duration=1s --set warmup=200ms";
    let logged = LoggedRun::new(words, &[]);
    let found = logged.query(&["--group", "queue,dropped"]);
    let about = logged.report.iter().find(|line| line["kind"] == "sim").expect("there is a line about links");
    assert_eq!(logged.skipped("queues"), list(about, "/links").len() as u64);
    // Packets sent in the warm-up count if they left after it.
    for (link, queue) in list(about, "/links").iter().zip([0, 2, 4]) {
        let of = |dropped: bool| -> u64 {
            let rows = found.iter().filter(|row| of(row, "queue") == queue && (row["dropped"] != "0") == dropped);
            rows.map(|row| of(row, "count")).sum()
        };
        let drops: u64 = link["drops"].as_object().expect("drops").values().filter_map(Value::as_u64).sum();
        assert_eq!(of(true), drops, "{link}");
        assert!(of(false).abs_diff(number(link, "/sent_packets")) < 200, "{queue}");
        let directory = tempfile::tempdir().expect("there is room");
        let table = directory.path().join("table.parquet");
        printed(run(&format!("{words} --meter {} --parquet", link["name"].as_str().expect("a name")), &[&table]), 0);
        let table = query(&table, &["--departures", "--select", "enqueued,dequeued"]);
        let same = logged.query(&[&format!("dropped == no and queue == {queue}"), "--select", "enqueued,dequeued"]);
        assert_eq!(table, same, "{queue}");
    }
}

#[test]
fn marks_differ_from_codepoints_on_arrival() {
    let logged = LoggedRun::new("sim scenarios/l4s.toml --json --set duration=1s --set warmup=0s", &[]);
    let about = logged.report.iter().find(|line| line["kind"] == "sim").expect("there is a line about links");
    let marks: u64 =
        list(about, "/links")[0]["marks"].as_object().expect("marks").values().filter_map(Value::as_u64).sum();
    let marked = logged.query(&["ecn != CE and ecn_out == CE and dropped == no", "--select", "count"]);
    let waiting = 100;
    assert!(marks > 50 && marks - of(&marked[0], "count") <= waiting, "{marks} {marked:?}");
    assert_eq!(of(&logged.query(&["ecn == CE", "--select", "count"])[0], "count"), 0);
}

#[test]
fn in_queue_finds_packets_whose_stay_overlaps() {
    let logged = LoggedRun::new("analyze --json --rate 20mbps --limit 30ms", &[&file("data/demo.pcap.xz")]);
    let expression = "src_ip == 10.72.0.230 and delay > 20ms";
    let select = ["--select", "packet,enqueued,dequeued,dropped"];
    let all = logged.query(&select);
    let found: BTreeSet<u64> =
        logged.query(&[&[expression][..], &select].concat()).iter().map(|row| of(row, "packet")).collect();
    assert!(found.len() > 5 && logged.drops() > 100, "{}", found.len());
    let stays: Vec<_> = all.iter().map(|row| (of(row, "packet"), of(row, "enqueued"), of(row, "dequeued"))).collect();
    let found: Vec<_> = stays.iter().filter(|stay| found.contains(&stay.0)).collect();
    let meets =
        |stay: &(u64, u64, u64)| found.iter().any(|other| other.0 != stay.0 && stay.1 < other.2 && stay.2 > other.1);
    let expected: Vec<_> = all.iter().zip(&stays).filter(|(row, stay)| row["dropped"] == "0" && meets(stay)).collect();
    let company = logged.query(&[&[expression, "--in-queue"][..], &select].concat());
    assert!(company.len() > found.len());
    assert!(company.iter().eq(expected.into_iter().map(|(row, _)| row)));
    // A table has the same departures.
    let table = logged.table(&[&[expression, "--in-queue"][..], &["--select", "enqueued,dequeued"]].concat());
    let times = |row: &BTreeMap<String, String>| (of(row, "enqueued"), of(row, "dequeued"));
    assert!(table.iter().map(times).eq(company.iter().map(times)));
    // Groups, sums and files use the same packets.
    let groups = logged.query(&[expression, "--in-queue", "--group", "src_ip", "--select", "count"]);
    assert_eq!(groups.iter().map(|row| of(row, "count")).sum::<u64>(), company.len() as u64);
    let out = logged.directory.path().join("company.parquet");
    let log = logged.directory.path().join("log");
    let output = printed(run("query --in-queue --limit 10 --parquet", &[&out, &log]), 0);
    assert!(output.contains("the first 10 of "), "{output}");
}

/// A second run appends to the folder. Folders of other records are refused before anything is written.
#[test]
fn folders_of_other_records_are_refused() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name| directory.path().join(name);
    let (log, packets, page, text) = (path("log"), path("packets"), path("page.html"), path("text"));
    let demo = file("data/demo.pcap.xz");
    printed(run("record --log", &[&packets, &demo]), 0);
    std::fs::write(&page, "old").expect("there is room");
    std::fs::write(&text, "text").expect("there is room");
    let refused = |words: &str, paths: &[&Path], why: &str| {
        let output = run(words, paths);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    };
    for (words, input) in [("analyze --rate 20mbps", demo.as_path()), ("sim", SMALL.as_ref())] {
        for (folder, why) in
            [(&packets, "has records of the schema 'packet', not of 'queued'"), (&text, "is a file; a log is a folder")]
        {
            refused(words, &[input, "--html".as_ref(), &page, "--log".as_ref(), folder], why);
            assert_eq!(std::fs::read_to_string(&page).expect("it is there"), "old", "{why}");
        }
    }
    refused("analyze --departures crates/cli/tests/data/departures.csv --log", &[&log], "cannot be used with");
    refused(&format!("sim {SMALL} --seeds 2 --log"), &[&log], "--log is for one run");
    refused("analyze --rate 1mbps --durability synced", &[&demo], "--log");
    assert!(!log.exists());
    refused("query --in-queue", &[&demo], "records of `packet` do not say that");
    refused("query --in-queue", &[&packets], "records of `packet` do not say that");
    // Record into the same folder twice.
    let small = Path::new(SMALL);
    for before in ["", "after the 1,361 already there"] {
        let output = printed(run("sim", &[small, "--log".as_ref(), &log]), 0);
        assert!(output.contains("1,361 recorded: ") && output.contains(before), "{output}");
    }
    assert_eq!(printed(run("query --csv --select count", &[&log]), 0), "count\n2722\n");
    refused("record", &[&demo, "--log".as_ref(), &log], "has records of the schema 'queued', not of 'packet'");
    refused("analyze --rate 20mbps --log-memory 1kB", &[&demo, "--log".as_ref(), &path("part")], "memory");
}

/// The documentation shows what the commands print.
#[test]
fn the_example_in_the_documentation_is_current() {
    let directory = tempfile::tempdir().expect("there is room");
    let log = directory.path().join("queued");
    printed(run("analyze data/demo.pcap.xz --rate 20mbps --limit 100ms --log", &[&log]), 0);
    let docs = std::fs::read_to_string(file("docs/reference/folders.md")).expect("it is there");
    let examples: Vec<_> = docs.split("```\n").filter(|part| part.contains("$ queuescope query queued '")).collect();
    assert_eq!(examples.len(), 2);
    for block in examples {
        let (question, shown) = block
            .split_once("$ queuescope query queued '")
            .map_or(("", ""), |(_, rest)| rest.split_once('\n').expect("an answer follows"));
        let (expression, words) = question.split_once('\'').expect("it is quoted");
        let words: Vec<_> = words.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
        let output = command.current_dir(directory.path()).args(["query", "queued", expression]).args(words).output();
        assert_eq!(printed(output.expect("the command runs"), 0), shown);
    }
}
