//! Numbers of distinct values: exact while they are small, near the truth above that, and the same for any division of the records.

use crate::common;
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_log::{AttributeId, Definitions, Folding, Function, GroupKey, Grouping, Number, Schema};
use queuescope_wire::Distinct;
use std::collections::{BTreeMap, BTreeSet};

fn comparable() -> Vec<AttributeId> {
    let schema = common::schema();
    schema.iter().filter(|(_, attribute)| attribute.is_comparable()).map(|(id, _)| id).collect()
}

fn number(count: usize) -> Number {
    Number::Unsigned(count as u128)
}

/// A schema with an address, and a host whose groups are wanted.
fn addresses() -> Schema {
    let attribute = |name, kind| format!("[[attribute]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let text = format!("name = \"numbers\"\n{}{}", attribute("via", "address"), attribute("slot", "u16"));
    Schema::parse("numbers.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn record(schema: &Schema, via: u128, slot: u128) -> Vec<u8> {
    let mut record = vec![0; schema.record_size()];
    for (name, key) in [("via", via), ("slot", slot)] {
        schema.reader(schema.find(name).expect(name)).write(&mut record, key);
    }
    record
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn few_values_are_counted_exactly(records in prop::collection::vec(common::record(), 0..80), of in any::<Index>(), by in any::<Index>()) {
        let schema = common::schema();
        let (of, by) = (*of.get(&comparable()), *by.get(&comparable()));
        let mut grouping = Grouping::new(schema, &[GroupKey::Attribute(by)], &[Function::Distinct(of)]);
        let mut folding = Folding::new(schema, &[Function::Distinct(of)]);
        let mut known: BTreeMap<u128, BTreeSet<u128>> = BTreeMap::new();
        for record in &records {
            grouping.add(record);
            folding.add(record);
            known.entry(schema.key(by, record)).or_default().insert(schema.key(of, record));
        }
        let expected: Vec<_> = known.iter().map(|(key, values)| (vec![*key], vec![number(values.len())])).collect();
        prop_assert_eq!(grouping.finish().iter().collect::<Vec<_>>(), expected);
        let all: BTreeSet<_> = known.values().flatten().collect();
        prop_assert_eq!(folding.finish(), [number(all.len())]);
    }

    /// One host has all records, and several have some each, perhaps the same ones: the values are equal, whether they are exact or estimates.
    #[test]
    fn values_of_one_host_and_of_many_are_equal(
        count in prop_oneof![1..500u128, 900..1200u128, 3000..6000u128], hosts in 1..6usize, twice in 0..4u128, slots in 1..4u128, little in any::<bool>(),
    ) {
        let schema = addresses();
        let id = |name| schema.find(name).expect(name);
        let memory = if little { 60_000 } else { usize::MAX };
        let new = || Grouping::new(&schema, &[GroupKey::Attribute(id("slot"))], &[Function::Distinct(id("via")), Function::Count]);
        let (mut all, mut each) = (new(), (0..hosts).map(|_| new()).collect::<Vec<_>>());
        for n in 0..count {
            let record = record(&schema, n * n, n % slots);
            all.add(&record);
            each[n as usize % hosts].add(&record);
            if n % 4 < twice {
                // Another host has the same value: it does not count again.
                each[(n as usize + 1) % hosts].add(&record);
            }
        }
        let mut joined = new().with_memory(memory);
        for host in each {
            for (keys, states) in host.finish().parts().collect::<Vec<_>>() {
                prop_assert_eq!(joined.add_part(&keys, &states), Ok(()));
            }
        }
        let joined = joined.finish();
        let values = |groups: Vec<(Vec<u128>, Vec<Number>)>| groups.into_iter().map(|(keys, values)| (keys, values[0])).collect::<Vec<_>>();
        let (joined, mut all) = (values(joined.iter().collect()), values(all.finish().iter().collect()));
        prop_assert!(little || joined.len() == all.len());
        all.truncate(joined.len());
        prop_assert_eq!(joined, all);
    }
}

#[test]
fn many_values_are_estimated_within_five_standard_errors() {
    let schema = addresses();
    let id = |name| schema.find(name).expect(name);
    for count in [1_025u64, 10_000, 200_000] {
        let mut folding = Folding::new(&schema, &[Function::Distinct(id("via"))]);
        (0..count).for_each(|n| folding.add(&record(&schema, u128::from(n) << 70 | 7, 0)));
        let error = folding.finish()[0].to_f64() / count as f64 - 1.0;
        assert!(error.abs() < 5.0 * Distinct::STANDARD_ERROR, "{count}: {error}");
    }
}

#[test]
fn an_aggregate_does_not_count_distinct_values() {
    let mut definitions = Definitions::new(Schema::packet());
    let error =
        definitions.add_aggregate("--aggregate", "sources=distinct(src_ip)").expect_err("it is refused").to_string();
    assert!(error.contains("an aggregate does not count distinct values: its state would be too large"), "{error}");
    assert!(error.contains("--select 'distinct(src_ip)'") && error.contains('\u{2500}'), "{error}");
}
