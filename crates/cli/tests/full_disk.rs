//! Measuring goes on while the disk is full: everything is measured, and what could not be written is counted. As root, on small
//! file systems.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces;

use crate::common::{ROOT, packets, printed, run};
use namespaces::{Ends, alone, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A small file system. It is unmounted when this is dropped.
pub struct Disk(tempfile::TempDir);

impl Disk {
    /// A file system of this size. If it cannot be mounted, prints why, and returns `None`.
    pub fn new(test: &str, kibibytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("there is room");
        let is_mounted = mount(&["-t", "tmpfs", "-o", &format!("size={kibibytes}k"), "tmpfs"], folder.path());
        if !is_mounted {
            println!("skipped: {test}: only root can mount a small file system");
        }
        is_mounted.then_some(Self(folder))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Enlarges the file system, so that there is room again.
    pub fn grow(&self) {
        assert!(mount(&["-o", "remount,size=64m"], self.0.path()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let ended = Command::new("umount").arg(self.0.path()).status();
        assert!(ended.is_ok_and(|status| status.success()) || thread::panicking());
    }
}

fn mount(options: &[&str], path: &Path) -> bool {
    let status = Command::new("mount").args(options).arg(path).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Two namespaces with a queue of 50 Mb/s between them. If they cannot be made, prints why, and returns `None`.
fn ends(test: &str) -> Option<Ends> {
    Ends::new("tbf rate 50mbit burst 20kb limit 400kb").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The running command, and the lines of its standard error.
struct Running {
    child: Child,
    errors: Receiver<String>,
}

impl Running {
    fn start(ends: &Ends, words: &str, to: Stdio) -> Self {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let mut child = ends.near.run(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
            command.current_dir(ROOT).args(words).stdout(to).stderr(Stdio::piped());
            command.spawn().expect("the command runs")
        });
        let (sender, errors) = channel();
        let said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        thread::spawn(move || said.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        Self { child, errors }
    }

    /// Sends bursts until the command reports that these files cannot be written.
    fn fills(&self, ends: &Ends, files: &[&Path]) {
        let mut unreported: Vec<_> = files.iter().map(|file| format!("cannot write {}: ", file.display())).collect();
        until("the disk is full", || {
            burst(ends);
            for line in self.errors.try_iter() {
                unreported.retain(|what| !line.contains(what) || !line.contains("No space left"));
            }
            unreported.is_empty().then_some(())
        });
    }

    /// Ends the command, which must report an incomplete result. Returns standard output and the rest of standard error.
    fn end(mut self) -> (String, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        let mut out = String::new();
        if let Some(stdout) = &mut self.child.stdout {
            stdout.read_to_string(&mut out).expect("it is text");
        }
        let status = self.child.wait().expect("it ends");
        let said: Vec<_> = self.errors.iter().collect();
        assert_eq!(status.code(), Some(1), "{said:?}");
        (out, said.join("\n"))
    }
}

/// Kills the command if a test fails, so that it does not keep its disk busy.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends 150 packets at once.
fn burst(ends: &Ends) {
    ends.near.run(|| {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        for _ in 0..150 {
            // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
            let _ = socket.send_to(&[7; 1000], "10.9.0.2:7");
        }
    });
}

fn recorded(log: &Path) -> u64 {
    let count = printed(run("query --select count --csv", &[log]), 0);
    count.lines().nth(1).and_then(|line| line.parse().ok()).expect("it is a number")
}

fn summary(lines: &str) -> (usize, Value) {
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let bursts = lines.iter().filter(|line| line["kind"] == "burst").count();
    let summary = lines.last().expect("there are lines").clone();
    assert_eq!(summary["kind"], "summary");
    (bursts, summary)
}

#[test]
fn live_goes_on_and_counts_what_is_not_written() {
    let test = "live_goes_on_and_counts_what_is_not_written";
    let Some(ends) = ends(test) else { return };
    let (Some(one), Some(other)) = (Disk::new(test, 256), Disk::new(test, 256)) else { return };
    let (log, capture) = (one.path("log"), other.path("burst.pcapng"));
    let words = format!("live near0 --json --every-packet --log {} --pcapng {}", log.display(), capture.display());
    let running = Running::start(&ends, &words, Stdio::piped());
    running.fills(&ends, &[&log, &capture]);
    // There is no room for aggregates and indexes of the records either.
    let (lines, said) = running.end();
    let (bursts, summary) = summary(&lines);
    let skipped = |name: &str| summary["skipped"][name].as_u64().unwrap_or(0);
    assert!(bursts > 0 && summary["bursts"] == bursts as u64, "{summary}");
    let of_log = (skipped("recorded"), skipped("log_unwritten"), skipped("not_recorded"));
    let of_capture = (packets(&capture).len() as u64, skipped("pcapng_unwritten"));
    assert!(of_log.0 > 0 && of_log.1 > 0 && of_capture.0 > 0 && of_capture.1 > 0, "{summary}");
    assert_eq!(of_log.0 + of_log.1 + of_log.2, of_capture.0 + of_capture.1, "{of_log:?} {of_capture:?}");
    // Each packet takes more bytes in the file than its own.
    assert!(skipped("pcapng_unwritten_bytes") > 100 * of_capture.1, "{summary}");
    for file in [&log, &capture] {
        let what = format!("cannot write {}: No space left on device (os error 28); ", file.display());
        assert!(said.contains(&what), "{said}");
    }
    // It was reported once, when it began.
    assert!(!said.contains("measuring goes on"), "{said}");
    one.grow();
    assert_eq!(recorded(&log), of_log.0);
}

#[test]
fn writing_resumes_when_the_disk_has_room_again() {
    let test = "writing_resumes_when_the_disk_has_room_again";
    let Some(ends) = ends(test) else { return };
    let Some(disk) = Disk::new(test, 128) else { return };
    let capture = disk.path("burst.pcapng");
    let running = Running::start(&ends, &format!("live near0 --json --pcapng {}", capture.display()), Stdio::piped());
    running.fills(&ends, &[&capture]);
    let size = || std::fs::metadata(&capture).expect("it is there").len();
    let full = 128 << 10;
    assert!(size() <= full);
    disk.grow();
    until("it is written again", || {
        burst(&ends);
        (size() > 4 * full).then_some(())
    });
    let (_, summary) = summary(&running.end().0);
    let skipped = |name: &str| summary["skipped"][name].as_u64().unwrap_or(0);
    assert!(skipped("pcapng_unwritten") > 0 && summary["damage"].is_null(), "{summary}");
    // No packet is cut off where the disk was full.
    assert!(packets(&capture).len() > 400, "{summary}");
}

#[test]
fn a_folder_that_is_moved_keeps_what_was_recorded() {
    let Some(ends) = ends("a_folder_that_is_moved_keeps_what_was_recorded") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let (log, moved) = (folder.path().join("log"), folder.path().join("moved"));
    let words = format!("live near0 --json --every-packet --log {}", log.display());
    let running = Running::start(&ends, &words, Stdio::piped());
    until("packets are recorded", || {
        burst(&ends);
        (log.join("log.toml").exists() && recorded(&log) > 0).then_some(())
    });
    std::fs::rename(&log, &moved).expect("it is there");
    until("it is noticed", || {
        burst(&ends);
        running.errors.try_iter().any(|line| line.contains("was moved to ")).then_some(())
    });
    let (lines, said) = running.end();
    let (_, summary) = summary(&lines);
    let skipped = |name: &str| summary["skipped"][name].as_u64().unwrap_or(0);
    assert!(skipped("recorded") > 0 && skipped("log_unwritten") > 0, "{summary}");
    assert_eq!(recorded(&moved), skipped("recorded"), "{summary}");
    assert!(!log.exists() && said.contains(&moved.display().to_string()), "{said}");
}

#[test]
fn measuring_goes_on_if_standard_output_cannot_be_written() {
    let Some(ends) = ends("measuring_goes_on_if_standard_output_cannot_be_written") else { return };
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let folder = tempfile::tempdir().expect("there is room");
    let log = folder.path().join("log");
    let words = format!("live near0 --json --log {}", log.display());
    let running = Running::start(&ends, &words, full.into());
    until("it is reported", || {
        burst(&ends);
        running
            .errors
            .try_iter()
            .any(|line| line.contains("lines that could not be written to standard output"))
            .then_some(())
    });
    // The first line is printed before any packet, and the probe may have missed the arrival of one that left.
    until("packets are recorded", || {
        burst(&ends);
        (recorded(&log) > 0).then_some(())
    });
    let (_, said) = running.end();
    // The report is complete all the same, and so is the log.
    assert!(said.contains("near0  interface") && said.contains("with delays of 1.00 ms or more"), "{said}");
    assert!(recorded(&log) > 0);
}

#[test]
fn capture_goes_on_and_counts_what_is_not_written() {
    let test = "capture_goes_on_and_counts_what_is_not_written";
    let Some(ends) = ends(test) else { return };
    for into_folder in [false, true] {
        let Some(disk) = Disk::new(test, 256) else { return };
        let to = disk.path("there");
        let way = if into_folder { "--log" } else { "-o" };
        let words = format!("capture near0 --direction out {way} {}", to.display());
        let running = Running::start(&ends, &words, Stdio::piped());
        running.fills(&ends, &[&to]);
        let (out, said) = running.end();
        disk.grow();
        let there = if into_folder { recorded(&to) } else { packets(&to).len() as u64 };
        let number = |line: &str| line.split(' ').next().and_then(|word| word.replace(',', "").parse::<u64>().ok());
        let kept = out.lines().find(|line| line.contains("captured to")).and_then(number);
        let missing = out.lines().find(|line| line.contains("packets that are not in")).and_then(number);
        assert!(there > 0 && kept == Some(there) && missing > Some(0), "{there}: {out}");
        assert!(said.contains("packets are not in it"), "{said}");
    }
}

fn link(words: &str) -> Option<Output> {
    let outer = alone(&["namespaces", "tun"]).map_err(|why| println!("skipped: link_goes_on: {why}")).ok()?;
    let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    Some(outer.run(move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
        command.current_dir(ROOT).arg("link").args(words);
        let send = "for n in $(seq 1000); do printf %01000d 0 2>/dev/null >/dev/udp/100.64.0.1/9; done; exit 0";
        command.args(["--", "bash", "-c", send]).output().expect("the command runs")
    }))
}

#[test]
fn link_goes_on_and_counts_what_is_not_written() {
    let test = "link_goes_on_and_counts_what_is_not_written";
    let (Some(one), Some(other)) = (Disk::new(test, 128), Disk::new(test, 128)) else { return };
    let (log, capture) = (one.path("log"), other.path("link.pcapng"));
    let words = format!(
        "--rate 500mbit --json --html /dev/full --parquet /dev/full --log {} --pcapng {}",
        log.display(),
        capture.display()
    );
    let Some(output) = link(&words) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    // The first summary is of the direction from the command, and has the notes of the run.
    let summary = lines.find(|line| line["kind"] == "summary").expect("there is one");
    let skipped = |name: &str| summary["skipped"][name].as_u64().unwrap_or(0);
    let of_capture = (packets(&capture).len() as u64, skipped("pcapng_unwritten"));
    let of_log = (skipped("recorded"), skipped("log_unwritten"), skipped("not_recorded"));
    assert!(of_capture.1 > 0 && of_log.1 > 0 && skipped("parquet_unwritten") > 0, "{summary}");
    assert_eq!(of_log.0 + of_log.1 + of_log.2, of_capture.0 + of_capture.1, "{of_log:?} {of_capture:?}");
    assert!(said.contains("cannot write /dev/full: No space left"), "{said}");
    one.grow();
    assert_eq!(recorded(&log), of_log.0);
}

/// Runs a command that cannot write all of its outputs. Returns the summary of its first queue.
fn run_on_full_disk(words: &str) -> Value {
    let output = run(words, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    lines.find(|line| line["kind"] == "summary").expect("there is one")
}

#[test]
fn analyze_goes_on_and_counts_what_is_not_written() {
    let test = "analyze_goes_on_and_counts_what_is_not_written";
    let (Some(one), Some(other)) = (Disk::new(test, 128), Disk::new(test, 128)) else { return };
    let (log, capture) = (one.path("log"), other.path("out.pcapng"));
    let words = "analyze data/demo.pcap.xz --rate 20mbps --json";
    let summary = run_on_full_disk(&format!("{words} --log {} --pcapng {}", log.display(), capture.display()));
    let skipped = |name: &str| summary["skipped"][name].as_u64().unwrap_or(0);
    let whole = printed(run(words, &[]), 0);
    let whole: Value = serde_json::from_str(whole.lines().last().expect("there are lines")).expect("it is JSON");
    assert_eq!((&summary["bursts"], &summary["totals"]), (&whole["bursts"], &whole["totals"]));
    let total = summary["packets"].as_u64().expect("it is a number");
    let of_log = (skipped("recorded"), skipped("log_unwritten") + skipped("not_recorded"));
    let of_capture = (packets(&capture).len() as u64, skipped("pcapng_unwritten"));
    assert!(of_capture.0 > 0 && of_capture.1 > 0 && of_log.1 > 0, "{summary}");
    assert_eq!((of_log.0 + of_log.1, of_capture.0 + of_capture.1), (total, total), "{summary}");
    one.grow();
    assert_eq!(recorded(&log), of_log.0);
}

#[test]
fn reports_are_complete_if_tables_cannot_be_written() {
    for words in [
        "analyze data/demo.pcap.xz --rate 20mbps --json --parquet /dev/full",
        "sim scenarios/abc.toml --json --parquet /dev/full --telemetry /dev/full",
    ] {
        let summary = run_on_full_disk(words);
        let lost = &summary["skipped"]["parquet_unwritten"];
        assert!(lost.as_u64() > Some(0), "{words}: {summary}");
        if words.starts_with("sim") {
            assert!(summary["skipped"]["telemetry_unwritten"].as_u64() > Some(0), "{summary}");
        }
    }
}
