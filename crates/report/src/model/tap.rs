//! How a router was seen from outside.

use serde::{Deserialize, Serialize};

/// Packets matched before and behind a router, and by which clocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tap {
    /// The links into the router, as the user named their captures.
    pub ingress: Vec<TapLink>,
    /// The capture of the link out of it.
    pub egress: String,
    /// Packets in that.
    pub egress_packets: u64,
    /// The longest that a packet could be in the router.
    pub max_delay_ns: u64,
    /// What the router translates: `none`, `addresses` or `payload` (all but that).
    pub nat: String,
    /// Bytes from the network header on that were compared.
    pub compared_bytes: u64,
    /// Places of the table of packets that had come in.
    pub table_entries: u64,
    /// Packets on both sides, by what became of them.
    pub counts: Vec<TapCount>,
    /// The flows that lost most bytes in the router, at the first granularity, most first.
    pub lost: Vec<TapLost>,
    /// Whether packets lost are by flows that are not in `lost`.
    pub lost_more: bool,
}

/// A link into the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapLink {
    /// Its capture.
    pub name: String,
    /// The capture's format.
    pub format: String,
    /// Packets in it.
    pub packets: u64,
    /// Those that came out.
    pub matched: u64,
    /// Those that were lost in the router.
    pub lost: u64,
    /// The capture's clock; none where none of its packets came out, and it was left out for that.
    pub clock: Option<TapClock>,
}

/// How the clock of the egress capture stands to that of an ingress capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapClock {
    /// How far it is ahead as the egress capture starts. The shortest time through the router is in it, so that delays
    /// count from that.
    pub offset_ns: i64,
    /// By how much it is faster, parts per million; none where that could not be told and was taken for nothing.
    pub drift_ppm: Option<f64>,
    /// By how much the drift may be off, parts per million.
    pub drift_error_ppm: Option<f64>,
    /// How far packets with the shortest time through the router lie from the line of offset and drift, at most.
    pub within_ns: u64,
    /// Stretches of time with packets that were matched.
    pub stretches: u64,
    /// Those with a packet within `within_ns` of the line.
    pub supporting: u64,
    /// The shortest time through the router is at most this, where packets of the other direction say that.
    pub transit_at_most_ns: Option<u64>,
}

/// Packets of one fate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapCount {
    /// A short stable name.
    pub name: String,
    /// How many.
    pub packets: u64,
    /// What that means.
    pub meaning: String,
}

/// What a flow lost in the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapLost {
    /// The flow.
    pub flow: String,
    /// Its packets that were lost.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}
