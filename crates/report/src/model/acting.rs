//! Changes to acting on flows while a queue is monitored.

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};

/// Acting on flows stopped, resumed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Acting {
    /// Time since the start, in nanoseconds.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub time_ns: u64,
    /// Whether flows are acted on from then on (or counted, in a dry run).
    #[serde(alias = "acts")]
    pub active: bool,
    /// Whether packets are changed: not a dry run.
    pub for_real: bool,
    /// The policy, in words.
    pub policy: Option<String>,
    /// The cause: `off`, `file_empty`, `file_missing`, `file_refused`, `time_over`, `resumed` or `changed`.
    pub reason: String,
    /// The cause, in a sentence.
    pub meaning: String,
}
