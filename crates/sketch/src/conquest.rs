//! The snapshots.
//!
//! All counters of one (row, column), one for each window, stand next to each other in a *cell*, so that writing the
//! current window and reading all of them touches one place in memory for each row. Window `w` has counter `w mod h`.
//! Under [`Expiry::Tag`] a cell starts with the window in which it was last written: a counter whose window came after
//! that holds a count from h windows before, and is read as zero.

use crate::{ConQuestParams, Estimator, Expiry, ParamsError, Passes, Weights};
use queuescope_wire::Nanos;

/// Count-Min snapshots of the last few time windows.
#[derive(Debug, Clone)]
pub struct ConQuest {
    params: ConQuestParams,
    cells: Vec<u32>,
    /// The current window, counted from time zero, and when it starts and ends.
    window: u64,
    start: u64,
    end: u64,
    /// How many windows back each counter's window lies.
    ages: [u32; MOST],
    /// 2^48 / T, rounded up: good for windows up to 2^32 ns.
    reciprocal: u64,
    cleaner: Cleaner,
    stats: ConQuestStats,
}

/// What the snapshots counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConQuestStats {
    /// Packets whose time was before the current window: they are recorded in it.
    pub late: u64,
    /// Questions about a time before what is kept: the answer is clipped, and extrapolated by the overlap estimator.
    pub clipped: u64,
    /// Entries that were not cleaned before they were written again ([`Passes::None`]).
    pub dirty: u64,
    /// Entries that extra passes cleaned ([`Passes::Generated`]).
    pub extra_passes: u64,
    /// Times that a counter could not count any higher.
    pub saturated: u64,
}

/// The role of cleaning: which entry is next, and how many were cleaned in this window.
#[derive(Debug, Clone, Copy, Default)]
struct Cleaner {
    next: usize,
    done: usize,
}

/// Which windows count: those less than `whole` windows back fully, the one at `whole` by `part`, older ones not; of
/// the current one, `current`.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    current: u32,
    whole: u32,
    part: u32,
    /// Multiplies the sum, where part of the range is no longer kept: (range, covered).
    scale: Option<(u64, u64)>,
}

/// Snapshots at most.
const MOST: usize = 64;

/// A window that counts fully.
const FULL: u32 = 1 << 16;

impl ConQuest {
    /// Empty snapshots.
    ///
    /// # Errors
    /// If there can be no sketch of these dimensions.
    pub fn new(params: ConQuestParams) -> Result<Self, ParamsError> {
        params.check()?;
        let mut sketch = Self {
            cells: vec![0; params.rows * params.columns * params.stride()],
            params,
            window: 0,
            start: 0,
            end: 0,
            ages: [0; MOST],
            reciprocal: 0,
            cleaner: Cleaner::default(),
            stats: ConQuestStats::default(),
        };
        sketch.place(0);
        Ok(sketch)
    }

    /// The dimensions, as they are now.
    pub fn params(&self) -> &ConQuestParams {
        &self.params
    }

    /// What was counted so far.
    pub fn stats(&self) -> &ConQuestStats {
        &self.stats
    }

    /// `weight` of `key` passes at `now`.
    pub fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        self.advance(now);
        self.visit(key, Some(weight), None);
    }

    /// How much of `key` passed in `[from, to)`, `to` being no earlier than anything recorded.
    pub fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        self.advance(to);
        let wanted = self.wanted(from, to, estimator);
        self.visit(key, None, Some(wanted))
    }

    /// How much of `key` passed in `[from, now)`; then `weight` of it passes at `now`. What a switch does with each
    /// packet: it hashes once.
    #[inline]
    pub fn observe(&mut self, key: u64, weight: u32, from: Nanos, now: Nanos, estimator: Estimator) -> u64 {
        self.advance(now);
        let wanted = self.wanted(from, now, estimator);
        self.visit(key, Some(weight), Some(wanted))
    }

    /// Doubles the window. What was counted in two windows is counted in the one that they become; windows of which the
    /// first half is no longer kept hold their second half.
    pub fn widen(&mut self) {
        let (stride, tag) = (self.params.stride(), usize::from(self.params.expiry == Expiry::Tag));
        let h = self.params.snapshots as u64;
        for cell in self.cells.chunks_exact_mut(stride) {
            let age = if tag == 1 { (self.window as u32).wrapping_sub(cell[0]) } else { 0 };
            let mut joined = [0u32; MOST];
            let kept = if tag == 1 { h } else { h - 1 };
            for back in u64::from(age)..kept.min(self.window + 1) {
                let window = self.window - back;
                let counter = &mut joined[(window / 2 % h) as usize];
                *counter = counter.saturating_add(cell[tag + (window % h) as usize]);
            }
            if tag == 1 {
                cell[0] = (self.window / 2) as u32;
            }
            cell[tag..].copy_from_slice(&joined[..h as usize]);
        }
        self.params.window = Nanos(self.params.window.0.saturating_mul(2));
        self.cleaner.done = 0;
        self.place(self.window / 2);
    }

    /// Rotates the roles until `now` falls in the current window.
    #[inline]
    fn advance(&mut self, now: Nanos) {
        if now.0 >= self.end {
            self.rotate(now);
        } else if now.0 < self.start {
            self.stats.late += 1;
        }
    }

    #[cold]
    fn rotate(&mut self, now: Nanos) {
        let (before, window) = (self.window, now.0 / self.params.window.0);
        match self.params.expiry {
            // Tags are 32 bits of a window's number. Before they can come round again, all are brought up to date.
            Expiry::Tag if window >> 31 != before >> 31 => self.refresh(window),
            Expiry::Tag => {}
            Expiry::Clean { passes } => self.finish_cleaning(passes, before, window),
        }
        self.place(window);
    }

    /// Makes `window` the current one.
    fn place(&mut self, window: u64) {
        let (h, length) = (self.params.snapshots as u64, self.params.window.0);
        self.window = window;
        self.start = window.saturating_mul(length);
        self.end = self.start.saturating_add(length);
        for counter in 0..h {
            self.ages[counter as usize] = ((window + h - counter) % h) as u32;
        }
        self.reciprocal = (1u64 << 48).div_ceil(length);
    }

    fn refresh(&mut self, window: u64) {
        let (h, before) = (self.params.snapshots, self.window);
        for cell in self.cells.chunks_exact_mut(h + 1) {
            let written = before - u64::from((before as u32).wrapping_sub(cell[0]));
            for counter in 0..h as u64 {
                // The last window up to `written` that this counter was for.
                let back = (written + h as u64 - counter) % h as u64;
                if written < back || written - back + (h as u64) <= window {
                    cell[1 + counter as usize] = 0;
                }
            }
            cell[0] = window as u32;
        }
    }

    fn finish_cleaning(&mut self, passes: Passes, before: u64, window: u64) {
        let (h, columns) = (self.params.snapshots as u64, self.params.columns);
        let left = columns - self.cleaner.done.min(columns);
        let idle = (window - before - 1).min(h - 1);
        let entries = (left as u64 + idle * columns as u64) * self.params.rows as u64;
        match passes {
            Passes::None => self.stats.dirty += entries,
            Passes::Generated => {
                self.stats.extra_passes += entries;
                for step in 1..=(window - before).min(h) {
                    let counter = ((before + step) % h) as usize;
                    self.cells.iter_mut().skip(counter).step_by(h as usize).for_each(|count| *count = 0);
                }
            }
        }
        self.cleaner.done = 0;
    }

    /// Zeroes the next entry in each row of the snapshot that is written next.
    #[inline]
    fn clean_one(&mut self) {
        let (h, columns) = (self.params.snapshots, self.params.columns);
        let counter = ((self.window + 1) % h as u64) as usize;
        for row in 0..self.params.rows {
            self.cells[(row * columns + self.cleaner.next) * h + counter] = 0;
        }
        self.cleaner.next = if self.cleaner.next + 1 == columns { 0 } else { self.cleaner.next + 1 };
        self.cleaner.done += 1;
    }

    /// Which windows count for `[from, to)`, `to` lying in the current one.
    #[inline]
    fn wanted(&mut self, from: Nanos, to: Nanos, estimator: Estimator) -> Wanted {
        let oldest = self.params.kept() as u32 - 1;
        if from.0 >= self.start {
            let (range, passed) = (to.0.saturating_sub(from.0), to.0.saturating_sub(self.start));
            let current = match estimator {
                Estimator::Inner => 0,
                Estimator::Outer => {
                    if range > 0 {
                        FULL
                    } else {
                        0
                    }
                }
                Estimator::Overlap if range >= passed => {
                    if range > 0 {
                        FULL
                    } else {
                        0
                    }
                }
                Estimator::Overlap => self.quantised(((u128::from(range) << 16) / u128::from(passed)) as u32),
            };
            return Wanted { current, whole: 0, part: 0, scale: None };
        }
        let (before, length) = (self.start - from.0, self.params.window.0);
        let (whole, rest) = if length.is_power_of_two() {
            (before >> length.trailing_zeros(), before & (length - 1))
        } else {
            (before / length, before % length)
        };
        // Before the current window lie `whole` whole windows and, one further back, a part of `rest`.
        let touched = whole + u64::from(rest > 0);
        if touched > u64::from(oldest) {
            return self.clipped(from, to, estimator);
        }
        let whole = whole as u32 + 1;
        match estimator {
            Estimator::Inner => Wanted { current: 0, whole, part: 0, scale: None },
            Estimator::Outer => Wanted { current: FULL, whole, part: if rest > 0 { FULL } else { 0 }, scale: None },
            Estimator::Overlap => {
                let part = if length <= 1 << 32 {
                    ((u128::from(rest) * u128::from(self.reciprocal)) >> 32) as u32
                } else {
                    ((u128::from(rest) << 16) / u128::from(length)) as u32
                };
                Wanted { current: FULL, whole, part: self.quantised(part), scale: None }
            }
        }
    }

    /// The range starts before the windows that are kept.
    #[cold]
    fn clipped(&mut self, from: Nanos, to: Nanos, estimator: Estimator) -> Wanted {
        self.stats.clipped += 1;
        let kept = self.params.kept() as u32;
        let covered = to.0 - self.start.saturating_sub(u64::from(kept - 1) * self.params.window.0);
        let current = if estimator == Estimator::Inner { 0 } else { FULL };
        let scale = (estimator == Estimator::Overlap && covered > 0).then_some((to.0 - from.0, covered));
        Wanted { current, whole: kept, part: 0, scale }
    }

    #[inline]
    fn quantised(&self, part: u32) -> u32 {
        match self.params.weights {
            Weights::Fine => part,
            Weights::Eighths => (part + FULL / 16) & !(FULL / 8 - 1),
        }
    }

    /// Reads what is wanted of `key`, then writes.
    #[inline]
    fn visit(&mut self, key: u64, weight: Option<u32>, wanted: Option<Wanted>) -> u64 {
        let clean = matches!(self.params.expiry, Expiry::Clean { .. });
        let sum = match (self.params.snapshots, self.params.rows, clean) {
            (4, 2, false) => self.visit_cells::<4, 2, false>(key, weight, wanted),
            (8, 2, false) => self.visit_cells::<8, 2, false>(key, weight, wanted),
            (4, 2, true) => self.visit_cells::<4, 2, true>(key, weight, wanted),
            (8, 2, true) => self.visit_cells::<8, 2, true>(key, weight, wanted),
            (.., false) => self.visit_cells::<0, 0, false>(key, weight, wanted),
            (.., true) => self.visit_cells::<0, 0, true>(key, weight, wanted),
        };
        if clean && weight.is_some() {
            self.clean_one();
        }
        match wanted.and_then(|wanted| wanted.scale) {
            Some((range, covered)) => (u128::from(sum) * u128::from(range) / u128::from(covered)) as u64,
            None => sum,
        }
    }

    /// `H` and `R` are the dimensions where they are known at compile time, or 0.
    #[inline]
    fn visit_cells<const H: usize, const R: usize, const CLEAN: bool>(
        &mut self,
        key: u64,
        weight: Option<u32>,
        wanted: Option<Wanted>,
    ) -> u64 {
        let h = if H > 0 { H } else { self.params.snapshots };
        let rows = if R > 0 { R } else { self.params.rows };
        let (tag, now) = (usize::from(!CLEAN), self.window as u32);
        let stride = h + tag;
        let ages = &self.ages[..h];
        let mut least = [u32::MAX; MOST];
        let least = &mut least[..h];
        let mut hash = mix(key ^ self.params.seed, 0x9e37_79b9_7f4a_7c15);
        for row in 0..rows {
            if row > 0 && row % 2 == 0 {
                hash = mix(hash, 0xd1b5_4a32_d192_ed03);
            }
            let bits = if row % 2 == 0 { hash as u32 } else { (hash >> 32) as u32 };
            let column = (u64::from(bits) * self.params.columns as u64 >> 32) as usize;
            let at = (row * self.params.columns + column) * stride;
            let cell = &mut self.cells[at..at + stride];
            let stale = if CLEAN { 0 } else { now.wrapping_sub(cell[0]) };
            let counters = &mut cell[tag..];
            for (counter, (least, age)) in counters.iter_mut().zip(least.iter_mut().zip(ages)) {
                let count = if CLEAN || *age >= stale { *counter } else { 0 };
                *least = count.min(*least);
                if let Some(weight) = weight {
                    let added = if *age == 0 { weight } else { 0 };
                    *counter = count.saturating_add(added);
                }
            }
            if !CLEAN && weight.is_some() {
                cell[0] = now;
            }
        }
        let Some(Wanted { current, whole, part, .. }) = wanted else { return 0 };
        let mut sum = 0;
        for (count, age) in least.iter().zip(ages) {
            let weight = match *age {
                0 => current,
                age if age < whole => FULL,
                age if age == whole => part,
                _ => 0,
            };
            sum += u64::from(*count) * u64::from(weight);
        }
        (sum + u64::from(FULL / 2)) >> 16
    }
}

/// A folded product: the high half of the 128-bit product meets the low half.
#[inline]
fn mix(value: u64, secret: u64) -> u64 {
    let product = u128::from(value ^ 0x243f_6a88_85a3_08d3) * u128::from(secret);
    product as u64 ^ (product >> 64) as u64
}
