//! Limits and effects of releasing records.

use crate::rising;

use queuescope_log::{
    FrozenTail, Function, Log, Memory, MemoryError, Monitor, Number, Options, Relation, Schema, Trigger,
};
use rising::{append, dnf, found, log_from, record, records};

const BLOCK: u64 = Log::BLOCK;

#[test]
fn a_late_aggregate_covers_the_records_that_are_there() {
    let log = log_from(0, 1 << 20);
    append(&log, 2 * BLOCK + 700);
    assert_eq!(log.release(BLOCK + 5), BLOCK);
    let count = log.add_aggregate(&["COUNT"], None, &Function::Count).expect("the name is free");
    assert_eq!(log.snapshot().value(count), Some(Number::Unsigned(u128::from(BLOCK + 700))));
    assert_eq!(log.release(u64::MAX), 2 * BLOCK);
    assert_eq!(log.snapshot().value(count), Some(Number::Unsigned(u128::from(BLOCK + 700))));
    assert_eq!(log.release(BLOCK), 2 * BLOCK, "a floor does not sink");
}

#[test]
fn a_log_begins_far_away_and_has_room_for_much() {
    let first = (1 << 47) + BLOCK;
    let log = log_from(first, (1 << 40) / 11);
    let filter = log.add_filter(dnf(&log, "value < 300"));
    log.add_index(log.schema().find("key").expect("it is there"));
    assert_eq!(log.append(&records(0..BLOCK + 10)).positions, first..first + BLOCK + 10);
    let frozen = FrozenTail::of(&log);
    assert_eq!(frozen.position(), first + BLOCK + 10);
    drop(frozen);
    assert_eq!(log.release(u64::MAX), first + BLOCK);
    let snapshot = log.snapshot();
    assert_eq!(snapshot.records(snapshot.first()..snapshot.len()), records(BLOCK..BLOCK + 10));
    let by_hand = (BLOCK..BLOCK + 10).filter(|position| record(*position).2 < 300).map(|at| first + at);
    assert_eq!(found(&snapshot.filter(filter).expect("it is there")), by_hand.collect::<Vec<_>>());
    assert!(snapshot.usage().total() < 4 << 20, "{:?}", snapshot.usage());
}

#[test]
fn there_are_no_positions_behind_48_bits() {
    let options = Options { records: 10 * BLOCK, memory: Memory::Lazy };
    for first in [(1 << 48) - BLOCK, u64::MAX / BLOCK * BLOCK] {
        let log = Log::starting_at(Schema::packet().clone(), options, first);
        assert!(matches!(log, Err(MemoryError::TooLarge { .. })), "{first}");
    }
}

#[test]
#[should_panic(expected = "in the middle of one")]
fn a_log_begins_with_a_block() {
    log_from(BLOCK + 1, 10);
}

#[test]
#[should_panic(expected = "before the floor")]
fn released_records_cannot_be_read() {
    let log = log_from(0, 1 << 20);
    append(&log, BLOCK + 1);
    log.release(BLOCK);
    log.snapshot().record(BLOCK - 1);
}

#[test]
fn writers_skip_chunks_that_were_released() {
    let log = log_from(0, 1 << 20);
    let filter = log.add_filter(dnf(&log, "value < 300"));
    log.add_index(log.schema().find("key").expect("it is there"));
    let count = log.add_aggregate(&["COUNT"], Some(filter), &Function::Count).expect("the name is free");
    let rise = log.add_filter(dnf(&log, "value > COUNT"));
    // While the tail is frozen, writers derive nothing.
    let frozen = FrozenTail::of(&log);
    assert_eq!(log.append(&records(0..BLOCK + 3000)).refused, 0);
    drop(frozen);
    assert_eq!(log.release(u64::MAX), BLOCK);
    append(&log, 2 * BLOCK);
    let snapshot = log.snapshot();
    let small =
        |positions: std::ops::Range<u64>| positions.filter(|position| record(*position).2 < 300).count() as u128;
    assert_eq!(snapshot.value(count), Some(Number::Unsigned(small(0..snapshot.len()))));
    assert_eq!(found(&snapshot.filter(filter).expect("it is there")).len() as u128, small(BLOCK..snapshot.len()));
    // There are more small values than the highest value.
    assert_eq!(found(&snapshot.filter(rise).expect("it is there")), []);
}

#[test]
fn a_late_monitor_begins_at_the_floor() {
    let log = log_from(0, 1 << 20);
    let filter = log.add_filter(dnf(&log, "value < 300"));
    let value = log.schema().find("value").expect("it is there");
    let count = log.add_aggregate(&["COUNT"], Some(filter), &Function::Count).expect("the name is free");
    let sum = log.add_aggregate(&["SUM"], Some(filter), &Function::Sum(value)).expect("the name is free");
    let mut monitor = Monitor::new(&log);
    for (aggregate, window) in [(count, None), (count, Some(5)), (sum, None), (sum, Some(5))] {
        let trigger =
            Trigger { aggregate, relation: Relation::AtLeast, threshold: Number::Unsigned(0), period: 1, window };
        monitor.add(trigger).expect("it can be");
    }
    let mut pass = |now| {
        let mut values = Vec::new();
        monitor.pass(now, |alert| values.push(alert.value));
        values
    };
    let by_hand = |positions: std::ops::Range<u64>| {
        let small: Vec<_> = positions.map(|at| u128::from(record(at).2)).filter(|value| *value < 300).collect();
        [small.len() as u128, small.iter().sum()].map(Number::Unsigned)
    };
    append(&log, 5000);
    let [count, sum] = by_hand(0..5000);
    assert_eq!(pass(0), [count, count, sum, sum]);
    append(&log, 3 * BLOCK);
    // The monitor holds nothing.
    assert_eq!(log.release(2 * BLOCK), 2 * BLOCK);
    let end = log.snapshot().len();
    let ([count, sum], [early, late]) = (by_hand(0..end), [by_hand(0..5000), by_hand(2 * BLOCK..end)]);
    let window = [0, 1].map(|at| early[at].plus(late[at]));
    assert_eq!(pass(1), [count, window[0], sum, window[1]]);
    append(&log, 10);
    let ([count, sum], more) = (by_hand(0..end + 10), by_hand(end..end + 10));
    assert_eq!(pass(2), [count, window[0].plus(more[0]), sum, window[1].plus(more[1])]);
}
