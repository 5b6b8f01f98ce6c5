//! Output beside a measurement that could not be written.

use queuescope_report::model::Skipped;

/// An output that could not be written.
#[derive(Debug, Clone)]
pub struct Unwritten {
    /// The line that a view shows.
    pub line: String,
    /// The note, which is reported once.
    pub news: Skipped,
}
