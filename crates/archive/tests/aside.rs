//! Whole records in a folder that do not belong to its log are set aside.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::numbers::{
    NONE, SIZE, append, damaged_and_aside, journal, killed, open, options, recording, records, schema,
};
use crate::common::{files, read};
use queuescope_archive::{Durability, Recorder, RecorderOptions, Retention, prune};
use std::fs;
use std::path::Path;

#[test]
fn a_renamed_journal_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let renamed = folder.path().join("renamed");
    killed(&path, &renamed);
    let other = renamed.join("00000000000000000050.journal");
    fs::rename(journal(&renamed), &other).expect("it is there");
    let before = fs::read(&other).expect("it is there");
    assert_eq!(damaged_and_aside(&renamed), [vec![other.clone()], Vec::new()]);
    let refused = Recorder::open(&renamed, &schema(), options(Durability::Relaxed)).map(drop);
    let error = refused.expect_err("it has records of its own").to_string();
    assert!(error.contains("it was put back, or renamed"), "{error}");
    assert_eq!(fs::read(&other).expect("it is kept"), before);
    // Under its own name again, all records are there.
    fs::rename(&other, journal(&renamed)).expect("it is there");
    assert_eq!(read(&renamed).expect("it is whole").0.len() / SIZE, 1000);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// A journal comes back after other records got its positions, or after its records were removed.
#[test]
fn a_restored_journal_is_set_aside() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    for (more, has_note) in [(10, true), (2000, true), (2000, false)] {
        let back = folder.path().join(format!("back {more} {has_note}"));
        killed(&path, &back);
        let old = fs::read(journal(&back)).expect("it is there");
        fs::remove_file(journal(&back)).expect("it is there");
        if !has_note {
            // The positions are used again.
            fs::remove_file(back.join("lock")).expect("it is there");
        }
        let again = open(&back, Durability::Relaxed);
        append(&again, 5000..5000 + more);
        again.finish().unwrap_or_else(|error| panic!("{error}"));
        let is_right = || {
            let (there, _) = read(&back).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(there, [records(0..100), records(5000..5000 + more)].concat());
        };
        is_right();
        for kept in ["journal.kept", "journal.2.kept"].map(|end| journal(&back).with_extension(end)) {
            fs::write(journal(&back), &old).expect("there is room");
            assert_eq!(damaged_and_aside(&back)[0], [journal(&back)]);
            let (again, found) = Recorder::open(&back, &schema(), options(Durability::Relaxed)).expect("it goes on");
            assert_eq!(found.kept, std::slice::from_ref(&kept));
            assert_eq!(again.finish().expect("it is whole").records, 100 + u64::from(more));
            assert_eq!(fs::read(&kept).expect("it is kept"), old);
            let [damaged, aside] = damaged_and_aside(&back);
            assert!(damaged.is_empty() && aside.contains(&kept) && !journal(&back).exists(), "{damaged:?} {aside:?}");
            is_right();
        }
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// A process that is stopped after a volume counts and before its journal is removed leaves both.
#[test]
fn a_journal_that_is_in_volumes_is_removed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let before = open(&path, Durability::Relaxed);
    append(&before, 0..100);
    before.finish().unwrap_or_else(|error| panic!("{error}"));
    let journals = RecorderOptions { archive: false, ..options(Durability::Relaxed) };
    let recorder = Recorder::open(&path, &schema(), journals).unwrap_or_else(|error| panic!("{error}")).0;
    append(&recorder, 100..1000);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    let old = fs::read(journal(&path)).expect("it is there");
    open(&path, Durability::Relaxed).finish().unwrap_or_else(|error| panic!("{error}"));
    assert!(!journal(&path).exists());
    let stopped = |name: &str| {
        let stopped = folder.path().join(name);
        killed(&path, &stopped);
        fs::write(journal(&stopped), &old).expect("there is room");
        stopped
    };
    let recorded = stopped("recorded");
    assert_eq!(damaged_and_aside(&recorded), NONE);
    let (again, found) = Recorder::open(&recorded, &schema(), options(Durability::Relaxed)).expect("it is whole");
    assert_eq!((found.kept.len(), found.records, journal(&recorded).exists()), (0, 1000, false));
    again.finish().unwrap_or_else(|error| panic!("{error}"));
    // Its volume may be removed before the next recording.
    let kept = stopped("kept");
    prune(&kept, Retention { age: None, bytes: Some(1) }).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((damaged_and_aside(&kept), journal(&kept).exists()), (NONE, false));
    // It is the only copy of records whose volume cannot be read.
    let damaged = stopped("damaged");
    let is_of = |path: &Path| path.to_string_lossy().contains("00000000000000000100.parquet");
    let volume = files(&damaged).into_iter().find(|path| is_of(path)).expect("it was made");
    let mut bytes = fs::read(&volume).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&volume, bytes).expect("there is room");
    let (_, found) =
        Recorder::open(&damaged, &schema(), options(Durability::Relaxed)).expect("it is as long as it was");
    assert_eq!(found.kept, [journal(&damaged).with_extension("journal.kept")]);
    assert_eq!(fs::read(&found.kept[0]).expect("it is kept"), old);
}

/// No stopped process leaves such files.
#[test]
fn foreign_journals_are_set_aside() {
    let folder = tempfile::tempdir().expect("there is room");
    open(folder.path(), Durability::Relaxed).finish().unwrap_or_else(|error| panic!("{error}"));
    for (name, bytes) in [("other.journal", vec![b'x']), ("00000000000000000000.journal", vec![0; 41])] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).expect("there is room");
        let (again, found) =
            Recorder::open(folder.path(), &schema(), options(Durability::Relaxed)).expect("it goes on");
        let kept = path.with_extension("journal.kept");
        assert_eq!((&found.kept, path.exists()), (&vec![kept.clone()], false));
        assert_eq!(fs::read(kept).expect("it is kept"), bytes);
        again.finish().unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn whole_records_behind_damage_are_set_aside() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    append(&recorder, 1000..1300);
    append(&recorder, 1300..1600);
    for (behind, has_note) in [(600, true), (600, false), (300, true), (300, false), (0, true)] {
        let copy = folder.path().join(format!("{behind} {has_note}"));
        killed(&path, &copy);
        if !has_note {
            fs::remove_file(copy.join("lock")).expect("it is there");
        }
        let whole = fs::read(journal(&copy)).expect("it is there");
        let mut bytes = whole.clone();
        // In the last record before these, which are written in frames of three hundred.
        bytes[whole.len() - behind / 300 * (32 + 300 * SIZE) - 1] ^= 1;
        fs::write(journal(&copy), &bytes).expect("there is room");
        let (again, found) = Recorder::open(&copy, &schema(), options(Durability::Relaxed)).expect("it goes on");
        let cut = found.cut.expect("something is not whole");
        // The positions are not used again, whatever `lock` says.
        assert_eq!((cut.records, again.position(0)), (behind as u64, 1600));
        let kept = journal(&copy).with_extension("journal.kept");
        let expected = if behind > 0 { vec![kept.clone()] } else { Vec::new() };
        assert_eq!(found.kept, expected);
        if behind > 0 {
            assert_eq!(fs::read(&kept).expect("it is kept"), bytes[cut.offset as usize..]);
        }
        again.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(damaged_and_aside(&copy), [Vec::new(), expected]);
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}
