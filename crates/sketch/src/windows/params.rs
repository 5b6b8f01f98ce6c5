//! The dimensions of the windows.

use crate::windows::level::{ITEM_BYTES, WINDOW_BYTES};
use crate::windows::tally::Tally;
use queuescope_wire::{ByteCount, Nanos};

/// The dimensions of the windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowsParams {
    /// Length of a window of level 0.
    pub cell: Nanos,
    /// Windows of each level, at least 4.
    pub windows: usize,
    /// k: flows of each window, 1 to 65 536. A flow that is a k-th of a window is exact in it.
    pub flows: usize,
    /// Levels, 1 to 48; windows of level i are 2^i cells long.
    pub levels: usize,
    /// Chooses which small flows stay.
    pub seed: u64,
}

/// Less than a million bytes, that reach 21 seconds back if all of them are recorded, and further if only bursts are.
impl Default for WindowsParams {
    fn default() -> Self {
        Self { cell: Nanos(16_384), windows: 160, flows: 64, levels: 13, seed: 1 }
    }
}

impl WindowsParams {
    /// As many windows of each level as a memory holds, with enough levels to reach back so far.
    ///
    /// # Errors
    /// If the memory is too little.
    pub fn fit(cell: Nanos, flows: usize, reach: Nanos, memory: ByteCount, seed: u64) -> Result<Self, WindowsError> {
        let fixed = Self { cell, windows: 0, flows, levels: 1, seed };
        if cell == Nanos::ZERO || flows == 0 || flows > MOST_FLOWS {
            fixed.check()?;
        }
        let room = memory.0.saturating_sub(fixed.memory().0) as usize;
        for levels in 1..=MOST_LEVELS {
            let windows = room / (levels * window_bytes(flows));
            let params = Self { windows: windows.min(MOST_WINDOWS), levels, ..fixed.clone() };
            if params.reach() >= reach {
                params.check()?;
                return Ok(params);
            }
        }
        Err(WindowsError::Memory { memory, flows })
    }

    /// How far back memory reaches at least, in cells with records: [`Windows::since`](crate::Windows::since) is no less
    /// before the last record.
    pub fn reach(&self) -> Nanos {
        // A level keeps all but two of its windows; see `Windows::make_room`.
        let cells = (1u64 << self.levels.min(MOST_LEVELS)) - 1;
        Nanos(self.cell.0.saturating_mul(cells).saturating_mul(self.windows.saturating_sub(2) as u64))
    }

    /// What windows of these dimensions occupy.
    pub fn memory(&self) -> ByteCount {
        let levels = self.levels * self.windows * window_bytes(self.flows);
        ByteCount((levels + 2 * Tally::memory_for(self.flows)) as u64)
    }

    pub(super) fn check(&self) -> Result<(), WindowsError> {
        let within = |what, value: usize, least, most| match value {
            value if (least..=most).contains(&value) => Ok(()),
            _ => Err(WindowsError::Dimension { what, value, least, most }),
        };
        if self.cell == Nanos::ZERO {
            return Err(WindowsError::Cell);
        }
        within("windows of a level", self.windows, 4, MOST_WINDOWS)?;
        within("flows of a window", self.flows, 1, MOST_FLOWS)?;
        within("levels", self.levels, 1, MOST_LEVELS)
    }
}

const MOST_FLOWS: usize = 1 << 16;
const MOST_WINDOWS: usize = 1 << 16;
const MOST_LEVELS: usize = 48;

const fn window_bytes(flows: usize) -> usize {
    WINDOW_BYTES + flows * ITEM_BYTES
}

/// Why there can be no such windows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowsError {
    /// A window would have no length.
    #[error("a time window of level 0 cannot be 0 ns long; give it a length, for example 16 µs")]
    Cell,
    /// A number that is out of its range.
    #[error("{value} {what} cannot be; choose {least} to {most}")]
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
    /// The memory does not hold the windows.
    #[error(
        "{memory} do not hold time windows of {flows} flows that reach back so far; allow more memory, fewer flows, or a longer cell"
    )]
    Memory {
        /// What was allowed.
        memory: ByteCount,
        /// Flows of a window.
        flows: usize,
    },
}
