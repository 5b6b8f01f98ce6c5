//! What happens to records when the disk fails or power is lost ([`power`]), and to gaps that were reported ([`gaps`]).

use crate::journal::Medium;
use crate::{ArchiveQuery, Durability, FinishError, Full, History, RecordError, Recorder, RecorderOptions, Retention};
use proptest::prelude::*;
use queuescope_log::{Dnf, Schema};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

const SIZE: usize = 4;

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn records(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(u32::to_be_bytes).collect()
}

fn options(durability: Durability) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 22,
        full: Full::Wait,
        durability,
        journal_records: 750,
        archive: false,
        indexes: Vec::new(),
        keep: Retention::default(),
    }
}

/// What goes wrong with a write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// This many bytes of it are written, and nothing after.
    Full(usize),
    /// Nothing of it is written.
    Io,
    /// All writes are cut into pieces of this many bytes, and some are interrupted: not a fault.
    Short(usize),
}

/// Files that fail at a certain byte.
#[derive(Debug, Clone)]
struct Faulty {
    fault: Fault,
    /// Bytes of writes, or calls of `sync`, until the fault.
    left: Arc<Mutex<usize>>,
    at_sync: bool,
}

#[derive(Debug)]
struct FaultyFile {
    file: File,
    faulty: Faulty,
    interrupted: bool,
}

impl Faulty {
    fn is_due(&self) -> bool {
        let mut left = self.left.lock().expect("nobody panics");
        *left = left.saturating_sub(1);
        *left == 0
    }
}

impl Medium for Faulty {
    type File = FaultyFile;

    fn create(&mut self, path: &Path) -> io::Result<FaultyFile> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(FaultyFile { file, faulty: self.clone(), interrupted: false })
    }

    fn reopen(&mut self, path: &Path) -> io::Result<FaultyFile> {
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(FaultyFile { file, faulty: self.clone(), interrupted: false })
    }

    fn sync(&mut self, file: &FaultyFile, _path: &Path, _new: bool) -> io::Result<()> {
        if self.at_sync && self.is_due() {
            return Err(io::Error::from_raw_os_error(5));
        }
        file.file.sync_data()
    }
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.faulty.fault {
            Fault::Short(most) => {
                self.interrupted = !self.interrupted;
                if self.interrupted {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                self.file.write(&bytes[..bytes.len().min(most)])
            }
            _ if self.faulty.at_sync || !self.faulty.is_due() => self.file.write(bytes),
            Fault::Full(most) => {
                self.file.write_all(&bytes[..bytes.len().min(most)])?;
                Err(io::Error::from_raw_os_error(28))
            }
            Fault::Io => Err(io::Error::from_raw_os_error(5)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records until something fails. Returns how many records were acknowledged, and the error.
fn record(path: &Path, faulty: Faulty, durability: Durability, batches: &[u32]) -> (u32, Option<RecordError>) {
    let (recorder, _) =
        Recorder::with(faulty, path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}"));
    let (mut next, mut acknowledged) = (0, 0);
    for count in batches {
        if let Err(error) = recorder.append(&records(next..next + count)) {
            // The error stays.
            assert!(
                recorder.append(&records(0..1)).is_err() && recorder.flush().is_err() && recorder.finish().is_err()
            );
            return (acknowledged, Some(error));
        }
        next += count;
        // What is only in memory is not acknowledged.
        acknowledged = if durability == Durability::Relaxed { 0 } else { next };
    }
    match recorder.finish() {
        Ok(finished) => (finished.records as u32, None),
        Err(FinishError::Record(error)) => (acknowledged, Some(error)),
        Err(error) => panic!("{error}"),
    }
}

fn found(path: &Path) -> Vec<u8> {
    let history = History::open(path).unwrap_or_else(|error| panic!("{error}"));
    let needed = [history.schema().find("number").expect("it is there")];
    let mut records = Vec::new();
    let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let outcome = history.each(ask, &mut |_, record| {
        records.extend_from_slice(record);
        ControlFlow::Continue(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    records
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![(0..2000usize).prop_map(Fault::Full), Just(Fault::Io), (1..50usize).prop_map(Fault::Short)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_there_when_the_disk_fails(
        (fault, left, at_sync) in (fault(), 1..40usize, any::<bool>()),
        batches in prop::collection::vec(0..600u32, 1..20),
        durability in prop_oneof![Just(Durability::Relaxed), Just(Durability::Written), Just(Durability::Synced)],
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let all: u32 = batches.iter().sum();
        let faulty = Faulty { fault, left: Arc::new(Mutex::new(left)), at_sync };
        let (acknowledged, failed) = record(folder.path(), faulty, durability, &batches);
        let kept = found(folder.path());
        prop_assert!(records(0..all).starts_with(&kept), "something was invented");
        prop_assert!(kept.len() / SIZE >= acknowledged as usize);
        match failed {
            None => prop_assert_eq!(kept.len() / SIZE, all as usize),
            Some(error) => {
                prop_assert!(!matches!(fault, Fault::Short(_)) || at_sync);
                prop_assert_eq!(error.written as usize, kept.len() / SIZE, "what is kept is counted");
                prop_assert!(error.to_string().contains(".journal: "), "{}", error);
            }
        }
        // The next recorder continues where it ends.
        let (recorder, recovery) =
            Recorder::open(folder.path(), &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(recovery.records as usize, kept.len() / SIZE);
        let next = recovery.records as u32;
        prop_assert!(recorder.append(&records(next..next + 10)).is_ok() && recorder.finish().is_ok());
        prop_assert_eq!(found(folder.path()), records(0..next + 10));
    }
}

#[test]
fn removed_records_are_not_counted_as_kept() {
    let folder = tempfile::tempdir().expect("there is room");
    let faulty = Faulty { fault: Fault::Io, left: Arc::new(Mutex::new(40)), at_sync: false };
    let options = RecorderOptions {
        archive: true,
        keep: Retention { age: None, bytes: Some(0) },
        ..options(Durability::Written)
    };
    let (recorder, _) =
        Recorder::with(faulty, folder.path(), &schema(), options).unwrap_or_else(|error| panic!("{error}"));
    while recorder.append(&records(0..300)).is_ok() {}
    let Err(FinishError::Record(error)) = recorder.finish() else { panic!("nothing can be written") };
    let there = found(folder.path()).len() / SIZE;
    assert!(error.written as usize == there && there <= 2 * 750, "{} reported, {there} there", error.written);
}

mod gaps;
mod power;
