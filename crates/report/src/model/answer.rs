//! The answer to a query.

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The input of a query, and the number of results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// The capture.
    pub input: String,
    /// Its format.
    pub format: String,
    /// When its first packet was captured, nanoseconds since the Unix epoch.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub first_ns: u64,
    /// Packets in it; none if they could not be counted.
    pub records: Option<u64>,
    /// Packets that matched.
    #[serde(alias = "found")]
    pub matched: u64,
    /// Packets that were skipped or corrected, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The damage that ended it early, if any.
    pub damage: Option<String>,
    /// The columns with estimates, and their standard error relative to the value; absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub standard_errors: BTreeMap<String, f64>,
    /// For a question about a time to several hosts: how far each host's clock is ahead of the coordinator's. Absent for other questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<String, ClockError>,
}

/// How far a clock is ahead of another: between these numbers of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockError {
    /// At least so far; below zero: it may be behind.
    pub least_ns: i64,
    /// At most so far.
    pub most_ns: i64,
}

/// The plan of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Its steps, a sentence each.
    pub steps: Vec<String>,
    /// Packets in the capture; none if they could not be counted.
    pub records: Option<u64>,
    /// Packets that matched.
    #[serde(alias = "found")]
    pub matched: u64,
}

/// A trigger of a folder that fired since the last check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Alert {
    /// Its name.
    pub trigger: String,
    /// When it fired, by the time of the packets, in nanoseconds.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub at_ns: u64,
    /// The value of its aggregate.
    pub value: f64,
    /// Packets of the folder until then, including lost ones.
    pub packets: u64,
}
