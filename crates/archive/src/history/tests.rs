//! What is asked while the folder changes.

use super::*;
use crate::{Durability, Full, Recorder, RecorderOptions, Retention};
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};

const SCHEMA: &str = "name = \"numbers\"\n[[attribute]]\nname = \"number\"\nkind = \"u32\"\n";
const COUNT: u32 = 300_000;

fn record(path: &Path, numbers: std::ops::Range<u32>, archive: bool) {
    let schema = Schema::parse("numbers.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    let options = RecorderOptions {
        memory: 1 << 27,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 1 << 20,
        archive,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let (recorder, _) = Recorder::open(path, &schema, options).unwrap_or_else(|error| panic!("{error}"));
    let records: Vec<u8> = numbers.flat_map(u32::to_be_bytes).collect();
    // In frames of their own.
    for part in records.chunks(150_000 * 4) {
        assert_eq!(recorder.append(part).expect("there is room").refused, 0);
        recorder.flush().expect("there is room");
    }
    recorder.finish().expect("there is room");
}

/// The positions that are told, with what is done when the first of them is.
fn ask(path: &Path, then: &dyn Fn()) -> (Vec<u64>, Result<Sources, FolderError>) {
    let history = History::open(path).unwrap_or_else(|error| panic!("{error}"));
    let (needed, mut told) = ([history.schema().find("number").expect("it is there")], Vec::new());
    let ask = Ask { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let sources = history.each(ask, &mut |position, record| {
        assert_eq!(record, (position as u32).to_be_bytes());
        if told.is_empty() {
            then();
        }
        told.push(position);
        ControlFlow::Continue(())
    });
    (told, sources)
}

fn break_at(path: &Path, offset: u64) {
    let mut file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.seek(SeekFrom::Start(offset)).expect("it is long enough");
    file.write_all(b"not what was there").expect("there is room");
}

#[test]
fn what_was_told_of_a_journal_is_not_told_again() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..COUNT, false);
    // The reader has it open as it becomes a volume, and what it reads behind what was told is wrong.
    let same = path.join("same");
    fs::hard_link(&journal, &same).expect("there is room");
    let (told, sources) = ask(path, &|| {
        record(path, COUNT..COUNT + 10, true);
        assert!(!journal.exists());
        break_at(&same, 1_100_000);
    });
    let sources = sources.unwrap_or_else(|error| panic!("{error}"));
    assert!(told.iter().copied().eq(0..u64::from(COUNT) + 10), "{} were told", told.len());
    assert_eq!((sources.records, sources.lost, sources.torn), (u64::from(COUNT) + 10, 0, None));
    // Also if it stays wrong.
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..COUNT, false);
    let (told, sources) = ask(path, &|| break_at(&journal, 1_100_000));
    assert!(matches!(&sources, Err(FolderError::Damaged(damage)) if damage.path == journal), "{sources:?}");
    assert!(told.len() > 100_000 && told.iter().copied().eq(0..told.len() as u64));
}

#[test]
fn what_was_torn_and_is_whole_now_is_not_told() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..100, false);
    let length = fs::metadata(&journal).expect("it is there").len();
    OpenOptions::new().write(true).open(&journal).and_then(|file| file.set_len(length - 7)).expect("it is there");
    let (told, sources) = ask(path, &|| ());
    assert_eq!((told.len(), sources.expect("it can be read").torn.map(|part| part.bytes)), (100, Some(25)));
    let (told, sources) = ask(path, &|| record(path, 100..110, true));
    assert_eq!((told.len(), sources.expect("it can be read").torn), (110, None));
}
