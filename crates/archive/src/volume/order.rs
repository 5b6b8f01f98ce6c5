//! The order that the rows of a volume lie in.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use queuescope_log::{AttributeId, Schema};

/// The places of records that lie one behind the other, in the order of the volume: by the keys of what the schema sorts
/// by, equal ones as they came.
pub(crate) fn order(schema: &Schema, rows: &[u8]) -> Vec<u32> {
    let count = rows.len() / schema.record_size();
    // As many attributes as fit are sorted by at once, the last ones first: later sorts leave what is equal as it is.
    let mut places: Vec<u32> = (0..count as u32).collect();
    let mut left = schema.sort();
    while !left.is_empty() {
        let (mut keys, mut bits) = (vec![0u128; count], 0);
        while let Some((id, before)) = left.split_last() {
            let column = Column::of(schema, *id, rows);
            if bits + column.bits > 128 {
                break;
            }
            keys.iter_mut().zip(&column.keys).for_each(|(key, part)| *key |= part << bits);
            (left, bits) = (before, bits + column.bits);
        }
        let mut sorted: Vec<_> = places.into_iter().map(|place| (keys[place as usize], place)).collect();
        sorted.sort_by_key(|(key, _)| *key);
        places = sorted.into_iter().map(|(_, place)| place).collect();
    }
    places
}

/// What is sorted by of one attribute.
struct Column {
    keys: Vec<u128>,
    /// How many bits they have.
    bits: u32,
}

/// Keys of more bits are numbered in their order: there are no more of them than records.
const WIDE: u32 = 40;

impl Column {
    fn of(schema: &Schema, id: AttributeId, rows: &[u8]) -> Self {
        let (reader, bits) = (schema.reader(id), schema.attribute(id).place.bits);
        let keys: Vec<_> = rows.chunks_exact(schema.record_size()).map(|record| reader.key(record)).collect();
        if bits <= WIDE {
            return Self { keys, bits };
        }
        let mut numbers: HashMap<u128, u32, FixedState> = HashMap::default();
        let mut different = Vec::new();
        let of_record: Vec<u32> = keys
            .iter()
            .map(|key| {
                *numbers.entry(*key).or_insert_with(|| {
                    different.push(*key);
                    different.len() as u32 - 1
                })
            })
            .collect();
        let mut sorted: Vec<u32> = (0..different.len() as u32).collect();
        sorted.sort_unstable_by_key(|number| different[*number as usize]);
        let mut ranks = vec![0; sorted.len()];
        for (rank, number) in sorted.into_iter().enumerate() {
            ranks[number as usize] = rank as u128;
        }
        Self { keys: of_record.into_iter().map(|number| ranks[number as usize]).collect(), bits: 32 }
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
