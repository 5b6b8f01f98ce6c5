//! The snapshots: what a question is about, and the windows' turns.
//!
//! All counters of one (row, column), one for each window, stand next to each other in a *cell*, so that writing the
//! current window and reading all of them touches one place in memory for each row. Window `w` has counter `w mod h`.
//! How long ago a counter's window was is its *age*; the current one is 0 windows old.

mod ideal;
mod jump;
mod turn;
mod visit;

use crate::{ConQuestParams, Estimator, Expiry, ParamsError, Snapshots, Weights};
pub use ideal::Ideal;
pub use jump::Jump;
use queuescope_wire::Nanos;
use turn::{Cleaner, Reciprocal};
use visit::{NARROW, Shape};

/// Count-Min snapshots of the last few time windows.
#[derive(Debug, Clone)]
pub struct ConQuest {
    params: ConQuestParams,
    /// Row by row, column by column, h to a cell.
    counters: Vec<u32>,
    /// In which window, modulo 2^32, each cell was last written ([`Expiry::Tag`]; otherwise there are none).
    tags: Vec<u32>,
    /// The current window, counted from time zero, and when it starts and ends.
    window: u64,
    start: u64,
    end: u64,
    /// Since when everything that passed is kept.
    oldest: u64,
    /// Before this nothing is kept, whatever the windows say: the window was shorter then.
    horizon: u64,
    started: bool,
    turn: Turn,
    reciprocal: Reciprocal,
    /// No counter of the current window is higher.
    highest: u64,
    /// What visits cells: code for any counts once some counter may be above [`NARROW`].
    shape: Shape,
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
    /// Counts of old windows that were still there as their entry's next window began
    /// ([`Passes::None`](crate::Passes::None)): they are taken for counts of that window.
    pub dirty: u64,
    /// Entries that extra passes cleaned ([`Passes::Generated`](crate::Passes::Generated)).
    pub extra_passes: u64,
    /// Additions to a counter that could not count so high: it stays at `u32::MAX`.
    pub saturated: u64,
}

/// Snapshots at most.
const MOST: usize = 64;

/// A window that counts fully; windows are counted in fixed point, with 16 bits behind the point.
const FULL: i32 = 1 << POINT;
const POINT: u32 = 16;

/// Which snapshot has which role in the current window.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Age of each counter's window.
    ages: [i32; MOST],
    /// The same, where the current window does not count: older than any.
    past_ages: [i32; MOST],
}

/// How far back a question reaches: the window of age `a` counts by what remains of `windows` after `a` whole ones, at
/// most fully.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// In fixed point.
    windows: i32,
    with_current: bool,
    clipped: bool,
}

impl ConQuest {
    /// Empty snapshots.
    ///
    /// # Errors
    /// If there can be no sketch of these dimensions.
    pub fn new(params: ConQuestParams) -> Result<Self, ParamsError> {
        params.check()?;
        let cells = params.rows * params.columns;
        let mut sketch = Self {
            counters: vec![0; cells * params.snapshots],
            tags: vec![0; if params.expiry == Expiry::Tag { cells } else { 0 }],
            window: 0,
            start: 0,
            end: 0,
            oldest: 0,
            horizon: 0,
            started: false,
            turn: Turn { ages: [0; MOST], past_ages: [0; MOST] },
            reciprocal: Reciprocal::of(params.window.0),
            highest: 0,
            shape: Shape::of(&params),
            cleaner: Cleaner::default(),
            stats: ConQuestStats::default(),
            params,
        };
        sketch.place(0);
        // The first time that comes begins a window, whichever it is.
        sketch.end = 0;
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
    #[inline]
    pub fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        self.pass(weight, now);
        self.visit::<true>(key, weight, Reach::NONE);
    }

    /// How much of `key` passed in `[from, to)`, `to` being no earlier than anything recorded. Asking about a time in a
    /// later window begins that window.
    #[inline]
    pub fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        if to.0 >= self.end {
            self.rotate(to);
        }
        let reach = self.reach(from, to, estimator);
        let sum = self.visit::<false>(key, 0, reach);
        self.extrapolated(sum, reach, from, to, estimator)
    }

    /// How much of `key` passed in `[from, now)`; then `weight` of it passes at `now`. What a switch does with each
    /// packet: it hashes once.
    #[inline]
    pub fn observe(&mut self, key: u64, weight: u32, from: Nanos, now: Nanos, estimator: Estimator) -> u64 {
        self.pass(weight, now);
        let reach = self.reach(from, now, estimator);
        let sum = self.visit::<true>(key, weight, reach);
        self.extrapolated(sum, reach, from, now, estimator)
    }

    /// Comes to `now`, when `weight` passes.
    #[inline]
    fn pass(&mut self, weight: u32, now: Nanos) {
        if now.0 >= self.end {
            self.rotate(now);
        } else if now.0 < self.start {
            self.stats.late += 1;
        }
        self.highest += u64::from(weight);
        if self.highest > u64::from(NARROW) {
            self.shape = Shape::Any;
        }
    }

    /// How far back `[from, to)` reaches, `to` lying in the current window.
    #[inline]
    fn reach(&mut self, from: Nanos, to: Nanos, estimator: Estimator) -> Reach {
        let with_current = estimator != Estimator::Inner;
        if from >= to {
            return Reach::NONE;
        }
        if from.0 < self.oldest {
            self.stats.clipped += 1;
            return Reach { windows: self.params.kept() as i32 * FULL, with_current, clipped: true };
        }
        let windows = if from.0 < self.start {
            let before = self.start - from.0;
            match estimator {
                Estimator::Inner => FULL + (self.reciprocal.windows(before) & !(FULL - 1)),
                // The window in which the range starts is touched even if by a single nanosecond.
                Estimator::Outer => FULL + (self.reciprocal.windows(before + self.params.window.0 - 1) & !(FULL - 1)),
                Estimator::Overlap => self.quantised(FULL + self.reciprocal.windows(before)),
            }
        } else {
            match estimator {
                Estimator::Inner => 0,
                Estimator::Outer => FULL,
                // What the current window holds passed in [start, to).
                Estimator::Overlap => self.quantised(part(to.0 - from.0, to.0 - self.start)),
            }
        };
        Reach { windows, with_current, clipped: false }
    }

    #[inline]
    fn quantised(&self, windows: i32) -> i32 {
        match self.params.weights {
            Weights::Fine => windows,
            Weights::Eighths => (windows + FULL / 16) & !(FULL / 8 - 1),
        }
    }

    /// Where only the end of the range is kept, the overlap estimator takes its beginning to be like it.
    #[inline]
    fn extrapolated(&self, sum: u64, reach: Reach, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        if reach.clipped && estimator == Estimator::Overlap { self.extrapolate(sum, from, to) } else { sum }
    }

    #[cold]
    fn extrapolate(&self, sum: u64, from: Nanos, to: Nanos) -> u64 {
        let (range, covered) = (to.0 - from.0, to.0.saturating_sub(self.oldest).max(1));
        match sum.checked_mul(range) {
            Some(product) => product / covered,
            None => u64::try_from(u128::from(sum) * u128::from(range) / u128::from(covered)).unwrap_or(u64::MAX),
        }
    }
}

impl Reach {
    const NONE: Self = Self { windows: 0, with_current: true, clipped: false };

    /// By how much the windows count, from the current one back, in fixed point.
    fn parts(self) -> impl Iterator<Item = u64> {
        let current = if self.with_current { self.windows.clamp(0, FULL) as u64 } else { 0 };
        let past = (1..MOST as i32).map(move |age| (self.windows - (age << POINT)).clamp(0, FULL) as u64);
        std::iter::once(current).chain(past)
    }
}

impl Snapshots for ConQuest {
    #[inline]
    fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        Self::record(self, key, weight, now);
    }

    #[inline]
    fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        Self::estimate(self, key, from, to, estimator)
    }
}

/// A weighted sum, to the nearest.
#[inline]
fn out_of_fixed_point(sum: u64) -> u64 {
    (sum + (1 << (POINT - 1))) >> POINT
}

/// `part / whole` in fixed point; `part` is no more than `whole`.
#[inline]
fn part(part: u64, whole: u64) -> i32 {
    if part >> (64 - POINT) == 0 {
        ((part << POINT) / whole) as i32
    } else {
        ((u128::from(part) << POINT) / u128::from(whole)) as i32
    }
}
