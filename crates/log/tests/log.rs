//! Whatever is added, removed and queried while records come: the results agree with an evaluation of every record.

use crate::common;
use proptest::prelude::*;
use queuescope_log::{
    AggregateId, AttributeId, Commutative, Dnf, Expr, FilterId, FrozenTail, Function, Log, Memory, Number, Options,
    Schema, Scope, Snapshot, State,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn log(schema: &Schema, records: u64) -> Log {
    Log::new(schema.clone(), Options { records, memory: Memory::Lazy }).unwrap_or_else(|error| panic!("{error}"))
}

/// An operation on a log.
#[derive(Debug, Clone)]
enum Event {
    /// Appends this many records.
    Append(usize),
    AddFilter(Expr),
    RemoveFilter(prop::sample::Index),
    AddIndex(AttributeId),
    RemoveIndex(prop::sample::Index),
    AddAggregate(Which, AttributeId, Option<prop::sample::Index>),
    Ask(Expr),
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Count,
    Sum,
    Min,
    Max,
    Mean,
    Deviation,
}

impl Which {
    fn function(self, attribute: AttributeId) -> Function {
        match self {
            Self::Count => Function::Count,
            Self::Sum => Function::Sum(attribute),
            Self::Min => Function::Min(attribute),
            Self::Max => Function::Max(attribute),
            Self::Mean => Function::Mean(attribute),
            Self::Deviation => Function::Deviation(attribute),
        }
    }
}

fn attribute() -> impl Strategy<Value = AttributeId> {
    let schema = common::schema();
    let ids: Vec<_> = schema.iter().filter(|(_, attribute)| attribute.is_comparable()).map(|(id, _)| id).collect();
    prop::sample::select(ids)
}

fn event(longest: usize) -> impl Strategy<Value = Event> {
    let which =
        prop::sample::select(vec![Which::Count, Which::Sum, Which::Min, Which::Max, Which::Mean, Which::Deviation]);
    prop_oneof![
        2 => (1..40usize).prop_map(Event::Append),
        3 => (1..=longest).prop_map(Event::Append),
        3 => common::expr().prop_map(Event::AddFilter),
        1 => any::<prop::sample::Index>().prop_map(Event::RemoveFilter),
        2 => attribute().prop_map(Event::AddIndex),
        1 => any::<prop::sample::Index>().prop_map(Event::RemoveIndex),
        2 => (which, attribute(), any::<Option<prop::sample::Index>>())
            .prop_map(|(which, attribute, filter)| Event::AddAggregate(which, attribute, filter)),
        2 => common::expr().prop_map(Event::Ask),
    ]
}

/// A log, and the plain list of its records.
struct LogWithModel<'a> {
    log: &'a Log,
    records: Vec<Vec<u8>>,
    pool: &'a [Vec<u8>],
    filters: Vec<(FilterId, Expr, Dnf)>,
    aggregates: Vec<(AggregateId, Which, AttributeId, Option<Expr>)>,
    next: u64,
}

impl LogWithModel<'_> {
    fn append(&mut self, count: usize) {
        let batch: Vec<_> = (0..count)
            .map(|_| {
                self.next = self.next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                self.pool[(self.next >> 33) as usize % self.pool.len()].clone()
            })
            .collect();
        let appended = self.log.append(&batch.concat());
        assert_eq!(appended.positions, self.records.len() as u64..(self.records.len() + count) as u64);
        self.records.extend(batch);
    }

    fn happens(&mut self, event: &Event) {
        let schema = self.log.schema();
        let scope = Scope::new(schema);
        // Aggregates that do not exist cannot be named; another test covers comparisons with aggregates.
        let plain = |expr: &Expr| expr.dnf(&scope).ok().filter(|dnf| dnf.aggregates().is_empty());
        match event {
            Event::Append(count) => self.append(*count),
            Event::AddFilter(expr) => {
                if let Some(dnf) = plain(expr) {
                    let id = self.log.add_filter(dnf.clone());
                    self.filters.push((id, expr.clone(), dnf));
                }
            }
            Event::RemoveFilter(index) => {
                if !self.filters.is_empty() {
                    let (id, ..) = self.filters.swap_remove(index.index(self.filters.len()));
                    let before = self.log.snapshot();
                    assert!(self.log.remove_filter(id) && !self.log.remove_filter(id));
                    assert!(before.filter(id).is_some() && self.log.snapshot().filter(id).is_none());
                }
            }
            Event::AddIndex(attribute) => {
                self.log.add_index(*attribute);
                assert!(!self.log.add_index(*attribute));
            }
            Event::RemoveIndex(index) => {
                let (id, _) = schema.iter().nth(index.index(schema.attributes().len())).expect("it is one of them");
                self.log.remove_index(id);
            }
            Event::AddAggregate(which, attribute, filter) => {
                let filter = filter.filter(|_| !self.filters.is_empty()).map(|index| index.get(&self.filters));
                let name = format!("A{}", self.aggregates.len());
                let function = which.function(*attribute);
                let id = self.log.add_aggregate(&[&name], filter.map(|(id, ..)| *id), &function);
                let expr = filter.map(|(_, expr, _)| expr.clone());
                self.aggregates.push((id.expect("the name is free"), *which, *attribute, expr));
            }
            Event::Ask(expr) => {
                if let Some(dnf) = plain(expr) {
                    self.check(&self.log.snapshot(), expr, &dnf);
                }
            }
        }
    }

    fn expected(&self, expr: &Expr) -> Vec<u64> {
        let none: &[Number] = &[];
        let schema = self.log.schema();
        let holds: Vec<_> = self.pool.iter().map(|record| expr.holds(schema, record, &none)).collect();
        let of = |record: &Vec<u8>| self.pool.iter().position(|other| other == record).expect("it is of the pool");
        let places = self.records.iter().enumerate().filter(|(_, record)| holds[of(record)]);
        places.map(|(place, _)| place as u64).collect()
    }

    fn check(&self, snapshot: &Snapshot<'_>, expr: &Expr, dnf: &Dnf) {
        let expected = self.expected(expr);
        assert_eq!(snapshot.query().matching(dnf).matched().count(), expected.len() as u64, "{expr:?}");
        let mut found = Vec::new();
        snapshot.query().matching(dnf).matched().for_each(|position, record| {
            assert_eq!(record, &self.records[position as usize][..]);
            found.push(position);
        });
        assert_eq!(found, expected, "{expr:?}");
    }

    fn check_all(&self) {
        let snapshot = self.log.snapshot();
        assert_eq!(snapshot.len(), self.records.len() as u64);
        for (id, expr, dnf) in &self.filters {
            self.check(&snapshot, expr, dnf);
            let count = snapshot.filter(*id).expect("it is there").matched().count();
            assert_eq!(count, self.expected(expr).len() as u64);
        }
        for (id, which, attribute, filter) in &self.aggregates {
            let value = snapshot.value(*id).expect("it is there");
            self.check_value(value, *which, *attribute, filter.as_ref());
        }
    }

    fn check_value(&self, value: Number, which: Which, attribute: AttributeId, filter: Option<&Expr>) {
        let schema = self.log.schema();
        let all = || (0..self.records.len() as u64).collect();
        let places = filter.map_or_else(all, |expr| self.expected(expr));
        let described = schema.attribute(attribute);
        let number = |key| Number::of_key(described, key);
        let keys: Vec<_> = places.iter().map(|place| schema.key(attribute, &self.records[*place as usize])).collect();
        let float = |number| match number {
            Number::Unsigned(n) => n as f64,
            Number::Signed(n) => n as f64,
            Number::Float(n) => n,
        };
        let sum = || keys.iter().map(|key| number(*key)).reduce(Number::plus).map_or(0.0, float);
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) || a.is_nan() || b.is_nan();
        match which {
            Which::Count => assert_eq!(value, Number::Unsigned(places.len() as u128)),
            Which::Min => {
                assert!(value.compare(number(keys.iter().copied().min().unwrap_or(described.highest_key()))).is_eq());
            }
            Which::Max => assert!(value.compare(number(keys.iter().copied().max().unwrap_or(0))).is_eq()),
            // Sums of floating-point numbers depend on their order, and huge values can cancel to anything.
            Which::Sum | Which::Mean | Which::Deviation if described.kind == queuescope_log::Kind::Float => {}
            Which::Sum => assert!(near(float(value), sum()), "{value:?} {}", sum()),
            Which::Mean => assert!(near(float(value), sum() / (places.len().max(1) as f64)), "{value:?}"),
            Which::Deviation => {
                let count = places.len().max(1) as f64;
                // Not from the sum: that saturates.
                let mean = keys.iter().map(|key| float(number(*key)) / count).sum::<f64>();
                let apart = keys.iter().map(|key| (float(number(*key)) - mean).powi(2)).sum::<f64>() / count;
                // The reference rounds each number to 53 bits.
                let rounded = mean.abs().max(1.0) * 1e-12;
                assert!((float(value) - apart.sqrt()).abs() <= apart.sqrt() * 1e-9 + rounded, "{value:?} {apart}");
            }
        }
    }
}

fn run(pool: &[Vec<u8>], events: &[Event], seed: u64) {
    let schema = common::schema();
    let log = log(schema, 1 << 20);
    let mut beside =
        LogWithModel { log: &log, records: Vec::new(), pool, filters: Vec::new(), aggregates: Vec::new(), next: seed };
    for event in events {
        beside.happens(event);
    }
    beside.check_all();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_log_agrees_with_its_records(
        pool in prop::collection::vec(common::record(), 1..12),
        events in prop::collection::vec(event(3000), 1..30),
        seed in any::<u64>(),
    ) {
        run(&pool, &events, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn a_log_of_several_blocks_agrees_with_its_records(
        pool in prop::collection::vec(common::record(), 1..12),
        mut events in prop::collection::vec(event(3000), 1..20),
        middle in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        events.insert(middle.index(events.len()), Event::Append(140_000));
        run(&pool, &events, seed);
    }

    #[test]
    fn filters_with_aggregates_go_by_the_order_of_the_log(
        pool in prop::collection::vec(common::record(), 1..12),
        (counted, expr) in (common::expr(), common::expr()),
        (attribute, batches) in (attribute(), prop::collection::vec(1..2000usize, 1..5)),
        late in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let schema = common::schema();
        let scope = common::scope(schema);
        let (Ok(counted_dnf), Ok(dnf)) = (counted.dnf(&scope), expr.dnf(&scope)) else { return Ok(()) };
        let log = log(schema, 1 << 20);
        let mut beside =
            LogWithModel { log: &log, records: Vec::new(), pool: &pool, filters: Vec::new(), aggregates: Vec::new(), next: seed };
        let mut filter = None;
        let late = late.index(batches.len());
        for (index, count) in batches.into_iter().enumerate() {
            if index == late {
                // The first two ids are those that `common`'s expressions name.
                let seq = log.add_aggregate(&["SEQ"], None, &Function::Max(attribute)).expect("the name is free");
                let plain = if counted_dnf.aggregates().contains(&AggregateId(1)) { None } else { Some(counted_dnf.clone()) };
                let of = plain.map(|dnf| log.add_filter(dnf));
                let maximum = log.add_aggregate(&["MAXIMUM"], of, &Function::Count).expect("the name is free");
                prop_assert_eq!((seq, maximum), (AggregateId(0), AggregateId(1)));
                filter = Some((of.is_some(), log.add_filter(dnf.clone())));
            }
            beside.append(count);
        }
        let Some((of, filter)) = filter else { return Ok(()) };
        let described = schema.attribute(attribute);
        let (mut highest, mut count) = (0, 0u128);
        let mut expected = Vec::new();
        for (position, record) in beside.records.iter().enumerate() {
            let now = [Number::of_key(described, highest), Number::Unsigned(count)];
            if expr.holds(schema, record, &now.as_slice()) {
                expected.push(position as u64);
            }
            count += u128::from(!of || counted.holds(schema, record, &now.as_slice()));
            highest = highest.max(schema.key(attribute, record));
        }
        let mut found = Vec::new();
        log.snapshot().filter(filter).expect("it is there").matched().for_each(|position, _| found.push(position));
        prop_assert_eq!(found, expected);
    }
}

/// The paper's figure 2: the highest sequence number of a flow, and the time of its packet.
struct MaxSeq {
    sequence: AttributeId,
    time: AttributeId,
}

impl Commutative for MaxSeq {
    fn empty(&self) -> State {
        [0; 4]
    }

    fn add(&self, state: &mut State, record: &[u8]) {
        let schema = Schema::packet();
        self.join(state, &[schema.key(self.sequence, record), schema.key(self.time, record), 0, 0]);
    }

    fn join(&self, state: &mut State, other: &State) {
        *state = (*state).max(*other);
    }

    fn values(&self) -> usize {
        2
    }

    fn value(&self, state: &State, value: usize) -> Number {
        Number::Unsigned(state[value])
    }
}

#[test]
fn the_papers_retransmissions_are_found() {
    let schema = Schema::packet();
    let log = log(schema, 10_000);
    let find = |name| schema.find(name).expect("it is in the schema");
    let (source, sequence, time) = (find("src_ip"), find("tcp_seq"), find("ts"));
    let parse = |text: &str| {
        let scope = log.scope();
        scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
    };
    let flow = log.add_filter(parse("src_ip == 10.0.0.1"));
    log.add_aggregate(&["SEQ", "TS"], Some(flow), &Function::User(Arc::new(MaxSeq { sequence, time })))
        .expect("the names are free");
    let rtms = log.add_filter(parse("src_ip == 10.0.0.1 and seqNo < SEQ && ts > TS + 1ms"));
    let r = log.add_aggregate(&["R"], Some(rtms), &Function::Count).expect("the name is free");
    let append = |host: u128, number: u128, at: u128| {
        let mut record = vec![0; schema.record_size()];
        for (id, key) in [(source, 0xffff_0a00_0000 | host), (sequence, number), (time, at * 1_000_000)] {
            schema.reader(id).write(&mut record, key);
        }
        log.append(&record).positions.start
    };
    // Another flow has higher numbers; packets are reordered within a millisecond; then two packets are sent again.
    let events =
        [(1, 100, 1), (2, 900, 2), (1, 300, 3), (1, 200, 3), (1, 400, 10), (1, 300, 12), (2, 100, 13), (1, 200, 14)];
    let positions: Vec<_> = events.into_iter().map(|(host, number, at)| append(host, number, at)).collect();
    let snapshot = log.snapshot();
    let mut found = Vec::new();
    snapshot.filter(rtms).expect("it is there").matched().for_each(|position, _| found.push(position));
    assert_eq!(found, [positions[5], positions[7]]);
    assert_eq!(snapshot.value(r), Some(Number::Unsigned(2)));
    // Far more records than a chunk: the results stay the same.
    for at in 20..3000 {
        append(2, 5, at);
    }
    append(1, 350, 4000);
    assert_eq!((snapshot.value(r), log.snapshot().value(r)), (Some(Number::Unsigned(2)), Some(Number::Unsigned(3))));
    // The aggregate is removed, but the filter that names it keeps it.
    assert!(log.remove_aggregate(r) && !log.remove_aggregate(r) && log.snapshot().value(r).is_none());
    append(1, 360, 5000);
    assert_eq!(log.snapshot().filter(rtms).expect("it is there").matched().count(), 4);
}

#[test]
fn records_without_room_are_refused() {
    let schema = Schema::ethernet_tcp();
    let log = log(schema, 100);
    let size = schema.record_size();
    assert_eq!(log.append(&vec![1; size * 60]).refused, 0);
    let appended = log.append(&vec![2; size * 60]);
    assert_eq!((appended.positions, appended.refused), (60..100, 20));
    assert_eq!(log.append(&vec![3; size]).refused, 1);
    let snapshot = log.snapshot();
    assert_eq!((snapshot.len(), snapshot.record(99)[0]), (100, 2));
}

#[test]
#[should_panic(expected = "65535 hold the tail frozen")]
fn too_many_holds_of_a_frozen_tail_panic() {
    let log = log(Schema::ethernet_tcp(), 10);
    (0..=65_535).for_each(|_| std::mem::forget(FrozenTail::of(&log)));
}

#[test]
fn room_for_much_costs_little() {
    let schema = Schema::ethernet_tcp();
    let log = log(schema, 1 << 40);
    let scope = log.scope();
    let filter = log.add_filter(scope.parse("src_port == 80").unwrap().dnf(&scope).unwrap());
    log.add_index(schema.find("dst_ip").unwrap());
    for name in 0..1000 {
        let count = log.add_aggregate(&[&format!("N{name}")], Some(filter), &Function::Count).unwrap();
        assert!(name == 0 || log.remove_aggregate(count));
    }
    let _ = log.append(&vec![0; schema.record_size() * 70_000]);
    assert!(log.snapshot().usage().total() < 70_000 * 60 + (4 << 20), "{:?}", log.snapshot().usage());
    // Data that a removed aggregate needs is still counted.
    let before = log.snapshot().usage().filters;
    assert!(log.remove_filter(filter));
    assert!(log.snapshot().usage().filters > before / 2);
}

#[test]
fn a_frozen_tail_stays() {
    let schema = Schema::ethernet_tcp();
    let log = log(schema, 100_000);
    let record = vec![0; schema.record_size()];
    let _ = log.append(&record);
    let frozen = FrozenTail::of(&log);
    let other = FrozenTail::of(&log);
    for _ in 0..5000 {
        let _ = log.append(&record);
    }
    assert_eq!((frozen.position(), other.position(), log.snapshot().len()), (1, 1, 1));
    drop(frozen);
    assert_eq!(log.snapshot().len(), 1);
    drop(other);
    assert_eq!(log.snapshot().len(), 5001);
}

#[test]
fn a_visible_append_waits_for_the_tail() {
    let schema = Schema::ethernet_tcp();
    let log = log(schema, 100);
    let record = vec![0; schema.record_size()];
    assert_eq!(log.append_visible(&record).positions, 0..1);
    let is_back = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let frozen = FrozenTail::of(&log);
        let writer = scope.spawn(|| {
            let appended = log.append_visible(&record);
            // The tail has thawed by the time this is visible, and the other thread knows it.
            is_back.store(true, Ordering::SeqCst);
            appended
        });
        while log.append(&[]).positions.start < 2 {
            std::thread::yield_now();
        }
        // It is written, and cannot return while this lives.
        assert!(!is_back.load(Ordering::SeqCst));
        assert_eq!(log.snapshot().len(), 1);
        drop(frozen);
        assert_eq!(writer.join().unwrap().positions, 1..2);
        assert_eq!(log.snapshot().len(), 2);
    });
}
