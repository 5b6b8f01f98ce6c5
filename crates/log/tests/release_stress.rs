//! Records are released while other threads write, query, check triggers, and add and remove derived data: every snapshot has
//! all records from its floor on, and aggregates include released records. `QUEUESCOPE_STRESS` is the number of rounds (one if it is not
//! set).

#![allow(clippy::disallowed_methods, reason = "the environment of a test sets how long it runs")]

use queuescope_log::{
    AggregateId, Dnf, Function, Log, Memory, Monitor, Number, Options, Relation, Schema, Snapshot, Trigger,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

const WRITERS: u8 = 3;
const EACH: u32 = 250_000;
const SIZE: usize = 7;

/// A number's random value, which all threads can compute.
fn random(writer: u8, number: u32) -> u16 {
    let mixed = (u64::from(number) << 8 | u64::from(writer)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u16 % 1000
}

fn record(writer: u8, number: u32) -> [u8; SIZE] {
    let (number, random) = (number.to_be_bytes(), random(writer, number).to_be_bytes());
    [writer, number[0], number[1], number[2], number[3], random[0], random[1]]
}

/// Writes in batches of changing size.
fn write(log: &Log, writer: u8) {
    let mut next = 0;
    while next < EACH {
        let count = [1, 300, 1500, 3, 64][next as usize % 5];
        let batch: Vec<u8> = (next..EACH.min(next + count)).flat_map(|number| record(writer, number)).collect();
        assert_eq!(log.append(&batch).refused, 0);
        next += count;
    }
}

fn dnf(log: &Log, text: &str) -> Dnf {
    let scope = log.scope();
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
}

/// Checks that every record is whole, and that each writer's records are in order. Returns writer, number and random value of each.
fn look(snapshot: &Snapshot<'_>) -> Vec<(u8, u32, u16)> {
    let mut next = [None; WRITERS as usize];
    let rows = snapshot.records(snapshot.first()..snapshot.len());
    let read = |row: &[u8]| {
        let (writer, number) = (row[0], u32::from_be_bytes([row[1], row[2], row[3], row[4]]));
        assert_eq!(row, record(writer, number), "a record is torn, or gone while it is held");
        let next = &mut next[usize::from(writer)];
        assert_eq!(number, next.unwrap_or(number), "a record of writer {writer} is missing or out of order");
        *next = Some(number + 1);
        (writer, number, random(writer, number))
    };
    rows.chunks_exact(SIZE).map(read).collect()
}

/// All records of the log so far, and the filters and aggregates over them.
struct Expected {
    small: Dnf,
    small_filter: queuescope_log::FilterId,
    small_count: AggregateId,
    highest: AggregateId,
    late: queuescope_log::FilterId,
}

impl Expected {
    fn check(&self, snapshot: &Snapshot<'_>) {
        let (records, first) = (look(snapshot), snapshot.first());
        assert_eq!(records.len() as u64, snapshot.len() - first);
        let small = records.iter().zip(first..).filter(|((.., random), _)| *random < 20).map(|(_, at)| at);
        let small: Vec<_> = small.collect();
        let positions = |query: &queuescope_log::Query<'_>| query.matched().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(positions(&snapshot.query().matching(&self.small)), small);
        assert_eq!(positions(&snapshot.filter(self.small_filter).expect("it stays")), small);
        let before = |id| snapshot.state_before(id, first).expect("it stays")[0];
        let count = before(self.small_count) + small.len() as u128;
        assert_eq!(snapshot.value(self.small_count), Some(Number::Unsigned(count)));
        let mut highest = before(self.highest);
        let late = records.iter().zip(first..).filter(|((_, number, _), _)| {
            let late = u128::from(*number) < highest;
            highest = highest.max((*number).into());
            late
        });
        let late: Vec<_> = late.map(|(_, at)| at).collect();
        assert!(positions(&snapshot.filter(self.late).expect("it stays")) == late, "a filter in order went wrong");
        assert_eq!(snapshot.value(self.highest), Some(Number::Unsigned(highest)));
    }
}

fn round() {
    let schema = Schema::parse("stress.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    let records = u64::from(WRITERS) * u64::from(EACH);
    let log = Log::new(schema, Options { records, memory: Memory::Lazy }).unwrap_or_else(|error| panic!("{error}"));
    let attribute = |name| log.schema().find(name).expect("it is in the schema");
    let small = dnf(&log, "random < 20");
    let small_filter = log.add_filter(small.clone());
    let small_count = log.add_aggregate(&["SMALL"], Some(small_filter), &Function::Count).expect("the name is free");
    let highest = log.add_aggregate(&["HIGHEST"], None, &Function::Max(attribute("number"))).expect("the name is free");
    let late = log.add_filter(dnf(&log, "number < HIGHEST"));
    let known = Expected { small, small_filter, small_count, highest, late };
    let (over, floor, counted) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let working = || !over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let (log, known, floor) = (&log, &known, &floor);
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(log, writer))).collect();
        // A thread that releases almost all records, and sometimes all.
        scope.spawn(|| {
            let mut round = 0u64;
            while working() {
                let end = log.snapshot().len();
                let before = end.saturating_sub(round % 3 * 50_000);
                let given_back = log.release(before);
                let first = log.snapshot().first();
                assert!(given_back <= first && first <= end && first + Log::BLOCK > before);
                floor.store(first, Ordering::Relaxed);
                round += 1;
                thread::yield_now();
            }
        });
        // A thread that queries the newest snapshot, and older ones.
        scope.spawn(|| {
            while working() {
                let least = floor.load(Ordering::Relaxed);
                let snapshot = log.snapshot();
                assert!(snapshot.first() >= least, "a floor sank");
                known.check(&snapshot);
            }
        });
        scope.spawn(|| {
            let mut held = log.snapshot();
            while working() {
                let next = log.snapshot();
                known.check(&held);
                known.check(&held.clone());
                held = next;
            }
        });
        // Derived data is added and removed.
        scope.spawn(|| {
            while working() {
                log.add_index(attribute("random"));
                let of_two = log.add_filter(dnf(log, "writer == 2 and random >= 500"));
                let sum = log.add_aggregate(&["SUM"], Some(of_two), &Function::Sum(attribute("random")));
                let sum = sum.expect("the name is free");
                let rise = log.add_filter(dnf(log, "number > HIGHEST"));
                let snapshot = log.snapshot();
                assert!(log.remove_filter(of_two) && log.remove_filter(rise) && log.remove_index(attribute("random")));
                assert!(log.remove_aggregate(sum));
                let (records, first) = (look(&snapshot), snapshot.first());
                let by_hand = records.iter().filter(|(writer, _, random)| *writer == 2 && *random >= 500);
                let more = by_hand.map(|(.., random)| u128::from(*random)).sum::<u128>();
                let before = snapshot.state_before(sum, first).expect("it was there")[0];
                assert_eq!(snapshot.value(sum), Some(Number::Unsigned(before + more)));
                let mut highest = snapshot.state_before(known.highest, first).expect("it stays")[0];
                let rises = records.iter().filter(|(_, number, _)| {
                    let rises = u128::from(*number) > highest;
                    highest = highest.max((*number).into());
                    rises
                });
                let found = snapshot.filter(rise).expect("it was there").matched().count();
                assert_eq!(found, rises.count() as u64);
            }
        });
        // A monitor, whose count includes all records, however many were released since its last pass.
        scope.spawn(|| {
            let mut monitor = Monitor::new(log);
            let (relation, threshold) = (Relation::AtLeast, Number::Unsigned(1));
            let trigger = Trigger { aggregate: known.small_count, relation, threshold, period: 1, window: None };
            monitor.add(trigger).expect("it can be");
            monitor.add(Trigger { window: Some(3), ..trigger }).expect("it can be");
            let mut now = 0;
            while working() {
                let mut alerts = Vec::new();
                monitor.pass(now, |alert| alerts.push(alert));
                if let Some(alert) = alerts.first() {
                    let Number::Unsigned(value) = alert.value else { panic!("it is a count") };
                    let before = counted.fetch_max(value as u64, Ordering::Relaxed);
                    assert!(u128::from(before) <= value && value <= u128::from(alert.position));
                }
                now += 1;
                thread::yield_now();
            }
        });
        let written: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok), "a writer failed");
    });
    let all = || (0..WRITERS).flat_map(|writer| (0..EACH).map(move |number| random(writer, number)));
    let snapshot = log.snapshot();
    known.check(&snapshot);
    let small = all().filter(|random| *random < 20).count() as u128;
    assert_eq!(snapshot.value(known.small_count), Some(Number::Unsigned(small)));
    drop(snapshot);
    assert_eq!(log.release(u64::MAX), records / Log::BLOCK * Log::BLOCK, "nobody holds anything");
    known.check(&log.snapshot());
}

#[test]
fn every_snapshot_has_all_behind_its_floor() {
    let rounds = std::env::var("QUEUESCOPE_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    (0..rounds).for_each(|_| round());
}
