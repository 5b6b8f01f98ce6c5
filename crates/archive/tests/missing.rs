//! Missing and damaged files of a folder are reported before anything is written behind them, and intact files are reported, too.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::{files, read};
use queuescope_archive::{
    Durability, FolderError, Full, Recorder, RecorderOptions, Retention, State, aggregates, compact, definitions,
    prune, verify,
};
use queuescope_log::{Definitions, Number, Schema};
use std::fs;
use std::path::Path;

const SCHEMA: &str = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
const DEFINED: &str = "[[aggregate]]\nname = \"sum\"\nfunction = \"sum(number)\"\n";

fn schema() -> Schema {
    Schema::parse("numbers.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path) -> Result<Recorder, FolderError> {
    let options = RecorderOptions {
        memory: 1 << 23,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 100,
        archive: true,
        indexes: vec![schema().find("number").expect("it is there")],
        keep: Retention::default(),
    };
    Recorder::open(path, &schema(), options).map(|(recorder, _)| recorder)
}

/// Records a hundred more numbers, and computes their sum.
fn record(path: &Path, from: u32) -> Recorder {
    let mut recorder = open(path).unwrap_or_else(|error| panic!("{error}"));
    let wanted = Definitions::parse("wanted.toml", DEFINED, &schema()).unwrap_or_else(|error| panic!("{error}"));
    recorder.define(&wanted).unwrap_or_else(|error| panic!("{error}"));
    let records: Vec<u8> = (from..from + 100).flat_map(u32::to_be_bytes).collect();
    assert_eq!(recorder.append(&records).expect("there is room").refused, 0);
    recorder
}

/// A folder of three volumes.
fn three(path: &Path) {
    for from in [0, 100, 200] {
        assert_eq!(record(path, from).finish().expect("there is room").records, u64::from(from) + 100);
    }
}

fn sum(of: u64) -> Vec<(String, Number)> {
    vec![("sum".to_owned(), Number::Unsigned(u128::from(of * (of - 1) / 2)))]
}

#[test]
fn nothing_is_written_behind_a_damaged_volume() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    three(path);
    let all = files(path);
    assert_eq!(all.len(), 9);
    for file in &all {
        let bytes = fs::read(file).expect("it is there");
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        let is_sums = file.extension().is_some_and(|end| end == "sums");
        // Bytes of files other than checksums are checked when they are read.
        let wrong = [None, Some(bytes[..bytes.len() - 1].to_vec()), is_sums.then_some(flipped)];
        for (number, wrong) in wrong.into_iter().enumerate().filter(|(number, wrong)| *number < 2 || wrong.is_some()) {
            match wrong {
                Some(bytes) => fs::write(file, bytes).expect("there is room"),
                None => fs::remove_file(file).expect("it is there"),
            }
            let errors =
                [open(path).map(drop).expect_err("it is damaged"), compact(path).map(drop).expect_err("it is")];
            for error in errors {
                assert!(matches!(&error, FolderError::NotWhole { damage, .. } if damage.path == *file), "{error}");
                let message = error.to_string();
                assert!(message.contains("log verify") && message.contains("log keep"), "{message}");
                assert!(number > 0 || message.contains("it is not there"), "{message}");
            }
            // It is reported for its volume, and the others are checked.
            let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
            let damaged: Vec<_> =
                verified.files.iter().filter(|file| matches!(&file.state, State::Damaged(_))).collect();
            assert!(verified.files.len() == 3 && damaged.len() == 1 && verified.end == 300, "{verified:?}");
            assert!(matches!(&damaged[0].state, State::Damaged(damage) if damage.path == *file), "{damaged:?}");
            assert_eq!(verified.files.iter().map(|file| file.records).sum::<u64>(), 200);
            fs::write(file, &bytes).expect("there is room");
        }
    }
    assert_eq!(read(path).expect("it is whole").0.len(), 300 * 4);
    record(path, 300).finish().expect("it is whole");
}

#[test]
fn damaged_volumes_can_be_pruned() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    three(path);
    let left: u64 = verify(path).expect("it is whole").files[1..].iter().map(|file| file.bytes).sum();
    for file in files(path).iter().filter(|file| file.to_string_lossy().contains("/00000000000000000000.")) {
        fs::remove_file(file).expect("it is there");
    }
    let taken = prune(path, Retention { age: None, bytes: Some(left) }).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((taken.volumes, taken.records, taken.left), (1, 100, left));
    assert!(verify(path).expect("it is a log").files.iter().all(|file| file.state == State::Closed));
    assert_eq!(record(path, 300).finish().expect("the rest is whole").records, 300);
}

#[test]
fn lost_definitions_are_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    drop(open(path).expect("it is new"));
    // Every folder has definitions.
    assert!(definitions(path).expect("they are there").is_empty());
    three(path);
    let file = path.join("definitions.toml");
    let text = fs::read(&file).expect("it is there");
    fs::remove_file(&file).expect("it is there");
    let errors = [definitions(path).map(drop), open(path).map(drop), aggregates(path, 300).map(drop)];
    for error in errors.map(|result| result.expect_err("they are lost")) {
        assert!(matches!(&error, FolderError::NoDefinitions(of) if *of == file), "{error}");
    }
    assert!(!file.exists() && path.join("aggregates.json").exists(), "nothing takes their place");
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(verified.files.iter().any(|found| found.path == file && matches!(found.state, State::Damaged(_))));
    // Reading records does not need them.
    assert_eq!(read(path).expect("they are whole").0.len(), 300 * 4);
    fs::write(&file, text).expect("there is room");
    assert_eq!(aggregates(path, 300).expect("it is whole").values, sum(300));
    // A file that says so explicitly has none.
    fs::write(&file, "# crc32 none\n").expect("there is room");
    assert!(open(path).is_ok() && definitions(path).expect("there are none").is_empty());
}

#[test]
fn emptied_or_truncated_definitions_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    three(path);
    let file = path.join("definitions.toml");
    let whole = fs::read_to_string(&file).expect("it is there");
    let (seal, rest) = whole.split_once('\n').expect("it has lines");
    let cut = (0..whole.len()).map(|length| whole[..length].to_owned());
    let others =
        [rest.to_owned(), "\n".to_owned(), "\0".repeat(whole.len()), format!("{seal}\n"), format!("{seal}\n{rest}\n")];
    for wrong in cut.chain(others) {
        fs::write(&file, &wrong).expect("there is room");
        let errors = [definitions(path).map(drop), open(path).map(drop), compact(path).map(drop)];
        for error in errors.map(|result| result.expect_err("it is not as it was written").to_string()) {
            assert!(error.contains("definitions.toml is damaged") && error.contains("# crc32 none"), "{error}");
        }
        let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
        assert!(verified.files.iter().any(|found| found.path == file && matches!(found.state, State::Damaged(_))));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), wrong, "nothing takes its place");
    }
    // The same if the folder is being recorded to.
    fs::write(&file, &whole).expect("there is room");
    let mut recorder = open(path).unwrap_or_else(|error| panic!("{error}"));
    fs::write(&file, "").expect("there is room");
    let none = Definitions::new(&schema());
    assert!(recorder.define(&none).is_err() && fs::read(&file).expect("it is there").is_empty());
    drop(recorder);
    // By hand: the changed definitions count, and the next recorder seals them again.
    fs::write(&file, format!("# crc32 none\n{rest}")).expect("there is room");
    assert_eq!(aggregates(path, 300).expect("it is whole").values, sum(300));
    record(path, 300).finish().expect("it is whole");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), whole);
}

#[test]
fn definitions_of_another_folder_are_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, other) = (folder.path().join("log"), folder.path().join("other"));
    three(&path);
    open(&other).expect("it is new").finish().expect("there is room");
    let (file, kept) = (path.join("definitions.toml"), path.join("aggregates.json"));
    let (own, aggregates_of_own) = (fs::read(&file).expect("it is there"), fs::read(&kept).expect("it is there"));
    fs::copy(other.join("definitions.toml"), &file).expect("there is room");
    let foreign = fs::read(&file).expect("it is there");
    let all = files(&path);
    let damaged = |path: &Path| {
        let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
        verified.files.iter().any(|found| found.path == file && matches!(found.state, State::Damaged(_)))
    };
    for _ in 0..2 {
        let error = open(&path).map(drop).expect_err("they are of another folder").to_string();
        assert!(
            error.contains("definitions.toml is damaged: the saved aggregates are of other definitions"),
            "{error}"
        );
        assert!(error.contains("# crc32 none") && damaged(&path), "{error}");
        assert_eq!(files(&path), all);
        assert_eq!(fs::read(&file).expect("it is there"), foreign);
        assert_eq!(fs::read(&kept).expect("it is there"), aggregates_of_own);
    }
    // The original definitions are accepted.
    fs::write(&file, &own).expect("there is room");
    assert!(!damaged(&path));
    assert_eq!(record(&path, 300).finish().expect("it is whole").records, 400);
    // So are definitions that somebody changed by hand.
    fs::write(&file, "# crc32 none\n").expect("there is room");
    assert!(!damaged(&path));
    drop(open(&path).unwrap_or_else(|error| panic!("{error}")));
    // Without the saved aggregates nothing shows that they are of another folder.
    fs::write(&file, foreign).expect("there is room");
    fs::remove_file(&kept).expect("it is there");
    drop(open(&path).unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn volumes_that_an_older_catalogue_does_not_list_stay() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    let catalogue = path.join("catalogue.jsonl");
    record(path, 0).finish().expect("there is room");
    let old = fs::read(&catalogue).expect("it is there");
    for from in [100, 200] {
        record(path, from).finish().expect("there is room");
    }
    let (new, all) = (fs::read(&catalogue).expect("it is there"), files(path));
    // Yesterday's copy in place of the catalogue.
    fs::write(&catalogue, old).expect("there is room");
    let errors = [open(path).map(drop), compact(path).map(drop)];
    for error in errors.map(|result| result.expect_err("it is an old one").to_string()) {
        assert!(error.contains("catalogue.jsonl is damaged: it does not list "), "{error}");
    }
    let verified = verify(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(verified.files.iter().any(|found| found.path == catalogue && matches!(found.state, State::Damaged(_))));
    assert_eq!(files(path), all);
    fs::write(&catalogue, new).expect("there is room");
    assert_eq!(read(path).expect("it is whole").0.len(), 300 * 4);
    assert_eq!(record(path, 300).finish().expect("it is whole").records, 400);
}

#[test]
fn definitions_of_a_log_without_its_manifest_are_not_replaced() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    let mut recorder = open(path).unwrap_or_else(|error| panic!("{error}"));
    let wanted = Definitions::parse("wanted.toml", DEFINED, &schema()).unwrap_or_else(|error| panic!("{error}"));
    recorder.define(&wanted).unwrap_or_else(|error| panic!("{error}"));
    drop(recorder);
    let text = fs::read(path.join("definitions.toml")).expect("it is there");
    fs::remove_file(path.join("log.toml")).expect("it is there");
    let error = open(path).map(drop).expect_err("it is not a log").to_string();
    assert!(error.contains("log.toml is damaged: it is not there, and the rest of a log is; put a copy"), "{error}");
    assert_eq!(fs::read(path.join("definitions.toml")).expect("it is there"), text);
}

#[test]
fn a_missing_file_of_every_log_is_named() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    three(path);
    for (name, without) in [("log.toml", true), ("schema.toml", true), ("catalogue.jsonl", false)] {
        let file = path.join(name);
        let bytes = fs::read(&file).expect("it is there");
        if without { fs::remove_file(&file) } else { fs::write(&file, "") }.expect("there is room");
        let why = if without { "it is not there, and the rest of a log is" } else { "it is empty, so nothing says" };
        for error in [open(path).map(drop), verify(path).map(drop)].map(|result| result.expect_err("it is not whole")) {
            let message = error.to_string();
            assert!(
                message.contains(&format!("{name} is damaged: {why}")) && message.contains("put a copy"),
                "{message}"
            );
        }
        fs::write(&file, bytes).expect("there is room");
    }
    assert_eq!(read(path).expect("it is whole").0.len(), 300 * 4);
    // Without any file of a log, a folder is not a log.
    let error = verify(&path.join("nowhere")).map(drop).expect_err("it is not there").to_string();
    assert!(error.contains("is not a log: there is no log.toml in it"), "{error}");
}

#[test]
fn parents_of_a_folder_are_not_made() {
    let folder = tempfile::tempdir().expect("there is room");
    let missing = folder.path().join("no");
    let error = open(&missing.join("such/log")).map(drop).expect_err("there is no folder").to_string();
    assert!(error.contains(&format!(": there is no folder {}; make it first", missing.display())), "{error}");
    assert!(!missing.exists());
    drop(open(&missing).expect("it is new"));
}

#[test]
fn definitions_in_a_folder_without_a_log_are_left_as_they_are() {
    let folder = tempfile::tempdir().expect("there is room");
    fs::write(folder.path().join("definitions.toml"), DEFINED).expect("there is room");
    let error = open(folder.path()).map(drop).expect_err("it holds something");
    assert!(error.to_string().contains("it holds definitions.toml"), "{error}");
}

#[test]
fn aggregates_are_computed_again() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path();
    three(path);
    let file = path.join("aggregates.json");
    let kept = aggregates(path, 300).expect("it is whole");
    assert!(kept.kept && kept.values == sum(300));
    let bytes = fs::read(&file).expect("it is there");
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    for (from, wrong) in [(300, flipped), (400, b"{".to_vec()), (500, Vec::new())] {
        fs::write(&file, wrong).expect("there is room");
        let known = aggregates(path, u64::from(from)).expect("records are whole");
        assert!(!known.kept && known.values == sum(u64::from(from)));
        let recorder = record(path, from);
        assert_eq!(recorder.worked_out_again().map(|damage| &damage.path), Some(&file));
        recorder.finish().expect("there is room");
        let known = aggregates(path, u64::from(from) + 100).expect("it is whole");
        assert!(known.kept && known.values == sum(u64::from(from) + 100));
    }
    // A killed process saved none, and nothing is wrong with that.
    fs::remove_file(&file).expect("it is there");
    assert!(!aggregates(path, 600).expect("records are whole").kept);
    assert_eq!(record(path, 600).worked_out_again(), None);
}
