//! Numbers of several keys together.

use super::ids::{Ids, KeyIds};
use std::ops::Range;

/// Numbers of consecutive keys side by side in one word, which has a number itself: the group's, or the first part of the next word.
#[derive(Debug)]
pub(super) struct Pack {
    /// The keys.
    pub keys: Range<usize>,
    /// The bits of each part: of the previous word's number, unless this is the first one, and of each key's number.
    bits: Vec<u32>,
    ids: Words,
}

#[derive(Debug)]
enum Words {
    Narrow(Ids<u64>),
    Wide(Ids<u128>),
}

impl Pack {
    /// As few words as possible for these keys; none for fewer than two.
    pub fn all(keys: &[KeyIds]) -> Vec<Self> {
        let mut packs: Vec<Self> = Vec::new();
        let mut at = 0;
        while at < keys.len() && keys.len() > 1 {
            let mut bits = if packs.is_empty() { Vec::new() } else { vec![u32::BITS] };
            let start = at;
            while let Some(key) = keys.get(at)
                && bits.iter().sum::<u32>() + key.bits() <= u128::BITS
            {
                bits.push(key.bits());
                at += 1;
            }
            let is_narrow = bits.iter().sum::<u32>() <= u64::BITS;
            let ids = if is_narrow { Words::Narrow(Ids::new()) } else { Words::Wide(Ids::new()) };
            packs.push(Self { keys: start..at, bits, ids });
        }
        packs
    }

    /// The number of distinct words.
    pub fn len(&self) -> usize {
        match &self.ids {
            Words::Narrow(ids) => ids.len(),
            Words::Wide(ids) => ids.len(),
        }
    }

    /// Adds the bits of a part, by its index, behind those before it.
    pub fn join(&self, part: usize, words: &mut [u128], numbers: &[u32]) {
        let bits = self.bits[part];
        words.iter_mut().zip(numbers).for_each(|(word, number)| *word = *word << bits | u128::from(*number));
    }

    /// The numbers of words.
    pub fn assign(&mut self, words: &[u128], into: &mut Vec<u32>) {
        into.clear();
        match &mut self.ids {
            Words::Narrow(ids) => {
                let words: Vec<_> = words.iter().map(|word| *word as u64).collect();
                ids.assign(&words, into);
            }
            Words::Wide(ids) => ids.assign(words, into),
        }
    }

    /// The number of one word.
    pub fn number(&mut self, word: u128) -> u32 {
        match &mut self.ids {
            Words::Narrow(ids) => ids.number(word as u64),
            Words::Wide(ids) => ids.number(word),
        }
    }

    /// The word of these parts.
    pub fn word(&self, parts: impl Iterator<Item = u32>) -> u128 {
        self.bits.iter().zip(parts).fold(0, |word, (bits, part)| word << bits | u128::from(part))
    }

    /// All words, by their numbers.
    pub fn words(&self) -> Vec<u128> {
        match &self.ids {
            Words::Narrow(ids) => ids.values().into_iter().map(u128::from).collect(),
            Words::Wide(ids) => ids.values(),
        }
    }

    /// Splits a word: the numbers of its keys, last first, and then that of the previous word, if there is one.
    pub fn parts(&self, word: u128) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter().rev().scan(word, |left, bits| {
            let part = *left & ((1 << bits) - 1);
            *left >>= bits;
            Some(part as u32)
        })
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        match &self.ids {
            Words::Narrow(ids) => ids.heap(),
            Words::Wide(ids) => ids.heap(),
        }
    }
}
