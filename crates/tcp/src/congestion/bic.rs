//! BIC (Xu, Harfoush and Rhee, *Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks*, 2004).
//!
//! It searches the window between what a loss has left and what it was before, the maximum. Each round trip adds half of the
//! distance to the maximum, at least `S_min` and at most `S_max` segments. Beyond the maximum it looks for a new one: the
//! step is 1 segment and doubles with each round trip, up to `S_max`. A loss below the maximum lowers it further, to make room
//! for other flows (fast convergence). Below 14 segments it is NewReno.
//!
//! Choices:
//! - The paper sets the maximum to a default value while it looks for a new one. Here the old one remains until the next loss,
//!   as in Linux and ns-3, and that loss does not count as one below the maximum.
//! - A timeout sets threshold and maximum as a loss does.
//!
//! Linux and ns-3 count segments, and add one when the count reaches an interval: an integer, which they compute
//! ([`BicSearch::Counted`]). With each round trip they add a quarter of the distance to the maximum, at most 16 segments; when
//! the quarter is one segment or less, `4 / smooth_part` segments, also for the first four beyond it; then a third of the
//! distance from it. Before the first maximum, the interval is at most 20. A loss leaves 0.8 of the window. Their differences:
//! - Linux divides the interval by the average number of segments that an ACK acknowledges. It begins with 2 and, as an
//!   integer in sixteenths, does not fall below 31/16. But Linux also counts segments, so it grows at least twice as fast as the
//!   steps say. The interval is kept for 1/32 s while the window stays. A
//!   timeout forgets the maximum. NewReno's windows include 14.
//! - ns-3 adds at most a segment for each ACK, when the count is above the interval, drops the rest, and keeps the count when
//!   it reduces. Fast convergence lowers the maximum to 0.8 of the window, not 0.9. In slow start, an ACK that acknowledges
//!   nothing adds a segment, and the count of what it leaves for congestion avoidance is below zero.

use super::common::{Reduced, ReductionStats, Timeouts, Window, ends_repair, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How BIC grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BicParams {
    /// Below this window, in segments, it is NewReno: `low_window`, 14.
    pub low_window: u64,
    /// What a loss leaves of the window, above that: 7/8. The paper's beta is the fraction that it takes.
    pub beta: f64,
    /// The largest increase per round trip, in segments: `S_max`, 32.
    pub largest_step: u32,
    /// The smallest one, in segments: `S_min`, 0.01. Only of [`BicSearch::Exact`].
    pub least_step: f64,
    /// What a loss below the maximum makes the maximum.
    pub fast_convergence: FastConvergence,
    /// How the increase follows from the distance to the maximum.
    pub search: BicSearch,
    /// How congestion avoidance counts.
    pub steps: BicSteps,
    /// How long the interval stays the same if the window does (Linux).
    pub refresh: Nanos,
    /// Whether the interval is divided by the average number of segments that an ACK acknowledges (Linux).
    pub follows_delayed_acks: bool,
    /// Whether a timeout forgets the maximum (Linux).
    pub timeout_forgets: bool,
    /// What growth in slow start counts.
    pub counting: Counting,
    /// What congestion halves below `low_window`. Above, it is always the window that is reduced.
    pub reduced: Reduced,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// What a loss below the maximum makes the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastConvergence {
    /// The window before the loss, as any other.
    Off,
    /// The middle between the windows before and after it.
    Middle,
    /// The window after it (ns-3).
    Reduced,
}

/// How the increase follows from the distance to the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BicSearch {
    /// The paper's steps.
    Exact,
    /// The integers of Linux and ns-3.
    Counted {
        /// Next to the maximum, a segment is added in this many quarters of a round trip.
        smooth_part: u32,
    },
}

/// How congestion avoidance counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BicSteps {
    /// Bytes.
    Bytes,
    /// Whole segments, as Reno does (Linux).
    Segments,
    /// Whole segments. Those beyond the interval add one segment, and the rest is dropped. Reductions keep the count (ns-3).
    SegmentsBeyond,
}

impl Default for BicParams {
    fn default() -> Self {
        Self {
            low_window: 14,
            beta: 0.875,
            largest_step: 32,
            least_step: 0.01,
            fast_convergence: FastConvergence::Middle,
            search: BicSearch::Exact,
            steps: BicSteps::Bytes,
            refresh: Nanos::ZERO,
            follows_delayed_acks: false,
            timeout_forgets: false,
            counting: Counting::Bytes { limit: Some(1) },
            reduced: Reduced::Window,
            only_if_limited: true,
        }
    }
}

impl BicParams {
    /// Those of ns-3 3.37's `TcpBic`.
    pub fn ns3() -> Self {
        Self {
            beta: 0.8,
            largest_step: 16,
            fast_convergence: FastConvergence::Reduced,
            search: BicSearch::Counted { smooth_part: 5 },
            steps: BicSteps::SegmentsBeyond,
            counting: Counting::Acks,
            reduced: Reduced::Pipe,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_bic`.
    pub fn linux() -> Self {
        Self {
            low_window: 15,
            beta: 819.0 / 1024.0,
            largest_step: 16,
            search: BicSearch::Counted { smooth_part: 20 },
            steps: BicSteps::Segments,
            refresh: Nanos(31_250_000),
            follows_delayed_acks: true,
            timeout_forgets: true,
            counting: Counting::Segments { carries: true },
            ..Self::default()
        }
    }

    /// How many acknowledged segments add a segment, for a window and the maximum (zero: none) in segments. Without delayed
    /// ACKs.
    pub fn interval(&self, window: f64, maximum: f64) -> f64 {
        if window < self.low_window as f64 {
            return window.max(1.0);
        }
        match self.search {
            BicSearch::Exact => window / self.step(window, maximum),
            BicSearch::Counted { smooth_part } => {
                let counted = self.counted(window as u64, maximum as u64, u64::from(smooth_part));
                counted as f64
            }
        }
    }

    /// The paper's increase per round trip.
    fn step(&self, window: f64, maximum: f64) -> f64 {
        let largest = f64::from(self.largest_step.max(1));
        let step = if maximum == 0.0 {
            largest
        } else if window < maximum {
            (maximum - window) / 2.0
        } else {
            // 1 up to a segment beyond the maximum, 2 for the next two segments, 4 for the next four.
            (window - maximum + 1.0).log2().floor().min(32.0).exp2()
        };
        step.max(self.least_step.max(1e-9)).min(largest)
    }

    fn counted(&self, window: u64, maximum: u64, smooth_part: u64) -> u64 {
        const QUARTERS: u64 = 4;
        let largest = u64::from(self.largest_step.max(1));
        let linear = window / largest;
        let smooth = window.saturating_mul(smooth_part) / QUARTERS;
        let interval = if window < maximum {
            match (maximum - window) / QUARTERS {
                distance if distance > largest => linear,
                0 | 1 => smooth,
                distance => window / distance,
            }
        } else if window < maximum + QUARTERS {
            smooth
        } else if window < maximum + largest * (QUARTERS - 1) {
            window * (QUARTERS - 1) / (window - maximum)
        } else {
            linear
        };
        let bound = if maximum == 0 { 20 } else { u64::MAX };
        interval.min(bound).max(1)
    }
}

/// BIC.
#[derive(Debug, Clone)]
pub struct Bic {
    params: BicParams,
    window: Window,
    /// The window before the last loss, in segments, or what fast convergence has made it; zero if there was none.
    maximum: f64,
    /// What was acknowledged since a segment was added: bytes, or segments in ns-3's version. Linux's count is Reno's.
    count: u64,
    /// The interval, for which window in segments, and since when (Linux).
    interval: (u64, u64, Nanos),
    /// The average number of segments that an ACK acknowledges, in sixteenths.
    for_each_ack: u64,
    /// The phase at the end of the last event.
    phase: Phase,
    timeouts: Timeouts,
    stats: ReductionStats,
}

/// The average number of segments that an ACK acknowledges, at first, in sixteenths.
const TWO_FOR_EACH_ACK: u64 = 2 * 16;

impl Bic {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: BicParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            maximum: 0.0,
            count: 0,
            interval: (0, 0, Nanos::ZERO),
            for_each_ack: TWO_FOR_EACH_ACK,
            phase: Phase::Open,
            timeouts: Timeouts::default(),
            stats: ReductionStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReductionStats {
        &self.stats
    }

    /// The maximum between which and the window it searches, in segments; zero before the first loss.
    pub fn maximum(&self) -> f64 {
        self.maximum
    }

    fn reduce(&mut self, from: u64) {
        let (mss, beta) = (self.window.mss, self.params.beta);
        let exact = self.params.search == BicSearch::Exact;
        let segments = self.window.segments();
        let size = if exact { self.window.bytes as f64 / mss as f64 } else { segments as f64 };
        let lowered = match self.params.fast_convergence {
            FastConvergence::Off => size,
            FastConvergence::Middle => size * (1.0 + beta) / 2.0,
            FastConvergence::Reduced => beta * size,
        };
        self.maximum = if size < self.maximum { lowered } else { size };
        if !exact {
            self.maximum = self.maximum.trunc();
        }
        let left = match (size < self.params.low_window as f64, self.params.steps) {
            (true, BicSteps::Segments) => segments / 2 * mss,
            (true, BicSteps::Bytes | BicSteps::SegmentsBeyond) => from / 2,
            (false, BicSteps::Segments) => (size * beta) as u64 * mss,
            (false, BicSteps::Bytes | BicSteps::SegmentsBeyond) => (size * beta * mss as f64) as u64,
        };
        self.window.reduce(left, 2);
        self.forget_count();
    }

    fn forget_count(&mut self) {
        if self.params.steps != BicSteps::SegmentsBeyond {
            self.count = 0;
        }
    }

    /// The interval of Linux: divided by the segments of an ACK, and kept for a while.
    fn kept_interval(&mut self, now: Nanos) -> u64 {
        let size = self.window.segments();
        let (interval, of, since) = self.interval;
        if of == size && now.saturating_sub(since) <= self.params.refresh {
            return interval;
        }
        let mut interval = self.params.interval(size as f64, self.maximum) as u64;
        if self.params.follows_delayed_acks && size >= self.params.low_window {
            interval = (interval.saturating_mul(16) / self.for_each_ack.max(1)).max(1);
        }
        self.interval = (interval, size, now);
        interval
    }

    fn avoid_congestion(&mut self, acked: u64, now: Nanos) {
        // At most this much can have been in flight.
        let acked = acked.min(2 * self.window.bytes);
        let mss = self.window.mss;
        match self.params.steps {
            BicSteps::Bytes => {
                self.count = self.count.saturating_add(acked);
                let size = self.window.bytes as f64 / mss as f64;
                let each = self.params.interval(size, self.maximum) * mss as f64;
                let more = (self.count as f64 / each).floor();
                if more >= 1.0 {
                    self.count = self.count.saturating_sub((more * each) as u64);
                    self.window.add_segments(more as u64);
                }
            }
            BicSteps::Segments => {
                let interval = self.kept_interval(now);
                self.window.avoid_by_segments_of(acked / mss, interval);
            }
            BicSteps::SegmentsBeyond => {
                if acked / mss > 0 {
                    self.count_beyond(acked / mss);
                }
            }
        }
    }

    fn count_beyond(&mut self, segments: u64) {
        self.count = self.count.wrapping_add(segments) & u64::from(u32::MAX);
        let size = self.window.segments() as f64;
        if self.count > self.params.interval(size, self.maximum) as u64 {
            self.window.add_segments(1);
            self.count = 0;
        }
    }

    /// ns-3 passes on an ACK that acknowledges nothing.
    fn grow_for_nothing(&mut self) {
        if self.window.in_slow_start() {
            self.window.add_segments(1);
            if !self.window.in_slow_start() {
                // None less one, in 32 bits.
                self.count_beyond(u64::from(u32::MAX));
            }
        }
    }
}

impl CongestionControl for Bic {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        // Linux measures before it leaves a phase.
        if ack.phase == Phase::Open && self.phase == Phase::Open {
            let segments = ack.delivered.div_ceil(self.window.mss).min(1 << 20);
            self.for_each_ack = self.for_each_ack + segments - self.for_each_ack / 16;
        }
        self.phase = ack.phase;
        if self.params.steps == BicSteps::SegmentsBeyond && ends_repair(ack) {
            self.grow_for_nothing();
        }
        if !may_grow(ack) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if let Some(rest) = self.params.counting.slow_start_first(&mut self.window, ack.acked) {
            self.avoid_congestion(rest, now);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.count(congestion);
        self.reduce(self.params.reduced.of(&self.window, congestion));
        self.phase = if congestion.lost > 0 { Phase::Recovery } else { Phase::Reduced };
    }

    fn on_timeout(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.params.reduced.of_timeout(&self.window, congestion));
        }
        self.window.collapse();
        self.forget_count();
        if self.params.timeout_forgets {
            (self.maximum, self.interval, self.for_each_ack) = (0.0, (0, 0, Nanos::ZERO), TWO_FOR_EACH_ACK);
        }
        self.phase = Phase::Loss;
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

impl Ns3 for Bic {
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
