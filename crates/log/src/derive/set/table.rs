//! From a key to the terms whose ranges it is in.

use crate::expr::Ranges;

/// Keys fall into classes: intervals in which no term's ranges begin or end. Each class has a word of terms.
#[derive(Debug)]
pub(crate) struct Table {
    /// The first key of each class, in order; the first is zero.
    starts: Vec<u128>,
    words: Vec<u64>,
    find: Lookup,
}

/// How to find the class of a key of 64 bits.
#[derive(Debug)]
enum Lookup {
    /// There is only one class, with all terms.
    Nothing,
    /// One interval has one word; all keys outside have another.
    Stretch { start: u64, size: u64, inside: u64, outside: u64 },
    /// Keys with the same bytes above the last one have words by their last byte; all others have one word.
    Byte { above: u64, inside: Box<[u64; 256]>, outside: u64 },
    /// Byte by byte from the highest: another node, or a word.
    Trie { top: u32, nodes: Vec<[u32; 256]> },
    /// Binary search.
    Search,
}

/// Marks a node's entry as a class; otherwise it is a node.
const LEAF: u32 = 1 << 31;
/// The widest keys that a trie is made for: for wider ones it would be large.
const TRIE_BITS: u32 = 32;
/// The most nodes of a trie, of a kibibyte each: a larger trie would not fit in the cache.
const NODES: usize = 256;

impl Table {
    /// A table of terms' ranges, of keys of `bits` bits; a term without ranges has all keys.
    pub fn new(terms: &[Option<&Ranges>], bits: u32) -> Self {
        let mut starts = vec![0];
        for (low, high) in terms.iter().flatten().flat_map(|ranges| ranges.iter()) {
            starts.push(low);
            starts.extend(high.checked_add(1).filter(|next| bits >= 128 || *next < 1 << bits));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut words: Vec<u64> = starts.iter().map(|key| word_of(terms, *key)).collect();
        // Neighbours with the same word are one class.
        let mut kept = 0;
        for index in 1..starts.len() {
            if words[index] != words[kept] {
                kept += 1;
                (starts[kept], words[kept]) = (starts[index], words[index]);
            }
        }
        starts.truncate(kept + 1);
        words.truncate(kept + 1);
        let mut table = Self { starts, words, find: Lookup::Search };
        table.find = table.best(bits);
        table
    }

    fn best(&self, bits: u32) -> Lookup {
        if bits > 64 {
            return Lookup::Search;
        }
        match (&*self.starts, &*self.words) {
            (_, [only]) if *only == u64::MAX => return Lookup::Nothing,
            (_, [only]) => return Lookup::Stretch { start: 0, size: u64::MAX, inside: *only, outside: *only },
            ([_, start], [outside, inside]) => {
                return Lookup::Stretch { start: *start as u64, size: u64::MAX, inside: *inside, outside: *outside }
                    .ending_at(u64::MAX);
            }
            ([_, start, end], [outside, inside, behind]) if outside == behind => {
                return Lookup::Stretch { start: *start as u64, size: 0, inside: *inside, outside: *outside }
                    .ending_at(*end as u64 - 1);
            }
            _ => {}
        }
        let (first, last) = (self.words[0], self.words[self.words.len() - 1]);
        let above = self.starts[1] >> 8;
        let end = self.starts[self.starts.len() - 1];
        if (bits <= 8 || first == last) && (end - 1) >> 8 == above {
            let mut inside = Box::new([0; 256]);
            for (byte, word) in inside.iter_mut().enumerate() {
                *word = self.find_wide(above << 8 | byte as u128);
            }
            return Lookup::Byte { above: above as u64, inside, outside: first };
        }
        if bits > TRIE_BITS {
            return Lookup::Search;
        }
        let top = (bits - 1) / 8 * 8;
        let mut nodes = Vec::new();
        if self.node(0, top, &mut nodes).is_some() { Lookup::Trie { top, nodes } } else { Lookup::Search }
    }

    /// Makes the node of the keys from `base` on whose bytes differ from the one at `shift` on; `None` if there are too
    /// many.
    fn node(&self, base: u128, shift: u32, nodes: &mut Vec<[u32; 256]>) -> Option<u32> {
        let index = nodes.len();
        if index == NODES {
            return None;
        }
        nodes.push([0; 256]);
        for byte in 0..256u128 {
            let low = base | byte << shift;
            let high = low | ((1 << shift) - 1);
            let (class, last) = (self.class(low), self.class(high));
            nodes[index][byte as usize] =
                if class == last { LEAF | class as u32 } else { self.node(low, shift - 8, nodes)? };
        }
        Some(index as u32)
    }

    fn class(&self, key: u128) -> usize {
        self.starts.partition_point(|start| *start <= key) - 1
    }

    /// The word of any key.
    pub fn find_wide(&self, key: u128) -> u64 {
        self.words[self.class(key)]
    }

    /// Clears in each word the terms that its key does not satisfy.
    pub fn apply(&self, keys: &[u64], words: &mut [u64]) {
        let pairs = words.iter_mut().zip(keys);
        match &self.find {
            Lookup::Nothing => {}
            Lookup::Stretch { start, size, inside, outside } => {
                for (word, key) in pairs {
                    *word &= if key.wrapping_sub(*start) <= *size { *inside } else { *outside };
                }
            }
            Lookup::Byte { above, inside, outside } => {
                for (word, key) in pairs {
                    let found = inside[(key & 0xff) as usize];
                    *word &= if key >> 8 == *above { found } else { *outside };
                }
            }
            Lookup::Trie { top, nodes } => {
                for (word, key) in pairs {
                    let (mut node, mut shift) = (0, *top);
                    let class = loop {
                        let entry = nodes[node as usize][(key >> shift & 0xff) as usize];
                        if entry & LEAF != 0 {
                            break entry & !LEAF;
                        }
                        (node, shift) = (entry, shift.wrapping_sub(8));
                    };
                    *word &= self.words[class as usize];
                }
            }
            Lookup::Search => {
                for (word, key) in pairs {
                    *word &= self.find_wide(u128::from(*key));
                }
            }
        }
    }
}

impl Lookup {
    /// An interval with its last key.
    fn ending_at(self, last: u64) -> Self {
        match self {
            Self::Stretch { start, inside, outside, .. } => {
                Self::Stretch { start, size: last - start, inside, outside }
            }
            other => other,
        }
    }
}

/// The terms whose ranges a key is in, computed slowly.
fn word_of(terms: &[Option<&Ranges>], key: u128) -> u64 {
    // Bits of no term stay set: nothing reads them, and terms with all keys need no table.
    terms.iter().enumerate().fold(u64::MAX, |word, (bit, ranges)| match ranges {
        Some(ranges) if !ranges.contains(key) => word & !(1 << bit),
        _ => word,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ranges of keys of some bits, many near to each other.
    fn ranges(bits: u32) -> impl Strategy<Value = Option<Ranges>> {
        let most = crate::schema::low_bits(bits);
        let key =
            prop_oneof![0..=most, (0..=255u128).prop_map(move |low| ((most / 3) & !255 | low).min(most)), Just(most)];
        let pair = (key.clone(), prop_oneof![key, Just(0)]);
        prop::option::of(prop::collection::vec(pair, 1..4).prop_map(move |pairs| {
            Ranges::new(pairs.into_iter().map(|(a, b)| if b == 0 { (a, a) } else { (a.min(b), a.max(b)) }))
        }))
    }

    fn case() -> impl Strategy<Value = (u32, Vec<Option<Ranges>>, Vec<u128>)> {
        prop::sample::select(vec![1, 4, 8, 13, 16, 24, 32, 48, 64, 100, 128]).prop_flat_map(|bits| {
            let keys = prop::collection::vec(0..=crate::schema::low_bits(bits), 50);
            (Just(bits), prop::collection::vec(ranges(bits), 1..=64), keys)
        })
    }

    proptest! {
        #[test]
        fn a_table_agrees_with_its_ranges((bits, ranges, mut keys) in case()) {
            let terms: Vec<_> = ranges.iter().map(Option::as_ref).collect();
            let table = Table::new(&terms, bits);
            let most = crate::schema::low_bits(bits);
            for (low, high) in ranges.iter().flatten().flat_map(Ranges::iter) {
                keys.extend([low, high, low.saturating_sub(1), high.saturating_add(1).min(most)]);
            }
            for key in &keys {
                prop_assert_eq!(table.find_wide(*key), word_of(&terms, *key), "{}", key);
            }
            if bits <= 64 {
                let narrow: Vec<_> = keys.iter().map(|key| *key as u64).collect();
                let mut words = vec![u64::MAX; keys.len()];
                table.apply(&narrow, &mut words);
                for (key, word) in keys.into_iter().zip(words) {
                    prop_assert_eq!(word, word_of(&terms, key), "{}", key);
                }
            }
        }
    }
}
