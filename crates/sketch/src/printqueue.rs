//! The two structures of PrintQueue as its switch has them (Lei et al., *PrintQueue: Performance Diagnosis via Queue Measurement in the Data
//! Plane*, SIGCOMM 2022): time windows of cells that each keep one packet, and a stack of flows by the depth of the queue.
//!
//! They are the reference of the programs in `queuescope-p4`, packet by packet. To measure on a computer, [`Windows`](crate::Windows) is better:
//! it loses no flow by chance.
//!
//! - [`CellWindows`]: which flows left the queue when; older records are sparser.
//! - [`DepthStack`]: which flow last brought the queue to each depth.

mod cells;
mod stack;

pub use cells::{CellWindows, CellWindowsParams};
pub use stack::{DepthStack, DepthStackParams, Raised};

/// A dimension out of its range, or words of a switch that do not fit the dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {}, not {value}", allowed(*.least, *.most))]
pub struct PrintQueueError {
    /// What is wrong: a dimension by its name in [`CellWindowsParams`] or [`DepthStackParams`], with hyphens, or a number of words.
    pub key: &'static str,
    /// The value that was given.
    pub value: u32,
    /// The lowest valid value.
    pub least: u32,
    /// The highest valid value.
    pub most: u32,
}

fn allowed(least: u32, most: u32) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn within(key: &'static str, value: u32, least: u32, most: u32) -> Result<(), PrintQueueError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(PrintQueueError { key, value, least, most }) }
}
