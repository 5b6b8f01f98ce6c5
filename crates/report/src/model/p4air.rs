//! P4air on an interface.

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// P4air on an interface: the groups of flows, their queues, and what was done to packets since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct P4air {
    /// Time since the start, in nanoseconds.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub time_ns: u64,
    /// Whether there are queues, so that packets are changed: not a dry run.
    pub for_real: bool,
    /// The rate of all queues together, in bits per second.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub rate_bps: u64,
    /// The number of queues, of which three are for ants, mice and delayed packets.
    pub queues: u32,
    /// The groups, by name.
    pub groups: BTreeMap<String, P4airGroup>,
    /// How many times a queue moved to another group.
    pub queues_moved: u32,
    /// Packets and ACKs by what was done to them, or would have been in a dry run.
    pub acted: BTreeMap<String, u64>,
    /// The long-lived flows that have not ended, the one with the most packets first; at most 64.
    pub flows: Vec<P4airFlow>,
}

/// A group of P4air.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct P4airGroup {
    /// Its flows now.
    pub flows: u32,
    /// Its queues, if it is a group of long-lived flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Flows that moved to it, if it is a group of long-lived flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<u64>,
}

/// A flow of P4air.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct P4airFlow {
    /// Its name.
    pub flow: String,
    /// Its group.
    pub group: String,
    /// Its queue among those of long-lived flows.
    pub queue: Option<u32>,
    /// Its round-trip time by its handshake, in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Packets of data on the wire.
    pub packets: u64,
    /// Packets that were dropped or delayed, and ACKs whose window was lowered, or would have been.
    pub acted: u64,
}
