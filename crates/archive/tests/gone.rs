//! The recorder counts only records that are there: somebody removes, moves or replaces a folder, or files in it, during a recording.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::numbers::{
    NONE, SIZE, append, damaged_and_aside, journal, killed, open, options, recording, records, schema,
};
use crate::common::{files, read};
use queuescope_archive::{ALERTS, ArchiveQuery, Durability, FinishError, History, Recorder, State, compact, verify};
use queuescope_log::Dnf;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Why recording ended with an error, and how many records the error says are there.
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

/// All files in a folder.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(path)
        .into_iter()
        .chain(fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is").path()));
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).expect("it is there"))).collect()
}

#[test]
fn a_removed_folder_has_nothing() {
    for goes_on in [false, true] {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("log");
        let recorder = recording(&path);
        fs::remove_dir_all(&path).expect("it is there");
        if goes_on {
            // The recorder may notice it already here.
            _ = recorder.append(&records(1000..2000)).and_then(|_| recorder.flush());
        }
        let (there, message) = ended(recorder);
        assert!(there == 0 && message.contains("removed, moved or replaced"), "{message}");
        assert!(!path.exists(), "nothing is written where it was");
    }
}

#[test]
fn a_moved_folder_has_all_that_was_written_and_its_new_path_is_known() {
    for goes_on in [false, true] {
        let folder = tempfile::tempdir().expect("there is room");
        let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
        let recorder = recording(&path);
        assert_eq!(recorder.moved_to(), None);
        fs::rename(&path, &moved).expect("there is room");
        if goes_on {
            // The recorder may notice it already here.
            _ = recorder.append(&records(1000..2000)).and_then(|_| recorder.flush());
        }
        assert_eq!(recorder.moved_to().as_deref(), Some(&*moved.canonicalize().expect("it is there")));
        let (there, message) = ended(recorder);
        assert_eq!(there, 1000, "{message}");
        assert!(
            message.contains(&format!("was moved to {}", moved.canonicalize().expect("it is there").display())),
            "{message}"
        );
        assert!(!path.exists(), "nothing is written where it was");
        assert_eq!(read(&moved).expect("it is whole").0, records(0..1000));
        // It can be recorded to at its new path.
        let again = open(&moved, Durability::Relaxed);
        append(&again, 1000..1001);
        assert_eq!(again.finish().expect("it is whole").records, 1001);
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
    let (there, message) = ended(recorder);
    assert!(there == 1000 && message.contains("was moved to "), "{message}");
    assert_eq!(contents(&path), before);
    // The earlier records are where the folder was moved to.
    assert_eq!(read(&moved).expect("it is whole").0, records(0..1000));
}

#[test]
fn a_removed_journal_is_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    fs::remove_file(journal(&path)).expect("it is there");
    let (there, message) = ended(recorder);
    assert!(there == 100 && message.starts_with("100 of 1000 records are in "), "{message}");
    assert!(message.contains("00000000000000000100.journal"), "{message}");
    assert_eq!(read(&path).expect("the rest is whole").0.len() / SIZE, 100);
}

#[test]
fn an_emptied_volume_is_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let volume = files(&path).into_iter().find(|path| path.extension().is_some_and(|end| end == "parquet"));
    let volume = volume.expect("it was made");
    fs::write(&volume, "").expect("there is room");
    let (there, message) = ended(recorder);
    assert!(there == 900 && message.starts_with("900 of 1000 records are in "), "{message}");
    assert!(message.contains("00000000000000000000.parquet"), "{message}");
}

/// How many records are missing according to `verify`, and according to a query.
fn missing(path: &Path) -> [u64; 2] {
    let everything = Dnf::all();
    let ask = ArchiveQuery { expression: &everything, from: 0, to: u64::MAX, needed: &[] };
    let asked = History::open(path).and_then(|history| history.each(ask, &mut |_, _| ControlFlow::Continue(())));
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(!verified.files.iter().any(|file| matches!(file.state, State::Damaged(_))), "{verified:?}");
    [verified.missing, asked.unwrap_or_else(|error| panic!("{error}")).missing]
}

/// How many records are lost for good, according to the same two.
fn lost(path: &Path) -> [u64; 2] {
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    let (_, sources) = read(path).unwrap_or_else(|error| panic!("{error}"));
    [verified.files.iter().map(|file| file.lost).sum(), sources.lost]
}

#[test]
fn a_gap_stays_known_even_if_no_record_follows() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let copy = folder.path().join("copy");
    killed(&path, &copy);
    fs::remove_file(journal(&copy)).expect("it is there");
    open(&copy, Durability::Relaxed).finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((missing(&copy), lost(&copy)), ([0; 2], [900; 2]));
    // Again, with the gap behind the last record.
    fs::remove_file(copy.join("00000000000000001000.journal")).expect("it has the gap");
    assert_eq!((missing(&copy), lost(&copy)), ([900; 2], [0; 2]));
    compact(&copy).unwrap_or_else(|error| panic!("{error}"));
    let again = open(&copy, Durability::Relaxed);
    append(&again, 0..10);
    again.finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((missing(&copy), lost(&copy)), ([0; 2], [900; 2]));
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// The catalogue of a folder as earlier versions wrote it, which had no note in `lock`.
fn make_older(folder: &Path) {
    let path = folder.join("catalogue.jsonl");
    let text = fs::read_to_string(&path).expect("it is there");
    let (head, rest) = text.split_once('\n').expect("it has a first line");
    let (removed, _) = head.split_once(",\"noted\":").expect("it says so");
    let head = |crc32: u32| format!("{removed},\"crc32\":{crc32}}}\n");
    let sum = crc32fast::hash((head(0) + rest).as_bytes());
    fs::write(&path, head(sum) + rest).expect("there is room");
}

#[test]
fn a_damaged_note_is_named() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let lock = path.join("lock");
    let whole = fs::read(&lock).expect("it is there");
    let noted = |path: &Path| read(path).unwrap_or_else(|error| panic!("{error}")).1.note;
    assert_eq!((noted(&path), damaged_and_aside(&path)), (None, NONE));
    let longer = [&whole[..], b"x"].concat();
    let wrong = [None, Some(&b""[..]), Some(b"no note"), Some(&whole[..20]), Some(&whole[..52]), Some(&longer)];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let copy = folder.path().join(number.to_string());
        killed(&path, &copy);
        fs::write(journal(&copy), "").expect("there is room");
        let lock = copy.join("lock");
        fs::remove_file(&lock).expect("it is there");
        wrong.into_iter().for_each(|bytes| fs::write(&lock, bytes).expect("there is room"));
        assert_eq!(noted(&copy).map(|damage| damage.path), Some(lock.clone()), "{wrong:?}");
        assert_eq!(damaged_and_aside(&copy), [vec![lock.clone()], Vec::new()], "{wrong:?}");
        let (again, found) = Recorder::open(&copy, &schema(), options(Durability::Relaxed)).expect("it goes on");
        assert_eq!((found.note.map(|damage| damage.path), found.records), (Some(lock.clone()), 100), "{wrong:?}");
        again.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((noted(&copy), damaged_and_aside(&copy)), (None, NONE), "{wrong:?}: it was not written again");
        assert_eq!(fs::read(&lock).expect("it is there").len(), whole.len());
        // Folders of earlier versions have an empty one.
        if wrong.is_none_or(<[u8]>::is_empty) {
            make_older(&copy);
            fs::write(&lock, "").expect("there is room");
            assert_eq!((noted(&copy), damaged_and_aside(&copy), missing(&copy)), (None, NONE, [0; 2]));
            open(&copy, Durability::Relaxed).finish().unwrap_or_else(|error| panic!("{error}"));
            fs::remove_file(&lock).expect("it is there");
            assert_eq!(damaged_and_aside(&copy), [vec![lock], Vec::new()], "it has one since");
        }
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn missing_last_records_are_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let whole = fs::read(journal(&path)).expect("it is there").len();
    for length in [0, 20, 40, whole / 2, whole - 1, whole] {
        let copy = folder.path().join(length.to_string());
        killed(&path, &copy);
        fs::OpenOptions::new()
            .write(true)
            .open(journal(&copy))
            .and_then(|file| file.set_len(length as u64))
            .expect("it is there");
        let there = read(&copy).expect("what is there is whole").0.len() / SIZE;
        let lacks = 1000 - there as u64;
        assert_eq!(lacks == 0, length == whole, "{length}: {there}");
        assert_eq!(missing(&copy), [lacks; 2], "{length}");
        let (again, found) = Recorder::open(&copy, &schema(), options(Durability::Relaxed))
            .expect("the loss is reported, and recording continues");
        assert_eq!((found.missing, found.records), (lacks, there as u64), "{length}");
        // Until a record comes, the loss is not accepted.
        drop(again);
        assert_eq!(missing(&copy), [lacks; 2], "{length}");
        let again = open(&copy, Durability::Relaxed);
        append(&again, 0..10);
        assert_eq!(again.finish().expect("it is whole").records, there as u64 + 10);
        // The gap stays known, and the positions are not used again.
        for _ in 0..2 {
            assert_eq!((missing(&copy), lost(&copy)), ([0; 2], [lacks; 2]), "{length}");
            let position =
                Recorder::open(&copy, &schema(), options(Durability::Relaxed)).expect("it is whole").0.position(0);
            assert_eq!(position, 1010, "{length}");
        }
    }
    let copy = folder.path().join("gone");
    killed(&path, &copy);
    fs::remove_file(journal(&copy)).expect("it is there");
    assert_eq!(missing(&copy), [900; 2]);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(missing(&path), [0; 2]);
}

#[test]
fn missing_alerts_are_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let alerts = path.join(ALERTS);
    fs::write(&alerts, "an alert\n").expect("there is room");
    recorder.alerted(9);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    let damaged = || {
        let verified = verify(&path).unwrap_or_else(|error| panic!("{error}"));
        verified
            .files
            .into_iter()
            .filter(|file| matches!(file.state, State::Damaged(_)))
            .map(|file| file.path)
            .collect::<Vec<_>>()
    };
    assert_eq!(damaged(), [""; 0].map(PathBuf::from));
    let mut lost = 0;
    for (number, wrong) in (0..).zip([Some(""), Some("an"), None]) {
        match wrong {
            Some(text) => fs::write(&alerts, text).expect("there is room"),
            None => fs::remove_file(&alerts).expect("it is there"),
        }
        assert_eq!(damaged(), std::slice::from_ref(&alerts), "{wrong:?}");
        let (again, found) = Recorder::open(&path, &schema(), options(Durability::Relaxed))
            .expect("the loss is reported, and recording continues");
        assert_eq!(found.alerts.map(|damage| damage.path), Some(alerts.clone()), "{wrong:?}");
        // A recorder that fails to start accepts nothing.
        again.alerted(wrong.map_or(0, str::len) as u64);
        drop(again);
        assert_eq!(damaged(), std::slice::from_ref(&alerts), "{wrong:?}");
        let again = open(&path, Durability::Relaxed);
        append(&again, number..number + 1);
        assert_eq!(damaged(), [""; 0].map(PathBuf::from), "{wrong:?}: it was said");
        lost += 9 - wrong.map_or(0, str::len) as u64;
        assert_eq!(verify(&path).expect("it is whole").alerts_lost, lost, "{wrong:?}: and stays known");
        fs::write(&alerts, "an alert\n").expect("there is room");
        again.alerted(9);
        again.finish().unwrap_or_else(|error| panic!("{error}"));
    }
}
