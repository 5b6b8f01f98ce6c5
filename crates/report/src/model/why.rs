//! The culprits of any victim or moment of the past, as `queuescope why` tells them.

use super::{Input, NotShown, Skipped};
use serde::{Deserialize, Serialize};

/// Why a packet, a flow, or all packets of a stretch of time waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// What was read.
    pub input: Input,
    /// Drain rate of the queue in bits per second; none where departures came from elsewhere.
    pub rate_bps: Option<u64>,
    /// What was asked, in words.
    pub question: String,
    /// Only flows of which this expression holds are listed (`--show`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<String>,
    /// The packet that waited longest of those that the question is about; none where it is about a moment.
    pub victim: Option<Victim>,
    /// Packets that the question is about: those that waited.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they waited, summed; of a stretch of time, only what lies in it.
    pub waited_ns: u64,
    /// Packets that the question is about and that were dropped.
    pub drops: u64,
    /// The moment that `depth_bytes` and the original culprits are about.
    pub at_ns: u64,
    /// What was in the queue at that moment, bytes.
    pub depth_bytes: u64,
    /// What was in the queue at that moment, packets.
    pub depth_packets: u64,
    /// Since when the queue had not been empty.
    pub since_ns: u64,
    /// The packet that the link was still sending at that moment.
    pub on_link: Option<OnLink>,
    /// Who left the queue while the victims waited; at a moment, who was in the queue.
    pub direct: Ranked,
    /// Who left before that, since the queue was last empty.
    pub indirect: Ranked,
    /// Who raised the queue to the levels that stood at `at_ns`.
    pub original: Ranked,
    /// What was skipped, cut short or put right, and why.
    pub skipped: Vec<Skipped>,
}

/// A packet that suffered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Victim {
    /// Its number in the input, from 1.
    pub packet: u64,
    /// Its flow, at the first granularity.
    pub flow: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its class of service.
    pub class: u8,
    /// When it came.
    pub came_ns: u64,
    /// How long it waited; none where it was dropped.
    pub waited_ns: Option<u64>,
}

/// The packet that the link was sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnLink {
    /// Its flow, at the first granularity.
    pub flow: String,
    /// Its bytes.
    pub bytes: u64,
    /// How long it still took to send.
    pub remaining_ns: u64,
}

/// One kind of culprits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranked {
    /// All bytes.
    pub bytes: u64,
    /// All packets; none where only bytes are estimated.
    pub packets: Option<u64>,
    /// The flows, for each granularity.
    pub by: Vec<Parts>,
    /// What flows have in common, where several together explain what no single one does: disjoint.
    pub groups: Vec<Group>,
    /// The classes of service, where there are several.
    pub classes: Vec<ClassPart>,
}

/// Flows of one granularity, heaviest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Parts {
    /// The granularity.
    pub granularity: String,
    /// Those with at least alpha of the bytes; where none has, the heaviest.
    pub flows: Vec<Part>,
    /// How many there are, altogether.
    pub flows_total: u64,
    /// What is not listed, where an expression chooses among the flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<NotShown>,
}

/// One flow's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// The flow.
    pub flow: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its packets; none where only bytes are estimated.
    pub packets: Option<u64>,
    /// Its share of all bytes.
    pub share: f64,
}

/// Flows that have something in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Group {
    /// What they have in common, in words: `41 sources to 10.0.0.7:50010 (TCP)`.
    pub reading: String,
    /// What so many flows are: `scan` (one source sends a few small packets to each of many addresses or ports), `flood` (many
    /// sources send a little each to one destination), `incast` (many sources send much each to one destination); none where
    /// they are none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explosion: Option<String>,
    /// Whether its flows may be in other groups too. Of those that do not overlap, each flow is in one at most.
    #[serde(default)]
    pub overlaps: bool,
    /// How many flows.
    pub flows: u64,
    /// Their sources.
    pub sources: u64,
    /// Their destinations.
    pub destinations: u64,
    /// Whether flows, sources and destinations are counted; if not, they are at least as many.
    #[serde(default = "yes")]
    pub counted: bool,
    /// Their bytes.
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
    /// Their share of all bytes.
    pub share: f64,
    /// By how much `share` may be wrong; 0 where all flows are known.
    #[serde(default)]
    pub share_error: f64,
    /// Their share of all packets.
    #[serde(default)]
    pub packets_share: f64,
    /// By how much `packets_share` may be wrong; 0 where all flows are known.
    #[serde(default)]
    pub packets_share_error: f64,
    /// Those of them that are heavy by themselves: a tenth of the bytes or packets each.
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
    pub bytes: u64,
    /// Its packets.
    pub packets: u64,
    /// Its share of all bytes.
    pub share: f64,
}
