//! Captures that arrive slowly, and signals that end them: everything that was read is recorded.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test looks at what was written")]

use crate::common::{command, file, printed, run};
use queuescope_pcap::{CaptureReader, PcapWriter};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

/// How often to check whether something has happened. Each check runs the command, so this is minutes.
const LOOKS: usize = 4_000;

/// The first packets of the demo capture: the file header, and each packet.
fn capture(packets: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut reader = CaptureReader::open(&file("data/demo.pcap.xz")).expect("it is a capture");
    let mut writer = PcapWriter::new(Vec::new(), 1, 0).expect("there is room");
    let mut ends = vec![24];
    let mut whole = Vec::new();
    for _ in 0..packets {
        let record = reader.next_record().expect("it is whole").expect("it has that many packets");
        writer.packet(record.time.expect("it has a time"), record.original_len, record.data).expect("there is room");
        ends.push(ends[ends.len() - 1] + 16 + record.data.len());
    }
    whole.extend(writer.finish().expect("there is room"));
    let packets = ends.windows(2).map(|ends| whole[ends[0]..ends[1]].to_vec()).collect();
    (whole[..24].to_vec(), packets)
}

/// Starts a command that reads standard input until it is closed or a signal comes.
fn start(words: &str, log: &Path) -> (Child, ChildStdin) {
    let mut command = command(&format!("{words} --log"), &[log]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the command runs");
    let input = child.stdin.take().expect("it is piped");
    (child, input)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

/// Waits until a query of the folder counts `packets` packets.
fn wait_for(log: &Path, packets: u64) {
    let found = (0..LOOKS).any(|_| {
        let count = run("query --select count --csv", &[log]);
        count.status.success() && String::from_utf8_lossy(&count.stdout) == format!("count\n{packets}\n")
    });
    assert!(found, "{packets} packets were written to a pipe, and are not in the folder");
}

/// Checks that the folder is in the state of a finished recording.
fn is_finished(log: &Path) {
    let info = printed(run("log info", &[log]), 0);
    assert!(info.contains("volumes  1, ") && info.contains("journals 0, "), "{info}");
}

#[test]
fn packets_can_be_queried_before_the_next_ones_arrive() {
    let folder = tempfile::tempdir().expect("there is room");
    let (header, packets) = capture(6);
    for durability in ["relaxed", "written", "synced"] {
        let log = folder.path().join(durability);
        let (child, mut input) = start(&format!("record - --durability {durability}"), &log);
        // One write, whose last packet is incomplete: the packets before it are recorded while the command waits for its end.
        let (begun, rest) = packets[3].split_at(20);
        input.write_all(&[&header, &packets[..3].concat(), begun].concat()).expect("it reads");
        wait_for(&log, 3);
        input.write_all(rest).expect("it reads");
        wait_for(&log, 4);
        input.write_all(&packets[4..].concat()).expect("it reads");
        drop(input);
        let output = printed(child.wait_with_output().expect("it ends"), 0);
        assert!(output.starts_with("6 packets of - recorded to "), "{output}");
        is_finished(&log);
    }
}

#[test]
fn a_folder_that_is_removed_during_recording_is_reported_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(6));
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..3].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    std::fs::remove_dir_all(&log).expect("it is there");
    // The command may end before it reads these.
    _ = input.write_all(&packets[3..].concat());
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{errors}");
    assert_eq!(errors.matches("removed, moved or replaced").count(), 1, "{errors}");
    assert!(errors.contains("0 of ") || errors.contains("; 0 records are kept"), "{errors}");
    assert!(ended.stdout.is_empty() && !log.exists(), "{errors}");
}

#[test]
fn the_new_place_of_a_folder_that_is_moved_during_recording_is_reported() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, moved, (header, packets)) = (folder.path().join("log"), folder.path().join("moved"), capture(6));
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..3].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    std::fs::rename(&log, &moved).expect("it is there");
    // The command may end before it reads these.
    _ = input.write_all(&packets[3..].concat());
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{errors}");
    let place = moved.canonicalize().expect("it is there");
    assert_eq!(errors.matches(&format!("was moved to {}", place.display())).count(), 1, "{errors}");
    assert!(errors.contains("3 of ") || errors.contains("; 3 records are kept"), "{errors}");
    assert!(ended.stdout.is_empty() && !log.exists(), "{errors}");
    let count = printed(run("query --select count --csv", &[&moved]), 0);
    assert_eq!(count.lines().nth(1), Some("3"), "{count}");
}

#[test]
fn alerts_are_printed_while_packets_arrive() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(6));
    let (child, mut input) =
        start("record - --aggregate n=count --trigger three=n>=3@1us --trigger five=n>=5@1us", &log);
    input.write_all(&[&header, &packets[..2].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 2);
    let mut watching = command("watch --all", &[&log]).stdout(Stdio::piped()).spawn().expect("the command runs");
    let mut alerts = BufReader::new(watching.stdout.take().expect("it is piped")).lines();
    let mut next = || alerts.next().map(|line| line.expect("it is text"));
    // A trigger evaluates an interval when a later packet arrives.
    input.write_all(&packets[2..4].concat()).expect("it reads");
    assert!(next().is_some_and(|alert| alert.contains("\"trigger\":\"three\"")));
    // The recorder waits for more input.
    wait_for(&log, 4);
    input.write_all(&packets[4..].concat()).expect("it reads");
    drop(input);
    assert!(next().is_some_and(|alert| alert.contains("\"trigger\":\"five\"")));
    assert_eq!(next(), None);
    assert!(watching.wait().expect("it ends").success());
    printed(child.wait_with_output().expect("it ends"), 0);
}

#[test]
fn records_that_are_emptied_after_a_kill_are_reported_missing() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(6));
    let (mut child, mut input) = start("record - --aggregate n=count --trigger three=n>=3@1us", &log);
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    wait_for(&log, 6);
    let alerts = log.join("alerts.jsonl");
    child.kill().and_then(|()| child.wait()).expect("it runs");
    drop(input);
    let bytes = std::fs::metadata(&alerts).expect("it is there").len();
    assert!(bytes > 0, "the trigger fired");
    printed(run("log verify", &[&log]), 0);
    for emptied in [&log.join("00000000000000000000.journal"), &alerts] {
        std::fs::write(emptied, "").expect("it is there");
    }
    let lacks = "6 of the last records that were written to ";
    for words in ["log verify", "log info"] {
        let ended = run(words, &[&log]);
        let (output, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), Some(1), "{words}: {said}");
        assert!(
            said.contains("alerts.jsonl is damaged: it has 0 bytes, and had ") && said.contains("1 more"),
            "{words}: {said}"
        );
        assert!(output.contains(lacks), "{words}: {output}");
    }
    let ended = run("query --select count --csv", &[&log]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("6 packets at the end that were written and are gone"), "{said}");
    // The next recording reports it once more, continues, and exits with 1: later checks find only new losses.
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..2].concat()[..]].concat()).expect("it reads");
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.matches(lacks).count() == 2 && said.contains("alerts.jsonl is damaged"), "{said}");
    assert_eq!(ended.status.code(), Some(1), "{said}");
    wait_for(&log, 2);
    // The loss stays on record.
    for words in ["log verify", "log info"] {
        let output = printed(run(words, &[&log]), 0);
        assert!(
            output.contains("lost     6 records: ") && output.contains(&format!("lost     {bytes} bytes of alerts")),
            "{output}"
        );
    }
    let ended = run("query --select count --csv", &[&log]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("6 packets are not there: "), "{said}");
}

#[test]
fn a_signal_is_an_end_of_input() {
    let folder = tempfile::tempdir().expect("there is room");
    let (header, packets) = capture(4);
    // If the parent of the tests ignores SIGHUP, so does the command.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let handles_hangup = ignored.is_some_and(|signals| signals & 1 == 0);
    let endings = [("int", Signal::INT), ("term", Signal::TERM)].into_iter();
    for (name, ending) in endings.chain(handles_hangup.then_some(("hup", Signal::HUP))) {
        let log = folder.path().join(name);
        let (child, mut input) = start("record - --aggregate n=count --trigger three=n>=3", &log);
        input.write_all(&[&header, &packets[..3].concat(), &packets[3][..20]].concat()).expect("it reads");
        wait_for(&log, 3);
        signal(&child, ending);
        let output = printed(child.wait_with_output().expect("it ends"), 0);
        assert!(output.starts_with("3 packets of - recorded to "), "{output}");
        assert!(output.contains("1 signal to stop came") && output.contains("1 times a trigger fired"), "{output}");
        is_finished(&log);
        let alerts = std::fs::read_to_string(log.join("alerts.jsonl")).expect("it was written");
        assert!(alerts.lines().count() == 1 && alerts.contains("\"trigger\":\"three\""), "{alerts}");
        drop(input);
    }
}

#[test]
fn a_signal_ends_a_recording_whose_input_never_pauses() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(100));
    let (child, mut input) = start("record -", &log);
    let writer = std::thread::spawn(move || {
        let all = packets.concat();
        input.write_all(&header).and_then(|()| (0..).try_for_each(|_: u64| input.write_all(&all)))
    });
    let recorded = |log: &Path| run("query --select count --csv --limit 1", &[log]).status.success();
    assert!((0..LOOKS).any(|_| recorded(&log)), "nothing is recorded");
    signal(&child, Signal::INT);
    let output = printed(child.wait_with_output().expect("it ends"), 0);
    assert_eq!(writer.join().expect("it ends").expect_err("nobody reads").kind(), ErrorKind::BrokenPipe);
    let packets = output.split(' ').next().expect("it begins so").replace(',', "");
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), format!("count\n{packets}\n"));
    assert!(output.contains("1 signal to stop came"), "{output}");
}

#[test]
fn a_second_signal_kills_the_command() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(3));
    // Standard output is a full socket that nobody reads, so the command cannot end by itself.
    let (_reader, mut out) = UnixStream::pair().expect("there is room");
    out.set_nonblocking(true).expect("it is a socket");
    while out.write(&[0; 4096]).is_ok() {}
    out.set_nonblocking(false).expect("it is a socket");
    let mut command = command("record - --log", &[&log]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(OwnedFd::from(out)).stderr(Stdio::null()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    signal(&child, Signal::INT);
    let has_ended = || printed(run("log info", &[&log]), 0).contains("volumes  1, ");
    assert!((0..LOOKS).any(|_| has_ended()), "the first signal did not end it");
    assert!(child.try_wait().expect("it is a child").is_none(), "it has nowhere to print to");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().expect("it ends").signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn departures_can_be_queried_before_the_next_ones_arrive() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(40));
    let (child, mut input) = start("analyze - --rate 10gbps", &log);
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    // The last packet stays in the queue until another arrives.
    wait_for(&log, 39);
    signal(&child, Signal::INT);
    let output = printed(child.wait_with_output().expect("it ends"), 0);
    assert!(output.contains("signal to stop came") && output.contains("40 recorded"), "{output}");
    is_finished(&log);
    drop(input);
}

#[test]
fn a_signal_ends_a_simulation() {
    let folder = tempfile::tempdir().expect("there is room");
    let log = folder.path().join("log");
    // Simulating an hour would take much longer than any test.
    let (child, _input) = start("sim crates/cli/tests/data/sim.toml --set duration=60min", &log);
    let has_begun = || run("log info", &[&log]).status.success();
    assert!((0..LOOKS).any(|_| has_begun()), "nothing is recorded");
    signal(&child, Signal::TERM);
    let output = printed(child.wait_with_output().expect("it ends"), 0);
    assert!(output.contains("signal to stop came"), "{output}");
    is_finished(&log);
}

/// Waits until a command that was started has ended.
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let looks = |child: &mut Child| {
        // Each check takes as long as a run of the command.
        run("--version", &[]);
        child.try_wait().expect("it is a child")
    };
    (0..LOOKS).find_map(|_| looks(child)).expect("it goes on for ever")
}

#[test]
fn watch_ends_with_the_recorder_or_its_reader() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(3));
    let (mut recorder, mut input) = start("record - --aggregate n=count --trigger one=n>=1@1us", &log);
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    let watch = || {
        let mut command = command("watch --all", &[&log]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
    };
    // Nobody reads the output, and no trigger fires any more.
    let mut unread = watch();
    drop(unread.stdout.take());
    assert!(ended(&mut unread).success());
    let watching = watch();
    recorder.kill().expect("it runs");
    recorder.wait().expect("it was killed");
    let output = printed(watching.wait_with_output().expect("it ends"), 0);
    assert!(output.lines().count() == 1 && output.contains("\"trigger\":\"one\""), "{output}");
    drop(input);
}
