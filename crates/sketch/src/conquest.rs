//! The snapshots: which windows an interval covers, and the counters of each window.
//!
//! All counters of one (row, column), one for each window, stand next to each other in a *cell*, so that writing the
//! current window and reading all of them touches one place in memory for each row. Window `w` has counter `w mod h`.
//! The *age* of a counter is how many windows ago its window was; the current window has age 0.

mod ideal;
mod jump;
mod rotation;
mod visit;

use crate::hash::Columns;
use crate::{ConQuestParams, Estimator, Expiry, ParamsError, Snapshots, Weights};
pub use ideal::Ideal;
pub use jump::Jump;
use queuescope_wire::Nanos;
use rotation::{Cleaner, Reciprocal};
use visit::{NARROW, Shape};

/// Count-Min snapshots of the last few time windows.
///
/// ```
/// use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// // For packets that wait up to 4 ms, in 64 KiB: 4 snapshots, 2 rows.
/// let params = ConQuestParams::fit("4ms".parse()?, ByteCount(65_536), 4, None, Expiry::Tag)?;
/// let mut sketch = ConQuest::new(params)?;
/// let (bulk, call) = (1, 2);
/// for n in 0..100 {
///     sketch.record(bulk, 1500, Nanos(n * 100_000));
///     sketch.record(call, 200, Nanos(n * 100_000 + 50_000));
/// }
/// // A packet leaves after 10 ms, having waited for 4 ms: how much of the queue is of the bulk transfer?
/// let (enqueued, now) = ("6ms".parse()?, "10ms".parse()?);
/// let bytes = sketch.estimate(bulk, enqueued, now, Estimator::Overlap);
/// println!("the bulk transfer sent {bytes} bytes meanwhile");
/// assert!((bytes as f64 - 40.0 * 1500.0).abs() < 0.1 * 60_000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ConQuest {
    params: ConQuestParams,
    /// Row by row, column by column; each cell has h counters.
    counters: Vec<u32>,
    /// The window in which each cell was last written, modulo 2^32. Empty unless the expiry is [`Expiry::Tag`].
    tags: Vec<u32>,
    /// The number of the current window, counted from time zero, and its start and end in nanoseconds.
    window: u64,
    start: u64,
    end: u64,
    /// The start of the oldest window that is kept.
    oldest: u64,
    /// Nothing before this time is kept, because the windows were shorter then ([`ConQuest::widen`]).
    horizon: u64,
    started: bool,
    roles: WindowRoles,
    reciprocal: Reciprocal,
    /// An upper bound for the counters of the current window.
    highest: u64,
    /// The code that reads and writes cells: [`Shape::Any`] once a counter may be above [`NARROW`].
    shape: Shape,
    cleaner: Cleaner,
    stats: ConQuestStats,
}

/// The counters of the snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConQuestStats {
    /// Packets whose time was before the current window. They were recorded in the current window.
    pub late: u64,
    /// Estimates for an interval that starts before the oldest window. The estimate covers the rest of the interval;
    /// the overlap estimator extrapolates it.
    pub clipped: u64,
    /// Entries that still had a count of an old window when their next window started
    /// ([`Passes::None`](crate::Passes::None)). That count is mistaken for a count of the new window.
    pub dirty: u64,
    /// Entries that extra passes cleaned ([`Passes::Generated`](crate::Passes::Generated)).
    pub extra_passes: u64,
    /// Additions that overflowed a counter. The counter stays at `u32::MAX`.
    pub saturated: u64,
}

/// The highest number of snapshots.
const MAX_SNAPSHOTS: usize = 64;

/// The weight of a whole window, in fixed point with 16 fraction bits.
const FULL: i32 = 1 << POINT;
const POINT: u32 = 16;

/// The age of each snapshot's window.
#[derive(Debug, Clone, Copy)]
struct WindowRoles {
    /// The age of each counter's window.
    ages: [i32; MAX_SNAPSHOTS],
    /// The same, with an age for the current window that is above all others, so that it does not count.
    past_ages: [i32; MAX_SNAPSHOTS],
}

/// How far back an interval reaches. The weight of the window of age `a` is `windows - a`, limited to 0 ..= 1.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// The number of windows, in fixed point.
    windows: i32,
    with_current: bool,
    clipped: bool,
}

impl ConQuest {
    /// Creates empty snapshots.
    ///
    /// # Errors
    /// Fails if the dimensions are out of range.
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
            roles: WindowRoles { ages: [0; MAX_SNAPSHOTS], past_ages: [0; MAX_SNAPSHOTS] },
            reciprocal: Reciprocal::new(params.window.0),
            highest: 0,
            shape: Shape::from_params(&params),
            cleaner: Cleaner::default(),
            stats: ConQuestStats::default(),
            params,
        };
        sketch.set_window(0);
        // So that the first packet starts a window at any time.
        sketch.end = 0;
        Ok(sketch)
    }

    /// The current dimensions. [`Self::widen`] changes the window.
    pub fn params(&self) -> &ConQuestParams {
        &self.params
    }

    /// The counters so far.
    pub fn stats(&self) -> &ConQuestStats {
        &self.stats
    }

    /// The columns of a key, row by row.
    pub fn columns(&self, key: u64) -> impl Iterator<Item = usize> {
        Columns::new(key, self.params.seed, self.params.columns).take(self.params.rows)
    }

    /// What is stored for a snapshot in one column of a row, whichever window it is of; `None` if a number is out of range. With
    /// [`Expiry::Tag`] it may be of a window that is no longer kept.
    pub fn counter(&self, snapshot: usize, row: usize, column: usize) -> Option<u32> {
        let ConQuestParams { snapshots, rows, columns, .. } = self.params;
        let is_there = snapshot < snapshots && row < rows && column < columns;
        is_there.then(|| self.counters[(row * columns + column) * snapshots + snapshot])
    }

    /// Records that `weight` of `key` passes at `now`.
    #[inline]
    pub fn record(&mut self, key: u64, weight: u32, now: Nanos) {
        self.advance(weight, now);
        self.visit::<true>(key, weight, Reach::NONE);
    }

    /// Estimates how much of `key` passed in `[from, to)`. `to` must not be before any recorded packet. If it is in a
    /// later window, that window starts.
    #[inline]
    pub fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64 {
        if to.0 >= self.end {
            self.rotate(to);
        }
        let reach = self.reach(from, to, estimator);
        let sum = self.visit::<false>(key, 0, reach);
        self.extrapolated(sum, reach, from, to, estimator)
    }

    /// Estimates how much of `key` passed in `[from, now)`, then records that `weight` of it passes at `now`. A switch
    /// does this with each packet, and hashes once.
    #[inline]
    pub fn observe(&mut self, key: u64, weight: u32, from: Nanos, now: Nanos, estimator: Estimator) -> u64 {
        self.advance(weight, now);
        let reach = self.reach(from, now, estimator);
        let sum = self.visit::<true>(key, weight, reach);
        self.extrapolated(sum, reach, from, now, estimator)
    }

    /// Advances to `now`, and prepares to record `weight`.
    #[inline]
    fn advance(&mut self, weight: u32, now: Nanos) {
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

    /// How far back `[from, to)` reaches. `to` is in the current window.
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
                // The window in which the interval starts counts even if the interval has only a nanosecond of it.
                Estimator::Outer => FULL + (self.reciprocal.windows(before + self.params.window.0 - 1) & !(FULL - 1)),
                Estimator::Overlap => self.quantised(FULL + self.reciprocal.windows(before)),
            }
        } else {
            match estimator {
                Estimator::Inner => 0,
                Estimator::Outer => FULL,
                // The current window covers [start, to) so far.
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

    /// If only the end of the interval is kept, the overlap estimator assumes the same rate for the rest.
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

    /// The weights of the windows in fixed point, from the current one back.
    fn weights(self) -> impl Iterator<Item = u64> {
        let current = if self.with_current { self.windows.clamp(0, FULL) as u64 } else { 0 };
        let past = (1..MAX_SNAPSHOTS as i32).map(move |age| (self.windows - (age << POINT)).clamp(0, FULL) as u64);
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

/// Rounds a sum in fixed point to the nearest integer.
#[inline]
fn out_of_fixed_point(sum: u64) -> u64 {
    (sum + (1 << (POINT - 1))) >> POINT
}

/// `part / whole` in fixed point. `part` is at most `whole`.
#[inline]
fn part(part: u64, whole: u64) -> i32 {
    if part >> (64 - POINT) == 0 {
        ((part << POINT) / whole) as i32
    } else {
        ((u128::from(part) << POINT) / u128::from(whole)) as i32
    }
}
