//! The results of a simulation.

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A simulation: the scenario, and its results. Counts are since the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sim {
    /// The scenario's name.
    pub name: String,
    /// Its description, as its author wrote it.
    pub about: Option<String>,
    /// The complete scenario as it was run, with the defaults that its file omits (TOML).
    pub scenario: String,
    /// The seed of all its random numbers.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub seed: u64,
    /// Simulated time.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub duration_ns: u64,
    /// Initial part of it that is not measured.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub warmup_ns: u64,
    /// The link whose queue the rest of the report is about; [`NO_METER`] if there is none.
    pub meter: String,
    /// The links with a queue of interest.
    pub links: Vec<SimLink>,
    /// The groups of flows.
    pub groups: Vec<SimGroup>,
    /// The flows, in the order in which they started, up to a limit.
    pub flows: Vec<SimFlow>,
    /// Number of flows that are not in `flows`.
    #[serde(alias = "flows_more")]
    pub flows_omitted: u64,
    /// The state over time, if it was sampled.
    pub samples: Vec<SimSample>,
    /// Departures, summed over all links.
    pub hops: u64,
    /// Timing accuracy, if the packets were real and the run was in real time.
    pub real_time: Option<RealTime>,
}

/// Timing accuracy of a link in real time: how much later than due packets were delivered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RealTime {
    /// Packets that were delivered.
    pub packets: u64,
    /// Their lateness, median.
    pub error_p50_ns: u64,
    /// Their lateness, 99th percentile.
    pub error_p99_ns: u64,
    /// Their lateness, maximum.
    pub error_worst_ns: u64,
    /// Packets that were more than a millisecond late.
    pub late_packets: u64,
    /// How much later than requested a thread of this machine wakes up that sleeps for 100 us: the median.
    pub sleep_p50_ns: u64,
    /// The same, 99th percentile.
    pub sleep_p99_ns: u64,
    /// Packets that arrived faster than they were read, and were lost before the link. TCP packets that arrive together
    /// count as one.
    pub unread_packets: u64,
    /// The time in which the machine, and not a link or a sender, limited the throughput; none if it never did.
    #[serde(alias = "held_back")]
    pub machine_limit: Option<MachineLimit>,
    /// Whether the machine and not the link was the bottleneck at times: more than a hundredth of the packets were
    /// late, some were lost before the link, or the machine limited the throughput for more than a tenth of the time.
    pub is_limited_by_machine: bool,
}

/// The time in which no link was full and the machine had no time left: the thread that moves packets was busy, or no
/// processor was idle while it moved many packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineLimit {
    /// That time.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    #[serde(alias = "time_ns")]
    pub limited_ns: u64,
    /// The time in which links sent anything, of which `limited_ns` is a part.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    #[serde(alias = "of_ns")]
    pub active_ns: u64,
    /// The link with the highest utilisation.
    pub link: String,
    /// Load offered to it in that time, in bits per second.
    #[serde(alias = "asked_bps")]
    pub offered_bps: f64,
    /// Load that it carried in that time, in bits per second.
    pub carried_bps: f64,
    /// Share of that time in which the thread that moves packets was busy.
    #[serde(alias = "moving_share")]
    pub busy_share: f64,
    /// Share of that time in which processors were idle, averaged over all processors; none if unknown.
    pub idle_share: Option<f64>,
}

/// In place of a link's name if no queue was analysed.
pub const NO_METER: &str = "none";

/// The format of an input that is a scenario.
pub const SCENARIO: &str = "scenario";

/// The format of an input that is the link of a command.
pub const COMMANDS_LINK: &str = "link of a command";

/// The format of an input that is a link between two interfaces.
pub const INTERFACES_LINK: &str = "link between interfaces";

/// A link and its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLink {
    /// Its name.
    pub name: String,
    /// What manages its queue.
    pub discipline: String,
    /// Its rate in bits per second; the mean of a rate that varies.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ns: u64,
    /// Link overhead per packet, bytes. `utilisation` and delays include it, numbers of bytes do not.
    pub overhead_bytes: u32,
    /// Packets that arrived at the queue.
    pub offered_packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub offered_bytes: u64,
    /// Packets that were sent, including those lost on the link.
    pub sent_packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub sent_bytes: u64,
    /// Bytes sent, with link overhead, as a share of what the rate allows.
    pub utilisation: f64,
    /// Packets that were sent and randomly lost on the link (`loss`). The queue did not drop them.
    pub lost_packets: u64,
    /// Lost packets as a share of packets sent.
    pub loss_rate: f64,
    /// Packets that the queue dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked, by reason.
    pub marks: BTreeMap<String, u64>,
    /// Dropped packets as a share of arrivals.
    pub drop_rate: f64,
    /// Marked packets as a share of arrivals.
    pub mark_rate: f64,
    /// The link's time that was wasted on packets dropped behind the queue.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub wasted_ns: u64,
    /// The longest queue at the arrival of a packet.
    #[serde(alias = "longest_queue_bytes")]
    pub peak_backlog_bytes: u64,
    /// Sojourn times in the queue, of packets that were sent.
    pub sojourn: SimTimes,
    /// The same for each group of flows, if there are several.
    pub groups: Vec<SimLinkGroup>,
    /// The discipline's own counters.
    pub counters: BTreeMap<String, u64>,
}

/// A group of flows at a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLinkGroup {
    /// The group's name.
    pub name: String,
    /// Packets that were lost on the link, as a share of packets sent.
    pub loss_rate: f64,
    /// Packets that the queue dropped, as a share of packets sent or dropped.
    pub drop_rate: f64,
    /// Packets marked, as a share of packets sent or dropped.
    pub mark_rate: f64,
    /// Sojourn times in the queue, of packets that were sent.
    pub sojourn: SimTimes,
}

/// A distribution of times. Percentiles are accurate to a thousandth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimTimes {
    /// Number of times.
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

/// A group of similar flows.
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
    /// Payload that the receivers got in order, summed over all flows: bits per second over the run, from the end of
    /// the warm-up.
    pub goodput_bps: f64,
    /// The smallest `lifetime_goodput_bps` of its flows. Datagrams count over the run.
    pub least_lifetime_goodput_bps: f64,
    /// The largest `lifetime_goodput_bps`. It may exceed `goodput_bps`, and the rate of the link if a lifetime with a
    /// warm-up is short.
    pub most_lifetime_goodput_bps: f64,
    /// Jain's index of the flows' `lifetime_goodput_bps`: 1 if all are equal.
    pub jain: f64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
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
    /// Its name, as in lists of culprits.
    pub name: String,
    /// Its group's name.
    pub group: String,
    /// When it started.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub started_ns: u64,
    /// When its receiver had received everything.
    #[serde(default, with = "decimal::option")]
    #[schemars(with = "Option<Decimal>")]
    pub finished_ns: Option<u64>,
    /// Bytes to send, if the flow had an end.
    #[serde(default, with = "decimal::option")]
    #[schemars(with = "Option<Decimal>")]
    pub bytes: Option<u64>,
    /// Bytes that its receiver got in order since the warm-up.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub delivered_bytes: u64,
    /// The same in bits per second over the run, from the end of the warm-up, whenever the flow started or finished.
    /// Without a warm-up the sum over the flows of a link is at most its rate. With a warm-up, bytes that arrived out
    /// of order before its end and were completed after it are added.
    pub goodput_bps: f64,
    /// The same in bits per second over the flow's lifetime: from its start or the end of the warm-up, whichever is
    /// later, until it finished or the run ended. Flows live at different times, so a sum over flows is meaningless: it
    /// may exceed the rate of the link.
    pub lifetime_goodput_bps: f64,
    /// Segments retransmitted since the warm-up.
    pub retransmissions: u64,
    /// Retransmission timeouts since the warm-up.
    pub timeouts: u64,
    /// The smoothed round-trip time at its end.
    pub rtt_ns: Option<u64>,
}

/// The state at a point in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimSample {
    /// The time, from the start of the simulation.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub at_ns: u64,
    /// The state of each link of `links`, in that order.
    pub links: Vec<SimLinkSample>,
    /// The state of the first flows that exist.
    pub flows: Vec<SimFlowSample>,
}

/// The state of a link. Packets sent, lost, dropped and marked are since the previous sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SimLinkSample {
    /// Packets in the queue.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Their bytes, without link overhead.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub sent_bytes: u64,
    /// Packets that were sent and lost on the link.
    pub lost: u64,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// The current drop probability, if the queue's discipline has one.
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
    /// Bytes delivered in order since the previous sample.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub delivered_bytes: u64,
}
