//! What a simulation did.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A simulation: what was simulated, and what became of it. Counts are since the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sim {
    /// The scenario's name.
    pub name: String,
    /// What it is about, as its author says.
    pub about: Option<String>,
    /// The whole scenario as it was run, with everything that its file leaves out (TOML).
    pub scenario: String,
    /// The seed of everything that is random in it.
    pub seed: u64,
    /// How long was simulated.
    pub duration_ns: u64,
    /// How much of that did not count.
    pub warmup_ns: u64,
    /// The link whose queue the rest of the report is about; [`NO_METER`] if it is about none.
    pub meter: String,
    /// The links with a queue of interest.
    pub links: Vec<SimLink>,
    /// The groups of flows.
    pub groups: Vec<SimGroup>,
    /// The flows, in the order in which they started, up to a number.
    pub flows: Vec<SimFlow>,
    /// Flows that are not in `flows`.
    pub flows_more: u64,
    /// The state over time, if it was sampled.
    pub samples: Vec<SimSample>,
    /// Packets that left a link, over all links.
    pub hops: u64,
    /// Where the packets were real ones and the time was, how exact that was.
    pub real_time: Option<RealTime>,
}

/// How exact a link in real time was: how much later than due packets were given to whom they are for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RealTime {
    /// Packets that were given to their end.
    pub packets: u64,
    /// The median of how late they were.
    pub error_p50_ns: u64,
    /// How late 99 of a hundred were at most.
    pub error_p99_ns: u64,
    /// How late the last of all was.
    pub error_worst_ns: u64,
    /// How many were more than a millisecond late.
    pub late_packets: u64,
    /// How much later than asked for a thread of this machine wakes up that sleeps for 100 us: the median.
    pub sleep_p50_ns: u64,
    /// The same for 99 of a hundred sleeps.
    pub sleep_p99_ns: u64,
    /// Packets that came faster than they were read, and were lost before the link; many of TCP that come together are one.
    pub unread_packets: u64,
    /// How long the machine, and not a link or who sends, decided how much was sent; none if it never did.
    pub held_back: Option<HeldBack>,
    /// Whether the machine and not the link was the bottleneck at times: more than a hundredth of the packets were late, some were lost
    /// before the link, or packets were held back for more than a tenth of the time.
    pub is_limited_by_machine: bool,
}

/// The time in which no link was full and the machine had no time left: the thread that moves packets did nothing else, or no processor
/// was idle while it moved many.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeldBack {
    /// How long that was.
    pub time_ns: u64,
    /// Of how long, in which links sent something.
    pub of_ns: u64,
    /// The link that was fullest.
    pub link: String,
    /// What it was to carry in that time, in bits per second.
    pub asked_bps: f64,
    /// What it carried in it.
    pub carried_bps: f64,
    /// The share of that time in which the thread that moves packets did.
    pub moving_share: f64,
    /// The share of that time in which processors were idle, of all of them together; none where that is not known.
    pub idle_share: Option<f64>,
}

/// What stands for a link where no queue was analysed.
pub const NO_METER: &str = "none";

/// The format of an input that is a scenario.
pub const SCENARIO: &str = "scenario";

/// The format of an input that is the link of a command, with what the command sends and gets.
pub const COMMANDS_LINK: &str = "link of a command";

/// A link and its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLink {
    /// Its name.
    pub name: String,
    /// What manages its queue.
    pub discipline: String,
    /// Its rate in bits per second; the mean of a rate that varies.
    pub rate_bps: u64,
    /// How long a bit is on its way.
    pub delay_ns: u64,
    /// Bytes that the link adds to each packet as it sends it. They are in `utilisation` and in delays, and in no number of bytes.
    pub overhead_bytes: u32,
    /// Packets that came to the queue.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that were sent, those lost on the link included.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// What was sent, with what the link adds to each packet, as a share of what the rate allows.
    pub utilisation: f64,
    /// Packets that were sent and lost on the link by chance (`loss`); no queue dropped them.
    pub lost_packets: u64,
    /// Those as a share of what was sent.
    pub loss_rate: f64,
    /// Packets that the queue dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked, by reason.
    pub marks: BTreeMap<String, u64>,
    /// What the queue dropped, as a share of what came.
    pub drop_rate: f64,
    /// Marks as a share of what came.
    pub mark_rate: f64,
    /// The time that packets dropped behind the queue cost the link.
    pub wasted_ns: u64,
    /// The longest queue that a packet met.
    pub longest_queue_bytes: u64,
    /// Sojourn times in the queue, of packets that were sent.
    pub sojourn: SimTimes,
    /// The same of each group of flows that came, where there are several.
    pub groups: Vec<SimLinkGroup>,
    /// What the discipline counted itself.
    pub counters: BTreeMap<String, u64>,
}

/// A group of flows at a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLinkGroup {
    /// The group's name.
    pub name: String,
    /// Packets that were lost on the link, as a share of those that were sent.
    pub loss_rate: f64,
    /// Packets that the queue dropped, as a share of those that were sent or dropped.
    pub drop_rate: f64,
    /// Packets marked, as a share of those that were sent or dropped.
    pub mark_rate: f64,
    /// Sojourn times in the queue, of packets that were sent.
    pub sojourn: SimTimes,
}

/// Times of many packets or flows. Percentiles are good to a thousandth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimTimes {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// The 95th percentile.
    pub p95_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Flows that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimGroup {
    /// The group's name.
    pub name: String,
    /// `tcp` and the congestion control, or `udp`.
    pub transport: String,
    /// Flows that started.
    pub flows: u64,
    /// Flows that had an end and reached it.
    pub finished: u64,
    /// Payload that the receivers got in order, all flows together: bits per second over the run, from the end of the
    /// warm-up.
    pub goodput_bps: f64,
    /// The least of its flows' `lifetime_goodput_bps`. Datagrams count over the run.
    pub least_lifetime_goodput_bps: f64,
    /// The most of them. It may be above `goodput_bps`, and above the rate of the link over a short lifetime with a warm-up.
    pub most_lifetime_goodput_bps: f64,
    /// Jain's index of the flows' `lifetime_goodput_bps`: 1 where all got the same.
    pub jain: f64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// The mean of the flows' smoothed round-trip times at the end.
    pub rtt_ns: Option<f64>,
    /// Flow completion times, of flows that finished after the warm-up.
    pub completion: Option<SimTimes>,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimFlow {
    /// Its number, in the order of starting, from 0.
    pub number: u64,
    /// Its name, as culprits have it.
    pub name: String,
    /// Its group's name.
    pub group: String,
    /// When it started.
    pub started_ns: u64,
    /// When its receiver had all of it.
    pub finished_ns: Option<u64>,
    /// Bytes that it had to send, if it had an end.
    pub bytes: Option<u64>,
    /// Bytes that its receiver got in order since the warm-up.
    pub delivered_bytes: u64,
    /// That in bits per second over the run, from the end of the warm-up, whenever the flow started or finished. Without a
    /// warm-up the sum over the flows of a link is at most its rate; with one, bytes that arrived out of order before its end
    /// and were completed after it come on top.
    pub goodput_bps: f64,
    /// That in bits per second over the flow's lifetime: from its start or the end of the warm-up, whichever is later, until
    /// it finished or the run ended. Flows live at different times, so that a sum over flows means nothing: it may exceed the
    /// rate of the link.
    pub lifetime_goodput_bps: f64,
    /// Segments sent again since the warm-up.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer since the warm-up.
    pub timeouts: u64,
    /// The smoothed round-trip time at its end.
    pub rtt_ns: Option<u64>,
}

/// The state at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimSample {
    /// When, from the start of the simulation.
    pub at_ns: u64,
    /// Of each link of `links`, in that order.
    pub links: Vec<SimLinkSample>,
    /// Of the first flows that are there.
    pub flows: Vec<SimFlowSample>,
}

/// The state of a link. What was sent, dropped and marked counts from the sample before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLinkSample {
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Their bytes, without what the link adds.
    pub sent_bytes: u64,
    /// Packets that were sent and lost on the link.
    pub lost: u64,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// The probability with which packets are dropped at the moment, where what manages the queue keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_probability: Option<f64>,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimFlowSample {
    /// Its number.
    pub number: u64,
    /// The congestion window in bytes.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// The smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// Bytes delivered in order since the sample before.
    pub delivered_bytes: u64,
}
