//! `prune` removes what a simple model says, and the rest stays as it was.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common;
use crate::common::{Found, all};
use proptest::prelude::*;
use queuescope_archive::{
    Durability, FolderError, Full, Pruned, Recorder, RecorderOptions, Retention, State, in_future, prune, verify,
};
use queuescope_log::Schema;
use std::path::Path;

const SCHEMA: &str = "name = \"timed\"\ntime = \"at\"\n[[attribute]]\nname = \"at\"\nkind = \"time\"\n\
                      [[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
const SIZE: usize = 12;
const DAY: u64 = 86_400_000_000_000;

fn schema() -> Schema {
    Schema::parse("timed.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"))
}

fn options(keep: Retention) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 23,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 20,
        archive: true,
        indexes: vec![schema().find("number").expect("it is there")],
        keep,
    }
}

/// Records of these times, numbered from `from`.
fn records(times: &[u64], from: usize) -> Vec<u8> {
    let record = |(number, time): (usize, &u64)| {
        time.to_be_bytes().into_iter().chain(((from + number) as u32).to_be_bytes()).collect::<Vec<_>>()
    };
    times.iter().enumerate().flat_map(record).collect()
}

/// Records in several sessions; returns how many records the folder had after the last.
fn record(path: &Path, parts: &[Vec<u64>], keep: Retention) -> u64 {
    let (mut from, mut there) = (0, 0);
    for part in parts {
        let (recorder, _) = Recorder::open(path, &schema(), options(keep)).unwrap_or_else(|error| panic!("{error}"));
        let appended = recorder.append(&records(part, from)).expect("there is room");
        assert_eq!((appended.positions.start, appended.refused), (from as u64, 0));
        from += part.len();
        there = recorder.finish().expect("there is room").records;
    }
    there
}

/// A stretch of the model: the position of its first record, the number of records, their newest time, and the bytes.
#[derive(Debug, Clone)]
struct Stretch {
    first: u64,
    records: u64,
    newest: u64,
    bytes: u64,
}

fn stretches(path: &Path, times: &[u64]) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for file in verify(path).unwrap_or_else(|error| panic!("{error}")).files {
        match found.last_mut().filter(|last| last.first == file.first) {
            Some(last) => (last.records, last.bytes) = (last.records + file.records, last.bytes + file.bytes),
            None => found.push(Stretch { first: file.first, records: file.records, newest: 0, bytes: file.bytes }),
        }
    }
    for stretch in &mut found {
        let of = stretch.first as usize..(stretch.first + stretch.records) as usize;
        stretch.newest = times[of].iter().copied().max().expect("none is empty");
    }
    found
}

/// How many stretches are removed.
fn model(stretches: &[Stretch], keep: Retention) -> usize {
    let newest = stretches.iter().map(|stretch| stretch.newest).max().unwrap_or(0);
    let behind = |at: usize| stretches[at..].iter().map(|stretch| stretch.bytes).sum::<u64>();
    let too_many = (0..stretches.len()).filter(|at| keep.bytes.is_some_and(|most| behind(*at) > most)).count();
    let is_old = |at: &usize| keep.age.is_some_and(|age| stretches[*at].newest < newest.saturating_sub(age));
    // The last one stays.
    let last = stretches.len() - 1;
    (too_many..last).find(|at| !is_old(at)).unwrap_or(last).min(last)
}

fn times() -> impl Strategy<Value = Vec<Vec<u64>>> {
    // Later parts have later times, with some overlap.
    let part = |number: u64| prop::collection::vec((0..3 * DAY).prop_map(move |at| number * DAY + at), 1..50);
    (1..6u64).prop_flat_map(move |parts| (0..parts).map(part).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn old_volumes_and_volumes_over_the_limit_are_removed(
        parts in times(),
        age in prop::option::of(0..4 * DAY),
        share in prop::option::of(0..=100u64),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        record(path, &parts, Retention::default());
        let times = parts.concat();
        let before = stretches(path, &times);
        let bytes: u64 = before.iter().map(|stretch| stretch.bytes).sum();
        let volumes = verify(path).expect("it is whole").files.len();
        let wanted = Retention { age, bytes: share.map(|share| bytes * share / 100) };
        let gone = model(&before, wanted);
        let taken = prune(path, wanted).unwrap_or_else(|error| panic!("{error}"));
        let first: u64 = before[..gone].iter().map(|stretch| stretch.records).sum();
        prop_assert_eq!(taken.records, first);
        prop_assert_eq!(taken.bytes, before[..gone].iter().map(|stretch| stretch.bytes).sum::<u64>());

        let Found { first: found, records: rest, sources } = all(path).unwrap_or_else(|error| panic!("{error}"));
        let expected = records(&times, 0)[first as usize * SIZE..].to_vec();
        prop_assert!(rest == expected && found == first);
        prop_assert_eq!((sources.removed, sources.lost), (first, 0));
        let verified = verify(path).expect("it is whole");
        prop_assert!(verified.files.iter().all(|file| file.state == State::Closed));
        prop_assert_eq!((verified.removed, verified.files.len() as u64), (first, volumes as u64 - taken.volumes));
        // No file of removed volumes is left: a volume has three files, with an index and checksums.
        prop_assert_eq!(common::files(path).len(), 3 * verified.files.len());
        prop_assert!(taken.volumes == 0 || common::empty_folders(path).is_empty());
        let nothing = Pruned { left: taken.left, ..Pruned::default() };
        prop_assert_eq!(prune(path, wanted).expect("it is whole"), nothing);
        prop_assert_eq!(taken.bytes + taken.left, bytes);

        // The next recorder continues where it ended.
        let (recorder, recovery) =
            Recorder::open(path, &schema(), options(Retention::default())).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(recovery.records, times.len() as u64 - first);
        let appended = recorder.append(&records(&[DAY], times.len())).expect("there is room");
        prop_assert_eq!(appended.positions.start, times.len() as u64);
        prop_assert_eq!(recorder.finish().expect("there is room").records, times.len() as u64 - first + 1);
    }

    #[test]
    fn a_recorder_removes_old_volumes_as_it_records(parts in times(), age in 0..3 * DAY) {
        let folder = tempfile::tempdir().expect("there is room");
        let wanted = Retention { age: Some(age), bytes: None };
        let there = record(folder.path(), &parts, wanted);
        let Found { records: rest, sources, .. } = all(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(rest.len() / SIZE, there as usize);
        prop_assert_eq!(there + sources.removed, parts.concat().len() as u64);
        prop_assert!(records(&parts.concat(), 0).ends_with(&rest));
        prop_assert_eq!(prune(folder.path(), wanted).expect("it is whole").volumes, 0);
    }
}

#[test]
fn a_record_from_the_future_makes_no_others_old() {
    // 2096 is after the clock of any machine that runs this test.
    let (start, future) = (1_600_000_000_000_000_000, 126 * 365 * DAY);
    let days = |days: &[u64]| days.iter().map(|day| vec![start + day * DAY]).collect::<Vec<_>>();
    let mut parts = days(&[1, 2, 10, 11]);
    parts.insert(2, vec![future, future + 1]);
    let week = Retention { age: Some(7 * DAY), bytes: None };
    let folder = tempfile::tempdir().expect("there is room");
    record(folder.path(), &parts, Retention::default());
    assert_eq!(in_future(folder.path()).expect("it is whole"), 2);
    assert_eq!(prune(folder.path(), week).expect("it is whole").records, 2);
    // The volume from the future goes with the one after it.
    let hour = Retention { age: Some(DAY / 24), bytes: None };
    assert_eq!(prune(folder.path(), hour).expect("it is whole").records, 3);
    assert_eq!(in_future(folder.path()).expect("it is whole"), 0);

    // A recorder that removes volumes as it records keeps the same records.
    let folder = tempfile::tempdir().expect("there is room");
    assert_eq!(record(folder.path(), &parts, week), 4);
}

#[test]
fn a_folder_that_is_being_recorded_to_is_not_pruned() {
    let folder = tempfile::tempdir().expect("there is room");
    let wanted = Retention { age: None, bytes: Some(0) };
    assert!(matches!(prune(folder.path(), wanted), Err(FolderError::NotALog { .. })));
    let (recorder, _) = Recorder::open(folder.path(), &schema(), options(Retention::default()))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(prune(folder.path(), wanted), Err(FolderError::Busy(_))));
    assert_eq!(recorder.append(&records(&[1, 2, 3], 0)).expect("there is room").refused, 0);
    assert_eq!(recorder.finish().expect("there is room").records, 3);
    let there = verify(folder.path()).expect("it is whole").files[0].bytes;
    let nothing = Pruned { left: there, ..Pruned::default() };
    assert_eq!(prune(folder.path(), wanted).expect("nobody records"), nothing, "the newest volume stays");
}
