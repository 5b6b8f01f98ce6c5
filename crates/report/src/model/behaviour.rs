//! How a flow behaves, and the evidence.

use serde::{Deserialize, Serialize};

/// How a flow behaves in this queue: which kind of congestion control it has. Round trips are those of its handshake, without queueing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlowBehaviour {
    /// `loss-driven`, `delay-based`, `model-based`, `scalable`, `unresponsive`, or `too little evidence`.
    pub name: String,
    /// The round-trip time of the handshake without this queue; none if the handshake was not seen.
    pub rtt_ns: Option<u64>,
    /// Round trips that the name rests on, without slow start; at most the last 896.
    pub round_trips: u32,
    /// The flow's share of the bytes that left the queue meanwhile.
    pub share: f64,
    /// Its median window: packets of one round trip and its own backlog.
    pub window_packets: f64,
    /// How much the packets that it offers in a round trip vary: standard deviation over mean.
    pub rate_variation: f64,
    /// Packets that the queue dropped in these round trips.
    pub drops: u64,
    /// Round trips with drops.
    pub drop_round_trips: u32,
    /// How it answered drops.
    pub after_drops: Reaction,
    /// Its own median backlog in round trips with drops, in packets.
    pub drop_backlog_packets: f64,
    /// The median of the longest delays of round trips with drops.
    pub drop_delay_ns: u64,
    /// Pairs of drops at least 18 round trips apart, and the median share of the window's growth between them that is in the last 6.
    pub surges: u32,
    /// That share.
    pub surge: f64,
    /// The share of its packets that were ECN-capable.
    pub ecn_share: f64,
    /// The share of its packets with ECT(1), as L4S has.
    pub l4s_share: f64,
    /// The share of round trips with marks (CE).
    pub marked_share: f64,
    /// How it answered marks.
    pub after_marks: Reaction,
    /// Reductions of its window by a tenth or more without a drop or a mark.
    pub uncaused_reductions: u32,
    /// The longest time without drops and marks, in round trips.
    pub quiet_round_trips: u32,
    /// By how much its window grew and shrank in this time, each summed up, over its mean.
    pub quiet_rise: f64,
    /// By how much it shrank.
    pub quiet_fall: f64,
    /// Its own median backlog, in packets. This and the next three fields are of the last 100 round trips of this time.
    pub backlog_packets: f64,
    /// The backlog of its own that nine tenths of the round trips stay below, in packets.
    pub high_backlog_packets: f64,
    /// The delay that nine tenths of the round trips stay below.
    pub high_delay_ns: u64,
    /// The share of round trips in which all its packets waited.
    pub busy_share: f64,
    /// Pulses of its rate: a rise from a steady rate and a fall below it, without drops and marks.
    pub pulses: u32,
    /// Their median distance in round trips; 0 if there are fewer than two.
    pub pulse_period: f64,
    /// The share of distances within a quarter of that.
    pub pulse_regularity: f64,
    /// The largest autocorrelation of its rate at a distance of 5 to 24 round trips, and that distance.
    pub periodicity: f64,
    /// The distance of that autocorrelation, in round trips.
    pub period: f64,
    /// Times when its window fell for some 200 ms and returned at once, as BBR's does to measure the round-trip time.
    pub floors: u32,
    /// Their median distance; 0 if there are fewer than two.
    pub floor_period_ns: u64,
    /// The share of distances that are timers of BBR: 5 or 10 s, and the time of the probe.
    pub floor_regularity: f64,
}

/// What a flow's window did after drops, or after marks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reaction {
    /// Groups of drops or marks that were far enough from others to compare the window before and after.
    pub episodes: u32,
    /// The geometric mean of the window after, over that before; 1 without episodes.
    pub ratio: f64,
    /// The share of episodes with a reduction by 7 % or more.
    pub reduced_share: f64,
    /// The lowest window after an episode, over that before: the median; 1 without episodes.
    pub dip: f64,
    /// The share of episodes with a dip of 7 % or more.
    pub dipped_share: f64,
    /// The geometric mean of the growth from a reduction to the next drop or mark; 1 if there is none.
    pub growth: f64,
}

impl FlowBehaviour {
    /// The name of a flow without enough evidence.
    pub const UNKNOWN: &'static str = "too little evidence";

    /// Whether the evidence gives it a name.
    pub fn is_named(&self) -> bool {
        self.name != Self::UNKNOWN
    }
}
