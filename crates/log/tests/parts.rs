//! Parts of results: joined, they are the result over all records; and deviations.

use crate::common;
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_log::{
    AttributeId, Folding, Function, Group, GroupKey, GroupPart, Grouping, Kind, Number, PartError, PartState, Schema,
};

fn comparable() -> Vec<AttributeId> {
    let schema = common::schema();
    schema.iter().filter(|(_, attribute)| attribute.is_comparable()).map(|(id, _)| id).collect()
}

/// A function with the same result in any order.
fn function((which, index): &(u8, Index)) -> Function {
    let id = *index.get(&comparable());
    let function = match which {
        0 => Function::Count,
        1 => Function::Min(id),
        2 => Function::Max(id),
        3 => Function::Sum(id),
        4 => Function::Mean(id),
        5 => Function::Distinct(id),
        _ => Function::Deviation(id),
    };
    if function.is_of_any_order(common::schema()) { function } else { Function::Max(id) }
}

fn grouped(grouping: Grouping<'_>) -> Vec<Group> {
    grouping.finish().iter().collect()
}

/// To compare: a number that is none differs from itself.
fn text(what: &impl std::fmt::Debug) -> String {
    format!("{what:?}")
}

/// A schema with a number of each kind and width.
fn numbers() -> Schema {
    let text = ["u64", "i64", "u128", "u8", "f64"]
        .map(|kind| format!("[[attribute]]\nname = \"{kind}\"\nkind = \"{kind}\"\n"))
        .concat();
    Schema::parse("numbers.toml", &format!("name = \"numbers\"\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

fn deviation(schema: &Schema, name: &str, keys: &[u128]) -> f64 {
    let id = schema.find(name).expect(name);
    let mut folding = Folding::new(schema, &[Function::Deviation(id)]);
    for key in keys {
        let mut record = vec![0; schema.record_size()];
        schema.reader(id).write(&mut record, *key);
        folding.add(&record);
    }
    match folding.finish()[..] {
        [Number::Float(deviation)] => deviation,
        ref other => panic!("{other:?}"),
    }
}

/// The deviation of small whole numbers, from exact sums.
fn slow(numbers: &[i64]) -> f64 {
    let count = numbers.len() as i128;
    let sum: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
    let squares: i128 = numbers.iter().map(|number| i128::from(*number).pow(2)).sum();
    ((count * squares - sum * sum) as f64).sqrt() / count.max(1) as f64
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn joined_parts_are_the_groups_of_all_records(
        records in prop::collection::vec((common::record(), 0..8usize), 0..120),
        keys in prop::collection::vec(any::<Index>(), 0..4),
        interval in prop::option::of((1..u64::MAX, any::<u64>())),
        functions in prop::collection::vec((0..7u8, any::<Index>()), 1..4),
        (hosts, backwards) in (1..9usize, any::<bool>()),
    ) {
        let schema = common::schema();
        let mut keys: Vec<_> = keys.iter().map(|index| GroupKey::Attribute(*index.get(&comparable()))).collect();
        if let (Some((width, origin)), Some(attribute)) = (interval, schema.time()) {
            keys.push(GroupKey::Time { attribute, width, origin });
        }
        let functions: Vec<_> = functions.iter().map(function).collect();
        let new = || Grouping::new(schema, &keys, &functions);
        let (mut all, mut each) = (new(), (0..hosts).map(|_| new()).collect::<Vec<_>>());
        for (record, host) in &records {
            all.add(record);
            each[host % hosts].add(record);
        }
        let mut parts: Vec<GroupPart> = each.into_iter().flat_map(|host| host.finish().parts().collect::<Vec<_>>()).collect();
        if backwards {
            parts.reverse();
        }
        let mut joined = new();
        for (keys, states) in &parts {
            prop_assert_eq!(joined.add_part(keys, states), Ok(()));
        }
        prop_assert_eq!(text(&grouped(joined)), text(&grouped(all)));
    }

    #[test]
    fn the_states_of_a_folding_are_a_part_without_keys(
        records in prop::collection::vec(common::record(), 1..40), functions in prop::collection::vec((0..7u8, any::<Index>()), 1..4),
    ) {
        let schema = common::schema();
        let functions: Vec<_> = functions.iter().map(function).collect();
        let mut folding = Folding::new(schema, &functions);
        records.iter().for_each(|record| folding.add(record));
        let mut grouping = Grouping::new(schema, &[], &functions);
        prop_assert_eq!(grouping.add_part(&[], folding.states()), Ok(()));
        prop_assert_eq!(text(&grouped(grouping)), text(&vec![(Vec::<u128>::new(), folding.finish())]));
    }

    /// States from outside are refused or added, and never panic.
    #[test]
    fn parts_from_outside_never_panic(
        parts in prop::collection::vec((any::<[u8; 3]>(), any::<[[u128; 4]; 3]>(), 0..128u32), 1..20), keys in prop::collection::vec(any::<Index>(), 0..3),
        functions in prop::collection::vec((0..7u8, any::<Index>()), 1..4),
    ) {
        let schema = common::schema();
        let keys: Vec<_> = keys.iter().map(|index| GroupKey::Attribute(*index.get(&comparable()))).collect();
        let functions: Vec<_> = functions.iter().map(function).collect();
        let mut grouping = Grouping::new(schema, &keys, &functions);
        let mut added = 0;
        for (of_keys, states, shift) in parts {
            let of_keys: Vec<_> = of_keys.iter().take(keys.len()).map(|key| u128::from(*key)).collect();
            let states: Vec<PartState> = states.iter().take(functions.len()).map(|state| {
                [state[0] >> shift, state[1] >> shift, if shift > 64 { 0 } else { state[2] }, if shift > 64 { 0 } else { state[3] }].into()
            }).collect();
            added += usize::from(grouping.add_part(&of_keys, &states).is_ok());
        }
        let groups = grouped(grouping);
        prop_assert!(groups.len() <= added);
    }

    #[test]
    fn deviations_are_those_of_exact_sums(numbers in prop::collection::vec(any::<i32>(), 0..50)) {
        let numbers: Vec<_> = numbers.into_iter().map(i64::from).collect();
        let schema = self::numbers();
        let of_zero = |number: i64| u128::from(number.wrapping_sub(i64::MIN) as u64);
        let expected = slow(&numbers);
        prop_assert_eq!(deviation(&schema, "i64", &numbers.iter().map(|number| of_zero(*number)).collect::<Vec<_>>()), expected);
        // The same, moved as far up as numbers go: exact sums do not notice.
        let top = u128::from(u64::MAX - u64::from(u32::MAX));
        let high: Vec<_> = numbers.iter().map(|number| top + (number - i64::from(i32::MIN)) as u128).collect();
        prop_assert_eq!(deviation(&schema, "u64", &high), expected);
    }

    #[test]
    fn deviations_of_fractions_are_near_those_of_two_passes(numbers in prop::collection::vec(-1e6..1e6f64, 1..50), split in any::<Index>()) {
        let schema = self::numbers();
        let id = schema.find("f64").expect("it is there");
        let record = |number: f64| {
            let mut record = vec![0; schema.record_size()];
            let bits = number.to_bits();
            let key = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
            schema.reader(id).write(&mut record, key.into());
            record
        };
        let (one, other) = numbers.split_at(split.index(numbers.len() + 1));
        let parts = [one, other].map(|numbers| {
            let mut folding = Folding::new(&schema, &[Function::Deviation(id)]);
            numbers.iter().for_each(|number| folding.add(&record(*number)));
            folding
        });
        let [mut joined, part] = parts;
        joined.join(&part);
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        let found = joined.finish()[0].to_f64();
        prop_assert!((found - variance.sqrt()).abs() <= variance.sqrt() * 1e-9 + 1e-9, "{} {}", found, variance.sqrt());
    }
}

#[test]
fn deviations_at_the_ends_of_their_range() {
    let schema = numbers();
    let highest = u128::from(u64::MAX);
    assert_eq!(deviation(&schema, "u64", &[]), 0.0);
    assert_eq!(deviation(&schema, "u64", &[highest; 1000]), 0.0, "equal numbers do not deviate");
    assert_eq!(deviation(&schema, "u64", &[0, highest]), highest as f64 / 2.0);
    assert_eq!(deviation(&schema, "i64", &[0, highest]), highest as f64 / 2.0);
    assert_eq!(deviation(&schema, "u8", &[2, 4, 4, 4, 5, 5, 7, 9]), 2.0);
    // Wider numbers are rounded.
    assert_eq!(deviation(&schema, "u128", &[1 << 100, 3 << 100]), 2f64.powi(100));
}

#[test]
fn parts_of_other_questions_are_refused() {
    let schema = numbers();
    let id = |name| schema.find(name).expect(name);
    let mut grouping = Grouping::new(&schema, &[GroupKey::Attribute(id("u8"))], &[Function::Min(id("u8"))]);
    for (keys, states, why) in [
        (vec![], vec![[0; 4]], "it has 0 keys, and should have 1"),
        (vec![1], vec![], "it has 0 states, and should have 1: one for each function"),
        (vec![256], vec![[0; 4]], "no record has the key 0x100 in place 0"),
        (vec![255], vec![[256, 0, 0, 0]], "the function in place 0 cannot have this state"),
        (vec![255], vec![[25, 0, 0, 1]], "the function in place 0 cannot have this state"),
    ] {
        let states: Vec<_> = states.into_iter().map(PartState::Words).collect();
        let error = grouping.add_part(&keys, &states).expect_err(why);
        assert_eq!(error.to_string(), why);
    }
    let by_hours = GroupKey::Time { attribute: id("u64"), width: 3600, origin: 0 };
    let mut hours = Grouping::new(&schema, &[by_hours], &[Function::Count]);
    assert_eq!(hours.add_part(&[3601], &[[1, 0, 0, 0].into()]), Err(PartError::Key { key: 3601, place: 0 }));
    assert_eq!(hours.add_part(&[3600], &[[1, 0, 0, 0].into()]), Ok(()));
    assert_eq!(grouped(grouping), [], "nothing was added");
    assert_eq!(schema.attribute(id("u8")).kind, Kind::Unsigned);
}
