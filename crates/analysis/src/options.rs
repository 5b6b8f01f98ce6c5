//! Options of an analysis that do not depend on the queue.

use crate::analysis::{ALPHA, AnalysisParams, MOST_BURSTS, Scale, SketchOptions};
use crate::analyzer::Error;
use crate::show::Show;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{self as ingest, PacketFilter};
use queuescope_meter::{History, Tau};
use queuescope_scenario::Meter;
use queuescope_sketch::Estimator;
use queuescope_wire::{Flows, Granularity, KeyMask, Nanos, Prefixes, Rate};

/// Options of an analysis that do not depend on the queue. [`params`](Self::params) adds what depends on it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnalysisOptions {
    /// What a flow is, at one granularity or several.
    pub by: Vec<Granularity>,
    /// The least delay at which the queue is congested. If it is `None`, an eighth of the longest delay so far.
    pub tau: Option<Nanos>,
    /// The least share of the queue at which a flow contributes, from 0 to 1.
    pub alpha: f64,
    /// The report lists only culprits whose rate jumped by at least this factor; all if it is `None`.
    pub ramped: Option<f64>,
    /// Largest number of bursts to keep: those with the longest delays.
    pub most_bursts: usize,
    /// If given, the longest recent delay is used in place of each packet's own, with this half-life.
    pub across_classes: Option<Nanos>,
    /// Which packets' waiting is examined, as an expression; of all packets if it is `None`.
    pub victims: Option<String>,
    /// Which flows are listed, as an expression; all if it is `None`.
    pub show: Option<String>,
    /// The sketch.
    pub sketch: SketchOptions,
    /// The estimators to judge.
    pub estimators: Vec<Estimator>,
    /// Whether to draw the queue depth over time.
    pub pictures: bool,
    /// Whether to compute all details of each burst, as [`AnalysisParams::details`] describes.
    pub details: bool,
}

impl AnalysisOptions {
    /// The default of `by`.
    pub const BY: [Granularity; 2] = [Granularity::FiveTuple, Granularity::Destination(Prefixes::WHOLE)];

    /// The parameters for one queue, whose packets lack the `unknown` attributes.
    ///
    /// # Errors
    /// Fails if `alpha` is not a share, if the dimensions of the sketch are invalid, or if an expression is invalid.
    pub fn params(
        &self,
        unknown: Unknown,
        history: History,
        rate: Option<Rate>,
        scale: Scale,
    ) -> Result<AnalysisParams, Error> {
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(Error::Alpha { alpha: self.alpha });
        }
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
            show: Show::from_text(self.show.as_deref())?,
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

    /// The parts of flow keys to keep: what the granularities need, or everything if an expression chooses victims.
    pub fn mask(&self) -> KeyMask {
        if self.victims.is_some() { KeyMask::WHOLE } else { KeyMask::covering(&self.granularities()) }
    }

    /// A flow index for keys with [`mask`](Self::mask). It frees idle flows before it holds more than `limit`.
    pub fn flows(&self, limit: usize) -> Flows {
        Flows::masked(self.mask(), &self.granularities(), limit)
    }

    /// The same options, with defaults replaced by the values of a scenario's meter.
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
    /// Flows by five-tuple and by destination, culprits from 1 % of the queue.
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
