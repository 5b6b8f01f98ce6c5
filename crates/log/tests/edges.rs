//! Cases in which the original system was found to break: many results, disjunctions, aggregates over a query, an index that is
//! added late, the edge of a block, and a full log. (Several triggers of an aggregate and several aggregates of
//! a filter are in `triggers.rs`, more writers than cores in `stress.rs`.)

use queuescope_log::{AttributeId, Dnf, Function, Log, Memory, Number, Options, Schema};

const SCHEMA: &str = r#"
name = "edge"

[[attribute]]
name = "number"
kind = "u32"

[[attribute]]
name = "of_ten"
kind = "u8"

[[attribute]]
name = "scattered"
kind = "u16"
"#;

const BLOCK: u32 = 65_536;

fn log(records: u64) -> Log {
    let schema = Schema::parse("edge.toml", SCHEMA).unwrap_or_else(|error| panic!("{error}"));
    Log::new(schema, Options { records, memory: Memory::Lazy }).unwrap_or_else(|error| panic!("{error}"))
}

fn scattered(number: u32) -> u16 {
    (number.wrapping_mul(0x9e37_79b9) >> 16) as u16
}

fn records(numbers: std::ops::Range<u32>) -> Vec<u8> {
    let record = |number: u32| {
        let scattered = scattered(number).to_be_bytes();
        number.to_be_bytes().into_iter().chain([(number % 10) as u8]).chain(scattered)
    };
    numbers.flat_map(record).collect()
}

fn fill(log: &Log, numbers: std::ops::Range<u32>) {
    // Batches that do not end at the edges of blocks.
    for start in numbers.clone().step_by(77) {
        assert_eq!(log.append(&records(start..numbers.end.min(start + 77))).refused, 0);
    }
}

fn id(log: &Log, name: &str) -> AttributeId {
    log.schema().find(name).expect("it is in the schema")
}

fn dnf(log: &Log, text: &str) -> Dnf {
    let scope = log.scope();
    scope.parse(text).unwrap_or_else(|error| panic!("{error}")).dnf(&scope).expect("it is simple")
}

fn found(log: &Log, text: &str) -> Vec<u64> {
    let (snapshot, dnf) = (log.snapshot(), dnf(log, text));
    let query = snapshot.query().matching(&dnf);
    let places: Vec<_> = query.matched().map(|(position, _)| position).collect();
    assert_eq!(query.matched().count(), places.len() as u64, "{text}");
    places
}

fn by_hand(count: u32, holds: impl Fn(u32) -> bool) -> Vec<u64> {
    (0..count).filter(|number| holds(*number)).map(u64::from).collect()
}

#[test]
fn a_query_has_many_results() {
    const COUNT: u32 = 300_000;
    let log = log(COUNT.into());
    log.add_index(id(&log, "of_ten"));
    log.add_index(id(&log, "scattered"));
    fill(&log, 0..COUNT);
    assert_eq!(found(&log, "of_ten >= 0").len(), COUNT as usize);
    assert_eq!(found(&log, "of_ten != 3"), by_hand(COUNT, |number| number % 10 != 3));
    assert_eq!(found(&log, "scattered >= 100"), by_hand(COUNT, |number| scattered(number) >= 100));
}

#[test]
fn a_disjunction_has_each_record_once() {
    const COUNT: u32 = 150_000;
    let log = log(COUNT.into());
    fill(&log, 0..COUNT);
    let holds = |number: u32| number % 10 == 4 || scattered(number) < 7_000 || number == 140_000;
    for indexed in ["of_ten", "scattered", "number"] {
        assert_eq!(found(&log, "of_ten == 4 or scattered < 7000 or number == 140000"), by_hand(COUNT, holds));
        log.add_index(id(&log, indexed));
    }
    assert_eq!(found(&log, "of_ten == 4 or scattered < 7000 or number == 140000"), by_hand(COUNT, holds));
}

#[test]
fn aggregates_are_of_what_a_query_finds() {
    const COUNT: u32 = 100_000;
    let log = log(COUNT.into());
    fill(&log, 0..COUNT);
    let number = id(&log, "number");
    let functions = [Function::Count, Function::Sum(number), Function::Min(number), Function::Max(number)];
    for indexed in [false, true] {
        if indexed {
            log.add_index(id(&log, "scattered"));
        }
        let (snapshot, dnf) = (log.snapshot(), dnf(&log, "scattered in {5, 100..900} and of_ten < 5"));
        let by_hand = by_hand(COUNT, |number| {
            (scattered(number) == 5 || (100..=900).contains(&scattered(number))) && number % 10 < 5
        });
        let sum = u128::from(by_hand.iter().sum::<u64>());
        let [first, .., last] = by_hand[..] else { panic!("there are some") };
        let expected = [by_hand.len() as u128, sum, first.into(), last.into()].map(Number::Unsigned);
        assert_eq!(snapshot.query().matching(&dnf).matched().fold(&functions), expected);
    }
}

#[test]
fn an_index_that_comes_late_has_what_was_before() {
    let log = log(200_000);
    fill(&log, 0..100_000);
    assert!(log.add_index(id(&log, "scattered")) && !log.add_index(id(&log, "scattered")));
    fill(&log, 100_000..150_000);
    assert_eq!(found(&log, "scattered == 77"), by_hand(150_000, |number| scattered(number) == 77));
}

#[test]
fn a_batch_goes_across_the_edge_of_a_block() {
    let log = log(200_000);
    log.add_index(id(&log, "number"));
    let filter = log.add_filter(dnf(&log, "of_ten == 0"));
    assert_eq!(log.append(&records(0..BLOCK - 5)).refused, 0);
    for (batch, edge) in [(BLOCK - 5..BLOCK + 6, BLOCK), (BLOCK + 6..2 * BLOCK, 2 * BLOCK)] {
        assert_eq!(log.append(&records(batch.clone())).refused, 0);
        for number in edge - 6..batch.end {
            assert_eq!(found(&log, &format!("number == {number}")), [u64::from(number)]);
            assert_eq!(log.snapshot().record(number.into()), records(number..number + 1));
        }
        let snapshot = log.snapshot();
        let matched = snapshot.filter(filter).expect("it is there").matched().map(|(position, _)| position);
        assert_eq!(matched.collect::<Vec<_>>(), by_hand(batch.end, |number| number % 10 == 0));
    }
}

#[test]
fn a_full_log_answers_and_takes_no_more_memory() {
    // Neither a whole number of blocks nor of chunks.
    const ROOM: u32 = BLOCK + 1500;
    let log = log(ROOM.into());
    log.add_index(id(&log, "of_ten"));
    log.add_index(id(&log, "number"));
    let filter = log.add_filter(dnf(&log, "of_ten == 9"));
    let count = log.add_aggregate(&["NINES"], Some(filter), &Function::Count).expect("the name is free");
    fill(&log, 0..ROOM - 10);
    let appended = log.append(&records(ROOM - 10..ROOM + 40));
    assert_eq!((appended.positions, appended.refused), (u64::from(ROOM) - 10..ROOM.into(), 40));
    let full = log.snapshot().usage();
    for _ in 0..1000 {
        assert_eq!(log.append(&records(0..50)).refused, 50);
    }
    assert_eq!(log.snapshot().usage(), full);
    assert_eq!(found(&log, "of_ten == 9"), by_hand(ROOM, |number| number % 10 == 9));
    assert_eq!(found(&log, &format!("number >= {}", ROOM - 3)), [ROOM - 3, ROOM - 2, ROOM - 1].map(u64::from));
    assert_eq!(
        log.snapshot().value(count),
        Some(Number::Unsigned(by_hand(ROOM, |number| number % 10 == 9).len() as u128))
    );
    // Two bytes for each record, and the directories, which take a larger part of a small log.
    assert!(full.indexes <= 2 * 5 * u64::from(ROOM), "{full:?}");
    assert!(log.remove_index(id(&log, "number")));
    assert!(log.snapshot().usage().indexes < full.indexes);
}
