//! Batches of keys: they have the records' keys, and filters, functions and groups of batches are those of the records one by one.

use crate::common;
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_log::{
    AttributeId, BatchFilter, Filter, Folding, Function, Group, GroupKey, Grouped, Grouping, KeyGather, Kind,
    NoAggregates, Number, Schema, Selected,
};
use std::collections::BTreeMap;

/// The comparable attributes of a schema.
fn comparable(schema: &Schema) -> Vec<AttributeId> {
    schema.iter().filter(|(_, attribute)| attribute.is_comparable()).map(|(id, _)| id).collect()
}

fn function(of: (u8, Index)) -> Function {
    let schema = common::schema();
    let id = *of.1.get(&comparable(schema));
    // A sum of fractions depends on their order, which batches that are joined do not have in common.
    let has_fractions = schema.attribute(id).kind == Kind::Float;
    match of.0 {
        0 => Function::Count,
        1 => Function::Min(id),
        2 => Function::Max(id),
        3 if !has_fractions => Function::Sum(id),
        4 if !has_fractions => Function::Mean(id),
        5 if Function::Deviation(id).is_of_any_order(schema) => Function::Deviation(id),
        6 => Function::Distinct(id),
        _ => Function::Count,
    }
}

/// The start of the interval that a time is in, by steps.
fn interval(at: u128, width: u64, origin: u64) -> u128 {
    let (at, width, origin) = (at as i128, i128::from(width.max(1)), i128::from(origin));
    (origin + (at - origin).div_euclid(width) * width).max(0) as u128
}

fn key_of(key: &GroupKey, record: &[u8]) -> u128 {
    let schema = common::schema();
    match *key {
        GroupKey::Attribute(id) => schema.key(id, record),
        GroupKey::Time { attribute, width, origin } => interval(schema.key(attribute, record), width, origin),
    }
}

/// To compare: a number that is none differs from itself.
fn text(what: &impl std::fmt::Debug) -> String {
    format!("{what:?}")
}

/// The groups of some records, each folded on its own.
fn slow(records: &[Vec<u8>], keys: &[GroupKey], functions: &[Function]) -> Vec<Group> {
    let mut groups: BTreeMap<Vec<u128>, Folding> = BTreeMap::new();
    for record in records {
        let key = keys.iter().map(|key| key_of(key, record)).collect();
        groups.entry(key).or_insert_with(|| Folding::new(common::schema(), functions)).add(record);
    }
    groups.into_iter().map(|(key, folding)| (key, folding.finish())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_is_filtered_as_its_records(
        expr in common::expr(), records in prop::collection::vec(common::record(), 0..70),
        (from, to) in (prop_oneof![Just(0), any::<u64>()], prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]),
    ) {
        let schema = common::schema();
        let scope = common::scope(schema);
        let Ok(dnf) = expr.dnf(&scope) else { return Ok(()) };
        if !dnf.aggregates().is_empty() {
            return Ok(());
        }
        let time = schema.time().expect("records have a time");
        let mut attributes = dnf.attributes();
        attributes.push(time);
        let mut gather = KeyGather::new(schema, &attributes);
        records.iter().for_each(|record| gather.push(record));
        let mut filter = BatchFilter::new(&dnf, from..to, schema);
        let batch = gather.take();
        let found = match filter.select(&batch) {
            Selected::All(rows) => (0..rows as u32).collect(),
            Selected::Some(places) => places.to_vec(),
        };
        let single = Filter::new(&dnf, schema);
        let holds = |record: &[u8]| {
            let at = schema.key(time, record) as u64;
            at >= from && (at < to || to == u64::MAX) && single.matches(record, &NoAggregates)
        };
        let expected: Vec<_> = (0u32..).zip(&records).filter(|(_, record)| holds(record)).map(|(at, _)| at).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn groups_are_those_of_the_records_one_by_one(
        mut records in prop::collection::vec(common::record(), 0..200),
        keys in prop::collection::vec(any::<Index>(), 0..4),
        interval in prop::option::of((1..u64::MAX, any::<u64>())),
        functions in prop::collection::vec((0..7u8, any::<Index>()), 1..4),
        (memory, top, split) in (prop_oneof![Just(usize::MAX), 4_000..40_000usize], 0..5usize, any::<Index>()),
    ) {
        let schema = common::schema();
        // Repetitions make groups of several records.
        let again: Vec<_> = records.iter().step_by(3).cloned().collect();
        records.extend(again);
        let mut keys: Vec<_> =
            keys.iter().map(|index| GroupKey::Attribute(*index.get(&comparable(schema)))).collect();
        if let (Some((width, origin)), Some(attribute)) = (interval, schema.time()) {
            keys.push(GroupKey::Time { attribute, width, origin });
        }
        // A single short key has a table of all its values, which alone takes more memory.
        let is_short = |key: &GroupKey| schema.attribute(key.attribute()).place.bits <= 16;
        let memory = if keys.len() == 1 && keys.iter().all(is_short) { usize::MAX } else { memory };
        let functions: Vec<_> = functions.into_iter().map(function).collect();
        let mut expected = slow(&records, &keys, &functions);

        let parts = records.split_at(split.index(records.len() + 1));
        let (mut found, mut tops, mut after, mut passes) = (Vec::new(), Vec::new(), None, 0);
        loop {
            let [mut one, mut other] = [parts.0, parts.1].map(|records| {
                let mut grouping = Grouping::new(schema, &keys, &functions).with_memory(memory);
                if let Some(after) = &after {
                    grouping = grouping.after(Vec::clone(after));
                }
                // One by one, and as batches.
                records.iter().step_by(2).for_each(|record| grouping.add(record));
                let mut gather = KeyGather::new(schema, &comparable(schema));
                let mut odd = records.iter().skip(1).step_by(2).peekable();
                while odd.peek().is_some() {
                    odd.by_ref().take(17).for_each(|record| gather.push(record));
                    let batch = gather.take();
                    grouping.add_batch(&batch, Selected::All(batch.rows()));
                }
                grouping
            });
            if passes % 2 == 1 {
                std::mem::swap(&mut one, &mut other);
            }
            one.join(other);
            let mut grouped = one.finish();
            after = grouped.behind().map(<[u128]>::to_vec);
            prop_assert!(after.is_none() || !grouped.is_empty(), "each pass finds something");
            found.extend(grouped.iter());
            grouped.top(top, 0);
            tops.extend(grouped.iter());
            passes += 1;
            if after.is_none() {
                break;
            }
        }
        prop_assert!(passes == 1 || memory < usize::MAX);
        prop_assert_eq!(text(&found), text(&expected));
        Grouped::top_of(&mut tops, top, 0);
        expected.sort_by(|a, b| b.1[0].compare(a.1[0]).then_with(|| a.0.cmp(&b.0)));
        expected.truncate(top);
        prop_assert_eq!(text(&tops), text(&expected));
    }

    #[test]
    fn functions_of_a_batch_are_those_of_the_selected_records(
        records in prop::collection::vec(common::record(), 0..70),
        functions in prop::collection::vec((0..7u8, any::<Index>()), 1..4), every in 1..4usize,
    ) {
        let schema = common::schema();
        let functions: Vec<_> = functions.into_iter().map(function).collect();
        let mut gather = KeyGather::new(schema, &comparable(schema));
        records.iter().for_each(|record| gather.push(record));
        let batch = gather.take();
        let places: Vec<u32> = (0..records.len() as u32).step_by(every).collect();
        let (mut folding, mut joined) = (Folding::new(schema, &functions), Folding::new(schema, &functions));
        let mut expected = Folding::new(schema, &functions);
        records.iter().step_by(every).for_each(|record| expected.add(record));
        let (one, other) = places.split_at(places.len() / 2);
        folding.add_batch(&batch, Selected::Some(one));
        joined.add_batch(&batch, Selected::Some(other));
        folding.join(&joined);
        let expected: Vec<Number> = expected.finish();
        prop_assert_eq!(text(&folding.finish()), text(&expected));
    }
}

#[cfg(feature = "arrow")]
mod arrow {
    use super::comparable;
    use crate::common;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, ArrayRef, StringArray};
    use arrow_schema::DataType;
    use proptest::prelude::*;
    use queuescope_log::arrow::{Column, KeyReader};
    use queuescope_log::{Schema, packet};
    use std::sync::Arc;

    /// The same column with a text for each record in place of a dictionary.
    fn plain(array: &ArrayRef) -> ArrayRef {
        let DataType::Dictionary(..) = array.data_type() else { return Arc::clone(array) };
        let texts = array.as_dictionary::<Int32Type>();
        let values = texts.values().as_string::<i32>();
        Arc::new(StringArray::from_iter_values(texts.keys().values().iter().map(|key| values.value(*key as usize))))
    }

    fn compare(schema: &Schema, records: &[u8]) -> Result<usize, TestCaseError> {
        let size = schema.record_size();
        let mut several = 0;
        for id in comparable(schema) {
            let Some(mut reader) = KeyReader::new(id, schema) else {
                several += 1;
                continue;
            };
            prop_assert!(!schema.attribute(reader.stored()).view);
            let column = Column::new(reader.stored(), schema);
            for part in records.chunks(9 * size) {
                let array = column.array(part, size);
                for array in [plain(&array), array] {
                    let keys = reader.keys(&array).map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert_eq!(keys.len(), part.len() / size);
                    for (place, record) in part.chunks_exact(size).enumerate() {
                        prop_assert_eq!(keys.get(place), schema.key(id, record), "{}", schema.attribute(id).name);
                    }
                }
            }
        }
        Ok(several)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn keys_of_columns_are_those_of_the_records(records in prop::collection::vec(common::record(), 0..30)) {
            compare(common::schema(), &records.concat())?;
        }

        #[test]
        fn so_are_those_of_views(noise in prop::collection::vec(any::<u8>(), packet::SIZE * 12)) {
            prop_assert_eq!(compare(Schema::packet(), &noise)?, 0, "each attribute of packets is in one column");
        }
    }

    #[test]
    fn columns_of_another_type_are_refused() {
        let schema = common::schema();
        let text = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        for (name, value, why) in [
            ("length", "12", "is Utf8 and should be UInt16"),
            ("v4", "12", "is wrong"),
            ("any", "1.2.3.256", "is wrong"),
            ("mac", "", "is wrong"),
        ] {
            let mut reader = KeyReader::new(schema.find(name).expect(name), schema).expect(name);
            let error = reader.keys(&text(value)).expect_err(name).to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
