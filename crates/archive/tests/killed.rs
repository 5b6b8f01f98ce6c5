//! A process that records is killed at random moments, again and again: no record that it acknowledged is lost, none is
//! invented, and they are in order. `QUEUESCOPE_KILLS` sets the number of kills (20 if it is not set).

#![allow(clippy::disallowed_methods, reason = "a test starts processes; its environment sets how many")]

use crate::common::read;
use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention};
use queuescope_log::Schema;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The folder that a child process records to.
const FOLDER: &str = "QUEUESCOPE_TEST_FOLDER";
/// Whether records count as kept only when they are synced.
const SYNCED: &str = "QUEUESCOPE_TEST_SYNCED";
const ROOM: u64 = 1 << 25;

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u64\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// The child process: records numbers, and prints for each batch when it is kept.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let options = RecorderOptions {
        memory: 1 << 25,
        full: Full::Wait,
        durability: if std::env::var(SYNCED).is_ok() { Durability::Synced } else { Durability::Written },
        journal_records: 1 << 17,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let (recorder, recovery) =
        Recorder::open(Path::new(&folder), &schema(), options).unwrap_or_else(|error| panic!("{error}"));
    let mut out = std::io::stdout().lock();
    let mut next = recovery.records;
    writeln!(out, "kept {next}").expect("somebody listens");
    while next < ROOM {
        let end = next + 1 + next % 1000;
        let records: Vec<u8> = (next..end).flat_map(u64::to_be_bytes).collect();
        let appended = recorder.append(&records).unwrap_or_else(|error| panic!("{error}"));
        next = appended.positions.end;
        writeln!(out, "kept {next}").expect("somebody listens");
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost() {
    if std::env::var(FOLDER).is_ok() {
        return;
    }
    let rounds = std::env::var("QUEUESCOPE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir().expect("there is room");
    let (mut before, mut seed) = (0u64, 88_172_645_463_325_252u64);
    for round in 0..rounds {
        let mut command = Command::new(std::env::current_exe().expect("it runs"));
        if round % 2 == 1 {
            command.env(SYNCED, "yes");
        }
        let mut child = command
            .args(["--exact", "killed::child", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        // It is recording once it has printed something.
        let mut line = String::new();
        while !line.contains("kept ") {
            line.clear();
            assert!(lines.read_line(&mut line).expect("it is text") > 0, "the child ended");
        }
        // Xorshift (Marsaglia 2003).
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        std::thread::sleep(Duration::from_micros(seed % 30_000));
        child.kill().expect("it is there");
        child.wait().expect("it is there");
        let mut kept = 0;
        let mut see = |line: &str| {
            // The last line may be cut short: then its number is lower, or missing.
            let number = line.trim_end().rsplit_once("kept ").and_then(|(_, number)| number.parse().ok());
            kept = number.unwrap_or(kept).max(kept);
        };
        see(&line);
        for line in lines.lines() {
            see(&line.expect("it is text"));
        }
        let (found, _) = read(folder.path()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let count = found.len() as u64 / 8;
        assert!(count >= kept && kept >= before, "round {round}: {kept} kept, {count} there");
        let whole = found.chunks_exact(8).zip(0u64..).all(|(record, number)| record == number.to_be_bytes());
        assert!(whole, "round {round}: records are not those that were recorded");
        before = count;
    }
}
