//! How departures are analysed.

use crate::show::Show;
use queuescope_ingest::Chosen;
use queuescope_ingest::records::Departures;
use queuescope_meter::{History, Tau};
use queuescope_sketch::{ConQuestParams, Estimator};
use queuescope_wire::{Nanos, Rate};

/// How departures are analysed.
#[derive(Debug, Clone)]
pub struct AnalysisParams {
    /// Whether packets leave in the order in which they came.
    pub history: History,
    /// When the queue counts as congested.
    pub tau: Tau,
    /// A flow contributes if it is at least this share of the queue.
    pub alpha: f64,
    /// The estimators to judge.
    pub estimators: Vec<Estimator>,
    /// The sketch's dimensions; its window is where it starts if it may grow.
    pub sketch: ConQuestParams,
    /// Whether the window doubles whenever a delay is longer than the snapshots cover.
    pub window_grows: bool,
    /// Asks about the longest recent delay instead of each packet's own, with this half-life (section 3.6).
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
    /// Whether bursts are asked for as they end ([`Analysis::ended`](super::Analysis::ended)), beside those that are kept.
    pub tells: bool,
    /// From so many flows on, the oldest are forgotten with all that left when they did, however much of that may still be asked about;
    /// none where flows are bounded by what is in the queue.
    pub most_flows: Option<usize>,
    /// Where it is not known that packets leave in order: arrivals that are no further apart are in no order.
    pub order_tolerance: Nanos,
    /// Whose waiting is examined; everybody's if there is none.
    pub victims: Option<Chosen<Departures>>,
    /// Which flows are listed; all if there is none.
    pub show: Option<Show>,
}

impl AnalysisParams {
    /// A hundredth of what the link sends in a time, where its rate is known: less of a flow fills no queue.
    pub(super) fn least_ramp(&self, window: Nanos) -> u64 {
        self.rate.map_or(0, |rate| (rate.bits_per_second() as f64 * window.as_secs_f64() / 800.0) as u64)
    }
}
