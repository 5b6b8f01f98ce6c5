//! Any bytes as a file of records of a folder: what is verified is what is read, and what is not whole is told.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_archive::{FolderError, State, read, verify};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

const SCHEMA: &str = "name = \"fuzzed\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("queuescope-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room");
    fs::write(folder.join("schema.toml"), SCHEMA).expect("there is room");
    fs::write(folder.join("log.toml"), "format = 1\n").expect("there is room");
    folder
});

fuzz_target!(|data: &[u8]| {
    fs::write(FOLDER.join("00000000000000000000.journal"), data).expect("there is room");
    let verified = verify(&FOLDER).unwrap_or_else(|error| panic!("{error}"));
    let [file] = &verified.files[..] else { panic!("there is one file") };
    match read(&FOLDER, 1 << 20) {
        Ok(found) => {
            assert!(!matches!(file.state, State::Damaged(_)));
            assert_eq!(found.log.snapshot().len() + found.refused, file.records);
            assert_eq!(found.torn.map_or(0, |part| part.bytes) + file.bytes, data.len() as u64 - end(&file.state));
        }
        Err(FolderError::Damaged(_)) => assert!(matches!(file.state, State::Damaged(_))),
        Err(error) => panic!("{error}"),
    }
});

/// Bytes of the frame that ends a file.
fn end(state: &State) -> u64 {
    if *state == State::Closed { 24 } else { 0 }
}
