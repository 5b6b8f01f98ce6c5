//! A growing log takes addresses as records come, and gives them back. The test has a process of its own, because it measures all
//! addresses of the process.

#![allow(clippy::disallowed_methods, reason = "a test reads the system's statistics of its process")]

use queuescope_log::{Function, Log, Memory, Options, Schema};
use std::panic::AssertUnwindSafe;

const BATCH: u64 = 10_000;
/// Bytes of a record: a segment then has 2^21 records.
const SIZE: usize = 64;
const SEGMENT: u64 = 1 << 21;

/// Bytes of addresses of the process, if the system reports them.
fn addresses() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').next()?.parse::<u64>().ok()? * 4096)
}

fn schema() -> Schema {
    let attributes: String =
        (0..SIZE / 8).map(|n| format!("[[attribute]]\nname = \"word{n}\"\nkind = \"u64\"\n")).collect();
    Schema::parse("wide.toml", &format!("name = \"wide\"\n{attributes}")).unwrap_or_else(|error| panic!("{error}"))
}

/// The number that a record has in its first and in its last word.
fn number(record: &[u8]) -> u64 {
    let word = |at: usize| u64::from_be_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), word(SIZE - 8), "a record is torn");
    word(0)
}

#[test]
fn addresses_are_taken_and_given_back_by_the_segment() {
    let before = addresses();
    let first = 3 * Log::BLOCK;
    let options = Options { records: (1 << 46) / SIZE as u64, memory: Memory::Growing };
    let log = Log::starting_at(schema(), options, first).unwrap_or_else(|error| panic!("{error}"));
    let attribute = log.schema().find("word0").expect("it is there");
    log.add_index(attribute);
    log.add_aggregate(&["SUM"], None, &Function::Sum(attribute)).expect("the name is free");
    let mut batch = vec![0; BATCH as usize * SIZE];
    let mut next = first;
    let mut append = |log: &Log| {
        for (record, number) in batch.chunks_exact_mut(SIZE).zip(next..) {
            record[..8].copy_from_slice(&number.to_be_bytes());
            record[SIZE - 8..].copy_from_slice(&number.to_be_bytes());
        }
        let appended = log.append(&batch);
        assert_eq!((appended.positions, appended.refused), (next..next + BATCH, 0));
        next += BATCH;
        next
    };
    let edge = first + SEGMENT;
    while append(&log) < edge + Log::BLOCK {}

    // Around the edge of two segments.
    let snapshot = log.snapshot();
    let there = snapshot.adjacent(edge - 5..edge + 7);
    assert_eq!(there.chunks_exact(SIZE).map(number).collect::<Vec<_>>(), (edge - 5..edge).collect::<Vec<_>>());
    let behind = snapshot.adjacent(edge..edge + 7);
    assert_eq!(behind.chunks_exact(SIZE).map(number).collect::<Vec<_>>(), (edge..edge + 7).collect::<Vec<_>>());
    assert_eq!(snapshot.records(edge - 5..edge), there);
    let torn = std::panic::catch_unwind(AssertUnwindSafe(|| snapshot.records(edge - 1..edge + 1).len()));
    assert!(torn.is_err(), "records of two segments are not one slice");
    let scope = log.scope();
    let text = format!("word0 >= {} and word7 < {}", edge - 1000, edge + 1000);
    let near = scope.parse(&text).expect("it is right").dnf(&scope).expect("it is simple");
    let found: Vec<_> = snapshot.query().matching(&near).matched().map(|(at, record)| (at, number(record))).collect();
    assert_eq!(found, (edge - 1000..edge + 1000).map(|at| (at, at)).collect::<Vec<_>>());
    let last = snapshot.len() - 1;
    assert_eq!((number(snapshot.record(last)), number(snapshot.record(first))), (last, first));
    drop(snapshot);

    // Far more than the addresses that it has at any time.
    let mut most = 0;
    while append(&log) < first + 6 * SEGMENT {
        log.release(log.snapshot().len().saturating_sub(SEGMENT / 2));
        most = most.max(addresses().unwrap_or_default());
    }
    let snapshot = log.snapshot();
    assert!(snapshot.first() > edge + 3 * SEGMENT && number(snapshot.record(snapshot.first())) == snapshot.first());
    if let Some(before) = before {
        let segment = SEGMENT * SIZE as u64;
        assert!(most - before > segment && most - before < 4 * segment, "{before} bytes of addresses became {most}");
    }
}
