//! What is said to be kept is there: somebody removes, moves or replaces a folder, or files in it, while it is recorded to.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

mod common;

use common::{files, read};
use queuescope_archive::{
    ALERTS, Ask, Durability, FinishError, Full, History, Keep, Recorder, RecorderOptions, State, keep, verify,
};
use queuescope_log::{Dnf, Schema};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const SIZE: usize = 4;

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path, durability: Durability) -> Recorder {
    Recorder::open(path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}")).0
}

fn options(durability: Durability) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 22,
        full: Full::Wait,
        durability,
        journal_records: 1 << 20,
        archive: true,
        indexes: Vec::new(),
        keep: Keep::default(),
    }
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
fn a_folder_that_was_moved_has_all_that_was_written_and_it_is_said_where() {
    for goes_on in [false, true] {
        let folder = tempfile::tempdir().expect("there is room");
        let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
        let recorder = recording(&path);
        assert_eq!(recorder.moved_to(), None);
        fs::rename(&path, &moved).expect("there is room");
        if goes_on {
            // Perhaps it is noticed now already.
            _ = recorder.append(&records(1000..2000)).and_then(|_| recorder.flush());
        }
        assert_eq!(recorder.moved_to().as_deref(), Some(&*moved.canonicalize().expect("it is there")));
        let (there, told) = ended(recorder);
        assert_eq!(there, 1000, "{told}");
        assert!(
            told.contains(&format!("was moved to {}", moved.canonicalize().expect("it is there").display())),
            "{told}"
        );
        assert!(!path.exists(), "nothing is written where it was");
        assert_eq!(read(&moved).expect("it is whole").0, records(0..1000));
        // It can be recorded to where it is.
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
    let (there, told) = ended(recorder);
    assert!(there == 1000 && told.contains("was moved to "), "{told}");
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

/// What is there of a folder whose recorder is killed at this moment.
fn killed(path: &Path, to: &Path) {
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

/// How many records are said to be missing by who looks at every byte, and by who asks.
fn missing(path: &Path) -> [u64; 2] {
    let everything = Dnf::all();
    let ask = Ask { expression: &everything, from: 0, to: u64::MAX, needed: &[] };
    let asked = History::open(path).and_then(|history| history.each(ask, &mut |_, _| ControlFlow::Continue(())));
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(!verified.files.iter().any(|file| matches!(file.state, State::Damaged(_))), "{verified:?}");
    [verified.missing, asked.unwrap_or_else(|error| panic!("{error}")).missing]
}

#[test]
fn records_that_were_written_last_are_missed() {
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
        let (again, found) =
            Recorder::open(&copy, &schema(), options(Durability::Relaxed)).expect("it is said, and goes on");
        assert_eq!((found.missing, found.records), (lacks, there as u64), "{length}");
        append(&again, 0..10);
        assert_eq!(again.finish().expect("it is whole").records, there as u64 + 10);
        assert_eq!(missing(&copy), [0; 2], "{length}: it was said");
    }
    let copy = folder.path().join("gone");
    killed(&path, &copy);
    fs::remove_file(journal(&copy)).expect("it is there");
    assert_eq!(missing(&copy), [900; 2]);
    // Folders of earlier versions have no note.
    let copy = folder.path().join("older");
    killed(&path, &copy);
    fs::write(journal(&copy), "").expect("there is room");
    for lock in ["", "no note"] {
        fs::write(copy.join("lock"), lock).expect("there is room");
        assert_eq!(missing(&copy), [0; 2]);
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(missing(&path), [0; 2]);
}

const NONE: [Vec<PathBuf>; 2] = [Vec::new(), Vec::new()];

/// The files of a folder that are damaged, and those that are kept aside.
fn told(path: &Path) -> [Vec<PathBuf>; 2] {
    let files = verify(path).unwrap_or_else(|error| panic!("{error}")).files;
    let of =
        |is: fn(&State) -> bool| files.iter().filter(|file| is(&file.state)).map(|file| file.path.clone()).collect();
    [of(|state| matches!(state, State::Damaged(_))), of(|state| *state == State::Kept)]
}

#[test]
fn a_journal_that_has_another_name_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    let renamed = folder.path().join("renamed");
    killed(&path, &renamed);
    let other = renamed.join("00000000000000000050.journal");
    fs::rename(journal(&renamed), &other).expect("it is there");
    let before = fs::read(&other).expect("it is there");
    assert_eq!(told(&renamed), [vec![other.clone()], Vec::new()]);
    let refused = Recorder::open(&renamed, &schema(), options(Durability::Relaxed)).map(drop);
    let error = refused.expect_err("it has records of its own").to_string();
    assert!(error.contains("it was put back, or renamed"), "{error}");
    assert_eq!(fs::read(&other).expect("it is kept"), before);
    // Under its name again, all is there.
    fs::rename(&other, journal(&renamed)).expect("it is there");
    assert_eq!(read(&renamed).expect("it is whole").0.len() / SIZE, 1000);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// A journal comes back when others have the numbers of its records, or none has any more.
#[test]
fn a_journal_that_was_put_back_is_kept_aside() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    for (more, has_note) in [(2000, true), (2000, false)] {
        let back = folder.path().join(format!("back {more} {has_note}"));
        killed(&path, &back);
        let old = fs::read(journal(&back)).expect("it is there");
        fs::remove_file(journal(&back)).expect("it is there");
        if !has_note {
            // Numbers are given once more.
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
            assert_eq!(told(&back)[0], [journal(&back)]);
            let (again, found) = Recorder::open(&back, &schema(), options(Durability::Relaxed)).expect("it goes on");
            assert_eq!(found.kept, std::slice::from_ref(&kept));
            assert_eq!(again.finish().expect("it is whole").records, 100 + u64::from(more));
            assert_eq!(fs::read(&kept).expect("it is kept"), old);
            let [damaged, aside] = told(&back);
            assert!(damaged.is_empty() && aside.contains(&kept) && !journal(&back).exists(), "{damaged:?} {aside:?}");
            is_right();
        }
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// Who is stopped after a volume counts and before its journal goes leaves both.
#[test]
fn a_journal_that_is_in_volumes_goes() {
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
    assert_eq!(told(&recorded), NONE);
    let (again, found) = Recorder::open(&recorded, &schema(), options(Durability::Relaxed)).expect("it is whole");
    assert_eq!((found.kept.len(), found.records, journal(&recorded).exists()), (0, 1000, false));
    again.finish().unwrap_or_else(|error| panic!("{error}"));
    // Its volume may be taken away before anybody records again.
    let kept = stopped("kept");
    keep(&kept, Keep { age: None, bytes: Some(1) }).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((told(&kept), journal(&kept).exists()), (NONE, false));
    // It is all that is left of records whose volume cannot be read.
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

/// Nobody who is stopped leaves these.
#[test]
fn what_is_no_journal_of_ours_is_kept_aside() {
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
fn whole_records_behind_damage_are_kept_aside() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let recorder = recording(&path);
    append(&recorder, 1000..1300);
    append(&recorder, 1300..1600);
    for behind in [600, 300, 0] {
        let copy = folder.path().join(behind.to_string());
        killed(&path, &copy);
        let whole = fs::read(journal(&copy)).expect("it is there");
        let mut bytes = whole.clone();
        // In the last record before these, which are written three hundred at once.
        bytes[whole.len() - behind / 300 * (32 + 300 * SIZE) - 1] ^= 1;
        fs::write(journal(&copy), &bytes).expect("there is room");
        let (again, found) = Recorder::open(&copy, &schema(), options(Durability::Relaxed)).expect("it goes on");
        let cut = found.cut.expect("something is not whole");
        assert_eq!(cut.records, behind as u64);
        let kept = journal(&copy).with_extension("journal.kept");
        let expected = if behind > 0 { vec![kept.clone()] } else { Vec::new() };
        assert_eq!(found.kept, expected);
        if behind > 0 {
            assert_eq!(fs::read(&kept).expect("it is kept"), bytes[cut.offset as usize..]);
        }
        again.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(told(&copy), [Vec::new(), expected]);
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn alerts_that_were_written_are_missed() {
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
    for wrong in [Some(""), Some("an"), None] {
        match wrong {
            Some(text) => fs::write(&alerts, text).expect("there is room"),
            None => fs::remove_file(&alerts).expect("it is there"),
        }
        assert_eq!(damaged(), std::slice::from_ref(&alerts), "{wrong:?}");
        let (again, found) =
            Recorder::open(&path, &schema(), options(Durability::Relaxed)).expect("it is said, and goes on");
        assert_eq!(found.alerts.map(|damage| damage.path), Some(alerts.clone()), "{wrong:?}");
        assert_eq!(damaged(), [""; 0].map(PathBuf::from), "{wrong:?}: it was said");
        fs::write(&alerts, "an alert\n").expect("there is room");
        again.alerted(9);
        again.finish().unwrap_or_else(|error| panic!("{error}"));
    }
}
