//! Unions of ranges of the log, so that nothing is counted twice.

use std::ops::Range;

/// A union of ranges, which are disjoint and in order.
#[derive(Debug, Default)]
pub(super) struct Union {
    ranges: Vec<Range<usize>>,
}

impl Union {
    /// Adds a range that ends no earlier than any before it.
    pub(super) fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let mut start = range.start;
        while let Some(last) = self.ranges.pop_if(|last| last.end >= start) {
            start = start.min(last.start);
        }
        self.ranges.push(start..range.end);
    }

    /// All indices in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().cloned().flatten()
    }

    /// The indices that are in it and not in `other`.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        for range in &self.ranges {
            let mut start = range.start;
            let after = other.ranges.partition_point(|hole| hole.end <= start);
            for hole in other.ranges[after..].iter().take_while(|hole| hole.start < range.end) {
                rest.add(start..hole.start.max(start));
                start = hole.end;
            }
            rest.add(start.min(range.end)..range.end);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn union(mut ranges: Vec<(usize, usize)>) -> (Union, BTreeSet<usize>) {
        ranges.sort_by_key(|(start, length)| start + length);
        let mut union = Union::default();
        ranges.iter().for_each(|(start, length)| union.add(*start..start + length));
        (union, ranges.iter().flat_map(|(start, length)| *start..start + length).collect())
    }

    proptest! {
        #[test]
        fn unions_match_sets(
            a in prop::collection::vec((0..60usize, 0..12usize), 0..12),
            b in prop::collection::vec((0..60usize, 0..12usize), 0..12)
        ) {
            let ((a, set_a), (b, set_b)) = (union(a), union(b));
            prop_assert!(a.iter().eq(set_a.iter().copied()), "in order, each once");
            prop_assert!(a.without(&b).iter().eq(set_a.difference(&set_b).copied()));
        }
    }
}
