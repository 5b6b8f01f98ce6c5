//! What losses say: the short-term bounds, which follow the delivery of the last round trips.

use super::{Bbr3, Sample};
use queuescope_wire::Nanos;

/// The delivery of the last round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latest {
    pub bandwidth: f64,
    pub in_flight: u64,
    /// This round trip ends when a packet is acknowledged that was sent after this many bytes were delivered.
    pub round_end: u64,
    pub round_started: bool,
    pub loses: bool,
    pub losses: u32,
}

impl Bbr3 {
    /// Congestion in this round trip.
    pub(super) fn note_loss(&mut self) {
        if !self.latest.loses {
            self.latest.round_end = self.rounds.delivered;
        }
        self.latest.loses = true;
    }

    pub(super) fn handle_losses(&mut self, sample: &Sample, now: Nanos) {
        if sample.newly_lost == 0 {
            return;
        }
        self.note_loss();
        self.latest.losses = self.latest.losses.saturating_add(1);
        if self.cycle.probes && self.is_too_high(sample) {
            let in_flight = self.params.in_flight_at_loss(sample.sent_in_flight, sample.lost, sample.newly_lost);
            self.handle_too_high(in_flight, sample.limited, now);
        }
    }

    /// Once in a round trip, reduces the short-term bounds if there was congestion.
    pub(super) fn adapt_short_term(&mut self) {
        if !self.latest.round_started {
            return;
        }
        if self.latest.loses && !self.state.accelerates() {
            let beta = self.params.beta;
            let bandwidth = self.short_bandwidth.unwrap_or(self.bandwidths.largest());
            let in_flight = self.short_in_flight.unwrap_or(self.window);
            self.short_bandwidth = Some(self.latest.bandwidth.max(beta * bandwidth));
            self.short_in_flight = Some(self.latest.in_flight.max((beta * in_flight as f64) as u64));
        }
        self.latest.loses = false;
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.short_bandwidth, self.short_in_flight) = (None, None);
    }

    pub(super) fn reset_signals(&mut self) {
        self.latest.loses = false;
        (self.latest.bandwidth, self.latest.in_flight) = (0.0, 0);
    }
}
