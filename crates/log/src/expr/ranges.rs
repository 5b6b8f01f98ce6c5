//! Sets of keys as ranges.

/// A set of keys: sorted ranges that neither overlap nor touch, so that equal sets are equal values.
///
/// ```
/// use queuescope_log::Ranges;
///
/// let ports = Ranges::new([(80, 80), (8000, 8080), (81, 90)]);
/// assert_eq!(ports.as_slice(), [(80, 90), (8000, 8080)]);
/// assert!(ports.contains(85) && !ports.contains(100));
/// assert_eq!(ports.complement(65_535).union(&ports), Ranges::full(65_535));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ranges(Vec<(u128, u128)>);

impl Ranges {
    /// The keys in any of these ranges, each with its first and last key; a range whose last key is before its first is
    /// empty.
    pub fn new(ranges: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match joined.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => joined.push((low, high)),
            }
        }
        Self(joined)
    }

    /// All keys up to `highest`.
    pub fn full(highest: u128) -> Self {
        Self(vec![(0, highest)])
    }

    /// The ranges in order, each with its first and last key.
    pub fn iter(&self) -> impl Iterator<Item = (u128, u128)> + '_ {
        self.0.iter().copied()
    }

    /// The ranges in order.
    pub fn as_slice(&self) -> &[(u128, u128)] {
        &self.0
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no key is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all keys up to `highest` are in it.
    pub fn is_full(&self, highest: u128) -> bool {
        self.0.first().is_some_and(|(low, high)| *low == 0 && *high >= highest)
    }

    /// Whether a key is in it.
    #[inline]
    pub fn contains(&self, key: u128) -> bool {
        let index = self.0.partition_point(|(low, _)| *low <= key);
        index.checked_sub(1).and_then(|index| self.0.get(index)).is_some_and(|(_, high)| key <= *high)
    }

    /// The number of keys in it, or the highest `u128` if there are more.
    pub fn count(&self) -> u128 {
        self.iter().fold(0, |count: u128, (low, high)| count.saturating_add((high - low).saturating_add(1)))
    }

    /// The keys in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let (Some(((low, high), more)), Some(((other_low, other_high), others))) =
            (a.split_first(), b.split_first())
        {
            let range = (*low.max(other_low), *high.min(other_high));
            if range.0 <= range.1 {
                both.push(range);
            }
            if high < other_high { a = more } else { b = others }
        }
        Self(both)
    }

    /// The keys in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.iter().chain(other.iter()))
    }

    /// The keys up to `highest` that are not in the set.
    pub fn complement(&self, highest: u128) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = Some(0);
        for (low, high) in self.iter() {
            if let (Some(from), Some(to)) = (next, low.checked_sub(1)) {
                gaps.push((from, to));
            }
            next = high.checked_add(1);
        }
        gaps.extend(next.map(|from| (from, highest)));
        gaps.retain(|(low, high)| low <= high);
        Self(gaps)
    }

    /// Whether all keys are in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut others = other.iter();
        let mut current = others.next();
        self.iter().all(|(low, high)| {
            while current.is_some_and(|(_, end)| end < low) {
                current = others.next();
            }
            current.is_some_and(|(from, to)| from <= low && high <= to)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sets of the numbers up to 63, as ranges and as bits.
    fn set() -> impl Strategy<Value = (Ranges, u64)> {
        prop::collection::vec((0..64u32, 0..64u32), 0..6).prop_map(|pairs| {
            let bits = pairs
                .iter()
                .filter(|(a, b)| a <= b)
                .fold(0, |bits, (a, b)| bits | (u64::MAX >> (63 - b) & u64::MAX << a));
            (Ranges::new(pairs.into_iter().map(|(a, b)| (u128::from(a), u128::from(b)))), bits)
        })
    }

    fn bits(ranges: &Ranges) -> u64 {
        (0..64).filter(|key| ranges.contains(*key)).fold(0, |bits, key| bits | 1 << key)
    }

    proptest! {
        #[test]
        fn ranges_are_sets((a, a_bits) in set(), (b, b_bits) in set()) {
            prop_assert_eq!(bits(&a), a_bits);
            prop_assert_eq!(bits(&a.intersection(&b)), a_bits & b_bits);
            prop_assert_eq!(bits(&a.union(&b)), a_bits | b_bits);
            prop_assert_eq!(bits(&a.complement(63)), !a_bits);
            prop_assert_eq!(a.is_subset(&b), a_bits & !b_bits == 0);
            prop_assert_eq!(a.count(), u128::from(a_bits.count_ones()));
            prop_assert_eq!(a.is_full(63), a_bits == u64::MAX);
            // Equal sets are equal values.
            prop_assert_eq!(a.complement(63).complement(63), a.clone());
            prop_assert_eq!(a.intersection(&b).union(&a), a);
        }
    }

    #[test]
    fn the_highest_key_is_not_special() {
        let all = Ranges::full(u128::MAX);
        assert_eq!(all.complement(u128::MAX), Ranges::default());
        assert_eq!(Ranges::default().complement(u128::MAX), all);
        assert_eq!(Ranges::new([(0, 4), (5, u128::MAX)]), all);
        assert!(all.contains(u128::MAX) && all.is_full(u128::MAX));
        assert_eq!(all.count(), u128::MAX, "one too few, for want of bits");
    }
}
