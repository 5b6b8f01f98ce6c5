//! `queuescope link` in network namespaces of our own, as root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces;
use crate::pty;

use crate::common::{ROOT, integer, printed, run};
use pty::{PATIENCE, Pty};
use queuescope_live::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread::yield_now;
use std::time::Instant;

/// A namespace to begin links in, or why there is none.
fn yard(test: &str) -> Option<Namespace> {
    namespaces::alone(&["namespaces", "tun"]).map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The command, with words that have no blanks in them but the last, which a shell is to run behind the link.
fn link(words: &str, shell: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.current_dir(ROOT).arg("link").args(words.split_whitespace());
    command.args(shell.into_iter().flat_map(|shell| ["--", "sh", "-c", shell]));
    command
}

fn output(yard: &Namespace, words: &'static str, shell: Option<String>) -> Output {
    yard.run(move || link(words, shell.as_deref()).output().expect("the command runs"))
}

/// Whoever takes flows at the outer end, at any address, and at which port.
struct Server(Child, u16);

impl Server {
    fn new(yard: &Namespace) -> Self {
        let mut child = yard.run(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
            command.args("traffic serve --listen 0.0.0.0:0".split(' '));
            command.stdout(Stdio::piped()).spawn().expect("the command runs")
        });
        let mut line = String::new();
        let said = child.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("it is text");
        let port = line.trim_end().rsplit(':').next().and_then(|port| port.parse().ok());
        Self(child, port.unwrap_or_else(|| panic!("{line}")))
    }

    /// The words that send it a flow.
    fn send(&self, size: &str) -> String {
        let queuescope = env!("CARGO_BIN_EXE_queuescope");
        format!(
            "{queuescope} traffic send 100.64.0.1:{} --sizes {size} --count 1 --every 1ms --congestion cubic --json",
            self.1
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The report that was told, and what the command said beside it.
fn report(output: &Output) -> (Value, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut whole = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let simulated = whole.find(|line| line["kind"] == "sim");
    (simulated.unwrap_or_else(|| panic!("{lines}: {said}")), said)
}

#[test]
fn a_command_sends_through_the_link() {
    let Some(yard) = yard("a_command_sends_through_the_link") else { return };
    let server = Server::new(&yard);
    let send = server.send("300kB");
    let output = output(&yard, "--rate 8mbit --delay 5ms --aqm codel --json", Some(format!("{send}; exit 7")));
    assert_eq!(output.status.code(), Some(7));
    let (report, said) = report(&output);
    let link = &report["links"][0];
    assert_eq!((&link["name"], &link["discipline"]), (&"bottleneck".into(), &"codel".into()), "{report}");
    let sent = integer(&link["sent_bytes"]).expect("it is an integer");
    // The bytes, the headers, and what was sent again.
    assert!((309_000..400_000).contains(&sent), "{report}");
    let flow: Value = said.lines().filter_map(|line| serde_json::from_str(line).ok()).next().expect("a flow is told");
    // 300 kB take 300 ms at the link's rate, and the connection 10 ms a round.
    let took = flow["completion_ns"].as_u64().unwrap_or_else(|| panic!("{said}"));
    assert!(took > 310_000_000, "{said}");
    let real = &report["real_time"];
    assert!(real["packets"].as_u64() > Some(200) && real["error_p50_ns"].as_u64() > Some(0), "{report}");
}

/// No machine moves so much in user space: it is said what was asked, what was carried, and why the machine is blamed.
#[test]
fn a_link_beyond_the_machine_says_so() {
    let Some(yard) = yard("a_link_beyond_the_machine_says_so") else { return };
    let server = Server::new(&yard);
    let output = output(&yard, "--rate 400gbit --json", Some(server.send("300MB")));
    let (report, said) = report(&output);
    let (link, real) = (&report["links"][0], &report["real_time"]);
    assert!(link["utilisation"].as_f64().is_some_and(|share| share > 0.0 && share < 0.5), "{report}");
    assert_eq!(real["is_limited_by_machine"], true, "{real} {said}");
    // Nobody knows of which flows those are that were lost before the link.
    let unread = real["unread_packets"].as_u64().expect("it is a number");
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let summaries: Vec<_> = lines.filter(|line| line["kind"] == "summary").collect();
    assert_eq!(summaries.len(), 2, "one for each way");
    for flows in summaries.iter().map(|summary| &summary["flows_by_granularity"][0]) {
        assert_eq!(
            (flows["exact"] == true, flows["unknown_packets"].as_u64().unwrap_or(0)),
            (unread == 0, unread),
            "{flows}"
        );
    }
    let held = &real["machine_limit"];
    assert_eq!(held["link"], "bottleneck", "{held}");
    // A quotient of whole bytes and nanoseconds: as near as numbers of 64 bits are.
    let asked = held["offered_bps"].as_f64().expect("it is a number");
    assert!((asked - 4e11).abs() < 4e11 * 1e-9, "{held}");
    let carried = held["carried_bps"].as_f64().expect("it is a number");
    assert!(carried > 1e6 && carried < 2e11, "{held}");
    assert!(held["busy_share"].as_f64() > Some(0.2), "{held}");
    // What a person reads; the view ends with the same.
    let server = Server::new(&yard);
    let output = self::output(&yard, "--rate 400gbit", Some(server.send("300MB")));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("this machine was the bottleneck at times") && said.contains("was offered 400 Gb/s"),
        "{said}"
    );
}

/// What a link loses by chance is no drop of its queue, in no row.
#[test]
fn what_a_link_loses_its_queue_has_not_dropped() {
    let Some(yard) = yard("what_a_link_loses_its_queue_has_not_dropped") else { return };
    let server = Server::new(&yard);
    let output = output(&yard, "--rate 20mbit --loss 5% --json", Some(server.send("500kB")));
    let (report, _) = report(&output);
    let links = report["links"].as_array().expect("a list");
    let lost: u64 = links.iter().map(|link| link["lost_packets"].as_u64().expect("it is a number")).sum();
    assert!(lost > 0, "{report}");
    for link in links {
        assert_eq!((&link["drops"], link["drop_rate"].as_f64()), (&serde_json::json!({}), Some(0.0)), "{link}");
        let (lost, sent) = (link["lost_packets"].as_f64().unwrap(), link["sent_packets"].as_f64().unwrap());
        assert!((link["loss_rate"].as_f64().unwrap() - lost / sent).abs() < 1e-9, "{link}");
    }
}

/// The head of a report says what it is about.
#[test]
fn a_commands_link_is_no_scenario() {
    let Some(yard) = yard("a_commands_link_is_no_scenario") else { return };
    let told = output(&yard, "--rate 8mbit", Some("true".to_owned()));
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(said.lines().next(), Some("sh -c true  link of a command"), "{said}");
    assert!(!said.contains("scenario"), "{said}");
    let told = output(&yard, "--rate 8mbit --json", Some("true".to_owned()));
    let lines = String::from_utf8_lossy(&told.stdout);
    let first: Value =
        lines.lines().next().map(|line| serde_json::from_str(line).expect("it is JSON")).expect("a line");
    assert_eq!(first["input"]["format"], "link of a command", "{first}");
}

#[test]
fn links_are_run_within_links() {
    let Some(yard) = yard("links_are_run_within_links") else { return };
    let server = Server::new(&yard);
    let within = |words: &str, what: &str| format!("{} link {words} -- {what}", env!("CARGO_BIN_EXE_queuescope"));
    let inner = within("--delay 30ms --json", &server.send("1kB"));
    let middle = within("--delay 20ms", &inner);
    let output = output(&yard, "--rate 10mbit", Some(middle));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut flow = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let flow = flow.find(|line| line["kind"] == "flow").expect("a flow is told");
    let took = flow["completion_ns"].as_u64().unwrap_or_else(|| panic!("{said}"));
    // Two round trips, each of 100 ms.
    assert!(took > 200_000_000, "{said}");
}

/// Processes whose arguments have a word in them.
fn processes(word: &str) -> usize {
    let all = fs::read_dir("/proc").expect("it is there").flatten();
    let lines = all.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// Interfaces in a namespace, beside its loopback.
fn interfaces(yard: &Namespace) -> usize {
    yard.run(|| {
        let output = Command::new("ip").args(["-o", "link"]).output().expect("ip is there");
        let lines = String::from_utf8(output.stdout).expect("it is text");
        assert!(output.status.success() && lines.contains(": lo: "), "{lines}");
        lines.lines().count() - 1
    })
}

/// It comes, however slow the machine is.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        yield_now();
    }
}

#[test]
fn nothing_is_left_whenever_it_is_killed() {
    let Some(yard) = yard("nothing_is_left_whenever_it_is_killed") else { return };
    for round in 0..50 {
        let word = format!("left-over-{}-{round}", std::process::id());
        // It begins others, which no longer belong to it.
        let shell = format!("(setsid sh -c 'sleep 1000; : {word}' &) ; sleep 1000; : {word}");
        let mut child = yard.run(move || {
            let mut command = link("--rate 10mbit --meter none", Some(&shell));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command runs")
        });
        match round % 4 {
            // At any moment of its beginning: each look at the processes only passes time, some hundred microseconds.
            0 => (0..round).for_each(|_| _ = processes(&word)),
            1 => until("an interface comes", || interfaces(&yard) == 1),
            // The keeper, the shell, and what that began.
            2 => until("the command runs", || processes(&word) >= 4),
            _ => until("there are three", || processes(&word) >= 3),
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        until("no interface is left", || interfaces(&yard) == 0);
        until("no process is left", || processes(&word) == 0);
    }
}

/// A keeper may be too late to ask for a signal at the end of the thread that started it: then the tie ends it.
#[test]
fn a_keeper_whose_parent_is_gone_ends_when_nobody_holds_the_tie() {
    if yard("a_keeper_whose_parent_is_gone_ends_when_nobody_holds_the_tie").is_none() {
        return;
    }
    let word = format!("without-parent-{}", std::process::id());
    let keeper = env!("CARGO_BIN_EXE_queuescope");
    let shell = format!("read go; exec {keeper} keep 3 -- sh -c 'sleep 1000; : {word}' 3<&0 0</dev/null");
    let (tied, mut tie) = std::io::pipe().expect("there are descriptors");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "sh", "-c", &shell]).stdin(tied).stdout(Stdio::null());
    let mut parent = command.spawn().expect("unshare is there");
    drop(command);
    until("the shell runs", || processes(&word) == 2);
    parent.kill().expect("it runs");
    parent.wait().expect("it ends");
    tie.write_all(b"go\n").expect("the shell reads it");
    until("the keeper has begun the program", || processes(&word) == 2);
    drop(tie);
    until("no process is left", || processes(&word) == 0);
}

/// Whether the kernel has a congestion control of a process: their names end with its number, so that those of others, which come and go on
/// the same machine, do not count.
fn has_program(process: u32) -> bool {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("it is there");
    known.split_whitespace().any(|name| name == format!("vegas_{:06x}", process & 0xff_ffff))
}

/// Whether a process ignores a signal.
fn ignores(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("it is a number");
    ignored & 1 << (signal.as_raw() - 1) != 0
}

#[test]
fn nothing_is_left_of_a_scenario_whenever_it_is_ended() {
    let Some(yard) = yard("nothing_is_left_of_a_scenario_whenever_it_is_ended") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let scenario = folder.path().join("long.toml");
    let flows = "[[flows]]\ntcp = \"vegas\"\n[[flows]]\nudp = { rate = \"1mbps\" }\n";
    fs::write(&scenario, format!("duration = \"1000s\"\n{flows}")).expect("there is room");
    let path = scenario.to_str().expect("it is text").to_owned();
    let mut told = 0;
    for round in 0..50 {
        let words = path.clone();
        let mut child = yard.run(move || {
            let mut command = link("", None);
            command.arg(words).stdout(Stdio::piped()).stderr(Stdio::null());
            command.spawn().expect("the command runs")
        });
        let process = child.id();
        // Who begins it in the background of a shell has this ignored, which it inherits.
        until("it can be interrupted", || !ignores(process, Signal::INT));
        // At any moment of its beginning, or of its run.
        match round % 3 {
            0 => (0..round).for_each(|_| _ = processes(&path)),
            1 => until("flows begin", || has_program(process)),
            _ => until("hosts begin", || {
                fs::read_dir(format!("/proc/{}/task", child.id())).is_ok_and(|it| it.count() > 3)
            }),
        }
        if round % 2 == 0 {
            child.kill().expect("it runs");
        } else {
            kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        }
        until("it ends", || child.try_wait().expect("it is there").is_some());
        let output = child.wait_with_output().expect("it has ended");
        told += usize::from(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("vegas"));
        until("no process is left", || processes(&path) == 0);
        until("no program is left", || !has_program(process));
    }
    // Those that were asked to end, once they had begun, told what they had seen.
    assert!(told >= 10, "{told}");
}

#[test]
fn packets_of_one_way_go_where_they_are_to_go() {
    let Some(yard) = yard("packets_of_one_way_go_where_they_are_to_go") else { return };
    let server = Server::new(&yard);
    let folder = tempfile::tempdir().expect("there is room");
    for (number, only) in ["size > 0", "dst_port == 1", "size > 1000"].into_iter().enumerate() {
        let [log, capture] = ["log", "pcapng"].map(|kind| folder.path().join(format!("{number}.{kind}")));
        let (send, way) = (server.send("300kB"), [log.clone(), capture.clone()]);
        let output = yard.run(move || {
            let mut command = link("--rate 8mbit --delay 5ms --json --input", None);
            command.arg(only).arg("--log").arg(&way[0]).arg("--pcapng").arg(&way[1]);
            command.args(["--", "sh", "-c", &send]).output().expect("the command runs")
        });
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let lines = String::from_utf8_lossy(&output.stdout);
        let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        let first = lines.find(|line| line["kind"] == "summary").expect("there is a summary");
        let packets = first["packets"].as_u64().expect("it is a number");
        assert!(if number == 1 { packets == 0 } else { packets > 200 }, "{only}: {first}");
        let kept = printed(run("query --select count --csv", &[&log]), 0);
        assert_eq!(kept.lines().last().and_then(|line| line.parse().ok()), Some(packets), "{only}: {kept}");
        if packets > 0 {
            let again = printed(run("analyze --rate 8mbps --json", &[&capture]), 0);
            assert!(again.contains(&format!("\"packets\":{packets},")), "{only}: {packets}: {again}");
        }
    }
}

#[test]
fn a_person_sees_the_queue_of_a_link() {
    let Some(yard) = yard("a_person_sees_the_queue_of_a_link") else { return };
    let server = Server::new(&yard);
    let mut pty = Pty::new();
    // So that all that is told stays in sight.
    pty.resize(120, 100);
    let mut command = link("--rate 2mbit --limit 50packets --view", None);
    command.args(["--", "sh", "-c", &format!("echo it has begun; {}", server.send("30MB"))]);
    let mut on_it = pty.on_it(&command);
    let mut child = yard.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    pty.until_text("> 100.64.0.1:");
    assert!(pty.screen().alternate_screen() && pty.text().contains("bottleneck: sh -c"), "{}", pty.text());
    pty.press("s");
    pty.until_text("sort: growth");
    pty.press("q");
    pty.rest();
    pty.assert_as_before();
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{}", pty.text());
    assert!(pty.text().contains("it has begun"), "{}", pty.text());
    assert_eq!(interfaces(&yard), 0);
}

#[test]
fn a_person_sees_the_queue_of_a_scenario() {
    let Some(yard) = yard("a_person_sees_the_queue_of_a_scenario") else { return };
    let mut pty = Pty::new();
    pty.resize(120, 60);
    let command = link("scenarios/bufferbloat.toml --set duration=3s --set warmup=1s --view", None);
    let mut on_it = pty.on_it(&command);
    let mut child = yard.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    pty.until_text("bottleneck: scenarios/bufferbloat.toml");
    pty.rest();
    pty.assert_as_before();
    assert!(child.wait().expect("it ends").success() && pty.text().contains("download"), "{}", pty.text());
}

#[test]
fn it_ends_as_the_command_does_with_all_that_that_began() {
    let Some(yard) = yard("it_ends_as_the_command_does_with_all_that_that_began") else { return };
    let word = format!("began-{}", std::process::id());
    let output = output(&yard, "--meter none", Some(format!("setsid sh -c 'sleep 1000; : {word}' & exit 3")));
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    until("no process is left", || processes(&word) == 0);
    assert_eq!(interfaces(&yard), 0);
}

#[test]
fn a_command_is_asked_before_it_is_ended() {
    let Some(yard) = yard("a_command_is_asked_before_it_is_ended") else { return };
    let trap = "trap 'exit 42' INT; trap 'exit 43' TERM; : > $MARK; while :; do sleep 0.1; done";
    // Only the link gets the signal.
    let folder = tempfile::tempdir().expect("there is room");
    let mark = folder.path().join("trapped");
    let own = mark.clone();
    let begin = move || {
        link("--meter none", Some(trap)).env("MARK", own).stderr(Stdio::null()).spawn().expect("the command runs")
    };
    let mut child = yard.run(begin);
    until("it is ready", || mark.exists());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(43));
    // A terminal that shows the queue keeps its keys for itself.
    let mark = folder.path().join("shown");
    let mut pty = Pty::new();
    let mut command = link("--view", Some(trap));
    let mut on_it = pty.on_it(command.env("MARK", &mark));
    let mut child = yard.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    until("it is ready", || mark.exists());
    pty.until_text("bottleneck: sh -c");
    pty.press("q");
    pty.rest();
    assert_eq!(child.wait().expect("it ends").code(), Some(42), "{}", pty.text());
}

#[test]
fn what_cannot_be_is_told() {
    let Some(yard) = yard("what_cannot_be_is_told") else { return };
    let refused = |words, shell: Option<&str>, says: &str| {
        let output = output(&yard, words, shell.map(str::to_owned));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says) && output.stdout.is_empty(), "{says}: {said}");
    };
    refused("--rate 10mbit", None, "COMMAND");
    refused("--aqm nonsense", Some("true"), "nonsense");
    refused("--trace /nowhere/trace", Some("true"), "cannot read the trace /nowhere/trace");
    refused("--trace /dev/zero", Some("true"), "longer than 64 MiB");
    refused("--input nonsense", Some("true"), "nonsense");
    refused("--set link.nonsense=1", Some("true"), "nonsense");
    refused("--set duration=1s", Some("true"), "begins with link");
    refused("--meter none --input size>0", Some("true"), "leave one out");
    refused("--meter none --pcapng /nowhere/file", Some("true"), "leave one out");
    refused("--meter none --view", Some("true"), "leave one out");
    refused("--view --json", Some("true"), "cannot be used with");
    refused("--view", Some("true"), "nothing can be shown: standard input is not a terminal");
    refused("scenarios/pie.toml", None, "a sweep cannot be run on real hosts");
    refused("scenarios/codel.toml --set flows.0.count=20000", None, "20000 hosts at an end");
    refused("/nowhere/scenario.toml", None, "/nowhere/scenario.toml");
    refused("scenarios/codel.toml --rate 1mbit", None, "cannot be used with");
    for (program, status) in [("-- /nowhere/program", 127), ("-- /etc/passwd", 126)] {
        let output = output(&yard, program, None);
        let said = String::from_utf8_lossy(&output.stderr);
        let says = program.replace("--", "error: cannot run");
        assert!(output.status.code() == Some(status) && said.contains(&says), "{said}");
    }
}

#[test]
fn a_scenario_does_the_same_in_both_worlds() {
    let Some(yard) = yard("a_scenario_does_the_same_in_both_worlds") else { return };
    let output = yard.run(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
        let words = "compare scenarios/bufferbloat.toml --set duration=4s --set warmup=1s --json";
        command.current_dir(ROOT).args(words.split(' ')).output().expect("the command runs")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let line: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let row = |of: &str, name: &str, quantity: &str| {
        let is_it = |row: &&Value| row["subject"] == of && row["name"] == name && row["quantity"] == quantity;
        let row = line["rows"].as_array().expect("rows").iter().find(is_it);
        let row = row.unwrap_or_else(|| panic!("no {quantity} of {name}: {line}"));
        [&row["simulated"][0], &row["real"][0]].map(|value| value.as_f64().expect("it is a number"))
    };
    // As far as a machine lets it that may have other things to do.
    for (of, name, quantity) in [
        ("link", "bottleneck", "delay_mean_ns"),
        ("link", "bottleneck", "utilisation"),
        ("group", "download", "goodput_bps"),
        ("group", "call", "goodput_bps"),
    ] {
        let [simulated, real] = row(of, name, quantity);
        assert!((real / simulated - 1.0).abs() < 0.25, "{quantity} of {name}: {simulated}, {real}");
    }
    assert!(line["real_time"][0]["packets"].as_u64() > Some(1_000), "{line}");
}

/// Two flows over a link of 40 ms and 20 Mb/s, whose queue may be 200 ms long.
const WINDOWS: &str = r#"
duration = "3s"
warmup = "1s"
access = { rate = "1gbps", delay = "1ms" }
link = { rate = "20mbps", delay = "18ms", limit = "200ms", pipeline = { ack-window = { base-rtt = "40ms" } } }
[[flows]]
tcp = "cubic"
count = 2
"#;

#[test]
fn real_receive_windows_are_bounded() {
    let Some(yard) = yard("real_receive_windows_are_bounded") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("windows.toml");
    fs::write(&path, WINDOWS).expect("there is room");
    let measured = |base_rtt: &str| {
        let (path, set) = (path.clone(), format!("link.pipeline.ack-window.base-rtt={base_rtt}"));
        let output = yard.run(move || {
            let mut command = link("--json", None);
            command.arg(path).args(["--set", &set]).output().expect("the command runs")
        });
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let lines = String::from_utf8_lossy(&output.stdout);
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        let sim = lines.into_iter().find(|line| line["kind"] == "sim").expect("there is a line of the run");
        let link = &sim["links"][0];
        let goodput = sim["groups"][0]["goodput_bps"].as_f64().expect("it is a number");
        (link["sojourn"]["p99_ns"].as_f64().expect("it is a number"), goodput)
    };
    // What may be in flight fits the way without a queue; with a hundred times as much the queue has no bound but its limit.
    let (bounded, goodput) = measured("40ms");
    let (unbounded, _) = measured("4s");
    assert!(bounded < 50e6 && unbounded > 100e6 && goodput > 5e6, "{bounded} {unbounded} ns, {goodput} b/s");
}
