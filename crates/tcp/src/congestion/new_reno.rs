//! NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582), with appropriate byte counting (RFC 3465).
//!
//! The sender repairs losses (RFC 6675). What remains of RFC 6582 is "one reduction per window", and the sender ensures
//! it.
//!
//! Deviations:
//! - The window does not grow while a reduction for a mark is under way ([`Phase::Reduced`](super::Phase)), as in Linux
//!   and ns-3. RFC 3168 forbids growth only for the ACK with the echo. The difference is at most a segment.
//! - ns-3's `TcpNewReno` counts ACKs, not bytes: with delayed ACKs it grows half as fast. It also grows if the
//!   application, not the window, limited the sender.

use super::common::{Reduced, ReductionStats, Timeouts, Window, ends_repair, may_grow};
use super::{Ack, Congestion, CongestionControl, Ns3, Phase};
use queuescope_wire::Nanos;

/// How NewReno grows and shrinks. The default follows the RFCs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewRenoParams {
    /// What growth counts.
    pub counting: Counting,
    /// What congestion halves; the result is at least two segments. With the window, the result is whole segments.
    pub reduced: Reduced,
    /// Whether the window grows only when it was what limited the sender (RFC 2861 section 3.1 and Linux's
    /// `is_cwnd_limited`; RFC 9293 does not mention it).
    pub only_if_limited: bool,
}

/// What growth counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// ACKs: one segment each in slow start, `mss * mss / window` bytes in congestion avoidance (RFC 5681 equation 3).
    Acks,
    /// Bytes: the acknowledged ones in slow start, one segment per window of them in congestion avoidance (RFC 3465).
    Bytes {
        /// The most that an ACK adds in slow start, in segments: `L` of RFC 3465. It is 1 after a timeout (its section
        /// 2.3).
        limit: Option<u32>,
    },
    /// Whole segments: the acknowledged ones in slow start, one segment per window of them in congestion avoidance.
    Segments {
        /// Whether what slow start has left at the threshold counts in congestion avoidance, and a reduction restarts
        /// the count (Linux; ns-3's `TcpLinuxReno` does neither).
        carries: bool,
    },
}

impl Default for NewRenoParams {
    fn default() -> Self {
        Self { counting: Counting::Bytes { limit: Some(1) }, reduced: Reduced::InFlight, only_if_limited: true }
    }
}

impl NewRenoParams {
    /// Those of ns-3 3.37's `TcpNewReno`.
    pub fn ns3() -> Self {
        Self { counting: Counting::Acks, reduced: Reduced::Pipe, only_if_limited: false }
    }

    /// Those of Linux's `reno`.
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
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: NewRenoParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        let window = params.counting.window(mss, initial_window);
        Self { params, window, timeouts: Timeouts::default(), stats: ReductionStats::default() }
    }

    /// The counters so far.
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
    /// After a timeout an ACK adds at most a segment, if there is a limit at all (RFC 3465 section 2.3).
    #[inline]
    fn in_phase(self, phase: Phase) -> Self {
        match self {
            Self::Bytes { limit: Some(limit) } if phase == Phase::Loss => Self::Bytes { limit: Some(limit.min(1)) },
            other => other,
        }
    }

    /// Whether the window may grow with this ACK. ns-3's `TcpLinuxReno` also checks its count at the ACK that ends the
    /// repair after a timeout and acknowledges nothing beyond it: the count of a larger window may be worth a segment.
    #[inline]
    pub(super) fn may_grow(self, ack: &Ack) -> bool {
        may_grow(ack) || (self == Self::Segments { carries: false } && ends_repair(ack))
    }

    /// A window that grows in this way.
    pub(super) fn window(self, mss: u32, initial: u64) -> Window {
        let mut window = Window::new(mss, initial);
        window.keeps_credit = self == Self::Segments { carries: false };
        window
    }

    /// Grows the window by Reno's rules for `acked` acknowledged bytes.
    #[inline]
    pub(super) fn grow(self, window: &mut Window, acked: u64) {
        let Some(rest) = self.slow_start_first(window, acked) else { return };
        match self {
            Self::Acks => {
                // An ACK that crosses the threshold also counts in congestion avoidance if it covers more than a
                // segment.
                if rest > 0 {
                    let added = (window.mss * window.mss / window.bytes).max(1);
                    window.set(window.bytes + added);
                }
            }
            Self::Bytes { .. } => window.avoid_congestion(rest),
            Self::Segments { .. } => window.avoid_by_segments(rest / window.mss),
        }
    }

    /// Slow start, if the window is in it. Returns the bytes that remain for congestion avoidance, in whole segments unless
    /// bytes are counted; `None` without congestion avoidance.
    #[inline]
    pub(super) fn slow_start_first(self, window: &mut Window, acked: u64) -> Option<u64> {
        match self {
            Self::Acks => {
                let mut segments = window.whole_segments(acked);
                if window.in_slow_start() && segments > 0 {
                    window.add_segments(1);
                    segments -= 1;
                }
                (!window.in_slow_start()).then_some(segments * window.mss)
            }
            Self::Bytes { limit } => {
                if !window.in_slow_start() {
                    return Some(acked);
                }
                let rest = window.slow_start(acked, limit);
                (rest > 0 && !window.in_slow_start()).then_some(rest)
            }
            Self::Segments { carries } => {
                let segments = window.whole_segments(acked);
                if !window.in_slow_start() {
                    return Some(segments * window.mss);
                }
                let rest = window.slow_start(segments * window.mss, None) / window.mss * window.mss;
                (carries && rest > 0).then_some(rest)
            }
        }
    }

    /// Slow start only: what crosses the threshold is dropped.
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
