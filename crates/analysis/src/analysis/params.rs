//! Parameters of an analysis.

use crate::behaviour::NOT_SEEN;
use crate::show::Show;
use queuescope_ingest::PacketFilter;
use queuescope_ingest::records::Departures;
use queuescope_meter::{History, Tau};
use queuescope_queue::Limit;
use queuescope_sketch::{ConQuestParams, Estimator, Expiry, ParamsError, Weights};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// Parameters of an analysis of one queue. [`new`](Self::new) gives those for a FIFO of captured packets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnalysisParams {
    /// Whether packets leave in the order in which they came, and which departures are remembered.
    pub history: History,
    /// Whether departures carry the backlog that the packet met. If not, it is computed from what left while the packet
    /// waited.
    pub backlog_is_known: bool,
    /// The least delay at which the queue is congested.
    pub tau: Tau,
    /// The least share of the queue at which a flow contributes, from 0 to 1.
    pub alpha: f64,
    /// The report lists only culprits whose rate jumped by at least this factor; all if it is `None`.
    pub ramped: Option<f64>,
    /// The estimators to judge.
    pub estimators: Vec<Estimator>,
    /// The dimensions of the sketch. If the window grows, its `window` is the first.
    pub sketch: ConQuestParams,
    /// Whether the window doubles whenever a delay is longer than the snapshots cover.
    pub window_grows: bool,
    /// If given, the longest recent delay is used in place of each packet's own, with this half-life (ConQuest, section
    /// 3.6).
    pub across_classes: Option<Nanos>,
    /// Whether to draw the queue depth over time.
    pub pictures: bool,
    /// Largest number of bursts to keep: those with the longest delays.
    pub most_bursts: usize,
    /// Whether to compute all details of each burst, beyond what the text shows: the culprits of its worst packet, and what
    /// its flows have in common even if its delay is not among the longest.
    pub details: bool,
    /// The rate of the link, if it is known.
    pub rate: Option<Rate>,
    /// Whether [`Analysis::ended`](super::Analysis::ended) returns bursts as they end, in addition to those that are kept.
    pub hands_out: bool,
    /// At this number of flows, the oldest are forgotten, with all departures of their time, even if those may still be
    /// needed. `None` if the content of the queue bounds the flows.
    pub most_flows: Option<usize>,
    /// For queues that may not be FIFOs: arrivals that are at most this far apart count as simultaneous.
    pub order_tolerance: Nanos,
    /// Which packets' waiting is examined; of all packets if it is `None`.
    pub victims: Option<PacketFilter<Departures>>,
    /// Which flows are listed; all if it is `None`.
    pub show: Option<Show>,
    /// Why the behaviour of flows is not judged; they are judged if it is `None`. By default they are not, because the senders of a
    /// replayed capture did not see this queue.
    pub not_judged: Option<&'static str>,
}

impl AnalysisParams {
    /// The defaults: a FIFO, an adaptive tau that is at least that of `scale`, culprits from 1 % of the queue, and a sketch
    /// of 64 KiB.
    pub fn new(scale: Scale) -> Self {
        let sketch = SketchOptions::default();
        Self {
            history: History::Fifo,
            backlog_is_known: true,
            tau: Tau::adaptive(scale.tau),
            alpha: ALPHA,
            ramped: None,
            estimators: vec![Estimator::Overlap],
            sketch: sketch.params(scale).expect("64 KiB hold a sketch"),
            window_grows: true,
            across_classes: None,
            pictures: false,
            most_bursts: MOST_BURSTS,
            details: false,
            rate: None,
            hands_out: false,
            most_flows: None,
            order_tolerance: Nanos::ZERO,
            victims: None,
            show: None,
            not_judged: Some(NOT_SEEN),
        }
    }

    /// The same for a simulated queue that is not a FIFO. The flows that a packet met are those that left while it waited,
    /// and bursts are found by the longest recent delay. Departures still carry the backlog.
    #[must_use]
    pub fn in_any_order(self) -> Self {
        let across_classes = self.across_classes.or(Some(ACROSS_CLASSES));
        Self { history: History::Departures(DEPARTURES), across_classes, ..self }
    }

    /// A hundredth of the bytes that the link sends in `window`, if its rate is known: a flow with fewer cannot fill a
    /// queue.
    pub(super) fn least_ramp(&self, window: Nanos) -> u64 {
        self.rate.map_or(0, |rate| (rate.bits_per_second() as f64 * window.as_secs_f64() / 800.0) as u64)
    }
}

/// Options of the sketch. What is not given is chosen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SketchOptions {
    /// Number of snapshots; 8 unless given.
    pub snapshots: Option<usize>,
    /// Rows of each snapshot; 2 unless given.
    pub rows: Option<usize>,
    /// Columns of each snapshot; as many as fit into `memory` unless given.
    pub columns: Option<usize>,
    /// Time that a snapshot is written. Unless given, it starts at about the transmission time of a full packet, and
    /// [grows](AnalysisParams::window_grows).
    pub window: Option<Nanos>,
    /// The memory of the sketch: 64 KiB unless set.
    pub memory: ByteCount,
    /// How old counts expire.
    pub expiry: Expiry,
}

impl Default for SketchOptions {
    fn default() -> Self {
        Self {
            snapshots: None,
            rows: None,
            columns: None,
            window: None,
            memory: ByteCount(64 << 10),
            expiry: Expiry::Tag,
        }
    }
}

impl SketchOptions {
    /// The parameters of the sketch.
    ///
    /// # Errors
    /// Fails if the dimensions are invalid, or if no sketch fits into the memory.
    pub fn params(&self, scale: Scale) -> Result<ConQuestParams, ParamsError> {
        let snapshots = self.snapshots.unwrap_or(SNAPSHOTS);
        let params = match self.columns {
            Some(columns) => ConQuestParams {
                snapshots,
                rows: self.rows.unwrap_or(ROWS),
                columns,
                window: Nanos(1),
                expiry: self.expiry,
                weights: Weights::default(),
                seed: 0,
            },
            None => ConQuestParams::fit(Nanos(1), self.memory, snapshots, self.rows, self.expiry)?,
        };
        // A window that is a power of two needs no division, here as on a switch (section 4.1).
        let window = self.window.unwrap_or(Nanos(scale.window.0.max(64).next_power_of_two()));
        Ok(ConQuestParams { window, ..params })
    }
}

/// The least tau and the first window of the sketch, for a link.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The least value of an adaptive tau.
    pub tau: Nanos,
    /// The first window, unless one is given.
    pub window: Nanos,
}

impl Scale {
    /// The scale of a link. If its rate is not known, both times are a microsecond.
    pub fn from_rate(rate: Option<Rate>) -> Self {
        let time = |bytes: u64| rate.map_or(Nanos(1_000), |rate| rate.time_for(ByteCount(bytes)));
        Self { tau: time(NO_CONGESTION * FULL_FRAME.0), window: time(FULL_FRAME.0) }
    }

    /// The scale of a link behind a queue with a limit. Tau is at most the wait in a half-full queue, as that is congestion.
    pub fn of_queue(rate: Rate, limit: Limit) -> Self {
        let full = match limit {
            Limit::None => Nanos::MAX,
            Limit::Bytes(bytes) => rate.time_for(bytes),
            Limit::Packets(packets) => rate.time_for(ByteCount(packets.saturating_mul(FULL_FRAME.0))),
            Limit::Time(time) => time,
        };
        let scale = Self::from_rate(Some(rate));
        Self { tau: scale.tau.min(Nanos(full.0 / 2)), ..scale }
    }
}

/// The default share of the queue from which a flow is a culprit.
pub const ALPHA: f64 = 0.01;
/// The default number of bursts that are kept.
pub const MOST_BURSTS: usize = 1_000;
/// The default number of departures that are remembered where packets leave in any order.
pub const DEPARTURES: usize = 1 << 20;
/// The default half-life of the longest recent delay, where packets leave in any order.
const ACROSS_CLASSES: Nanos = Nanos(100_000_000);
/// Bytes of a full Ethernet frame.
const FULL_FRAME: ByteCount = ByteCount(1514);
/// Back-to-back full frames that do not count as congestion.
const NO_CONGESTION: u64 = 10;
/// Default dimensions of the sketch.
const SNAPSHOTS: usize = 8;
const ROWS: usize = 2;
