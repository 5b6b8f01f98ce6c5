//! Writers, queries, triggers, and filters, indexes and aggregates that are added and removed, all at once: every snapshot agrees with
//! an evaluation of its records. `QUEUESCOPE_STRESS` is the number of rounds (one if it is not set; some hundred take minutes).

#![allow(clippy::disallowed_methods, reason = "the environment of a test sets how long it runs")]

use queuescope_log::{
    Dnf, FilterId, FrozenTail, Function, GroupKey, Log, Memory, Monitor, Number, Options, Relation, Schema, Snapshot,
    Trigger,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SCHEMA: &str = r#"
name = "stress"

[[attribute]]
name = "writer"
kind = "u8"

[[attribute]]
name = "number"
kind = "u32"

[[attribute]]
name = "random"
kind = "u16"
"#;

/// More than the machine has cores.
const WRITERS: u8 = 5;
const EACH: u32 = 60_000;

/// A number's random value, which all threads can compute.
fn random(writer: u8, number: u32) -> u16 {
    let mixed = (u64::from(number) << 8 | u64::from(writer)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u16 % 1000
}

fn record(writer: u8, number: u32) -> [u8; 7] {
    let (number, random) = (number.to_be_bytes(), random(writer, number).to_be_bytes());
    [writer, number[0], number[1], number[2], number[3], random[0], random[1]]
}

/// Writes in batches of changing size.
fn write(log: &Log, writer: u8) {
    let mut next = 0;
    while next < EACH {
        let count = match next % 7 {
            0 => 1,
            1 => 32,
            2 => 1500,
            _ => 3,
        };
        let batch: Vec<u8> = (next..EACH.min(next + count)).flat_map(|number| record(writer, number)).collect();
        assert_eq!(log.append(&batch).refused, 0);
        next += count;
    }
}

/// Checks that every record is whole, and that each writer's records are in order without gaps: the reference for everything else.
fn check_records(snapshot: &Snapshot<'_>) -> Vec<(u8, u32, u16)> {
    let mut next = [0; WRITERS as usize];
    let mut records = Vec::with_capacity(snapshot.len() as usize);
    for position in 0..snapshot.len() {
        let found = snapshot.record(position);
        let (writer, number) = (found[0], u32::from_be_bytes([found[1], found[2], found[3], found[4]]));
        assert_eq!(found, record(writer, number), "a record is torn at {position}");
        assert_eq!(number, next[usize::from(writer)], "a record of writer {writer} is missing or out of order");
        next[usize::from(writer)] += 1;
        records.push((writer, number, random(writer, number)));
    }
    records
}

fn dnf(log: &Log, text: &str) -> Dnf {
    let scope = log.scope();
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
}

/// Compares a filter of the log, an equal expression, and a direct evaluation.
fn check_query(snapshot: &Snapshot<'_>, dnf: &Dnf, filter: Option<FilterId>, by_hand: &[u64]) {
    let query = snapshot.query().matching(dnf);
    assert_eq!(query.matched().map(|(position, _)| position).collect::<Vec<_>>(), by_hand, "{}", query.explain());
    if let Some(query) = filter.and_then(|filter| snapshot.filter(filter)) {
        assert_eq!(query.matched().count(), by_hand.len() as u64);
        assert_eq!(query.matched().map(|(position, _)| position).collect::<Vec<_>>(), by_hand);
    }
}

fn places(records: &[(u8, u32, u16)], holds: impl Fn(&(u8, u32, u16)) -> bool) -> Vec<u64> {
    records.iter().enumerate().filter(|(_, record)| holds(record)).map(|(place, _)| place as u64).collect()
}

fn round(prefault: bool) {
    let schema = Schema::parse("stress.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    let memory = if prefault { Memory::Prefaulted } else { Memory::Lazy };
    let records = u64::from(WRITERS) * u64::from(EACH);
    let log = Log::new(schema, Options { records, memory }).unwrap_or_else(|error| panic!("{error}"));
    let attribute = |name| log.schema().find(name).expect("it is in the schema");
    let (small, of_two) = (dnf(&log, "random < 20"), dnf(&log, "writer == 2 and random >= 500"));
    let small_filter = log.add_filter(small.clone());
    let small_count = log.add_aggregate(&["SMALL"], Some(small_filter), &Function::Count).expect("the name is free");
    let highest = log.add_aggregate(&["HIGHEST"], None, &Function::Max(attribute("number"))).expect("the name is free");
    // Each number that comes behind a higher one.
    let late = log.add_filter(dnf(&log, "number < HIGHEST"));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let log = &log;
                    move || write(log, writer)
                })
            })
            .collect();
        scope.spawn(|| {
            // Derived data is added and removed.
            while !over.load(Ordering::Relaxed) {
                log.add_index(attribute("random"));
                let filter = log.add_filter(of_two.clone());
                let sum = log.add_aggregate(&["SUM"], Some(filter), &Function::Sum(attribute("random")));
                let sum = sum.expect("the name is free");
                log.add_index(attribute("writer"));
                // A filter that sees records in order, and is added late.
                let rise = log.add_filter(dnf(&log, "number > HIGHEST"));
                let snapshot = log.snapshot();
                let records = check_records(&snapshot);
                let of_two_places = places(&records, |(writer, _, random)| *writer == 2 && *random >= 500);
                check_query(&snapshot, &of_two, Some(filter), &of_two_places);
                let expected = of_two_places.iter().map(|place| u128::from(records[*place as usize].2)).sum();
                assert_eq!(snapshot.value(sum), Some(Number::Unsigned(expected)));
                let mut highest = 0;
                let rises = records.iter().enumerate().filter(|(_, (_, number, _))| {
                    let rises = *number > highest;
                    highest = highest.max(*number);
                    rises
                });
                let found = snapshot.filter(rise).expect("it is there").matched().map(|(position, _)| position);
                assert_eq!(found.collect::<Vec<_>>(), rises.map(|(place, _)| place as u64).collect::<Vec<_>>());
                assert!(log.remove_filter(rise));
                assert!(log.remove_filter(filter) && log.remove_index(attribute("random")));
                assert!(log.remove_aggregate(sum) && log.remove_index(attribute("writer")));
                // A snapshot keeps what it has.
                assert_eq!(snapshot.value(sum), Some(Number::Unsigned(expected)));
                check_query(&snapshot, &of_two, Some(filter), &of_two_places);
            }
        });
        scope.spawn(|| {
            let mut before = 0;
            while !over.load(Ordering::Relaxed) {
                let snapshot = log.snapshot();
                assert!(snapshot.len() >= before, "the tail moved back");
                before = snapshot.len();
                let records = check_records(&snapshot);
                let small_places = places(&records, |(.., random)| *random < 20);
                check_query(&snapshot, &small, Some(small_filter), &small_places);
                assert_eq!(snapshot.value(small_count), Some(Number::Unsigned(small_places.len() as u128)));
                let mut highest_now = 0;
                let behind = |(_, number, _): &(u8, u32, u16)| {
                    let late = *number < highest_now;
                    highest_now = highest_now.max(*number);
                    late
                };
                let mut behind = behind;
                let late_places: Vec<_> = records
                    .iter()
                    .enumerate()
                    .filter(|(_, record)| behind(record))
                    .map(|(place, _)| place as u64)
                    .collect();
                let found = snapshot.filter(late).expect("it stays").matched().map(|(position, _)| position);
                assert_eq!(found.collect::<Vec<_>>(), late_places);
                let highest_of = records.iter().map(|(_, number, _)| u128::from(*number)).max().unwrap_or(0);
                assert_eq!(snapshot.value(highest), Some(Number::Unsigned(highest_of)));
                let groups =
                    snapshot.query().matched().group(&[GroupKey::Attribute(attribute("writer"))], &[Function::Count]);
                assert_eq!(
                    groups.len(),
                    (0..WRITERS).filter(|of| records.iter().any(|(writer, ..)| writer == of)).count()
                );
            }
        });
        scope.spawn(|| {
            let mut monitor = Monitor::new(&log);
            let trigger = Trigger {
                aggregate: small_count,
                relation: Relation::AtLeast,
                threshold: Number::Unsigned(1),
                period: 1,
                window: None,
            };
            let small = |positions: Range<u64>| {
                let snapshot = log.snapshot();
                let random = |at| u16::from_be_bytes([snapshot.record(at)[5], snapshot.record(at)[6]]);
                positions.filter(|at| random(*at) < 20).count() as u128
            };
            // The window begins at the log's current position.
            let frozen = FrozenTail::of(&log);
            let all = monitor.add(trigger).expect("it can be");
            let window = monitor.add(Trigger { window: Some(3), ..trigger }).expect("it can be");
            let mut last = frozen.position();
            drop(frozen);
            // These share the window.
            for threshold in 1..200 {
                monitor.add(Trigger { threshold: Number::Unsigned(threshold * 20), ..trigger }).expect("it can be");
                monitor
                    .add(Trigger { threshold: Number::Unsigned(threshold), window: Some(3), ..trigger })
                    .expect("it can be");
            }
            let mut count = small(0..last);
            let (mut now, mut recent) = (0, VecDeque::from([0; 3]));
            while !over.load(Ordering::Relaxed) {
                let mut alerts = Vec::new();
                monitor.pass(now, |alert| alerts.push(alert));
                // All alerts of a pass are from one snapshot; without alerts, no record counts yet.
                let position = alerts.first().map_or(last, |alert| alert.position);
                assert!(position >= last && alerts.iter().all(|alert| alert.position == position));
                let more = small(last..position);
                (last, count) = (position, count + more);
                recent.pop_front();
                recent.push_back(more);
                let expected = |count: u128| (count > 0).then_some(Number::Unsigned(count));
                let found = |id| alerts.iter().find(|alert| alert.trigger == id).map(|alert| alert.value);
                assert_eq!(found(all), expected(count));
                assert_eq!(found(window), expected(recent.iter().sum()));
                now += 1;
                if now % 16 == 0 {
                    let frozen = FrozenTail::of(&log);
                    assert_eq!(log.snapshot().len(), frozen.position());
                    thread::yield_now();
                    assert_eq!(log.snapshot().len(), frozen.position());
                }
            }
        });
        let written: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok), "a writer failed");
    });
    let snapshot = log.snapshot();
    assert_eq!(snapshot.len(), records);
    check_records(&snapshot);
}

#[test]
fn every_snapshot_is_what_its_records_are() {
    let rounds = std::env::var("QUEUESCOPE_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for number in 0..rounds {
        round(number % 2 == 1);
    }
}
