//! What could not be written beside a measurement.

use queuescope_report::model::Skipped;

/// Something that could not be written.
#[derive(Debug, Clone)]
pub struct Unwritten {
    /// What a view says of it.
    pub line: String,
    /// What is noted once.
    pub news: Skipped,
}
