//! Groups in several passes over a folder, and what happens to the folder meanwhile.

use super::*;
use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention, prune};
use queuescope_log::Group;
use std::path::Path;

/// Records in each of the folder's volumes.
const RECORDS: u64 = 3000;
/// Memory for a few hundred groups.
const LITTLE: ByteCount = ByteCount(100_000);

fn schema() -> Schema {
    let attribute = |name, kind| format!("[[attribute]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let text = format!(
        "name = \"numbers\"\ntime = \"at\"\n{}{}{}",
        attribute("at", "time"),
        attribute("number", "u32"),
        attribute("share", "f64")
    );
    Schema::parse("numbers.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Adds a volume to a folder: each number twice.
fn record(path: &Path, first: u64) {
    let options = RecorderOptions {
        memory: 1 << 24,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: RECORDS,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let schema = schema();
    let recorder = Recorder::open(path, &schema, options).unwrap_or_else(|error| panic!("{error}")).0;
    let mut record = vec![0; schema.record_size()];
    for number in first..first + RECORDS {
        for (name, key) in [("at", number), ("number", number / 2), ("share", 0)] {
            schema.reader(schema.find(name).expect(name)).write(&mut record, key.into());
        }
        assert_eq!(recorder.append(&record).expect("there is room").refused, 0);
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

fn folder(path: &Path) -> Held {
    Held::Folder(Box::new(History::open(path).unwrap_or_else(|error| panic!("{error}"))))
}

/// The groups by number, the number of passes, and what was seen. `meanwhile` is called after the first pass.
fn groups(held: &Held, memory: ByteCount, mut meanwhile: impl FnMut()) -> (Vec<Group>, usize, Seen) {
    let schema = held.schema();
    let number = schema.find("number").expect("it is there");
    let (mut groups, mut passes) = (Vec::new(), 0);
    let everything = Dnf::all();
    let question = Question { expression: &everything, from: 0, to: u64::MAX, needed: &[number], company: None };
    let by = [GroupKey::Attribute(number)];
    let seen = held.groups(question, &by, &[Function::Count], memory, &mut |grouped| {
        groups.extend(grouped.iter());
        if passes == 0 {
            meanwhile();
        }
        passes += 1;
        Ok(())
    });
    (groups, passes, seen.expect("nothing is written"))
}

#[test]
fn several_passes_find_what_one_finds() {
    let temporary = tempfile::tempdir().expect("there is room");
    [0, RECORDS].iter().for_each(|first| record(temporary.path(), *first));
    let held = folder(temporary.path());
    let (once, passes, _) = groups(&held, ByteCount(1 << 30), || ());
    assert_eq!((once.len() as u64, passes), (RECORDS, 1));
    let (several, passes, seen) = groups(&held, LITTLE, || ());
    assert!(passes > 2, "{passes} passes");
    assert_eq!(several, once);
    assert_eq!((seen.records, seen.damage), (Some(2 * RECORDS), None));
}

#[test]
fn records_that_come_between_two_passes_are_not_counted() {
    let temporary = tempfile::tempdir().expect("there is room");
    [0, RECORDS].iter().for_each(|first| record(temporary.path(), *first));
    let held = folder(temporary.path());
    let (found, passes, seen) = groups(&held, LITTLE, || record(temporary.path(), 2 * RECORDS));
    assert!(passes > 2 && seen.damage.is_none());
    assert_eq!(found.len() as u64, RECORDS);
}

#[test]
fn records_that_are_removed_between_two_passes_are_damage() {
    let temporary = tempfile::tempdir().expect("there is room");
    [0, RECORDS].iter().for_each(|first| record(temporary.path(), *first));
    let held = folder(temporary.path());
    let (_, passes, seen) = groups(&held, LITTLE, || {
        let keep = Retention { bytes: Some(1), ..Retention::default() };
        prune(temporary.path(), keep).unwrap_or_else(|error| panic!("{error}"));
    });
    assert_eq!(passes, 2, "the pass that notices it is the last");
    let damage = seen.damage.expect("groups are missing");
    assert!(damage.starts_with("3,000 packets were removed between two passes"), "{damage}");
}
