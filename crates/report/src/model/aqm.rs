//! One capture behind several disciplines, side by side.

use super::{Input, Skipped};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One capture behind several disciplines.
#[derive(Debug, Clone, PartialEq)]
pub struct AqmComparison {
    /// What all have in common.
    pub setup: AqmSetup,
    /// Each discipline, in the order in which they were named.
    pub replays: Vec<AqmReplay>,
}

/// What all disciplines of a comparison have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AqmSetup {
    /// What was read.
    pub input: Input,
    /// The rate of the link in bits per second.
    pub rate_bps: u64,
    /// The queue's limit as the user writes it.
    pub limit: String,
    /// How much faster than captured the packets were sent, as the user writes it.
    pub speedup: String,
    /// What the link sends with every packet beyond what the queue holds of it, as the user writes it.
    pub overhead: String,
    /// Only packets of which this expression holds entered the queue (`--input`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// What a flow is in the lists of those that pay. The disciplines tell five-tuples apart.
    pub granularity: String,
    /// Packets that came to the queue.
    pub packets: u64,
    /// Their bytes, as the queue holds them.
    pub bytes: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// What was skipped, cut short or put right, and why; and that the captured senders do not react.
    pub skipped: Vec<Skipped>,
}

/// What a discipline does with the packets of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AqmReplay {
    /// The discipline or switch program, as the user wrote it.
    pub aqm: String,
    /// Packets that came to the queue.
    pub packets: u64,
    /// Packets that left it.
    pub departed_packets: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked (CE), by reason.
    pub marks: BTreeMap<String, u64>,
    /// Delay at percentiles 50, 90, 99 and 100, as (percentile, nanoseconds); good to a thousandth.
    pub delay_percentiles: Vec<(f64, u64)>,
    /// Share of the time that the link was sending.
    pub utilisation: f64,
    /// Flows of which packets were dropped or marked.
    pub flows_paying: u64,
    /// Those that paid most, by packets that were dropped and marked.
    pub payers: Vec<AqmPayer>,
}

/// A flow of which packets were dropped or marked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AqmPayer {
    /// The flow.
    pub flow: String,
    /// Its packets that came to the queue.
    pub packets: u64,
    /// Those that were dropped.
    pub dropped: u64,
    /// Those that were marked.
    pub marked: u64,
    /// The share of its own packets that was dropped.
    pub dropped_share: f64,
    /// The longest that a packet of it waited.
    pub longest_delay_ns: u64,
}
