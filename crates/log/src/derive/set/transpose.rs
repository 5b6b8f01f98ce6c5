//! Words of records to words of terms: transposes a matrix of bits.

use crate::derive::matches::{Bits, WORDS};

/// Sets bit `r` of term `t` to bit `t` of record `r`'s word, for the first `used` terms; bits without a record are zero.
pub(super) fn transpose(words: &[u64], used: usize, terms: &mut [Bits]) {
    let terms = &mut terms[..used];
    let parts = words.chunks(64);
    let count = parts.len();
    for (index, part) in parts.enumerate() {
        let mut put = |turned: &[u64]| terms.iter_mut().zip(turned).for_each(|(term, bits)| term[index] = *bits);
        if used <= 8 { put(&few(&padded(part))) } else { put(&many(padded(part))) }
    }
    if count < WORDS {
        for term in terms {
            term[count..].fill(0);
        }
    }
}

/// The same for at most 64 records: a word for each term.
pub(super) fn transpose_word(words: &[u64], used: usize) -> [u64; 64] {
    if used > 8 {
        return many(padded(words));
    }
    let mut terms = [0; 64];
    terms[..8].copy_from_slice(&few(&padded(words)));
    terms
}

fn padded(words: &[u64]) -> [u64; 64] {
    <[u64; 64]>::try_from(words).unwrap_or_else(|_| {
        let mut padded = [0; 64];
        padded[..words.len()].copy_from_slice(words);
        padded
    })
}

/// For at most eight terms: eight records at a time.
fn few(words: &[u64; 64]) -> [u64; 8] {
    let mut turned = [0u64; 8];
    for (at, eight) in words.chunks_exact(8).enumerate() {
        let mut x = eight.iter().rev().fold(0, |x, word| x << 8 | (word & 0xff));
        // An 8 x 8 transposition: 1 x 1, 2 x 2, then 4 x 4 blocks are swapped (Hacker's Delight 7-3).
        let mut swap = |shift: u32, mask: u64| {
            let t = (x ^ (x >> shift)) & mask;
            x ^= t ^ (t << shift);
        };
        swap(7, 0x00aa_00aa_00aa_00aa);
        swap(14, 0x0000_cccc_0000_cccc);
        swap(28, 0x0000_0000_f0f0_f0f0);
        for (term, byte) in turned.iter_mut().zip(x.to_le_bytes()) {
            *term |= u64::from(byte) << (at * 8);
        }
    }
    turned
}

/// For any number of terms: blocks of 32 x 32 are swapped, then of 16 x 16, and so on.
fn many(mut rows: [u64; 64]) -> [u64; 64] {
    let mut width = 32;
    let mut mask = u64::MAX >> 32;
    while width > 0 {
        for block in rows.chunks_exact_mut(2 * width) {
            let (upper, lower) = block.split_at_mut(width);
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let t = ((*upper >> width) ^ *lower) & mask;
                *upper ^= t << width;
                *lower ^= t;
            }
        }
        width /= 2;
        mask ^= mask << width;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_change_places(words in prop::collection::vec(any::<u64>(), 0..=1024), used in 0..=64usize) {
            let mut terms = vec![[7; WORDS]; 64];
            transpose(&words, used, &mut terms);
            for (bit, term) in terms.iter().take(used).enumerate() {
                for record in 0..1024 {
                    let expected = words.get(record).is_some_and(|word| word >> bit & 1 == 1);
                    prop_assert_eq!(term[record / 64] >> (record % 64) & 1 == 1, expected, "{} {}", bit, record);
                }
            }
            for (index, part) in words.chunks(64).enumerate() {
                let word = transpose_word(part, used);
                prop_assert!(terms.iter().take(used).zip(word).all(|(term, bits)| term[index] == bits), "{}", index);
            }
        }
    }
}
