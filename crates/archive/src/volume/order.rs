//! The order of a volume's rows.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use queuescope_log::{AttributeId, Schema};

/// The indices of consecutive records in the order of the volume: by the keys of the attributes that the schema sorts
/// by; records with equal keys in their original order.
pub(crate) fn order(schema: &Schema, rows: &[u8]) -> Vec<u32> {
    let count = rows.len() / schema.record_size();
    let mut places: Vec<u32> = (0..count as u32).collect();
    // Each pass sorts by as many attributes as fit in a key, the last ones first: later passes keep the order of equal keys.
    let mut left = schema.sort();
    while !left.is_empty() {
        let mut keyed: Vec<(u128, u32)> = places.drain(..).map(|place| (0, place)).collect();
        let mut bits = 0;
        while let Some((id, before)) = left.split_last() {
            let width = schema.attribute(*id).place.bits;
            if bits + width.min(NUMBER) > 128 {
                break;
            }
            add(schema, *id, bits, rows, &mut keyed);
            (left, bits) = (before, bits + width.min(NUMBER));
        }
        keyed.sort_by_key(|(key, _)| *key);
        places = keyed.into_iter().map(|(_, place)| place).collect();
    }
    places
}

/// Bits of a key's rank: wider keys are replaced by their rank among all keys. There are no more ranks than
/// records.
const NUMBER: u32 = 32;

/// Adds an attribute's keys to the sort keys of records, from bit `at` on.
fn add(schema: &Schema, id: AttributeId, at: u32, rows: &[u8], keyed: &mut [(u128, u32)]) {
    let (reader, size) = (schema.reader(id), schema.record_size());
    let key = |place: u32| reader.key(&rows[place as usize * size..]);
    if schema.attribute(id).place.bits <= NUMBER {
        keyed.iter_mut().for_each(|(sum, place)| *sum |= key(*place) << at);
        return;
    }
    let mut numbers: HashMap<u128, u32, FixedState> = HashMap::default();
    let mut different = Vec::new();
    let number = |place: u32| {
        let key = key(place);
        *numbers.entry(key).or_insert_with(|| {
            different.push(key);
            different.len() as u32 - 1
        })
    };
    let of_records: Vec<u32> = keyed.iter().map(|(_, place)| *place).map(number).collect();
    drop(numbers);
    let mut sorted: Vec<u32> = (0..different.len() as u32).collect();
    sorted.sort_unstable_by_key(|number| different[*number as usize]);
    let mut ranks = vec![0u32; sorted.len()];
    for (rank, number) in (0..).zip(sorted) {
        ranks[number as usize] = rank;
    }
    for ((sum, _), number) in keyed.iter_mut().zip(of_records) {
        *sum |= u128::from(ranks[number as usize]) << at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_stable_sort(keys in prop::collection::vec((0..4u8, 0..3u8, any::<u8>()), 0..200)) {
            let text = "name = \"a\"\nsort = [\"y\", \"x\"]\n[[attribute]]\nname = \"x\"\nkind = \"i8\"\n\
                        [[attribute]]\nname = \"y\"\nkind = \"u8\"\n[[attribute]]\nname = \"z\"\nkind = \"u8\"\n";
            let schema = Schema::parse("a.toml", text).expect("it is right");
            let rows: Vec<u8> = keys.iter().flat_map(|(x, y, z)| [x.wrapping_sub(2), *y, *z]).collect();
            let mut expected: Vec<_> = (0..keys.len() as u32).collect();
            expected.sort_by_key(|place| {
                let (x, y, _) = keys[*place as usize];
                (y, x.wrapping_sub(2) as i8)
            });
            prop_assert_eq!(order(&schema, &rows), expected);
        }
    }
}
