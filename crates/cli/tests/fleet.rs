//! A fleet of one host, by the commands that the guide shows.
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

mod acts;
mod faults;
mod recipes;

use crate::namespaces::{Ends, alone, ip, until};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

mod link_hop;
mod switches;
mod two_queues;

/// A command that runs in the background, and is ended with the test.
struct Background(Child);

impl Background {
    fn start(folder: &Path, arguments: &str) -> Self {
        let mut command = command(folder, arguments);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// Reads notes until one has these words.
    fn says(&mut self, words: &str) -> BufReader<std::process::ChildStderr> {
        let mut notes = BufReader::new(self.0.stderr.take().expect("it is piped"));
        has_words(&mut notes, words);
        notes
    }

    /// Kills it, as a crash would.
    fn kill(mut self) {
        self.0.kill().expect("it runs");
    }

    /// Sends SIGTERM, and returns the exit status and the output.
    fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let mut output = String::new();
        self.0.stdout.take().expect("it is piped").read_to_string(&mut output).expect("it is text");
        (self.0.wait().expect("it was started").code(), output)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines until one has these words.
fn has_words(notes: &mut impl BufRead, words: &str) {
    let mut all = String::new();
    loop {
        let mut note = String::new();
        let read = notes.read_line(&mut note).expect("it is text");
        assert!(read > 0, "it ended without '{words}': {all}");
        all += &note;
        if note.contains(words) {
            return;
        }
    }
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.current_dir(folder).args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
fn run(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().expect("it starts")
}

/// What a command prints that must succeed.
fn printed(folder: &Path, arguments: &str) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn a_host_joins_records_and_answers() {
    let namespace = match alone(&["namespaces"]) {
        Ok(namespace) => namespace,
        Err(why) => return println!("skipped: a_host_joins_records_and_answers: {why}"),
    };
    namespace.run(|| {
        ip("ip link set lo up").expect("it is there");
        let dir = tempfile::tempdir().expect("there is room");
        fleet(dir.path());
    });
}

/// Runs a coordinator that sends alerts to a file until `is_done`, and ends it with SIGTERM, or with SIGKILL.
fn sends_until(dir: &Path, is_killed: bool, is_done: impl Fn() -> bool) {
    let mut coordinator = Background::start(dir, "coordinator run home --listen 127.0.0.1:0 --send jsonl:sent.jsonl");
    let mut notes = coordinator.says("listens on 127.0.0.1:");
    until("the sink has done it", || is_done().then_some(()));
    if is_killed {
        coordinator.0.kill().expect("it runs");
    } else {
        assert_eq!(coordinator.end().0, Some(0));
        let mut rest = String::new();
        notes.read_to_string(&mut rest).expect("it is text");
        assert!(rest.contains("jsonl:sent.jsonl: ") && rest.contains(" alerts sent"), "{rest}");
    }
}

#[test]
fn alerts_go_to_a_file_once_over_restarts() {
    let dir = tempfile::tempdir().expect("there is room");
    let dir = dir.path();
    printed(dir, "coordinator init home --name monitor.example");
    // Alerts from before the sink's first start are not sent.
    let store = |number: u64| {
        let path = dir.join("home/alerts.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        text += &format!(
            "{{\"number\":{number},\"member\":\"web-1\",\"store\":1,\"sequence\":{number},\"trigger\":\"busy-{number}\",\"at_ns\":5,\
             \"value\":1.5,\"packets\":2}}\n"
        );
        std::fs::write(&path, text).expect("there is room");
    };
    let sent = || {
        let text = std::fs::read_to_string(dir.join("sent.jsonl")).unwrap_or_default();
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON");
        text.lines().map(|text| line(text)["number"].as_u64().expect("it has a number")).collect::<Vec<_>>()
    };
    let is_saved = |number: u64| {
        let mut files =
            std::fs::read_dir(dir.join("home/sinks")).expect("it is there").map(|file| file.expect("it is").path());
        // While a file is replaced, the folder may show another name, or none.
        let position = files.find(|path| path.extension().is_some_and(|kind| kind == "json"));
        let text = position.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.contains(&format!("\"position\":{number},"))
    };
    store(1);
    sends_until(dir, false, || is_saved(1));
    store(2);
    sends_until(dir, true, || is_saved(2));
    assert_eq!(sent(), [2]);
    store(3);
    sends_until(dir, false, || is_saved(3));
    sends_until(dir, false, || true);
    assert_eq!(sent(), [2, 3]);

    let twice = run(dir, "coordinator run home --send jsonl:a --send jsonl:a");
    let message = String::from_utf8_lossy(&twice.stderr);
    assert!(twice.status.code() == Some(2) && message.contains("jsonl:a is given twice"), "{message}");
    let wrong = run(dir, "coordinator run home --send syslog:2001:db8::1:514");
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && message.contains("in brackets"), "{message}");
}

fn fleet(dir: &Path) {
    printed(dir, "coordinator init home --name monitor.example");
    let again = run(dir, "coordinator init home --name monitor.example");
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    for own in ["alerts.jsonl", "audit.jsonl", "starts", "lock"] {
        let refused = run(dir, &format!("coordinator run home --send jsonl:./home/{own}"));
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && message.contains("the coordinator's own file"), "{message}");
    }
    let mut coordinator = Background::start(dir, "coordinator run home --send jsonl:sent.jsonl");
    let _notes = coordinator.says("listens on 127.0.0.1:7401");
    let admin = "--credentials home/admin";
    let token = printed(dir, &format!("fleet invite host {admin}"));
    // What is refused does not use the token up.
    std::fs::create_dir(dir.join("full"))
        .and_then(|()| std::fs::write(dir.join("full/notes"), ""))
        .expect("there is room");
    let refusals = [
        (
            format!("fleet join {} --coordinator localhost:7401 --credentials full", token.trim()),
            "full is not empty: it has notes",
        ),
        (format!("fleet revoke nobody {admin}"), "there is no member nobody to revoke"),
        (format!("fleet revoke admin {admin}"), "admin is the last admin"),
    ];
    for (words, why) in refusals {
        let refused = run(dir, &words);
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && message.contains(why), "{words}: {message}");
        assert_eq!(message.matches(why).count(), 1, "{message}");
    }
    let none = run(dir, &format!("fleet query --schema queued --select count {admin}"));
    let message = format!("{}{}", String::from_utf8_lossy(&none.stdout), String::from_utf8_lossy(&none.stderr));
    assert!(none.status.code() == Some(1) && message.contains("no host"), "{message}");
    let joined = printed(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials me", token.trim()));
    assert!(joined.starts_with("joined as host (agent)"), "{joined}");
    let again = run(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials other", token.trim()));
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    std::fs::create_dir(dir.join("store")).expect("there is room");
    let store = format!("file://{}/store", dir.display());
    let options = format!("--aggregate n=count --trigger many=n>3@10ms --upload {store}");
    let mut agent = Background::start(dir, &format!("agent lo --log log --credentials me --cpu 400% {options}"));
    let _notes_of_agent = agent.says("attached to the coordinator");

    // The agent's own connection is on this interface, so there are packets.
    until("the host has recorded packets", || {
        let members = printed(dir, &format!("fleet members --json {admin}"));
        let member: serde_json::Value = serde_json::from_str(members.trim()).expect("it is JSON");
        assert_eq!((&member["host"], &member["state"]), (&"host".into(), &"here".into()), "{member}");
        assert!(member["uploads"].is_null() || member["uploads"]["trouble"].is_null(), "{member}");
        (member["records"].as_u64() > Some(5)).then_some(())
    });
    let cut = printed(dir, &format!("fleet cut --json {admin}"));
    std::fs::write(dir.join("cut.json"), &cut).expect("there is room");
    let cut: serde_json::Value = serde_json::from_str(cut.trim()).expect("it is JSON");
    let position = cut["members"][0]["position"].as_u64().expect("the host is in the cut");
    let of_cut = printed(dir, &format!("fleet query --select count --cut {} --csv {admin}", cut["cut"]));
    assert_eq!(of_cut, format!("count\n{position}\n"));
    let ports =
        printed(dir, &format!("fleet query tcp --group dst_port --select count,sum(length) --top 1 --csv {admin}"));
    assert!(ports.starts_with("dst_port,count,sum(length)\n"), "{ports}");
    let wrong = run(dir, &format!("fleet query colour==3 {admin}"));
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && message.contains("colour"), "{message}");
    let alert = until("an alert comes", || {
        let alerts = printed(dir, &format!("fleet alerts {admin}"));
        alerts.lines().next().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"))
    });
    assert_eq!((&alert["number"], &alert["host"], &alert["trigger"]), (&1.into(), &"host".into(), &"many".into()));

    let sent = until("the alert is sent", || {
        let sent = std::fs::read_to_string(dir.join("sent.jsonl")).expect("the coordinator made it");
        sent.lines().next().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"))
    });
    assert!(["number", "host", "trigger", "at_ns"].iter().all(|key| sent[key] == alert[key]), "{sent}");
    control_program(dir, admin);

    // Another coordinator waits in the same folder, and takes over when this one is killed.
    let mut standby = Background::start(dir, "coordinator run home --standby");
    let mut notes = standby.says("this coordinator begins when the other ends");
    coordinator.kill();
    has_words(&mut notes, "listens on 127.0.0.1:7401");
    let coordinator = standby;
    until("the host is there again", || printed(dir, &format!("fleet members {admin}")).contains("here").then_some(()));
    let alerts = printed(dir, &format!("fleet alerts {admin}"));
    assert!(alerts.contains("many") && alerts.contains("heavy.heavy"), "{alerts}");

    let (status, summary) = agent.end();
    assert_eq!(status, Some(0), "{summary}");
    assert!(summary.contains("packets of lo captured to log"), "{summary}");
    uploaded(dir, &store);
    until("the host is absent", || printed(dir, &format!("fleet members {admin}")).contains("absent").then_some(()));
    let partial = run(dir, &format!("fleet query --select count {admin}"));
    let message = String::from_utf8_lossy(&partial.stderr);
    assert!(partial.status.code() == Some(1) && message.contains("host"), "{partial:?}");
    assert_eq!(coordinator.end().0, Some(0));
    // What the agent recorded is a folder like any other.
    assert!(printed(dir, "query log --select count").contains("packets of log"));
}

#[test]
fn a_host_that_records_a_queue_says_who_delayed_a_packet() {
    let ends = match Ends::new("tbf rate 20mbit burst 10kb limit 300kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: a_host_that_records_a_queue_says_who_delayed_a_packet: {why}"),
    };
    ends.near.run(|| {
        ip("ip link set lo up").expect("it is there");
        let dir = tempfile::tempdir().expect("there is room");
        who_delayed(dir.path());
    });
}

fn who_delayed(dir: &Path) {
    let admin = "--credentials home/admin";
    printed(dir, "coordinator init home --name monitor.example");
    let mut coordinator = Background::start(dir, "coordinator run home");
    let _notes = coordinator.says("listens on");
    let none = run(dir, &format!("fleet why {admin}"));
    let message = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.code() == Some(2) && message.contains("no host records what a queue does"), "{message}");
    let token = printed(dir, &format!("fleet invite router {admin}"));
    printed(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials me", token.trim()));
    let without = run(dir, "live near0 --credentials me --for 1s");
    assert_eq!(without.status.code(), Some(2), "it needs --log: {without:?}");
    let mut live = Background::start(dir, "live near0 --every-packet --log queue --credentials me");
    let _notes_of_live = live.says("attached to the coordinator");
    let sockets = [9_001, 9_002].map(|port| {
        let socket = UdpSocket::bind(("10.9.0.1", port)).expect("there is a port");
        socket.connect("10.9.0.2:9").expect("it can be");
        socket
    });
    let way = until("packets waited, and their records are there", || {
        // Nobody listens there; errors come later.
        sockets.iter().for_each(|socket| (0..40).for_each(|_| drop(socket.send(&[0; 1_000]))));
        let way = run(dir, &format!("fleet why udp --json {admin}"));
        let way = serde_json::from_slice::<serde_json::Value>(&way.stdout).ok()?;
        (way["hops"][0]["culprits"].as_array().is_some_and(|culprits| culprits.len() == 2)).then_some(way)
    });
    let hop = &way["hops"][0];
    assert_eq!((&hop["host"], &way["blamed"]), (&"router".into(), &0.into()), "{way}");
    // What left meanwhile took the time that the packet waited: 20 Mb/s are 2500 bytes in a millisecond.
    let bytes: u64 = hop["culprits"].as_array().into_iter().flatten().filter_map(|flow| flow["bytes"].as_u64()).sum();
    let wait = hop["wait_ns"].as_u64().expect("it is a number");
    assert!(wait > 1_000_000 && bytes as f64 > 0.5 * wait as f64 * 2.5e-3, "{way}");
    let text = printed(dir, &format!("fleet why 'udp' {admin}").replace('\'', ""));
    assert!(text.contains("the longest wait") && text.contains("10.9.0.1:9001 > 10.9.0.2:9 udp"), "{text}");
    asked_in_other_ways(dir, admin, &way);
    let members = printed(dir, &format!("fleet query --schema queued --select count --csv {admin}"));
    assert!(members.starts_with("count\n") && members != "count\n0\n", "{members}");
    let (status, report) = live.end();
    assert_eq!(status, Some(0), "{report}");
    assert_eq!(coordinator.end().0, Some(0));
}

/// The same packet by its digest, its flow and a moment, and all packets of the flow; and mistakes, each with what to do.
fn asked_in_other_ways(dir: &Path, admin: &str, way: &serde_json::Value) {
    let json = |arguments: &str| -> serde_json::Value {
        let output = run(dir, arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}: {output:?}"))
    };
    let digest = way["digest"].as_str().expect("it has one");
    for by_digest in [
        json(&format!("fleet why --packet {digest} --json {admin}")),
        json(&format!("why --packet {digest} --fleet localhost:7401 --json {admin}")),
    ] {
        assert_eq!((&by_digest["packet"], &by_digest["digest"]), (&way["packet"], &way["digest"]), "{by_digest}");
    }
    for command in ["fleet why", "why --fleet localhost:7401"] {
        let waits = json(&format!("{command} --flow 10.9.0.1:9001 --json {admin}"));
        let queue = &waits["queues"][0];
        assert_eq!(waits["question"], "why 10.9.0.1:9001 > 10.9.0.2:9 udp waited", "{waits}");
        // Its packets come before those of the other flow, so that perhaps it waited for itself alone.
        let culprits = queue["culprits"].as_array().map_or(0, Vec::len);
        assert!(queue["packets"].as_u64() > Some(1) && (1..=2).contains(&culprits), "{waits}");
        assert_eq!((&queue["host"], &waits["blamed"]), (&"router".into(), &0.into()), "{waits}");
    }
    let fails = |arguments: &str, words: &str| {
        let output = run(dir, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments}: {said}");
    };
    fails(&format!("fleet why --packet 7 {admin}"), "--packet 7 is a number in a capture: name the file");
    fails(&format!("fleet why --flow nobody {admin}"), "no flow has a name with 'nobody' in it");
    fails(&format!("fleet why --at 1.2s {admin}"), "have no first packet in common: give a date");
    fails(&format!("why --at 1.2s --fleet localhost:7401 {admin}"), "have no first packet in common: give a date");
    fails(&format!("why x.pcap --at 2026-01-01 --fleet localhost:7401 {admin}"), "x.pcap only names a packet");
    fails("why x.pcap --packet 1 --fleet localhost:7401", "--credentials");
    fails("why --packet 1 --rate 1gbps", "FILE");
    let health = json(&format!("fleet health --hosts --json {admin}"));
    assert_eq!((&health["serves"], &health["name"]), (&true.into(), &"admin".into()), "{health}");
    let elsewhere = format!("fleet health --within 1s --coordinator 127.0.0.1:9 {admin}");
    fails(&elsewhere, "cannot connect to the coordinator at 127.0.0.1:9");
}

/// The agent has uploaded what it recorded, so the store has all records of the cut.
fn uploaded(dir: &Path, store: &str) {
    let manifest = printed(dir, &format!("fleet manifest cut.json --store {store}"));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("it is JSON");
    let host = &manifest["hosts"][0];
    assert_eq!(
        (&manifest["is_complete"], &host["host"], &host["schema"]),
        (&true.into(), &"host".into(), &"packet".into())
    );
    let object = host["objects"][0]["object"].as_str().expect("it is a URL");
    assert!(object.starts_with(&format!("{store}/packet/host=host/date=")), "{object}");
    assert!(Path::new(object.strip_prefix("file://").expect("it is one")).exists(), "{object}");
}

/// A program of `recipes/fleet` is checked, added, raises an alert, and is removed.
fn control_program(dir: &Path, admin: &str) {
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/fleet/heavy-hitters.toml");
    let checked = printed(dir, &format!("fleet program check {recipe} --set limit=1kB"));
    assert!(checked.contains("1 questions, 1 alerts"), "{checked}");
    let without = run(dir, &format!("fleet program check {recipe}"));
    let message = String::from_utf8_lossy(&without.stderr);
    assert!(without.status.code() == Some(2) && message.contains("`limit` has no value"), "{message}");
    printed(dir, &format!("fleet program add heavy {recipe} --set limit=1B --set every=100ms {admin}"));
    let alert = until("the program raises an alert", || {
        let alerts = printed(dir, &format!("fleet alerts {admin}"));
        let mut alerts =
            alerts.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
        alerts.find(|alert| alert["trigger"] == "heavy.heavy")
    });
    assert_eq!((&alert["host"], &alert["detail"]), (&"".into(), &"src_ip 127.0.0.1".into()), "{alert}");
    let list = printed(dir, &format!("fleet program list {admin}"));
    assert!(list.contains("heavy") && list.contains("sources that send more"), "{list}");
    assert_eq!(printed(dir, &format!("fleet program remove heavy {admin}")), "removed heavy\n");
    let again = run(dir, &format!("fleet program remove heavy {admin}"));
    assert_eq!(again.status.code(), Some(2), "{again:?}");
}
