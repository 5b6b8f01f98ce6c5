//! The report: the results of an analysis, with names in place of ids. Text, JSON and HTML are views of it.
//!
//! Times are nanoseconds from the first packet of the input, sizes are bytes, shares are fractions of 1.

mod acting;
mod answer;
mod aqm;
mod behaviour;
mod compare;
mod owner;
mod p4air;
mod sim;
mod sweep;
mod switch;
mod tap;
mod why;

use crate::decimal::{self, Decimal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use acting::Acting;
pub use answer::{Alert, Answer, ClockError, Plan};
pub use aqm::{AffectedFlow, AqmComparison, AqmReplay, AqmSetup};
pub use behaviour::{FlowBehaviour, Reaction};
pub use compare::{Compared, Comparison, Of, Quantity};
pub use owner::Owner;
pub use p4air::{P4air, P4airFlow, P4airGroup};
pub use sim::{
    COMMANDS_LINK, INTERFACES_LINK, MachineLimit, NO_METER, RealTime, SCENARIO, Sim, SimFlow, SimFlowSample, SimGroup,
    SimLink, SimLinkGroup, SimLinkSample, SimSample, SimTimes,
};
pub use sweep::{SWEEP_FIGURES, Sweep, SweepCell, SweepFigures, SweepMean, SweepParameter, SweepRow, SweepTotals};
pub use switch::{
    SwitchAspect, SwitchCompiled, SwitchContainers, SwitchFit, SwitchMemory, SwitchPlaced, SwitchResources, SwitchStage,
};
pub use tap::{Tap, TapClock, TapCount, TapLink, TapLost};
pub use why::{ClassPart, Group, OnLink, Part, Parts, Ranked, Victim, Why};

/// The limit in [`Setup`] of a queue whose limit is not known, because the input is what left it.
pub const AS_IT_WAS: &str = "as it was";

/// All results of an analysis.
///
/// ```
/// use queuescope_report::model::Report;
///
/// /// The flow that filled most of the queue in the burst with the longest delay, and its share of the bytes, 0 to 1.
/// fn worst_flow(report: &Report) -> Option<(&str, f64)> {
///     let burst = report.bursts.iter().max_by_key(|burst| burst.peak_delay_ns)?;
///     let flow = burst.culprits.first()?.flows.first()?;
///     Some((flow.flow.as_str(), flow.share))
/// }
/// # let _ = worst_flow;
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// The input.
    pub input: Input,
    /// How it was analysed, with every value that was chosen automatically.
    pub setup: Setup,
    /// Counts and extremes over the whole input.
    pub totals: Totals,
    /// The bursts, in order of time.
    pub bursts: Vec<Burst>,
    /// Number of bursts that were not kept; they are smaller than those in `bursts`.
    #[serde(alias = "bursts_left_out")]
    pub bursts_omitted: u64,
    /// The culprits over all bursts, for each granularity in the order of `setup.granularities`.
    pub culprits: Vec<Culprits>,
    /// Accuracy of the sketch at the first granularity, for each estimator.
    pub sketch: Vec<SketchScore>,
    /// What was skipped, cut short or corrected, and why.
    pub skipped: Vec<Skipped>,
    /// Queue depth over the whole input, if requested.
    pub series: Option<Series>,
    /// The captures and their clocks, if the queue is that of a router between captures (`queuescope tap`).
    pub tap: Option<Tap>,
    /// The simulation, if the queue is simulated.
    pub sim: Option<Sim>,
    /// The other metered queues of the simulation.
    pub others: Vec<OtherQueue>,
}

/// Another queue of the same simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherQueue {
    /// The link of the queue.
    pub link: String,
    /// The results for this queue; its `sim` is none.
    pub report: Report,
}

/// The input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Input {
    /// The file as the user named it; `-` is standard input.
    pub name: String,
    /// Its format: `pcap`, `pcapng`, with its compression, or `csv`, `parquet`. If the input is not a file, its kind:
    /// `interface`, `scenario`, `link of a command`, `link between interfaces`.
    pub format: String,
    /// Time of the first packet, nanoseconds since the Unix epoch. For departures: as in the file. For a simulation:
    /// since its start, of the first packet after the warm-up.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub first_ns: u64,
    /// The damage that ended the input early, if any.
    pub damage: Option<String>,
}

/// How the input was analysed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Setup {
    /// Drain rate of the queue in bits per second; none for a table of departures.
    pub rate_bps: Option<u64>,
    /// What manages the queue (`--aqm`); none for a tail-drop queue, or if the capture is not replayed through a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<String>,
    /// The queue's limit, in the user's notation (`1 s`, `64 kB`, `100 packets`, `none`).
    pub limit: String,
    /// The factor by which packets were replayed faster than captured, in the user's notation (`1`, `50`, `2.5`).
    pub speedup: String,
    /// The link's overhead: what it sends with each packet in addition to the bytes in the queue, in the user's
    /// notation (`none`, `ethernet`, `24`).
    pub overhead: String,
    /// The overhead in bytes per packet. It takes time on the link but no room in the queue: bytes in this report
    /// exclude it; delays, rates and the link's utilisation include it.
    pub overhead_bytes: u32,
    /// Whether flows inside of tunnels were distinguished.
    pub inner: bool,
    /// Whether super-packets of segmentation offload were split.
    pub split_gso: bool,
    /// The granularities at which packets were grouped into flows.
    pub granularities: Vec<String>,
    /// The threshold: a burst is a period in which packets wait at least this long. Unless it was given this is its
    /// last value; see `tau_ns` of a burst.
    pub tau_ns: u64,
    /// Origin of tau: `given`, or `1/8 of the largest delay`.
    pub tau_source: String,
    /// A flow contributes if it has at least this share of the queue.
    pub alpha: f64,
    /// Only packets that match this expression entered the queue (`--input`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "input")]
    pub input_filter: Option<String>,
    /// Only the delays of packets that match this expression are examined (`--victims`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "victims")]
    pub victims_filter: Option<String>,
    /// Only flows that match this expression are listed (`--show`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "show")]
    pub show_filter: Option<String>,
    /// Why the behaviour of flows was not judged, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<String>,
    /// The sketch.
    pub sketch: SketchSetup,
}

/// The dimensions of the sketch and their origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SketchSetup {
    /// Snapshots (h).
    pub snapshots: usize,
    /// Rows of each Count-Min Sketch (R).
    pub rows: usize,
    /// Columns of each Count-Min Sketch (C).
    pub columns: usize,
    /// Time window of a snapshot (T) at the end.
    pub window_ns: u64,
    /// `given`, or the reason for this window.
    pub window_source: String,
    /// `tag` or `clean`.
    pub expiry: String,
    /// Memory of one sketch.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
}

/// Counts and extremes over the whole input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Totals {
    /// Packets read. Of `live`: packets that left the queue, without drops, since the kernel does not count the bytes of those.
    pub packets: u64,
    /// Their bytes in the queue, without link overhead (`overhead_bytes` of the setup).
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Number of flows, for each granularity.
    pub flows: Vec<FlowCount>,
    /// From the first packet to the last. Of `live`: from the moment when measuring began to that when it ended.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub duration_ns: u64,
    /// Packets that left the queue.
    pub departed_packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Whether `drops`, also those of bursts, are of all packets of the queue although `setup.input` excludes some: an
    /// interface counts drops without stating the flow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(alias = "drops_of_all")]
    pub drops_unfiltered: bool,
    /// Packets marked (CE) by the queue, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// Mean rate of `bytes` in `duration_ns`, with link overhead, in bits per second; none if the input has no duration.
    pub offered_bps: Option<f64>,
    /// Share of the time in which the link was sending; none for a table of departures.
    pub utilisation: Option<f64>,
    /// Share of packets that waited longer than zero.
    pub waited_share: f64,
    /// Delay at percentiles 50, 90, 99, 99.9 and 100, as (percentile, nanoseconds); accurate to a thousandth.
    pub delay_percentiles: Vec<(f64, u64)>,
    /// The longest delay.
    pub peak_delay_ns: u64,
    /// The deepest queue in bytes.
    pub peak_depth_bytes: u64,
    /// The deepest queue in packets.
    pub peak_depth_packets: u64,
    /// Mean number of distinct flows in the queue at the arrival of packets of bursts, first granularity; none for a
    /// table, whose packets may leave in any order.
    pub flows_in_queue_mean: Option<f64>,
    /// Packets larger than the MTU: segmentation offload merged them before the capture.
    pub super_packets: u64,
    /// The packets whose delays are examined, if an expression selects them. `waited_share`, the delays, and the
    /// packets hit of bursts are of these; everything else is of the whole queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victims: Option<VictimCount>,
}

impl Totals {
    /// Notes that the flows of this many packets are unknown, so that the numbers of flows are lower bounds.
    pub fn miss_flows_of(&mut self, packets: u64) {
        for count in &mut self.flows {
            count.unknown_packets += packets;
            count.exact &= packets == 0;
        }
    }
}

/// Packets whose delays are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VictimCount {
    /// Packets that left the queue (of an interface: those that the kernel reported).
    pub packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Packets that were dropped; none if it is unknown which packets were.
    pub dropped: Option<u64>,
}

/// Flows that are not listed although an expression (`--show`) selects flows: those that it excludes, and those with a
/// small share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotShown {
    /// Number of flows.
    pub flows: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Their share of all bytes.
    pub share: f64,
}

impl NotShown {
    /// The rest of `flows` flows and `bytes` bytes, apart from listed flows of these bytes.
    pub fn beside(flows: u64, bytes: u64, listed: impl ExactSizeIterator<Item = u64>) -> Self {
        let flows = flows.saturating_sub(listed.len() as u64);
        let rest = bytes.saturating_sub(listed.sum());
        Self { flows, bytes: rest, share: if bytes > 0 { rest as f64 / bytes as f64 } else { 0.0 } }
    }
}

/// A number of flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlowCount {
    /// The granularity.
    pub granularity: String,
    /// The number. A lower bound if there are packets of unknown flows.
    pub flows: u64,
    /// Whether it is exact: otherwise it is an estimate accurate to half a percent, or does not include packets of
    /// unknown flows.
    pub exact: bool,
    /// Packets that the queue had, or may have had, of unknown flows: they were only counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_packets: u64,
}

impl FlowCount {
    /// The words before the number in text.
    pub fn bound(&self) -> &'static str {
        match (self.exact, self.unknown_packets) {
            (true, _) => "",
            (false, 0) => "about ",
            (false, _) => "at least ",
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A period in which packets waited at least tau.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Burst {
    /// Its number, from 1 in order of time. Bursts that were not kept (`bursts_omitted`) are numbered too.
    pub number: u64,
    /// Arrival of the first packet that waited at least tau, with the value of tau at its departure.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub start_ns: u64,
    /// Time from then until the last departure before a packet that waited less than half of tau, or that arrived after
    /// the queue had been idle for longer than tau.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub length_ns: u64,
    /// The longest delay in the burst.
    pub peak_delay_ns: u64,
    /// Arrival of the packet with the longest delay.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub peak_at_ns: u64,
    /// The deepest queue in the burst, bytes.
    pub peak_depth_bytes: u64,
    /// The deepest queue in the burst, packets.
    pub peak_depth_packets: u64,
    /// Tau in the burst. Unless tau was given it follows the longest delay so far, so that an early burst has a smaller
    /// one.
    pub tau_ns: u64,
    /// Packets that waited at least tau, with the value of tau at their departure.
    #[serde(alias = "packets_hit")]
    pub packets_over_tau: u64,
    /// Packets that left during the burst.
    pub packets: u64,
    /// Their bytes.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Packets dropped during the burst.
    pub drops: u64,
    /// The culprits, for each granularity in the order of `setup.granularities`.
    pub culprits: Vec<Culprits>,
    /// What the flows of the first granularity have in common, if several together explain what no single flow does.
    /// Every source, destination, subnet and port with a tenth of the bytes or packets is in one of these or, as a
    /// flow, in `culprits`.
    pub groups: Vec<Group>,
    /// The culprits of the packet that waited longest, if requested.
    pub worst: Option<Worst>,
    /// Queue depth during the burst, at a finer resolution than that of the whole input, if requested.
    pub series: Option<Series>,
}

/// The flows that filled the queue, at one granularity, heaviest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Culprits {
    /// The granularity.
    pub granularity: String,
    /// Flows with the largest shares. Those with less than alpha are left out unless none would remain.
    pub flows: Vec<Culprit>,
    /// Number of flows of which packets left (over all bursts: exact up to 131 072, then accurate to half a percent).
    pub flows_total: u64,
    /// Number of flows with at least alpha. A lower bound if there are more flows than are tracked by name (256 per
    /// burst at the first granularity, 40 at others).
    #[serde(default)]
    pub culprits_total: u64,
    /// The largest error of a share; 0 if all flows of each burst are known.
    #[serde(default)]
    pub share_error: f64,
    /// Flows that are not listed, if an expression selects flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<NotShown>,
}

/// One flow and its part of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Culprit {
    /// The flow.
    pub flow: String,
    /// Its bytes that left during the burst.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Its packets that left during the burst.
    pub packets: u64,
    /// Its share of the bytes that left during the burst.
    pub share: f64,
    /// The most bytes that it had in the queue at the arrival of one of its own packets.
    pub peak_bytes: u64,
    /// The largest factor by which its arrival rate grew from one period (as long as a window of the sketch) to the
    /// next, in the burst or since the last one. None if it did not at least double, if fewer than 15 kB or a hundredth
    /// of the link's capacity arrived, or if it is unknown. Known at the first granularity, of each burst.
    pub ramp: Option<f64>,
    /// Whether it was never seen before, and started with a rate that counts as a ramp.
    pub new: bool,
    /// The process that sends it, if the queue is of the monitored machine and the process is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// How it behaves. Known at the first granularity, of culprits over all bursts, if flows are judged at all (see `behaviour` of the
    /// setup) and it sent at least 64 packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<FlowBehaviour>,
}

/// The culprits of the packet of a burst that waited longest, at the first granularity: estimates from bounded memory.
/// `queuescope why` computes them exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Worst {
    /// Time since which the queue had not been empty at the packet's arrival.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub since_ns: u64,
    /// Flows that left the queue while it waited.
    pub direct: Ranked,
    /// Flows that left before that, since the queue was last empty.
    pub indirect: Ranked,
    /// Flows that raised the queue to its levels at the packet's arrival. None if another packet of the same busy
    /// period waited longer, or if packets overtook one another.
    pub original: Option<Ranked>,
}

/// Accuracy of one estimator of the sketch: does it report the packets that belong to contributing flows?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SketchScore {
    /// The granularity.
    pub granularity: String,
    /// `inner`, `outer` or `overlap`.
    pub estimator: String,
    /// Packets for which the sketch was queried: those that waited at least tau, with the value of tau at their
    /// departure.
    #[serde(alias = "asked")]
    pub queries: u64,
    /// Contributing and reported.
    pub true_positives: u64,
    /// Reported, but not contributing.
    pub false_positives: u64,
    /// Contributing, but not reported.
    pub false_negatives: u64,
    /// `tp / (tp + fp)`; none if nothing was reported.
    pub precision: Option<f64>,
    /// `tp / (tp + fn)`; none if there was nothing to report.
    pub recall: Option<f64>,
    /// Mean absolute error of the estimated size, bytes.
    pub mean_error_bytes: Option<f64>,
}

/// Something that was skipped, cut short or corrected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Skipped {
    /// A short stable name.
    pub reason: String,
    /// How often it happened.
    pub count: u64,
    /// The consequence for the result, in a sentence.
    pub meaning: String,
}

/// Queue depth over time, stacked by flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// Start of the first bucket.
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub start_ns: u64,
    /// Length of a bucket.
    pub bucket_ns: u64,
    /// Mean depth in each bucket, bytes.
    pub mean_bytes: Vec<f64>,
    /// Longest delay of the packets that arrived in each bucket.
    pub peak_delay_ns: Vec<u64>,
    /// Drops in each bucket.
    pub drops: Vec<u64>,
    /// The largest flows (first granularity) and their mean part in each bucket. The rest of `mean_bytes` is of other
    /// flows.
    pub flows: Vec<SeriesFlow>,
}

/// One flow's part of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeriesFlow {
    /// The flow.
    pub flow: String,
    /// Mean bytes in the queue in each bucket.
    pub mean_bytes: Vec<f64>,
}
