//! The windows' turns: roles rotate, old counts go away, windows grow.

use super::visit::{NARROW, Shape};
use super::{ConQuest, MOST, POINT};
use crate::params::LONGEST_WINDOW;
use crate::{Expiry, Passes};
use queuescope_wire::Nanos;

/// The role of cleaning: in which snapshot, which entry is next, and how many were cleaned in this window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cleaner {
    pub(super) counter: usize,
    next: usize,
    done: usize,
}

/// Divides by the window, by a multiplication: 2^k / T, rounded up, with k so that it has 64 bits or, for powers of two
/// of nanoseconds, is 2^63.
///
/// For up to 64 windows the result is exact in its whole part for windows of less than 2^56 ns, and in its last bit for
/// those of less than 2^40 ns (18 minutes): the error, less than 2^-k of the dividend, stays below the distance of
/// 1 / T to the next value above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reciprocal {
    value: u64,
    /// The product is shifted right by 64 - before + after, most of which is taking its upper half.
    before: u32,
    after: u32,
}

impl ConQuest {
    /// Doubles the window. What was counted in two windows is counted in the one that they become; a window of which
    /// the first half is no longer kept holds its second half. A window of two years stays as it is.
    pub fn widen(&mut self) {
        if self.params.window.0 >= LONGEST_WINDOW / 2 {
            return;
        }
        let (h, window) = (self.params.snapshots, self.window);
        self.horizon = self.oldest;
        let (mut highest, mut wide, current) = (0, false, (window / 2 % h as u64) as usize);
        for (place, cell) in self.counters.chunks_exact_mut(h).enumerate() {
            let stale = self.tags.get(place).map_or(0, |tag| u64::from((window as u32).wrapping_sub(*tag)));
            let mut joined = [0u32; MOST];
            for back in stale..(self.params.kept() as u64).min(window.saturating_add(1)) {
                let counter = &mut joined[((window - back) / 2 % h as u64) as usize];
                let count = cell[((window - back) % h as u64) as usize];
                self.stats.saturated += u64::from(counter.checked_add(count).is_none());
                *counter = counter.saturating_add(count);
                wide |= *counter > NARROW;
            }
            cell.copy_from_slice(&joined[..h]);
            highest = highest.max(joined[current]);
        }
        self.highest = u64::from(highest);
        if wide {
            self.shape = Shape::Any;
        }
        self.tags.fill((window / 2) as u32);
        self.cleaner.done = 0;
        self.params.window = Nanos(self.params.window.0 * 2);
        self.reciprocal = Reciprocal::of(self.params.window.0);
        self.place(window / 2);
    }

    /// Rotates the roles until `now` falls in the current window.
    #[cold]
    #[inline(never)]
    pub(super) fn rotate(&mut self, now: Nanos) {
        let (before, window) = (self.window, now.0 / self.params.window.0);
        self.highest = 0;
        if self.started {
            match self.params.expiry {
                // Before a tag of 32 bits can come round again, all are brought up to date.
                Expiry::Tag if window >> 31 != before >> 31 => self.refresh(window),
                Expiry::Tag => {}
                Expiry::Clean { passes: Passes::Generated } => self.finish_cleaning(window - before),
                Expiry::Clean { passes: Passes::None } => self.tell_dirt(window - before, window),
            }
        }
        self.started = true;
        self.cleaner.done = 0;
        self.place(window);
    }

    /// Makes `window` the current one.
    pub(super) fn place(&mut self, window: u64) {
        let (h, length) = (self.params.snapshots, self.params.window.0);
        self.window = window;
        self.start = window.saturating_mul(length);
        self.end = self.start.saturating_add(length);
        self.oldest = self.horizon.max(self.start.saturating_sub(self.params.span().0));
        let current = (window % h as u64) as usize;
        for counter in 0..h {
            let age = if counter <= current { current - counter } else { current + h - counter } as i32;
            self.turn.ages[counter] = age;
            self.turn.past_ages[counter] = age;
        }
        self.cleaner.counter = (current + 1) % h;
        self.turn.past_ages[current] = MOST as i32;
    }

    /// Brings all tags up to `window`, zeroing what is too old for it.
    fn refresh(&mut self, window: u64) {
        let (h, before) = (self.params.snapshots as u64, self.window);
        for (tag, cell) in self.tags.iter_mut().zip(self.counters.chunks_exact_mut(h as usize)) {
            let written = before - u64::from((before as u32).wrapping_sub(*tag));
            for (counter, count) in (0..h).zip(cell) {
                // The last window up to `written` that this counter was for.
                let back = (written % h + h - counter) % h;
                if written < back || written - back + h <= window {
                    *count = 0;
                }
            }
            *tag = window as u32;
        }
    }

    /// The packets that came in this window did not suffice to clean the snapshot that is written next, or none came for
    /// whole windows: generated ones do the rest (section 3.4).
    fn finish_cleaning(&mut self, passed: u64) {
        let (h, columns) = (self.params.snapshots, self.params.columns);
        let left = columns - self.cleaner.done.min(columns);
        let next = self.cleaner.counter;
        // The entries up to the end of the row, and those that are then left from its start.
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

    /// Nobody does the rest: counts the entries that are taken for counts of the windows that begin.
    fn tell_dirt(&mut self, passed: u64, window: u64) {
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
    /// The column of the next entry to be zeroed in each row of the snapshot that is written next.
    #[inline]
    pub(super) fn step(&mut self, columns: usize) -> usize {
        let column = self.next;
        self.next = if column + 1 == columns { 0 } else { column + 1 };
        self.done += 1;
        column
    }
}

impl Reciprocal {
    pub(super) fn of(length: u64) -> Self {
        let log = length.ilog2();
        // At most 2^64 - 1: of all lengths with this logarithm only 2^log, with a quotient of 2^63, is not below it.
        let value = (1u128 << (63 + log)).div_ceil(u128::from(length)) as u64;
        let right = 63 + log - POINT;
        Self { value, before: 64u32.saturating_sub(right), after: right.saturating_sub(64) }
    }

    /// How many windows `time` is, in fixed point, rounded down; it is no more than 64.
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
        /// Multiplying by the reciprocal is dividing.
        #[test]
        fn reciprocals_divide(exponent in 0..56u32, low in any::<u64>(), parts in 0..64u64, off in 0..3u64) {
            let length = (1u64 << exponent) + (low & ((1u64 << exponent) - 1));
            for time in [length * parts + low % length, (length * parts + off).saturating_sub(1)] {
                let windows = Reciprocal::of(length).windows(time);
                prop_assert_eq!(windows as u64 >> POINT, time / length);
                if exponent < 40 {
                    prop_assert_eq!(u128::from(windows as u64), (u128::from(time) << POINT) / u128::from(length));
                }
            }
        }
    }
}
