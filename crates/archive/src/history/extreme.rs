//! Times and positions at the ends of the range of 64 bits: in journals, in volumes, in joined volumes, and in crafted files.

use super::*;
use crate::catalogue::Catalogue;
use crate::compact::compact_in;
use crate::compact::tests::{DAY, Part, ask, write};
use crate::journal::{Disk, POSITIONS, Tail};
use crate::reader::{State, verify};
use crate::{Durability, Full, Recorder, RecorderOptions, Retention};
use proptest::prelude::*;
use queuescope_log::{LAST_TIME, Log};
use std::collections::BTreeSet;
use std::fs;

fn extreme() -> impl Strategy<Value = u64> {
    const ENDS: [u64; 5] = [0, i64::MAX as u64, LAST_TIME, u64::MAX, 365 * DAY];
    (prop::sample::select(&ENDS[..]), -2..3i64).prop_map(|(end, more)| end.saturating_add_signed(more))
}

/// The times of records in their order, as a query returns them.
fn times(path: &Path, within: (u64, u64)) -> Vec<u64> {
    let (message, _) = ask(path, "true", within, usize::MAX, &|| ());
    message.iter().map(|(_, record)| u64::from_be_bytes(*record.first_chunk().expect("it has a time"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn records_of_extreme_times_are_found_wherever_they_lie(
        parts in prop::collection::vec(prop::collection::vec(extreme(), 1..6), 1..5),
        journals in 0..3usize,
        questions in prop::collection::vec((extreme(), extreme()), 4),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        let all: Vec<u64> = parts.concat();
        let parts: Vec<_> = parts.into_iter().map(|times| Part { times, lost: 0 }).collect();
        write(path, &parts, journals.min(parts.len()), 0, true);
        let questions = questions.into_iter().chain([(0, u64::MAX), (u64::MAX, u64::MAX), (0, 0)]);
        let questions: Vec<_> = questions.collect();
        for _ in 0..2 {
            for (from, to) in &questions {
                let expected: Vec<_> =
                    all.iter().filter(|at| *at >= from && (*to == u64::MAX || *at < to)).copied().collect();
                prop_assert_eq!(times(path, (*from, *to)), expected, "{} to {}", from, to);
            }
            let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
            prop_assert!(verified.files.iter().all(|file| !matches!(file.state, State::Damaged(_))), "{:?}", verified);
            prop_assert_eq!(verified.times, all.iter().min().copied().zip(all.iter().max().copied()));
            prop_assert_eq!(History::open(path).and_then(|history| history.first()).expect("it is whole"), Some(all[0]));
            // Again after the records were turned into volumes and joined.
            compact_in(Folder::open(path).expect("it is one"), 1 << 20).unwrap_or_else(|error| panic!("{error}"));
            prop_assert!(Catalogue::read(path).expect("it is whole").records() == all.len() as u64);
        }
    }
}

fn options() -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 23,
        full: Full::Wait,
        durability: Durability::Written,
        journal_records: 1000,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    }
}

fn record(at: u64) -> Vec<u8> {
    [&at.to_be_bytes()[..], &[0; 3]].concat()
}

#[test]
fn later_times_than_files_have_are_left_out_and_counted() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    write(path, &[Part { times: vec![1], lost: 0 }], 0, 0, true);
    let schema = Folder::open(path).expect("it is one").schema;
    let (recorder, _) = Recorder::open(path, &schema, options()).unwrap_or_else(|error| panic!("{error}"));
    let all = [3, LAST_TIME, LAST_TIME + 1, 4, i64::MAX as u64, u64::MAX];
    let appended = recorder.append(&all.map(record).concat()).expect("there is room");
    assert_eq!((appended.positions, appended.refused, recorder.late()), (1..4, 3, 3));
    assert_eq!(recorder.finish().expect("there is room").records, 4);
    assert_eq!(times(path, (0, u64::MAX)), [1, 3, LAST_TIME, 4]);
}

/// Writes a journal of 400 records behind `lost` lost records.
fn crafted(path: &Path, lost: u64) {
    let folder = Folder::open(path).expect("it is one");
    let mut journal = folder.journal(Disk, 1 << 20, Tail { next: lost, lost, empty_file: None });
    journal.write(&record(7).repeat(400), &mut Vec::new()).expect("there is room");
    journal.close().expect("there is room");
}

#[test]
fn positions_do_not_go_round() {
    for (lost, is_read) in
        [(u64::MAX - 400, false), (u64::MAX - 1000, false), (POSITIONS + 1, false), (POSITIONS, true)]
    {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        write(path, &[], 0, 0, true);
        let schema = Folder::open(path).expect("it is one").schema;
        crafted(path, lost);
        let files = || {
            let names = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("it is there").file_name());
            names.filter(|name| name != "lock").collect::<BTreeSet<_>>()
        };
        let before = files();
        let error = Recorder::open(path, &schema, options()).map(drop).expect_err("there is no room behind it");
        let message = error.to_string();
        assert!(message.contains("positions are higher") || message.contains("does not have as many"), "{message}");
        assert_eq!(files(), before);
        let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
        let damaged = verified.files.iter().any(|file| matches!(file.state, State::Damaged(_)));
        assert_eq!(damaged, !is_read, "{lost}: {verified:?}");
    }
    // The last position at which a recorder begins.
    let folder = tempfile::tempdir().expect("there is room");
    write(folder.path(), &[], 0, 0, true);
    let schema = Folder::open(folder.path()).expect("it is one").schema;
    crafted(folder.path(), POSITIONS - Log::POSITIONS - 400);
    let (recorder, recovery) =
        Recorder::open(folder.path(), &schema, options()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recovery.records, 400);
    assert_eq!(recorder.append(&record(8).repeat(395)).expect("there is room").refused, 0);
    assert_eq!(recorder.finish().expect("there is room").records, 795);
    assert_eq!(times(folder.path(), (0, u64::MAX)).len(), 795);
}
