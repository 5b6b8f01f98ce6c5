//! Illinois (Liu, Başar and Srikant, *TCP-Illinois: A Loss- and Delay-Based Congestion Control Algorithm for High-Speed
//! Networks*, 2006).
//!
//! It is Reno with an increase alpha and a decrease beta that follow the average queueing delay `da` of a round trip,
//! relative to the largest ever, `dm`. Alpha is largest below 1 % of `dm`; from there it falls as `k1 / (k2 + da)` to
//! its smallest value at `dm`. Beta is smallest up to 10 % of `dm`, largest from 80 % on, and linear in between.
//!
//! This holds for windows of 15 segments and more, as in Linux. Parameters describe the differences of ns-3:
//! - It compares the window in bytes with that number, so in effect this holds for all windows.
//! - It keeps delays in whole milliseconds.
//! - It adds alpha to an integer counter at each ACK, which truncates it: with an alpha below 1 and one segment per
//!   ACK, the window does not grow at all.
//! - It counts round trips of low delay even if no high one came before.
//! - It reduces what is in flight, Linux the window.
//!
//! Linux keeps alpha in units of 1/128 and beta in units of 1/64, and drops the remainder when it adds a segment. Here
//! they are exact, and the remainder counts.

use super::common::{
    Reduced, ReductionStats, Round, RoundEnd, RttSource, Timeouts, Window, ends_repair, may_grow, segments_for,
};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3};
use queuescope_wire::Nanos;

/// How Illinois grows and shrinks. The default follows Linux.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IllinoisParams {
    /// The smallest increase per round trip, in segments: 0.3.
    pub least_alpha: f64,
    /// The largest increase, in segments: 10.
    pub largest_alpha: f64,
    /// The increase for small windows and after a timeout, in segments: 1.
    pub base_alpha: f64,
    /// The smallest fraction of the window that a loss takes: 1/8.
    pub least_beta: f64,
    /// The largest fraction: 1/2.
    pub largest_beta: f64,
    /// The fraction for small windows and after a timeout: 1/2.
    pub base_beta: f64,
    /// From this window on, in segments, alpha and beta follow the delay: 15.
    pub window_threshold: u64,
    /// How many round trips of low delay must follow a high one before alpha is largest: theta, 5.
    pub theta: u32,
    /// The base of which beta is taken.
    pub reduced: Reduced,
    /// What growth in slow start counts.
    pub counting: Counting,
    /// Delays are whole multiples of this.
    pub delay_unit: Nanos,
    /// Whether the counter to which each ACK adds alpha is an integer (ns-3).
    pub whole_steps: bool,
    /// Whether round trips of low delay count even if no high one came before (ns-3).
    pub always_counts_low: bool,
    /// When a round trip ends.
    pub round: RoundEnd,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

impl Default for IllinoisParams {
    fn default() -> Self {
        Self {
            least_alpha: 0.3,
            largest_alpha: 10.0,
            base_alpha: 1.0,
            least_beta: 0.125,
            largest_beta: 0.5,
            base_beta: 0.5,
            window_threshold: 15,
            theta: 5,
            reduced: Reduced::Window,
            counting: Counting::Segments { carries: true },
            delay_unit: Nanos(1_000),
            whole_steps: false,
            always_counts_low: false,
            round: RoundEnd::Passed,
            rtt: RttSource::Measured,
            only_if_limited: true,
        }
    }
}

impl IllinoisParams {
    /// Those of ns-3 3.37's `TcpIllinois`.
    pub fn ns3() -> Self {
        Self {
            window_threshold: 0,
            reduced: Reduced::Pipe,
            counting: Counting::Acks,
            delay_unit: Nanos(1_000_000),
            whole_steps: true,
            always_counts_low: true,
            round: RoundEnd::LastReached,
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_illinois`.
    pub fn linux() -> Self {
        Self::default()
    }

    /// Alpha for an average queueing delay and the largest one, if the delay is not low: the paper's equation 1.
    pub fn alpha(&self, delay: f64, largest: f64) -> f64 {
        let low = largest / 100.0;
        let (delay, largest) = ((delay - low).max(0.0), largest - low);
        let steepness = (self.largest_alpha - self.least_alpha) / self.least_alpha;
        let alpha = largest * self.largest_alpha / (largest + delay * steepness);
        if alpha.is_nan() { self.largest_alpha } else { alpha }
    }

    /// Beta for an average queueing delay and the largest one: the paper's equation 2.
    pub fn beta(&self, delay: f64, largest: f64) -> f64 {
        let (low, high) = (0.1 * largest, 0.8 * largest);
        if delay <= low {
            self.least_beta
        } else if delay >= high {
            self.largest_beta
        } else {
            (self.least_beta * high - self.largest_beta * low + (self.largest_beta - self.least_beta) * delay)
                / (high - low)
        }
    }
}

/// Illinois.
#[derive(Debug, Clone)]
pub struct Illinois {
    params: IllinoisParams,
    window: Window,
    round: Round,
    alpha: f64,
    beta: f64,
    smallest: Nanos,
    largest: Nanos,
    sum: u128,
    samples: u64,
    /// The delay was high, and too few low round trips have followed.
    was_high: bool,
    low_rounds: u32,
    /// Sum of alpha over what was acknowledged since a segment was added.
    steps: f64,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl Illinois {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: IllinoisParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            round: Round::default(),
            alpha: params.largest_alpha,
            beta: params.base_beta,
            smallest: Nanos::MAX,
            largest: Nanos::ZERO,
            sum: 0,
            samples: 0,
            was_high: false,
            low_rounds: 0,
            steps: 0.0,
            timeouts: Timeouts::default(),
            stats: ReductionStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReductionStats {
        &self.stats
    }

    /// The increase per round trip, in segments.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The fraction of the window that a loss takes.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    fn follow_delay(&mut self) {
        if self.window.segments() < self.params.window_threshold {
            (self.alpha, self.beta) = (self.params.base_alpha, self.params.base_beta);
        } else if self.samples > 0 {
            let average = Nanos((self.sum / u128::from(self.samples)) as u64);
            let unit = self.params.delay_unit.0.max(1);
            let units = |time: Nanos| (time.saturating_sub(self.smallest).0 / unit) as f64;
            let (delay, largest) = (units(average), units(self.largest));
            self.beta = self.params.beta(delay, largest);
            self.follow_alpha(delay, largest);
        }
    }

    fn follow_alpha(&mut self, delay: f64, largest: f64) {
        if delay > largest / 100.0 {
            self.was_high = true;
            self.alpha = self.params.alpha(delay, largest);
            return;
        }
        if !self.was_high {
            self.alpha = self.params.largest_alpha;
            if !self.params.always_counts_low {
                return;
            }
        }
        self.low_rounds += 1;
        if self.low_rounds >= self.params.theta {
            (self.low_rounds, self.was_high, self.alpha) = (0, false, self.params.largest_alpha);
        }
    }

    fn reduce(&mut self, from: u64) {
        let segments = (from / self.window.mss) as f64 * (1.0 - self.beta);
        self.window.reduce(segments as u64 * self.window.mss, 2);
        if !self.params.whole_steps {
            self.steps = 0.0;
        }
    }

    fn begin_round(&mut self) {
        (self.sum, self.samples) = (0, 0);
    }

    fn avoid_congestion(&mut self, acked: u64) {
        if self.params.whole_steps {
            let segments = self.window.whole_segments(acked);
            self.steps = (self.steps + segments as f64 * self.alpha).trunc();
        } else {
            // At most two windows can have been in flight.
            let acked = acked.min(2 * self.window.bytes);
            self.steps += acked as f64 / self.window.mss as f64 * self.alpha;
        }
        let more;
        (more, self.steps) = segments_for(self.steps, self.window.segments());
        self.window.add_segments(more);
    }
}

impl CongestionControl for Illinois {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        if let Some(rtt) = self.params.rtt.of(ack)
            && ack.counted.is_some()
        {
            self.smallest = self.smallest.min(rtt);
            self.largest = self.largest.max(rtt);
            self.sum += u128::from(rtt.0);
            self.samples += 1;
        }
        // ns-3 keeps the count of a larger window, and an ACK that acknowledges nothing may find it worth segments.
        if !(may_grow(ack) || (self.params.whole_steps && ends_repair(ack))) {
            return;
        }
        if self.round.is_over(ack, self.params.round) {
            self.follow_delay();
            self.begin_round();
        }
        if self.params.only_if_limited && !ack.window_limited {
            return;
        }
        if self.window.in_slow_start() {
            self.params.counting.slow_start(&mut self.window, ack.acked);
        } else {
            self.avoid_congestion(ack.acked);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.count(congestion);
        self.reduce(self.params.reduced.of(&self.window, congestion));
    }

    fn on_timeout(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.params.reduced.of_timeout(&self.window, congestion));
        }
        self.window.collapse();
        (self.alpha, self.beta) = (self.params.base_alpha, self.params.base_beta);
        (self.low_rounds, self.was_high) = (0, false);
        self.begin_round();
        self.round.begin(congestion.next);
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

impl Ns3 for Illinois {
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
