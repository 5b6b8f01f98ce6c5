//! A folder that is uploaded: what waits, what is never joined, and what is never removed.

#![allow(clippy::disallowed_methods, reason = "a test looks at files, and changes them")]

use crate::common::all;
use proptest::prelude::*;
use queuescope_archive::{FolderError, Held, Recorder, RecorderOptions, Retention, Uploads, compact, prune, verify};
use queuescope_log::{Schema, departure};
use std::collections::BTreeSet;
use std::path::Path;

const TO: &str = "s3://bucket/fleet";
const SIZE: Retention = Retention { age: None, bytes: Some(0) };

fn options(keep: Retention) -> RecorderOptions {
    RecorderOptions { journal_records: 10, keep, ..RecorderOptions::default() }
}

/// Adds records in a recording of its own.
fn record(path: &Path, records: usize) {
    let (recorder, _) =
        Recorder::open(path, Schema::departure(), options(Retention::default())).expect("it can be recorded to");
    assert_eq!(recorder.append(&vec![0; records * departure::SIZE]).expect("there is room").refused, 0);
    recorder.finish().expect("there is room");
}

/// Uploads the first waiting volumes, without a store.
fn upload(uploads: &mut Uploads, most: usize) {
    for volume in uploads.waiting().expect("it is whole").iter().take(most) {
        uploads.begin(volume).expect("there is room");
        uploads.confirm(volume).expect("there is room");
    }
}

fn positions(uploads: &mut Uploads) -> Vec<(u64, u64)> {
    let waiting = uploads.waiting().expect("it is whole");
    waiting.iter().map(|volume| (volume.positions().start, volume.positions().end)).collect()
}

#[test]
fn what_is_confirmed_waits_no_more() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    record(&path, 25);
    let mut uploads = Uploads::open(&path, TO).expect("it is a log");
    assert!(!uploads.is_compared());
    uploads.compared().expect("there is room");
    assert_eq!(positions(&mut uploads), [(0, 10), (10, 20), (20, 25)]);
    upload(&mut uploads, 1);
    let volume = uploads.waiting().expect("it is whole").remove(0);
    uploads.begin(&volume).expect("there is room");
    drop(uploads);
    record(&path, 5);
    let mut uploads = Uploads::open(&path, TO).expect("it is a log");
    assert!(uploads.is_compared());
    assert_eq!(positions(&mut uploads), [(10, 20), (20, 25), (25, 30)], "an upload that has only begun still waits");
    drop(uploads);
    let mut elsewhere = Uploads::open(&path, "s3://bucket/other").expect("it is a log");
    assert_eq!(positions(&mut elsewhere).len(), 4, "another store has none of them");
}

#[test]
fn the_file_is_returned_as_it_was_written_or_not_at_all() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    record(&path, 5);
    let mut uploads = Uploads::open(&path, TO).expect("it is a log");
    let volume = uploads.waiting().expect("it is whole").remove(0);
    let name = path.join("archive/date=1970-01-01/00000000000000000000.parquet");
    let bytes = std::fs::read(&name).expect("it is there");
    let file = uploads.file(&volume).expect("it is whole");
    assert_eq!(file.len(), bytes.len() as u64);
    assert_eq!(file.read(0..file.len()).expect("it is whole"), bytes);
    assert_eq!(file.read(3..70).expect("it is whole"), bytes[3..70]);
    assert!(file.read(0..file.len() + 1).is_err());
    let mut changed = bytes.clone();
    changed[40] ^= 1;
    std::fs::write(&name, changed).expect("there is room");
    let file = uploads.file(&volume).expect("its length is right");
    assert!(matches!(file.read(0..file.len()), Err(FolderError::Damaged(_))));
    std::fs::write(&name, &bytes[1..]).expect("there is room");
    assert!(matches!(uploads.file(&volume), Err(FolderError::Damaged(_))));
}

#[test]
fn a_damaged_list_removes_and_joins_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    record(&path, 25);
    upload(&mut Uploads::open(&path, TO).expect("it is a log"), 3);
    let (name, before) = (path.join("uploads.jsonl"), all(&path).expect("it is whole").records);
    let text = std::fs::read_to_string(&name).expect("it is there");
    std::fs::write(
        &name,
        text.replacen("false", "true", 1).replacen("00000000000000000010", "00000000000000000020", 1),
    )
    .expect("there is room");
    for failed in [prune(&path, SIZE).map(drop), compact(&path).map(drop), Uploads::open(&path, TO).map(drop)] {
        let error = failed.expect_err("the list is damaged").to_string();
        assert!(error.contains("uploads.jsonl is damaged") && error.contains("or remove it"), "{error}");
    }
    let files = verify(&path).expect("it is a log").files;
    assert!(files.iter().any(|file| file.path == name), "{files:?}");
    assert_eq!(all(&path).expect("it is whole").records, before);
}

#[test]
fn a_copy_of_a_folder_is_not_uploaded_under_the_same_list() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, other) = (folder.path().join("log"), folder.path().join("other"));
    record(&path, 5);
    drop(Uploads::open(&path, TO).expect("it is a log"));
    record(&other, 5);
    std::fs::copy(path.join("uploads.jsonl"), other.join("uploads.jsonl")).expect("there is room");
    let error = Uploads::open(&other, TO).expect_err("it is another folder's").to_string();
    assert!(error.contains("this folder is a copy"), "{error}");
}

#[test]
fn a_recorder_keeps_what_waits_and_says_so() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let (recorder, _) = Recorder::open(&path, Schema::departure(), options(SIZE)).expect("it can be recorded to");
    drop(Uploads::beside(&recorder, TO).expect("it is a log"));
    assert_eq!(recorder.append(&vec![0; 35 * departure::SIZE]).expect("there is room").refused, 0);
    let removed = recorder.finish().expect("there is room").removed;
    assert_eq!(removed, 0);
    upload(&mut Uploads::open(&path, TO).expect("it is a log"), 2);
    let (recorder, _) = Recorder::open(&path, Schema::departure(), options(SIZE)).expect("it can be recorded to");
    assert_eq!(recorder.append(&vec![0; 15 * departure::SIZE]).expect("there is room").refused, 0);
    recorder.flush().expect("there is room");
    // The first journal is full: the thread that makes a volume of it removes old ones then.
    while recorder.held() == Held::default() {
        std::thread::yield_now();
    }
    assert_eq!(recorder.finish().expect("there is room").removed, 20, "those that are confirmed");
}

/// What happens to a folder.
#[derive(Debug, Clone)]
enum Step {
    Record(usize),
    Upload(usize),
    Begin,
    Compact,
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1usize..25).prop_map(Step::Record),
        3 => (1usize..4).prop_map(Step::Upload),
        1 => Just(Step::Begin),
        2 => Just(Step::Compact),
        1 => Just(Step::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens: no record that is not confirmed is removed, and no two volumes whose upload began have a record in common.
    #[test]
    fn nothing_is_sent_twice_or_removed_before(steps in prop::collection::vec(step(), 1..12)) {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("log");
        record(&path, 1);
        let (mut records, mut sent, mut confirmed) = (1u64, BTreeSet::new(), BTreeSet::new());
        drop(Uploads::open(&path, TO).expect("it is a log"));
        for step in steps {
            match step {
                Step::Record(more) => {
                    record(&path, more);
                    records += more as u64;
                }
                Step::Upload(most) => {
                    let mut uploads = Uploads::open(&path, TO).expect("it is a log");
                    let first: Vec<_> = positions(&mut uploads).into_iter().take(most).collect();
                    upload(&mut uploads, most);
                    sent.extend(first.iter().copied());
                    confirmed.extend(first.into_iter().flat_map(|(first, end)| first..end));
                }
                Step::Begin => {
                    let mut uploads = Uploads::open(&path, TO).expect("it is a log");
                    if let Some(volume) = uploads.waiting().expect("it is whole").first() {
                        uploads.begin(volume).expect("there is room");
                        sent.insert((volume.positions().start, volume.positions().end));
                    }
                }
                Step::Compact => drop(compact(&path).expect("it is whole")),
                Step::Prune => {
                    let pruned = prune(&path, SIZE).expect("it is whole");
                    let found = all(&path).expect("it is whole").first;
                    prop_assert!((0..found).all(|position| confirmed.contains(&position)), "{pruned:?}");
                }
            }
        }
        for (one, next) in sent.iter().zip(sent.iter().skip(1)) {
            prop_assert!(one.1 <= next.0, "{one:?} and {next:?} have records in common");
        }
        let found = all(&path).expect("it is whole");
        prop_assert_eq!(found.first + (found.records.len() / departure::SIZE) as u64, records);
    }
}
