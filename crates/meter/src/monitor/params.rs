//! The dimensions of a monitor.

use crate::monitor::STAGED_BYTES;
use crate::monitor::levels::Levels;
use crate::monitor::periods::{KINDS, Periods};
use queuescope_sketch::{WindowsError, WindowsParams};
use queuescope_wire::{ByteCount, Nanos};

/// The dimensions of a [`QueueMonitor`](crate::QueueMonitor).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorParams {
    /// A busy period is remembered if a packet waited at least so long in it. A few packets' time on the link keeps out
    /// what queues on any link that is used.
    pub tau: Nanos,
    /// The time windows that remember who left when.
    pub windows: WindowsParams,
    /// Departures that are kept aside until their busy period turns out to be congested. A longer one is taken to be.
    pub staged: usize,
    /// Levels of the queue, at least 2: a flow that raised less than one of so many may be missed.
    pub levels: usize,
    /// Bytes of a level while the queue is shallow, rounded up to a power of two; doubled when levels do not suffice.
    pub step: u64,
    /// Busy periods that are remembered, at least 1; what is shortest for its age is forgotten first.
    pub periods: usize,
    /// Of the worst victim of each, culprits are kept that are at least one of so many parts, 1 to 4 096.
    pub parts: u32,
    /// Room for so many of these culprits of all periods, at least `3 parts`.
    pub shares: usize,
}

/// Less than a million bytes, for ten bursts a second over ten seconds and long ones further back.
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
    /// What a monitor of these dimensions occupies.
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

/// Why there can be no such monitor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    /// A number that is out of its range.
    #[error("a monitor with {value} {what} cannot be; choose {least} to {most}")]
    Dimension {
        /// Of what.
        what: &'static str,
        /// So many were asked for.
        value: usize,
        /// The least there can be.
        least: usize,
        /// The most there can be.
        most: usize,
    },
    /// The time windows cannot be.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}
