//! Time windows with age: which flows passed in any interval of the past. The resolution decreases with age, and the
//! memory is fixed.
//!
//! The problem is that of PrintQueue's time windows (Lei et al., *PrintQueue: Performance Diagnosis via Queue
//! Measurement in the Data Plane*, SIGCOMM 2022): records `(time, flow, bytes)` arrive in order of time, and later
//! queries want the bytes of each flow in `[from, to)`. In PrintQueue a window is a ring of cells that each keep the
//! last packet. An overwritten packet moves to the next, coarser window, and counts are divided by the probability of
//! survival. A cell holds one packet, so a flow with a hundredth of an interval's bytes is found only by chance.
//!
//! Here a window is a short list of flows with their bytes. Two neighbouring windows are merged into a coarser one:
//!
//! - Level 0 has windows of one *cell* of time. A window of level i is merged from two windows of level i - 1. Each level
//!   is a ring with a fixed number of windows. When it is full, its two oldest windows are merged into the newest window
//!   of the next level. Exponential histograms (Datar et al., SODA 2002) age in the same way.
//! - A list has at most k flows. If there are more, threshold sampling selects k of them (Duffield, Lund, Thorup, *Learn
//!   more, sample less*, 2005): flows of at least a threshold keep their bytes; any other flow of `b` bytes is kept with
//!   probability `b / threshold`, and then counts as `threshold` bytes. The threshold is chosen so that k flows are
//!   kept. Estimates have no bias, however often windows were merged. A flow with at least a k-th of a window's bytes
//!   is exact in it.
//!
//! Time without records takes no memory. A caller that records only relevant times, such as those when a queue is
//! congested, gets a history that reaches further back.

mod answer;
mod level;
mod params;
mod tally;
mod thin;

pub use answer::{Passed, Share};
pub use params::{WindowsError, WindowsParams};

use crate::windows::level::{Level, Window};
use crate::windows::tally::Tally;
use crate::windows::thin::Thinner;
use queuescope_wire::{ByteCount, FlowId, Nanos};

/// The history of flows' bytes, as far back as the memory reaches.
///
/// ```
/// use queuescope_sketch::{Windows, WindowsParams};
/// use queuescope_wire::{FlowId, Nanos};
///
/// let mut history = Windows::new(WindowsParams::default())?;
/// for millisecond in 0..10_000_u64 {
///     let flow = if millisecond < 2_000 { FlowId(1) } else { FlowId(2) };
///     history.record(flow, 1_000, Nanos(millisecond * 1_000_000));
/// }
/// // Which flows passed in the third second, eight seconds ago?
/// let passed = history.passed("2s".parse()?, "3s".parse()?);
/// assert_eq!(passed.at_least(0.1).next().ok_or("no flow")?.flow, FlowId(2));
/// assert!((passed.bytes as f64 - 1e6).abs() < 1e5);
/// println!("{} bytes, to {}; {} of memory", passed.bytes, passed.resolution, history.memory());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Windows {
    params: WindowsParams,
    /// The flows of the open window.
    open: Tally,
    /// The open window; meaningless while `open` is empty.
    now: Window,
    /// The end of the open window, exclusive.
    until: u64,
    levels: Vec<Level>,
    /// Scratch space to merge two windows.
    merged: Tally,
    thinner: Thinner,
    /// Records before this time have been discarded.
    since: u64,
    stats: WindowsStats,
}

/// The counters of the windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowsStats {
    /// The number of records.
    pub records: u64,
    /// Records whose time was before that of an earlier record. They count as recorded at the earlier record's time.
    pub late: u64,
    /// Windows of level 0 that were closed.
    pub windows: u64,
    /// Windows of the last level that were discarded.
    pub forgotten: u64,
}

impl Windows {
    /// Creates an empty history.
    ///
    /// # Errors
    /// Fails if the dimensions are out of range.
    pub fn new(params: WindowsParams) -> Result<Self, WindowsError> {
        params.check()?;
        Ok(Self {
            open: Tally::new(params.flows),
            now: Window::default(),
            until: 0,
            levels: (0..params.levels).map(|_| Level::new(params.windows, params.flows)).collect(),
            merged: Tally::new(params.flows),
            thinner: Thinner::new(params.flows, params.seed),
            since: 0,
            stats: WindowsStats::default(),
            params,
        })
    }

    /// Records that bytes of a flow pass at `now`.
    #[inline]
    pub fn record(&mut self, flow: FlowId, bytes: u32, now: Nanos) {
        self.stats.records += 1;
        let mut time = now.0;
        if time >= self.until {
            self.open_window(time);
        } else if time < self.now.end {
            self.stats.late += 1;
            time = self.now.end;
        }
        self.now.end = time;
        self.now.bytes += u64::from(bytes);
        if self.open.add(flow.0, u64::from(bytes)) && self.open.is_full() {
            self.now.variance += self.thinner.thin(&mut self.open);
        }
    }

    /// Estimates what passed in `[from, to)`.
    ///
    /// A window within the interval counts with its estimates. A window that an end of the interval cuts counts in
    /// proportion to the part of its time within the interval. [`Passed`] states the errors.
    pub fn passed(&self, from: Nanos, to: Nanos) -> Passed {
        let mut answer = answer::PassedBuilder::new(from.0.max(self.since), to.0);
        if !self.open.is_empty() {
            answer.add(&self.now, self.open.items().iter().copied());
        }
        // From the newest on, so that an interval of the recent past is cheap.
        for (window, items) in self.levels.iter().flat_map(Level::iter) {
            if window.end < from.0 {
                break;
            }
            answer.add(window, items);
        }
        answer.finish(from.0, self.since)
    }

    /// How far back the history reaches: every record since then is in a window. Flow ids must stay valid for that
    /// long.
    pub fn since(&self) -> Nanos {
        Nanos(self.since)
    }

    /// The dimensions.
    pub fn params(&self) -> &WindowsParams {
        &self.params
    }

    /// The counters so far.
    pub fn stats(&self) -> WindowsStats {
        self.stats
    }

    /// The memory in use. It is constant, and equals [`WindowsParams::memory`].
    pub fn memory(&self) -> ByteCount {
        let levels: usize = self.levels.iter().map(Level::memory).sum();
        ByteCount((levels + self.open.memory() + self.merged.memory()) as u64)
    }

    /// Closes the open window, and opens the one of `time`.
    #[cold]
    fn open_window(&mut self, time: u64) {
        if !self.open.is_empty() {
            self.close();
        }
        // Windows end at multiples of their length, wherever the first record is.
        let cell = self.params.cell.0;
        self.until = (time - time % cell).saturating_add(cell);
        self.now = Window { start: time, end: time, ..Window::default() };
    }

    /// Moves the open window to level 0.
    fn close(&mut self) {
        self.stats.windows += 1;
        if self.open.len() > self.params.flows {
            self.now.variance += self.thinner.thin(&mut self.open);
        }
        self.make_room(0);
        self.levels[0].push(self.now, self.open.items().iter().copied());
        self.open.clear();
    }

    /// Makes room for one more window in a level: merges its two oldest into the next level, or discards the oldest of
    /// the last level.
    fn make_room(&mut self, number: usize) {
        if !self.levels[number].is_full() {
            return;
        }
        if number + 1 == self.levels.len() {
            if let Some(oldest) = self.levels[number].pop() {
                self.since = oldest.end.saturating_add(1);
                self.stats.forgotten += 1;
            }
            return;
        }
        self.make_room(number + 1);
        let (level, next) = pair(&mut self.levels, number);
        self.merged.clear();
        let Some(mut window) = level.pop_into(&mut self.merged) else { return };
        if let Some(second) = level.pop_into(&mut self.merged) {
            window.merge(&second);
        }
        if self.merged.len() > self.params.flows {
            window.variance += self.thinner.thin(&mut self.merged);
        }
        next.push(window, self.merged.items().iter().copied());
    }
}

/// A level and the next one, which must exist.
fn pair(levels: &mut [Level], number: usize) -> (&mut Level, &mut Level) {
    let (low, high) = levels.split_at_mut(number + 1);
    (&mut low[number], &mut high[0])
}
