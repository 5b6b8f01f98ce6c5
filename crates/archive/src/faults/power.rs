//! A loss of power. All that was synced stays. Of the rest, any pages stay, in any order, as they were at some moment.

use super::{SIZE, found, options, records, schema};
use crate::journal::Medium;
use crate::recorder::recover;
use crate::{Durability, FinishError, Recorder};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An operation on files, in order.
#[derive(Debug, Clone)]
pub(super) enum Done {
    Created(PathBuf),
    /// With its contents, which are synced.
    Reopened(PathBuf, Vec<u8>),
    Written(PathBuf, Vec<u8>),
    Synced(PathBuf),
    /// The recorder acknowledged this many records.
    Acknowledged(u32),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Noted(Arc<Mutex<Vec<Done>>>);

#[derive(Debug)]
pub(super) struct NotedFile(PathBuf, Noted);

impl Noted {
    fn note(&self, done: Done) {
        self.0.lock().expect("nobody panics").push(done);
    }

    pub(super) fn done(&self) -> Vec<Done> {
        self.0.lock().expect("nobody panics").clone()
    }
}

impl Medium for Noted {
    type File = NotedFile;

    fn create(&mut self, path: &Path) -> io::Result<NotedFile> {
        self.note(Done::Created(path.to_owned()));
        Ok(NotedFile(path.to_owned(), self.clone()))
    }

    fn reopen(&mut self, path: &Path) -> io::Result<NotedFile> {
        self.note(Done::Reopened(path.to_owned(), fs::read(path)?));
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

/// A file before the loss.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    synced: usize,
    /// Its length after each write since it was synced.
    pub(super) lengths: Vec<usize>,
}

/// The files that were written, and how many records were acknowledged.
pub(super) fn before(done: &[Done]) -> (Vec<Before>, u32) {
    let (mut files, mut acknowledged): (Vec<Before>, u32) = (Vec::new(), 0);
    let of = |files: &[Before], path: &Path| files.iter().position(|file| file.path == path).expect("it was created");
    for done in done {
        match done {
            Done::Created(path) => {
                files.push(Before { path: path.clone(), bytes: Vec::new(), synced: 0, lengths: vec![0] });
            }
            Done::Reopened(path, bytes) => {
                let (synced, lengths) = (bytes.len(), vec![bytes.len()]);
                files.push(Before { path: path.clone(), bytes: bytes.clone(), synced, lengths });
            }
            Done::Written(path, bytes) => {
                let at = of(&files, path);
                files[at].bytes.extend_from_slice(bytes);
                let length = files[at].bytes.len();
                files[at].lengths.push(length);
            }
            Done::Synced(path) => {
                let at = of(&files, path);
                files[at].synced = files[at].bytes.len();
                files[at].lengths = vec![files[at].synced];
            }
            Done::Acknowledged(count) => acknowledged = *count,
        }
    }
    (files, acknowledged)
}

impl Before {
    /// The file as the disk has it. Each page with unsynced bytes is as it was when the file had the length that `pages` returns, and the file
    /// is as long as it was at some moment.
    pub(super) fn after(&self, page: usize, mut pages: impl FnMut(usize) -> usize, length: usize) -> Vec<u8> {
        let mut bytes = self.bytes[..self.synced].to_vec();
        bytes.resize(length.max(self.synced), 0);
        for number in self.synced / page..self.bytes.len().div_ceil(page) {
            let known = pages(number).max(self.synced).min(bytes.len());
            let of = (number * page).max(self.synced)..((number + 1) * page).min(known);
            if of.start < of.end {
                bytes[of.clone()].copy_from_slice(&self.bytes[of]);
            }
        }
        bytes
    }

    /// How many pages have unsynced bytes.
    fn unsynced(&self, page: usize) -> usize {
        if self.synced == self.bytes.len() { 0 } else { self.bytes.len().div_ceil(page) - self.synced / page }
    }
}

/// Records batches; returns the operations.
fn record(path: &Path, durability: Durability, batches: &[u32]) -> (Vec<Done>, u32) {
    let noted = Noted::default();
    let (recorder, _) =
        Recorder::with(noted.clone(), path, &schema(), options(durability)).unwrap_or_else(|error| panic!("{error}"));
    let mut next = 0;
    for count in batches {
        let appended = recorder.append(&records(next..next + count)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(appended.refused, 0);
        next += count;
        if durability == Durability::Synced {
            noted.note(Done::Acknowledged(next));
        }
    }
    let written = match recorder.finish() {
        Ok(finished) => finished.records,
        // Nothing is really on a disk, which the recorder notices.
        Err(FinishError::Missing { written, .. }) => written,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(written, u64::from(next));
    (noted.done(), next)
}

/// After a loss, a folder has the beginning of what was recorded, with all that was acknowledged. Recording continues
/// behind it.
fn holds(path: &Path, files: &[(PathBuf, Vec<u8>)], acknowledged: u32, next: u32) {
    for (path, bytes) in files {
        fs::write(path, bytes).expect("there is room");
    }
    let kept = found(path);
    assert!(records(0..next).starts_with(&kept), "something was invented, or is in another order");
    assert!(kept.len() / SIZE >= acknowledged as usize, "what was acknowledged is lost");
    let (recorder, recovery) =
        Recorder::open(path, &schema(), options(Durability::Written)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recovery.records as usize, kept.len() / SIZE);
    let (from, dropped) = (recovery.records as u32, recovery.cut.map_or(0, |cut| cut.records) as u32);
    assert!(from + dropped <= next, "more records are reported as dropped than there were");
    assert_eq!(dropped > 0, !recovery.kept.is_empty(), "whole records are kept aside");
    assert!(recorder.append(&records(from..from + 10)).is_ok() && recorder.finish().is_ok());
    assert_eq!(found(path), records(0..from + 10));
    for entry in fs::read_dir(path).expect("it is there") {
        let path = entry.expect("it is there").path();
        if path.extension().is_some_and(|end| end == "journal" || end == "kept") {
            fs::remove_file(path).expect("it is there");
        }
    }
}

fn durability() -> impl Strategy<Value = Durability> {
    prop_oneof![Just(Durability::Relaxed), Just(Durability::Written), Just(Durability::Synced)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_pages_of_what_was_not_synced_may_be_there(
        batches in prop::collection::vec(0..900u32, 1..12),
        durability in durability(),
        page in prop_oneof![Just(512usize), Just(4096)],
        losses in prop::collection::vec(
            (any::<Index>(), any::<Index>(), prop::collection::vec(any::<Option<Index>>(), 64)), 1..12),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let (done, next) = record(folder.path(), durability, &batches);
        for (moment, length, pages) in losses {
            let (files, acknowledged) = before(&done[..moment.index(done.len() + 1)]);
            let after = files.iter().filter_map(|file| {
                let page_at = |number: usize| pages[number % 64].map_or(0, |at| *at.get(&file.lengths));
                let bytes = file.after(page, page_at, *length.get(&file.lengths));
                // A file that was never synced may not exist at all.
                (file.synced > 0 || pages[0].is_some()).then(|| (file.path.clone(), bytes))
            });
            holds(folder.path(), &after.collect::<Vec<_>>(), acknowledged, next);
        }
    }
}

#[test]
fn every_set_of_pages_may_be_there() {
    let folder = tempfile::tempdir().expect("there is room");
    let (done, next) = record(folder.path(), Durability::Written, &[3, 90, 1, 150]);
    let mut most = 0;
    for moment in 0..=done.len() {
        let (files, acknowledged) = before(&done[..moment]);
        let Some((last, whole)) = files.split_last() else { continue };
        let unsynced = last.unsynced(256);
        most = most.max(unsynced);
        for set in 0..1usize << unsynced {
            let is_there = |number: usize| set >> (number - last.synced / 256) & 1 == 1;
            // Either the full length, or up to the last page that is there.
            let end = (0..unsynced).filter(|at| set >> at & 1 == 1).map(|at| (last.synced / 256 + at + 1) * 256).max();
            for length in [last.bytes.len(), end.unwrap_or(0).min(last.bytes.len())] {
                let all = last.bytes.len();
                let bytes = last.after(256, |number| if is_there(number) { all } else { 0 }, length);
                let mut files: Vec<_> = whole.iter().map(|file| (file.path.clone(), file.bytes.clone())).collect();
                files.push((last.path.clone(), bytes));
                holds(folder.path(), &files, acknowledged, next);
            }
        }
    }
    assert!(most >= 4, "{most} pages at most");
}

#[test]
fn what_was_synced_is_damaged_if_it_is_not_whole() {
    let folder = tempfile::tempdir().expect("there is room");
    let batches = [200, 150, 100, 120, 60];
    let (done, _) = record(folder.path(), Durability::Synced, &batches);
    // Nothing closed it.
    let last = done.iter().rposition(|done| matches!(done, Done::Acknowledged(_))).expect("there are some");
    let (files, _) = before(&done[..=last]);
    let [file] = &files[..] else { panic!("there is one file") };
    let frames = batches.map(|count| 32 + count as usize * SIZE);
    assert_eq!(file.bytes.len(), 40 + frames.iter().sum::<usize>());
    for at in (0..file.bytes.len()).step_by(7) {
        let mut bytes = file.bytes.clone();
        bytes[at] ^= 1;
        fs::write(&file.path, bytes).expect("there is room");
        let recovered = recover(&crate::folder::Folder::open(folder.path()).expect("it is a log"));
        // Nothing shows whether the last frame was synced.
        let is_last = at >= file.bytes.len() - frames[4];
        assert_eq!(recovered.is_err(), !is_last, "byte {at}");
    }
}

#[test]
fn records_behind_what_is_torn_are_counted() {
    let folder = tempfile::tempdir().expect("there is room");
    let (done, _) = record(folder.path(), Durability::Written, &[200, 150, 100, 120, 60]);
    // Nothing closed it: that would have synced it.
    let synced = done.iter().skip(3).position(|done| matches!(done, Done::Synced(_))).expect("it was closed");
    let (files, _) = before(&done[..3 + synced]);
    let [file] = &files[..] else { panic!("there is one file") };
    let mut bytes = file.bytes.clone();
    bytes[40 + 32 + 7] ^= 1;
    let all = bytes.len() as u64;
    fs::write(&file.path, bytes).expect("there is room");
    let cut = recover(&crate::folder::Folder::open(folder.path()).expect("it is a log")).expect("it is torn").cut;
    let cut = cut.expect("something is");
    // The writer may have written several batches at once.
    assert_eq!((cut.offset, cut.bytes), (40, all - 40));
    assert!([430, 280, 180, 60, 0].contains(&cut.records), "{}", cut.records);
}
