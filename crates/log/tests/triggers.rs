//! Triggers fire exactly when their condition holds.

use queuescope_log::{
    AggregateId, Alert, Function, Log, Memory, Monitor, Number, Options, Relation, Schema, Trigger, TriggerError,
};

const SCHEMA: &str = "name = \"one\"\n[[attribute]]\nname = \"value\"\nkind = \"u16\"\n";
const MS: u64 = 1_000_000;

fn log() -> Log {
    let schema = Schema::parse("one.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    Log::new(schema, Options { records: 100_000, memory: Memory::Lazy }).unwrap_or_else(|error| panic!("{error}"))
}

fn append(log: &Log, values: impl IntoIterator<Item = u16>) {
    let bytes: Vec<u8> = values.into_iter().flat_map(u16::to_be_bytes).collect();
    assert_eq!(log.append(&bytes).refused, 0);
}

fn aggregate(log: &Log, name: &str, filter: Option<&str>, function: &Function) -> AggregateId {
    let scope = log.scope();
    let filter = filter.map(|text| {
        let expr = scope.parse(text).unwrap_or_else(|error| panic!("{error}"));
        log.add_filter(expr.dnf(&scope).expect("it is simple"))
    });
    log.add_aggregate(&[name], filter, function).expect("the name is free")
}

fn above(aggregate: AggregateId, threshold: u128, window: Option<u64>) -> Trigger {
    Trigger { aggregate, relation: Relation::Greater, threshold: Number::Unsigned(threshold), period: MS, window }
}

fn pass(monitor: &mut Monitor<'_>, now: u64) -> Vec<Alert> {
    let mut alerts = Vec::new();
    monitor.pass(now, |alert| alerts.push(alert));
    alerts
}

#[test]
fn a_trigger_fires_each_period_while_its_condition_holds() {
    let log = log();
    let large = aggregate(&log, "LARGE", Some("value > 100"), &Function::Count);
    let mut monitor = Monitor::new(&log);
    let (two, five) = (monitor.add(above(large, 2, None)).unwrap(), monitor.add(above(large, 5, None)).unwrap());
    assert_eq!((monitor.len(), monitor.due()), (2, Some(0)));
    append(&log, [1, 200, 200]);
    assert_eq!(pass(&mut monitor, 0), []);
    append(&log, [200, 7]);
    assert_eq!(pass(&mut monitor, MS / 2), [], "the period is not over");
    let [alert] = pass(&mut monitor, MS)[..] else { panic!("one fires") };
    assert_eq!((alert.trigger, alert.value, alert.position, alert.new), (two, Number::Unsigned(3), 5, true));
    let [alert] = pass(&mut monitor, 2 * MS)[..] else { panic!("it still fires") };
    assert!(!alert.new);
    append(&log, vec![200; 5000]);
    let fired: Vec<_> = pass(&mut monitor, 3 * MS).into_iter().map(|alert| alert.trigger).collect();
    assert_eq!(fired, [two, five]);
    assert!(monitor.remove(two) && !monitor.remove(two));
    assert_eq!(pass(&mut monitor, 4 * MS).len(), 1);
    assert!(monitor.remove(five) && monitor.is_empty() && monitor.due().is_none());
}

#[test]
fn a_window_slides_also_over_a_maximum() {
    let log = log();
    let value = log.schema().find("value").unwrap();
    let sum = aggregate(&log, "SUM", None, &Function::Sum(value));
    let max = aggregate(&log, "MAX", None, &Function::Max(value));
    append(&log, [60_000; 10]);
    let mut monitor = Monitor::new(&log);
    // Records from before the trigger are in no window.
    let sums = monitor.add(above(sum, 0, Some(3 * MS))).unwrap();
    let maxima = monitor.add(above(max, 0, Some(3 * MS))).unwrap();
    let values: Vec<u16> = vec![5, 0, 7, 3, 0, 0, 0, 9, 1, 1, 1, 1, 0, 2, 8, 6, 4, 4, 4];
    for (index, value) in values.iter().enumerate() {
        // Many records in a period, including the value.
        append(&log, std::iter::once(*value).chain(std::iter::repeat_n(0, 700)));
        let window = &values[index.saturating_sub(2)..=index];
        let alerts = pass(&mut monitor, index as u64 * MS);
        let found = |id| alerts.iter().find(|alert| alert.trigger == id).map(|alert| alert.value);
        let expected = |value: u128| (value > 0).then_some(Number::Unsigned(value));
        assert_eq!(found(sums), expected(window.iter().map(|value| u128::from(*value)).sum()), "{index}");
        assert_eq!(found(maxima), expected(window.iter().copied().max().unwrap_or(0).into()), "{index}");
    }
}

#[test]
fn counts_go_on_while_filters_come_and_go() {
    let log = log();
    let small = aggregate(&log, "SMALL", Some("value < 10"), &Function::Count);
    let value = log.schema().find("value").unwrap();
    // A filter that sees records in order, beside those that do not.
    aggregate(&log, "HIGHEST", None, &Function::Max(value));
    let low = aggregate(&log, "LOW", Some("value < HIGHEST"), &Function::Count);
    let mut monitor = Monitor::new(&log);
    let window = Some(2 * MS);
    let ids = [above(small, 0, None), above(small, 0, window), above(low, 0, None), above(low, 0, window)];
    let ids = ids.map(|trigger| monitor.add(trigger).unwrap());
    let (mut counts, mut others) = ([(0, 0)].to_vec(), Vec::new());
    let mut most = 0;
    for round in 0..60u64 {
        // From no records to several chunks of records at once.
        let new: Vec<u16> = (0..[0, 1, 40, 700, 1024, 3000, 5][round as usize % 7])
            .map(|n: u64| (n * 7919 + round) as u16 % 40)
            .collect();
        let small_now = new.iter().filter(|value| **value < 10).count();
        let low_now = new.iter().filter(|value| {
            let low = **value < most;
            most = most.max(**value);
            low
        });
        counts.push((small_now, low_now.count()));
        append(&log, new);
        match round % 5 {
            1 => others.push(log.add_filter(log.scope().parse("value == 3").unwrap().dnf(&log.scope()).unwrap())),
            4 => assert!(log.remove_filter(others.remove(0))),
            _ => {}
        }
        let alerts = pass(&mut monitor, round * MS);
        let found = ids.map(|id| alerts.iter().find(|alert| alert.trigger == id).map(|alert| alert.value));
        let sum = |counts: &[(usize, usize)]| {
            let sums = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0 as u128, sum.1 + count.1 as u128));
            [sums.0, sums.1].map(|count| (count > 0).then_some(Number::Unsigned(count)))
        };
        let ([small, low], [small_window, low_window]) = (sum(&counts), sum(&counts[counts.len() - 2..]));
        assert_eq!(found, [small, small_window, low, low_window], "{round}");
    }
}

#[test]
fn missed_periods_are_not_made_up_for() {
    let log = log();
    let all = aggregate(&log, "ALL", None, &Function::Count);
    let mut monitor = Monitor::new(&log);
    monitor.add(above(all, 0, None)).unwrap();
    append(&log, [1]);
    assert_eq!(pass(&mut monitor, 0).len(), 1);
    assert_eq!(pass(&mut monitor, 10 * MS + 5).len(), 1);
    assert_eq!((pass(&mut monitor, 10 * MS + 6).len(), monitor.due()), (0, Some(11 * MS + 5)));
}

#[test]
fn a_window_drops_old_records_whenever_it_is_checked() {
    let log = log();
    let value = log.schema().find("value").unwrap();
    let all = aggregate(&log, "ALL", None, &Function::Count);
    let max = aggregate(&log, "MAX", None, &Function::Max(value));
    let mut monitor = Monitor::new(&log);
    monitor.add(above(all, 0, Some(3 * MS))).unwrap();
    monitor.add(above(max, 0, Some(3 * MS))).unwrap();
    let mut counts = |now| {
        let alerts = pass(&mut monitor, now);
        alerts.iter().map(|alert| alert.value).collect::<Vec<_>>()
    };
    let numbers = |count: u128, max: u128| vec![Number::Unsigned(count), Number::Unsigned(max)];
    // The first pass may be at any time.
    append(&log, [7]);
    assert_eq!(counts(1000 * MS), numbers(1, 7));
    append(&log, [5]);
    // Two periods were missed: the first record is three periods old.
    assert_eq!(counts(1003 * MS), numbers(1, 5));
    assert_eq!(counts(1004 * MS), numbers(1, 5));
    append(&log, [3]);
    assert_eq!(counts(9000 * MS), numbers(1, 3));
    assert_eq!(counts(u64::MAX), []);
}

#[test]
fn a_trigger_shares_an_existing_window() {
    let log = log();
    let all = aggregate(&log, "ALL", None, &Function::Count);
    let mut monitor = Monitor::new(&log);
    monitor.add(above(all, 0, Some(2 * MS))).unwrap();
    append(&log, [1, 2]);
    assert_eq!(pass(&mut monitor, 0).len(), 1);
    let late = monitor.add(above(all, 1, Some(2 * MS))).unwrap();
    let alerts = pass(&mut monitor, MS);
    assert_eq!(
        alerts.iter().map(|alert| (alert.trigger == late, alert.value)).collect::<Vec<_>>(),
        [(false, Number::Unsigned(2)), (true, Number::Unsigned(2))]
    );
}

#[test]
fn many_triggers_of_one_aggregate_and_many_aggregates_of_one_filter() {
    let log = log();
    let value = log.schema().find("value").unwrap();
    let scope = log.scope();
    let filter = log.add_filter(scope.parse("value > 10").unwrap().dnf(&scope).unwrap());
    let count = log.add_aggregate(&["COUNT"], Some(filter), &Function::Count).unwrap();
    let lowest = log.add_aggregate(&["LOWEST"], Some(filter), &Function::Min(value)).unwrap();
    let mut monitor = Monitor::new(&log);
    for threshold in 0..1000 {
        monitor.add(above(count, threshold, None)).unwrap();
        monitor.add(above(lowest, threshold, None)).unwrap();
    }
    append(&log, (0..600).map(|n| n % 300));
    let alerts = pass(&mut monitor, 0);
    // 289 values above 10, each twice; the lowest is 11.
    assert_eq!(alerts.len(), 578 + 11);
}

#[test]
fn invalid_triggers_are_refused() {
    let log = log();
    let all = aggregate(&log, "ALL", None, &Function::Count);
    let mut monitor = Monitor::new(&log);
    assert_eq!(monitor.add(above(AggregateId(9), 0, None)), Err(TriggerError::NoAggregate));
    assert_eq!(monitor.add(Trigger { period: 0, ..above(all, 0, None) }), Err(TriggerError::NoPeriod));
    assert_eq!(monitor.add(above(all, 0, Some(u64::MAX))), Err(TriggerError::LongWindow));
    let trigger = monitor.add(above(all, 0, None)).unwrap();
    // A trigger keeps its aggregate.
    assert!(log.remove_aggregate(all));
    append(&log, [1]);
    assert_eq!(pass(&mut monitor, 0)[0].trigger, trigger);
}
