//! Uses any bytes as one of the files of a folder. What can be read is what verification reports, and incomplete data
//! is reported. The first byte selects the file, and whether the folder is recorded to: then missing records stay
//! known, and complete records are in the log or set aside.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_archive::{
    ArchiveQuery, Durability, FolderError, Full, History, Recorder, RecorderOptions, Recovery, Retention, State, Uploads,
    Verified, aggregates, definitions, prune, verify,
};
use queuescope_log::{Dnf, Schema};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const SCHEMA: &str = "name = \"fuzzed\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
const CATALOGUE: &str = "catalogue.jsonl";
const JOURNAL: &str = "00000000000000000000.journal";

/// A folder without records, and its catalogue.
static FOLDER: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("queuescope-fuzz-{}", std::process::id()));
    open(&folder).expect("there is room").0.finish().expect("there is room");
    let catalogue = fs::read(folder.join(CATALOGUE)).expect("it was written");
    (folder, catalogue)
});

fn open(folder: &Path) -> Result<(Recorder, Recovery), FolderError> {
    let schema = Schema::parse("fuzzed.toml", SCHEMA).expect("it is right");
    let options = RecorderOptions {
        memory: 1 << 24,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 1000,
        archive: false,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    Recorder::open(folder, &schema, options)
}

fuzz_target!(|data: &[u8]| {
    let (folder, catalogue) = &*FOLDER;
    let Some((which, data)) = data.split_first() else { return };
    match which % 10 {
        0 => journal(data),
        1 => {
            fs::write(folder.join(CATALOGUE), data).expect("there is room");
            let _ = (verify(folder), read());
            fs::write(folder.join(CATALOGUE), catalogue).expect("there is room");
        }
        2 => {
            let path = folder.join("aggregates.json");
            fs::write(&path, data).expect("there is room");
            let _ = (verify(folder), aggregates(folder, 0));
            fs::remove_file(path).expect("it is there");
        }
        6 => with("lock", data, record),
        7 => {
            let numbers =
                data.chunks(8).map(|number| number.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)));
            let numbers: Vec<_> = numbers.chain([0; 2]).take(2).map(|number| format!("{number:020}")).collect();
            let numbers = numbers.join(" ");
            with("lock", format!("{numbers} {:010}\n", crc32fast::hash(numbers.as_bytes())).as_bytes(), record);
        }
        8 => with(JOURNAL, data, record),
        9 => {
            let path = folder.join("uploads.jsonl");
            fs::write(&path, data).expect("there is room");
            let is_damaged = prune(folder, Retention { age: None, bytes: Some(0) }).is_err();
            let reports = |verified: &Verified| verified.files.iter().any(|file| file.path == path);
            assert_eq!(verify(folder).is_ok_and(|verified| reports(&verified)), is_damaged);
            // Another place has another list.
            let opened = Uploads::open(folder, "elsewhere");
            assert!(!is_damaged || opened.is_err());
            drop(opened);
            fs::remove_file(path).expect("it is there");
        }
        which => {
            let path = folder.join(["definitions.toml", "log.toml", "schema.toml"][usize::from(which - 3)]);
            let whole = fs::read(&path).expect("it is there");
            fs::write(&path, data).expect("there is room");
            let _ = (verify(folder), aggregates(folder, 0), definitions(folder), read());
            fs::write(&path, whole).expect("there is room");
        }
    }
});

/// Runs `act` on the folder with other bytes in a file, and restores what that changed.
fn with(name: &str, bytes: &[u8], act: fn(&Path)) {
    let (folder, catalogue) = &*FOLDER;
    let lock = fs::read(folder.join("lock")).expect("it is there");
    fs::write(folder.join(name), bytes).expect("there is room");
    act(folder);
    fs::write(folder.join("lock"), lock).expect("there is room");
    fs::write(folder.join(CATALOGUE), catalogue).expect("there is room");
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it is there").path();
        if path.extension().is_some_and(|end| end == "journal" || end == "kept") {
            fs::remove_file(path).expect("it is there");
        }
    }
}

/// Records one more record, unless the folder is refused.
fn record(folder: &Path) {
    let before = verify(folder).unwrap_or_else(|error| panic!("{error}"));
    let records = |verified: &Verified| verified.files.iter().map(|file| file.records).sum::<u64>();
    let lost = |verified: &Verified| verified.files.iter().map(|file| file.lost).sum::<u64>();
    let Ok((recorder, recovery)) = open(folder) else {
        // Nothing is written to a refused folder.
        return assert_eq!(verify(folder).unwrap_or_else(|error| panic!("{error}")).missing, before.missing);
    };
    assert_eq!((recovery.missing, recovery.records), (before.missing, records(&before)));
    let behind = recovery.cut.as_ref().map_or(0, |cut| cut.records);
    assert!(behind == 0 || recovery.kept.iter().all(|kept| kept.exists()) && !recovery.kept.is_empty());
    let alerts = recovery.alerts.is_some();
    assert_eq!(recorder.append(&[7; 4]).expect("there is room").positions.start, before.end + before.missing);
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
    let after = verify(folder).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((after.missing, records(&after), after.alerts_lost > 0), (0, records(&before) + 1, alerts));
    assert!(lost(&after) >= before.missing);
    assert!(!after.files.iter().any(|file| matches!(file.state, State::Damaged(_))), "{after:?}");
    assert_eq!(read().unwrap_or_else(|error| panic!("{error}")).0, records(&after));
}

fn journal(data: &[u8]) {
    let folder = &FOLDER.0;
    let path = folder.join(JOURNAL);
    fs::write(&path, data).expect("there is room");
    let verified = verify(folder).unwrap_or_else(|error| panic!("{error}"));
    let [file] = &verified.files[..] else { panic!("there is one file") };
    match read() {
        Ok((records, torn)) => {
            assert!(!matches!(file.state, State::Damaged(_)));
            assert_eq!(records, file.records);
            assert_eq!(torn + file.bytes, data.len() as u64 - end(&file.state));
        }
        Err(FolderError::Damaged(_)) => assert!(matches!(file.state, State::Damaged(_))),
        Err(error) => panic!("{error}"),
    }
    fs::remove_file(path).expect("it is there");
}

/// How many records can be read, and how many bytes at the end are incomplete.
fn read() -> Result<(u64, u64), FolderError> {
    let history = History::open(&FOLDER.0)?;
    let mut records = 0;
    let everything = Dnf::all();
    let ask = ArchiveQuery { expression: &everything, from: 0, to: u64::MAX, needed: &[] };
    let sources = history.each(ask, &mut |_, _| {
        records += 1;
        ControlFlow::Continue(())
    })?;
    Ok((records, sources.torn.map_or(0, |part| part.bytes)))
}

/// How many bytes the frame takes that ends a file.
fn end(state: &State) -> u64 {
    if *state == State::Closed { 32 } else { 0 }
}
