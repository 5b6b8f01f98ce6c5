//! The records read from a folder are those that were recorded, whatever happened in between.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::{numbers, read};
use proptest::prelude::*;
use queuescope_archive::definitions as archived;
use queuescope_archive::{Durability, FolderError, Full, Recorder, RecorderOptions, Retention, Sources, State, verify};
use queuescope_log::{Definitions, Log, Schema};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

const SCHEMA: &str = "name = \"numbered\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n[[attribute]]\nname = \"rest\"\nkind = \"bytes3\"\n";
const SIZE: usize = 7;

fn schema() -> Schema {
    Schema::parse("numbered.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"))
}

fn records(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(|number| number.to_be_bytes().into_iter().chain([number as u8 ^ 0x5a; 3])).collect()
}

fn options(durability: Durability, journal_records: u64) -> RecorderOptions {
    RecorderOptions {
        memory: 1 << 23,
        full: Full::Wait,
        durability,
        journal_records,
        archive: false,
        indexes: Vec::new(),
        keep: Retention::default(),
    }
}

/// Records these numbers in batches of changing size, some of them empty.
fn record(path: &Path, numbers: std::ops::Range<u32>, options: RecorderOptions) {
    let (recorder, recovery) = Recorder::open(path, &schema(), options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((recovery.records, recovery.cut), (u64::from(numbers.start), None));
    let mut next = numbers.start;
    while next < numbers.end {
        let end = numbers.end.min(next + 1 + next % 900);
        assert_eq!(recorder.append(&records(next..end)).unwrap_or_else(|error| panic!("{error}")).refused, 0);
        next = end;
    }
    assert_eq!(finish(recorder), u64::from(numbers.end));
}

fn finish(recorder: Recorder) -> u64 {
    recorder.finish().unwrap_or_else(|error| panic!("{error}")).records
}

fn all(log: &Log) -> Vec<u8> {
    let snapshot = log.snapshot();
    snapshot.records(0..snapshot.len()).to_vec()
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(path)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path())
        .filter(|path| path.extension().is_some_and(|end| end == "journal"))
        .collect();
    found.sort();
    found
}

#[test]
fn what_was_recorded_is_read() {
    for durability in [Durability::Relaxed, Durability::Written, Durability::Synced] {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("log");
        // Files of some thousand records, in three recordings.
        record(&path, 0..40_000, options(durability, 4000));
        record(&path, 40_000..40_000, options(durability, 4000));
        record(&path, 40_000..50_000, options(durability, 1 << 30));
        let (found, sources) = read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(found == records(0..50_000));
        assert_eq!(sources, Sources { records: 50_000, from_journals: 50_000, ..Sources::default() });
        let verified = verify(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(verified.files.len() > 5 && verified.files.iter().all(|file| file.state == State::Closed));
        assert_eq!(verified.files.iter().map(|file| file.records).sum::<u64>(), 50_000);
    }
}

#[test]
fn a_reader_works_while_many_writers_record() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    let (recorder, _) =
        Recorder::open(path, &schema(), options(Durability::Written, 15_000)).unwrap_or_else(|error| panic!("{error}"));
    let each = 30_000u32;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4u32)
            .map(|writer| {
                let recorder = &recorder;
                scope.spawn(move || {
                    for start in (0..each).step_by(100) {
                        let start = writer * each + start;
                        let appended = recorder.append(&records(start..start + 100)).expect("the disk has room");
                        assert_eq!(appended.refused, 0);
                    }
                })
            })
            .collect();
        let mut before = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            let (now, _) = read(path).unwrap_or_else(|error| panic!("{error}"));
            assert!(now.len() >= before && now.len().is_multiple_of(SIZE));
            before = now.len();
            // The folder has its records in the order of the log.
            assert!(all(recorder.log()).starts_with(&now));
        }
    });
    let log = all(recorder.log());
    assert_eq!(finish(recorder), u64::from(4 * each));
    assert_eq!(read(path).expect("it is whole").0, log);
}

#[test]
fn one_process_records_at_a_time() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = options(Durability::Relaxed, 1 << 20);
    let (recorder, _) = Recorder::open(folder.path(), &schema(), options.clone()).expect("it is empty");
    let second = Recorder::open(folder.path(), &schema(), options.clone());
    assert!(matches!(second, Err(FolderError::Busy(_))), "{second:?}");
    // Readers are allowed.
    assert!(read(folder.path()).is_ok());
    drop(recorder);
    assert!(Recorder::open(folder.path(), &schema(), options).is_ok());
}

#[test]
fn folders_without_a_log_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = options(Durability::Relaxed, 1 << 20);
    let error = |result: Result<_, FolderError>| result.map(|_: ()| ()).unwrap_err().to_string();
    let reading = |path: &Path| error(read(path).map(|_| ()));
    let recording = |schema: &Schema| error(Recorder::open(folder.path(), schema, options.clone()).map(|_| ()));
    assert!(reading(&folder.path().join("nowhere")).contains("not a log: there is no log.toml"));
    fs::write(folder.path().join("letter.txt"), "dear").expect("there is room");
    assert!(recording(&schema()).contains("it holds letter.txt"));
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1, "a refused folder is left as it was");
    fs::remove_file(folder.path().join("letter.txt")).expect("it is there");
    record(folder.path(), 0..10, options.clone());
    // The other schema has larger records.
    let options = RecorderOptions { memory: 1 << 26, ..options.clone() };
    let other = error(Recorder::open(folder.path(), Schema::ethernet_tcp(), options).map(|_| ()));
    assert!(other.contains("'numbered', not of 'ethernet-tcp'"), "{other}");
    fs::write(folder.path().join("log.toml"), "format = 7").expect("there is room");
    assert!(
        reading(folder.path())
            .contains("has format 7, and this version of queuescope reads format 1: use a newer version")
    );
    fs::write(folder.path().join("log.toml"), "format = ").expect("there is room");
    assert!(reading(folder.path()).contains("log.toml cannot be read"));
}

#[test]
fn an_unwritable_folder_is_an_error() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("there is room");
    let error = Recorder::open(&file, &schema(), options(Durability::Relaxed, 1)).map(|_| ()).unwrap_err();
    assert!(matches!(error, FolderError::Io { .. }), "{error}");
    assert!(error.to_string().contains("file"), "{error}");
}

/// A folder with several journals, of which the last was not closed.
fn left(path: &Path, count: u32) -> Vec<u8> {
    record(path, 0..count, options(Durability::Relaxed, 280));
    let files = files(path);
    let last = files.last().expect("there is one");
    let bytes = fs::read(last).expect("it is there");
    // Without its closing frame.
    fs::write(last, &bytes[..bytes.len() - 32]).expect("there is room");
    fs::read(last).expect("it is there")
}

#[test]
fn a_torn_end_is_cut_off_wherever_it_is_torn() {
    let whole = tempfile::tempdir().expect("there is room");
    let bytes = left(whole.path(), 1500);
    let last = files(whole.path()).pop().expect("there is one");
    let before =
        verify(whole.path()).expect("it is whole").files.iter().rev().skip(1).map(|file| file.records).sum::<u64>();
    for length in 0..bytes.len() {
        fs::write(&last, &bytes[..length]).expect("there is room");
        let (now, sources) = read(whole.path()).unwrap_or_else(|error| panic!("{length}: {error}"));
        assert!(now.len() / SIZE >= before as usize && records(0..1500).starts_with(&now), "{length}");
        // A file without a whole frame is removed.
        let kept = sources.torn.as_ref().map_or(length as u64, |torn| torn.offset);
        assert_eq!(sources.torn.map_or(0, |torn| torn.bytes), length as u64 - kept);
        if length % 97 == 0 {
            let (recorder, recovery) =
                Recorder::open(whole.path(), &schema(), options(Durability::Written, 280)).expect("torn ends are cut");
            assert_eq!(recovery.records as usize, now.len() / SIZE);
            assert_eq!(recovery.cut.map(|cut| cut.bytes).unwrap_or(0), length as u64 - kept);
            let next = recovery.records as u32;
            let appended = recorder.append(&records(next..next + 50)).expect("there is room");
            assert_eq!(appended.refused, 0);
            assert_eq!(finish(recorder), u64::from(next) + 50);
            assert_eq!(read(whole.path()).expect("it is whole").0, records(0..next + 50));
            for path in files(whole.path()) {
                if path > last {
                    fs::remove_file(path).expect("it is there");
                }
            }
        }
    }
}

#[test]
fn a_journal_without_a_whole_record_is_read_and_verified_alike() {
    let folder = tempfile::tempdir().expect("there is room");
    record(folder.path(), 0..0, options(Durability::Relaxed, 280));
    // The fuzz target `folder` found the first: shorter than a record.
    for bytes in [&b"["[..], b"QSJ", b"QSJOURN2", &[0; 40]] {
        fs::write(folder.path().join("00000000000000000000.journal"), bytes).expect("there is room");
        let (found, sources) = read(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let torn = sources.torn.expect("nothing of it is whole");
        assert_eq!((found.len(), torn.offset, torn.bytes), (0, 0, bytes.len() as u64));
        assert_eq!(verified.files.last().map(|file| &file.state), Some(&State::Torn(torn)));
    }
}

#[test]
fn a_file_with_another_name_among_journals_does_not_hide_them() {
    let folder = tempfile::tempdir().expect("there is room");
    record(folder.path(), 0..300, options(Durability::Relaxed, 280));
    let stray = folder.path().join("other.journal");
    fs::write(&stray, "x").expect("there is room");
    let (found, sources) = read(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found, sources.torn.map(|torn| torn.path)), (records(0..300), Some(stray.clone())));
    fs::remove_file(&stray).expect("it is there");
    for link in [stray, folder.path().join("00000000000000000300.journal")] {
        std::os::unix::fs::symlink("nowhere", &link).expect("there is room");
        let error = read(folder.path()).map(|(found, _)| found.len()).expect_err("it is not a journal");
        assert!(matches!(&error, FolderError::Damaged(damage) if damage.path == link), "{error}");
        fs::remove_file(&link).expect("it is there");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_flipped_bit_is_found(file in any::<prop::sample::Index>(), bit in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().expect("there is room");
        record(folder.path(), 0..1200, options(Durability::Relaxed, 280));
        let files = files(folder.path());
        let path = file.get(&files);
        let mut bytes = fs::read(path).expect("it is there");
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(path, bytes).expect("there is room");
        let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        prop_assert!(verified.files.iter().any(|file| file.state != State::Closed), "bit {} of {}", bit, path.display());
        // What is read is the beginning, or nothing, but never something else.
        match read(folder.path()) {
            Ok((found, sources)) => prop_assert!(sources.torn.is_some() && records(0..1200).starts_with(&found)),
            Err(FolderError::Damaged(damage)) => prop_assert_eq!(&damage.path, path),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

#[test]
fn any_flipped_bit_of_a_schema_is_found() {
    let folder = tempfile::tempdir().expect("there is room");
    record(folder.path(), 0..100, RecorderOptions { archive: true, ..options(Durability::Relaxed, 280) });
    for name in ["schema.toml", "log.toml"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).expect("it is there");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, bytes).expect("there is room");
            assert!(verify(folder.path()).is_err() && read(folder.path()).is_err(), "bit {bit} of {name}");
        }
        fs::write(&path, whole).expect("there is room");
    }
    verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn any_flipped_bit_of_definitions_is_found_or_changes_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let text = "[[aggregate]]\nname = \"all\"\nfunction = \"sum(number)\"\n";
    let definitions = Definitions::parse("d.toml", text, &schema()).unwrap_or_else(|error| panic!("{error}"));
    let (mut recorder, _) =
        Recorder::open(folder.path(), &schema(), options(Durability::Relaxed, 280)).expect("there is room");
    recorder.define(&definitions).unwrap_or_else(|error| panic!("{error}"));
    finish(recorder);
    // As a killed process leaves it.
    fs::remove_file(folder.path().join("aggregates.json")).expect("it is there");
    let path = folder.path().join("definitions.toml");
    let (whole, mut found) = (fs::read(&path).expect("it is there"), 0);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).expect("there is room");
        let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        if verified.files.iter().any(|file| matches!(file.state, State::Damaged(_))) {
            found += 1;
        } else {
            assert_eq!(archived(folder.path()).expect("they are whole").text(), definitions.text(), "bit {bit}");
        }
    }
    assert!(found > (whole.len() - 9) * 8, "{found} of {}", whole.len() * 8);
}

#[test]
fn a_missing_file_is_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    record(folder.path(), 0..40_000, options(Durability::Written, 2800));
    let files = files(folder.path());
    assert!(files.len() > 3);
    fs::remove_file(&files[1]).expect("it is there");
    let Err(FolderError::Damaged(damage)) = read(folder.path()) else { panic!("a file is missing") };
    assert_eq!(damage.path, files[2]);
    assert!(damage.why.contains("records are missing"), "{damage}");
    // The same without the first file.
    fs::remove_file(&files[0]).expect("it is there");
    assert!(read(folder.path()).is_err());
}

#[test]
fn volumes_of_a_journal_fit_memory_that_is_less_than_it_was() {
    let folder = tempfile::tempdir().expect("there is room");
    // The least memory, and the part of it that is for the records of a volume.
    let least = (4 * Log::BLOCK * SIZE as u64).div_ceil(3) * 8;
    let most = least / 8 * 3 / (SIZE as u64 + 128);
    let count = (3 * most + most / 2) as u32;
    record(folder.path(), 0..count, RecorderOptions { memory: 8 * least, ..options(Durability::Relaxed, 1 << 20) });
    assert_eq!(files(folder.path()).len(), 1);
    let small = RecorderOptions { memory: least, archive: true, ..options(Durability::Relaxed, 1 << 20) };
    record(folder.path(), count..count, small);
    let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let records_of: Vec<_> = verified.files.iter().map(|file| file.records).collect();
    assert_eq!(records_of, [most, most, most, u64::from(count) - 3 * most]);
    assert!(verified.files.iter().all(|file| file.is_volume() && file.lost == 0));
    assert!(read(folder.path()).expect("it is whole").0 == records(0..count));
}

#[test]
fn a_schema_with_other_descriptions_is_the_same() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let old =
        "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\naliases = [\"n\"]\ndoc = \"old\"\n";
    let parsed = |text: &str| Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let record = |schema: &Schema| {
        let (mut recorder, _) = Recorder::open(&path, schema, numbers::options(Durability::Written))?;
        // Those of the folder, whose schema has the old text.
        let definitions = queuescope_archive::definitions(&path)?;
        recorder.define(&definitions)?;
        numbers::append(&recorder, 0..10);
        Ok::<_, FolderError>(recorder.finish().expect("there is room").records)
    };
    assert_eq!(record(&parsed(old)).expect("it is new"), 10);
    let described = format!("# Numbers.\ndoc = \"all of them\"\n{}", old.replace("old", "new"));
    assert_eq!(record(&parsed(&described)).expect("it is the same"), 20);
    assert_eq!(fs::read_to_string(path.join("schema.toml")).expect("it is there"), old);
    assert_eq!(verify(&path).expect("it is whole").schema.text(), old);
    for (from, to) in
        [("u32", "i32"), ("\"n\"", "\"m\""), ("\"number\"", "\"count\""), ("kind", "order = \"little\"\nkind")]
    {
        let error = record(&parsed(&old.replacen(from, to, 1))).expect_err("it has another meaning");
        assert!(matches!(error, FolderError::OtherSchema { .. }), "{error}");
    }
}
