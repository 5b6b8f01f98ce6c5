//! What the model determines: the pacing rate, and how much may be in flight.

use super::{Bbr3, Bbr3State, Sample};
use crate::congestion::common::LARGEST_WINDOW;
use queuescope_wire::Nanos;

impl Bbr3 {
    pub(super) fn gains(&self) -> (f64, f64) {
        let (params, window) = (&self.params, self.params.window_gain);
        match self.state {
            Bbr3State::Startup => (params.startup_gain, window),
            Bbr3State::Drain => (params.drain_gain, window),
            Bbr3State::Down => (params.down_gain, window),
            Bbr3State::Cruise | Bbr3State::Refill => (1.0, window),
            Bbr3State::Up => (params.up_gain, params.up_window_gain),
            Bbr3State::ProbeRtt => (1.0, params.probe_rtt_gain),
        }
    }

    /// A multiple of the bandwidth-delay product in bytes; the initial window before the first round-trip time.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(path) = self.path else { return self.initial_window };
        ((gain * bandwidth * 1e-9 * path.0 as f64) as u64).min(LARGEST_WINDOW)
    }

    pub(super) fn least_window(&self) -> u64 {
        self.params.least_window.saturating_mul(self.mss).min(LARGEST_WINDOW)
    }

    /// At least three quanta and the smallest window; a little more while probing.
    fn quantized(&self, bytes: u64) -> u64 {
        let quantum = ((self.pacing * 1e-3) as u64).min(64 << 10).max(2 * self.mss);
        let bytes = bytes.max(3 * quantum).max(self.least_window());
        let more = if self.state == Bbr3State::Up { 2 * self.mss } else { 0 };
        bytes.saturating_add(more).min(LARGEST_WINDOW)
    }

    /// Bytes in flight at a bandwidth and a gain.
    pub(super) fn in_flight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.quantized(self.product(bandwidth, gain))
    }

    /// The bandwidth-delay product, or the window if congestion has made it smaller.
    pub(super) fn target_in_flight(&self) -> u64 {
        self.product(self.bandwidth, 1.0).min(self.window)
    }

    /// The long-term bound without what is left to others; infinite without a bound.
    pub(super) fn with_headroom(&self) -> u64 {
        let Some(bound) = self.long_in_flight else { return u64::MAX };
        let headroom = ((self.params.headroom * bound as f64) as u64).max(self.mss);
        bound.saturating_sub(headroom).max(self.least_window())
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.product(self.bandwidth, self.params.probe_rtt_gain).max(self.least_window())
    }

    pub(super) fn set_first_pacing(&mut self, rtt: Nanos) {
        self.pacing = self.params.startup_gain * self.initial_window as f64 / rtt.as_secs_f64();
    }

    pub(super) fn set_pacing(&mut self, gain: f64, smoothed_rtt: Nanos) {
        if !self.paced_by_rtt && smoothed_rtt > Nanos::ZERO {
            self.paced_by_rtt = true;
            self.set_first_pacing(smoothed_rtt);
        }
        let pacing = gain * self.bandwidth * (1.0 - self.params.pacing_margin);
        if self.full.reached || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    pub(super) fn set_window(&mut self, sample: &Sample) {
        let extra = self.aggregation.room(self.bandwidth);
        let most = self.quantized(self.product(self.bandwidth, self.window_gain).saturating_add(extra));
        let sum = self.window.saturating_add(sample.acked);
        if self.full.reached {
            self.window = sum.min(most);
        } else if self.window < most || self.rounds.delivered < self.initial_window {
            self.window = sum;
        }
        self.window = self.window.max(self.least_window());
        if self.state == Bbr3State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.window = self.window.min(self.bound()).clamp(self.mss, LARGEST_WINDOW);
    }

    /// The bound of the window by recent and by earlier congestion.
    fn bound(&self) -> u64 {
        let long = match self.state {
            Bbr3State::Startup | Bbr3State::Drain => u64::MAX,
            Bbr3State::Down | Bbr3State::Refill | Bbr3State::Up => self.long_in_flight.unwrap_or(u64::MAX),
            Bbr3State::Cruise | Bbr3State::ProbeRtt => self.with_headroom(),
        };
        long.min(self.short_in_flight.unwrap_or(u64::MAX)).max(self.least_window())
    }
}
