//! Small numbers for the distinct keys of a column.

use super::GroupKey;
use crate::columns::{KeyBatch, Keys, Selected};
use crate::primitive::prefetch;
use crate::schema::{AttributeId, Schema};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Keys of at most this many bits are looked up in a table of all of them.
const DIRECT_BITS: u32 = 16;
/// Keys of at most this many bits can be their own numbers.
const OWN_BITS: u32 = 32;
/// A key that has no number yet.
const NONE: u32 = u32::MAX;
/// The fewest slots of a table.
const LEAST_SLOTS: usize = 64;
/// How many lookups ahead the memory for one is prefetched.
const AHEAD: usize = 16;

/// Numbers distinct values from zero on, in the order in which they come: a table with linear probing, so that what a lookup needs can be
/// prefetched.
#[derive(Debug, Clone)]
pub(super) struct Ids<K> {
    /// Values and their numbers; a power of two of them, of which at most three quarters are used.
    slots: Vec<(K, u32)>,
    len: usize,
}

/// Numbers the keys that records have in common.
#[derive(Debug)]
pub(super) struct KeyIds {
    pub key: GroupKey,
    numbers: Numbers,
    /// The keys of the last dictionary, and their numbers.
    known: Option<(Arc<[u128]>, Vec<u32>)>,
}

#[derive(Debug)]
enum Numbers {
    /// A key of this many bits is its own number.
    Own(u32),
    /// The number of each possible key, and how many there are.
    Direct(Vec<u32>, u32),
    Narrow(Ids<u64>),
    Wide(Ids<u128>),
}

/// The keys of an attribute, by their numbers.
#[derive(Debug)]
pub(super) enum Values {
    /// A key is its own number.
    Own,
    Table(Vec<u128>),
}

impl<K: Copy + Default + Eq + Hash> Ids<K> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of a value.
    #[inline]
    pub fn number(&mut self, value: K) -> u32 {
        self.number_at(value, hash(value))
    }

    /// The numbers of values, each of which may be equal to the one before it.
    pub fn assign(&mut self, values: &[K], into: &mut Vec<u32>) {
        let mut last = None;
        for (at, value) in values.iter().enumerate() {
            // The table is larger than the processor's cache: ask for what will be needed soon.
            if let Some(soon) = values.get(at + AHEAD)
                && let Some(slot) = self.slots.get(self.place(hash(*soon)))
            {
                prefetch(slot);
            }
            let number = match last {
                Some((of, number)) if of == *value => number,
                _ => self.number(*value),
            };
            last = Some((*value, number));
            into.push(number);
        }
    }

    #[inline]
    fn number_at(&mut self, value: K, hash: u64) -> u32 {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mut place = self.place(hash);
        loop {
            let slot = &mut self.slots[place];
            if slot.1 == NONE {
                *slot = (value, self.len as u32);
                self.len += 1;
                return slot.1;
            }
            if slot.0 == value {
                return slot.1;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// Where a search for a value with this hash begins.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash as usize & self.slots.len().saturating_sub(1)
    }

    #[cold]
    fn grow(&mut self) {
        let more = vec![(K::default(), NONE); (self.slots.len() * 2).max(LEAST_SLOTS)];
        for (value, number) in std::mem::replace(&mut self.slots, more) {
            if number != NONE {
                let mut place = self.place(hash(value));
                while self.slots[place].1 != NONE {
                    place = (place + 1) & (self.slots.len() - 1);
                }
                self.slots[place] = (value, number);
            }
        }
    }

    /// All values, by their numbers.
    pub fn values(&self) -> Vec<K> {
        let mut values = vec![K::default(); self.len];
        let used = self.slots.iter().filter(|(_, number)| *number != NONE);
        used.for_each(|(value, number)| values[*number as usize] = *value);
        values
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        self.slots.len() * size_of::<(K, u32)>()
    }
}

fn hash(value: impl Hash) -> u64 {
    FixedState::default().hash_one(value)
}

impl Values {
    /// The number of values; none if each key is its own number.
    pub fn len(&self) -> usize {
        match self {
            Self::Own => 0,
            Self::Table(values) => values.len(),
        }
    }

    #[inline]
    pub fn get(&self, number: u32) -> u128 {
        match self {
            Self::Own => number.into(),
            Self::Table(values) => values[number as usize],
        }
    }

    /// For each number how many keys are lower than its key, or another number in the same order.
    pub fn ranks(&self) -> Ranks {
        let Self::Table(values) = self else { return Ranks::Own };
        let mut order: Vec<_> = (0..values.len() as u32).collect();
        order.sort_unstable_by_key(|number| values[*number as usize]);
        let mut ranks = vec![0; values.len()];
        (0..).zip(order).for_each(|(rank, number)| ranks[number as usize] = rank);
        Ranks::Table(ranks)
    }
}

/// Numbers in the order of keys, by the keys' numbers.
#[derive(Debug)]
pub(super) enum Ranks {
    Own,
    Table(Vec<u32>),
}

impl Ranks {
    #[inline]
    pub fn get(&self, number: u32) -> u32 {
        match self {
            Self::Own => number,
            Self::Table(ranks) => ranks[number as usize],
        }
    }
}

impl KeyIds {
    /// For a key that is the only one or not: only then its numbers are those of groups.
    pub fn new(key: GroupKey, schema: &Schema, is_only: bool) -> Self {
        let attribute = schema.attribute(key.attribute());
        assert!(attribute.is_comparable(), "`{}` has no key", attribute.name);
        let numbers = match (key, attribute.place.bits) {
            (GroupKey::Attribute(_), bits @ 0..=OWN_BITS) if !is_only => Numbers::Own(bits),
            (GroupKey::Attribute(_), bits @ 0..=DIRECT_BITS) => Numbers::Direct(vec![NONE; 1 << bits], 0),
            (_, 0..=64) => Numbers::Narrow(Ids::new()),
            _ => Numbers::Wide(Ids::new()),
        };
        Self { key, numbers, known: None }
    }

    pub fn attribute(&self) -> AttributeId {
        self.key.attribute()
    }

    /// The bits of its numbers.
    pub fn bits(&self) -> u32 {
        match self.numbers {
            Numbers::Own(bits) => bits,
            _ => u32::BITS,
        }
    }

    /// The number of distinct keys; not known if each is its own number.
    pub fn len(&self) -> usize {
        match &self.numbers {
            Numbers::Own(_) => 0,
            Numbers::Direct(_, count) => *count as usize,
            Numbers::Narrow(ids) => ids.len(),
            Numbers::Wide(ids) => ids.len(),
        }
    }

    /// The number of a key.
    #[inline]
    pub fn number(&mut self, key: u128) -> u32 {
        self.numbers.number(key)
    }

    /// Adds the number of each selected record to `into`.
    pub fn assign(&mut self, batch: &KeyBatch, selected: Selected<'_>, into: &mut Vec<u32>) {
        let Self { key, numbers, known } = self;
        let key = *key;
        match batch.keys(key.attribute()) {
            Keys::Coded { codes, keys } => {
                let known = match known {
                    Some((of, known)) if Arc::ptr_eq(of, keys) => known,
                    known => &mut known.insert((Arc::clone(keys), vec![NONE; keys.len()])).1,
                };
                selected.each(codes, |code| {
                    let known = &mut known[code as usize];
                    if *known == NONE {
                        *known = numbers.number(key.of(keys[code as usize]));
                    }
                    into.push(*known);
                });
            }
            // Records are sorted so that equal keys are often adjacent.
            Keys::Narrow(keys) => {
                let (mut last, mut number) = (None, NONE);
                selected.each(keys, |of| {
                    if last != Some(of) {
                        (last, number) = (Some(of), numbers.number(key.of_narrow(of)));
                    }
                    into.push(number);
                });
            }
            Keys::Wide(keys) => {
                let (mut last, mut number) = (None, NONE);
                selected.each(keys, |of| {
                    if last != Some(of) {
                        (last, number) = (Some(of), numbers.number(key.of(of)));
                    }
                    into.push(number);
                });
            }
        }
    }

    /// All keys, by their numbers.
    pub fn values(&self) -> Values {
        Values::Table(match &self.numbers {
            Numbers::Own(_) => return Values::Own,
            Numbers::Direct(table, count) => {
                let mut values = vec![0; *count as usize];
                let used = (0u128..).zip(table).filter(|(_, number)| **number != NONE);
                used.for_each(|(key, number)| values[*number as usize] = key);
                values
            }
            Numbers::Narrow(ids) => ids.values().into_iter().map(u128::from).collect(),
            Numbers::Wide(ids) => ids.values(),
        })
    }

    /// Bytes of heap memory that it takes, without those of the last dictionary: fewer groups would not take less.
    pub fn heap(&self) -> usize {
        match &self.numbers {
            Numbers::Own(_) => 0,
            Numbers::Direct(table, _) => table.len() * size_of::<u32>(),
            Numbers::Narrow(ids) => ids.heap(),
            Numbers::Wide(ids) => ids.heap(),
        }
    }
}

impl Numbers {
    #[inline]
    fn number(&mut self, key: u128) -> u32 {
        match self {
            Self::Own(_) => key as u32,
            Self::Direct(table, count) => {
                let number = &mut table[key as usize];
                if *number == NONE {
                    *number = *count;
                    *count += 1;
                }
                *number
            }
            Self::Narrow(ids) => ids.number(key as u64),
            Self::Wide(ids) => ids.number(key),
        }
    }
}
