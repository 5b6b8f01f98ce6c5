//! Folders of records that are numbers.

use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention, State, verify};
use queuescope_log::Schema;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a record.
pub const SIZE: usize = 4;
/// What [`damaged_and_aside`] returns for a folder that is whole.
pub const NONE: [Vec<PathBuf>; 2] = [Vec::new(), Vec::new()];

pub fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn open(path: &Path, durability: Durability) -> Recorder {
    Recorder::open(path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}")).0
}

pub fn options(durability: Durability) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 22,
        full: Full::Wait,
        durability,
        journal_records: 1 << 20,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    }
}

pub fn records(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(u32::to_be_bytes).collect()
}

pub fn append(recorder: &Recorder, numbers: std::ops::Range<u32>) {
    assert_eq!(recorder.append(&records(numbers)).unwrap_or_else(|error| panic!("{error}")).refused, 0);
    recorder.flush().unwrap_or_else(|error| panic!("{error}"));
}

/// A recorder of a folder that has records in a volume and in a journal.
pub fn recording(path: &Path) -> Recorder {
    let before = open(path, Durability::Relaxed);
    append(&before, 0..100);
    before.finish().unwrap_or_else(|error| panic!("{error}"));
    let recorder = open(path, Durability::Relaxed);
    append(&recorder, 100..1000);
    recorder
}

pub fn journal(path: &Path) -> PathBuf {
    path.join("00000000000000000100.journal")
}

/// Copies a folder as it is if its recorder is killed at this moment.
pub fn killed(path: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            killed(&from, &to);
        } else {
            fs::copy(&from, &to).expect("there is room");
        }
    }
}

/// The files of a folder that are damaged, and those that were set aside.
pub fn damaged_and_aside(path: &Path) -> [Vec<PathBuf>; 2] {
    let files = verify(path).unwrap_or_else(|error| panic!("{error}")).files;
    let of =
        |is: fn(&State) -> bool| files.iter().filter(|file| is(&file.state)).map(|file| file.path.clone()).collect();
    [of(|state| matches!(state, State::Damaged(_))), of(|state| *state == State::Kept)]
}
