//! What is said to be kept is there: somebody removes, moves or replaces a folder, or files in it, while it is recorded to.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

mod common;

use common::{files, read};
use queuescope_archive::{Durability, FinishError, Full, Keep, Recorder, RecorderOptions};
use queuescope_log::Schema;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SIZE: usize = 4;

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path, durability: Durability) -> Recorder {
    let options = RecorderOptions {
        memory: 1 << 22,
        full: Full::Wait,
        durability,
        journal_records: 1 << 20,
        archive: true,
        indexes: Vec::new(),
        keep: Keep::default(),
    };
    Recorder::open(path, &schema(), options).unwrap_or_else(|error| panic!("{error}")).0
}

fn records(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(u32::to_be_bytes).collect()
}

fn append(recorder: &Recorder, numbers: std::ops::Range<u32>) {
    assert_eq!(recorder.append(&records(numbers)).unwrap_or_else(|error| panic!("{error}")).refused, 0);
    recorder.flush().unwrap_or_else(|error| panic!("{error}"));
}

/// A recorder of a folder that has records in a volume and in a journal.
fn recording(path: &Path) -> Recorder {
    let before = open(path, Durability::Relaxed);
    append(&before, 0..100);
    before.finish().unwrap_or_else(|error| panic!("{error}"));
    let recorder = open(path, Durability::Relaxed);
    append(&recorder, 100..1000);
    recorder
}

/// Why recording does not end well, and how many records are said to be there.
fn ended(recorder: Recorder) -> (u64, String) {
    let error = recorder.finish().expect_err("records are missing");
    let there = match &error {
        FinishError::Record(error) => error.written,
        FinishError::Missing { there, .. } => *there,
        FinishError::Archive { .. } => panic!("{error}"),
    };
    let text = error.to_string();
    assert!(!text.contains("all "), "{text}");
    (there, text)
}

fn journal(path: &Path) -> PathBuf {
    path.join("00000000000000000100.journal")
}

/// All that is in a folder.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(path)
        .into_iter()
        .chain(fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is").path()));
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).expect("it is there"))).collect()
}

#[test]
fn a_folder_that_was_removed_has_nothing() {
    for goes_on in [false, true] {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("log");
        let recorder = recording(&path);
        fs::remove_dir_all(&path).expect("it is there");
        if goes_on {
            // Perhaps it is noticed now already.
            _ = recorder.append(&records(1000..2000)).and_then(|_| recorder.flush());
        }
        let (there, told) = ended(recorder);
        assert!(there == 0 && told.contains("removed, moved or replaced"), "{told}");
        assert!(!path.exists(), "nothing is written where it was");
    }
}

#[test]
fn another_folder_in_its_place_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
    let recorder = recording(&path);
    fs::rename(&path, &moved).expect("there is room");
    let other = open(&path, Durability::Relaxed);
    append(&other, 0..10);
    other.finish().unwrap_or_else(|error| panic!("{error}"));
    let before = contents(&path);
    _ = recorder.append(&records(1000..2000)).and_then(|_| recorder.flush());
    let (there, told) = ended(recorder);
    assert!(there == 0 && told.contains("removed, moved or replaced"), "{told}");
    assert_eq!(contents(&path), before);
    // What was recorded before is where it was moved to.
    assert_eq!(read(&moved).expect("it is whole").0, records(0..1000));
}

#[test]
fn a_journal_that_was_removed_is_missed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    fs::remove_file(journal(&path)).expect("it is there");
    let (there, told) = ended(recorder);
    assert!(there == 100 && told.starts_with("100 of 1000 records are in "), "{told}");
    assert!(told.contains("00000000000000000100.journal"), "{told}");
    assert_eq!(read(&path).expect("the rest is whole").0.len() / SIZE, 100);
}

#[test]
fn a_volume_that_was_emptied_is_missed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let volume = files(&path).into_iter().find(|path| path.extension().is_some_and(|end| end == "parquet"));
    let volume = volume.expect("it was made");
    fs::write(&volume, "").expect("there is room");
    let (there, told) = ended(recorder);
    assert!(there == 900 && told.starts_with("900 of 1000 records are in "), "{told}");
    assert!(told.contains("00000000000000000000.parquet"), "{told}");
}
