//! The cycle of probes for bandwidth, and the long-term bound of what is in flight (the draft's section on ProbeBW).

use super::{Bbr3, Bbr3State, Sample};
use crate::congestion::common::LARGEST_WINDOW;
use queuescope_wire::Nanos;

/// What ACKs say about the last probe for bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing.
    Init,
    /// The pipe is being filled.
    Refilling,
    /// Packets of the probe are under way.
    Starting,
    /// Packets of the probe are being acknowledged.
    Feedback,
    /// The probe is over, and its last packets are being acknowledged.
    Stopping,
}

/// The state of the cycle.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    pub acks: AckPhase,
    /// Whether samples are those of a probe to which no loss has been answered yet.
    pub probes: bool,
    /// Whether the last probe met too many losses, and whether this one turned back where that did.
    pub too_high: bool,
    pub precautionary: bool,
    /// Bytes acknowledged since the bound was raised, and how many raise it by a segment.
    acked: u64,
    acked_per_segment: u64,
    up_rounds: u32,
    /// Round trips since the last probe, and the time of its end.
    pub rounds: u64,
    began: Nanos,
    wait: Nanos,
}

impl Cycle {
    pub fn new() -> Self {
        Self {
            acks: AckPhase::Init,
            probes: false,
            too_high: false,
            precautionary: false,
            acked: 0,
            acked_per_segment: u64::MAX,
            up_rounds: 0,
            rounds: 0,
            began: Nanos::ZERO,
            wait: Nanos::ZERO,
        }
    }
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Nanos) {
        self.reset_signals();
        self.cycle.acked_per_segment = u64::MAX;
        self.cycle.rounds = self.random.below(2);
        let more = self.random.below(self.params.more_wait.0.saturating_add(1));
        self.cycle.wait = self.params.wait.saturating_add(Nanos(more));
        self.cycle.began = now;
        self.cycle.acks = AckPhase::Stopping;
        self.rounds.begin();
        self.enter(Bbr3State::Down);
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        (self.cycle.up_rounds, self.cycle.acked) = (0, 0);
        self.cycle.precautionary = false;
        self.cycle.acks = AckPhase::Refilling;
        self.rounds.begin();
        self.enter(Bbr3State::Refill);
    }

    fn start_up(&mut self, sample: &Sample) {
        self.cycle.acks = AckPhase::Starting;
        self.rounds.begin();
        self.full.reset(sample.rate);
        self.stats.probes += 1;
        self.enter(Bbr3State::Up);
        self.raise_slope();
    }

    /// Advances the cycle with an ACK.
    pub(super) fn follow_cycle(&mut self, sample: &Sample, now: Nanos) {
        if !self.full.reached || self.adapt_long_term(sample) {
            return;
        }
        let state = self.state;
        match state {
            Bbr3State::Down | Bbr3State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            Bbr3State::Down if self.is_time_to_cruise(sample) => self.enter(Bbr3State::Cruise),
            Bbr3State::Refill if self.rounds.started => {
                self.cycle.probes = true;
                self.start_up(sample);
            }
            Bbr3State::Up if self.is_time_to_go_down(sample) => {
                self.cycle.too_high = false;
                self.start_down(now);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Nanos) -> bool {
        let reno = (self.target_in_flight() / self.mss).min(self.params.most_rounds);
        now > self.cycle.began.saturating_add(self.cycle.wait) || self.cycle.rounds >= reno
    }

    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.with_headroom() && sample.in_flight <= self.in_flight(self.bandwidths.largest(), 1.0)
    }

    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        let bound = self.long_in_flight;
        // The bound is reached when no other segment fits.
        let reaches = |bound| sample.in_flight_before.saturating_add(self.mss) > bound;
        if self.params.precautionary && self.cycle.too_high && bound.is_some_and(reaches) {
            self.cycle.precautionary = true;
            return true;
        }
        if sample.window_limited && bound.is_some_and(|bound| self.window >= bound) {
            // The bound limits the bandwidth, so a bandwidth that does not grow says nothing.
            self.full.reset(sample.rate);
            return false;
        }
        self.full.now
    }

    /// Notes what ACKs say about the last probe. Raises the long-term bound where losses are few. Returns whether a new
    /// state has begun.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        if self.rounds.started {
            match self.cycle.acks {
                AckPhase::Starting => self.cycle.acks = AckPhase::Feedback,
                AckPhase::Stopping => {
                    self.cycle.probes = false;
                    self.cycle.acks = AckPhase::Init;
                    if self.state.is_in_cycle() {
                        self.cycles += u64::from(!sample.limited);
                        if self.cycle.precautionary && !self.cycle.too_high {
                            self.start_refill();
                            return true;
                        }
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::Feedback => {}
            }
        }
        let Some(bound) = self.long_in_flight.filter(|_| !self.is_too_high(sample)) else { return false };
        self.long_in_flight = Some(bound.max(sample.sent_in_flight));
        if self.state == Bbr3State::Up {
            self.raise_long_term(sample);
        }
        false
    }

    /// The bound grows by 1, 2, 4, ... segments in successive round trips.
    fn raise_slope(&mut self) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_segment = (self.window / growth).max(self.mss);
    }

    fn raise_long_term(&mut self, sample: &Sample) {
        let Some(bound) = self.long_in_flight.filter(|bound| sample.window_limited && self.window >= *bound) else {
            return;
        };
        self.cycle.acked = self.cycle.acked.saturating_add(sample.acked);
        let segments = self.cycle.acked / self.cycle.acked_per_segment;
        self.cycle.acked -= segments * self.cycle.acked_per_segment;
        self.long_in_flight = Some(bound.saturating_add(segments.saturating_mul(self.mss)).min(LARGEST_WINDOW));
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// Whether losses show that too much was in flight.
    pub(super) fn is_too_high(&self, sample: &Sample) -> bool {
        sample.lost as f64 > sample.sent_in_flight as f64 * self.params.loss_threshold
    }

    /// The probe that is under way put too much in flight: `in_flight` bytes.
    pub(super) fn handle_too_high(&mut self, in_flight: u64, limited: bool, now: Nanos) {
        self.cycle.too_high = true;
        self.cycle.probes = false;
        self.stats.too_high += 1;
        if !limited {
            let least = (self.target_in_flight() as f64 * self.params.beta) as u64;
            self.long_in_flight = Some(in_flight.max(least).min(LARGEST_WINDOW));
        }
        if self.state == Bbr3State::Up {
            self.start_down(now);
        }
    }
}
