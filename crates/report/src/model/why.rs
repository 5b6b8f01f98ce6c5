//! The culprits of a victim or a time in the past: the answer of `queuescope why`.

use super::{Input, NotShown, Skipped};
use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};

/// Why a packet, a flow, or all packets of a period waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// The input.
    pub input: Input,
    /// Drain rate of the queue in bits per second; none for a table of departures.
    pub rate_bps: Option<u64>,
    /// The question, in words.
    pub question: String,
    /// Only flows that match this expression are listed (`--show`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "show")]
    pub show_filter: Option<String>,
    /// The packet that waited longest among those of the question; none if the question is about a point in time.
    pub victim: Option<Victim>,
    /// Packets of the question that waited.
    pub packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// The sum of their waiting times; for a period, only the parts within it.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    #[serde(alias = "waited_ns")]
    pub total_delay_ns: u64,
    /// Packets of the question that were dropped.
    pub drops: u64,
    /// The time to which `depth_bytes` and the original culprits refer.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub at_ns: u64,
    /// Content of the queue at that time, bytes.
    pub depth_bytes: u64,
    /// Content of the queue at that time, packets.
    pub depth_packets: u64,
    /// Time since which the queue had not been empty.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub since_ns: u64,
    /// The packet that the link was still sending at that time.
    pub on_link: Option<OnLink>,
    /// Flows that left the queue while the victims waited; for a point in time, flows in the queue.
    pub direct: Ranked,
    /// Flows that left before that, since the queue was last empty.
    pub indirect: Ranked,
    /// Flows that raised the queue to its levels at `at_ns`.
    pub original: Ranked,
    /// What was skipped, cut short or corrected, and why.
    pub skipped: Vec<Skipped>,
}

/// A packet that waited or was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Victim {
    /// Its number in the input, from 1.
    pub packet: u64,
    /// Its flow, at the first granularity.
    pub flow: String,
    /// Its bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Its class of service.
    pub class: u8,
    /// Its arrival.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    #[serde(alias = "came_ns")]
    pub arrived_ns: u64,
    /// Its waiting time; none if it was dropped.
    #[serde(alias = "waited_ns")]
    pub delay_ns: Option<u64>,
}

/// The packet on the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnLink {
    /// Its flow, at the first granularity.
    pub flow: String,
    /// Its bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Remaining time to send it.
    pub remaining_ns: u64,
}

/// Culprits of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranked {
    /// The sum of bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// The sum of packets; none if only bytes are estimated.
    pub packets: Option<u64>,
    /// The flows, for each granularity.
    pub by: Vec<Parts>,
    /// What flows have in common, if several together explain what no single flow does. The groups are disjoint.
    pub groups: Vec<Group>,
    /// The classes of service, if there are several.
    pub classes: Vec<ClassPart>,
}

/// Flows of one granularity, heaviest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Parts {
    /// The granularity.
    pub granularity: String,
    /// Flows with at least alpha of the bytes; the heaviest if there are none.
    pub flows: Vec<Part>,
    /// Number of flows.
    pub flows_total: u64,
    /// Flows that are not listed, if an expression selects flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<NotShown>,
}

/// One flow's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// The flow.
    pub flow: String,
    /// Its bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Its packets; none if only bytes are estimated.
    pub packets: Option<u64>,
    /// Its share of all bytes.
    pub share: f64,
}

/// Flows with something in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Group {
    /// What they have in common, in words: `41 sources to 10.0.0.7:50010 (TCP)`.
    #[serde(alias = "reading")]
    pub description: String,
    /// The kind of overload: `scan` (one source sends a few small packets to each of many addresses or ports), `flood`
    /// (many sources send a little each to one destination), `incast` (many sources send much each to one destination);
    /// none for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explosion: Option<String>,
    /// Whether its flows may be in other groups too. Among groups that do not overlap, each flow is in at most one.
    #[serde(default)]
    pub overlaps: bool,
    /// Whether it is only the rest of the flows that fit `description`: others are in groups before it, or are listed as heavy flows. Then
    /// `description` says `other`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remainder: bool,
    /// Number of flows.
    pub flows: u64,
    /// Number of sources.
    pub sources: u64,
    /// Number of destinations.
    pub destinations: u64,
    /// Whether the numbers of flows, sources and destinations are exact; otherwise they are lower bounds.
    #[serde(default = "yes")]
    pub counted: bool,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
    /// Their share of all bytes.
    pub share: f64,
    /// The largest error of `share`; 0 if all flows are known.
    #[serde(default)]
    pub share_error: f64,
    /// Their share of all packets.
    #[serde(default)]
    pub packets_share: f64,
    /// The largest error of `packets_share`; 0 if all flows are known.
    #[serde(default)]
    pub packets_share_error: f64,
    /// Flows that are heavy on their own: a tenth of the bytes or packets each.
    pub heavy: Vec<Part>,
}

fn yes() -> bool {
    true
}

/// One class's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClassPart {
    /// The class of service.
    pub class: u8,
    /// Its bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Its packets.
    pub packets: u64,
    /// Its share of all bytes.
    pub share: f64,
}
