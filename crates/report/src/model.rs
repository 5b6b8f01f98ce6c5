//! The one report: what an analysis found, with names in place of ids. Text, JSON and HTML are views of it.
//!
//! Times are nanoseconds from the first packet of the input, sizes are bytes, shares are fractions of 1.

mod acting;
mod answer;
mod aqm;
mod compare;
mod owner;
mod sim;
mod sweep;
mod switch;
mod tap;
mod why;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use acting::Acting;
pub use answer::{Alert, Answer, Plan};
pub use aqm::{AqmComparison, AqmPayer, AqmReplay, AqmSetup};
pub use compare::{Compared, Comparison, Of, Quantity};
pub use owner::Owner;
pub use sim::{
    COMMANDS_LINK, HeldBack, NO_METER, RealTime, SCENARIO, Sim, SimFlow, SimFlowSample, SimGroup, SimLink,
    SimLinkGroup, SimLinkSample, SimSample, SimTimes,
};
pub use sweep::{SWEEP_FIGURES, Sweep, SweepCell, SweepFigures, SweepMean, SweepParameter, SweepRow, SweepTotals};
pub use switch::{SwitchAspect, SwitchFit, SwitchPlaced, SwitchStage};
pub use tap::{Tap, TapClock, TapCount, TapLink, TapLost};
pub use why::{ClassPart, Group, OnLink, Part, Parts, Ranked, Victim, Why};

/// Everything that an analysis found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// What was read.
    pub input: Input,
    /// How it was analysed, with every value that was chosen for the user.
    pub setup: Setup,
    /// Counts and extremes over the whole input.
    pub totals: Totals,
    /// The bursts, in order of time.
    pub bursts: Vec<Burst>,
    /// Smaller bursts than any of these, that were not kept.
    pub bursts_left_out: u64,
    /// The culprits over all bursts, for each granularity in the order of `setup.granularities`.
    pub culprits: Vec<Culprits>,
    /// How right the sketch was at the first granularity, for each estimator.
    pub sketch: Vec<SketchScore>,
    /// What was skipped, cut short or put right, and why.
    pub skipped: Vec<Skipped>,
    /// Queue depth over the whole input, where it was asked for.
    pub series: Option<Series>,
    /// How the queue was seen from outside, where it was.
    pub tap: Option<Tap>,
    /// What was simulated, where the queue is of a simulation.
    pub sim: Option<Sim>,
    /// The queues of the simulation's other meters.
    pub others: Vec<OtherQueue>,
}

/// Another queue of the same simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherQueue {
    /// The link behind it.
    pub link: String,
    /// What was found there; it tells nothing of the simulation.
    pub report: Report,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Input {
    /// The file as the user named it; `-` is standard input.
    pub name: String,
    /// Its format: `pcap`, `pcapng`, with its compression, or `csv`, `parquet`. Of what is no file, what it is: `interface`, `scenario`,
    /// `link of a command`.
    pub format: String,
    /// Time of the first packet, nanoseconds since the Unix epoch (for departures: as in the file; of a simulation: since its
    /// start, and the first after the warm-up).
    pub first_ns: u64,
    /// The damage that ended the input early, if any.
    pub damage: Option<String>,
}

/// How the input was analysed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Setup {
    /// Drain rate of the queue in bits per second; none where departures came from elsewhere.
    pub rate_bps: Option<u64>,
    /// What manages the queue (`--aqm`); none of a tail-drop queue, or where the capture does not pass a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<String>,
    /// The queue's limit as the user writes it (`1 s`, `64 kB`, `100 packets`, `none`).
    pub limit: String,
    /// How much faster than captured the packets were sent, as the user writes it (`1`, `50`, `2.5`).
    pub speedup: String,
    /// What the link sends with every packet beyond what the queue holds of it, as the user writes it (`none`, `ethernet`, `24`).
    pub overhead: String,
    /// That in bytes. They take time on the link and no room in the queue: bytes in this report are without them, delays, rates
    /// and the link's utilisation with them.
    pub overhead_bytes: u32,
    /// Whether flows inside of tunnels were told apart.
    pub inner: bool,
    /// Whether super-packets of segmentation offload were split.
    pub split_gso: bool,
    /// At which granularities flows were told apart.
    pub granularities: Vec<String>,
    /// A burst is a stretch in which packets wait at least this long. Unless it was given this is the last value; see
    /// `tau_ns` of a burst.
    pub tau_ns: u64,
    /// Where tau came from: `given`, or `1/8 of the largest delay`.
    pub tau_source: String,
    /// A flow contributes if it is at least this share of the queue.
    pub alpha: f64,
    /// Only packets of which this expression holds entered the queue (`--input`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Only the waiting of packets of which this expression holds is examined (`--victims`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victims: Option<String>,
    /// Only flows of which this expression holds are listed (`--show`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<String>,
    /// The sketch.
    pub sketch: SketchSetup,
}

/// The dimensions of the sketch and where they came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SketchSetup {
    /// Snapshots (h).
    pub snapshots: usize,
    /// Rows of each Count-Min Sketch (R).
    pub rows: usize,
    /// Columns of each Count-Min Sketch (C).
    pub columns: usize,
    /// Time window of a snapshot (T), as it ended.
    pub window_ns: u64,
    /// `given`, or why this window.
    pub window_source: String,
    /// `tag` or `clean`.
    pub expiry: String,
    /// Memory of one sketch.
    pub bytes: u64,
}

/// Counts and extremes over the whole input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Totals {
    /// Packets read.
    pub packets: u64,
    /// Their bytes, as the queue holds them: without what the link adds (`overhead_bytes` of the setup).
    pub bytes: u64,
    /// Flows seen, for each granularity.
    pub flows: Vec<FlowCount>,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Packets that left the queue.
    pub departed_packets: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Whether `drops`, and those of bursts, are of all packets that came to the queue, although `setup.input` leaves some out: an
    /// interface counts drops and does not say whose they were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops_of_all: bool,
    /// Packets marked (CE) by the queue, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// Mean rate offered to the link, with what it adds to each packet, in bits per second; none of an input without a duration.
    pub offered_bps: Option<f64>,
    /// Share of the time that the link was sending; none where departures came from elsewhere.
    pub utilisation: Option<f64>,
    /// Share of packets that waited at all.
    pub waited_share: f64,
    /// Delay at percentiles 50, 90, 99, 99.9 and 100, as (percentile, nanoseconds); good to a thousandth.
    pub delay_percentiles: Vec<(f64, u64)>,
    /// The longest delay.
    pub peak_delay_ns: u64,
    /// The deepest queue in bytes.
    pub peak_depth_bytes: u64,
    /// The deepest queue in packets.
    pub peak_depth_packets: u64,
    /// Mean number of distinct flows in the queue as seen by packets of bursts, first granularity; none of a table, whose
    /// packets may leave in any order.
    pub flows_in_queue_mean: Option<f64>,
    /// Packets larger than the MTU: segmentation offload merged them before they were captured.
    pub super_packets: u64,
    /// The packets whose waiting is examined, where an expression chose them. `waited_share`, the delays, and the packets hit of
    /// bursts are of these; all else is of the whole queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victims: Option<VictimCount>,
}

impl Totals {
    /// Packets had flows that are not known: there are at least as many flows as are counted.
    pub fn miss_flows_of(&mut self, packets: u64) {
        for count in &mut self.flows {
            count.unknown_packets += packets;
            count.exact &= packets == 0;
        }
    }
}

/// Packets whose waiting is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VictimCount {
    /// Those that left the queue (of an interface: those that the kernel reported).
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that were dropped; none where nobody knows whose packets were.
    pub dropped: Option<u64>,
}

/// Flows that are not listed where an expression (`--show`) chooses among them: it leaves them out, or their share is small.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotShown {
    /// How many.
    pub flows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their share of all bytes.
    pub share: f64,
}

impl NotShown {
    /// What is left of so many flows and bytes beside flows of these bytes.
    pub fn beside(flows: u64, bytes: u64, listed: impl ExactSizeIterator<Item = u64>) -> Self {
        let flows = flows.saturating_sub(listed.len() as u64);
        let rest = bytes.saturating_sub(listed.sum());
        Self { flows, bytes: rest, share: if bytes > 0 { rest as f64 / bytes as f64 } else { 0.0 } }
    }
}

/// How many flows there were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlowCount {
    /// The granularity.
    pub granularity: String,
    /// How many. At least so many, where there are packets of unknown flows.
    pub flows: u64,
    /// Whether that is exact: otherwise it is an estimate good to half a percent, or packets of unknown flows are not in it.
    pub exact: bool,
    /// Packets that the queue had, or may have had, and whose flows are not known: they were only counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_packets: u64,
}

impl FlowCount {
    /// What stands before the number in text.
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

/// A stretch in which packets waited at least tau.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Burst {
    /// Its number, from 1 in order of time; bursts that were not kept (`bursts_left_out`) have numbers too.
    pub number: u64,
    /// When the first packet came that waited at least tau, as that was when it left.
    pub start_ns: u64,
    /// From then until the last packet left before one that waited less than half of tau, or that came after the queue was
    /// idle for longer than tau.
    pub length_ns: u64,
    /// The longest delay in it.
    pub peak_delay_ns: u64,
    /// When the packet with the longest delay came.
    pub peak_at_ns: u64,
    /// The deepest queue in it, bytes.
    pub peak_depth_bytes: u64,
    /// The deepest queue in it, packets.
    pub peak_depth_packets: u64,
    /// Tau in it. Unless tau was given it follows the longest delay so far, so that an early burst has a smaller one.
    pub tau_ns: u64,
    /// Packets that waited at least tau, as that was when they left.
    pub packets_hit: u64,
    /// Packets that left during the burst.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped during the burst.
    pub drops: u64,
    /// The culprits, for each granularity in the order of `setup.granularities`.
    pub culprits: Vec<Culprits>,
    /// What the flows of the first granularity have in common, where several together explain what no single one does: every
    /// source, destination, subnet and port that a tenth of the bytes or packets has is in one of these or, as a flow, in
    /// `culprits`.
    pub groups: Vec<Group>,
    /// The culprits of the packet that waited longest, where they were asked for.
    pub worst: Option<Worst>,
    /// Queue depth during the burst, finer than the whole series, where it was asked for.
    pub series: Option<Series>,
}

/// Who filled the queue, at one granularity, heaviest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Culprits {
    /// The granularity.
    pub granularity: String,
    /// Flows with the largest shares; those under alpha are left out unless there would be none.
    pub flows: Vec<Culprit>,
    /// How many flows left packets, altogether (over all bursts: exact up to 131 072, then good to half a percent).
    pub flows_total: u64,
    /// How many have at least alpha. At least so many, where there are more flows than are remembered by name (256 of a
    /// burst at the first granularity, 40 at others).
    #[serde(default)]
    pub culprits_total: u64,
    /// By how much a share may be wrong; 0 where all flows of each burst are known.
    #[serde(default)]
    pub share_error: f64,
    /// What is not listed, where an expression chooses among the flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<NotShown>,
}

/// One flow and its part in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Culprit {
    /// The flow.
    pub flow: String,
    /// Its bytes that left during the burst.
    pub bytes: u64,
    /// Its packets that left during the burst.
    pub packets: u64,
    /// Its share of the bytes that left during the burst.
    pub share: f64,
    /// The most of the queue that it held as one of its own packets came, bytes.
    pub peak_bytes: u64,
    /// By what factor the rate at which it came grew from one stretch of time (as long as a window of the sketch) to the
    /// next, at most, in the burst or since the last one; none where it did not at least double, where fewer than 15 kB or
    /// a hundredth of the link came, or where that is not known. Known at the first granularity, of each burst.
    pub ramp: Option<f64>,
    /// Whether it was never seen before, and came with as much.
    pub new: bool,
    /// Who sends it, where the queue is of the machine that was watched and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// The culprits of the packet of a burst that waited longest, at the first granularity: estimates, from the bounded
/// memory that follows the stream. `queuescope why` tells the same exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Worst {
    /// Since when the queue had not been empty as it came.
    pub since_ns: u64,
    /// Who left the queue while it waited.
    pub direct: Ranked,
    /// Who left before that, since the queue was last empty.
    pub indirect: Ranked,
    /// Who raised the queue to the levels that stood as it came; none where another packet of the same busy period
    /// waited longer, or where packets overtook one another.
    pub original: Option<Ranked>,
}

/// How right one estimator of the sketch was about which packets belong to contributing flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SketchScore {
    /// The granularity.
    pub granularity: String,
    /// `inner`, `outer` or `overlap`.
    pub estimator: String,
    /// Packets asked about: those that waited at least tau, as that was when they left.
    pub asked: u64,
    /// Rightly reported.
    pub true_positives: u64,
    /// Wrongly reported.
    pub false_positives: u64,
    /// Wrongly passed over.
    pub false_negatives: u64,
    /// `tp / (tp + fp)`; none where nothing was reported.
    pub precision: Option<f64>,
    /// `tp / (tp + fn)`; none where nothing was to be found.
    pub recall: Option<f64>,
    /// Mean absolute error of the estimated size, bytes.
    pub mean_error_bytes: Option<f64>,
}

/// Something that was skipped, cut short or put right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Skipped {
    /// A short stable name.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// What it means for the result, in a sentence.
    pub meaning: String,
}

/// Queue depth over time, stacked by flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// When the first bucket starts.
    pub start_ns: u64,
    /// Length of a bucket.
    pub bucket_ns: u64,
    /// Mean depth in each bucket, bytes.
    pub mean_bytes: Vec<f64>,
    /// Longest delay of the packets that came in each bucket.
    pub peak_delay_ns: Vec<u64>,
    /// Drops in each bucket.
    pub drops: Vec<u64>,
    /// The largest flows (first granularity) and their mean part in each bucket; what is missing to `mean_bytes` is others'.
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
