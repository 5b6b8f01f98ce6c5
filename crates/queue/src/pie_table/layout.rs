//! The three tables of PIE_TABLE: two map a difference to a range, and one maps the pair of ranges to the change of the
//! probability. A P4 generator writes out the same tables.

use crate::{PieGains, PieStep};
use queuescope_wire::Nanos;

/// Which differences share an entry, and which value represents them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PieTableLayout {
    /// As section VI.D states it. The distance to the target has ranges of one microsecond from -10 to 10 and of two
    /// microseconds elsewhere. The change of the delay has ranges of three microseconds. 0 is a range of its own in
    /// both. The middle of a range represents it. Where the paper leaves it open: ranges are filled outward from 0, so
    /// that those of a rise and of an equal fall mirror each other, and the outermost may be shorter. They reach to the
    /// ends of 16 bits, so that each difference has a range.
    #[default]
    AsStated,
    /// As the published scripts fill it. The distance to the target has ranges of one microsecond from -9 to 9 and of
    /// two elsewhere, from -125 to 455. The change of the delay has ranges of four microseconds from -600 to 600. `hi +
    /// lo / 2` represents the range, which is about 1.5 times its middle. A difference outside of all ranges counts as
    /// the first, the lowest range.
    AsPublished,
}

/// Differences of delay that share an entry, in units of the delay register. Both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieRange {
    /// The lowest difference.
    pub low: i16,
    /// The highest difference.
    pub high: i16,
}

/// The tables.
///
/// ```
/// use queuescope_queue::{PieGains, PieTableLayout, PieUpdateTable};
/// use queuescope_wire::Nanos;
///
/// let (target, longest) = (Nanos(125_000), Nanos(500_000));
/// let table = PieUpdateTable::new(PieTableLayout::AsStated, PieGains::tofino(), target, longest);
/// println!("{} entries", table.size());
/// assert_eq!(table.size(), table.distance_ranges().len() * table.change_ranges().len());
/// assert!(table.step(50, 0).increase, "the delay is above its target");
/// assert!(!table.step(-50, 0).increase);
/// ```
#[derive(Debug, Clone)]
pub struct PieUpdateTable {
    distance: RangeLookup,
    change: RangeLookup,
    entries: Vec<PieStep>,
}

impl PieUpdateTable {
    /// Builds the tables for delays up to `max_delay`, of which at most 4 ms count (6 million entries), and for this
    /// target. [`PieTableLayout::AsPublished`] fixes both.
    pub fn new(layout: PieTableLayout, gains: PieGains, target: Nanos, max_delay: Nanos) -> Self {
        let (distance, change) = match layout {
            PieTableLayout::AsStated => stated(target, max_delay),
            PieTableLayout::AsPublished => published(),
        };
        let (alpha, beta) = gains.per_microsecond();
        let mut entries = Vec::with_capacity(distance.ranges.len() * change.ranges.len());
        for by_distance in &distance.ranges {
            for by_change in &change.ranges {
                let value = alpha * layout.representative(*by_distance) + beta * layout.representative(*by_change);
                let value = (value + 0.5).floor();
                entries.push(PieStep { change: value.abs() as u32, increase: value >= 0.0 });
            }
        }
        Self { distance, change, entries }
    }

    /// The entry for a distance to the target and a change of the delay, in units of the delay register.
    #[inline]
    pub fn step(&self, distance: i16, change: i16) -> PieStep {
        let row = usize::from(self.distance.find(distance));
        self.entries[row * self.change.ranges.len() + usize::from(self.change.find(change))]
    }

    /// The ranges of the distance to the target, by index.
    pub fn distance_ranges(&self) -> &[PieRange] {
        &self.distance.ranges
    }

    /// The ranges of the change of the delay, by index.
    pub fn change_ranges(&self) -> &[PieRange] {
        &self.change.ranges
    }

    /// The number of entries of the update table: the product of both numbers of ranges.
    pub fn size(&self) -> usize {
        self.entries.len()
    }

    /// Every entry with the indexes of its two ranges, distance first.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, PieStep)> + '_ {
        let columns = self.change.ranges.len();
        self.entries.iter().enumerate().map(move |(index, step)| (index / columns, index % columns, *step))
    }
}

impl PieTableLayout {
    fn representative(self, range: PieRange) -> f64 {
        let (low, high) = (f64::from(range.low), f64::from(range.high));
        match self {
            Self::AsStated => f64::midpoint(low, high),
            Self::AsPublished => high + low / 2.0,
        }
    }
}

/// Consecutive ranges without a gap, and the index of each value's range.
#[derive(Debug, Clone)]
struct RangeLookup {
    ranges: Vec<PieRange>,
    lowest: i16,
    numbers: Vec<u16>,
    below: u16,
    above: u16,
}

impl RangeLookup {
    /// `below` and `above` are the range indexes for values outside of all ranges.
    fn new(ranges: Vec<PieRange>, below: u16, above: u16) -> Self {
        let lowest = ranges.first().map_or(0, |range| range.low);
        let mut numbers = Vec::new();
        for (number, range) in (0u16..).zip(&ranges) {
            numbers.extend((range.low..=range.high).map(|_| number));
        }
        Self { ranges, lowest, numbers, below, above }
    }

    #[inline]
    fn find(&self, value: i16) -> u16 {
        let offset = i32::from(value) - i32::from(self.lowest);
        match usize::try_from(offset) {
            Ok(offset) => self.numbers.get(offset).copied().unwrap_or(self.above),
            Err(_) => self.below,
        }
    }
}

/// The ranges of section VI.D.
fn stated(target: Nanos, max_delay: Nanos) -> (RangeLookup, RangeLookup) {
    let micros = |time: Nanos| i16::try_from((time.0 / 1000).min(4_000)).unwrap_or(4_000);
    let (target, most) = (micros(target), micros(max_delay));
    let (low, high) = (-target, most.saturating_sub(target).max(0));
    let mut distance = Vec::new();
    fill_down(&mut distance, low, -11, 2);
    fill(&mut distance, low.max(-10), high.min(10), 1);
    fill(&mut distance, 11, high, 2);
    let mut change = Vec::new();
    fill_down(&mut change, -most, -1, 3);
    fill(&mut change, 0, 0, 1);
    fill(&mut change, 1, most, 3);
    let reach_out = |ranges: Vec<PieRange>| {
        let last = u16::try_from(ranges.len().saturating_sub(1)).unwrap_or(u16::MAX);
        RangeLookup::new(ranges, 0, last)
    };
    (reach_out(distance), reach_out(change))
}

/// The ranges of the published scripts.
fn published() -> (RangeLookup, RangeLookup) {
    let mut distance = Vec::new();
    fill(&mut distance, -125, -10, 2);
    fill(&mut distance, -9, 9, 1);
    fill(&mut distance, 10, 455, 2);
    let mut change = Vec::new();
    fill(&mut change, -600, -1, 4);
    fill(&mut change, 0, 0, 1);
    fill(&mut change, 1, 600, 4);
    (RangeLookup::new(distance, 0, 0), RangeLookup::new(change, 0, 0))
}

/// Appends ranges of `width` from `low` to `high`. The last one may be shorter.
fn fill(ranges: &mut Vec<PieRange>, low: i16, high: i16, width: i16) {
    let mut next = low;
    while next <= high {
        let end = (next + width - 1).min(high);
        ranges.push(PieRange { low: next, high: end });
        next = end + 1;
    }
}

/// The same from `high` down. The lowest one may be shorter.
fn fill_down(ranges: &mut Vec<PieRange>, low: i16, high: i16, width: i16) {
    let shorter = (high - low + 1).max(0) % width;
    fill(ranges, low, low + shorter - 1, width);
    fill(ranges, low + shorter, high, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(layout: PieTableLayout) -> PieUpdateTable {
        PieUpdateTable::new(layout, PieGains::tofino(), Nanos(125_000), Nanos(500_000))
    }

    #[test]
    fn the_stated_layout_has_87_770_entries() {
        let table = table(PieTableLayout::AsStated);
        assert_eq!((table.distance_ranges().len(), table.change_ranges().len()), (262, 335));
        assert_eq!(table.size(), 87_770);
        assert!(table.change_ranges().contains(&PieRange { low: 0, high: 0 }));
        assert!(table.distance_ranges().contains(&PieRange { low: 0, high: 0 }));
        assert_eq!(
            table.distance_ranges()[..2],
            [(-125, -125), (-124, -123)].map(|(low, high)| PieRange { low, high })
        );
        assert_eq!(table.distance_ranges().last(), Some(&PieRange { low: 375, high: 375 }));
        assert_eq!(table.change_ranges().last(), Some(&PieRange { low: 499, high: 500 }));
    }

    /// Otherwise a delay that goes up and down by a microsecond would drive the probability.
    #[test]
    fn a_rise_and_an_equal_fall_cancel() {
        for most in 490..510 {
            let gains = PieGains::tofino();
            let table = PieUpdateTable::new(PieTableLayout::AsStated, gains, Nanos(125_000), Nanos(most * 1000));
            let mirrored =
                table.change_ranges().iter().rev().map(|range| PieRange { low: -range.high, high: -range.low });
            assert_eq!(table.change_ranges(), mirrored.collect::<Vec<_>>());
            let value = |step: PieStep| i64::from(step.change) * if step.increase { 1 } else { -1 };
            for change in 1..=most as i16 {
                // Each is rounded.
                let left = value(table.step(0, change)) + value(table.step(0, -change));
                assert!(left.abs() <= 1, "{change}: {left}");
            }
        }
    }

    #[test]
    fn the_published_layout_has_300_by_301_ranges() {
        let table = table(PieTableLayout::AsPublished);
        assert_eq!((table.distance_ranges().len(), table.change_ranges().len()), (300, 301));
        assert_eq!(table.distance_ranges()[57], PieRange { low: -11, high: -10 });
        assert_eq!(table.distance_ranges()[58], PieRange { low: -9, high: -9 });
        assert_eq!(table.distance_ranges()[299], PieRange { low: 454, high: 455 });
        assert_eq!(table.change_ranges()[150], PieRange { low: 0, high: 0 });
        assert_eq!(table.change_ranges()[300], PieRange { low: 597, high: 600 });
        assert_eq!(table.entries().count(), 90_300);
    }

    #[test]
    fn every_value_is_found_in_the_range_that_holds_it() {
        for layout in [PieTableLayout::AsStated, PieTableLayout::AsPublished] {
            let table = table(layout);
            for lookup in [&table.distance, &table.change] {
                for pair in lookup.ranges.windows(2) {
                    assert_eq!(i32::from(pair[0].high) + 1, i32::from(pair[1].low));
                }
                for value in i16::MIN..=i16::MAX {
                    let holds = lookup.ranges.iter().position(|range| (range.low..=range.high).contains(&value));
                    let found = usize::from(lookup.find(value));
                    match (holds, layout) {
                        (Some(number), _) => assert_eq!(found, number, "{value}"),
                        (None, PieTableLayout::AsPublished) => assert_eq!(found, 0, "{value}"),
                        (None, PieTableLayout::AsStated) if value < 0 => assert_eq!(found, 0, "{value}"),
                        (None, PieTableLayout::AsStated) => assert_eq!(found, lookup.ranges.len() - 1, "{value}"),
                    }
                }
            }
        }
    }

    #[test]
    fn entries_are_the_gains_times_the_representatives_of_the_ranges() {
        let stated = table(PieTableLayout::AsStated);
        // 503.3168 * 375 + 676 205.7 * 0 and 503.3168 * -125 + 676 205.7 * -2 (of -3 .. -1, whose middle is -2).
        assert_eq!(stated.step(375, 0), PieStep { change: 188_744, increase: true });
        assert_eq!(stated.change_ranges()[166], PieRange { low: -3, high: -1 });
        assert_eq!(stated.step(-125, -1), PieStep { change: 1_415_326, increase: false });
        let published = table(PieTableLayout::AsPublished);
        // 363 is in 362 ..= 363, represented by 363 + 181 = 544. -125 is in -125 ..= -124, represented by -124 - 62.5 =
        // -186.5.
        assert_eq!(published.step(363, 0), PieStep { change: 273_804, increase: true });
        assert_eq!(published.step(-125, 0), PieStep { change: 93_869, increase: false });
        assert!(!published.step(500, 0).increase, "no entry, so that of the lowest range");
    }

    /// The error of a range is at most half its width times the gain.
    #[test]
    fn the_stated_table_is_within_half_a_range_of_the_exact_update() {
        let table = table(PieTableLayout::AsStated);
        let (alpha, beta) = PieGains::tofino().per_microsecond();
        for distance in -125..=375i16 {
            for change in (-500..=500i16).step_by(7) {
                let step = table.step(distance, change);
                let signed = if step.increase { f64::from(step.change) } else { -f64::from(step.change) };
                let exact = alpha * f64::from(distance) + beta * f64::from(change);
                assert!((signed - exact).abs() <= 0.5 * alpha + beta + 1.0, "{distance} {change}: {signed} {exact}");
            }
        }
    }

    #[test]
    fn odd_targets_and_limits_give_tables_too() {
        for (target, most) in [(0, 0), (5_000, 3_000), (1_000_000_000, 500_000), (125_000, u64::MAX)] {
            let table = PieUpdateTable::new(PieTableLayout::AsStated, PieGains::tofino(), Nanos(target), Nanos(most));
            for value in [i16::MIN, -1, 0, 1, i16::MAX] {
                table.step(value, value);
            }
            assert!(table.size() > 0);
        }
    }
}
