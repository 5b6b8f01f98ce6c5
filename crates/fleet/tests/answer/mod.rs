//! Questions to several hosts: merged, their parts are the answer over all records.

mod folder;
mod limits;
mod merging;
mod printed;
mod streams;

use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use queuescope_fleet::answer::{Asked, Extent, IpcLimits, Partial, Texts};
use queuescope_log::{Log, Memory, Options, Schema};
use queuescope_recording::query::{PartLimits, Records};
use queuescope_wire::ByteCount;
use std::sync::LazyLock;

/// Attributes of each kind that questions compute with.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("at", "time"),
    ("via", "address"),
    ("slot", "u16"),
    ("length", "size32"),
    ("delta", "i32"),
    ("share", "f64"),
    ("wide", "u128"),
    ("bytes", "size64"),
];

fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let attribute = |(name, kind)| format!("[[attribute]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
        let text = format!("name = \"numbers\"\ntime = \"at\"\n{}", ATTRIBUTES.map(attribute).concat());
        Schema::parse("numbers.toml", &text).unwrap_or_else(|error| panic!("{error}"))
    });
    &SCHEMA
}

/// A record with these keys, in the order of [`ATTRIBUTES`].
fn record(keys: [u128; 8]) -> Vec<u8> {
    let schema = schema();
    let mut record = vec![0; schema.record_size()];
    for ((name, _), key) in ATTRIBUTES.iter().zip(keys) {
        schema.reader(schema.find(name).expect(name)).write(&mut record, key);
    }
    record
}

/// A key of one of few values, or of a value at an end of its range.
fn key(bits: u32) -> impl Strategy<Value = u128> {
    let highest = u128::MAX >> (128 - bits);
    prop_oneof![
        6 => (0..5u128).prop_map(move |key| (highest / 2).saturating_add(key)),
        3 => 0..5u128,
        1 => (0..5u128).prop_map(move |key| highest - key),
    ]
}

/// A fraction's key, of a number.
fn fraction() -> impl Strategy<Value = u128> {
    (-4..4i32).prop_map(|number| {
        let bits = f64::from(number).to_bits() + 1;
        u128::from(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
    })
}

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let at = prop_oneof![Just(0u128), 0..100_000_000u128];
    let keys = (at, key(128), key(16), key(32), key(32), fraction(), key(128), key(64));
    keys.prop_map(|(at, via, slot, length, delta, share, wide, bytes)| {
        record([at, via, slot, length, delta, share, wide, bytes])
    })
}

/// The text of a question: expression, functions, groups, and how many of these.
#[derive(Debug, Clone)]
struct Question {
    expression: String,
    select: String,
    group: String,
    top: Option<u64>,
}

impl Question {
    fn asked(&self) -> Asked {
        let Self { expression, select, group, top } = self;
        Asked::new(&Texts { expression, select, group, top: *top }, schema()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Functions whose results do not depend on the order of records.
const FUNCTIONS: [&str; 19] = [
    "count",
    "sum(length)",
    "sum(delta)",
    "sum(bytes)",
    "sum(wide)",
    "min(at)",
    "min(via)",
    "min(share)",
    "min(delta)",
    "max(delta)",
    "max(wide)",
    "max(share)",
    "mean(delta)",
    "mean(bytes)",
    "stddev(delta)",
    "stddev(bytes)",
    "distinct(via)",
    "distinct(slot)",
    "distinct(share)",
];

fn question() -> impl Strategy<Value = Question> {
    let expression = prop_oneof![
        3 => Just(String::new()),
        2 => (0..5u32).prop_map(|than| format!("length > {than}B")),
        1 => (0..5u32).prop_map(|than| format!("slot < {} and not delta == {than}", 32767 + than)),
        1 => Just("slot == 1 or share >= 0.5".to_owned()),
        1 => Just("length > 1 and length < 1".to_owned()),
    ];
    let select = subsequence(FUNCTIONS.to_vec(), 0..5).prop_shuffle();
    let group = subsequence(vec!["via", "slot", "at/10ms", "delta", "share", "wide"], 0..4).prop_shuffle();
    (expression, select, group, prop::option::of(0..4u64)).prop_filter_map(
        "packets are not selected",
        |(expression, select, group, top)| {
            let is_answered = !select.is_empty() || !group.is_empty();
            is_answered.then(|| Question { expression, select: select.join(","), group: group.join(","), top })
        },
    )
}

fn log(records: &[Vec<u8>]) -> Log {
    let room = records.len().max(1 << 12) as u64;
    let log = Log::new(schema().clone(), Options { records: room, memory: Memory::Lazy }).expect("there is room");
    assert_eq!(log.append(&records.concat()).refused, 0);
    log
}

/// Limits that nothing here reaches.
const ENOUGH: PartLimits = PartLimits { groups: 1 << 20, memory: ByteCount(1 << 30) };
const READ: IpcLimits = IpcLimits { bytes: 1 << 24, rows: 1 << 20 };

/// What a host answers, by way of its form between hosts.
fn answer(asked: &Asked, records: Records<'_>, extent: Extent, limits: PartLimits) -> Partial {
    let partial = asked.evaluate(records, extent, limits, &|| true).expect("it goes on");
    let part = partial.to_part(asked).unwrap_or_else(|error| panic!("{error}"));
    let read = Partial::of_part(&part, asked, READ).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read, partial);
    read
}

/// Moves elements to places that indices choose.
fn shuffle<T>(elements: &mut [T], order: &[Index]) {
    for (place, index) in order.iter().enumerate().take(elements.len()) {
        elements.swap(place, index.index(elements.len()));
    }
}
