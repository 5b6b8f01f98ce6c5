//! Records that became volumes are the recorded ones, and queries find the same records as in memory.

#![allow(clippy::disallowed_methods, reason = "a test looks at files")]

use crate::common::read;
use proptest::prelude::*;
use queuescope_archive::{
    ArchiveQuery, Durability, FolderError, Full, History, Recorder, RecorderOptions, Recovery, Retention, Sources,
    State, verify,
};
use queuescope_log::{AttributeId, Dnf, LAST_TIME, Log, Memory, Options, Schema, Scope};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

/// An attribute of every kind, a view, a sort order, and a time.
const SCHEMA: &str = r#"
name = "everything"
time = "at"
sort = ["peer", "flags"]
[[attribute]]
name = "at"
kind = "time"
[[attribute]]
name = "peer"
kind = "address"
[[attribute]]
name = "four"
kind = "ipv4"
view = "peer"
bit = 96
[[attribute]]
name = "six"
kind = "ipv6"
[[attribute]]
name = "mac"
kind = "mac"
[[attribute]]
name = "flags"
kind = "u8"
[[attribute]]
name = "high"
kind = "u3"
[[attribute]]
name = "low"
kind = "u12"
[[attribute]]
name = "bit"
kind = "u1"
[[attribute]]
name = "count"
kind = "u32"
order = "little"
[[attribute]]
name = "wide"
kind = "u128"
[[attribute]]
name = "deep"
kind = "i24"
[[attribute]]
name = "deepest"
kind = "i128"
[[attribute]]
name = "half"
kind = "f32"
[[attribute]]
name = "float"
kind = "f64"
[[attribute]]
name = "length"
kind = "size16"
[[attribute]]
name = "some"
kind = "bytes20"
[[attribute]]
name = "position"
kind = "u16"
"#;

fn schema() -> Schema {
    Schema::parse("everything.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"))
}

fn options(journal_records: u64, indexes: &[&str]) -> RecorderOptions {
    let schema = schema();
    let indexes = indexes.iter().map(|name| schema.find(name).expect("it is there")).collect();
    RecorderOptions {
        memory: 1 << 27,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records,
        archive: true,
        indexes,
        keep: Retention::default(),
    }
}

/// A record: few hosts, days near each other or far apart, and arbitrary bytes.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let size = schema().record_size();
    let day = 86_400_000_000_000u64;
    let time = prop_oneof![
        3 => (0..3 * day).prop_map(|at| 19_000 * 86_400_000_000_000 + at),
        1 => 0..1000u64,
        // Records with later times are left out: `history/extreme.rs` tests folders that have them all the same.
        1 => 0..=LAST_TIME,
        1 => Just(LAST_TIME),
    ];
    let host = prop_oneof![4 => (0..6u8).prop_map(Some), 1 => Just(None)];
    (prop::collection::vec(any::<u8>(), size), time, host, 0..4u8).prop_map(|(mut record, time, host, flags)| {
        record[..8].copy_from_slice(&time.to_be_bytes());
        if let Some(host) = host {
            record[8..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host]);
        }
        let flags_at = schema().attribute(schema().find("flags").expect("it is there")).place.offset as usize;
        record[flags_at] = flags;
        record
    })
}

fn write(path: &Path, parts: &[Vec<Vec<u8>>], options: &RecorderOptions) {
    let mut all = 0;
    for part in parts {
        let (recorder, recovery) =
            Recorder::open(path, &schema(), options.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recovery, Recovery { records: all, ..Recovery::default() });
        for batch in part.chunks(7) {
            assert_eq!(recorder.append(&batch.concat()).expect("there is room").refused, 0);
        }
        all += part.len() as u64;
        assert_eq!(recorder.finish().expect("there is room").records, all);
    }
}

/// Compares the fields of records only: bits between fields are not kept.
fn same(schema: &Schema, a: &[u8], b: &[u8], attributes: &[AttributeId]) -> bool {
    attributes.iter().all(|id| {
        let place = schema.attribute(*id).place;
        if place.bit == 0 && place.bits.is_multiple_of(8) {
            let bytes = place.offset as usize..place.end() as usize;
            a[bytes.clone()] == b[bytes]
        } else {
            schema.key(*id, a) == schema.key(*id, b)
        }
    })
}

fn expression() -> impl Strategy<Value = String> {
    let host = prop_oneof![(0..7u8).prop_map(|host| format!("10.0.0.{host}")), Just("10.0.0.0/30".to_owned())];
    let one = prop_oneof![
        host.prop_map(|host| format!("peer in {host}")),
        (0..4u8).prop_map(|flags| format!("flags == {flags}")),
        (0..4u8).prop_map(|flags| format!("flags in {{{flags}, 2}}")),
        (0..4096u16).prop_map(|low| format!("low > {low}")),
        Just("bit".to_owned()).prop_map(|bit| format!("{bit} == 1")),
        (0..5u8).prop_map(|host| format!("four == 10.0.0.{host}")),
        Just("deep < 0".to_owned()),
        Just("true".to_owned()),
    ];
    prop_oneof![
        one.clone(),
        (one.clone(), one.clone()).prop_map(|(a, b)| format!("{a} and {b}")),
        (one.clone(), one).prop_map(|(a, b)| format!("({a}) or ({b})")),
    ]
}

fn dnf(schema: &Schema, text: &str) -> Dnf {
    let scope = Scope::new(schema);
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).unwrap_or_else(|error| panic!("{error}"))
}

fn found(history: &History, ask: ArchiveQuery<'_>) -> (Vec<(u64, Vec<u8>)>, Sources) {
    let mut found = Vec::new();
    let sources = history.each(ask, &mut |position, record| {
        found.push((position, record.to_vec()));
        ControlFlow::Continue(())
    });
    (found, sources.unwrap_or_else(|error| panic!("{error}")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn queries_find_the_same_records_as_in_memory(
        parts in prop::collection::vec(prop::collection::vec(record(), 0..120), 1..3),
        (journal, indexed) in (25..160u64, 0..4usize),
        questions in prop::collection::vec((expression(), any::<[prop::sample::Index; 3]>()), 6),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        let indexes = &["peer", "flags", "deep"][..indexed];
        write(folder.path(), &parts, &options(journal, indexes));
        let (schema, records) = (schema(), parts.concat());
        let all: Vec<_> = schema.iter().map(|(id, _)| id).collect();
        let (back, _) = read(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let back: Vec<_> = back.chunks_exact(schema.record_size()).collect();
        prop_assert_eq!(back.len(), records.len());
        prop_assert!(records.iter().zip(&back).all(|(a, b)| same(&schema, a, b, &all)));
        let verified = verify(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        prop_assert!(verified.files.iter().all(|file| file.state == State::Closed));

        let log = Log::new(schema.clone(), Options { records: 1000, memory: Memory::Lazy }).expect("it is small");
        prop_assert_eq!(log.append(&records.concat()).refused, 0);
        let (snapshot, history) = (log.snapshot(), History::open(folder.path()).expect("it is one"));
        let time = schema.time().expect("it has one");
        for (text, [from, to, needed]) in &questions {
            let expression = dnf(&schema, text);
            let time = |at: &prop::sample::Index, none: u64| match at.index(records.len() + 1) {
                0 => none,
                at => schema.key(time, &records[at - 1]) as u64,
            };
            let (from, to) = (time(from, 0), time(to, u64::MAX));
            let needed = &all[needed.index(all.len())..];
            let expected = snapshot.query().matching(&expression).from(from).to(to);
            let expected: Vec<_> = expected.matched().collect();
            let (found, sources) = found(&history, ArchiveQuery { expression: &expression, from, to, needed });
            prop_assert_eq!(sources.records, records.len() as u64);
            prop_assert_eq!(found.len(), expected.len(), "{} from {} to {}", text, from, to);
            for ((a, record), (b, expected)) in found.iter().zip(&expected) {
                prop_assert!(a == b && same(&schema, record, expected, needed), "{}", text);
            }
        }
    }

    #[test]
    fn any_flipped_bit_of_a_volume_is_found(
        records in prop::collection::vec(record(), 100..200),
        (file, bit) in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let folder = tempfile::tempdir().expect("there is room");
        write(folder.path(), std::slice::from_ref(&records), &options(80, &["peer"]));
        let files = files(folder.path());
        let path = file.get(&files);
        let mut bytes = fs::read(path).expect("it is there");
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(path, bytes).expect("there is room");
        match verify(folder.path()) {
            Ok(verified) => prop_assert!(verified.files.iter().any(|file| file.state != State::Closed), "{}", path.display()),
            Err(error) => prop_assert!(matches!(error, FolderError::Damaged(_)), "{}", error),
        }
        // What is read of it is right, or reading fails.
        match read(folder.path()) {
            Ok((back, _)) => {
                let schema = schema();
                let all: Vec<_> = schema.iter().map(|(id, _)| id).collect();
                let mut both = records.iter().zip(back.chunks_exact(schema.record_size()));
                prop_assert!(both.all(|(a, b)| same(&schema, a, b, &all)) && path.extension() == Some("index".as_ref()));
            }
            Err(error) => prop_assert!(error.to_string().contains(&path.display().to_string()), "{}", error),
        }
    }
}

/// The files of a folder's records, and the catalogue.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.join("catalogue.jsonl")];
    let mut folders = vec![path.join("archive"), path.join("beside")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn plain(count: u32) -> Vec<Vec<u8>> {
    let schema = schema();
    let record = |number: u32| {
        let mut record = vec![0; schema.record_size()];
        record[..8].copy_from_slice(&(u64::from(number) * 1_000_000).to_be_bytes());
        schema.reader(schema.find("count").expect("it is there")).write(&mut record, number.into());
        schema.reader(schema.find("peer").expect("it is there")).write(&mut record, (number % 100).into());
        record
    };
    (0..count).map(record).collect()
}

#[test]
fn a_missing_file_is_noticed() {
    let folder = tempfile::tempdir().expect("there is room");
    write(folder.path(), &[plain(1000)], &options(300, &["peer"]));
    let whole = files(folder.path());
    assert_eq!(whole.len(), 1 + 4 * 3);
    for path in &whole {
        let bytes = fs::read(path).expect("it is there");
        fs::remove_file(path).expect("it is there");
        let expression = dnf(&schema(), "peer == ::7");
        let history = History::open(folder.path()).expect("it is one");
        let error = history
            .each(ArchiveQuery { expression: &expression, from: 0, to: u64::MAX, needed: &[] }, &mut |_, _| {
                ControlFlow::Continue(())
            });
        assert!(error.expect_err("a file is missing").to_string().contains(&path.display().to_string()));
        fs::write(path, bytes).expect("there is room");
    }
    assert!(read(folder.path()).is_ok());
}

#[test]
fn indexes_leave_few_pages() {
    let folder = tempfile::tempdir().expect("there is room");
    write(folder.path(), &[plain(50_000)], &options(40_000, &["peer", "flags"]));
    let (history, schema) = (History::open(folder.path()).expect("it is one"), schema());
    let expression = dnf(&schema, "peer == ::7");
    let needed = [schema.find("count").expect("it is there")];
    let (records, sources) =
        found(&history, ArchiveQuery { expression: &expression, from: 0, to: u64::MAX, needed: &needed });
    assert!(records.len() == 500 && records.iter().all(|(position, _)| position % 100 == 7));
    assert_eq!((sources.by_index, sources.pages, sources.whole), (2, 2, 0));
    // No record has it.
    let expression = dnf(&schema, "peer == ::700");
    let (records, sources) =
        found(&history, ArchiveQuery { expression: &expression, from: 0, to: u64::MAX, needed: &needed });
    assert_eq!((records.len(), sources.by_index, sources.pages, sources.from_volumes), (0, 2, 0, 0));
    // Another time.
    let expression = Dnf::all();
    let (records, sources) =
        found(&history, ArchiveQuery { expression: &expression, from: 0, to: 5_000_000, needed: &needed });
    assert_eq!((records.len(), sources.whole, sources.other_times), (5, 1, 1));
}

#[test]
fn a_stop_between_volume_and_catalogue_leaves_nothing_behind() {
    let (folder, copy) = (tempfile::tempdir().expect("there is room"), tempfile::tempdir().expect("there is room"));
    let journals = RecorderOptions { archive: false, ..options(300, &[]) };
    write(copy.path(), &[plain(1000)], &journals);
    write(folder.path(), &[plain(1000)], &options(300, &[]));
    // Journals whose records are already in volumes, and a volume that is not in the catalogue.
    let journal = "00000000000000000300.journal";
    fs::copy(copy.path().join(journal), folder.path().join(journal)).expect("there is room");
    let stray = folder.path().join("archive/date=1970-01-01/00000000000000000300-00000000000000001000.parquet");
    fs::write(&stray, "half").expect("there is room");
    let (records, _) = read(folder.path()).expect("it is whole");
    assert_eq!(records.len(), 1000 * schema().record_size());
    write_more(folder.path(), 1000);
    assert!(!folder.path().join(journal).exists() && !stray.exists());
    assert_eq!(read(folder.path()).expect("it is whole").0.len(), 1010 * schema().record_size());
    // The next recorder turns journals without volumes into volumes.
    write_more(copy.path(), 1000);
    assert_eq!(files(copy.path()).len(), 1 + 5 * 2);
    assert_eq!(read(copy.path()).expect("it is whole").0.len(), 1010 * schema().record_size());
}

fn write_more(path: &Path, there: u64) {
    let (recorder, recovery) =
        Recorder::open(path, &schema(), options(300, &[])).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recovery, Recovery { records: there, ..Recovery::default() });
    assert_eq!(recorder.append(&plain(10).concat()).expect("there is room").positions, there..there + 10);
    assert_eq!(recorder.finish().expect("there is room").records, there + 10);
}

#[test]
fn volumes_are_made_while_others_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let (recorder, _) =
        Recorder::open(folder.path(), &schema(), options(500, &["peer"])).unwrap_or_else(|error| panic!("{error}"));
    let records = plain(40_000);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for batch in records.chunks(100) {
                assert_eq!(recorder.append(&batch.concat()).expect("there is room").refused, 0);
                recorder.flush().expect("there is room");
            }
        });
        let mut before = 0;
        while !writer.is_finished() {
            let (found, _) = read(folder.path()).unwrap_or_else(|error| panic!("{error}"));
            assert!(found.len() >= before && records.concat().starts_with(&found));
            before = found.len();
        }
    });
    assert_eq!(recorder.finish().expect("there is room").records, 40_000);
}

#[test]
fn any_flipped_bit_of_the_catalogue_is_found() {
    let folder = tempfile::tempdir().expect("there is room");
    write(folder.path(), &[plain(100)], &options(80, &[]));
    let path = folder.path().join("catalogue.jsonl");
    let bytes = fs::read(&path).expect("it is there");
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, flipped).expect("there is room");
        assert!(matches!(read(folder.path()), Err(FolderError::Damaged(_))), "bit {bit}");
    }
}

#[test]
fn a_folder_that_was_not_finished_can_be_made() {
    let folder = tempfile::tempdir().expect("there is room");
    for name in ["schema.new", "schema.toml", "catalogue.new", "catalogue.jsonl", "log.new"] {
        fs::write(folder.path().join(name), "half").expect("there is room");
    }
    write(folder.path(), &[plain(10)], &options(80, &[]));
    assert_eq!(read(folder.path()).expect("it is whole").0.len(), 10 * schema().record_size());
}
