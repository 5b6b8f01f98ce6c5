//! Captures that come slowly, and signals that end them: what was read is there.

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

/// How often is looked whether something has happened: each look runs the command, so that this is minutes.
const LOOKS: usize = 4_000;

/// The first packets of the demo, as a capture: its header, and each packet.
fn capture(packets: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut reader = CaptureReader::open(&file("data/demo.pcap.xz")).expect("it is a capture");
    let mut writer = PcapWriter::new(Vec::new(), 1, 0).expect("there is room");
    let mut ends = vec![24];
    let mut whole = Vec::new();
    for _ in 0..packets {
        let record = reader.next_record().expect("it is whole").expect("it has so many");
        writer.packet(record.time.expect("it has a time"), record.original_len, record.data).expect("there is room");
        ends.push(ends[ends.len() - 1] + 16 + record.data.len());
    }
    whole.extend(writer.finish().expect("there is room"));
    let packets = ends.windows(2).map(|ends| whole[ends[0]..ends[1]].to_vec()).collect();
    (whole[..24].to_vec(), packets)
}

/// A command that reads standard input until that is closed, or a signal comes.
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

/// Waits until a query of the folder finds so many packets.
fn wait_for(log: &Path, packets: u64) {
    let found = (0..LOOKS).any(|_| {
        let asked = run("query --select count --csv", &[log]);
        asked.status.success() && String::from_utf8_lossy(&asked.stdout) == format!("count\n{packets}\n")
    });
    assert!(found, "{packets} packets were written to a pipe, and are not in the folder");
}

/// The folder is as one whose recording ended.
fn is_finished(log: &Path) {
    let info = printed(run("log info", &[log]), 0);
    assert!(info.contains("volumes  1, ") && info.contains("journals 0, "), "{info}");
}

#[test]
fn packets_are_handed_over_before_others_come() {
    let folder = tempfile::tempdir().expect("there is room");
    let (header, packets) = capture(6);
    for durability in ["relaxed", "written", "synced"] {
        let log = folder.path().join(durability);
        let (child, mut input) = start(&format!("record - --durability {durability}"), &log);
        // In one piece, and the last not whole: who waits for its end has handed over those before it.
        let (begun, rest) = packets[3].split_at(20);
        input.write_all(&[&header, &packets[..3].concat(), begun].concat()).expect("it reads");
        wait_for(&log, 3);
        input.write_all(rest).expect("it reads");
        wait_for(&log, 4);
        input.write_all(&packets[4..].concat()).expect("it reads");
        drop(input);
        let told = printed(child.wait_with_output().expect("it ends"), 0);
        assert!(told.starts_with("6 packets of - recorded to "), "{told}");
        is_finished(&log);
    }
}

#[test]
fn a_folder_that_goes_while_it_is_recorded_to_is_told_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(6));
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..3].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    std::fs::remove_dir_all(&log).expect("it is there");
    // It may end before it reads these.
    _ = input.write_all(&packets[3..].concat());
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{told}");
    assert_eq!(told.matches("removed, moved or replaced").count(), 1, "{told}");
    assert!(told.contains("0 of ") || told.contains("; 0 records are kept"), "{told}");
    assert!(ended.stdout.is_empty() && !log.exists(), "{told}");
}

#[test]
fn it_is_said_where_a_folder_is_that_was_moved_while_it_was_recorded_to() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, moved, (header, packets)) = (folder.path().join("log"), folder.path().join("moved"), capture(6));
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..3].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    std::fs::rename(&log, &moved).expect("it is there");
    // It may end before it reads these.
    _ = input.write_all(&packets[3..].concat());
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{told}");
    let place = moved.canonicalize().expect("it is there");
    assert_eq!(told.matches(&format!("was moved to {}", place.display())).count(), 1, "{told}");
    assert!(told.contains("3 of ") || told.contains("; 3 records are kept"), "{told}");
    assert!(ended.stdout.is_empty() && !log.exists(), "{told}");
    let asked = printed(run("query --select count --csv", &[&moved]), 0);
    assert_eq!(asked.lines().nth(1), Some("3"), "{asked}");
}

#[test]
fn triggers_are_told_while_packets_come() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(6));
    let (child, mut input) =
        start("record - --aggregate n=count --trigger three=n>=3@1us --trigger five=n>=5@1us", &log);
    input.write_all(&[&header, &packets[..2].concat()[..]].concat()).expect("it reads");
    wait_for(&log, 2);
    let mut watching = command("watch --all", &[&log]).stdout(Stdio::piped()).spawn().expect("the command runs");
    let mut alerts = BufReader::new(watching.stdout.take().expect("it is piped")).lines();
    let mut next = || alerts.next().map(|line| line.expect("it is text"));
    // Triggers look at what came up to a time when a later one comes.
    input.write_all(&packets[2..4].concat()).expect("it reads");
    assert!(next().is_some_and(|alert| alert.contains("\"trigger\":\"three\"")));
    // The recorder waits for more: nothing but the pipe keeps it.
    wait_for(&log, 4);
    input.write_all(&packets[4..].concat()).expect("it reads");
    drop(input);
    assert!(next().is_some_and(|alert| alert.contains("\"trigger\":\"five\"")));
    assert_eq!(next(), None);
    assert!(watching.wait().expect("it ends").success());
    printed(child.wait_with_output().expect("it ends"), 0);
}

#[test]
fn what_is_emptied_after_a_kill_is_missed() {
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
        let (told, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), Some(1), "{words}: {said}");
        assert!(
            said.contains("alerts.jsonl is damaged: it has 0 bytes, and had ") && said.contains("1 more"),
            "{words}: {said}"
        );
        assert!(told.contains(lacks), "{words}: {told}");
    }
    let ended = run("query --select count --csv", &[&log]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("6 packets at the end that were written and are gone"), "{said}");
    // It is said once more, and goes on.
    let (child, mut input) = start("record -", &log);
    input.write_all(&[&header, &packets[..2].concat()[..]].concat()).expect("it reads");
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains(lacks) && said.contains("alerts.jsonl is damaged"), "{said}");
    wait_for(&log, 2);
    // And it stays known.
    for words in ["log verify", "log info"] {
        let told = printed(run(words, &[&log]), 0);
        assert!(
            told.contains("lost     6 records: ") && told.contains(&format!("lost     {bytes} bytes of alerts")),
            "{told}"
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
    // Where whoever began the tests has hang-ups ignored, so has the command.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let hears = ignored.is_some_and(|signals| signals & 1 == 0);
    let endings = [("int", Signal::INT), ("term", Signal::TERM)].into_iter();
    for (name, ending) in endings.chain(hears.then_some(("hup", Signal::HUP))) {
        let log = folder.path().join(name);
        let (child, mut input) = start("record - --aggregate n=count --trigger three=n>=3", &log);
        input.write_all(&[&header, &packets[..3].concat(), &packets[3][..20]].concat()).expect("it reads");
        wait_for(&log, 3);
        signal(&child, ending);
        let told = printed(child.wait_with_output().expect("it ends"), 0);
        assert!(told.starts_with("3 packets of - recorded to "), "{told}");
        assert!(told.contains("1 signal to stop came") && told.contains("1 times a trigger fired"), "{told}");
        is_finished(&log);
        let alerts = std::fs::read_to_string(log.join("alerts.jsonl")).expect("it was written");
        assert!(alerts.lines().count() == 1 && alerts.contains("\"trigger\":\"three\""), "{alerts}");
        drop(input);
    }
}

#[test]
fn a_signal_ends_what_never_waits() {
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
    let told = printed(child.wait_with_output().expect("it ends"), 0);
    assert_eq!(writer.join().expect("it ends").expect_err("nobody reads").kind(), ErrorKind::BrokenPipe);
    let packets = told.split(' ').next().expect("it begins so").replace(',', "");
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), format!("count\n{packets}\n"));
    assert!(told.contains("1 signal to stop came"), "{told}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(3));
    // Nobody reads what it prints, and there is no room: it does not end by itself.
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
fn what_left_a_queue_is_handed_over_too() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(40));
    let (child, mut input) = start("analyze - --rate 10gbps", &log);
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    // The last is in the queue until another comes.
    wait_for(&log, 39);
    signal(&child, Signal::INT);
    let told = printed(child.wait_with_output().expect("it ends"), 0);
    assert!(told.contains("signal to stop came") && told.contains("40 recorded"), "{told}");
    is_finished(&log);
    drop(input);
}

#[test]
fn a_simulation_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().expect("there is room");
    let log = folder.path().join("log");
    // An hour would take much longer than any test.
    let (child, _input) = start("sim crates/cli/tests/data/sim.toml --set duration=60min", &log);
    let has_begun = || run("log info", &[&log]).status.success();
    assert!((0..LOOKS).any(|_| has_begun()), "nothing is recorded");
    signal(&child, Signal::TERM);
    let told = printed(child.wait_with_output().expect("it ends"), 0);
    assert!(told.contains("signal to stop came"), "{told}");
    is_finished(&log);
}

/// Waits until a command has ended that was started.
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let looks = |child: &mut Child| {
        // Each look takes as long as a run of the command.
        run("--version", &[]);
        child.try_wait().expect("it is a child")
    };
    (0..LOOKS).find_map(|_| looks(child)).expect("it goes on for ever")
}

#[test]
fn who_watches_ends_with_the_recorder_or_its_reader() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, (header, packets)) = (folder.path().join("log"), capture(3));
    let (mut recorder, mut input) = start("record - --aggregate n=count --trigger one=n>=1@1us", &log);
    input.write_all(&[&header, &packets.concat()[..]].concat()).expect("it reads");
    wait_for(&log, 3);
    let watch = || {
        let mut command = command("watch --all", &[&log]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
    };
    // Nobody reads, and nothing fires any more.
    let mut unread = watch();
    drop(unread.stdout.take());
    assert!(ended(&mut unread).success());
    let watching = watch();
    recorder.kill().expect("it runs");
    recorder.wait().expect("it was killed");
    let told = printed(watching.wait_with_output().expect("it ends"), 0);
    assert!(told.lines().count() == 1 && told.contains("\"trigger\":\"one\""), "{told}");
    drop(input);
}
