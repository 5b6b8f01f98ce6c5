//! Queries have the same answer before, while and after volumes are joined.

use super::*;
use crate::journal::Tail;
use crate::prune::{Retention, prune_locked};
use crate::reader::{State, verify};
use crate::{ArchiveQuery, Sources};
use proptest::prelude::*;
use queuescope_log::Scope;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

pub(crate) const DAY: u64 = 86_400_000_000_000;
const SCHEMA: &str = "name = \"timed\"\ntime = \"at\"\nsort = [\"key\"]\n[[attribute]]\nname = \"at\"\nkind = \"time\"\n\
                      [[attribute]]\nname = \"key\"\nkind = \"u8\"\n[[attribute]]\nname = \"number\"\nkind = \"u16\"\n";

/// Records at these times, with `lost` records lost before them; in a volume, or for the last parts in a journal.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub times: Vec<u64>,
    pub lost: u64,
}

fn part() -> impl Strategy<Value = Part> {
    let times = (0..4u64, prop::collection::vec(prop_oneof![4 => 0..DAY, 1 => 0..2 * DAY], 1..30));
    let lost = prop_oneof![6 => Just(0), 1 => 1..5u64];
    (times, lost)
        .prop_map(|((day, times), lost)| Part { times: times.into_iter().map(|at| day / 2 * DAY + at).collect(), lost })
}

/// Makes a folder of volumes, and behind them `journals` journals. The last of these may record only how many records were lost.
pub(crate) fn write(path: &Path, parts: &[Part], journals: usize, lost: u64, indexed: bool) {
    let schema = Schema::parse("timed.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    let folder = Folder::create(path, &schema).expect("there is room");
    let key = schema.find("key").expect("it is there");
    let archiver = Archiver::new(&folder, if indexed { vec![key] } else { Vec::new() }, 1 << 20);
    let mut catalogue = Catalogue::default();
    let (volumes, journals) = parts.split_at(parts.len().saturating_sub(journals));
    let mut next = 0;
    let mut records = |part: &Part| -> (u64, Vec<u8>) {
        let first = next + part.lost;
        next = first + part.times.len() as u64;
        let record = |(number, at): (u64, &u64)| {
            let number = first + number;
            [&at.to_be_bytes()[..], &[number as u8 % 5], &(number as u16).to_be_bytes()].concat()
        };
        (first, (0..).zip(&part.times).flat_map(record).collect())
    };
    for part in volumes {
        let (first, rows) = records(part);
        let stretch = Stretch { rows: &rows, first, lost: part.lost, joined: false };
        catalogue.volumes.extend(archiver.volumes(stretch).expect("there is room"));
    }
    catalogue.write(&folder).expect("there is room");
    let mut journal = folder.journal(Disk, 1 << 20, Tail { next: catalogue.end(), ..Tail::default() });
    let mut closed = Vec::new();
    for part in journals {
        journal.pass_by(part.lost, &mut closed).expect("there is room");
        journal.write(&records(part).1, &mut closed).expect("there is room");
        closed.extend(journal.close().expect("there is room"));
    }
    journal.pass_by(lost, &mut closed).expect("there is room");
    journal.finish().expect("there is room");
}

/// What a query returned: positions and bytes of records.
pub(crate) type PositionedRecords = Vec<(u64, Vec<u8>)>;

/// Runs a query, and calls `then` when `at` records were returned.
pub(crate) fn ask(
    path: &Path,
    text: &str,
    (from, to): (u64, u64),
    at: usize,
    then: &dyn Fn(),
) -> (PositionedRecords, Sources) {
    let history = History::open(path).expect("it is one");
    let scope = Scope::new(history.schema());
    let expression = scope.parse(text).expect("it means something").dnf(&scope).expect("it is short");
    let needed: Vec<_> = history.schema().iter().map(|(id, _)| id).collect();
    let mut returned = PositionedRecords::new();
    let sources =
        history.each(ArchiveQuery { expression: &expression, from, to, needed: &needed }, &mut |position, record| {
            if returned.len() == at {
                then();
            }
            returned.push((position, record.to_vec()));
            ControlFlow::Continue(())
        });
    (returned, sources.unwrap_or_else(|error| panic!("{error}")))
}

/// Answers that must stay as they are.
fn answers(path: &Path) -> Vec<(PositionedRecords, u64, u64)> {
    let questions = [("true", (0, u64::MAX)), ("key == 3", (0, u64::MAX)), ("key < 2", (DAY / 2, 2 * DAY))];
    let answer = |(text, times)| {
        let (returned, sources) = ask(path, text, times, usize::MAX, &|| ());
        (returned, sources.lost, sources.records)
    };
    questions.into_iter().map(answer).collect()
}

/// All files below a folder, with their bytes.
pub(crate) fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("it is there");
                found.insert(path, bytes);
            }
        }
    }
    found
}

pub(crate) fn is_whole(path: &Path) -> bool {
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    verified.files.iter().all(|file| file.state == State::Closed)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_answers_stay(
        parts in prop::collection::vec(part(), 1..8),
        (journals, lost, indexed) in (0..3usize, 0..3u64, any::<bool>()),
        (most, at) in (4..90u64, any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        write(path, &parts, journals, lost, indexed);
        prop_assert!(is_whole(path));
        let before = answers(path);
        // The origin of times stays, too: the time of the first record.
        let starts = before[0].0.first().and_then(|(_, record)| record.first_chunk().copied().map(u64::from_be_bytes));
        let first = || History::open(path).and_then(|history| history.first()).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(first(), starts);
        let lengths: Vec<_> = Catalogue::read(path).expect("it is whole").stretches().map(records).collect();
        // A query runs while they are joined.
        let at = at.index(before[0].0.len());
        let (returned, sources) = ask(path, "true", (0, u64::MAX), at, &|| {
            let Compacted { before, after, .. } = compact_to(path, most).unwrap_or_else(|error| panic!("{error}"));
            // What was in journals now has checksums beside it, an index, and folders of days.
            assert!(after.files <= before.files || journals > 0, "{before:?} {after:?}");
        });
        prop_assert_eq!(&(returned, sources.lost, sources.records), &before[0]);
        prop_assert_eq!(answers(path), before);
        prop_assert!(is_whole(path) && first() == starts);
        let catalogue = Catalogue::read(path).expect("it is whole");
        let was_there = |count| lengths.contains(&count) || parts.iter().any(|part| part.times.len() as u64 == count);
        let none_is_larger = catalogue.stretches().map(records).all(|count| count <= most || was_there(count));
        prop_assert!(none_is_larger);
        let in_catalogue: usize = catalogue.volumes.iter().map(|entry| entry.ends().count()).sum();
        let in_folder = contents(path).into_keys().filter(|file| ["archive", "beside"].iter().any(|name| file.starts_with(path.join(name)))).count();
        prop_assert_eq!(in_folder, in_catalogue);
        // Journals alone do not name indexes.
        let has = indexed && journals < parts.len();
        prop_assert!(catalogue.volumes.iter().all(|entry| entry.indexes.is_empty() != has));
    }
}

/// Twenty short recordings of a day.
fn short(path: &Path) {
    let parts: Vec<_> = (0..20).map(|part| Part { times: vec![part, part + 1], lost: 0 }).collect();
    write(path, &parts, 5, 0, true);
}

#[test]
fn short_recordings_of_a_day_become_one_volume() {
    let folder = tempfile::tempdir().expect("there is room");
    short(folder.path());
    let Compacted { before, after, .. } = compact(folder.path()).expect("there is room");
    assert_eq!((before.files, after.files), (15 * 3 + 5, 3));
    assert!(after.bytes * 10 < before.bytes, "{before:?} {after:?}");
    let nothing = Compacted { before: after, after, cut: None, kept: Vec::new() };
    assert_eq!(compact(folder.path()).expect("there is room"), nothing);
    let catalogue = Catalogue::read(folder.path()).expect("it is whole");
    assert_eq!(catalogue.volumes[0].name, "date=1970-01-01/00000000000000000000-00000000000000000040");
}

#[test]
fn a_stop_before_or_after_the_catalogue_is_written_loses_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    short(path);
    make_volumes(&Folder::open(path).expect("it is one")).expect("there is room");
    let (answers_before, before) = (answers(path), contents(path));
    compact(path).expect("there is room");
    let after = contents(path);
    let put = |files: &BTreeMap<PathBuf, Vec<u8>>| {
        files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("there is room"));
    };
    // The old files are still there, or the new ones are there already.
    for catalogue in [&after, &before] {
        put(&before);
        put(&after);
        let name = path.join(crate::catalogue::NAME);
        fs::write(&name, &catalogue[&name]).expect("there is room");
        assert_eq!(answers(path), answers_before);
        assert!(is_whole(path));
        compact(path).expect("there is room");
        assert_eq!((answers(path), contents(path)), (answers_before.clone(), after.clone()));
    }
}

#[test]
fn a_query_skips_volumes_that_are_removed_while_it_runs() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    short(path);
    compact_to(path, 8).expect("there is room");
    let (returned, sources) = ask(path, "true", (0, u64::MAX), 10, &|| {
        let keep = Retention { age: Some(6), bytes: None };
        prune_locked(&Folder::open(path).expect("it is one"), keep).expect("there is room");
    });
    let positions: Vec<_> = returned.iter().map(|(position, _)| *position).collect();
    // What was already read is returned, and what stayed.
    let kept = sources.removed..40;
    assert!(kept.start > 16 && positions == (0..16).chain(kept).collect::<Vec<_>>(), "{positions:?}");
    assert!(is_whole(path));
}

#[test]
fn damaged_volumes_stay() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    short(path);
    let victim = Catalogue::read(path).expect("it is whole").volumes[7].path(path, crate::catalogue::PARQUET);
    let mut bytes = fs::read(&victim).expect("it is there");
    bytes[40] ^= 1;
    fs::write(&victim, &bytes).expect("there is room");
    let error = compact(path).expect_err("one is damaged");
    assert!(error.to_string().contains(&victim.display().to_string()), "{error}");
    assert_eq!(fs::read(&victim).expect("it is there"), bytes);
    bytes[40] ^= 1;
    fs::write(&victim, &bytes).expect("there is room");
    assert_eq!(answers(path)[0].0.len(), 40);
}

#[test]
fn verify_works_while_volumes_are_joined() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    short(path);
    let before = answers(path);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            for most in [4, 8, 16, 40] {
                compact_to(path, most).unwrap_or_else(|error| panic!("{error}"));
            }
        });
        loop {
            let last = compacting.is_finished();
            assert_eq!(answers(path)[0], before[0]);
            let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
            // The last journal is open until joining begins.
            let is_whole = |state: &State| *state == State::Closed || (*state == State::Open && !last);
            assert!(verified.files.iter().all(|file| is_whole(&file.state)), "{verified:?}");
            assert_eq!(verified.files.iter().map(|file| file.records).sum::<u64>(), 40);
            if last {
                break;
            }
        }
    });
}
