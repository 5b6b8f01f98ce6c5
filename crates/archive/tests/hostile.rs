//! Folders of an attacker: something else is in place of a file of the folder. No operation waits for it, reads it to
//! its end, or writes to the target of a link.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::{files, read};
use queuescope_archive::{
    Durability, FolderError, Full, Recorder, RecorderOptions, Retention, State, aggregates, compact, definitions,
    prune, verify,
};
use queuescope_log::{Definitions, Schema};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What is in place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instead {
    Zeros,
    Pipe,
    Folder,
    Sparse,
    LinkToItself,
}

const ALL: [Instead; 5] = [Instead::Zeros, Instead::Pipe, Instead::Folder, Instead::Sparse, Instead::LinkToItself];

/// More bytes than fit in memory.
const HUGE: u64 = 1 << 42;

impl Instead {
    fn put(self, path: &Path, elsewhere: &Path) {
        fs::rename(path, elsewhere).expect("it is there");
        match self {
            Self::Zeros => symlink("/dev/zero", path).expect("there is room"),
            Self::Pipe => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there is room"),
            Self::Folder => fs::create_dir(path).expect("there is room"),
            Self::Sparse => File::create(path).and_then(|file| file.set_len(HUGE)).expect("it takes no room"),
            // A link is not followed, even if its target has the right bytes.
            Self::LinkToItself => symlink(elsewhere, path).expect("there is room"),
        }
    }

    fn take(self, path: &Path, elsewhere: &Path) {
        if self == Self::Folder { fs::remove_dir(path) } else { fs::remove_file(path) }.expect("it is there still");
        fs::rename(elsewhere, path).expect("it is there still");
    }

    /// The message about it.
    fn expected_message(self) -> &'static str {
        match self {
            Self::Zeros | Self::LinkToItself => "it is a symbolic link",
            Self::Pipe => "it is a pipe",
            Self::Folder => "it is a folder",
            Self::Sparse => "it has 4398046511104 bytes, and ",
        }
    }
}

fn schema() -> Schema {
    let text = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path, archive: bool) -> Result<Recorder, FolderError> {
    let options = RecorderOptions {
        memory: 1 << 22,
        full: Full::Wait,
        durability: Durability::Written,
        journal_records: 1000,
        archive,
        indexes: vec![schema().find("number").expect("it is there")],
        keep: Retention::default(),
    };
    Recorder::open(path, &schema(), options).map(|(recorder, _)| recorder)
}

fn defined() -> Definitions {
    let text = "[[aggregate]]\nname = \"sum\"\nfunction = \"sum(number)\"\n";
    Definitions::parse("defined.toml", text, &schema()).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder of a volume and a journal, with an aggregate.
fn folder(path: &Path) {
    for archive in [true, false] {
        let mut recorder = open(path, archive).unwrap_or_else(|error| panic!("{error}"));
        recorder.define(&defined()).unwrap_or_else(|error| panic!("{error}"));
        let records: Vec<u8> = (0..100u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(recorder.append(&records).expect("there is room").refused, 0);
        recorder.finish().expect("there is room");
    }
}

fn own_files(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = ["log.toml", "schema.toml", "catalogue.jsonl", "definitions.toml", "aggregates.json"]
        .map(|name| path.join(name))
        .into();
    found.push(path.join("00000000000000000100.journal"));
    found.extend(files(path));
    assert_eq!(found.len(), 9);
    found
}

/// Every operation that reads a folder or records to it, and its error.
fn all(path: &Path) -> Vec<(&'static str, Option<String>)> {
    let verified = verify(path).map(|verified| {
        let damage = verified.files.into_iter().find_map(|file| match file.state {
            State::Damaged(damage) => Some(damage.to_string()),
            _ => None,
        });
        damage.map_or(Ok(()), Err)
    });
    let message = |error: Result<(), FolderError>| error.err().map(|error| error.to_string());
    vec![
        ("verify", verified.map_or_else(|error| Some(error.to_string()), Result::err)),
        ("read", message(read(path).map(drop))),
        ("definitions", message(definitions(path).map(drop))),
        ("aggregates", message(aggregates(path, 200).map(drop))),
        ("record", message(open(path, true).and_then(|mut recorder| recorder.define(&defined()).map(drop)))),
        ("keep", message(prune(path, Retention { age: None, bytes: Some(1 << 40) }).map(drop))),
        ("compact", message(compact(path).map(drop))),
    ]
}

#[test]
fn no_operation_waits_for_something_in_place_of_a_file() {
    for instead in ALL {
        let folder_of_tests = tempfile::tempdir().expect("there is room");
        let (path, elsewhere) = (folder_of_tests.path().join("log"), folder_of_tests.path().join("elsewhere"));
        folder(&path);
        for file in own_files(&path) {
            instead.put(&file, &elsewhere);
            let refusals = all(&path);
            let verified = refusals[0].1.clone().unwrap_or_default();
            // The lengths of a volume's files are known, and no others.
            let is_of_volume = file.starts_with(path.join("archive")) || file.starts_with(path.join("beside"));
            let expected =
                if is_of_volume && instead == Instead::Sparse { "it has 43980" } else { instead.expected_message() };
            assert!(verified.contains(expected), "{instead:?}, {}: {refusals:?}", file.display());
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            assert!(verified.contains(&name), "{instead:?}, {}: {refusals:?}", file.display());
            let refused = |what: &str| refusals.iter().any(|(of, why)| *of == what && why.is_some());
            // The saved aggregates are computed again.
            assert!(refused("record") || name == "aggregates.json", "{instead:?}, {}: {refusals:?}", file.display());
            if name == "aggregates.json" {
                // The operation removed it and made a new file.
                fs::remove_file(&elsewhere).expect("it is there still");
                fs::remove_dir_all(&path).expect("it is there");
                folder(&path);
            } else {
                instead.take(&file, &elsewhere);
            }
        }
        assert_eq!(all(&path)[0], ("verify", None));
    }
}

#[test]
fn the_lock_and_alerts_are_verified_to_be_files() {
    let folder_of_tests = tempfile::tempdir().expect("there is room");
    let (path, elsewhere) = (folder_of_tests.path().join("log"), folder_of_tests.path().join("elsewhere"));
    folder(&path);
    fs::write(path.join("alerts.jsonl"), "").expect("there is room");
    for file in ["lock", "alerts.jsonl"].map(|name| path.join(name)) {
        for instead in [Instead::Zeros, Instead::Pipe, Instead::Folder, Instead::LinkToItself] {
            instead.put(&file, &elsewhere);
            let message = all(&path)[0].1.clone().unwrap_or_default();
            let wanted = format!("{} is damaged: {}", file.display(), instead.expected_message());
            let advice = "remove it: a new one is made when the folder is recorded to again";
            assert!(message.starts_with(&wanted) && message.ends_with(advice), "{message}");
            instead.take(&file, &elsewhere);
        }
    }
    // A folder may have no alerts. A missing `lock` is noticed.
    fs::remove_file(path.join("alerts.jsonl")).expect("it is there");
    assert_eq!(all(&path)[0], ("verify", None));
    fs::remove_file(path.join("lock")).expect("it is there");
    let message = all(&path)[0].1.clone().unwrap_or_default();
    assert!(message.contains("lock is damaged: it is missing or empty"), "{message}");
}

#[test]
fn nothing_is_written_to_the_target_of_a_link() {
    let folder_of_tests = tempfile::tempdir().expect("there is room");
    let (path, other) = (folder_of_tests.path().join("log"), folder_of_tests.path().join("other"));
    folder(&path);
    // The names under which files are written before they are renamed.
    for name in ["catalogue.new", "definitions.new", "aggregates.new"] {
        fs::write(&other, "somebody's").expect("there is room");
        symlink(&other, path.join(name)).expect("there is room");
    }
    let mut recorder = open(&path, true).unwrap_or_else(|error| panic!("{error}"));
    recorder.define(&defined()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recorder.append(&7u32.to_be_bytes()).expect("there is room").refused, 0);
    assert_eq!(recorder.finish().expect("there is room").records, 201);
    assert_eq!(fs::read(&other).expect("it is there"), b"somebody's");
    // The recorder makes the file that is locked.
    fs::remove_file(path.join("lock")).expect("it is there");
    symlink(folder_of_tests.path().join("new"), path.join("lock")).expect("there is room");
    let error = open(&path, true).map(drop).expect_err("it is a link").to_string();
    assert!(error.contains("lock") && error.contains("symbolic link"), "{error}");
    assert!(!folder_of_tests.path().join("new").exists());
    fs::remove_file(path.join("lock")).expect("it is there");
    mknodat(CWD, path.join("lock"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there is room");
    let error = open(&path, true).map(drop).expect_err("it is a pipe").to_string();
    assert!(error.contains("lock") && error.contains("a pipe"), "{error}");
}

#[test]
fn volumes_of_another_log_behind_a_link_stay() {
    let folder_of_tests = tempfile::tempdir().expect("there is room");
    let (path, other) = (folder_of_tests.path().join("log"), folder_of_tests.path().join("other"));
    folder(&path);
    folder(&other);
    let of_other = files(&other);
    // The catalogue has none of its positions.
    symlink(other.join("archive"), path.join("archive").join("date=2026-11-22")).expect("there is room");
    open(&path, true).unwrap_or_else(|error| panic!("{error}")).finish().expect("there is room");
    assert_eq!(files(&other), of_other);
    assert_eq!(read(&other).expect("it is whole").0.len(), 200 * 4);
}
