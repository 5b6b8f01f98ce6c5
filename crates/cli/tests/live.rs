//! `queuescope live` on queues that the tests make: between two network namespaces, as root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces;

use crate::common::{ROOT, file, printed, run};
use namespaces::{Ends, until};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two namespaces with a queue of 50 Mb/s between them. If they cannot be made, prints why, and returns `None`.
fn ends(test: &str) -> Option<Ends> {
    Ends::new("tbf rate 50mbit burst 20kb limit 400kb").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The command, running in the near namespace.
struct Live {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Live {
    /// Watches the near end. Returns when the first line is printed, with that line.
    fn start(ends: &Ends, words: &'static str) -> (Self, Value) {
        let mut child = ends.near.run(move || {
            let mut command = command(words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
        });
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut live = Self { child, lines };
        let first = live.next().unwrap_or_else(|| panic!("{}", live.complaint()));
        (live, first)
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.expect("it is text");
        Some(serde_json::from_str(&line).expect("it is JSON"))
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut text).expect("it is text");
        text
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// The lines that it prints until it ends, which must be without an error.
    fn rest(mut self) -> Vec<Value> {
        let rest: Vec<_> = std::iter::from_fn(|| self.next()).collect();
        let complaint = self.complaint();
        assert!(self.child.wait().expect("it ends").success(), "{complaint}");
        rest
    }
}

fn command(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.current_dir(ROOT).args(words.split_whitespace());
    command
}

/// Runs the command to its end.
fn output(ends: &Ends, words: &'static str) -> Output {
    ends.near.run(move || command(words).output().expect("the command runs"))
}

/// Sends a burst: one flow of 150 large packets, and three flows of five small ones.
fn burst(ends: &Ends) {
    send(&sockets(ends));
}

fn sockets(ends: &Ends) -> Vec<UdpSocket> {
    ends.near.run(|| (0..4).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")).collect())
}

fn send(sockets: &[UdpSocket]) {
    for n in 0..150 {
        // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
        let _ = sockets[0].send_to(&[0; 1400], "10.9.0.2:7");
        if n % 10 == 0 {
            let _ = sockets[1 + n / 10 % 3].send_to(&[0; 200], "10.9.0.2:9");
        }
    }
}

/// Waits until the near queue is empty. Returns how many packets have left it, by the qdisc's own count.
fn drained(ends: &Ends) -> u64 {
    let shown = || {
        let words = ["-s", "-j", "qdisc", "show", "dev", "near0", "root"];
        let output = ends.near.run(move || Command::new("tc").args(words).output().expect("tc is there"));
        let shown: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        ["backlog", "packets"].map(|name| shown[0][name].as_u64().expect("it is a number"))
    };
    until("it empties", || {
        let [backlog, packets] = shown();
        (backlog == 0).then_some(packets)
    })
}

#[test]
fn a_burst_is_printed_with_its_culprits_as_it_ends() {
    let Some(ends) = ends("a_burst_is_printed_with_its_culprits_as_it_ends") else { return };
    let schema = std::fs::read_to_string(file("docs/report.schema.json")).expect("it is there");
    let schema = serde_json::from_str(&schema).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    let (mut live, first) = Live::start(&ends, "live near0 --json --tau 2ms");
    assert_eq!((&first["kind"], &first["input"]["name"]), (&"analysis".into(), &"near0".into()));
    assert_eq!(first["setup"]["tau_ns"], 2_000_000);
    let mut lines = vec![first];
    for _ in 0..2 {
        burst(&ends);
        // It keeps watching.
        lines.push(live.next().expect("a burst"));
    }
    let counted = drained(&ends);
    live.signal(Signal::INT);
    lines.extend(live.rest());
    // If the machine stalls there may be more, as one burst then becomes several.
    let (summary, bursts) = lines[1..].split_last().expect("there are lines");
    assert_eq!((&summary["kind"], &summary["bursts"]), (&"summary".into(), &bursts.len().into()), "{summary}");
    for (burst, number) in bursts.iter().zip(1..) {
        assert_eq!((&burst["kind"], &burst["number"]), (&"burst".into(), &number.into()), "{burst}");
        assert!(burst["peak_delay_ns"].as_u64() >= Some(2_000_000), "{burst}");
    }
    let culprit = &summary["culprits"][0]["flows"][0];
    assert!(culprit["flow"].as_str().is_some_and(|flow| flow.ends_with("> 10.9.0.2:7 udp")), "{summary}");
    assert!(culprit["share"].as_f64() > Some(0.4), "{summary}");
    let skipped = &summary["skipped"];
    // Packets that the interface itself sent while the probe was attached have no arrival time.
    assert!(skipped["unstamped"].as_u64().unwrap_or(0) < 5, "{skipped}");
    assert!(skipped["stopped"] == 1 && skipped["not_handed_over"].is_null(), "{skipped}");
    // The kernel skips a program that another one interrupts: two runs in a hundred, more beside other probes. It is counted.
    let measured = summary["packets"].as_u64().expect("it is a number");
    let unseen = skipped["unseen"].as_u64().unwrap_or(0);
    assert!(counted >= 330 && 100 * (measured + unseen) >= 98 * 330, "{measured} and {unseen} of {counted}: {summary}");
    assert!(5 * measured >= 4 * counted, "{measured} of {counted}: {summary}");
    // The first packets of a burst hardly wait: they are only counted, so their flows are unknown.
    let flows = &summary["flows_by_granularity"][0];
    assert_eq!(flows["exact"], false, "{flows}");
    assert!(flows["unknown_packets"].as_u64().expect("some are only counted") > unseen, "{flows}");
    for line in &lines {
        let errors: Vec<_> = validator.iter_errors(line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
    }
}

/// The culprits' flows at all granularities.
fn flows(culprits: &Value) -> impl Iterator<Item = &Value> {
    culprits.as_array().expect("a list").iter().flat_map(|level| level["flows"].as_array()).flatten()
}

#[test]
fn culprits_have_the_process_that_sends() {
    let Some(ends) = ends("culprits_have_the_process_that_sends") else { return };
    let (mut live, _) = Live::start(&ends, "live near0 --json --by 5tuple,dst --alpha 0.1%");
    let sockets = sockets(&ends);
    // Owners are looked up in the background, so the first burst may not have them yet. If the machine stalls, a burst may lack some flows.
    let burst = until("a burst has all owners", || {
        send(&sockets);
        let burst = live.next().expect("a burst");
        let is_all_known = flows(&burst["culprits"]).all(|flow| flow["owner"].is_object());
        (is_all_known && burst["culprits"][0]["flows"][3].is_object()).then_some(burst)
    });
    live.signal(Signal::INT);
    let rest = live.rest();
    for culprits in [&burst["culprits"], &rest.last().expect("there is a summary")["culprits"]] {
        for flow in flows(culprits) {
            let owner = &flow["owner"];
            assert_eq!(owner["pid"], std::process::id(), "{flow}");
            assert!(owner["command"].is_string() && owner["uid"] == 0, "{flow}");
        }
        assert_eq!(
            (culprits[0]["flows"][3].is_object(), culprits[1]["flows"].as_array().map(Vec::len)),
            (true, Some(1))
        );
    }
}

#[test]
fn bursts_count_their_drops() {
    let ends = match Ends::new("tbf rate 20mbit burst 20kb limit 60kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: bursts_count_their_drops: {why}"),
    };
    let (mut live, _) = Live::start(&ends, "live near0 --json");
    let lost = |bursts: &[Value]| bursts.iter().map(|burst| burst["drops"].as_u64().expect("a number")).sum::<u64>();
    let mut lines = Vec::new();
    until("packets are lost", || {
        burst(&ends);
        lines.push(live.next().expect("a burst"));
        (lost(&lines) > 50).then_some(())
    });
    live.signal(Signal::INT);
    lines.extend(live.rest());
    let (summary, bursts) = lines.split_last().expect("there are lines");
    let lost = lost(bursts);
    let dropped = summary["totals"]["drops"].as_object().expect("reasons").values().filter_map(Value::as_u64);
    let dropped: u64 = dropped.sum();
    assert!(lost > 50 && lost == dropped, "{lost} of {dropped}");
}

/// Waits until a child has ended. Returns the processor time that it took, in hundredths of a second, and its exit status.
fn cost(child: &mut Child) -> (u64, ExitStatus) {
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it is waited for");
    let (_, fields) = stat.rsplit_once(')').expect("a name is in parentheses");
    let times = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number"));
    (times.sum(), child.wait().expect("it ended"))
}

#[test]
fn a_signal_during_the_start_ends_it_soon() {
    let Some(ends) = ends("a_signal_during_the_start_ends_it_soon") else { return };
    let start = |words: &'static str| {
        ends.near
            .run(move || command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command runs"))
    };
    let (whole, status) = cost(&mut start("live near0 --json --for 1ns"));
    assert!(status.success());
    for step in 0..50 {
        let mut child = start("live near0 --json");
        // Signals come at fifty moments of the first half second. Not SIGINT: scripts ignore it in background commands, so it is
        // lost before the command installs its handler.
        thread::sleep(Duration::from_millis(10 * step));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("nobody has waited for it");
        let (took, status) = cost(&mut child);
        let mut said = String::new();
        child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
        // A signal that comes before the handler is installed kills it, as by default.
        assert!(status.success() || status.signal() == Some(Signal::TERM.as_raw()), "{status}: {said}");
        assert!(took <= 2 * whole + 30, "{took} where a whole run takes {whole}, after {step}0 ms: {said}");
    }
    // Nothing is left that would disturb the next run.
    let (mut live, _) = Live::start(&ends, "live near0 --json");
    burst(&ends);
    live.next().expect("a burst");
    live.signal(Signal::INT);
    assert!(live.rest().pop().expect("a summary")["skipped"]["unstamped"].as_u64().unwrap_or(0) < 5);
}

/// Sends one packet of each of `flows` flows, to as many destination ports as needed.
fn one_packet_each(ends: &Ends, flows: u32) {
    const EACH: u32 = 60_000;
    ends.near.run(move || {
        for _ in 0..flows / EACH {
            let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
            for port in 1..=EACH as u16 {
                // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
                let _ = socket.send_to(&[], ("10.9.0.2", port));
            }
        }
    });
}

/// The peak memory of a process, in bytes.
fn most_memory(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports it");
    most.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn memory_does_not_grow_with_the_flows_that_pass() {
    /// The limit that `docs/reference/live.md` states.
    const MOST: u64 = 128 << 20;
    let ends = match Ends::new("tbf rate 30mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: memory_does_not_grow_with_the_flows_that_pass: {why}"),
    };
    let (Live { mut child, lines }, _) = Live::start(&ends, "live near0 --json --every-packet");
    let last = thread::spawn(|| lines.last().expect("there are lines").expect("it is text"));
    for _ in 0..2 {
        one_packet_each(&ends, 600_000);
        drained(&ends);
        assert!(most_memory(&child) < MOST, "{}", most_memory(&child));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let summary: Value = serde_json::from_str(&last.join().expect("it reads")).expect("it is JSON");
    assert!(child.wait().expect("it ends").success());
    assert!(summary["skipped"]["flows_forgotten"].as_u64() > Some(200_000), "{}", summary["skipped"]);
}

#[test]
fn it_ends_when_its_output_is_closed() {
    let Some(ends) = ends("it_ends_when_its_output_is_closed") else { return };
    let (mut live, _) = Live::start(&ends, "live near0 --json");
    drop(live.lines);
    burst(&ends);
    assert!(live.child.wait().expect("it ends").success());
}

#[test]
fn an_interface_that_is_renamed_is_still_watched() {
    let Some(ends) = ends("an_interface_that_is_renamed_is_still_watched") else { return };
    let (mut live, _) = Live::start(&ends, "live near0 --json");
    ends.near.run(|| {
        let renamed = Command::new("sh")
            .args([
                "-c",
                "ip link set near0 down && ip link set near0 name other0 && ip link set other0 up && \
             ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev other0",
            ])
            .status();
        assert!(renamed.expect("ip is there").success());
    });
    burst(&ends);
    assert_eq!(live.next().expect("a burst")["kind"], "burst");
    live.signal(Signal::INT);
    assert!(live.rest().pop().expect("a summary")["skipped"]["interface_gone"].is_null());
}

#[test]
fn two_commands_can_watch_the_same_queue() {
    let Some(ends) = ends("two_commands_can_watch_the_same_queue") else { return };
    let (one, _) = Live::start(&ends, "live near0 --json");
    let (other, _) = Live::start(&ends, "live near0 --json --every-packet --input dst_port==9");
    burst(&ends);
    drained(&ends);
    let finish = |mut live: Live| {
        live.next().expect("a burst");
        live.signal(Signal::TERM);
        live.rest().pop().expect("a summary")
    };
    let (summary, left) = (finish(one), finish(other));
    let flows = left["culprits"][0]["flows"].as_array().expect("there are flows");
    assert!(!flows.is_empty() && flows.iter().all(|flow| flow["flow"].as_str().expect("a name").contains(":9 udp")));
    // The kernel's own packets, such as neighbour discovery, may come when only one command is running. The kernel also skips
    // a program that another one interrupts, which is counted.
    let counted = [&summary, &left].map(|summary| {
        let unseen = summary["skipped"]["unseen"].as_u64().unwrap_or(0);
        (summary["packets"].as_u64().expect("it is a number") + unseen, unseen)
    });
    let [(one, _), (other, unseen)] = counted;
    assert!(one >= 165 && other >= 165 && one.abs_diff(other) < 10, "{counted:?}: {summary}, {left}");
    let left_out = left["skipped"]["left_out_by_input"].as_u64().expect("it is a number");
    assert!(left_out > 75 && left_out + unseen >= 150, "{left}");
}

#[test]
fn packets_go_into_a_folder_and_a_capture() {
    let Some(ends) = ends("packets_go_into_a_folder_and_a_capture") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let (log, capture) = (folder.path().join("log"), folder.path().join("burst.pcapng"));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_nanos() as u64;
    let start = now();
    let words = format!("live near0 --json --log {} --pcapng {}", log.display(), capture.display());
    let (mut live, _) = Live::start(&ends, words.leak());
    burst(&ends);
    let mut lines = vec![live.next().expect("a burst")];
    live.signal(Signal::INT);
    lines.extend(live.rest());
    let measured: u64 = lines.iter().filter_map(|line| line["packets"].as_u64()).sum();
    let count = printed(run("query --select count --csv", &[&log, "dst_port == 7 and delay > 1ms".as_ref()]), 0);
    let waited: u64 = count.lines().nth(1).and_then(|line| line.parse().ok()).expect("it is a number");
    assert!(waited > 0 && waited <= measured, "{waited} of {measured}");
    // Times are those of the clock, and not of the time since boot. A second allows for a clock that is set meanwhile.
    let times = printed(run("query --select min(enqueued),max(dequeued) --csv", &[&log, "delay > 1ms".as_ref()]), 0);
    let times: Vec<u64> =
        times.lines().nth(1).into_iter().flat_map(|line| line.split(',')).flat_map(str::parse).collect();
    let [first, last] = times[..] else { panic!("{times:?}") };
    assert!(start - 1_000_000_000 < first && first < last && last < now() + 1_000_000_000, "{start}: {times:?}");
    let found = printed(run("query --select count --csv", &[&capture, "udp dst port 7".as_ref()]), 0);
    let found: u64 = found.lines().nth(1).and_then(|line| line.parse().ok()).expect("it is a number");
    assert!(found >= waited, "{found} of {waited}");
}

/// Watches the near end with the options `words`, and serves metrics. Returns the port.
fn monitored(ends: &Ends, words: &'static str) -> (Live, u16) {
    ends.near
        .run(|| assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip is there").success()));
    let (mut live, _) = Live::start(ends, words);
    let mut line = String::new();
    let mut said = BufReader::new(live.child.stderr.take().expect("it is piped"));
    said.read_line(&mut line).expect("it is text");
    let port = line
        .trim_end()
        .strip_prefix("metrics of near0: http://127.0.0.1:")
        .and_then(|rest| rest.strip_suffix("/metrics"));
    let port = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    // Later output of standard error is not needed, but the pipe must stay open.
    live.child.stderr = Some(said.into_inner());
    (live, port)
}

/// The value of the sample `name` whose line contains `label`.
fn sample(answer: &str, name: &str, label: &str) -> f64 {
    let is_it = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(label);
    let line = answer.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {label}: {answer}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_policy_file_is_obeyed_and_reread_when_it_changes() {
    let Some(ends) = ends("a_policy_file_is_obeyed_and_reread_when_it_changes") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let policy = folder.path().join("policy");
    let write = |text: &str| std::fs::write(&policy, text).expect("there is room");
    write("--drop # only counted");
    let words = format!("live near0 --json --metrics 127.0.0.1:0 --policy-file {}", policy.display());
    let (mut live, port) = monitored(&ends, words.leak());
    let metric = |name: &str, label: &str| sample(&metrics(&ends, port), name, label);
    let acted = |outcome: &str| metric("queuescope_acted_total", &format!("\"{outcome}\""));
    // It may take some bursts. They are sent in pairs, so that the second comes while the first is in the queue.
    let mut until = |is_so: &dyn Fn() -> bool| {
        let comes = (0..1000).any(|_| {
            (0..2).for_each(|_| burst(&ends));
            live.next().expect("a burst");
            is_so()
        });
        assert!(comes, "{}", metrics(&ends, port));
    };
    until(&|| acted("would_drop") > 0.0);
    write("--drop --for-real");
    until(&|| acted("dropped") > 0.0);
    live.signal(Signal::INT);
    let summary = live.rest().pop().expect("a summary");
    let counted = |reason: &str| summary["skipped"][reason].as_u64().unwrap_or_default();
    assert!(counted("would_drop") > 0 && counted("dropped") > 0, "{summary}");
    for (file, why) in [("/nowhere/policy", "No such file"), ("/dev/zero", "must be a regular file")] {
        let refused = output(&ends, format!("live near0 --policy-file {file}").leak());
        let said = String::from_utf8_lossy(&refused.stderr);
        let is_explained = said.contains(&format!("cannot read {file}")) && said.contains(why);
        assert!(refused.status.code() == Some(2) && is_explained, "{said}");
    }
}

/// Sends a request in the near namespace, and closes the sending direction. Returns the answer, which may be empty.
fn answered(ends: &Ends, port: u16, request: &'static [u8]) -> String {
    ends.near.run(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        // A connection that is refused may be closed before that.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).expect("it is text")
    })
}

/// The metrics of the near end. A connection that comes while eight others are answered is refused, so this retries.
fn metrics(ends: &Ends, port: u16) -> String {
    until("there is an answer", || Some(answered(ends, port, REQUEST)).filter(|answer| !answer.is_empty()))
}

#[test]
fn metrics_have_what_is_counted() {
    let Some(ends) = ends("metrics_have_what_is_counted") else { return };
    let (mut live, port) = monitored(&ends, "live near0 --json --metrics 127.0.0.1:0");
    burst(&ends);
    live.next().expect("a burst");
    let value = |answer: &str, name: &str| sample(answer, name, "");
    // The kernel's counts are read four times a second. Packets that the kernel skips are counted as unseen.
    let answer = until("all is counted", || {
        let answer = metrics(&ends, port);
        let counted = value(&answer, "queuescope_packets_total") + value(&answer, "queuescope_packets_unseen");
        (counted >= 165.0 && value(&answer, "queuescope_bursts_total") >= 1.0).then_some(answer)
    });
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text")
            && answer.ends_with("# EOF\n")
    );
    assert!(value(&answer, "queuescope_packets_congested_total") > 50.0, "{answer}");
    assert!(value(&answer, "queuescope_delay_seconds_sum") > 0.1, "{answer}");
    let count = value(&answer, "queuescope_delay_seconds_count");
    assert!(count == value(&answer, "queuescope_packets_total"), "{answer}");
    // Other requests get an error. Clients that send nothing, or do not read, delay nobody.
    let answers = |request: &'static [u8], status: &str| {
        let answer = answered(&ends, port, request);
        assert!(answer.starts_with(status), "{answer}");
    };
    answers(b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ");
    answers(b"DELETE /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ");
    answers(b"\0\xff\r\n\r\n", "HTTP/1.1 400 ");
    answers(b"GET /metrics HTTP/1.1", "");
    let silent: Vec<_> = ends
        .near
        .run(move || (0..5).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("somebody listens")).collect());
    assert!(metrics(&ends, port).starts_with("HTTP/1.1 200"));
    drop(silent);
    let taken = ends.near.run(move || {
        let words = format!("live near0 --json --metrics 127.0.0.1:{port}");
        command(&words).output().expect("the command runs")
    });
    let why = String::from_utf8_lossy(&taken.stderr);
    assert!(taken.status.code() == Some(2) && why.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{why}");
    live.signal(Signal::INT);
    assert!(live.child.wait().expect("it ends").success());
}

#[test]
fn it_ends_in_order_when_the_interface_is_removed() {
    let Some(ends) = ends("it_ends_in_order_when_the_interface_is_removed") else { return };
    let (mut live, _) = Live::start(&ends, "live near0 --json");
    burst(&ends);
    live.next().expect("a burst");
    ends.near.run(|| {
        let gone = Command::new("ip").args(["link", "del", "near0"]).status();
        assert!(gone.expect("ip is there").success());
    });
    let summary = live.rest().pop().expect("a summary");
    assert!(summary["skipped"]["interface_gone"] == 1 && summary["bursts"].as_u64() >= Some(1), "{summary}");
}

#[test]
fn errors_say_why_a_queue_cannot_be_watched() {
    let Some(ends) = ends("errors_say_why_a_queue_cannot_be_watched") else { return };
    let refused = |words, says: &str| {
        let output = output(&ends, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(says) && output.stdout.is_empty(), "{said}");
    };
    refused("live nowhere0 --json", "there is no interface nowhere0 here");
    refused("live near0 --input nonsense", "nonsense");
    refused(
        "live near0 --input backlog_in>1B",
        "`backlog_in` cannot be used for a queue that is measured from outside",
    );
    refused("live near0 --pcapng /nowhere/file", "cannot write /nowhere/file");
    // A user without rights.
    let output = ends.near.run(|| {
        let binary = tempfile::tempdir().expect("there is room");
        let copy = binary.path().join("queuescope");
        // A separate process copies the file. If this process had the copy open for writing, a program that another test starts just then
        // would inherit the descriptor, and the copy could not be run meanwhile.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_queuescope")).arg(&copy).status();
        assert!(copied.expect("cp is there").success());
        let open = |path: &std::path::Path| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("it is ours");
        };
        open(binary.path());
        open(&copy);
        Command::new(&copy).args(["live", "near0", "--json"]).uid(65_534).gid(65_534).output().expect("it runs")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("queuescope doctor"), "{said}");
}
