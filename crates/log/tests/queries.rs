//! Queries within a time range, over a filter, and in groups, by each access path: the results agree with a direct evaluation.

use proptest::prelude::*;
use queuescope_log::{AttributeId, Dnf, Function, GroupKey, Intake, Log, Memory, Number, Options, Schema, Step};
use std::collections::BTreeMap;

const SCHEMA: &str = r#"
name = "small"
time = "at"

[[attribute]]
name = "at"
kind = "time"

[[attribute]]
name = "node"
kind = "u8"

[[attribute]]
name = "door"
kind = "u16"

[[attribute]]
name = "bytes"
kind = "u16"
"#;

fn schema() -> Schema {
    Schema::parse("small.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"))
}

fn log(schema: &Schema) -> Log {
    Log::new(schema.clone(), Options { records: 1 << 18, memory: Memory::Lazy })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Time, host, port and bytes.
type Row = (u64, u8, u16, u16);

fn append(log: &Log, rows: &[Row]) {
    let schema = log.schema();
    let mut bytes = vec![0; rows.len() * schema.record_size()];
    for (row, record) in rows.iter().zip(bytes.chunks_exact_mut(schema.record_size())) {
        let keys = [u128::from(row.0), row.1.into(), row.2.into(), row.3.into()];
        for ((id, _), key) in schema.iter().zip(keys) {
            schema.reader(id).write(record, key);
        }
    }
    assert_eq!(log.append(&bytes).refused, 0);
}

fn dnf(log: &Log, text: &str) -> Dnf {
    let scope = log.scope();
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
}

fn id(log: &Log, name: &str) -> AttributeId {
    log.schema().find(name).expect("it is in the schema")
}

/// Times that mostly rise, hosts and ports of few values.
fn rows(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    (count, any::<u64>(), 1..200u64).prop_map(|(count, mut seed, back)| {
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let row = |at: usize| {
            let time = (at as u64 * 10).saturating_sub(random() % back);
            (time, (random() % 20) as u8, 8000 + (random() % 7) as u16, (random() % 1500) as u16)
        };
        (0..count).map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn each_access_path_finds_the_same_records(
        rows in prop_oneof![3 => rows(0..5000), 1 => rows(60_000..140_000)],
        (host, port, low) in (0..20u8, 8000..8007u16, 0..1500u16),
        origin in 0..5000u64,
        (from, to) in (0..60_000u64, prop_oneof![0..60_000u64, Just(u64::MAX)]),
        (indexes, late, filter) in (0..16u8, any::<bool>(), any::<bool>()),
    ) {
        let schema = schema();
        let log = log(&schema);
        let add = || {
            for (bit, name) in ["at", "node", "door", "bytes"].into_iter().enumerate() {
                if indexes >> bit & 1 == 1 {
                    log.add_index(id(&log, name));
                }
            }
        };
        if !late {
            add();
        }
        let expression = dnf(&log, &format!("node == {host} and (door == {port} or bytes >= {low})"));
        let first = dnf(&log, &format!("node == {host}"));
        let of_node = first.clone();
        let of_host = filter.then(|| log.add_filter(first));
        append(&log, &rows);
        if late {
            add();
        }
        let then = dnf(&log, &format!("door == {port} or bytes >= {low}"));
        let snapshot = log.snapshot();
        let query = match of_host {
            Some(filter) => snapshot.filter(filter).expect("it is there").matching(&then),
            None => snapshot.query().matching(&expression),
        };
        let query = query.from(from).to(to);
        let expected: Vec<_> = rows
            .iter()
            .enumerate()
            .filter(|(_, (at, of, to_port, bytes))| {
                *of == host && (*to_port == port || *bytes >= low) && (from..to).contains(at)
            })
            .map(|(position, row)| (position as u64, *row))
            .collect();
        let found: Vec<_> = query.matched().map(|(position, _)| position).collect();
        prop_assert_eq!(&found, &expected.iter().map(|(position, _)| *position).collect::<Vec<_>>(), "{}", query.explain());
        prop_assert_eq!(query.matched().count(), expected.len() as u64);

        let bytes = id(&log, "bytes");
        let nested = snapshot.query().matching(&of_node).matching(&then).from(from).to(to);
        prop_assert_eq!(nested.matched().map(|(position, _)| position).collect::<Vec<_>>(), found, "{}", nested.explain());
        let mut by_time: Vec<_> = expected.iter().map(|(position, row)| (row.0, *position)).collect();
        by_time.sort_unstable();
        let by_time: Vec<_> = by_time.into_iter().map(|(_, position)| position).collect();
        prop_assert_eq!(query.by_time().map(|(position, _)| position).collect::<Vec<_>>(), by_time);

        let functions = [Function::Count, Function::Sum(bytes), Function::Max(bytes)];
        let sums = |rows: &[Row]| {
            let bytes = || rows.iter().map(|row| u128::from(row.3));
            [rows.len() as u128, bytes().sum(), bytes().max().unwrap_or(0)].map(Number::Unsigned).to_vec()
        };
        let all: Vec<_> = expected.iter().map(|(_, row)| *row).collect();
        prop_assert_eq!(query.matched().fold(&functions), sums(&all));

        let mut groups: BTreeMap<Vec<u128>, Vec<Row>> = BTreeMap::new();
        for row in &all {
            let stretch = (i128::from(row.0) - i128::from(origin)).div_euclid(1000) * 1000 + i128::from(origin);
            groups.entry(vec![row.2.into(), stretch.max(0) as u128]).or_default().push(*row);
        }
        let keys = [GroupKey::Attribute(id(&log, "door")), GroupKey::Time { attribute: id(&log, "at"), width: 1000, origin }];
        let mut grouped = query.matched().group(&keys, &functions);
        let mut expected: Vec<_> = groups.into_iter().map(|(key, rows)| (key, sums(&rows))).collect();
        prop_assert_eq!(&grouped.iter().collect::<Vec<_>>(), &expected);
        grouped.top(3, 1);
        expected.sort_by(|a, b| b.1[1].compare(a.1[1]).then_with(|| a.0.cmp(&b.0)));
        expected.truncate(3);
        prop_assert_eq!(grouped.iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_largest_time_is_found_without_an_end() {
    let ends = [0, 1, 2, i64::MAX as u64, u64::MAX - 1, u64::MAX];
    let log = log(&schema());
    append(&log, &ends.map(|at| (at, 1, 1, 1)));
    let snapshot = log.snapshot();
    for (from, to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to))) {
        let meant = |at: &&u64| **at >= from && (**at < to || to == u64::MAX);
        let query = snapshot.query().from(from).to(to);
        assert_eq!(query.matched().count() as usize, ends.iter().filter(meant).count(), "{from} to {to}");
    }
}

#[test]
fn dates_are_times_since_1970() {
    let second = 1_000_000_000u64;
    // 2021-07-23T16:56:49Z.
    let start = 1_627_059_409 * second;
    let log = log(&schema());
    append(&log, &[(start - 1, 1, 1, 1), (start, 1, 1, 1), (start + second / 2, 1, 1, 1), (start + second, 1, 1, 1)]);
    let snapshot = log.snapshot();
    for (text, found) in [
        ("at >= 2021-07-23T16:56:49Z", 3),
        ("at == 2021-07-23T18:56:49+02:00", 1),
        ("at in 2021-07-23T16:56:49.5Z..2021-07-23T16:56:50Z", 2),
        ("not at in {2021-07-23T16:56:49Z, 2021-07-23T16:56:50Z}", 2),
        ("at < 2021-07-23 or at > 2021-07-24", 0),
        ("at > 2021-07-23 and at < 2021-07-24T00:00:00Z", 4),
    ] {
        assert_eq!(snapshot.query().matching(&dnf(&log, text)).matched().count(), found, "{text}");
    }
}

#[test]
fn the_cheapest_path_is_chosen_and_explained() {
    let schema = schema();
    let log = log(&schema);
    let rows: Vec<_> =
        (0..200_000u32).map(|n| (u64::from(n), (n % 200) as u8, (n % 10) as u16, (n % 1500) as u16)).collect();
    append(&log, &rows);
    let expression = dnf(&log, "node == 7 and door == 7");
    let explain = |at: &str| log.snapshot().query().matching(&dnf(&log, at)).explain().to_string();
    assert_eq!(explain("node == 7 and door == 7"), "a look at 200,000 records; of 200,000 records");
    log.add_index(id(&log, "door"));
    log.add_index(id(&log, "node"));
    let plan = explain("node == 7 and door == 7");
    assert_eq!(
        plan,
        "the index of node, about 984 records in 3 blocks, where it helps also of door; a look at 3,392 records; of \
         200,000 records"
    );
    // Each term of a disjunction needs an index.
    assert!(explain("node == 7 or bytes == 3").starts_with("a look at 200,000"));
    assert!(explain("node == 7 or door == 3").starts_with("the index of node"));
    assert_eq!(explain(""), "all records; of 200,000 records");
    let filter = log.add_filter(expression.clone());
    assert_eq!(explain("node == 7 and door == 7"), "the matches of a filter of the log; of 200,000 records");
    let snapshot = log.snapshot();
    let within = snapshot.filter(filter).expect("it is there").from(5).to(10);
    let time = Step::Time { attribute: "at".to_owned(), from: 5, to: 10 };
    assert_eq!(within.explain().steps, [time, Step::Filter { known: 1, chunks: 1 }]);
    assert_eq!(within.matched().map(|(position, _)| position).collect::<Vec<_>>(), [7]);
    let usage = snapshot.usage();
    assert_eq!(usage.records, 200_000 * 13);
    // Two bytes for each record and index, and the directories.
    assert!((2 * 2 * 196_608..2 * 3 * 196_608).contains(&usage.indexes), "{usage:?}");
    assert!(usage.filters > 0 && usage.total() > usage.records);
}

/// Chunks of 1024 records outside the range are not examined, and not counted; blocks of 65,536 neither.
#[test]
fn the_records_of_a_time_range_are_counted_in_whole_chunks() {
    let schema = schema();
    let log = log(&schema);
    let rows: Vec<_> =
        (0..200_000u32).map(|n| (u64::from(n), (n % 200) as u8, (n % 10) as u16, (n % 1500) as u16)).collect();
    append(&log, &rows);
    let expression = dnf(&log, "node == 7");
    let steps = |from: u64, to: u64| {
        let snapshot = log.snapshot();
        let explained = snapshot.query().matching(&expression).from(from).to(to).explain();
        assert_eq!(explained.records, 200_000);
        explained.steps[1..].iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // Chunks 97 to 107.
    assert_eq!(steps(100_000, 110_000), ["a look at 11,264 records"]);
    assert_eq!(steps(300_000, 310_000), ["a look at 0 records"]);
    assert_eq!(steps(199_999, 200_000), ["a look at 320 records"]);
    log.add_index(id(&log, "node"));
    assert_eq!(steps(100_000, 110_000), ["the index of node, about 328 records in 1 block"]);
    // Chunk 192 is after the last whole block.
    let both = ["the index of node, about 328 records in 1 block", "a look at 1,024 records"];
    assert_eq!(steps(190_000, 197_000), both);
}

#[test]
fn an_intake_filters_samples_and_counts() {
    let schema = schema();
    let log = log(&schema);
    let record = |node: u8| {
        let mut record = vec![0; schema.record_size()];
        schema.reader(id(&log, "node")).write(&mut record, node.into());
        record
    };
    let expression = dnf(&log, "node < 50");
    let mut intake = Intake::new(&log).filtered(&expression).sampled(0.25, 7).unwrap();
    let records: Vec<u8> = (0..40_000u32).flat_map(|n| record((n % 100) as u8)).collect();
    for batch in records.chunks(schema.record_size() * 64) {
        intake.offer(batch);
    }
    let counts = intake.counts();
    assert_eq!((counts.filtered, counts.refused, counts.appended + counts.unsampled), (20_000, 0, 20_000));
    // Five standard deviations.
    assert!((counts.appended as i64 - 5000).abs() < 5 * 61, "{counts:?}");
    let snapshot = log.snapshot();
    assert_eq!(snapshot.len(), counts.appended);
    assert_eq!(snapshot.query().matching(&expression).matched().count(), counts.appended);
    assert_eq!(Intake::new(&log).offer(&records).appended, 40_000);
    assert_eq!(Intake::new(&log).sampled(1.0, 1).unwrap().offer(&records).appended, 40_000);
    for wrong in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(Intake::new(&log).sampled(wrong, 1).unwrap_err().to_string().contains("is not a share of records"));
    }
}
