//! The index of a block: its records in the order of an attribute's keys.

use super::BLOCK;
use crate::schema::Reader;

/// The places of a block's records, by key; records with equal keys in the order of the log. Two bytes for each record, and the
/// directory.
#[derive(Debug)]
pub(crate) struct Sorted {
    places: Box<[u16]>,
    directory: Directory,
}

/// Where keys begin among the places.
#[derive(Debug)]
enum Directory {
    /// Every distinct key, and where it begins.
    Exact { keys: Box<[u128]>, starts: Box<[u32]> },
    /// One key of every `STEP`.
    Sampled { keys: Box<[u128]> },
}

/// The most distinct keys for an exact directory.
const EXACT: usize = 512;
/// The distance between sampled keys.
const STEP: usize = 128;

/// Buffers for sorting a block; one for each thread, because they are large.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    places: Vec<u16>,
    others: Vec<u16>,
}

impl Sorted {
    /// Sorts the records of a block.
    pub fn new(reader: Reader, bits: u32, rows: &[u8], size: usize, scratch: &mut Scratch) -> Self {
        let count = rows.len() / size;
        debug_assert!(count as u64 <= BLOCK);
        if bits > 64 {
            return Self::wide(reader, rows, size);
        }
        scratch.keys.resize(count, 0);
        reader.fill(rows, size, &mut scratch.keys);
        let Scratch { keys, places, others } = scratch;
        sort(keys, places, others);
        let key = |at: usize| u128::from(keys[usize::from(places[at])]);
        let directory = Directory::new(count, key);
        Self { places: places[..].into(), directory }
    }

    /// Like `new`, for keys of more than 64 bits.
    fn wide(reader: Reader, rows: &[u8], size: usize) -> Self {
        let mut pairs: Vec<_> =
            rows.chunks_exact(size).enumerate().map(|(place, row)| (reader.key(row), place as u16)).collect();
        pairs.sort_unstable();
        let directory = Directory::new(pairs.len(), |at| pairs[at].0);
        Self { places: pairs.into_iter().map(|(_, place)| place).collect(), directory }
    }

    /// The places of the records whose key is in a range, by key.
    pub fn within(&self, (low, high): (u128, u128), key: impl Fn(u16) -> u128) -> &[u16] {
        let start = self.first_from(low, &key);
        let end = high.checked_add(1).map_or(self.places.len(), |next| self.first_from(next, &key));
        &self.places[start..end.max(start)]
    }

    /// The number of records with keys in a range, or somewhat more.
    pub fn about(&self, (low, high): (u128, u128)) -> usize {
        let place = |key: u128, up: bool| match &self.directory {
            Directory::Exact { keys, starts } => starts
                .get(keys.partition_point(|listed| *listed < key))
                .map_or(self.places.len(), |start| *start as usize),
            Directory::Sampled { keys } => {
                let index = keys.partition_point(|listed| *listed < key);
                (if up { index * STEP } else { index.saturating_sub(1) * STEP }).min(self.places.len())
            }
        };
        let end = high.checked_add(1).map_or(self.places.len(), |next| place(next, true));
        end.saturating_sub(place(low, false))
    }

    /// The number of places with keys below this one.
    fn first_from(&self, wanted: u128, key: &impl Fn(u16) -> u128) -> usize {
        match &self.directory {
            Directory::Exact { keys, starts } => starts
                .get(keys.partition_point(|listed| *listed < wanted))
                .map_or(self.places.len(), |start| *start as usize),
            Directory::Sampled { keys } => {
                let index = keys.partition_point(|listed| *listed < wanted);
                let (start, end) = (index.saturating_sub(1) * STEP, (index * STEP).min(self.places.len()));
                start + self.places[start..end].partition_point(|place| key(*place) < wanted)
            }
        }
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        let directory = match &self.directory {
            Directory::Exact { keys, starts } => size_of_val(&**keys) + size_of_val(&**starts),
            Directory::Sampled { keys } => size_of_val(&**keys),
        };
        size_of_val(&*self.places) + directory
    }
}

impl Directory {
    /// A directory of `count` sorted keys.
    fn new(count: usize, key: impl Fn(usize) -> u128) -> Self {
        let (mut keys, mut starts) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < count && keys.len() <= EXACT {
            let this = key(at);
            keys.push(this);
            starts.push(at as u32);
            at = next(at, count, |at| key(at) == this);
        }
        if keys.len() <= EXACT {
            return Self::Exact { keys: keys.into(), starts: starts.into() };
        }
        Self::Sampled { keys: (0..count).step_by(STEP).map(key).collect() }
    }
}

/// The first place behind `at` where `same` does not hold: by growing steps, then by halving.
fn next(at: usize, count: usize, same: impl Fn(usize) -> bool) -> usize {
    let (mut known, mut step) = (at, 1);
    while known + step < count && same(known + step) {
        known += step;
        step *= 2;
    }
    let (mut low, mut high) = (known + 1, (known + step).min(count));
    while low < high {
        let middle = low + (high - low) / 2;
        if same(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Sorts places by key, equal keys by place: a radix sort over the bytes in which keys differ.
fn sort(keys: &[u64], places: &mut Vec<u16>, others: &mut Vec<u16>) {
    let count = keys.len();
    places.resize(count, 0);
    others.resize(count, 0);
    let first = keys.first().copied().unwrap_or_default();
    let (mut varying, mut sorted, mut before) = (0, true, first);
    for key in keys {
        varying |= key ^ first;
        sorted &= before <= *key;
        before = *key;
    }
    if sorted {
        places.iter_mut().enumerate().for_each(|(number, place)| *place = number as u16);
        return;
    }
    let mut begun = false;
    for shift in (0..64).step_by(8).filter(|shift| varying >> shift & 0xff != 0) {
        let mut starts = [0u32; 256];
        for key in keys {
            starts[(key >> shift & 0xff) as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        let mut put = |place: u16| {
            let start = &mut starts[(keys[usize::from(place)] >> shift & 0xff) as usize];
            others[*start as usize] = place;
            *start += 1;
        };
        if begun {
            places.iter().for_each(|place| put(*place));
        } else {
            (0..count).for_each(|place| put(place as u16));
        }
        begun = true;
        std::mem::swap(places, others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use proptest::prelude::*;

    fn schema() -> Schema {
        let text = "name = \"a\"\n[[attribute]]\nname = \"long\"\nkind = \"u64\"\n[[attribute]]\nname = \"wide\"\nkind = \"u128\"\n";
        Schema::parse("a.toml", text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Keys with few distinct values, with many, or in order.
    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let key = prop_oneof![any::<u64>(), 0..5u64, (0..900u64).prop_map(|n| n << 20)];
        prop_oneof![
            prop::collection::vec(key, 0..50),
            prop::collection::vec(any::<u64>(), 500..3000),
            prop::collection::vec((0..900u64).prop_map(|n| n << 20), 500..3000),
            prop::collection::vec(any::<u64>(), 0..2000).prop_map(|mut keys| {
                keys.sort_unstable();
                keys
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_index_finds_what_a_scan_finds(keys in keys(), a in any::<u64>(), b in any::<u64>(), pick in any::<prop::sample::Index>()) {
            let schema = schema();
            let size = schema.record_size();
            let mut rows = vec![0; keys.len() * size];
            for (key, row) in keys.iter().zip(rows.chunks_exact_mut(size)) {
                for (id, _) in schema.iter() {
                    schema.reader(id).write(row, u128::from(*key));
                }
            }
            let picked = if keys.is_empty() { a } else { *pick.get(&keys) };
            for (id, attribute) in schema.iter() {
                let reader = schema.reader(id);
                let index = Sorted::new(reader, attribute.place.bits, &rows, size, &mut Scratch::default());
                let key = |place: u16| reader.key(&rows[usize::from(place) * size..]);
                for (low, high) in [(a.min(b), a.max(b)), (picked, picked), (picked, u64::MAX), (0, picked), (0, u64::MAX)] {
                    let range = (u128::from(low), u128::from(high));
                    let mut expected: Vec<_> =
                        (0..keys.len() as u16).filter(|place| (low..=high).contains(&keys[usize::from(*place)])).collect();
                    expected.sort_by_key(|place| keys[usize::from(*place)]);
                    prop_assert_eq!(index.within(range, key), &expected[..]);
                    prop_assert!(index.about(range) >= expected.len());
                    prop_assert!(index.about(range) <= expected.len() + 2 * STEP);
                }
            }
        }
    }
}
