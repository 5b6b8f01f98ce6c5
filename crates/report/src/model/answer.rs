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
    /// Packets in it; none if that could not be read.
    pub records: Option<u64>,
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
    /// Packets in the capture; none if that could not be read.
    pub records: Option<u64>,
    /// Packets that were found.
    pub found: u64,
}

/// A trigger of a folder fired that had not when it was looked at before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Alert {
    /// What it is called.
    pub trigger: String,
    /// When, by the time of the packets, in nanoseconds.
    pub at_ns: u64,
    /// What its aggregate was.
    pub value: f64,
    /// How many packets the folder had, lost ones among them.
    pub packets: u64,
}
