//! The rotation of windows: a new window becomes the current one, old counts are removed, and windows are widened.

use super::visit::{NARROW, Shape};
use super::{ConQuest, MAX_SNAPSHOTS, POINT};
use crate::params::LONGEST_WINDOW;
use crate::{Expiry, Passes};
use queuescope_wire::Nanos;

/// The state of cleaning: the snapshot, the next entry, and how many entries were cleaned in this window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cleaner {
    pub(super) counter: usize,
    next: usize,
    done: usize,
}

/// Divides by the window T with a multiplication by 2^k / T, rounded up. k is 63 + floor(log2 T), so that this is above
/// 2^62 and at most 2^63.
///
/// For up to 64 windows, the integer part of the result is exact for windows below 2^56 ns, and all bits are exact for
/// windows below 2^40 ns (18 minutes): the error is less than 2^-k of the dividend, which is below the distance 1 / T
/// to the next value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reciprocal {
    value: u64,
    /// The product is shifted right by 64 - before + after bits: `before` is a left shift of the dividend, 64 takes the
    /// upper half, and `after` is a right shift of that.
    before: u32,
    after: u32,
}

impl ConQuest {
    /// Doubles the window. The counts of two windows are added to those of the window that they become. If the first of
    /// the two is no longer kept, only the second counts. A window of more than a year is not doubled.
    pub fn widen(&mut self) {
        if self.params.window.0 >= LONGEST_WINDOW / 2 {
            return;
        }
        let (h, window) = (self.params.snapshots, self.window);
        self.horizon = self.oldest;
        let (mut highest, mut wide, current) = (0, false, (window / 2 % h as u64) as usize);
        for (place, cell) in self.counters.chunks_exact_mut(h).enumerate() {
            let stale = self.tags.get(place).map_or(0, |tag| u64::from((window as u32).wrapping_sub(*tag)));
            let mut merged = [0u32; MAX_SNAPSHOTS];
            for back in stale..(self.params.kept() as u64).min(window.saturating_add(1)) {
                let counter = &mut merged[((window - back) / 2 % h as u64) as usize];
                let count = cell[((window - back) % h as u64) as usize];
                self.stats.saturated += u64::from(counter.checked_add(count).is_none());
                *counter = counter.saturating_add(count);
                wide |= *counter > NARROW;
            }
            cell.copy_from_slice(&merged[..h]);
            highest = highest.max(merged[current]);
        }
        self.highest = u64::from(highest);
        if wide {
            self.shape = Shape::Any;
        }
        self.tags.fill((window / 2) as u32);
        self.cleaner.done = 0;
        self.params.window = Nanos(self.params.window.0 * 2);
        self.reciprocal = Reciprocal::new(self.params.window.0);
        self.set_window(window / 2);
    }

    /// Makes the window of `now` the current one, and removes or counts what is left of old windows.
    #[cold]
    #[inline(never)]
    pub(super) fn rotate(&mut self, now: Nanos) {
        let (before, window) = (self.window, now.0 / self.params.window.0);
        self.highest = 0;
        if self.started {
            match self.params.expiry {
                // Update all tags before one of 32 bits can wrap.
                Expiry::Tag if window >> 31 != before >> 31 => self.refresh(window),
                Expiry::Tag => {}
                Expiry::Clean { passes: Passes::Generated } => self.finish_cleaning(window - before),
                Expiry::Clean { passes: Passes::None } => self.count_dirty(window - before, window),
            }
        }
        self.started = true;
        self.cleaner.done = 0;
        self.set_window(window);
    }

    /// Makes `window` the current one.
    pub(super) fn set_window(&mut self, window: u64) {
        let (h, length) = (self.params.snapshots, self.params.window.0);
        self.window = window;
        self.start = window.saturating_mul(length);
        self.end = self.start.saturating_add(length);
        self.oldest = self.horizon.max(self.start.saturating_sub(self.params.span().0));
        let current = (window % h as u64) as usize;
        for counter in 0..h {
            let age = if counter <= current { current - counter } else { current + h - counter } as i32;
            self.roles.ages[counter] = age;
            self.roles.past_ages[counter] = age;
        }
        self.cleaner.counter = (current + 1) % h;
        self.roles.past_ages[current] = MAX_SNAPSHOTS as i32;
    }

    /// Sets all tags to `window`, and zeroes counters of windows that are no longer kept then.
    fn refresh(&mut self, window: u64) {
        let (h, before) = (self.params.snapshots as u64, self.window);
        for (tag, cell) in self.tags.iter_mut().zip(self.counters.chunks_exact_mut(h as usize)) {
            let written = before - u64::from((before as u32).wrapping_sub(*tag));
            for (counter, count) in (0..h).zip(cell) {
                // How many windows before `written` this counter's window was.
                let back = (written % h + h - counter) % h;
                if written < back || written - back + h <= window {
                    *count = 0;
                }
            }
            *tag = window as u32;
        }
    }

    /// Cleans with generated packets the entries that the packets of the window were too few to clean, and the
    /// snapshots of windows without packets (section 3.4).
    fn finish_cleaning(&mut self, passed: u64) {
        let (h, columns) = (self.params.snapshots, self.params.columns);
        let left = columns - self.cleaner.done.min(columns);
        let next = self.cleaner.counter;
        // The entries up to the end of the row, and the rest from its start.
        let (from, to) = (self.cleaner.next, (self.cleaner.next + left).min(columns));
        let wrapped = self.cleaner.next + left - to;
        for row in self.counters.chunks_exact_mut(columns * h) {
            for part in [from..to, 0..wrapped] {
                row[part.start * h..part.end * h].chunks_exact_mut(h).for_each(|cell| cell[next] = 0);
            }
        }
        self.cleaner.next = if wrapped > 0 { wrapped } else { to % columns };
        let idle = passed.saturating_sub(1).min(h as u64 - 1) as usize;
        for step in 1..=idle {
            let counter = (next + step) % h;
            self.counters[counter..].iter_mut().step_by(h).for_each(|count| *count = 0);
        }
        self.stats.extra_passes += ((left + idle * columns) * self.params.rows) as u64;
    }

    /// Counts the entries that were not cleaned and are mistaken for counts of the windows that start.
    fn count_dirty(&mut self, passed: u64, window: u64) {
        let h = self.params.snapshots as u64;
        for step in 0..passed.min(h) {
            let counter = ((window - step) % h) as usize;
            for count in self.counters[counter..].iter().step_by(h as usize).filter(|count| **count > 0) {
                self.stats.dirty += 1;
                self.highest = self.highest.max(if step == 0 { u64::from(*count) } else { 0 });
            }
        }
    }
}

impl Cleaner {
    /// The column of the next entry to clean, in each row of the snapshot that is written next.
    #[inline]
    pub(super) fn step(&mut self, columns: usize) -> usize {
        let column = self.next;
        self.next = if column + 1 == columns { 0 } else { column + 1 };
        self.done += 1;
        column
    }
}

impl Reciprocal {
    pub(super) fn new(length: u64) -> Self {
        let log = length.ilog2();
        // The length is at least 2^log, so the quotient is at most 2^63.
        let value = (1u128 << (63 + log)).div_ceil(u128::from(length)) as u64;
        let right = 63 + log - POINT;
        Self { value, before: 64u32.saturating_sub(right), after: right.saturating_sub(64) }
    }

    /// How many windows `time` is, in fixed point, rounded down. The result must be at most 64.
    #[inline]
    pub(super) fn windows(self, time: u64) -> i32 {
        let product = u128::from(time << self.before) * u128::from(self.value);
        ((product >> 64) as u64 >> self.after) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Multiplying by the reciprocal gives the same result as dividing.
        #[test]
        fn multiplying_by_the_reciprocal_divides(exponent in 0..56u32, low in any::<u64>(), parts in 0..64u64, off in 0..3u64) {
            let length = (1u64 << exponent) + (low & ((1u64 << exponent) - 1));
            for time in [length * parts + low % length, (length * parts + off).saturating_sub(1)] {
                let windows = Reciprocal::new(length).windows(time);
                prop_assert_eq!(windows as u64 >> POINT, time / length);
                if exponent < 40 {
                    prop_assert_eq!(u128::from(windows as u64), (u128::from(time) << POINT) / u128::from(length));
                }
            }
        }
    }
}
