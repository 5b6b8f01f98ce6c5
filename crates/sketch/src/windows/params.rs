//! The dimensions of the windows.

use crate::windows::level::{ITEM_BYTES, WINDOW_BYTES};
use crate::windows::tally::Tally;
use queuescope_wire::{ByteCount, Nanos};

/// The dimensions of the windows.
///
/// ```
/// use queuescope_sketch::WindowsParams;
/// use queuescope_wire::{ByteCount, Nanos};
///
/// // Windows of 1 ms or longer with 32 flows each, for a minute, in a megabyte.
/// let minute: Nanos = "60s".parse()?;
/// let params = WindowsParams::fit("1ms".parse()?, 32, minute, ByteCount(1_000_000), 1)?;
/// println!("{} levels of {} windows", params.levels, params.windows);
/// assert!(params.reach() >= minute);
/// assert!(params.memory() <= ByteCount(1_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowsParams {
    /// The length of a window of level 0.
    pub cell: Nanos,
    /// The number of windows of each level, 4 to 65 536.
    pub windows: usize,
    /// k: the most flows of a window, 1 to 65 536. A flow with at least a k-th of a window's bytes is exact in it.
    pub flows: usize,
    /// The number of levels, 1 to 48. Windows of level i are 2^i cells long.
    pub levels: usize,
    /// The seed for the choice of small flows that are kept.
    pub seed: u64,
}

/// Less than a million bytes. The history reaches back 21 seconds if all of the time has records, and further if only
/// bursts are recorded.
impl Default for WindowsParams {
    fn default() -> Self {
        Self { cell: Nanos(16_384), windows: 160, flows: 64, levels: 13, seed: 1 }
    }
}

impl WindowsParams {
    /// Chooses the fewest levels that reach back `reach`, and as many windows of each level as fit into `memory`.
    ///
    /// # Errors
    /// Fails if `memory` is too small, or `cell` or `flows` is out of range.
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

    /// How far back the history reaches at least, in time that has records. [`Windows::since`](crate::Windows::since)
    /// is at least this long before the last record, once records have been discarded.
    pub fn reach(&self) -> Nanos {
        // A level keeps all but two of its windows; see `Windows::make_room`.
        let cells = (1u64 << self.levels.min(MOST_LEVELS)) - 1;
        Nanos(self.cell.0.saturating_mul(cells).saturating_mul(self.windows.saturating_sub(2) as u64))
    }

    /// The memory of windows of these dimensions.
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

/// Invalid dimensions of the windows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowsError {
    /// The cell is 0.
    #[error("a time window of level 0 cannot be 0 ns long; give it a length, for example 16 µs")]
    Cell,
    /// A number is out of its range.
    #[error("the number of {what} must be {least} to {most}, not {value}")]
    Dimension {
        /// What the number counts.
        what: &'static str,
        /// The number that was given.
        value: usize,
        /// The lowest valid number.
        least: usize,
        /// The highest valid number.
        most: usize,
    },
    /// The windows do not fit into the memory.
    #[error(
        "{memory} are too little for time windows of {flows} flows that reach back that far; allow more memory, fewer flows, or a longer cell"
    )]
    Memory {
        /// The memory that was given.
        memory: ByteCount,
        /// The most flows of a window.
        flows: usize,
    },
}
