//! Time windows with age: who passed in any interval of the past, the more coarsely the longer ago, in memory that is
//! fixed from the start.
//!
//! The question is that of PrintQueue's time windows (Lei et al., *PrintQueue: Performance Diagnosis via Queue
//! Measurement in the Data Plane*, SIGCOMM 2022): records `(time, flow, bytes)` come in order of time, and
//! later somebody asks which flows were how much of `[from, to)`. There, a window is a ring of cells that each keep the
//! last packet; what is overwritten passes on to the next, coarser window, and counts are divided by the chance to have
//! survived. A cell knows one packet, so a flow of a hundredth of an interval is found by luck.
//!
//! Here a window is a short list of flows with their bytes, and is made coarser by joining it with its neighbour:
//!
//! - Level 0 has windows of one *cell* of time; level i has windows that two of level i - 1 were joined to. Each level
//!   is a ring of so many windows. When it is full, its two oldest are joined and become the newest of the next level.
//!   An exponential histogram (Datar et al., SODA 2002) ages in this way.
//! - A list has at most k flows. Where there are more, they are thinned by threshold sampling (Duffield, Lund, Thorup,
//!   *Learn more, sample less*, 2005): flows of at least a threshold stay with their bytes; of the others, a flow of `b`
//!   bytes stays with probability `b / threshold`, and then counts for the threshold. The threshold is the one that
//!   leaves k. Estimates have no bias, however often windows were joined, and a flow that is a k-th of a window is
//!   exact in it.
//!
//! Time without records costs nothing: who records only what matters (a queue's congestion) sees further back.

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

/// Who passed when, for as long as memory reaches.
#[derive(Debug, Clone)]
pub struct Windows {
    params: WindowsParams,
    /// What passes now.
    open: Tally,
    /// The open window; meaningless while `open` is empty.
    now: Window,
    /// When the open window ends: the first time that is not its own.
    until: u64,
    levels: Vec<Level>,
    /// Where two windows are joined.
    joint: Tally,
    thinner: Thinner,
    /// What passed before this is forgotten.
    since: u64,
    stats: WindowsStats,
}

/// What the windows counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowsStats {
    /// Records.
    pub records: u64,
    /// Records whose time was before that of an earlier one: they are taken to be as late as that.
    pub late: u64,
    /// Windows that were filled.
    pub windows: u64,
    /// Windows of the last level that were forgotten.
    pub forgotten: u64,
}

impl Windows {
    /// Nothing has passed yet.
    ///
    /// # Errors
    /// If there can be no windows of these dimensions.
    pub fn new(params: WindowsParams) -> Result<Self, WindowsError> {
        params.check()?;
        Ok(Self {
            open: Tally::new(params.flows),
            now: Window::default(),
            until: 0,
            levels: (0..params.levels).map(|_| Level::new(params.windows, params.flows)).collect(),
            joint: Tally::new(params.flows),
            thinner: Thinner::new(params.flows, params.seed),
            since: 0,
            stats: WindowsStats::default(),
            params,
        })
    }

    /// So many bytes of a flow pass now.
    #[inline]
    pub fn record(&mut self, flow: FlowId, bytes: u32, now: Nanos) {
        self.stats.records += 1;
        let mut time = now.0;
        if time >= self.until {
            self.turn(time);
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

    /// What passed in `[from, to)`.
    ///
    /// A window that lies in the interval counts with its estimates; one that is cut by an end counts by the part of its
    /// time that is inside. See [`Passed`] for how far to trust the answer.
    pub fn passed(&self, from: Nanos, to: Nanos) -> Passed {
        let mut answer = answer::Gathering::new(from.0.max(self.since), to.0);
        if !self.open.is_empty() {
            answer.add(&self.now, self.open.items().iter().copied());
        }
        // From the newest on: a question about what just passed is cheap.
        for (window, items) in self.levels.iter().flat_map(Level::iter) {
            if window.end < from.0 {
                break;
            }
            answer.add(window, items);
        }
        answer.finish(from.0, self.since)
    }

    /// How far back memory reaches: all that passed since is in some window. Ids of flows must stay valid as long.
    pub fn since(&self) -> Nanos {
        Nanos(self.since)
    }

    /// The dimensions.
    pub fn params(&self) -> &WindowsParams {
        &self.params
    }

    /// What was counted.
    pub fn stats(&self) -> WindowsStats {
        self.stats
    }

    /// What it occupies: the same from the first record on, and what [`WindowsParams::memory`] says.
    pub fn memory(&self) -> ByteCount {
        let levels: usize = self.levels.iter().map(Level::memory).sum();
        ByteCount((levels + self.open.memory() + self.joint.memory()) as u64)
    }

    /// A record comes after the open window.
    #[cold]
    fn turn(&mut self, time: u64) {
        if !self.open.is_empty() {
            self.close();
        }
        // Windows end at multiples of their length, wherever the first record is.
        let cell = self.params.cell.0;
        self.until = (time - time % cell).saturating_add(cell);
        self.now = Window { start: time, end: time, ..Window::default() };
    }

    /// The open window joins the past.
    fn close(&mut self) {
        self.stats.windows += 1;
        if self.open.len() > self.params.flows {
            self.now.variance += self.thinner.thin(&mut self.open);
        }
        self.make_room(0);
        self.levels[0].push(self.now, self.open.items().iter().copied());
        self.open.clear();
    }

    /// Sees to it that a level can take one more window.
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
        self.joint.clear();
        let Some(mut joined) = level.pop_into(&mut self.joint) else { return };
        if let Some(second) = level.pop_into(&mut self.joint) {
            joined.join(&second);
        }
        if self.joint.len() > self.params.flows {
            joined.variance += self.thinner.thin(&mut self.joint);
        }
        next.push(joined, self.joint.items().iter().copied());
    }
}

/// A level and the next one, which exists.
fn pair(levels: &mut [Level], number: usize) -> (&mut Level, &mut Level) {
    let (low, high) = levels.split_at_mut(number + 1);
    (&mut low[number], &mut high[0])
}
