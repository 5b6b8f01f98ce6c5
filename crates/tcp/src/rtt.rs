//! Smoothed round-trip time and the retransmission timeout (RFC 6298 section 2), in integers.

use crate::params::{RtoFloor, TcpParams};
use queuescope_wire::Nanos;

/// Measured round-trip times, and how long to wait for an ACK.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    smoothed: Option<Nanos>,
    variation: Nanos,
    least: Option<Nanos>,
    rto: Nanos,
    min_rto: Nanos,
    max_rto: Nanos,
    floor: RtoFloor,
    granularity: Nanos,
}

impl RttEstimator {
    pub(crate) fn new(params: &TcpParams) -> Self {
        Self {
            smoothed: None,
            variation: Nanos::ZERO,
            least: None,
            rto: params.initial_rto,
            min_rto: params.min_rto,
            max_rto: params.max_rto,
            floor: params.rto_floor,
            granularity: params.clock_granularity,
        }
    }

    /// Adds a measurement (rules 2.2 and 2.3). Alpha is 1/8, beta is 1/4; the variation uses the old smoothed time.
    pub(crate) fn measure(&mut self, rtt: Nanos) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = Nanos(rtt.0 / 2);
            }
            Some(smoothed) => {
                let error = smoothed.0.abs_diff(rtt.0);
                self.variation = Nanos((3 * self.variation.0 + error) >> 2);
                self.smoothed = Some(Nanos((7 * smoothed.0 + rtt.0) >> 3));
            }
        }
        self.reset_backoff();
    }

    /// Updates the minimum over the connection's life with what the profile calls a round-trip time.
    pub(crate) fn note_least(&mut self, rtt: Nanos) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    /// The timer expired (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto = Nanos(self.rto.0.saturating_mul(2)).min(self.max_rto);
    }

    /// Sets the timeout from the measurements alone (rule 2.4).
    pub(crate) fn reset_backoff(&mut self) {
        let Some(smoothed) = self.smoothed else { return };
        let variation = Nanos(4 * self.variation.0).max(self.granularity);
        let rto = match self.floor {
            RtoFloor::Whole => smoothed.saturating_add(variation).max(self.min_rto),
            RtoFloor::Variation => smoothed.saturating_add(variation.max(self.min_rto)),
        };
        self.rto = rto.min(self.max_rto);
    }

    #[inline]
    pub(crate) fn rto(&self) -> Nanos {
        self.rto
    }

    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Nanos> {
        self.smoothed
    }

    #[inline]
    pub(crate) fn least(&self) -> Option<Nanos> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(floor: RtoFloor) -> TcpParams {
        TcpParams { rto_floor: floor, min_rto: Nanos(200_000_000), ..TcpParams::linux() }
    }

    #[test]
    fn the_timeout_follows_the_rules_by_hand() {
        let mut rtt = RttEstimator::new(&params(RtoFloor::Whole));
        assert_eq!(rtt.rto(), Nanos(1_000_000_000));
        rtt.measure(Nanos(100_000_000));
        // SRTT = 100 ms, RTTVAR = 50 ms: 300 ms.
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(Nanos(100_000_000)), Nanos(300_000_000)));
        rtt.measure(Nanos(180_000_000));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5 ms; SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms: 340 ms.
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(Nanos(110_000_000)), Nanos(340_000_000)));
        for _ in 0..100 {
            rtt.measure(Nanos(110_000_000));
        }
        assert_eq!(rtt.rto(), Nanos(200_000_000));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Nanos(800_000_000));
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Nanos(120_000_000_000));
        rtt.measure(Nanos(110_000_000));
        assert_eq!(rtt.rto(), Nanos(200_000_000));
    }

    #[test]
    fn the_floor_may_be_of_the_variation() {
        let mut rtt = RttEstimator::new(&params(RtoFloor::Variation));
        for _ in 0..100 {
            rtt.measure(Nanos(110_000_000));
        }
        assert_eq!(rtt.rto(), Nanos(310_000_000));
    }
}
