//! Queries while the folder changes.

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

/// The positions that a query returns. `then` runs when the first one is returned.
fn ask(path: &Path, then: &dyn Fn()) -> (Vec<u64>, Result<Sources, FolderError>) {
    let history = History::open(path).unwrap_or_else(|error| panic!("{error}"));
    let (needed, mut returned) = ([history.schema().find("number").expect("it is there")], Vec::new());
    let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let sources = history.each(ask, &mut |position, record| {
        assert_eq!(record, (position as u32).to_be_bytes());
        if returned.is_empty() {
            then();
        }
        returned.push(position);
        ControlFlow::Continue(())
    });
    (returned, sources)
}

fn break_at(path: &Path, offset: u64) {
    let mut file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.seek(SeekFrom::Start(offset)).expect("it is long enough");
    file.write_all(b"not what was there").expect("there is room");
}

#[test]
fn records_of_a_journal_are_returned_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..COUNT, false);
    // The reader has the journal open as it becomes a volume, and the part that it has not read yet is damaged.
    let same = path.join("same");
    fs::hard_link(&journal, &same).expect("there is room");
    let (returned, sources) = ask(path, &|| {
        record(path, COUNT..COUNT + 10, true);
        assert!(!journal.exists());
        break_at(&same, 1_100_000);
    });
    let sources = sources.unwrap_or_else(|error| panic!("{error}"));
    assert!(returned.iter().copied().eq(0..u64::from(COUNT) + 10), "{} were returned", returned.len());
    assert_eq!((sources.records, sources.lost, sources.torn), (u64::from(COUNT) + 10, 0, None));
    // Also if the damage stays.
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..COUNT, false);
    let (returned, sources) = ask(path, &|| break_at(&journal, 1_100_000));
    assert!(matches!(&sources, Err(FolderError::Damaged(damage)) if damage.path == journal), "{sources:?}");
    assert!(returned.len() > 100_000 && returned.iter().copied().eq(0..returned.len() as u64));
}

#[test]
fn an_end_that_is_no_longer_torn_is_not_reported() {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, journal) = (folder.path(), folder.path().join("00000000000000000000.journal"));
    record(path, 0..100, false);
    let length = fs::metadata(&journal).expect("it is there").len();
    OpenOptions::new().write(true).open(&journal).and_then(|file| file.set_len(length - 7)).expect("it is there");
    let (returned, sources) = ask(path, &|| ());
    assert_eq!((returned.len(), sources.expect("it can be read").torn.map(|part| part.bytes)), (100, Some(25)));
    let (returned, sources) = ask(path, &|| record(path, 100..110, true));
    assert_eq!((returned.len(), sources.expect("it can be read").torn), (110, None));
}
