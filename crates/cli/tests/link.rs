//! `queuescope link` in network namespaces that the tests make, as root.

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

/// A namespace in which links are started. If it cannot be made, prints why, and returns `None`.
fn outer_namespace(test: &str) -> Option<Namespace> {
    namespaces::alone(&["namespaces", "tun"]).map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The command. `words` are split at blanks; `shell` is a script that a shell runs behind the link.
fn link(words: &str, shell: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.current_dir(ROOT).arg("link").args(words.split_whitespace());
    command.args(shell.into_iter().flat_map(|shell| ["--", "sh", "-c", shell]));
    command
}

fn output(outer: &Namespace, words: &'static str, shell: Option<String>) -> Output {
    outer.run(move || link(words, shell.as_deref()).output().expect("the command runs"))
}

/// A server for flows at the outer end, at any address. The number is its port.
struct Server(Child, u16);

impl Server {
    fn new(outer: &Namespace) -> Self {
        let mut child = outer.run(|| {
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

    /// A command that sends one flow to it.
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

/// The line about the run, and the command's standard error.
fn report(output: &Output) -> (Value, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut whole = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let simulated = whole.find(|line| line["kind"] == "sim");
    (simulated.unwrap_or_else(|| panic!("{lines}: {said}")), said)
}

#[test]
fn a_command_sends_through_the_link() {
    let Some(outer) = outer_namespace("a_command_sends_through_the_link") else { return };
    let server = Server::new(&outer);
    let send = server.send("300kB");
    let output = output(&outer, "--rate 8mbit --delay 5ms --aqm codel --json", Some(format!("{send}; exit 7")));
    assert_eq!(output.status.code(), Some(7));
    let (report, said) = report(&output);
    let link = &report["links"][0];
    assert_eq!((&link["name"], &link["discipline"]), (&"bottleneck".into(), &"codel".into()), "{report}");
    let sent = integer(&link["sent_bytes"]).expect("it is a number");
    // The bytes, the headers, and retransmissions.
    assert!((309_000..400_000).contains(&sent), "{report}");
    let flow: Value =
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).next().expect("a flow is printed");
    // 300 kB take 300 ms at the link's rate, and a round trip takes 10 ms.
    let took = flow["completion_ns"].as_u64().unwrap_or_else(|| panic!("{said}"));
    assert!(took > 310_000_000, "{said}");
    let real = &report["real_time"];
    assert!(real["packets"].as_u64() > Some(200) && real["error_p50_ns"].as_u64() > Some(0), "{report}");
}

/// No machine can carry this rate in user space: the report has the rate of the link, what was carried, and why the machine is too slow.
#[test]
fn a_link_that_is_too_fast_for_the_machine_is_reported() {
    let Some(outer) = outer_namespace("a_link_that_is_too_fast_for_the_machine_is_reported") else { return };
    let server = Server::new(&outer);
    let output = output(&outer, "--rate 400gbit --json", Some(server.send("300MB")));
    let (report, said) = report(&output);
    let (link, real) = (&report["links"][0], &report["real_time"]);
    assert!(link["utilisation"].as_f64().is_some_and(|share| share > 0.0 && share < 0.5), "{report}");
    assert_eq!(real["is_limited_by_machine"], true, "{real} {said}");
    // The flows of packets that were lost before the link are unknown.
    let unread = real["unread_packets"].as_u64().expect("it is a number");
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let summaries: Vec<_> = lines.filter(|line| line["kind"] == "summary").collect();
    assert_eq!(summaries.len(), 2, "one for each direction");
    for flows in summaries.iter().map(|summary| &summary["flows_by_granularity"][0]) {
        assert_eq!(
            (flows["exact"] == true, flows["unknown_packets"].as_u64().unwrap_or(0)),
            (unread == 0, unread),
            "{flows}"
        );
    }
    let held = &real["machine_limit"];
    assert_eq!(held["link"], "bottleneck", "{held}");
    // A quotient of whole bytes and nanoseconds, as exact as 64-bit numbers allow.
    let asked = held["offered_bps"].as_f64().expect("it is a number");
    assert!((asked - 4e11).abs() < 4e11 * 1e-9, "{held}");
    let carried = held["carried_bps"].as_f64().expect("it is a number");
    assert!(carried > 1e6 && carried < 2e11, "{held}");
    assert!(held["busy_share"].as_f64() > Some(0.2), "{held}");
    // The text for users; the view ends with the same text.
    let server = Server::new(&outer);
    let output = self::output(&outer, "--rate 400gbit", Some(server.send("300MB")));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("this machine was the bottleneck at times") && said.contains("was offered 400 Gb/s"),
        "{said}"
    );
}

/// A packet that a link loses at random is not a drop of its queue, in any row.
#[test]
fn random_losses_of_a_link_are_not_drops_of_its_queue() {
    let Some(outer) = outer_namespace("random_losses_of_a_link_are_not_drops_of_its_queue") else { return };
    let server = Server::new(&outer);
    let output = output(&outer, "--rate 20mbit --loss 5% --json", Some(server.send("500kB")));
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

/// The head of a report names its subject.
#[test]
fn a_link_of_a_command_is_not_called_a_scenario() {
    let Some(outer) = outer_namespace("a_link_of_a_command_is_not_called_a_scenario") else { return };
    let text = output(&outer, "--rate 8mbit", Some("true".to_owned()));
    let said = String::from_utf8_lossy(&text.stderr);
    assert_eq!(said.lines().next(), Some("sh -c true  link of a command"), "{said}");
    assert!(!said.contains("scenario"), "{said}");
    let json = output(&outer, "--rate 8mbit --json", Some("true".to_owned()));
    let lines = String::from_utf8_lossy(&json.stdout);
    let first: Value =
        lines.lines().next().map(|line| serde_json::from_str(line).expect("it is JSON")).expect("a line");
    assert_eq!(first["input"]["format"], "link of a command", "{first}");
}

#[test]
fn links_are_run_within_links() {
    let Some(outer) = outer_namespace("links_are_run_within_links") else { return };
    let server = Server::new(&outer);
    let within = |words: &str, what: &str| format!("{} link {words} -- {what}", env!("CARGO_BIN_EXE_queuescope"));
    let inner = within("--delay 30ms --json", &server.send("1kB"));
    let middle = within("--delay 20ms", &inner);
    let output = output(&outer, "--rate 10mbit", Some(middle));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut flow = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let flow = flow.find(|line| line["kind"] == "flow").expect("a flow is printed");
    let took = flow["completion_ns"].as_u64().unwrap_or_else(|| panic!("{said}"));
    // Two round trips, each of 100 ms.
    assert!(took > 200_000_000, "{said}");
}

/// The number of processes with `word` in their arguments.
fn processes(word: &str) -> usize {
    let all = fs::read_dir("/proc").expect("it is there").flatten();
    let lines = all.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// The number of interfaces in a namespace, not counting loopback.
fn interfaces(outer: &Namespace) -> usize {
    outer.run(|| {
        let output = Command::new("ip").args(["-o", "link"]).output().expect("ip is there");
        let lines = String::from_utf8(output.stdout).expect("it is text");
        assert!(output.status.success() && lines.contains(": lo: "), "{lines}");
        lines.lines().count() - 1
    })
}

/// Waits until a condition holds, however slow the machine is.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        yield_now();
    }
}

#[test]
fn a_killed_link_leaves_nothing_behind() {
    let Some(outer) = outer_namespace("a_killed_link_leaves_nothing_behind") else { return };
    for round in 0..50 {
        let word = format!("left-over-{}-{round}", std::process::id());
        // The command starts a process that leaves its session.
        let shell = format!("(setsid sh -c 'sleep 1000; : {word}' &) ; sleep 1000; : {word}");
        let mut child = outer.run(move || {
            let mut command = link("--rate 10mbit --meter none", Some(&shell));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command runs")
        });
        match round % 4 {
            // Kill it at different moments of its start: each look at the processes only passes some hundred microseconds.
            0 => (0..round).for_each(|_| _ = processes(&word)),
            1 => until("an interface comes", || interfaces(&outer) == 1),
            // The keeper, the shell, and the two processes that the shell starts.
            2 => until("the command runs", || processes(&word) >= 4),
            _ => until("there are three", || processes(&word) >= 3),
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        until("no interface is left", || interfaces(&outer) == 0);
        until("no process is left", || processes(&word) == 0);
    }
}

/// A keeper may ask too late for a signal at the end of the thread that started it. Then the closed tie ends it.
#[test]
fn a_keeper_whose_parent_is_gone_ends_when_the_tie_is_closed() {
    if outer_namespace("a_keeper_whose_parent_is_gone_ends_when_the_tie_is_closed").is_none() {
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
    until("the keeper has started the program", || processes(&word) == 2);
    drop(tie);
    until("no process is left", || processes(&word) == 0);
}

/// Whether the kernel has a congestion control that `process` loaded. Their names end with the process id, because tests in parallel on the
/// same machine load others.
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
fn an_ended_scenario_leaves_nothing_behind() {
    let Some(outer) = outer_namespace("an_ended_scenario_leaves_nothing_behind") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let scenario = folder.path().join("long.toml");
    let flows = "[[flows]]\ntcp = \"vegas\"\n[[flows]]\nudp = { rate = \"1mbps\" }\n";
    fs::write(&scenario, format!("duration = \"1000s\"\n{flows}")).expect("there is room");
    let path = scenario.to_str().expect("it is text").to_owned();
    let mut reported = 0;
    for round in 0..50 {
        let words = path.clone();
        let mut child = outer.run(move || {
            let mut command = link("", None);
            command.arg(words).stdout(Stdio::piped()).stderr(Stdio::null());
            command.spawn().expect("the command runs")
        });
        let process = child.id();
        // A shell starts background commands with this signal ignored, and they inherit that.
        until("it can be interrupted", || !ignores(process, Signal::INT));
        // End it at different moments of its start, or of its run.
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
        reported += usize::from(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("vegas"));
        until("no process is left", || processes(&path) == 0);
        until("no program is left", || !has_program(process));
    }
    // Runs that were interrupted after the start print a report.
    assert!(reported >= 10, "{reported}");
}

#[test]
fn packets_of_each_direction_go_to_the_outputs_that_are_requested() {
    let Some(outer) = outer_namespace("packets_of_each_direction_go_to_the_outputs_that_are_requested") else { return };
    let server = Server::new(&outer);
    let folder = tempfile::tempdir().expect("there is room");
    for (number, only) in ["size > 0", "dst_port == 1", "size > 1000"].into_iter().enumerate() {
        let [log, capture] = ["log", "pcapng"].map(|kind| folder.path().join(format!("{number}.{kind}")));
        let (send, way) = (server.send("300kB"), [log.clone(), capture.clone()]);
        let output = outer.run(move || {
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
fn the_view_shows_the_queue_of_a_command() {
    let Some(outer) = outer_namespace("the_view_shows_the_queue_of_a_command") else { return };
    let server = Server::new(&outer);
    let mut pty = Pty::new();
    // The terminal is large enough for the whole report.
    pty.resize(120, 100);
    let mut command = link("--rate 2mbit --limit 50packets --view", None);
    command.args(["--", "sh", "-c", &format!("echo it has begun; {}", server.send("30MB"))]);
    let mut on_it = pty.on_it(&command);
    let mut child = outer.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    pty.until_text("> 100.64.0.1:");
    assert!(pty.screen().alternate_screen() && pty.text().contains("bottleneck: sh -c"), "{}", pty.text());
    pty.press("s");
    pty.until_text("sort: growth");
    pty.press("q");
    pty.rest();
    pty.assert_as_before();
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{}", pty.text());
    assert!(pty.text().contains("it has begun"), "{}", pty.text());
    assert_eq!(interfaces(&outer), 0);
}

#[test]
fn the_view_shows_the_queue_of_a_scenario() {
    let Some(outer) = outer_namespace("the_view_shows_the_queue_of_a_scenario") else { return };
    let mut pty = Pty::new();
    pty.resize(120, 60);
    let command = link("scenarios/bufferbloat.toml --set duration=3s --set warmup=1s --view", None);
    let mut on_it = pty.on_it(&command);
    let mut child = outer.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    pty.until_text("bottleneck: scenarios/bufferbloat.toml");
    pty.rest();
    pty.assert_as_before();
    assert!(child.wait().expect("it ends").success() && pty.text().contains("download"), "{}", pty.text());
}

#[test]
fn it_ends_with_the_command_and_all_that_the_command_started() {
    let Some(outer) = outer_namespace("it_ends_with_the_command_and_all_that_the_command_started") else { return };
    let word = format!("began-{}", std::process::id());
    let output = output(&outer, "--meter none", Some(format!("setsid sh -c 'sleep 1000; : {word}' & exit 3")));
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    until("no process is left", || processes(&word) == 0);
    assert_eq!(interfaces(&outer), 0);
}

#[test]
fn a_command_gets_a_signal_before_it_is_killed() {
    let Some(outer) = outer_namespace("a_command_gets_a_signal_before_it_is_killed") else { return };
    let trap = "trap 'exit 42' INT; trap 'exit 43' TERM; : > $MARK; while :; do sleep 0.1; done";
    // The signal goes to the link only.
    let folder = tempfile::tempdir().expect("there is room");
    let mark = folder.path().join("trapped");
    let own = mark.clone();
    let begin = move || {
        link("--meter none", Some(trap)).env("MARK", own).stderr(Stdio::null()).spawn().expect("the command runs")
    };
    let mut child = outer.run(begin);
    until("it is ready", || mark.exists());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(43));
    // The view reads the keys of the terminal, so Ctrl-C does not reach the command by itself.
    let mark = folder.path().join("shown");
    let mut pty = Pty::new();
    let mut command = link("--view", Some(trap));
    let mut on_it = pty.on_it(command.env("MARK", &mark));
    let mut child = outer.run(move || on_it.spawn().expect("setsid of util-linux is there"));
    until("it is ready", || mark.exists());
    pty.until_text("bottleneck: sh -c");
    pty.press("q");
    pty.rest();
    assert_eq!(child.wait().expect("it ends").code(), Some(42), "{}", pty.text());
}

#[test]
fn errors_say_why_a_link_cannot_run() {
    let Some(outer) = outer_namespace("errors_say_why_a_link_cannot_run") else { return };
    let refused = |words, shell: Option<&str>, says: &str| {
        let output = output(&outer, words, shell.map(str::to_owned));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says) && output.stdout.is_empty(), "{says}: {said}");
    };
    refused("--rate 10mbit", None, "COMMAND");
    refused("--aqm nonsense", Some("true"), "nonsense");
    refused("--trace /nowhere/trace", Some("true"), "cannot read the trace /nowhere/trace");
    refused("--trace /dev/zero", Some("true"), "longer than 64 MiB");
    refused("--input nonsense", Some("true"), "nonsense");
    refused("--set link.nonsense=1", Some("true"), "nonsense");
    refused("--set duration=1s", Some("true"), "only settings that begin with link");
    refused("--meter none --input size>0", Some("true"), "leave one out");
    refused("--meter none --pcapng /nowhere/file", Some("true"), "leave one out");
    refused("--meter none --view", Some("true"), "leave one out");
    refused("--view --json", Some("true"), "cannot be used with");
    refused("--view", Some("true"), "nothing can be shown: standard input is not a terminal");
    refused("scenarios/pie.toml", None, "a sweep cannot be run on real hosts");
    refused("scenarios/codel.toml --set flows.0.count=20000", None, "20000 hosts at one end");
    refused("/nowhere/scenario.toml", None, "/nowhere/scenario.toml");
    refused("scenarios/codel.toml --rate 1mbit", None, "cannot be used with");
    for (program, status) in [("-- /nowhere/program", 127), ("-- /etc/passwd", 126)] {
        let output = output(&outer, program, None);
        let said = String::from_utf8_lossy(&output.stderr);
        let says = program.replace("--", "error: cannot run");
        assert!(output.status.code() == Some(status) && said.contains(&says), "{said}");
    }
}

#[test]
fn a_scenario_has_the_same_results_in_both_worlds() {
    let Some(outer) = outer_namespace("a_scenario_has_the_same_results_in_both_worlds") else { return };
    let output = outer.run(|| {
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
    // The tolerance allows for a machine that runs other programs as well.
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

/// Two flows over a path of 40 ms and a link of 20 Mb/s, whose queue holds up to 200 ms.
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
    let Some(outer) = outer_namespace("real_receive_windows_are_bounded") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("windows.toml");
    fs::write(&path, WINDOWS).expect("there is room");
    let measured = |base_rtt: &str| {
        let (path, set) = (path.clone(), format!("link.pipeline.ack-window.base-rtt={base_rtt}"));
        let output = outer.run(move || {
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
    // With the true round trip, the windows fit the path without a queue. With a hundred times that, only the queue's limit bounds it.
    let (bounded, goodput) = measured("40ms");
    let (unbounded, _) = measured("4s");
    assert!(bounded < 50e6 && unbounded > 100e6 && goodput > 5e6, "{bounded} {unbounded} ns, {goodput} b/s");
}

/// Receivers of DCTCP echo each mark, so they have a port of their own.
#[test]
fn flows_have_the_names_of_their_packets() {
    let test = "flows_have_the_names_of_their_packets";
    let Some(outer) = outer_namespace(test) else { return };
    if let Some(why) =
        queuescope_live::abilities().into_iter().find(|it| it.name == "struct_ops").and_then(|it| it.missing)
    {
        return println!("skipped: {test}: {why}");
    }
    let flows = "--set duration=2s --set warmup=0s --set flows.download.tcp=dctcp --set meters.0.tau=1ms";
    let output = outer.run(move || link(&format!("scenarios/bufferbloat.toml --json {flows}"), None).output());
    let output = output.expect("the command runs");
    let (sim, said) = report(&output);
    let name = sim["flows"][0]["name"].as_str().unwrap_or_else(|| panic!("{said} {sim}"));
    let lines = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(lines.lines().last().expect("there are lines")).expect("it is JSON");
    let culprits = &summary["culprits"][0]["flows"];
    assert!(culprits.as_array().is_some_and(|all| all.iter().any(|one| one["flow"] == name)), "{name} {culprits}");
}
