//! How departures are analysed.

use crate::show::Show;
use queuescope_ingest::PacketFilter;
use queuescope_ingest::records::Departures;
use queuescope_meter::{History, Tau};
use queuescope_queue::Limit;
use queuescope_sketch::{ConQuestParams, Estimator, Expiry, ParamsError, Weights};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// How departures are analysed. [`new`](Self::new) sets what a FIFO of captured packets needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnalysisParams {
    /// Whether packets leave in the order in which they came.
    pub history: History,
    /// Whether departures say what was in the queue when they entered. If not, what left while they waited stands for it.
    pub backlog_is_known: bool,
    /// When the queue counts as congested.
    pub tau: Tau,
    /// A flow contributes if it is at least this share of the queue.
    pub alpha: f64,
    /// The report lists only culprits whose rate jumped by this factor; all if there is none.
    pub ramped: Option<f64>,
    /// The estimators to judge.
    pub estimators: Vec<Estimator>,
    /// The sketch's dimensions; its window is where it starts if it may grow.
    pub sketch: ConQuestParams,
    /// Whether the window doubles whenever a delay is longer than the snapshots cover.
    pub window_grows: bool,
    /// Uses the longest recent delay in place of each packet's own, with this half-life (section 3.6).
    pub across_classes: Option<Nanos>,
    /// Whether pictures of queue depth are wanted.
    pub pictures: bool,
    /// Bursts to keep, those with the longest delays.
    pub most_bursts: usize,
    /// Whether everything is wanted of each burst, not only what the text shows: the culprits of its worst packet, and what its flows
    /// have in common even if its delay is not among the longest.
    pub details: bool,
    /// The link's, where it is known.
    pub rate: Option<Rate>,
    /// Whether bursts are handed out as they end ([`Analysis::ended`](super::Analysis::ended)), beside those that are kept.
    pub hands_out: bool,
    /// From so many flows on, the oldest are forgotten with all that left when they did, however much of that may still be needed;
    /// none where flows are bounded by what is in the queue.
    pub most_flows: Option<usize>,
    /// Where it is not known that packets leave in order: arrivals that are no further apart are in no order.
    pub order_tolerance: Nanos,
    /// Whose waiting is examined; that of all packets if there is none.
    pub victims: Option<PacketFilter<Departures>>,
    /// Which flows are listed; all if there is none.
    pub show: Option<Show>,
}

impl AnalysisParams {
    /// The defaults: of a FIFO, with an adaptive tau from `scale` on, culprits from 1 % of the queue on, and a sketch of 64 KiB.
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
        }
    }

    /// The same for a queue of ours from which packets leave in any order: the flows that a packet met are those that left while it
    /// waited, and a burst is when the slowest of them wait. Departures still say what was in the queue.
    #[must_use]
    pub fn in_any_order(self) -> Self {
        let across_classes = self.across_classes.or(Some(ACROSS_CLASSES));
        Self { history: History::Departures(DEPARTURES), across_classes, ..self }
    }

    /// A hundredth of what the link sends in a time, where its rate is known: less of a flow fills no queue.
    pub(super) fn least_ramp(&self, window: Nanos) -> u64 {
        self.rate.map_or(0, |rate| (rate.bits_per_second() as f64 * window.as_secs_f64() / 800.0) as u64)
    }
}

/// What the sketch is to be like; what is not given is chosen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SketchOptions {
    /// Snapshots; 8 unless given.
    pub snapshots: Option<usize>,
    /// Rows of each snapshot; 2 unless given.
    pub rows: Option<usize>,
    /// Columns of each snapshot; unless given, what fits into `memory`.
    pub columns: Option<usize>,
    /// How long a snapshot is written; unless given, about the time of a full packet, and [growing](AnalysisParams::window_grows).
    pub window: Option<Nanos>,
    /// The memory of the sketch: 64 KiB unless set.
    pub memory: ByteCount,
    /// How old counts go away.
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
    /// The dimensions of such a sketch.
    ///
    /// # Errors
    /// If no sketch fits into the memory.
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

/// The times that tau and the sketch's window start from.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The least that tau is, unless it is given.
    pub tau: Nanos,
    /// The shortest window, unless it is given.
    pub window: Nanos,
}

impl Scale {
    /// Those of a link; where its rate is not known, a microsecond.
    pub fn of(rate: Option<Rate>) -> Self {
        let time = |bytes: u64| rate.map_or(Nanos(1_000), |rate| rate.time_for(ByteCount(bytes)));
        Self { tau: time(NO_CONGESTION * FULL_FRAME.0), window: time(FULL_FRAME.0) }
    }

    /// Those of a link behind a queue with a limit: how long a packet waits where it is half as full as it can be is no
    /// longer "no congestion".
    pub fn of_queue(rate: Rate, limit: Limit) -> Self {
        let full = match limit {
            Limit::None => Nanos::MAX,
            Limit::Bytes(bytes) => rate.time_for(bytes),
            Limit::Packets(packets) => rate.time_for(ByteCount(packets.saturating_mul(FULL_FRAME.0))),
            Limit::Time(time) => time,
        };
        let scale = Self::of(Some(rate));
        Self { tau: scale.tau.min(Nanos(full.0 / 2)), ..scale }
    }
}

/// The share of the queue from which on a flow is a culprit, unless another is chosen.
pub const ALPHA: f64 = 0.01;
/// Bursts that are kept, unless another number is chosen.
pub const MOST_BURSTS: usize = 1_000;
/// Departures that are remembered where packets leave in any order, unless another number is chosen.
pub const DEPARTURES: usize = 1 << 20;
/// Where packets leave in any order, how fast the longest wait is forgotten unless another time is chosen.
const ACROSS_CLASSES: Nanos = Nanos(100_000_000);
/// A full Ethernet frame.
const FULL_FRAME: ByteCount = ByteCount(1514);
/// Full frames in a row that are no congestion.
const NO_CONGESTION: u64 = 10;
/// Dimensions of a sketch that are not given.
const SNAPSHOTS: usize = 8;
const ROWS: usize = 2;
