//! How an interface is watched.

use crate::acts::ActingOptions;
use crate::error::WatchError;
use crate::listen::Listen;
use queuescope_analysis::{AnalysisOptions, AnalysisParams, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_live::{ProbeParams, sketch};
use queuescope_meter::{History, Tau};
use queuescope_wire::Nanos;

/// How an interface is watched.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The interface.
    pub interface: String,
    /// Which packets are taken to be in the queue, if an expression says so.
    pub only: Option<String>,
    /// Whether the flow of a tunnelled packet is the one inside.
    pub inner: bool,
    /// Whether the kernel hands over every packet, and not only those that waited for at least half of tau.
    pub every_packet: bool,
    /// How the queue is analysed; the probe has the sketch. Tau is a millisecond unless given.
    pub asked: AnalysisOptions,
    /// What is done to flows.
    pub acting: ActingOptions,
    /// Where metrics are served.
    pub metrics: Option<Listen>,
    /// Whether it is drawn on the terminal.
    pub is_drawn: bool,
}

/// Packets that are remembered, and flows.
const DEPARTURES: usize = (1 << 18) - 1;
const MOST_FLOWS: usize = 1 << 16;
/// The longest wait that the probe can measure.
const LONGEST: Nanos = Nanos(137_000_000_000);
/// From which delay on a queue is congested.
const TAU: Nanos = Nanos(1_000_000);

impl WatchOptions {
    /// All packets of an interface, which are not touched; nothing is drawn.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            only: None,
            inner: false,
            every_packet: false,
            asked: AnalysisOptions::default(),
            acting: ActingOptions::default(),
            metrics: None,
            is_drawn: false,
        }
    }

    /// Whether some packets are not examined: of those that are only counted it is not known which are.
    pub(super) fn is_filtered(&self) -> bool {
        self.only.is_some() || self.asked.victims.is_some()
    }

    /// From which delay on the queue is congested.
    pub(super) fn tau(&self) -> Nanos {
        self.asked.tau.unwrap_or(TAU)
    }

    /// How the kernel looks.
    pub(super) fn probe(&self) -> Result<ProbeParams, WatchError> {
        if !(Nanos(1)..=LONGEST).contains(&self.tau()) {
            return Err(WatchError::Tau);
        }
        let (tau, alpha) = (self.tau(), self.asked.alpha);
        Ok(ProbeParams { tau, alpha, all: self.every_packet, ..ProbeParams::default() })
    }

    /// How what it hands over is analysed.
    pub(super) fn analysis(&self, probe: &ProbeParams) -> Result<AnalysisParams, WatchError> {
        let history = History::Departures(DEPARTURES);
        let mut params = self.asked.params(Unknown::OF_OUTSIDE, history, None, Scale::of(None))?;
        params.tau = Tau::Given(self.tau());
        params.estimators = Vec::new();
        params.sketch = sketch(probe.window_shift);
        params.window_grows = false;
        params.details = true;
        params.hands_out = true;
        params.most_flows = Some(MOST_FLOWS);
        // Processors stamp packets before they wait for the queue's lock, and may be held up in between.
        params.order_tolerance = self.tau();
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_is_what_the_probe_can_measure() {
        let mut options = WatchOptions::new("lo");
        assert_eq!(options.probe().unwrap().tau, TAU);
        for tau in [Nanos::ZERO, Nanos(LONGEST.0 + 1)] {
            options.asked.tau = Some(tau);
            assert!(matches!(options.probe(), Err(WatchError::Tau)), "{tau}");
        }
    }

    #[test]
    fn an_expression_that_means_nothing_is_an_error() {
        let mut options = WatchOptions::new("lo");
        options.asked.victims = Some("nonsense".to_owned());
        assert!(matches!(options.analysis(&ProbeParams::default()), Err(WatchError::Analysis(_))));
    }
}
