//! A recorder takes no more memory than its limit, however much is recorded. The test measures a process of its
//! own. `QUEUESCOPE_TIMES` is the amount to record, as a multiple of the limit (3 if it is not set).
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test looks at its own process")]

mod common;

use common::read;
use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention};
use queuescope_log::Schema;
use std::fs;

/// The memory limit of the recorder in bytes.
const GIVEN: u64 = 32 << 20;
/// Bytes of a record.
const SIZE: usize = 32;

fn schema() -> Schema {
    let text = "name = \"numbers\"\nsort = [\"peer\"]\n[[attribute]]\nname = \"number\"\nkind = \"u64\"\n\
                [[attribute]]\nname = \"peer\"\nkind = \"ipv4\"\n[[attribute]]\nname = \"rest\"\nkind = \"bytes20\"\n";
    Schema::parse("numbers.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Anonymous resident memory of this process in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux lists it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") << 10
}

#[test]
fn memory_stays_under_what_is_given_however_much_comes() {
    let times = std::env::var("QUEUESCOPE_TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let (folder, schema) = (tempfile::tempdir().expect("there is room"), schema());
    let peer = schema.find("peer").expect("it is there");
    let options = RecorderOptions {
        memory: GIVEN,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: u64::MAX,
        archive: true,
        indexes: vec![peer],
        keep: Retention::default(),
    };
    let before = resident();
    let (recorder, _) = Recorder::open(folder.path(), &schema, options).unwrap_or_else(|error| panic!("{error}"));
    let (mut next, mut most) = (0u64, 0);
    let all = times * GIVEN / SIZE as u64;
    let mut batch = Vec::new();
    while next < all {
        batch.clear();
        for number in next..next + 1000 {
            batch.extend(number.to_be_bytes());
            batch.extend(((number * 7919 % 1000) as u32).to_be_bytes());
            batch.extend([number as u8; 20]);
        }
        assert_eq!(recorder.append(&batch).expect("there is room").refused, 0);
        next += 1000;
        if next.is_multiple_of(50_000) {
            most = most.max(resident());
        }
    }
    assert_eq!(recorder.finish().expect("there is room").records, next);
    most = most.max(resident());
    assert!(most - before < GIVEN, "{} bytes of memory, and {GIVEN} were given", most - before);
    let (found, _) = read(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.chunks_exact(SIZE).zip(0u64..).all(|(record, number)| record[..8] == number.to_be_bytes()));
    assert_eq!(found.len() as u64, next * SIZE as u64);
}
