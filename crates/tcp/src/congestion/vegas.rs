//! Vegas (Brakmo and Peterson, *TCP Vegas: End to End Congestion Avoidance on a Global Internet*, 1995).
//!
//! Once per round trip it estimates how many of its own packets wait in queues. With a window `w`, the smallest
//! round-trip time ever `base` and that of this round trip `rtt`, they are `w (1 - base / rtt)`. It keeps that number
//! between alpha and beta.
//!
//! Deviations, which Linux and ns-3 share:
//! - Slow start doubles in each round trip, not in every other, and ends when more than gamma packets wait.
//! - Losses are found and repaired as for every other algorithm; the paper has finer timers.
//! - With at most two round-trip times in a round trip, either of which may belong to a delayed ACK, it acts as
//!   NewReno.
//!
//! Parameters describe the differences of Linux and ns-3. Linux divides by `base` in place of `rtt`
//! ([`Waiting::OverBase`]), which finds more packets the longer the queue is. ns-3 hardly reduces its window on a loss
//! ([`OnLoss::OneSegment`]). Both also begin a round trip if duplicate ACKs reported only reordering, Linux after a
//! mark too. Here losses do so, and reordering if the sender reports it ([`Phase::Disorder`], as in ns-3's profile).

use super::common::{ReductionStats, Round, RoundEnd, RttSource, Timeouts, Window, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How Vegas grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VegasParams {
    /// The window grows while fewer packets wait than this: alpha, 2.
    pub alpha: f64,
    /// It shrinks while more wait than this: beta, 4.
    pub beta: f64,
    /// Slow start ends when more wait than this: gamma, 1.
    pub gamma: f64,
    /// How waiting packets are counted.
    pub waiting: Waiting,
    /// What a loss leaves of the window.
    pub on_loss: OnLoss,
    /// What growth counts in slow start, and where it acts as NewReno.
    pub counting: Counting,
    /// When a round trip ends.
    pub round: RoundEnd,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the smallest round-trip time is forgotten when sending resumes with nothing in flight (Linux).
    pub forgets_when_idle: bool,
}

/// How waiting packets are counted, in a window of `w` segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// `w (1 - base / rtt)`.
    Exact,
    /// `w` minus the whole part of `w base / rtt` (ns-3).
    Whole,
    /// The whole part of `w (rtt - base) / base` (Linux).
    OverBase,
}

/// What a loss leaves of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// Half of it.
    Half,
    /// One segment less, or the slow-start threshold if that is smaller (ns-3).
    OneSegment,
}

impl Default for VegasParams {
    fn default() -> Self {
        Self {
            alpha: 2.0,
            beta: 4.0,
            gamma: 1.0,
            waiting: Waiting::Exact,
            on_loss: OnLoss::Half,
            counting: Counting::Bytes { limit: Some(1) },
            round: RoundEnd::Passed,
            rtt: RttSource::Measured,
            forgets_when_idle: false,
        }
    }
}

impl VegasParams {
    /// Those of ns-3 3.37's `TcpVegas`.
    pub fn ns3() -> Self {
        Self {
            waiting: Waiting::Whole,
            on_loss: OnLoss::OneSegment,
            counting: Counting::Acks,
            round: RoundEnd::LastReached,
            rtt: RttSource::Smoothed,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_vegas`.
    pub fn linux() -> Self {
        Self {
            waiting: Waiting::OverBase,
            counting: Counting::Segments { carries: true },
            forgets_when_idle: true,
            ..Self::default()
        }
    }

    /// How many of its packets wait, in a window of `segments` segments; and how many segments the window would have
    /// without them.
    pub fn waiting(&self, segments: u64, base: Nanos, rtt: Nanos) -> (f64, u64) {
        let (window, base, rtt) = (segments as f64, base.0.max(1) as f64, rtt.0.max(1) as f64);
        let without = window * (base / rtt);
        let waiting = match self.waiting {
            Waiting::Exact => window - without,
            Waiting::Whole => window - without.trunc(),
            Waiting::OverBase => (window * (rtt - base) / base).trunc(),
        };
        (waiting, without as u64)
    }
}

/// Vegas.
#[derive(Debug, Clone)]
pub struct Vegas {
    params: VegasParams,
    window: Window,
    round: Round,
    /// The smallest round-trip time ever, and that of this round trip.
    base: Nanos,
    smallest: Nanos,
    samples: u32,
    /// Whether no loss is being repaired.
    active: bool,
    begins_round: bool,
    /// Data was sent while none was in flight: its first ACK ends the round trip, as in Linux. A window of two segments with one ACK for both
    /// would never grow otherwise.
    restarted: bool,
    /// The last ACKs reported data out of order: the next one that advances without such a report begins a round trip.
    disordered: bool,
    timeouts: Timeouts,
    stats: VegasStats,
}

/// Counters of Vegas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VegasStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Round trips after which the window grew by a segment.
    pub increases: u64,
    /// Round trips after which it shrank by a segment.
    pub decreases: u64,
    /// Slow starts that ended because packets waited.
    pub slow_start_exits: u64,
}

impl Vegas {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: VegasParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            round: Round::default(),
            base: Nanos::MAX,
            smallest: Nanos::MAX,
            samples: 0,
            active: true,
            begins_round: false,
            restarted: false,
            disordered: false,
            timeouts: Timeouts::default(),
            stats: VegasStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &VegasStats {
        &self.stats
    }

    /// A round trip with more than two measured times is over.
    fn adjust(&mut self, ack: &Ack) {
        let segments = self.window.segments();
        let (waiting, without) = self.params.waiting(segments, self.base, self.smallest);
        if self.window.in_slow_start() {
            if waiting > self.params.gamma {
                self.stats.slow_start_exits += 1;
                // One more, because `without` is truncated to whole segments.
                self.resize(segments.min(without + 1));
                self.lower_threshold();
            } else {
                self.params.counting.slow_start(&mut self.window, ack.acked);
            }
        } else if waiting > self.params.beta {
            self.stats.decreases += 1;
            self.resize(segments - 1);
            self.lower_threshold();
        } else if waiting < self.params.alpha {
            self.stats.increases += 1;
            self.resize(segments + 1);
        }
        self.window.threshold = self.window.threshold.max(self.window.bytes * 3 / 4);
    }

    fn resize(&mut self, segments: u64) {
        self.window.set(segments.max(2) * self.window.mss);
    }

    /// Makes this congestion avoidance from now on.
    fn lower_threshold(&mut self) {
        let below = match self.params.on_loss {
            OnLoss::OneSegment => self.one_less(),
            OnLoss::Half => self.window.bytes,
        };
        self.window.threshold = self.window.threshold.min(below).max(2 * self.window.mss);
    }

    fn one_less(&self) -> u64 {
        self.window.threshold.min(self.window.bytes - self.window.mss)
    }

    fn reduce(&mut self) {
        let left = match self.params.on_loss {
            OnLoss::Half => self.window.segments() / 2 * self.window.mss,
            OnLoss::OneSegment => self.one_less(),
        };
        self.window.reduce(left, 2);
    }
}

impl CongestionControl for Vegas {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        if let Some(rtt) = self.params.rtt.of(ack)
            && ack.counted.is_some()
        {
            self.base = self.base.min(rtt);
            self.smallest = self.smallest.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        self.disordered |= ack.phase == Phase::Disorder;
        if self.begins_round || (self.disordered && may_grow(ack)) {
            (self.begins_round, self.disordered) = (false, false);
            self.round.begin_with(ack, self.params.round);
            (self.smallest, self.samples) = (Nanos::MAX, 0);
        }
        if !may_grow(ack) {
            return;
        }
        let restarted = std::mem::take(&mut self.restarted);
        if !self.active || ack.phase == Phase::Loss {
            self.params.counting.grow(&mut self.window, ack.acked);
        } else if self.round.is_over(ack, self.params.round) || restarted {
            self.round.begin_with(ack, self.params.round);
            if self.samples <= 2 {
                self.params.counting.grow(&mut self.window, ack.acked);
            } else {
                self.adjust(ack);
            }
            (self.smallest, self.samples) = (Nanos::MAX, 0);
        } else if self.window.in_slow_start() {
            self.params.counting.slow_start(&mut self.window, ack.acked);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
        self.reduce();
        self.active &= congestion.lost == 0;
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce();
        }
        (self.active, self.disordered) = (false, false);
        self.window.collapse();
    }

    fn on_recovered(&mut self, _now: Nanos) {
        self.begins_round |= !self.active;
        self.active = true;
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, _now: Nanos) {
        if self.params.forgets_when_idle && in_flight <= bytes && self.active {
            (self.base, self.smallest, self.samples) = (Nanos::MAX, Nanos::MAX, 0);
            self.restarted = true;
        }
    }

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

impl Ns3 for Vegas {
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
