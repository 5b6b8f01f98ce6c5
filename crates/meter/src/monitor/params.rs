//! The dimensions of a monitor.

use crate::monitor::STAGED_BYTES;
use crate::monitor::levels::Levels;
use crate::monitor::periods::{KINDS, Periods};
use queuescope_sketch::{WindowsError, WindowsParams};
use queuescope_wire::{ByteCount, Nanos};

/// The dimensions of a [`QueueMonitor`](crate::QueueMonitor).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorParams {
    /// A busy period is remembered if a packet in it waited at least this long. A few transmission times exclude the queueing that
    /// occurs on any link in use.
    pub tau: Nanos,
    /// The time windows that remember departures.
    pub windows: WindowsParams,
    /// Departures that are staged until their busy period turns out to be congested. A longer period counts as congested.
    pub staged: usize,
    /// The number of levels of the queue, at least 2. A flow that raised less than one level may be missed.
    pub levels: usize,
    /// The bytes of a level while the queue is shallow, rounded up to a power of two; doubled when the levels do not suffice.
    pub step: u64,
    /// The number of busy periods that are remembered, at least 1; the one that is shortest for its age is forgotten first.
    pub periods: usize,
    /// Culprits of the worst victim of each period are kept if they have at least `1/parts` of the bytes; 1 to 4 096.
    pub parts: u32,
    /// The number of culprits that are kept for all periods together, at least `3 parts`.
    pub shares: usize,
}

/// Less than a megabyte: enough for ten bursts a second over ten seconds, and for long ones further back.
impl Default for MonitorParams {
    fn default() -> Self {
        Self {
            tau: Nanos(10_000),
            windows: WindowsParams { windows: 144, ..WindowsParams::default() },
            staged: 1024,
            levels: 4096,
            step: 64,
            periods: 192,
            parts: 128,
            shares: 14_336,
        }
    }
}

impl MonitorParams {
    /// The memory of a monitor with these dimensions.
    pub fn memory(&self) -> ByteCount {
        let levels = Levels::memory_for(self.levels);
        let rest = self.staged * STAGED_BYTES + levels + Periods::memory_for(self.periods, self.shares);
        ByteCount(self.windows.memory().0 + rest as u64)
    }

    pub(super) fn check(&self) -> Result<(), MonitorError> {
        const MOST: usize = 1 << 24;
        let counts = [
            ("staged departures", self.staged, 0),
            ("levels", self.levels, 2),
            ("busy periods", self.periods, 1),
            ("parts of culprits", self.parts as usize, 1),
            ("culprits that are kept", self.shares, KINDS * self.parts as usize),
        ];
        for (what, value, least) in counts {
            if !(least..=MOST).contains(&value) {
                return Err(MonitorError::Dimension { what, value, least, most: MOST });
            }
        }
        Ok(())
    }
}

/// Why a monitor cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    /// A number is out of range.
    #[error("a monitor cannot have {value} {what}; choose {least} to {most}")]
    Dimension {
        /// What the number counts.
        what: &'static str,
        /// The requested number.
        value: usize,
        /// The smallest valid number.
        least: usize,
        /// The largest valid number.
        most: usize,
    },
    /// The time windows are invalid.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}
