//! A router between captures.

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};

/// Packets matched before and behind a router, and the clocks of the captures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tap {
    /// The links into the router, named by their captures.
    pub ingress: Vec<TapLink>,
    /// The capture of the link out of the router.
    pub egress: String,
    /// Packets in that capture.
    pub egress_packets: u64,
    /// The longest time that a packet could spend in the router.
    pub max_delay_ns: u64,
    /// What the router translates: `none`, `addresses` or `payload` (all but the payload).
    pub nat: String,
    /// Bytes from the network header on that were compared.
    pub compared_bytes: u64,
    /// Entries of the table of packets before the router.
    pub table_entries: u64,
    /// Packets on both sides, by outcome.
    pub counts: Vec<TapCount>,
    /// The flows that lost the most bytes in the router, at the first granularity, most first.
    pub lost: Vec<TapLost>,
    /// Whether flows that are not in `lost` also lost packets.
    #[serde(alias = "lost_more")]
    pub lost_omitted: bool,
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
    /// Packets of it that were matched behind the router.
    pub matched: u64,
    /// Packets of it that were lost in the router.
    pub lost: u64,
    /// The capture's clock; none if none of its packets were matched, so that the capture was left out.
    pub clock: Option<TapClock>,
}

/// The clock of the egress capture relative to that of an ingress capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapClock {
    /// How far it is ahead at the start of the egress capture. This includes the shortest time through the router, so
    /// delays count from that time.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub offset_ns: i64,
    /// How much faster it is, parts per million; none if that could not be determined and was assumed to be zero.
    pub drift_ppm: Option<f64>,
    /// The largest error of the drift, parts per million.
    pub drift_error_ppm: Option<f64>,
    /// The largest distance of packets with the shortest time through the router from the line of offset and drift.
    pub within_ns: u64,
    /// Periods with matched packets.
    #[serde(alias = "stretches")]
    pub intervals: u64,
    /// Periods with a packet within `within_ns` of the line.
    #[serde(alias = "supporting")]
    pub intervals_supporting: u64,
    /// An upper bound of the shortest time through the router, if packets of the other direction give one.
    pub transit_at_most_ns: Option<u64>,
}

/// Packets with the same outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapCount {
    /// A short stable name.
    pub name: String,
    /// Number of packets.
    pub packets: u64,
    /// What the outcome means.
    pub meaning: String,
}

/// The losses of a flow in the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TapLost {
    /// The flow.
    pub flow: String,
    /// Its packets that were lost.
    pub packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
}
