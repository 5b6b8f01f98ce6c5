//! `traffic` and `capture` together: flows over the loopback interface of a network namespace, and its packets.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test looks at what was written")]

use crate::common;
use crate::common::{command, number, printed};
use queuescope_live::Namespace;
use queuescope_live::capture::{Capture, CaptureParams};
use queuescope_pcap::CaptureReader;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A network namespace whose loopback interface is up.
struct LoopbackNamespace(Namespace);

impl LoopbackNamespace {
    /// Prints why the test is skipped if there can be none.
    fn new(test: &str) -> Option<Self> {
        let made = Namespace::new().map_err(|error| error.to_string()).and_then(|namespace| {
            namespace.run(|| {
                let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
                up.is_ok_and(|status| status.success()).then_some(()).ok_or("loopback does not come up")?;
                Capture::open("lo", CaptureParams::default()).map(drop).map_err(|error| error.to_string())
            })?;
            Ok(namespace)
        });
        made.map(Self).map_err(|why| println!("skipped: {test}: {why}")).ok()
    }

    /// Starts the command in the namespace.
    fn start(&self, words: &str, paths: &[&Path]) -> Running {
        let mut command = command(words, paths);
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Move the command to the namespace's thread, from which it inherits the namespace.
        let mut piped = std::mem::replace(piped, Command::new("true"));
        Running(self.0.run(move || piped.spawn().expect("the command runs")))
    }

    fn run(&self, words: &str) -> Output {
        self.start(words, &[]).0.wait_with_output().expect("the command ends")
    }

    /// Starts a server for flows. Returns its address as well.
    fn server(&self) -> (Running, String) {
        let mut server = self.start("traffic serve --json --listen 127.0.0.1:0", &[]);
        let mut line = String::new();
        let out = server.0.stdout.as_mut().expect("it is piped");
        // Only this line is printed before the end.
        BufReader::with_capacity(1, out).read_line(&mut line).expect("it says where it listens");
        let listening: Value = serde_json::from_str(&line).expect("a line is JSON");
        (server, listening["at"].as_str().expect("it is an address").to_owned())
    }
}

struct Running(Child);

impl Running {
    /// Ends the command with a signal. Returns its output; its exit status must be `status`.
    fn end(self, status: i32) -> String {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it runs");
        printed(self.0.wait_with_output().expect("it ends"), status)
    }
}

/// Waits until a file is begun: its writer is then capturing.
fn wait_until_begun(path: &Path, writer: &mut Running) {
    let since = Instant::now();
    while !path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        assert!(since.elapsed() < Duration::from_secs(60), "{} is never begun", path.display());
        let ended = writer.0.try_wait().expect("it is ours");
        assert!(ended.is_none(), "{} is not begun: {ended:?}", path.display());
        std::thread::yield_now();
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn both_ends_report_the_flows_and_the_capture_has_them() {
    let Some(here) = LoopbackNamespace::new("both_ends_report_the_flows_and_the_capture_has_them") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("trace.pcapng");
    let log = folder.path().join("log");
    let mut to_file = here.start("capture lo --snaplen 100 -o", &[&file]);
    let words =
        "capture lo --where tcp --index dst_port --aggregate packets=count --trigger busy=packets>0@10ms/1s --log";
    let mut to_log = here.start(words, &[&log]);
    wait_until_begun(&file, &mut to_file);
    wait_until_begun(&log.join("log.toml"), &mut to_log);
    let (server, at) = here.server();
    let words = format!(
        "traffic send {at} --json --sizes 1kB,20kB --every 5ms --for 400ms --burst 1MB@100ms:reno --congestion cubic"
    );
    let lines_sent = lines(&printed(here.run(&words), 0));
    let (summary, flows) = lines_sent.split_last().expect("there is a summary");
    assert_eq!((number(summary, "/flows"), number(summary, "/completed")), (flows.len() as u64, flows.len() as u64));
    let sum: u64 = flows.iter().map(|flow| number(flow, "/bytes")).sum();
    assert_eq!(number(summary, "/bytes"), sum);
    let bursts: Vec<_> = flows.iter().filter(|flow| flow["class"] == "1MB@100ms:reno").collect();
    assert_eq!(bursts.iter().map(|flow| number(flow, "/start_ns") / 1_000_000).max(), Some(350));
    assert!(bursts.len() == 4 && bursts.iter().all(|flow| flow["congestion"] == "reno"), "{bursts:?}");
    assert!(flows.iter().all(|flow| number(flow, "/completion_ns") > 0 && flow["failed"].is_null()));
    // A flow without bytes came first, which checks the server.
    let served = &lines(&server.end(0))[0];
    assert_eq!((number(served, "/flows"), number(served, "/bytes")), (flows.len() as u64 + 1, sum));

    let output = to_file.end(0);
    let mut reader = CaptureReader::open(&file).expect("it is a capture");
    let mut connections = 0;
    let mut packets = 0u64;
    while let Some(record) = reader.next_record().expect("it is whole") {
        packets += 1;
        assert!(record.data.len() <= 100 && record.data.len() <= record.original_len as usize);
        // Count SYN segments without ACK.
        connections +=
            usize::from(record.data[12..14] == [8, 0] && record.data[23] == 6 && record.data[47] & 0x12 == 2);
    }
    assert_eq!(connections, flows.len() + 1);
    assert!(output.contains("packets of lo captured to") && output.contains("loopback interface"), "{output}");
    let output = to_log.end(0);
    assert!(output.contains("times a trigger fired"), "{output}");
    let count = printed(common::run("query --select count --csv", &[&log]), 0);
    let recorded: u64 = count.lines().nth(1).and_then(|line| line.parse().ok()).expect("it is a number");
    assert!(recorded > flows.len() as u64 * 6 && recorded <= packets, "{recorded} {packets}");
    others_read(&file, packets);
}

#[test]
fn congestion_controls_that_the_kernel_lacks_are_loaded_and_named() {
    let test = "congestion_controls_that_the_kernel_lacks_are_loaded_and_named";
    let Some(here) = LoopbackNamespace::new(test) else { return };
    let lacks = queuescope_live::abilities().into_iter().find(|it| it.name == "struct_ops").and_then(|it| it.missing);
    let (server, at) = here.server();
    let words =
        "--sizes 1kB --every 5ms --periodic --count 6 --burst 2kB@100ms:dctcp --congestion vegas,reno --for 120ms";
    let words = format!("traffic send {at} {words}");
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("it is there");
    let own: Vec<_> =
        ["vegas", "dctcp"].into_iter().filter(|name| !known.split_whitespace().any(|known| known == *name)).collect();
    if let (Some(why), false) = (lacks, own.is_empty()) {
        let output = here.run(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("no congestion control"), "{errors}");
        return println!("skipped: {test}: {why}");
    }
    let lines_sent = lines(&printed(here.run(&format!("{words} --json")), 0));
    let (summary, flows) = lines_sent.split_last().expect("there is a summary");
    let of = |name: &str| flows.iter().filter(|flow| flow["congestion"] == name).count();
    assert_eq!(["vegas", "reno", "dctcp"].map(of), [3, 3, 1], "{flows:?}");
    assert_eq!(summary["programs"], serde_json::json!(own));
    let output = printed(here.run(&words), 0);
    assert!(!own.contains(&"vegas") || output.contains("vegas (a program in the kernel), reno"), "{output}");
    server.end(0);
}

/// Reads the capture with Wireshark's programs, if they are installed.
fn others_read(file: &Path, packets: u64) {
    let Ok(output) = Command::new("capinfos").args(["-c", "-M", "-T", "-r"]).arg(file).output() else {
        return println!("skipped: others_read: there is no tshark (capinfos)");
    };
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.trim_end().ends_with(&format!("\t{packets}")), "{output}");
}

#[test]
fn a_count_of_packets_ends_a_capture_and_so_does_a_time() {
    let Some(here) = LoopbackNamespace::new("a_count_of_packets_ends_a_capture_and_so_does_a_time") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("trace.pcapng");
    let mut counted = here.start("capture lo --count 10 --direction in -o", &[&file]);
    wait_until_begun(&file, &mut counted);
    let (server, at) = here.server();
    printed(here.run(&format!("traffic send {at} --sizes 1kB --every 1ms --for 50ms")), 0);
    let output = printed(counted.0.wait_with_output().expect("it ends"), 0);
    assert!(output.starts_with("10 packets of lo captured"), "{output}");
    server.end(0);
    let output = printed(here.run("capture lo --for 10ms -o /dev/null"), 0);
    assert!(output.starts_with("0 packets of lo captured to /dev/null"), "{output}");
}

#[test]
fn errors_say_why_a_command_cannot_run() {
    let Some(here) = LoopbackNamespace::new("errors_say_why_a_command_cannot_run") else { return };
    let fails_with = |words: &str, expected: &str| {
        let output = here.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{words}: {errors}");
        assert!(output.stdout.is_empty(), "{words}: nothing was done");
    };
    fails_with("capture nosuch0 -o /dev/null", "there is no interface nosuch0 here");
    fails_with("capture lo -o /dev/full", "cannot write /dev/full: No space left");
    fails_with("capture lo -o /nowhere/trace.pcapng", "cannot write /nowhere/trace.pcapng: No such file");
    fails_with("capture lo", "<--output <FILE>|--log <DIR>>");
    fails_with("capture lo -o /dev/null --where nonsense", "nonsense");
    fails_with("capture lo -o /dev/null --filter web=tcp", "cannot be used with");
    fails_with("capture lo -o /dev/null --index ts", "cannot be used with");
    fails_with("traffic send 127.0.0.1:1 --every 1ms", "start `queuescope traffic serve` there");
    fails_with("traffic serve --listen 10.1.2.3:7000", "`ip addr` lists");
    let (server, at) = here.server();
    fails_with(&format!("traffic serve --listen {at}"), "ss -ltnp");
    fails_with(&format!("traffic send {at} --every 1ms --congestion nonsense"), "reno");
    drop(here.0.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "2")));
    fails_with(&format!("traffic send {at} --every 1ms --ecn"), "sysctl net.ipv4.tcp_ecn=1");
    // The server ends while flows are sent.
    let sending = here.start(&format!("traffic send {at} --every 1ms --for 60s --wait 1s --json"), &[]);
    let Running(mut sending) = sending;
    let mut out = BufReader::new(sending.stdout.take().expect("it is piped"));
    out.read_line(&mut String::new()).expect("a flow is printed");
    server.end(0);
    let refused = out.by_ref().lines().map_while(Result::ok).any(|line| line.contains("\"failed\":\"refused\""));
    assert!(refused);
    kill_process(Pid::from_child(&sending), Signal::INT).expect("it runs");
    let rest: Vec<_> = out.lines().map_while(Result::ok).collect();
    let summary: Value = serde_json::from_str(rest.last().expect("there is a summary")).expect("a line is JSON");
    assert!(summary["stopped"] == true && summary["failed"].to_string().contains("refused"), "{summary}");
    assert_eq!(sending.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_reader_of_a_capture_may_stop() {
    let Some(here) = LoopbackNamespace::new("a_reader_of_a_capture_may_stop") else { return };
    let (server, at) = here.server();
    let Running(mut capture) = here.start("capture lo -o -", &[]);
    let mut out = capture.stdout.take().expect("it is piped");
    let mut begin = [0; 28];
    out.read_exact(&mut begin).expect("a section begins");
    assert_eq!(begin[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    drop(out);
    printed(here.run(&format!("traffic send {at} --sizes 1kB --every 1ms --for 50ms")), 0);
    let ended = capture.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    server.end(0);
}
