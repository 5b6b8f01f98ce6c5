//! A full disk, and a read-only one: real small file systems, which only root can mount.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test starts programs and looks at files")]

use crate::common::read;
use queuescope_archive::{
    Durability, FinishError, Full, Recorder, RecorderOptions, Retention, State, compact, prune, verify,
};
use queuescope_log::Schema;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a record.
const SIZE: usize = 12;

/// A small file system that is unmounted on drop.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// A file system of this size; `None`, with a printed reason, if it cannot be mounted.
    fn new(test: &str, kibibytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("there is room");
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("size={kibibytes}k"), "tmpfs"], folder.path());
        if !mounted {
            println!("skipped: {test}: only root can mount a small file system");
        }
        mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A child process of another test inherits our open files until it executes its program; until then the disk is busy.
        let since = Instant::now();
        while !unmount(self.path()) {
            assert!(since.elapsed() < PATIENCE, "{} is still mounted", self.path().display());
            thread::yield_now();
        }
    }
}

fn unmount(path: &Path) -> bool {
    let status = Command::new("umount").arg(path).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn mount(options: &[&str], path: &Path) -> bool {
    let status = Command::new("mount").args(options).arg(path).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn schema() -> Schema {
    let text = "name = \"numbers\"\nsort = [\"peer\"]\n[[attribute]]\nname = \"number\"\nkind = \"u64\"\n\
                [[attribute]]\nname = \"peer\"\nkind = \"ipv4\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn options(durability: Durability) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 24,
        full: Full::Wait,
        durability,
        journal_records: 30_000,
        archive: true,
        indexes: vec![schema().find("peer").expect("it is there")],
        keep: Retention::default(),
    }
}

fn records(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let record = |number: u64| {
        let peer = (number as u32).wrapping_mul(2_654_435_761).to_be_bytes();
        number.to_be_bytes().into_iter().chain(peer)
    };
    numbers.flat_map(record).collect()
}

fn open(path: &Path, durability: Durability) -> Recorder {
    Recorder::open(path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}")).0
}

#[test]
fn what_was_acknowledged_is_there_when_the_disk_is_full() {
    for durability in [Durability::Written, Durability::Synced] {
        let Some(disk) = Mounted::new("what_was_acknowledged_is_there_when_the_disk_is_full", 4096) else { return };
        let folder = disk.path().join("log");
        let recorder = open(&folder, durability);
        let mut acknowledged = 0;
        let failed = loop {
            match recorder.append(&records(acknowledged..acknowledged + 500)) {
                Ok(appended) => acknowledged = appended.positions.end,
                Err(error) => break error,
            }
            assert!(acknowledged < 4_000_000, "it is never full");
        };
        assert!(failed.to_string().contains("No space left"), "{failed}");
        let ended = recorder.finish().expect_err("not all was written");
        let FinishError::Record(ended) = ended else { panic!("{ended}") };
        let (found, _) = read(&folder).unwrap_or_else(|error| panic!("{error}"));
        let count = (found.len() / SIZE) as u64;
        assert!(count >= acknowledged && found == records(0..count), "{count} of {acknowledged}");
        assert_eq!(ended.written, count, "what is kept is counted: {ended}");
        let verified = verify(&folder).unwrap_or_else(|error| panic!("{error}"));
        assert!(!verified.files.iter().any(|file| matches!(file.state, State::Damaged(_))), "{verified:?}");
        // With more room, recording continues.
        assert!(mount(&["-o", "remount,size=64m"], disk.path()));
        let recorder = open(&folder, durability);
        assert_eq!(recorder.append(&records(count..count + 10)).expect("there is room").positions, count..count + 10);
        assert_eq!(recorder.finish().expect("there is room").records, count + 10);
        assert_eq!(read(&folder).expect("it is whole").0, records(0..count + 10));
    }
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read() {
    let Some(disk) = Mounted::new("a_folder_that_cannot_be_written_can_be_read", 65_536) else { return };
    let folder = disk.path().join("log");
    let recorder = open(&folder, Durability::Relaxed);
    assert_eq!(recorder.append(&records(0..100_000)).expect("there is room").refused, 0);
    recorder.finish().expect("there is room");
    assert!(mount(&["-o", "remount,ro"], disk.path()));
    assert_eq!(read(&folder).expect("it is whole").0, records(0..100_000));
    assert!(verify(&folder).expect("it is whole").files.iter().all(|file| file.state == State::Closed));
    let errors = [
        Recorder::open(&folder, &schema(), options(Durability::Relaxed)).map(|_| ()).expect_err("it is read-only"),
        Recorder::open(&disk.path().join("new"), &schema(), options(Durability::Relaxed))
            .map(|_| ())
            .expect_err("it is read-only"),
        compact(&folder).map(|_| ()).expect_err("it is read-only"),
        prune(&folder, Retention { age: None, bytes: Some(1) }).map(|_| ()).expect_err("it is read-only"),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("Read-only file system") && text.contains(&disk.path().display().to_string()), "{text}");
    }
}
