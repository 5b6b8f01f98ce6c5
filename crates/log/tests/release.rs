//! From its floor on, a log that releases records agrees with one that keeps all; so do readers that began earlier.

use crate::rising;

use proptest::prelude::*;
use queuescope_log::{
    AggregateId, Alert, FilterId, Function, Log, Monitor, Number, Relation, Snapshot, Trigger, TriggerId,
};
use rising::{append, dnf, found, log_from, record, records};

const BLOCK: u64 = Log::BLOCK;
const MS: u64 = 1_000_000;
/// A direct evaluation of an expression, from a record's key and value.
type ByHand = fn(u8, u16) -> bool;

/// Expressions that need only the record.
const PLAIN: [(&str, ByHand); 5] = [
    ("value < 300", |_, value| value < 300),
    ("key == 3 and value >= 500", |key, value| key == 3 && value >= 500),
    ("key in {1, 5..7} or value == 9", |key, value| key == 1 || (5..=7).contains(&key) || value == 9),
    ("value == 7", |_, value| value == 7),
    ("key != 2 and value & 3 == 1", |key, value| key != 2 && value & 3 == 1),
];

fn function(log: &Log, which: usize) -> Function {
    let value = log.schema().find("value").expect("it is there");
    [Function::Count, Function::Max(value), Function::Sum(value), Function::Min(value), Function::Mean(value)]
        [which % 5]
        .clone()
}

/// An operation on both logs.
#[derive(Debug, Clone)]
enum Event {
    Append(u64),
    /// Which share of the records to release.
    Release(prop::sample::Index),
    Hold,
    LetGo(prop::sample::Index),
    AddFilter(usize),
    /// An expression that compares with an aggregate.
    AddOrdered(prop::sample::Index, bool),
    RemoveFilter(prop::sample::Index),
    AddAggregate(usize, Option<usize>),
    RemoveAggregate(prop::sample::Index),
    Index(&'static str, bool),
    Ask(usize, prop::sample::Index, prop::sample::Index),
    Pass,
}

fn event() -> impl Strategy<Value = Event> {
    use prop::sample::{Index, select};
    prop_oneof![
        3 => (1..3000u64).prop_map(Event::Append),
        4 => (20_000..90_000u64).prop_map(Event::Append),
        4 => any::<Index>().prop_map(Event::Release),
        2 => Just(Event::Hold),
        2 => any::<Index>().prop_map(Event::LetGo),
        2 => (0..PLAIN.len()).prop_map(Event::AddFilter),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(index, late)| Event::AddOrdered(index, late)),
        1 => any::<Index>().prop_map(Event::RemoveFilter),
        4 => (0..5usize, any::<Option<usize>>()).prop_map(|(which, filter)| Event::AddAggregate(which, filter)),
        1 => any::<Index>().prop_map(Event::RemoveAggregate),
        2 => (select(vec!["key", "value", "at"]), any::<bool>()).prop_map(|(name, add)| Event::Index(name, add)),
        2 => (0..PLAIN.len(), any::<Index>(), any::<Index>()).prop_map(|(which, a, b)| Event::Ask(which, a, b)),
        3 => Just(Event::Pass),
    ]
}

/// A log that releases, and one with the same records that does not.
struct Both<'a> {
    log: &'a Log,
    whole: &'a Log,
    floor: u64,
    held: Vec<Pair<'a>>,
    filters: Vec<(FilterId, FilterId)>,
    aggregates: Vec<(AggregateId, String)>,
    names: u32,
    monitors: [Monitor<'a>; 2],
    windows: Vec<TriggerId>,
    /// The time of the last pass, the position of the log then, and for how many passes a window lacks records.
    now: u64,
    passed: u64,
    lacking: u32,
}

/// Snapshots of both logs at one moment, and their results.
struct Pair<'a> {
    log: Snapshot<'a>,
    whole: Snapshot<'a>,
    first: u64,
    filters: Vec<(FilterId, FilterId)>,
    aggregates: Vec<AggregateId>,
}

impl<'a> Both<'a> {
    fn new(log: &'a Log, whole: &'a Log) -> Self {
        Self {
            log,
            whole,
            floor: 0,
            held: Vec::new(),
            filters: Vec::new(),
            aggregates: Vec::new(),
            names: 0,
            monitors: [Monitor::new(log), Monitor::new(whole)],
            windows: Vec::new(),
            now: 0,
            passed: 0,
            lacking: 0,
        }
    }

    fn pair(&self) -> Pair<'a> {
        let (log, whole) = (self.log.snapshot(), self.whole.snapshot());
        let aggregates = self.aggregates.iter().map(|(id, _)| *id).collect();
        Pair { log, whole, first: self.floor, filters: self.filters.clone(), aggregates }
    }

    fn happens(&mut self, event: &Event) {
        let length = self.whole.snapshot().len();
        match event {
            Event::Append(count) => [self.log, self.whole].iter().for_each(|log| append(log, *count)),
            Event::Release(index) => self.release(index.index(length as usize + 100) as u64),
            Event::Hold => self.held.push(self.pair()),
            Event::LetGo(index) => {
                if !self.held.is_empty() {
                    self.held.swap_remove(index.index(self.held.len())).check();
                }
            }
            Event::AddFilter(which) => self.add_filter(PLAIN[*which].0),
            Event::AddOrdered(index, above) => {
                if !self.aggregates.is_empty() {
                    let (_, name) = index.get(&self.aggregates);
                    self.add_filter(&format!("value {} {name}", if *above { ">" } else { "<" }));
                }
            }
            Event::RemoveFilter(index) => {
                if !self.filters.is_empty() {
                    let (of_log, of_whole) = self.filters.remove(index.index(self.filters.len()));
                    assert!(self.log.remove_filter(of_log) && self.whole.remove_filter(of_whole));
                }
            }
            Event::AddAggregate(which, filter) => self.add_aggregate(*which, *filter),
            Event::RemoveAggregate(index) => {
                if !self.aggregates.is_empty() {
                    let (id, _) = self.aggregates.remove(index.index(self.aggregates.len()));
                    assert!(self.log.remove_aggregate(id) && self.whole.remove_aggregate(id));
                }
            }
            Event::Index(name, add) => {
                let id = self.log.schema().find(name).expect("it is there");
                let _ = if *add { self.log.add_index(id) } else { self.log.remove_index(id) };
            }
            Event::Ask(which, a, b) => {
                let (text, by_hand) = PLAIN[*which];
                let times = [a, b].map(|index| record(index.index(length as usize + 1) as u64).0);
                let (from, to) = (times[0].min(times[1]), times[0].max(times[1]));
                let (snapshot, dnf) = (self.log.snapshot(), dnf(self.log, text));
                let query = snapshot.query().matching(&dnf).from(from).to(to);
                let holds = |position: &u64| {
                    let (at, key, value) = record(*position);
                    by_hand(key, value) && (from..to).contains(&at)
                };
                assert_eq!(found(&query), (self.floor..length).filter(holds).collect::<Vec<_>>(), "{text}");
                assert_eq!(query.explain().records, length - self.floor);
            }
            Event::Pass => self.pass(),
        }
    }

    fn release(&mut self, before: u64) {
        let given_back = self.log.release(before);
        self.floor = self.floor.max(before.min(self.whole.snapshot().len()) / BLOCK * BLOCK);
        let lowest = self.held.iter().map(|pair| pair.first).min().unwrap_or(self.floor);
        assert_eq!((given_back, self.log.snapshot().first()), (lowest, self.floor));
        if self.floor > self.passed {
            self.lacking = 3;
        }
    }

    fn add_filter(&mut self, text: &str) {
        let add = |log: &Log| log.add_filter(dnf(log, text));
        self.filters.push((add(self.log), add(self.whole)));
    }

    fn add_aggregate(&mut self, which: usize, filter: Option<usize>) {
        let name = format!("A{}", self.names);
        self.names += 1;
        let filter = filter.filter(|_| !self.filters.is_empty()).map(|at| self.filters[at % self.filters.len()]);
        let (names, function) = ([&*name], function(self.log, which));
        let of_whole = self.whole.add_aggregate(&names, filter.map(|(_, id)| id), &function).expect("the name is free");
        let before = self.whole.snapshot().state_before(of_whole, self.floor).expect("it is there");
        let id = self.log.add_aggregate_from(&names, filter.map(|(id, _)| id), &function, before);
        assert_eq!(id, Ok(of_whole));
        for window in [None, Some(2 * MS)] {
            let (relation, threshold) = (Relation::AtLeast, Number::Unsigned(1));
            let trigger = Trigger { aggregate: of_whole, relation, threshold, period: MS, window };
            let [one, other] = self.monitors.each_mut().map(|monitor| monitor.add(trigger).expect("it can be"));
            assert_eq!(one, other);
            self.windows.extend(window.map(|_| one));
        }
        self.aggregates.push((of_whole, name));
    }

    /// Triggers keep using aggregates that were removed.
    fn pass(&mut self) {
        let [of_log, of_whole] = self.monitors.each_mut().map(|monitor| {
            let mut alerts: Vec<Alert> = Vec::new();
            monitor.pass(self.now, |alert| alerts.push(alert));
            alerts.retain(|alert| self.lacking == 0 || !self.windows.contains(&alert.trigger));
            alerts.into_iter().map(|alert| (alert.trigger, alert.value, alert.position)).collect::<Vec<_>>()
        });
        assert_eq!(of_log, of_whole);
        (self.now, self.lacking, self.passed) =
            (self.now + MS, self.lacking.saturating_sub(1), self.whole.snapshot().len());
    }
}

impl Pair<'_> {
    fn check(&self) {
        let (log, first, end) = (&self.log, self.first, self.whole.len());
        assert_eq!((log.first(), log.len(), log.is_empty()), (first, end, first == end));
        assert!(log.records(first..end) == records(first..end), "records are not what they were");
        assert_eq!(log.query().matched().count(), end - first);
        for (of_log, of_whole) in &self.filters {
            let of = |snapshot: &Snapshot<'_>, id| found(&snapshot.filter(id).expect("it was there"));
            let mut expected = of(&self.whole, *of_whole);
            expected.retain(|position| *position >= first);
            assert!(of(log, *of_log) == expected, "a filter differs behind {first}");
        }
        for id in &self.aggregates {
            assert_eq!(log.value(*id), self.whole.value(*id));
            for position in [first, (first + end) / 2, end] {
                assert_eq!(log.state_before(*id, position), self.whole.state_before(*id, position), "{position}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn the_remaining_records_agree_with_a_log_that_keeps_all(events in prop::collection::vec(event(), 1..50)) {
        let (log, whole) = (log_from(0, 1 << 23), log_from(0, 1 << 23));
        let mut both = Both::new(&log, &whole);
        for event in &events {
            both.happens(event);
        }
        both.pair().check();
        // No reader holds anything any more.
        for pair in std::mem::take(&mut both.held) {
            pair.check();
        }
        prop_assert_eq!(log.release(0), both.floor);
        both.pass();
        both.pair().check();
    }

    #[test]
    fn a_log_that_starts_at_a_position_agrees_with_one_from_the_start(
        (before, more) in (0..3 * BLOCK, 0..2 * BLOCK),
        late in any::<bool>(),
    ) {
        let whole = log_from(0, 1 << 20);
        append(&whole, before);
        let first = before / BLOCK * BLOCK;
        let log = log_from(first, 1 << 20);
        assert_eq!((log.snapshot().first(), log.snapshot().len(), log.snapshot().is_empty()), (first, first, true));
        let mut both = Both { floor: first, ..Both::new(&log, &whole) };
        // Aggregates over all records, over a filter, and over a filter that compares with the first.
        let add = |both: &mut Both<'_>| {
            both.add_aggregate(1, None);
            both.add_filter(PLAIN[0].0);
            both.add_filter("value < A0");
            both.add_aggregate(0, Some(0));
            both.add_aggregate(2, Some(1));
            both.add_filter("value > A0");
        };
        if !late {
            add(&mut both);
        }
        let tail = records(first..before);
        assert_eq!(log.append(&tail).positions, first..before);
        [&log, &whole].iter().for_each(|log| append(log, more));
        if late {
            add(&mut both);
        }
        both.pair().check();
        both.release(before + more);
        both.pair().check();
    }
}
