//! Triggers fire exactly when their condition holds.

use proptest::prelude::*;
use queuescope_log::{
    AggregateId, Alert, Function, Log, Memory, Monitor, Number, Options, Relation, Schema, Trigger, TriggerError,
};
use std::cmp::Ordering;

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

/// What an aggregate counts or sums, as the property has it.
#[derive(Debug, Clone, Copy)]
enum Over {
    /// The number of values below a limit; of all values, if that is zero.
    Count(u16),
    Sum,
    Max,
}

const AGGREGATES: [Over; 5] = [Over::Count(0), Over::Count(10), Over::Count(3), Over::Sum, Over::Max];

impl Over {
    fn of(self, values: &[u16]) -> Number {
        let values = values.iter().copied();
        Number::Unsigned(match self {
            Self::Count(0) => values.count() as u128,
            Self::Count(limit) => values.filter(|value| *value < limit).count() as u128,
            Self::Sum => values.map(u128::from).sum(),
            Self::Max => values.max().unwrap_or(0).into(),
        })
    }
}

/// Whether a value in this order to the threshold fires.
fn holds(relation: Relation, ordering: Ordering) -> bool {
    match relation {
        Relation::Less => ordering.is_lt(),
        Relation::AtMost => ordering.is_le(),
        Relation::Equal => ordering.is_eq(),
        Relation::NotEqual => ordering.is_ne(),
        Relation::AtLeast => ordering.is_ge(),
        Relation::Greater => ordering.is_gt(),
    }
}

#[derive(Debug, Clone)]
enum Event {
    Append(Vec<u16>),
    Pass,
    /// By the aggregate's place; the window is in periods.
    Add(usize, Relation, Number, Option<u64>),
    /// The `n`th trigger that is there.
    Remove(usize),
    /// A filter that comes or goes: the monitor then counts from the start.
    Filter,
}

fn event() -> impl Strategy<Value = Event> {
    let relation = prop::sample::select(vec![
        Relation::Less,
        Relation::AtMost,
        Relation::Equal,
        Relation::NotEqual,
        Relation::AtLeast,
        Relation::Greater,
    ]);
    let threshold = prop_oneof![
        (0..40u128).prop_map(Number::Unsigned),
        (0..3000u128).prop_map(Number::Unsigned),
        (-3..40i128).prop_map(Number::Signed),
        (-3..80i32).prop_map(|half| Number::Float(f64::from(half) / 2.0)),
        Just(Number::Unsigned(u128::MAX)),
    ];
    let window = prop::option::of(1..4u64);
    prop_oneof![
        4 => prop::collection::vec(0..30u16, 0..12).prop_map(Event::Append),
        1 => (900..2200u16).prop_map(|count| Event::Append((0..count).map(|n| n % 29).collect())),
        6 => Just(Event::Pass),
        3 => (0..AGGREGATES.len(), relation, threshold, window).prop_map(|(at, relation, threshold, window)| {
            Event::Add(at, relation, threshold, window)
        }),
        1 => (0..20usize).prop_map(Event::Remove),
        1 => Just(Event::Filter),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn triggers_fire_like_a_check_by_hand(events in prop::collection::vec(event(), 1..60)) {
        let log = log();
        let value = log.schema().find("value").unwrap();
        let aggregates = AGGREGATES.iter().enumerate().map(|(at, over)| {
            let (filter, function) = match over {
                Over::Count(0) => (None, Function::Count),
                Over::Count(limit) => (Some(format!("value < {limit}")), Function::Count),
                Over::Sum => (None, Function::Sum(value)),
                Over::Max => (None, Function::Max(value)),
            };
            aggregate(&log, &format!("A{at}"), filter.as_deref(), &function)
        });
        let aggregates: Vec<_> = aggregates.collect();
        let mut monitor = Monitor::new(&log);
        let mut all: Vec<u16> = Vec::new();
        // The end of the records at each pass, where each window began, and all triggers with whether they fired.
        let (mut ends, mut begun) = (Vec::new(), Vec::<((usize, u64), usize)>::new());
        let mut triggers = Vec::new();
        let mut filter = None;
        for event in events {
            match event {
                Event::Append(values) => {
                    append(&log, values.iter().copied());
                    all.extend(values);
                }
                Event::Add(at, relation, threshold, window) => {
                    let (period, length) = (MS, window.map(|periods| periods * MS));
                    let trigger = Trigger { aggregate: aggregates[at], relation, threshold, period, window: length };
                    let id = monitor.add(trigger).unwrap();
                    if let Some(window) = window && !begun.iter().any(|(key, _)| *key == (at, window)) {
                        begun.push(((at, window), all.len()));
                    }
                    triggers.push((id, at, relation, threshold, window, false));
                }
                Event::Remove(at) if !triggers.is_empty() => {
                    let (id, ..) = triggers.remove(at % triggers.len());
                    prop_assert!(monitor.remove(id));
                    begun.retain(|((at, window), _)| {
                        triggers.iter().any(|(_, other, _, _, length, _)| other == at && *length == Some(*window))
                    });
                }
                Event::Remove(_) => {}
                Event::Filter => match filter.take() {
                    Some(filter) => prop_assert!(log.remove_filter(filter)),
                    None => filter = Some(log.add_filter(log.scope().parse("value == 7").unwrap().dnf(&log.scope()).unwrap())),
                },
                Event::Pass => {
                    let now = ends.len() as u64 * MS;
                    let alerts = pass(&mut monitor, now);
                    let mut expected = Vec::new();
                    for (id, at, relation, threshold, window, fired) in &mut triggers {
                        let start = window.map_or(0, |periods| {
                            let begun = begun.iter().find(|(key, _)| *key == (*at, periods)).map_or(0, |(_, start)| *start);
                            ends.len().checked_sub(periods as usize).map_or(0, |pass| ends[pass]).max(begun)
                        });
                        let value = AGGREGATES[*at].of(&all[start..]);
                        let fires = holds(*relation, value.compare(*threshold));
                        if fires {
                            expected.push((*id, value, !*fired));
                        }
                        *fired = fires;
                    }
                    ends.push(all.len());
                    let mut found: Vec<_> = alerts.iter().map(|alert| (alert.trigger, alert.value, alert.new)).collect();
                    found.sort_unstable_by_key(|(id, ..)| *id);
                    prop_assert_eq!(found, expected);
                    prop_assert!(alerts.iter().all(|alert| alert.position == all.len() as u64 && alert.at == now));
                }
            }
        }
    }
}
