//! The order that the rows of a volume lie in.

use hashbrown::HashMap;
use queuescope_log::Schema;

/// The places of records that lie one behind the other, in the order of the volume: by the keys of what the schema sorts
/// by, equal ones as they came.
pub(crate) fn order(schema: &Schema, rows: &[u8]) -> Vec<u32> {
    let (size, readers): (_, Vec<_>) =
        (schema.record_size(), schema.sort().iter().map(|id| schema.reader(*id)).collect());
    let count = rows.len() / size;
    if readers.is_empty() {
        return (0..count as u32).collect();
    }
    // Records have few different keys in common, most of them many times: each is sorted once.
    let mut known: HashMap<Box<[u128]>, u32, _> = HashMap::with_hasher(foldhash::fast::FixedState::default());
    let (mut key, mut counts) = (vec![0; readers.len()], Vec::new());
    let mut numbers = Vec::with_capacity(count);
    for record in rows.chunks_exact(size) {
        key.iter_mut().zip(&readers).for_each(|(key, reader)| *key = reader.key(record));
        let number = match known.get(&key[..]) {
            Some(number) => *number,
            None => {
                known.insert(key.clone().into(), counts.len() as u32);
                counts.push(0u32);
                counts.len() as u32 - 1
            }
        };
        counts[number as usize] += 1;
        numbers.push(number);
    }
    let mut sorted: Vec<_> = known.into_iter().collect();
    sorted.sort_unstable();
    let (mut starts, mut sum) = (vec![0; sorted.len()], 0);
    for (_, number) in sorted {
        starts[number as usize] = sum;
        sum += counts[number as usize];
    }
    let mut places = vec![0; count];
    for (place, number) in numbers.into_iter().enumerate() {
        let start = &mut starts[number as usize];
        places[*start as usize] = place as u32;
        *start += 1;
    }
    places
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
