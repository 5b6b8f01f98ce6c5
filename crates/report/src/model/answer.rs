//! The answer to a query.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was asked, and how much there was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// The capture.
    pub input: String,
    /// Its format.
    pub format: String,
    /// When its first packet was captured, nanoseconds since the Unix epoch.
    pub first_ns: u64,
    /// Packets in it.
    pub records: u64,
    /// Packets that were found.
    pub found: u64,
    /// Packets that were left out or put right, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The damage that ended it early, if any.
    pub damage: Option<String>,
}

/// How packets are found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// What is done, a sentence each.
    pub steps: Vec<String>,
    /// Packets in the capture.
    pub records: u64,
    /// Packets that were found.
    pub found: u64,
}
