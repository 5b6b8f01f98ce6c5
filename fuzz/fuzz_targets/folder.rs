//! Any bytes as one of the files of a folder: what is verified is what is read, and what is not whole is told. The first
//! byte says which file it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_archive::{
    Ask, Durability, FolderError, Full, History, Keep, Recorder, RecorderOptions, State, aggregates, definitions,
    verify,
};
use queuescope_log::{Dnf, Schema};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::LazyLock;

const SCHEMA: &str = "name = \"fuzzed\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
const CATALOGUE: &str = "catalogue.jsonl";

/// A folder without records, and its catalogue.
static FOLDER: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("queuescope-fuzz-{}", std::process::id()));
    let schema = Schema::parse("fuzzed.toml", SCHEMA).expect("it is right");
    let options = RecorderOptions {
        memory: 1 << 24,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 1000,
        archive: false,
        indexes: Vec::new(),
        keep: Keep::default(),
    };
    let (recorder, _) = Recorder::open(&folder, &schema, options).expect("there is room");
    recorder.finish().expect("there is room");
    let catalogue = fs::read(folder.join(CATALOGUE)).expect("it was written");
    (folder, catalogue)
});

fuzz_target!(|data: &[u8]| {
    let (folder, catalogue) = &*FOLDER;
    let Some((which, data)) = data.split_first() else { return };
    match which % 6 {
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
        which => {
            let path = folder.join(["definitions.toml", "log.toml", "schema.toml"][usize::from(which - 3)]);
            let whole = fs::read(&path).expect("it is there");
            fs::write(&path, data).expect("there is room");
            let _ = (verify(folder), aggregates(folder, 0), definitions(folder), read());
            fs::write(&path, whole).expect("there is room");
        }
    }
});

fn journal(data: &[u8]) {
    let folder = &FOLDER.0;
    let path = folder.join("00000000000000000000.journal");
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

/// How many records are read, and how many bytes at the end are not whole.
fn read() -> Result<(u64, u64), FolderError> {
    let history = History::open(&FOLDER.0)?;
    let mut records = 0;
    let everything = Dnf::all();
    let ask = Ask { expression: &everything, from: 0, to: u64::MAX, needed: &[] };
    let sources = history.each(ask, &mut |_, _| {
        records += 1;
        ControlFlow::Continue(())
    })?;
    Ok((records, sources.torn.map_or(0, |part| part.bytes)))
}

/// Bytes of the frame that ends a file.
fn end(state: &State) -> u64 {
    if *state == State::Closed { 32 } else { 0 }
}
