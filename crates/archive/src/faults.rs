//! What becomes of records when the disk fails, or the power does.

use crate::journal::Medium;
use crate::{Ask, Durability, FinishError, Full, History, Keep, RecordError, Recorder, RecorderOptions};
use proptest::prelude::*;
use queuescope_log::{Dnf, Schema};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
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
        keep: Keep::default(),
    }
}

/// What goes wrong with a write.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// So many bytes of it are written, and nothing after.
    Full(usize),
    /// Nothing of it is.
    Io,
    /// All writes are cut into pieces of so many bytes, and some are interrupted: no fault.
    Short(usize),
}

/// Files that fail at a byte.
#[derive(Debug, Clone)]
struct Faulty {
    fault: Fault,
    /// Writes, or calls of `sync`, until then.
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

/// Records until something fails; how many were acknowledged, and what failed.
fn record(path: &Path, faulty: Faulty, durability: Durability, batches: &[u32]) -> (u32, Option<RecordError>) {
    let (recorder, _) =
        Recorder::with(faulty, path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}"));
    let (mut next, mut acknowledged) = (0, 0);
    for count in batches {
        if let Err(error) = recorder.append(&records(next..next + count)) {
            // It stays so.
            assert!(
                recorder.append(&records(0..1)).is_err() && recorder.flush().is_err() && recorder.finish().is_err()
            );
            return (acknowledged, Some(error));
        }
        next += count;
        acknowledged = next;
    }
    if durability == Durability::Relaxed {
        acknowledged = 0;
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
    let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let told = history.each(ask, &mut |_, record| {
        records.extend_from_slice(record);
        ControlFlow::Continue(())
    });
    told.unwrap_or_else(|error| panic!("{error}"));
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
                prop_assert!(error.written as usize <= kept.len() / SIZE);
                prop_assert!(error.to_string().contains(".journal: "), "{}", error);
            }
        }
        // Whoever comes next goes on where it ends.
        let (recorder, recovery) =
            Recorder::open(folder.path(), &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(recovery.records as usize, kept.len() / SIZE);
        let next = recovery.records as u32;
        prop_assert!(recorder.append(&records(next..next + 10)).is_ok() && recorder.finish().is_ok());
        prop_assert_eq!(found(folder.path()), records(0..next + 10));
    }
}

/// What was done to files, in order.
#[derive(Debug, Clone)]
enum Done {
    Created(PathBuf),
    Written(PathBuf, Vec<u8>),
    Synced(PathBuf),
    /// The recorder said that so many records are kept.
    Acknowledged(u32),
}

#[derive(Debug, Clone, Default)]
struct Noted(Arc<Mutex<Vec<Done>>>);

#[derive(Debug)]
struct NotedFile(PathBuf, Noted);

impl Noted {
    fn note(&self, done: Done) {
        self.0.lock().expect("nobody panics").push(done);
    }
}

impl Medium for Noted {
    type File = NotedFile;

    fn create(&mut self, path: &Path) -> io::Result<NotedFile> {
        self.note(Done::Created(path.to_owned()));
        Ok(NotedFile(path.to_owned(), self.clone()))
    }

    fn sync(&mut self, _file: &NotedFile, path: &Path, _new: bool) -> io::Result<()> {
        self.note(Done::Synced(path.to_owned()));
        Ok(())
    }
}

impl Write for NotedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.note(Done::Written(self.0.clone(), bytes.to_vec()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file as the disk has it after a loss of power: what was synced, and of what was not, `kept` bytes; the rest is as
/// long as it was and zero, or not there.
fn lost(done: &[Done], kept: usize, zeroed: bool) -> (Vec<(PathBuf, Vec<u8>)>, u32) {
    let (mut files, mut acknowledged): (Vec<(PathBuf, Vec<u8>, usize)>, u32) = (Vec::new(), 0);
    for done in done {
        let of = |files: &mut Vec<(PathBuf, Vec<u8>, usize)>, path: &Path| {
            files.iter().position(|(other, ..)| other == path).expect("it was created")
        };
        match done {
            Done::Created(path) => files.push((path.clone(), Vec::new(), 0)),
            Done::Written(path, bytes) => {
                let at = of(&mut files, path);
                files[at].1.extend_from_slice(bytes);
            }
            Done::Synced(path) => {
                let at = of(&mut files, path);
                files[at].2 = files[at].1.len();
            }
            Done::Acknowledged(count) => acknowledged = *count,
        }
    }
    let after = files.into_iter().filter_map(|(path, mut bytes, synced)| {
        let (all, end) = (bytes.len(), (synced + kept).min(bytes.len()));
        bytes.truncate(end);
        if zeroed {
            bytes.resize(all, 0);
        }
        // A file that was never synced may not be there at all.
        (synced > 0 || kept > 0).then_some((path, bytes))
    });
    (after.collect(), acknowledged)
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_at_any_moment() {
    let folder = tempfile::tempdir().expect("there is room");
    let noted = Noted::default();
    let (recorder, _) = Recorder::with(noted.clone(), folder.path(), &schema(), options(Durability::Synced))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut next = 0;
    for count in [3, 200, 1, 500, 40, 900, 7] {
        let appended = recorder.append(&records(next..next + count)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(appended.refused, 0);
        next += count;
        noted.note(Done::Acknowledged(next));
    }
    assert_eq!(recorder.finish().expect("there is room").records, u64::from(next));
    let done = noted.0.lock().expect("nobody panics").clone();
    for moment in 0..=done.len() {
        for (kept, zeroed) in
            [(0, false), (1, false), (39, false), (48, true), (65, false), (1000, true), (1 << 20, false)]
        {
            let (files, acknowledged) = lost(&done[..moment], kept, zeroed);
            for (path, bytes) in &files {
                fs::write(path, bytes).expect("there is room");
            }
            let kept_records = found(folder.path());
            assert!(records(0..next).starts_with(&kept_records), "at {moment}, {kept}");
            assert!(kept_records.len() / SIZE >= acknowledged as usize, "at {moment}, {kept}: records are lost");
            for (path, _) in &files {
                fs::remove_file(path).expect("it is there");
            }
        }
    }
}
