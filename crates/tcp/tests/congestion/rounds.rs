//! Round trips of ACKs, spaced as a test needs them.

use crate::congestion::MSS;
use queuescope_tcp::{Ack, Congestion, CongestionControl, Phase};
use queuescope_wire::Nanos;

/// The sender's side of a path whose ACKs the test makes.
pub struct Rounds {
    pub now: Nanos,
    pub phase: Phase,
    /// Whether the window limits the sender.
    pub limited: bool,
    acknowledged: u64,
    sent: u64,
}

impl Rounds {
    pub fn new() -> Self {
        Self { now: Nanos::ZERO, phase: Phase::Open, limited: true, acknowledged: 0, sent: 0 }
    }

    /// Sends what the window allows. A round-trip time later an ACK arrives for each `each` segments, spread over the
    /// next round-trip time.
    pub fn run(&mut self, control: &mut impl CongestionControl, rtt: Nanos, each: u64) {
        self.run_spread(control, rtt, each, rtt);
    }

    /// Like `run`, with the ACKs spread over `spread`, which passes as time. The ACKs measure `rtt`.
    pub fn run_spread(&mut self, control: &mut impl CongestionControl, rtt: Nanos, each: u64, spread: Nanos) {
        let segments = control.window() / MSS;
        let began = self.now;
        self.sent = self.acknowledged + segments * MSS;
        let mut left = segments;
        while left > 0 {
            let these = each.min(left);
            left -= these;
            self.now = Nanos(began.0 + spread.0 * (segments - left) / segments);
            self.ack(control, these * MSS, rtt);
        }
    }

    /// One ACK for `bytes` bytes, after which as many are sent.
    pub fn ack(&mut self, control: &mut impl CongestionControl, bytes: u64, rtt: Nanos) {
        self.marked_ack(control, bytes, rtt, false);
    }

    /// One ACK that reports marks or not.
    pub fn marked_ack(&mut self, control: &mut impl CongestionControl, bytes: u64, rtt: Nanos, marked: bool) {
        self.sent = self.sent.max(self.acknowledged + bytes);
        let in_flight_before = self.sent - self.acknowledged;
        self.acknowledged += bytes;
        self.sent = self.sent.max(self.acknowledged + bytes);
        let ack = Ack {
            acked: bytes,
            delivered: bytes,
            in_flight_before,
            in_flight: in_flight_before - bytes,
            unacknowledged: self.acknowledged,
            next: self.acknowledged + control.window(),
            left_last: self.acknowledged + control.window(),
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            phase: self.phase,
            window: control.window(),
            marked: if marked { bytes } else { 0 },
            counted: Some(bytes),
            window_limited: self.limited,
            rate: None,
        };
        control.on_ack(&ack, self.now);
        self.sent = self.sent.max(ack.next);
    }

    /// Loses a segment of a full window and repairs it.
    pub fn lose(&mut self, control: &mut impl CongestionControl) {
        control.on_congestion(&self.loss(control), self.now);
        control.on_recovered(self.now);
    }

    /// The loss of a segment of a full window.
    pub fn loss(&self, control: &impl CongestionControl) -> Congestion {
        Congestion { in_flight: control.window(), lost: MSS, delivered: 0, next: self.acknowledged + control.window() }
    }

    /// A mark echoed in a full window.
    pub fn mark(&self, control: &impl CongestionControl) -> Congestion {
        Congestion { lost: 0, ..self.loss(control) }
    }
}
