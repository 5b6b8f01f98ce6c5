//! What the model determines: the pacing rate, and how much may be in flight.

use super::{AfterRecovery, Bbr, BbrMode, Quantum, Repair};
use crate::congestion::Ack;
use crate::congestion::common::LARGEST_WINDOW;
use queuescope_wire::Nanos;

impl Bbr {
    pub(super) fn gains(&self) -> (f64, f64) {
        match self.mode {
            BbrMode::Startup => (self.params.high_gain, self.params.high_gain),
            BbrMode::Drain => (1.0 / self.params.high_gain, self.params.high_gain),
            BbrMode::ProbeBandwidth => {
                let policed = self.policer.as_ref().is_some_and(|policer| policer.bandwidth().is_some());
                let gain = if policed { 1.0 } else { self.params.cycle[self.cycle_index] };
                (gain, self.params.window_gain)
            }
            BbrMode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// Bytes in flight at a bandwidth and a gain, with room for the send quantum and for `more` bytes.
    pub(super) fn in_flight(&self, bandwidth: f64, gain: f64, more: u64) -> u64 {
        let Some(path) = self.path else {
            return self.initial_window;
        };
        let product = (gain * bandwidth * 1e-9 * path.0 as f64) as u64;
        let mut bytes = product.min(LARGEST_WINDOW).saturating_add(more).saturating_add(3 * self.quantum());
        if self.params.even_segments {
            bytes = bytes.div_ceil(self.mss).next_multiple_of(2).saturating_mul(self.mss);
        }
        if self.mode == BbrMode::ProbeBandwidth && self.cycle_index == 0 {
            bytes = bytes.saturating_add(2 * self.mss);
        }
        bytes.min(LARGEST_WINDOW)
    }

    fn quantum(&self) -> u64 {
        match self.params.quantum {
            Quantum::Segment => self.mss,
            Quantum::ByRate if self.pacing < 1.2e6 / 8.0 => self.mss,
            Quantum::ByRate => ((self.pacing * 1e-3) as u64).min(64 << 10).max(2 * self.mss),
        }
    }

    pub(super) fn set_first_pacing(&mut self, rtt: Nanos) {
        let unit = self.params.first_rtt_unit.0.max(1);
        let rtt = Nanos((rtt.0 / unit).max(1).saturating_mul(unit));
        let bandwidth = self.rounded(self.window as f64 / rtt.as_secs_f64());
        self.pacing = self.rounded(self.params.high_gain * bandwidth);
        if self.params.bandwidth_from_window {
            self.bandwidth.begin(bandwidth);
        }
    }

    pub(super) fn set_pacing(&mut self, gain: f64, smoothed_rtt: Nanos) {
        let pacing = self.rounded(gain * self.used_bandwidth() * (1.0 - self.params.pacing_margin));
        if !self.paced_by_rtt && smoothed_rtt > Nanos::ZERO {
            self.paced_by_rtt = true;
            self.set_first_pacing(smoothed_rtt);
        }
        if self.full.is_full || pacing > self.pacing {
            self.pacing = pacing;
        }
    }

    pub(super) fn set_window(&mut self, ack: &Ack, gain: f64) {
        let acked = ack.delivered;
        if acked > 0 && !self.conserve(ack) {
            self.grow(acked, gain);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.window = self.window.min(self.least_window());
        }
        self.window = self.window.clamp(self.mss, LARGEST_WINDOW);
    }

    /// In recovery, takes lost bytes off the window, and conserves packets for a round trip. Returns whether packets
    /// are conserved.
    fn conserve(&mut self, ack: &Ack) -> bool {
        let Repair::Recovery { conserves } = self.repair else {
            return false;
        };
        let lost = ack.rate.map_or(0, |sample| sample.lost);
        self.window = self.window.saturating_sub(lost).max(self.mss);
        if conserves {
            self.window = self.window.max(ack.in_flight.saturating_add(ack.delivered));
        }
        conserves
    }

    fn grow(&mut self, acked: u64, gain: f64) {
        let bandwidth = self.used_bandwidth();
        let room = match &self.aggregation {
            Some(aggregation) if self.full.is_full => aggregation.room(bandwidth),
            _ => 0,
        };
        let target = self.in_flight(bandwidth, gain, room);
        let sum = self.window.saturating_add(acked);
        if self.full.is_full {
            // What ns-3 keeps in 32 bits wraps: see `AfterRecovery::Threshold`.
            let wraps = self.params.after_recovery == AfterRecovery::Threshold && self.window == u64::from(u32::MAX);
            self.window = if wraps { acked } else { sum.min(target) };
        } else if self.window < target || self.rounds.delivered < self.initial_window {
            self.window = sum;
        }
        self.window = self.window.max(self.least_window());
    }
}
