//! One capture behind several disciplines, side by side.

use super::{Input, Skipped};
use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One capture behind several disciplines.
#[derive(Debug, Clone, PartialEq)]
pub struct AqmComparison {
    /// What all disciplines have in common.
    pub setup: AqmSetup,
    /// The results of each discipline, in the order of the command line.
    pub replays: Vec<AqmReplay>,
}

/// What all disciplines of a comparison have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AqmSetup {
    /// The input.
    pub input: Input,
    /// The rate of the link in bits per second.
    pub rate_bps: u64,
    /// The queue's limit, in the user's notation.
    pub limit: String,
    /// The factor by which packets were replayed faster than captured, in the user's notation.
    pub speedup: String,
    /// The link's overhead: what it sends with each packet in addition to the bytes in the queue, in the user's
    /// notation.
    pub overhead: String,
    /// Only packets that match this expression entered the queue (`--input`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "only")]
    pub input_filter: Option<String>,
    /// Granularity of the flows in the lists of flows with drops or marks. The disciplines themselves distinguish
    /// five-tuples.
    pub granularity: String,
    /// Packets that arrived at the queue.
    pub packets: u64,
    /// Their bytes in the queue.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// From the first packet to the last.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub duration_ns: u64,
    /// What was skipped, cut short or corrected, and why; and that the captured senders do not react.
    pub skipped: Vec<Skipped>,
}

/// The result of one discipline for the packets of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AqmReplay {
    /// The discipline or switch program, in the user's notation.
    pub aqm: String,
    /// Packets that arrived at the queue.
    pub packets: u64,
    /// Packets that left it.
    pub departed_packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked (CE), by reason.
    pub marks: BTreeMap<String, u64>,
    /// Delay at percentiles 50, 90, 99 and 100, as (percentile, nanoseconds); accurate to a thousandth.
    pub delay_percentiles: Vec<(f64, u64)>,
    /// Share of the time in which the link was sending.
    pub utilisation: f64,
    /// Number of flows of which packets were dropped or marked.
    #[serde(alias = "flows_paying")]
    pub flows_affected: u64,
    /// The flows with the most dropped and marked packets.
    #[serde(alias = "payers")]
    pub affected: Vec<AffectedFlow>,
}

/// A flow of which packets were dropped or marked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AffectedFlow {
    /// The flow.
    pub flow: String,
    /// Its packets that arrived at the queue.
    pub packets: u64,
    /// Its packets that were dropped.
    pub dropped: u64,
    /// Its packets that were marked.
    pub marked: u64,
    /// Dropped packets as a share of its own packets.
    pub dropped_share: f64,
    /// The longest delay of one of its packets.
    pub longest_delay_ns: u64,
}
