//! What happens to volumes when the disk fails during a recording, and works again.

use super::*;
use crate::journal::Disk;
use crate::recorder::Pauses;
use crate::{Durability, FinishError, Full, History, Recorder, RecorderOptions};
use queuescope_log::Schema;
use std::thread;
use std::time::Duration;

/// Records of a journal.
const JOURNAL: u64 = 20;

fn schema(path: &Path) -> Schema {
    History::open(path).expect("it is one").schema().clone()
}

fn options(keep: Retention) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 23,
        full: Full::Wait,
        durability: Durability::Written,
        journal_records: JOURNAL,
        archive: true,
        indexes: Vec::new(),
        keep,
    }
}

/// A pause that no test waits for.
const LONG: Duration = Duration::from_secs(1 << 20);

/// Opens a recorder on a folder that has records.
fn open(path: &Path, store: &Failing, pause: Duration, keep: Retention) -> (PositionedRecords, Recorder) {
    let before = folder(path);
    let pauses = Pauses { first: pause, most: pause };
    let opened = Recorder::within(Disk, Arc::new(store.clone()), pauses, path, &schema(path), options(keep));
    let (recorder, recovery) = opened.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recovery.records, before.len() as u64);
    (before, recorder)
}

fn append(recorder: &Recorder, count: u64) {
    let size = recorder.log().schema().record_size();
    let appended = recorder.append(&vec![1; count as usize * size]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(appended.refused, 0);
}

fn count(path: &Path) -> usize {
    all(path).0.len()
}

fn journals(path: &Path) -> Vec<std::path::PathBuf> {
    Folder::open(path).and_then(|folder| folder.journals(0)).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until the condition holds.
fn until(is: impl Fn() -> bool) {
    while !is() {
        thread::yield_now();
    }
}

fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("it is there");
    bytes[70] ^= 1;
    fs::write(path, bytes).expect("there is room");
}

#[test]
fn volumes_are_made_once_the_disk_works_again() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, store) = (folder.path(), Failing::later(Fault::Full));
    let (before, recorder) = open(path, &store, Duration::ZERO, Retention::default());
    store.fail(true);
    append(&recorder, 5 * JOURNAL);
    // It tries again and again, and recording goes on.
    store.wait(20);
    until(|| recorder.troubled().is_some_and(|why| why.to_string().contains("No space left")));
    append(&recorder, 5 * JOURNAL);
    assert_eq!(count(path), before.len() + 10 * JOURNAL as usize);
    store.fail(false);
    until(|| recorder.troubled().is_none() && journals(path).len() <= 1);
    append(&recorder, 1);
    let all = before.len() + 10 * JOURNAL as usize + 1;
    assert_eq!(recorder.finish().expect("it works").records, all as u64);
    assert_eq!((count(path), journals(path).len()), (all, 0));
    assert!(is_whole(path) && has_no_strays(path));
}

#[test]
fn finish_does_not_wait_and_returns_the_error() {
    for mends in [false, true] {
        let folder = tempfile::tempdir().expect("there is room");
        let (path, store) = (folder.path(), Failing::later(Fault::Io));
        let (before, recorder) = open(path, &store, LONG, Retention::default());
        store.fail(true);
        append(&recorder, 3 * JOURNAL);
        until(|| recorder.troubled().is_some());
        store.fail(!mends);
        let all = before.len() as u64 + 3 * JOURNAL;
        match recorder.finish() {
            Ok(finished) => assert!(mends && finished.records == all && journals(path).is_empty()),
            Err(FinishError::Archive { written, why }) => {
                assert!(!mends && written == all && why.to_string().contains("os error 5"), "{why}");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(count(path) as u64, all);
        // They become volumes next time.
        let opened = Recorder::open(path, &schema(path), options(Retention::default()));
        let (recorder, recovery) = opened.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((recovery.records, recorder.finish().expect("it works").records), (all, all));
        assert_eq!((count(path) as u64, journals(path).len()), (all, 0));
        assert!(is_whole(path) && has_no_strays(path));
    }
}

#[test]
fn a_damaged_journal_ends_volumes_and_not_recording() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, store) = (folder.path(), Failing::later(Fault::Io));
    let (before, recorder) = open(path, &store, Duration::ZERO, Retention::default());
    store.fail(true);
    append(&recorder, 4 * JOURNAL);
    store.wait(1);
    // Two were there; one behind it is whole, and one is open.
    let victim = journals(path)[3].clone();
    damage(&victim);
    store.fail(false);
    let names_the_victim =
        |why: &FolderError| matches!(why, FolderError::Damaged(damage) if damage.path == victim && damage.at.is_some());
    until(|| recorder.troubled().is_some_and(|why| names_the_victim(&why)));
    append(&recorder, 3 * JOURNAL);
    let Err(FinishError::Archive { written, why }) = recorder.finish() else { panic!("a journal is damaged") };
    assert_eq!(written, before.len() as u64 + 7 * JOURNAL);
    assert!(names_the_victim(&why), "{why}");
    // Those before it are volumes; it and those behind it are not.
    let left = journals(path);
    assert!(left.len() == 6 && left.first() == Some(&victim), "{left:?}");
}

#[test]
fn what_could_not_be_removed_goes_once_it_can() {
    for damaged in [false, true] {
        let failed = (1..=60).filter(|at| {
            let (folder, store) = (tempfile::tempdir().expect("there is room"), Failing::later(Fault::Io));
            let path = folder.path();
            let (before, recorder) = open(path, &store, Duration::ZERO, Retention { age: None, bytes: Some(1) });
            store.fail(true);
            append(&recorder, 4 * JOURNAL);
            store.wait(1);
            if damaged {
                damage(&journals(path)[3]);
            }
            store.fail_once(*at);
            let is_damaged = |why: Option<Arc<FolderError>>| matches!(why.as_deref(), Some(FolderError::Damaged(_)));
            until(|| match recorder.troubled() {
                None => journals(path).len() <= 1,
                why => is_damaged(why),
            });
            let has_failed = store.has_failed();
            store.fail(false);
            let written = match recorder.finish() {
                Ok(finished) if !damaged => finished.records,
                Err(FinishError::Archive { written, .. }) if damaged => written,
                other => panic!("call {at}: {other:?}"),
            };
            let removed = Catalogue::read(path).expect("it is whole").removed.records;
            let all = before.len() as u64 + 4 * JOURNAL;
            assert!(removed > 0 && written + removed == all, "call {at}: {written} and {removed}");
            assert!(damaged || count(path) as u64 == written, "call {at}");
            assert!(has_no_strays(path), "call {at}");
            has_failed
        });
        assert!(failed.count() > 20);
    }
}

#[test]
fn old_volumes_go_also_if_no_others_come() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, store) = (folder.path(), Failing::later(Fault::Full));
    let before = super::folder(path);
    Change::Archive.run(path, Arc::new(store.clone())).unwrap_or_else(|error| panic!("{error}"));
    // A file with the name of the folder for the day of the next records.
    let day = path.join("archive/date=1972-04-17");
    fs::write(&day, "in the way").expect("there is room");
    let keep = Retention { age: None, bytes: Some(1) };
    let pauses = Pauses { first: LONG, most: LONG };
    let opened = Recorder::within(Disk, Arc::new(store), pauses, path, &schema(path), options(keep));
    let (recorder, _) = opened.unwrap_or_else(|error| panic!("{error}"));
    append(&recorder, 2 * JOURNAL);
    until(|| recorder.troubled().is_some());
    // All records except the newest that became volumes.
    let gone = all(path).1.0;
    assert_eq!(gone, before.len() as u64 - 2);
    fs::remove_file(day).expect("it is there");
    let finished = recorder.finish().expect("it works");
    assert!(finished.removed > gone && finished.records + finished.removed == before.len() as u64 + 2 * JOURNAL);
    assert_eq!(count(path) as u64, finished.records);
}
