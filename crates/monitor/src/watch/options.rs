//! Options for watching an interface.

use crate::acts::ActingOptions;
use crate::error::WatchError;
use crate::listen::Listen;
use crate::p4air::P4airOptions;
use queuescope_analysis::{AnalysisOptions, AnalysisParams, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_live::ProbeParams;
use queuescope_meter::{History, Tau};
use queuescope_wire::Nanos;

/// Options for watching an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The name of the interface.
    pub interface: String,
    /// An expression that selects the packets that are in the queue; all if there is none.
    pub only: Option<String>,
    /// Whether the flow of a tunnelled packet is the one inside the tunnel.
    pub inner: bool,
    /// Whether the kernel hands over every packet, or only those whose sojourn time is at least half of tau.
    pub every_packet: bool,
    /// Options of the analysis. Those of the sketch are not used. Tau defaults to 1 ms.
    pub asked: AnalysisOptions,
    /// The action on flows that contribute.
    pub acting: ActingOptions,
    /// P4air on the interface, instead of an action.
    pub p4air: Option<P4airOptions>,
    /// The address at which metrics are served.
    pub metrics: Option<Listen>,
    /// Whether a view is drawn on the terminal.
    pub is_drawn: bool,
}

/// The numbers of departures and flows that the analysis remembers.
const DEPARTURES: usize = (1 << 18) - 1;
const MOST_FLOWS: usize = 1 << 16;
/// The longest sojourn time that the probe can measure.
const LONGEST: Nanos = Nanos(137_000_000_000);
/// The time in which the growth of a flow is measured: 4.2 ms.
const WINDOW: Nanos = Nanos(1 << 22);
/// The default sojourn time above which a queue is congested.
const TAU: Nanos = Nanos(1_000_000);

/// Why the behaviour of flows is not judged.
const WAITED: &str = "not applicable: only packets that waited are reported, unless every packet is";

impl WatchOptions {
    /// Watches all packets of an interface, without acting and without a view.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            only: None,
            inner: false,
            every_packet: false,
            asked: AnalysisOptions::default(),
            acting: ActingOptions::default(),
            p4air: None,
            metrics: None,
            is_drawn: false,
        }
    }

    /// Whether some packets are excluded from the analysis. It is then unknown which of the merely counted packets are.
    pub(super) fn is_filtered(&self) -> bool {
        self.only.is_some() || self.asked.victims.is_some()
    }

    /// The sojourn time above which the queue is congested.
    pub(super) fn tau(&self) -> Nanos {
        self.asked.tau.unwrap_or(TAU)
    }

    /// The parameters of the kernel probe.
    pub(super) fn probe(&self) -> Result<ProbeParams, WatchError> {
        if !(Nanos(1)..=LONGEST).contains(&self.tau()) {
            return Err(WatchError::Tau);
        }
        let (tau, alpha) = (self.tau(), self.asked.alpha);
        // Behaviour is judged by every packet, with its drops.
        Ok(ProbeParams { tau, alpha, all: self.every_packet, drops: self.every_packet, ..ProbeParams::default() })
    }

    /// The parameters of the analysis of the packets that the probe hands over.
    pub(super) fn analysis(&self) -> Result<AnalysisParams, WatchError> {
        let history = History::Departures(DEPARTURES);
        let mut params = self.asked.params(Unknown::OF_OUTSIDE, history, None, Scale::from_rate(None))?;
        params.tau = Tau::Given(self.tau());
        params.estimators = Vec::new();
        // Growth of a flow is measured in windows of the sketch, also without a sketch.
        params.sketch.window = WINDOW;
        params.sketch.snapshots = 8;
        params.window_grows = false;
        params.details = true;
        params.hands_out = true;
        params.most_flows = Some(MOST_FLOWS);
        params.not_judged = (!self.every_packet).then_some(WAITED);
        // Processors stamp packets before they wait for the lock of the queue, and may be interrupted in between.
        params.order_tolerance = self.tau();
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_is_limited_to_what_the_probe_can_measure() {
        let mut options = WatchOptions::new("lo");
        assert_eq!(options.probe().unwrap().tau, TAU);
        for tau in [Nanos::ZERO, Nanos(LONGEST.0 + 1)] {
            options.asked.tau = Some(tau);
            assert!(matches!(options.probe(), Err(WatchError::Tau)), "{tau}");
        }
    }

    #[test]
    fn an_invalid_expression_is_an_error() {
        let mut options = WatchOptions::new("lo");
        options.asked.victims = Some("nonsense".to_owned());
        assert!(matches!(options.analysis(), Err(WatchError::Analysis(_))));
    }
}
