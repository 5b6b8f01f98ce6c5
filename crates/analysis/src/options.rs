//! How queues are analysed, before it is known which.

use crate::analysis::{ALPHA, AnalysisParams, MOST_BURSTS, Scale, SketchOptions};
use crate::analyzer::Error;
use crate::show::Show;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{self as ingest, PacketFilter};
use queuescope_meter::{History, Tau};
use queuescope_scenario::Meter;
use queuescope_sketch::Estimator;
use queuescope_wire::{Flows, Granularity, KeyMask, Nanos, Prefixes, Rate};

/// How queues are analysed, whichever they are. [`params`](Self::params) adds what depends on the queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnalysisOptions {
    /// What a flow is, at one granularity or several.
    pub by: Vec<Granularity>,
    /// From which delay on the queue is congested; unless given, an eighth of the longest so far.
    pub tau: Option<Nanos>,
    /// A flow contributes if it is at least this share of the queue.
    pub alpha: f64,
    /// The report lists only culprits whose rate jumped by this factor; all if there is none.
    pub ramped: Option<f64>,
    /// Bursts to keep, those with the longest delays.
    pub most_bursts: usize,
    /// Uses the longest recent delay in place of each packet's own, with this half-life.
    pub across_classes: Option<Nanos>,
    /// Whose waiting is examined, as an expression.
    pub victims: Option<String>,
    /// Which flows are listed, as an expression.
    pub show: Option<String>,
    /// The sketch.
    pub sketch: SketchOptions,
    /// The estimators to judge.
    pub estimators: Vec<Estimator>,
    /// Whether pictures of queue depth are wanted.
    pub pictures: bool,
    /// Whether everything is wanted of each burst.
    pub details: bool,
}

impl AnalysisOptions {
    /// What a flow is unless something else is chosen.
    pub const BY: [Granularity; 2] = [Granularity::FiveTuple, Granularity::Destination(Prefixes::WHOLE)];

    /// How one queue is analysed, where some attributes of packets are not known.
    ///
    /// # Errors
    /// If no sketch can be as asked for, or an expression means nothing.
    pub fn params(
        &self,
        unknown: Unknown,
        history: History,
        rate: Option<Rate>,
        scale: Scale,
    ) -> Result<AnalysisParams, Error> {
        let mut estimators = self.estimators.clone();
        estimators.sort_unstable();
        estimators.dedup();
        let params = AnalysisParams::new(scale);
        Ok(AnalysisParams {
            history,
            backlog_is_known: history == History::Fifo,
            tau: self.tau.map_or(params.tau, Tau::Given),
            alpha: self.alpha,
            ramped: self.ramped,
            estimators,
            sketch: self.sketch.params(scale)?,
            window_grows: self.sketch.window.is_none(),
            across_classes: self.across_classes,
            pictures: self.pictures,
            most_bursts: self.most_bursts,
            details: self.details,
            rate,
            victims: PacketFilter::victims(self.victims.as_deref(), unknown).map_err(ingest::Error::from)?,
            show: Show::of(self.show.as_deref())?,
            ..params
        })
    }

    /// The granularities, each once.
    pub fn granularities(&self) -> Vec<Granularity> {
        let mut granularities = Vec::new();
        for granularity in &self.by {
            if !granularities.contains(granularity) {
                granularities.push(*granularity);
            }
        }
        granularities
    }

    /// What of a packet's key is kept: what the granularities need, or all of it where an expression says which packets are victims.
    pub fn mask(&self) -> KeyMask {
        if self.victims.is_some() { KeyMask::WHOLE } else { KeyMask::covering(&self.granularities()) }
    }

    /// Ids for the flows of keys of which that is kept; takes idle flows back before it holds more than `limit`.
    pub fn flows(&self, limit: usize) -> Flows {
        Flows::masked(self.mask(), &self.granularities(), limit)
    }

    /// The same, where what is as it is by default is as a meter of a scenario has it.
    #[must_use]
    pub fn with_meter(&self, meter: &Meter) -> Self {
        let mut options = self.clone();
        options.tau = options.tau.or(meter.tau);
        if options.alpha == ALPHA {
            options.alpha = meter.alpha;
        }
        if options.by == Self::BY && meter.by != Granularity::FiveTuple {
            options.by = vec![meter.by];
        }
        options
    }
}

impl Default for AnalysisOptions {
    /// Culprits from 1 % of the queue on, by five-tuple and destination.
    fn default() -> Self {
        Self {
            by: Self::BY.to_vec(),
            tau: None,
            alpha: ALPHA,
            ramped: None,
            most_bursts: MOST_BURSTS,
            across_classes: None,
            victims: None,
            show: None,
            sketch: SketchOptions::default(),
            estimators: vec![Estimator::Overlap],
            pictures: false,
            details: false,
        }
    }
}
