//! Records whose contents follow from their positions, and logs of them.

use queuescope_log::{Dnf, Log, Memory, Options, Query, Schema};
use std::ops::Range;

const SCHEMA: &str = r#"
name = "release"
time = "at"

[[attribute]]
name = "at"
kind = "time"

[[attribute]]
name = "key"
kind = "u8"

[[attribute]]
name = "value"
kind = "u16"
"#;

pub fn log_from(first: u64, records: u64) -> Log {
    let schema = Schema::parse("release.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    Log::starting_at(schema, Options { records, memory: Memory::Lazy }, first).unwrap_or_else(|error| panic!("{error}"))
}

/// The record of a position: its time, its key, its value, which rises slowly.
pub fn record(position: u64) -> (u64, u8, u16) {
    let mixed = position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    (position * 10 + mixed % 25, (mixed % 10) as u8, (mixed / 16 % 700 + position / 3000) as u16)
}

pub fn records(positions: Range<u64>) -> Vec<u8> {
    let bytes = |position| {
        let (at, key, value) = record(position);
        let [high, low] = value.to_be_bytes();
        at.to_be_bytes().into_iter().chain([key, high, low])
    };
    positions.flat_map(bytes).collect()
}

pub fn append(log: &Log, count: u64) {
    let next = log.snapshot().len();
    assert_eq!(log.append(&records(next..next + count)).refused, 0);
}

pub fn dnf(log: &Log, text: &str) -> Dnf {
    let scope = log.scope();
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
}

pub fn found(query: &Query<'_>) -> Vec<u64> {
    let positions: Vec<_> = query.matched().map(|(position, _)| position).collect();
    assert_eq!(query.matched().count(), positions.len() as u64, "{}", query.explain());
    positions
}
