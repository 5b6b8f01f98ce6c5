//! Which records of a chunk a filter matches.

use super::CHUNK;
use std::ops::Range;

/// Words of a chunk's bits.
pub(crate) const WORDS: usize = CHUNK as usize / 64;
/// A bit for each record of a chunk.
pub(crate) type Bits = [u64; WORDS];

/// A set of records of a chunk, in as little memory as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Matches {
    /// No record.
    None,
    /// Every record.
    All,
    /// These records, by their places in the chunk, in order.
    Few(Box<[u16]>),
    /// The records whose bits are set.
    Many(Box<Bits>),
}

/// This many places take as much memory as the bits.
const FEW: u32 = (size_of::<Bits>() / size_of::<u16>()) as u32;

impl Matches {
    /// From the bits of a whole chunk.
    pub fn from_bits(bits: &Bits) -> Self {
        match count(bits) {
            0 => Self::None,
            n if u64::from(n) == CHUNK => Self::All,
            n if n < FEW => {
                let mut places = Vec::with_capacity(n as usize);
                places.extend(ones(bits).map(|place| place as u16));
                Self::Few(places.into())
            }
            _ => Self::Many(Box::new(*bits)),
        }
    }

    /// The number of records.
    #[inline]
    pub fn count(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::All => CHUNK as u32,
            Self::Few(places) => places.len() as u32,
            Self::Many(bits) => count(&**bits),
        }
    }

    /// As bits.
    pub fn bits(&self) -> Bits {
        match self {
            Self::None => [0; WORDS],
            Self::All => [u64::MAX; WORDS],
            Self::Few(places) => {
                let mut bits = [0; WORDS];
                for place in places {
                    bits[usize::from(*place) / 64] |= 1 << (place % 64);
                }
                bits
            }
            Self::Many(bits) => **bits,
        }
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        match self {
            Self::None | Self::All => 0,
            Self::Few(places) => size_of_val(&**places),
            Self::Many(_) => size_of::<Bits>(),
        }
    }
}

/// The number of bits that are set.
#[inline]
pub(crate) fn count(bits: &[u64]) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}

/// The number of set bits within a range of places.
#[inline]
pub(crate) fn count_within(bits: &Bits, places: Range<usize>) -> u32 {
    let below = |end: usize| {
        let whole = count(&bits[..end / 64]);
        whole + bits.get(end / 64).map_or(0, |word| (word & ((1 << (end % 64)) - 1)).count_ones())
    };
    below(places.end) - below(places.start)
}

/// Clears the bits from a place on.
pub(crate) fn clear_from(bits: &mut Bits, place: usize) {
    for (index, word) in bits.iter_mut().enumerate() {
        let kept = place.saturating_sub(index * 64);
        if kept < 64 {
            *word &= (1 << kept) - 1;
        }
    }
}

/// Clears the bits before a place.
pub(crate) fn clear_to(bits: &mut Bits, place: usize) {
    for (index, word) in bits.iter_mut().enumerate() {
        let cleared = place.saturating_sub(index * 64);
        *word &= if cleared < 64 { u64::MAX << cleared } else { 0 };
    }
}

/// The places of the set bits, in order.
#[inline]
pub(crate) fn ones(bits: &[u64]) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(index, word)| {
        let mut word = *word;
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                index * 64 + bit
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matches_are_their_bits(places in prop::collection::btree_set(0..CHUNK as usize, 0..200), full in any::<bool>(), start in 0..=CHUNK as usize, end in 0..=CHUNK as usize) {
            let mut bits = [0; WORDS];
            for place in &places {
                bits[place / 64] |= 1u64 << (place % 64);
            }
            if full {
                bits = [u64::MAX; WORDS];
            }
            let matches = Matches::from_bits(&bits);
            prop_assert_eq!(matches.bits(), bits);
            prop_assert_eq!(matches.count(), count(&bits));
            if !full {
                prop_assert_eq!(ones(&bits).collect::<Vec<_>>(), places.into_iter().collect::<Vec<_>>());
            }
            prop_assert!(matches.heap() <= size_of::<Bits>());
            let (start, end) = (start.min(end), start.max(end));
            let (mut kept, within) = (bits, count_within(&bits, start..end));
            clear_from(&mut kept, end);
            clear_to(&mut kept, start);
            prop_assert_eq!(within, count(&kept));
        }
    }
}
