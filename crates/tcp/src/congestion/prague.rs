//! Prague (draft-briscoe-iccrg-prague-congestion-control-04; the L4S team's `tcp_prague` for Linux), the congestion
//! control of L4S (RFC 9330, 9331). Its data is ECT(1).
//!
//! It is DCTCP for shared paths. The marked fraction of the data is averaged, `alpha = (1 - g) alpha + g M`, and the
//! first mark in a round trip leaves `window (1 - alpha / 2)`. The differences:
//! - *Additive increase goes on* while a mark is answered; only marked bytes do not count (section 2.4.3). So the window
//!   settles where increase and marks balance, and `alpha` is small.
//! - *Rates do not depend on round-trip times* below a reference of 25 ms (section 2.4.4). Such a flow behaves as if its
//!   round-trip time were `R = max(rtt, 25 ms)`: it adds `(rtt / R)^2` segments in a round trip, averages once per `R`,
//!   and reduces at most once per `R`. Only flows that have lasted for 500 round trips after slow start do that.
//! - `alpha` is 1 until the first mark, and is averaged from then on.
//! - The window has fractions of a segment, and segments are paced over the round trip.
//! - A loss halves the window, and ends the increase until it is repaired.
//!
//! Deviations:
//! - As for DCTCP, an ACK that both ends a round trip and reports its first mark reduces by the `alpha` before it.
//! - A mark's reduction is spread over a round trip by the sender's rate reduction. Linux does nearly the same: a segment
//!   for each ACK.
//! - The detection of queues with classic ECN (section 2.4.5), which Linux has and disables, is left out. So are windows
//!   below two segments.
//! - A loss in the round trip of a mark reduces the window again.
//! - ns-3.37 has no Prague. [`PragueParams::ns3`] is the default with ns-3's end of round trips and without pacing;
//!   [`DctcpParams::ns3`](super::DctcpParams::ns3) is its nearest class.
//! - Linux keeps `alpha` and the window in units of 2^-20; here they are exact.

use super::common::{LARGEST_WINDOW, ReductionStats, Round, RoundEnd, Timeouts, Window};
use super::{Ack, Congestion, CongestionControl, EcnUse, Ns3, Phase};
use queuescope_wire::{Nanos, Rate};

/// How Prague averages, grows and reduces. The default follows the draft.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PragueParams {
    /// The weight of one round trip in the average, `g`: 1/16.
    pub gain: f64,
    /// The average before the first mark: 1.
    pub initial_alpha: f64,
    /// The reference round-trip time: 25 ms. Flows with shorter ones behave as if they had it; zero: none does.
    pub reference: Nanos,
    /// The round trips after slow start until that begins: 500.
    pub transition: u32,
    /// Round trips longer than this are never scaled: 100 ms. It matters only with a longer reference.
    pub largest_scaled: Nanos,
    /// The fraction of the window that a loss leaves: 1/2.
    pub beta: f64,
    /// The smallest window after a reduction, in segments: 2.
    pub floor: u64,
    /// When a round trip ends.
    pub round: RoundEnd,
    /// Whether segments are paced: at the window per round-trip time, and at twice that in slow start below half of the
    /// threshold.
    pub paces: bool,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

impl Default for PragueParams {
    fn default() -> Self {
        Self {
            gain: 1.0 / 16.0,
            initial_alpha: 1.0,
            reference: Nanos(25_000_000),
            transition: 500,
            largest_scaled: Nanos(100_000_000),
            beta: 0.5,
            floor: 2,
            round: RoundEnd::Reached,
            paces: true,
            only_if_limited: true,
        }
    }
}

impl PragueParams {
    /// The default with ns-3's end of round trips and without pacing. ns-3 3.37 has no Prague.
    pub fn ns3() -> Self {
        Self { round: RoundEnd::LastReached, paces: false, only_if_limited: false, ..Self::default() }
    }

    /// Those of the L4S team's `tcp_prague`, which are the draft's. Linux itself has no Prague.
    pub fn linux() -> Self {
        Self::default()
    }

    /// The average after a round trip in which the fraction `marked` of the data was marked.
    #[inline]
    pub fn average(&self, alpha: f64, marked: f64) -> f64 {
        (alpha + self.gain * (marked - alpha)).clamp(0.0, 1.0)
    }

    /// The segments that a round trip of `rtt` adds to the window, if this flow's rate does not depend on it.
    #[inline]
    pub fn increase(&self, rtt: Nanos) -> f64 {
        if rtt == Nanos::ZERO || rtt >= self.reference || rtt > self.largest_scaled {
            return 1.0;
        }
        let ratio = rtt.0 as f64 / self.reference.0 as f64;
        ratio * ratio
    }
}

/// Prague.
#[derive(Debug, Clone)]
pub struct Prague {
    params: PragueParams,
    window: Window,
    /// Growth that does not make a byte yet, in bytes.
    fraction: f64,
    round: Round,
    alpha: f64,
    averaged: Nanos,
    acked: u64,
    marked: u64,
    /// Whether there was a mark.
    saw_mark: bool,
    /// Round trips since slow start.
    rounds: u32,
    reduced: Option<Nanos>,
    smoothed: Nanos,
    timeouts: Timeouts,
    stats: PragueStats,
}

/// Counters of Prague.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PragueStats {
    /// Reductions by cause. Marks that came too early for a reduction do not count.
    pub reductions: ReductionStats,
    /// Marks that came less than the reference round-trip time after the last reduction.
    pub early_marks: u64,
    /// Round trips that went into the average.
    pub averages: u64,
    /// Bytes acknowledged as marked.
    pub marked_bytes: u64,
}

impl Prague {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: PragueParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: Window::new(mss, initial_window),
            fraction: 0.0,
            round: Round::default(),
            alpha: params.initial_alpha.clamp(0.0, 1.0),
            averaged: Nanos::ZERO,
            acked: 0,
            marked: 0,
            saw_mark: false,
            rounds: 0,
            reduced: None,
            smoothed: Nanos::ZERO,
            timeouts: Timeouts::default(),
            stats: PragueStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &PragueStats {
        &self.stats
    }

    /// The average marked fraction of the data, 0.0 to 1.0.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether the flow behaves as if its round-trip time were at least the reference.
    pub fn is_independent(&self) -> bool {
        self.params.reference > Nanos::ZERO && !self.window.in_slow_start() && self.rounds >= self.params.transition
    }

    /// Whether the reference round-trip time has passed since `time`, where it counts.
    fn reference_passed(&self, time: Nanos, now: Nanos) -> bool {
        !self.is_independent() || now.saturating_sub(time) >= self.params.reference
    }

    #[inline]
    fn observe(&mut self, ack: &Ack, marked: u64, now: Nanos) {
        self.acked = self.acked.saturating_add(ack.counted.unwrap_or(0));
        self.marked = self.marked.saturating_add(marked);
        self.stats.marked_bytes = self.stats.marked_bytes.saturating_add(marked);
        self.saw_mark |= marked > 0;
        let mut round = self.round;
        if !round.is_over(ack, self.params.round) || !self.reference_passed(self.averaged, now) {
            return;
        }
        self.round = round;
        if self.saw_mark {
            let marked = if self.acked > 0 { self.marked as f64 / self.acked as f64 } else { 0.0 };
            self.alpha = self.params.average(self.alpha, marked);
            self.stats.averages += 1;
            self.averaged = now;
        }
        (self.acked, self.marked) = (0, 0);
        if !self.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    /// Adds a segment, or the scaled part of one, for each window of unmarked bytes.
    #[inline]
    fn avoid_congestion(&mut self, acked: u64) {
        let increase = if self.is_independent() { self.params.increase(self.smoothed) } else { 1.0 };
        let acked = acked.min(self.window.bytes) as f64;
        let grown = acked * increase * self.window.mss as f64 / self.window.bytes as f64;
        let sum = self.window.bytes as f64 + self.fraction + grown;
        self.window.set(sum as u64);
        self.fraction = sum.fract();
    }

    fn reduce(&mut self, left: f64) {
        self.fraction = 0.0;
        self.window.reduce(left as u64, self.params.floor.max(1));
    }

    fn size(&self) -> f64 {
        self.window.bytes as f64 + self.fraction
    }
}

impl CongestionControl for Prague {
    fn on_established(&mut self, rtt: Option<Nanos>, _now: Nanos) {
        self.smoothed = rtt.unwrap_or(Nanos::ZERO);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        if ack.smoothed_rtt > Nanos::ZERO {
            self.smoothed = ack.smoothed_rtt;
        }
        let marked = ack.marked.min(ack.counted.unwrap_or(0));
        let mut acked = ack.acked.saturating_sub(marked);
        let repairs = matches!(ack.phase, Phase::Recovery | Phase::Disorder);
        if acked > 0 && !repairs && (ack.window_limited || !self.params.only_if_limited) {
            if self.window.in_slow_start() {
                acked = self.window.slow_start(acked, None);
            }
            if acked > 0 && !self.window.in_slow_start() && ack.phase != Phase::Loss {
                self.avoid_congestion(acked);
            }
            if ack.phase == Phase::Reduced {
                // The sender's rate reduction leads to the threshold.
                self.window.threshold = self.window.bytes;
            }
        }
        self.observe(ack, marked, now);
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        if congestion.lost > 0 {
            self.stats.reductions.losses += 1;
            self.reduce(self.size() * self.params.beta);
            return;
        }
        if self.reduced.is_some_and(|reduced| !self.reference_passed(reduced, now)) {
            self.stats.early_marks += 1;
            self.reduce(self.size());
            return;
        }
        self.stats.reductions.marks += 1;
        self.reduced = Some(now);
        self.reduce(self.size() * (1.0 - self.alpha / 2.0));
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.size() * self.params.beta);
        }
        self.fraction = 0.0;
        self.window.collapse();
    }

    fn on_recovered(&mut self, _now: Nanos) {}

    fn on_idle(&mut self, timeouts: u32, floor: u64, _now: Nanos) {
        self.window.decay(timeouts, floor);
        self.fraction = 0.0;
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window.bytes
    }

    #[inline]
    fn slow_start_threshold(&self) -> u64 {
        self.window.threshold
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        if !self.params.paces || self.smoothed == Nanos::ZERO {
            return None;
        }
        let doubles = self.window.bytes < self.window.threshold / 2;
        let bytes = self.window.bytes.min(LARGEST_WINDOW) as f64 * if doubles { 2.0 } else { 1.0 };
        Rate::from_bits_per_second((bytes * 8e9 / self.smoothed.0 as f64) as u64)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::Scalable
    }
}

impl Ns3 for Prague {
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
