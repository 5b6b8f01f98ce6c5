//! Records of which some have left memory: each is read once, from the folder or from memory.

use super::{ENOUGH, answer, record, schema};
use queuescope_archive::{Durability, Full, History, Recorder, RecorderOptions, Retention};
use queuescope_fleet::answer::{Asked, Extent, Merging, Partial, Texts};
use queuescope_log::{Log, Number};
use queuescope_recording::query::{Held, PartLimits, Records};
use queuescope_wire::{ByteCount, Distinct};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Records that are appended at once.
const BATCH: u64 = 8192;
/// Records after which some must have left memory: twice what fits.
const MOST: u64 = 16 * Log::BLOCK;
/// Records with the same slot, one after another.
const RUN: u64 = 10;

fn recorder(path: &Path) -> Recorder {
    let options = RecorderOptions {
        // The least: four blocks of records are three eighths of it.
        memory: (4 * Log::BLOCK * schema().record_size() as u64).div_ceil(3) * 8,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 2 * Log::BLOCK,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    Recorder::open(path, schema(), options).unwrap_or_else(|error| panic!("{error}")).0
}

/// Appends records until some have left memory; returns how many there are. Their times are their positions.
fn fill(recorder: &Recorder) -> u64 {
    let mut next = 0;
    while recorder.log().snapshot().first() == 0 {
        assert!(next < MOST, "{next} records are in memory");
        let batch: Vec<_> = (next..next + BATCH)
            .map(|at| record([at.into(), 0, (at / RUN % 500).into(), (at % 7).into(), 0, 0, 0, at.into()]))
            .collect();
        assert_eq!(recorder.append(&batch.concat()).expect("it can be written").refused, 0);
        next += BATCH;
    }
    next
}

/// A folder, of which some records are in memory, and another process's view of it.
#[test]
fn distinct_values_of_a_folder_are_those_of_its_records() {
    let temporary = tempfile::tempdir().expect("there is room");
    let recorder = recorder(temporary.path());
    let next = fill(&recorder);
    let texts = Texts { select: "distinct(at),distinct(slot),distinct(length)", ..Texts::default() };
    let asked = Asked::new(&texts, schema()).expect("it is valid");
    let of_agent = answer(&asked, Records::Recorder(&recorder), Extent::default(), ENOUGH);
    let values = |part: &Partial| {
        let mut merging = Merging::new(&asked);
        merging.add(part).expect("it is a part");
        merging.finish().groups[0].1.iter().map(|value| value.to_f64()).collect::<Vec<_>>()
    };
    let found = values(&of_agent);
    assert!((found[0] / next as f64 - 1.0).abs() < 5.0 * Distinct::STANDARD_ERROR, "{found:?} of {next}");
    assert_eq!(found[1..], [500.0, 7.0]);
    recorder.finish().expect("it can be written");
    let history = Held::Folder(Box::new(History::open(temporary.path()).expect("it is whole")));
    let of_folder = answer(&asked, Records::Held(&history), Extent::default(), ENOUGH);
    assert_eq!(of_folder.groups, of_agent.groups);
    assert_eq!(values(&of_folder), found);
}

fn asked(group: &str) -> Asked {
    let texts = Texts { select: "count,sum(bytes),max(at)", expression: "length < 6B", group, top: None };
    Asked::new(&texts, schema()).unwrap_or_else(|error| panic!("{error}"))
}

/// What all records of a range of positions give together, one by one.
fn expected(positions: std::ops::Range<u64>) -> [Number; 3] {
    let matching = || positions.clone().filter(|at| at % 7 < 6);
    let max = matching().max().expect("there are some");
    [matching().count() as u128, matching().map(u128::from).sum(), max.into()].map(Number::Unsigned)
}

fn expected_count(end: u64) -> u64 {
    (0..end).filter(|at| at % 7 < 6).count() as u64
}

fn total(asked: &Asked, part: &Partial) -> Vec<Number> {
    let mut merging = Merging::new(asked);
    merging.add(part).expect("it is a part of this answer");
    merging.finish().groups.remove(0).1
}

#[test]
fn records_that_left_memory_are_read_from_the_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    let recorder = recorder(folder.path());
    let count = fill(&recorder);
    let first = recorder.position(recorder.log().snapshot().first());
    assert!(first > 0 && first < count);
    let of_all = asked("");
    let by_port = asked("slot,delta");
    // Ends in the folder, at the border, in memory, and behind all.
    for before in [first / 2, first, (first + count) / 2, count, count + 10] {
        let extent = Extent { before: Some(before), ..Extent::default() };
        let end = before.min(count);
        let part = answer(&of_all, Records::Recorder(&recorder), extent, ENOUGH);
        assert_eq!((total(&of_all, &part)[..].to_vec(), part.records), (expected(0..end).to_vec(), end), "{before}");
        assert_eq!(part.damage, None);
    }
    // In one pass and, with little memory, in several.
    let groups = answer(&by_port, Records::Recorder(&recorder), Extent::default(), ENOUGH);
    let little = PartLimits { memory: ByteCount(60_000), ..ENOUGH };
    assert_eq!(answer(&by_port, Records::Recorder(&recorder), Extent::default(), little), groups);
    assert_eq!((groups.packets, groups.groups.len()), (expected_count(count), 500));
    let some = Extent { from: first - 5, to: first + 5, before: None };
    let part = answer(&of_all, Records::Recorder(&recorder), some, ENOUGH);
    assert_eq!(total(&of_all, &part), expected(first - 5..first + 5));

    // Memory alone lacks them, and says how many.
    let part = answer(&of_all, Records::Log(recorder.log()), Extent::default(), ENOUGH);
    let first = recorder.log().snapshot().first();
    assert_eq!(total(&of_all, &part), expected(first..count));
    assert!(
        part.notes.iter().any(|note| note.ends_with("earlier packets are no longer in memory")),
        "{:?}",
        part.notes
    );

    // The same from the folder, once it is finished.
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    let held = Held::Folder(Box::new(History::open(folder.path()).unwrap_or_else(|error| panic!("{error}"))));
    for before in [None, Some(count / 3)] {
        let extent = Extent { before, ..Extent::default() };
        let part = answer(&of_all, Records::Held(&held), extent, ENOUGH);
        assert_eq!(total(&of_all, &part), expected(0..before.unwrap_or(count)));
    }
}

#[test]
fn an_answer_from_a_folder_ends_when_it_is_no_longer_wanted() {
    let folder = tempfile::tempdir().expect("there is room");
    let recorder = recorder(folder.path());
    fill(&recorder);
    for asked in [asked(""), asked("slot")] {
        // At once, and after some batches.
        for wanted in [0, 3] {
            let looks = AtomicUsize::new(0);
            let go_on = || looks.fetch_add(1, Ordering::Relaxed) < wanted;
            let ended = asked.evaluate(Records::Recorder(&recorder), Extent::default(), ENOUGH, &go_on);
            assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::Interrupted));
            assert_eq!(looks.into_inner(), wanted + 1, "nothing is read once it is over");
        }
    }
}

#[test]
fn damage_of_a_folder_is_in_its_part() {
    let folder = tempfile::tempdir().expect("there is room");
    let recorder = recorder(folder.path());
    let _ = recorder.append(&record([1; 8]).repeat(100)).expect("it can be written");
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    let held = Held::Folder(Box::new(History::open(folder.path()).unwrap_or_else(|error| panic!("{error}"))));
    let volume = volume(folder.path()).expect("there is a volume");
    std::fs::write(&volume, b"PAR1").expect("it can be written");
    let part = answer(&asked("slot"), Records::Held(&held), Extent::default(), ENOUGH);
    assert!(part.groups.is_empty());
    assert!(part.damage.is_some_and(|damage| damage.contains("parquet")));
}

/// A volume in a folder or below it.
fn volume(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is there").path());
    let is_volume = |path: &PathBuf| path.extension().is_some_and(|end| end == "parquet");
    entries.into_iter().find_map(|path| if path.is_dir() { volume(&path) } else { Some(path).filter(is_volume) })
}
