//! What is done to flows while a queue is watched.

use serde::{Deserialize, Serialize};

/// Acting on flows has stopped, went on, or is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Acting {
    /// When, since the beginning, in nanoseconds.
    pub time_ns: u64,
    /// Whether flows are acted on from then on, or counted where that is a dry run.
    pub acts: bool,
    /// Whether packets are changed.
    pub for_real: bool,
    /// What is done, in words.
    pub policy: Option<String>,
    /// Why: `off`, `file_empty`, `file_missing`, `file_refused`, `time_over`, `resumed` or `changed`.
    pub reason: String,
    /// The same for a person.
    pub meaning: String,
}
