//! NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582), with appropriate byte counting (RFC 3465).
//!
//! The sender repairs losses (RFC 6675); so of RFC 6582 only "one reduction a window" is left, which the sender sees to.
//!
//! Deviations:
//! - The window does not grow while a reduction for a mark is under way ([`Phase::Reduced`](super::Phase)); RFC 3168 forbids
//!   it for the ACK that has the echo only. Linux and ns-3 do as is done here. It is a segment at most.
//! - ns-3's `TcpNewReno` counts ACKs, not bytes: with delayed ACKs it grows half as fast. It grows also where the
//!   application, not the window, kept the sender from sending.

use super::common::{Reduced, ReductionStats, Timeouts, Window, may_grow};
use super::{Ack, Congestion, CongestionControl, Ns3, Phase};
use queuescope_wire::Nanos;

/// How NewReno grows and shrinks. The default is as the RFCs have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewRenoParams {
    /// What growth counts.
    pub counting: Counting,
    /// Of what half is left on congestion; no less than two segments. Of the window it is whole segments.
    pub reduced: Reduced,
    /// Whether the window grows only when it was what kept the sender from sending (RFC 9293 has no word on it; RFC 2861
    /// section 3.1 and Linux's `is_cwnd_limited`).
    pub only_if_limited: bool,
}

/// What growth counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// ACKs: in slow start a segment for each, in congestion avoidance `mss * mss / window` bytes (RFC 5681 equation 3).
    Acks,
    /// Bytes: in slow start those acknowledged, in congestion avoidance a segment for a window's worth (RFC 3465).
    Bytes {
        /// The most that an ACK adds in slow start, in segments: `L` of RFC 3465. After a timeout it is 1 (its section 2.3).
        limit: Option<u32>,
    },
    /// Whole segments: in slow start those acknowledged, in congestion avoidance one for as many as are in the window.
    Segments {
        /// Whether what slow start leaves over at the threshold counts in congestion avoidance, and a reduction begins the
        /// count anew (Linux; ns-3's `TcpLinuxReno` does neither).
        carries: bool,
    },
}

impl Default for NewRenoParams {
    fn default() -> Self {
        Self { counting: Counting::Bytes { limit: Some(1) }, reduced: Reduced::InFlight, only_if_limited: true }
    }
}

impl NewRenoParams {
    /// As ns-3.37's `TcpNewReno`.
    pub fn ns3() -> Self {
        Self { counting: Counting::Acks, reduced: Reduced::Pipe, only_if_limited: false }
    }

    /// As Linux's `reno`.
    pub fn linux() -> Self {
        let counting = Counting::Segments { carries: true };
        Self { counting, reduced: Reduced::Window, only_if_limited: true }
    }
}

/// NewReno.
#[derive(Debug, Clone)]
pub struct NewReno {
    params: NewRenoParams,
    window: Window,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl NewReno {
    /// A window of `initial_window` bytes, for segments of `mss` bytes. Nothing in it is random.
    pub fn new(params: NewRenoParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        let window = params.counting.window(mss, initial_window);
        Self { params, window, timeouts: Timeouts::default(), stats: ReductionStats::default() }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &ReductionStats {
        &self.stats
    }

    fn halve(&mut self, bytes: u64) {
        let half = match self.params.reduced {
            Reduced::Window => bytes / self.window.mss / 2 * self.window.mss,
            Reduced::InFlight | Reduced::Pipe => bytes / 2,
        };
        self.window.reduce(half, 2);
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        if !self.params.counting.may_grow(ack) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        self.params.counting.in_phase(ack.phase).grow(&mut self.window, ack.acked);
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.count(congestion);
        self.halve(self.params.reduced.of(&self.window, congestion));
    }

    fn on_timeout(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.timeouts += 1;
        if self.timeouts.is_first() {
            self.halve(self.params.reduced.of_timeout(&self.window, congestion));
        }
        self.window.collapse();
    }

    fn on_recovered(&mut self, _now: Nanos) {}

    fn on_idle(&mut self, timeouts: u32, floor: u64, _now: Nanos) {
        self.window.decay(timeouts, floor);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window.bytes
    }

    #[inline]
    fn slow_start_threshold(&self) -> u64 {
        self.window.threshold
    }
}

impl Ns3 for NewReno {
    fn forget_timeouts(&mut self) {
        self.timeouts = Timeouts::default();
    }

    fn hold(&mut self, bytes: u64) {
        self.window.set(bytes);
    }

    fn restart(&mut self, initial_window: u64) {
        self.window.restart(initial_window);
    }
}

impl Counting {
    /// After a timeout an ACK adds a segment at most (RFC 3465 section 2.3), where there is a limit at all.
    #[inline]
    fn in_phase(self, phase: Phase) -> Self {
        match self {
            Self::Bytes { limit: Some(limit) } if phase == Phase::Loss => Self::Bytes { limit: Some(limit.min(1)) },
            other => other,
        }
    }

    /// Whether the window may grow with this ACK. ns-3's `TcpLinuxReno` looks at its count, too, with the ACK that ends the
    /// repair after a timeout and acknowledges nothing beyond it: what a larger window left there may be worth a segment.
    #[inline]
    pub(super) fn may_grow(self, ack: &Ack) -> bool {
        let ends_repair = ack.acked == 0 && ack.delivered > 0 && ack.phase == Phase::Open;
        may_grow(ack) || (ends_repair && self == Self::Segments { carries: false })
    }

    /// A window that grows by it.
    pub(super) fn window(self, mss: u32, initial: u64) -> Window {
        let mut window = Window::new(mss, initial);
        window.keeps_credit = self == Self::Segments { carries: false };
        window
    }

    /// Reno's growth by what an ACK acknowledged.
    #[inline]
    pub(super) fn grow(self, window: &mut Window, acked: u64) {
        match self {
            Self::Acks => {
                let mut segments = window.whole_segments(acked);
                if window.in_slow_start() && segments > 0 {
                    window.add_segments(1);
                    segments -= 1;
                }
                // An ACK that crosses the threshold counts in congestion avoidance too if it is for more than a segment.
                if !window.in_slow_start() && segments > 0 {
                    let added = (window.mss * window.mss / window.bytes).max(1);
                    window.set(window.bytes + added);
                }
            }
            Self::Bytes { limit } => {
                let mut rest = acked;
                if window.in_slow_start() {
                    rest = window.slow_start(acked, limit);
                    if rest == 0 || window.in_slow_start() {
                        return;
                    }
                }
                window.avoid_congestion(rest);
            }
            Self::Segments { carries } => {
                let mut segments = window.whole_segments(acked);
                if window.in_slow_start() {
                    segments = window.slow_start(segments * window.mss, None) / window.mss;
                    if !carries || segments == 0 {
                        return;
                    }
                }
                window.avoid_by_segments(segments);
            }
        }
    }

    /// Slow start only: what crosses the threshold is left.
    #[inline]
    pub(super) fn slow_start(self, window: &mut Window, acked: u64) {
        match self {
            Self::Acks => {
                if window.whole_segments(acked) > 0 {
                    window.add_segments(1);
                }
            }
            Self::Bytes { limit } => {
                window.slow_start(acked, limit);
            }
            Self::Segments { .. } => {
                let segments = window.whole_segments(acked);
                window.slow_start(segments * window.mss, None);
            }
        }
    }
}
