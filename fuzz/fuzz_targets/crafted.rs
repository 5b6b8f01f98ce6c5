//! Crafted files of a folder with correct checksums: catalogues, definitions, manifests, and journals with times and
//! positions at the ends of the 64-bit range. Code that reads a folder, records to it or shrinks it returns a result or
//! an error. What can be read is what verification reports, and what is recorded afterwards can be found.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use queuescope_archive::{
    ArchiveQuery, Durability, FolderError, Full, History, Recorder, RecorderOptions, Retention, State, aggregates,
    compact, definitions, prune, verify,
};
use queuescope_log::{Definitions, Dnf, Schema};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The crafted parts of a folder.
#[derive(Debug, Arbitrary)]
struct Crafted {
    catalogue: Option<Catalogue>,
    definitions: Option<String>,
    manifest: Option<String>,
    journals: Vec<Journal>,
    within: (Edge, Edge),
}

#[derive(Debug, Arbitrary)]
struct Catalogue {
    before: Edge,
    records: Edge,
    volumes: Vec<Volume>,
    lines: Option<String>,
}

#[derive(Debug, Arbitrary)]
struct Volume {
    name: Option<String>,
    index: Option<String>,
    first: Edge,
    end: Edge,
    lost: Edge,
    records: Edge,
    times: Option<(Edge, Edge)>,
    bytes: Edge,
}

#[derive(Debug, Arbitrary)]
struct Journal {
    first: Edge,
    lost: Edge,
    frames: Vec<Vec<Edge>>,
    closed: bool,
}

/// A number near an end of its range.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Edge {
    Low(u16),
    Times(i16),
    Positions(i16),
    Signed(i16),
    High(u16),
    Any(u64),
}

impl Edge {
    fn number(self) -> u64 {
        match self {
            Self::Low(more) => more.into(),
            Self::Times(more) => queuescope_log::LAST_TIME.saturating_add_signed(more.into()),
            Self::Positions(more) => (1u64 << 56).saturating_add_signed(more.into()),
            Self::Signed(more) => (1u64 << 63).saturating_add_signed(more.into()),
            Self::High(less) => u64::MAX - u64::from(less),
            Self::Any(number) => number,
        }
    }
}

const SCHEMA: &str = "name = \"fuzzed\"\ntime = \"at\"\n[[attribute]]\nname = \"at\"\nkind = \"time\"\n";

/// A folder without records: its path, its schema, and its files.
static FOLDER: LazyLock<(PathBuf, Schema, BTreeMap<PathBuf, Vec<u8>>)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("queuescope-crafted-{}", std::process::id()));
    let schema = Schema::parse("fuzzed.toml", SCHEMA).expect("it is right");
    open(&folder, &schema).expect("there is room").finish().expect("there is room");
    let files = fs::read_dir(&folder).expect("it is there").map(|entry| entry.expect("it is there").path());
    let files = files.map(|path| (path.clone(), fs::read(path).expect("it is there"))).collect();
    (folder, schema, files)
});

fn open(path: &Path, schema: &Schema) -> Result<Recorder, FolderError> {
    let options = RecorderOptions {
        memory: 1 << 24,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 1000,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    Recorder::open(path, schema, options).map(|(recorder, _)| recorder)
}

fuzz_target!(|crafted: Crafted| {
    let (folder, schema, files) = &*FOLDER;
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("there is room");
    files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("there is room"));
    let put = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("there is room");
    crafted.catalogue.iter().for_each(|catalogue| put("catalogue.jsonl", &catalogue.bytes()));
    crafted.manifest.iter().for_each(|text| put("log.toml", text.as_bytes()));
    if let Some(text) = &crafted.definitions {
        put("definitions.toml", format!("# crc32 {}\n{text}", crc32fast::hash(text.as_bytes())).as_bytes());
    }
    for journal in crafted.journals.iter().take(3) {
        put(&format!("{:020}.journal", journal.first.number()), &journal.bytes());
    }
    let verified = verify(folder);
    let (from, to) = crafted.within;
    let _ = (read(folder, (from.number(), to.number())), definitions(folder), aggregates(folder, 0));
    let before = read(folder, (0, u64::MAX));
    if let (Ok(verified), Ok(count)) = (&verified, &before) {
        if !verified.files.iter().any(|file| matches!(file.state, State::Damaged(_))) {
            assert_eq!(verified.files.iter().map(|file| file.records).sum::<u64>(), *count);
        }
    }
    if let Ok(mut recorder) = open(folder, schema) {
        let count = before.unwrap_or_else(|error| panic!("what is recorded to can be read: {error}"));
        let _ = recorder.define(&Definitions::new(schema));
        assert_eq!(recorder.append(&7u64.to_be_bytes()).expect("there is room").refused, 0);
        let finished = recorder.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(finished.records, count + 1);
        assert_eq!(read(folder, (0, u64::MAX)).expect("it was recorded to"), count + 1);
    }
    let _ = (compact(folder), prune(folder, Retention { age: Some(1), bytes: Some(1) }), read(folder, (0, u64::MAX)));
});

/// Reads the records of a time range, and returns how many there are.
fn read(path: &Path, (from, to): (u64, u64)) -> Result<u64, FolderError> {
    let history = History::open(path)?;
    let (everything, time) = (Dnf::all(), history.schema().time().into_iter().collect::<Vec<_>>());
    let mut records = 0;
    history.each(ArchiveQuery { expression: &everything, from, to, needed: &time }, &mut |_, _| {
        records += 1;
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

impl Catalogue {
    fn bytes(&self) -> Vec<u8> {
        let volumes: String = self.volumes.iter().take(4).map(Volume::line).collect();
        let rest = volumes + self.lines.as_deref().unwrap_or_default();
        let (before, records) = (self.before.number(), self.records.number());
        let head =
            |crc32: u32| format!("{{\"removed\":{{\"before\":{before},\"records\":{records}}},\"crc32\":{crc32}}}\n");
        let sum = crc32fast::hash((head(0) + &rest).as_bytes());
        (head(sum) + &rest).into_bytes()
    }
}

impl Volume {
    fn line(&self) -> String {
        let (first, end) = (self.first.number(), self.end.number());
        let name = self.name.clone().unwrap_or_else(|| format!("date=1970-01-01/{first:020}"));
        let times = self.times.map(|(a, b)| (a.number(), b.number()));
        let groups = [serde_json::json!({
            "first": first, "end": end, "lost": self.lost.number(), "records": self.records.number(), "starts": null,
            "times": times,
        })];
        let indexes: Vec<_> = self.index.iter().collect();
        let bytes = self.bytes.number();
        serde_json::json!({ "name": name, "bytes": bytes, "groups": groups, "indexes": indexes, "sums": 0 }).to_string()
            + "\n"
    }
}

impl Journal {
    fn bytes(&self) -> Vec<u8> {
        let sealed = |bytes: &[u8]| [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat();
        let (first, lost) = (self.first.number(), self.lost.number());
        let schema = crc32fast::hash(SCHEMA.as_bytes());
        let numbers = [8u32.to_le_bytes(), schema.to_le_bytes()].concat();
        let mut file = sealed(&[&b"QSJOURN2"[..], &first.to_le_bytes(), &lost.to_le_bytes(), &numbers[..]].concat());
        file.extend([0; 4]);
        let mut next = first;
        let closing = self.closed.then(Vec::new);
        for times in self.frames.iter().take(8).filter(|times| !times.is_empty()).chain(&closing) {
            let records: Vec<u8> = times.iter().flat_map(|time| time.number().to_be_bytes()).collect();
            let count = (times.len() as u32).to_le_bytes();
            let sums =
                [&next.to_le_bytes()[..], &40u64.to_le_bytes(), &crc32fast::hash(&records).to_le_bytes()].concat();
            file.extend(sealed(&[&b"QSFR"[..], &count, &sums[..]].concat()));
            file.extend(records);
            next = next.wrapping_add(times.len() as u64);
        }
        file
    }
}
