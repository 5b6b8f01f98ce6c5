//! Hybla (Caini and Firrincieli, *TCP Hybla: a TCP Enhancement for Heterogeneous Networks*, 2004).
//!
//! It makes the rate of a flow independent of its round-trip time: with `rho`, the round-trip time divided by a
//! reference of 25 ms and at least 1, each ACK adds `2^rho - 1` segments in slow start and `rho^2 / w` segments
//! in congestion avoidance (section 3). A connection starts with `rho` times the usual window. The rest is Reno's.
//!
//! Deviations:
//! - The round-trip time is the smallest measured so far, so a queue does not speed up growth. Both implementations do
//!   the same with smoothed ones.
//! - The paper's pacing and its estimate of the first threshold are not part of this algorithm, as in ns-3 and Linux.
//!   Without them, slow start over long paths overshoots by a lot.
//!
//! Parameters describe the differences of ns-3 and Linux:
//! - ns-3's reference is 50 ms, and its round-trip times are whole milliseconds. The window does not start larger.
//! - Linux has `rho` in whole eighths. Each ACK counts once, however much it acknowledges, in whole 1/128 segments. The
//!   window starts with `rho` segments, rounded down: one segment below 50 ms. The exponent is at most about 16, the
//!   window at most 65 535 segments. It grows as Reno while it repairs a timeout, and ignores round-trip times while it
//!   answers a loss or mark. If the handshake was not measured, `rho` stays 1.

use super::common::{LARGEST_WINDOW, Reduced, ReductionStats, RttSource, Timeouts, Window, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How Hybla grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyblaParams {
    /// The reference round-trip time: RTT0, 25 ms.
    pub reference: Nanos,
    /// Round-trip times are whole multiples of this.
    pub rtt_unit: Nanos,
    /// Rho is rounded down to multiples of 1 divided by this; `None` does not round.
    pub rho_parts: Option<u32>,
    /// The window at the start.
    pub start: HyblaStart,
    /// What an ACK adds.
    pub steps: HyblaSteps,
    /// The largest whole part of rho as an exponent in slow start.
    pub largest_exponent: Option<u32>,
    /// The largest window, in segments.
    pub largest_window: Option<u64>,
    /// Whether it grows as Reno while it repairs a timeout, and ignores round-trip times while it answers a loss or mark
    /// (Linux).
    pub repairs_as_reno: bool,
    /// What congestion halves; the result is at least two segments. With the window, the result is whole segments.
    pub reduced: Reduced,
    /// The most segments that an ACK counts for in slow start, where bytes are counted; and what Reno's growth counts.
    pub counting: Counting,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// The window with which Hybla starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyblaStart {
    /// The sender's, times rho.
    Scaled,
    /// Rho segments, rounded down (Linux).
    Rho,
    /// The sender's (ns-3).
    Unchanged,
}

/// What an ACK adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyblaSteps {
    /// In proportion to the acknowledged bytes. Congestion avoidance adds whole segments, and the rest counts later.
    Bytes,
    /// For each whole segment; in slow start, once per ACK (ns-3).
    Segments,
    /// Once per ACK, in whole parts of a segment (Linux).
    Parts {
        /// The number of parts: 128.
        of: u32,
    },
}

impl Default for HyblaParams {
    fn default() -> Self {
        Self {
            reference: Nanos(25_000_000),
            rtt_unit: Nanos(1),
            rho_parts: None,
            start: HyblaStart::Scaled,
            steps: HyblaSteps::Bytes,
            largest_exponent: None,
            largest_window: None,
            repairs_as_reno: false,
            reduced: Reduced::InFlight,
            counting: Counting::Bytes { limit: Some(1) },
            rtt: RttSource::Measured,
            only_if_limited: true,
        }
    }
}

impl HyblaParams {
    /// Those of ns-3 3.37's `TcpHybla`.
    pub fn ns3() -> Self {
        Self {
            reference: Nanos(50_000_000),
            rtt_unit: Nanos(1_000_000),
            start: HyblaStart::Unchanged,
            steps: HyblaSteps::Segments,
            reduced: Reduced::Pipe,
            counting: Counting::Acks,
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_hybla`.
    pub fn linux() -> Self {
        Self {
            rho_parts: Some(8),
            start: HyblaStart::Rho,
            steps: HyblaSteps::Parts { of: 128 },
            largest_exponent: Some(16),
            largest_window: Some(65_535),
            repairs_as_reno: true,
            reduced: Reduced::Window,
            counting: Counting::Segments { carries: true },
            rtt: RttSource::Smoothed,
            ..Self::default()
        }
    }

    /// Rho for a round-trip time; at most a million, which no path reaches.
    pub fn rho(&self, rtt: Nanos) -> f64 {
        let whole = |time: Nanos| time.0 / self.rtt_unit.0.max(1);
        let rho = whole(rtt) as f64 / whole(self.reference).max(1) as f64;
        let rho = match self.rho_parts.map(|parts| f64::from(parts.max(1))) {
            Some(parts) => (rho * parts).floor() / parts,
            None => rho,
        };
        rho.clamp(1.0, 1e6)
    }

    /// The segments that an ACK for one segment adds in slow start: `2^rho - 1`.
    pub fn slow_start_step(&self, rho: f64) -> f64 {
        let whole = self.largest_exponent.map_or(rho.floor(), |most| rho.floor().min(f64::from(most)));
        let fraction = 2_f64.powf(rho.fract());
        match self.steps {
            HyblaSteps::Parts { of } => {
                let of = f64::from(of.max(1));
                (2_f64.powf(whole) * (fraction * of).floor() - of) / of
            }
            HyblaSteps::Bytes | HyblaSteps::Segments => 2_f64.powf(whole + rho.fract()) - 1.0,
        }
    }
}

/// Hybla.
#[derive(Debug, Clone)]
pub struct Hybla {
    params: HyblaParams,
    window: Window,
    rho: f64,
    smallest: Nanos,
    /// The part of a segment that the window has not grown by yet.
    steps: f64,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl Hybla {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: HyblaParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            rho: 1.0,
            smallest: Nanos::MAX,
            steps: 0.0,
            timeouts: Timeouts::default(),
            stats: ReductionStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReductionStats {
        &self.stats
    }

    /// The round-trip time relative to the reference.
    pub fn rho(&self) -> f64 {
        self.rho
    }

    #[inline]
    fn observe(&mut self, ack: &Ack) {
        if let Some(rtt) = self.params.rtt.of(ack)
            && rtt <= self.smallest
        {
            self.smallest = rtt;
            self.rho = self.params.rho(rtt);
        }
    }

    fn grow(&mut self, ack: &Ack) {
        match self.params.steps {
            HyblaSteps::Bytes => {
                if self.window.in_slow_start() {
                    let limit = match self.params.counting {
                        Counting::Bytes { limit: Some(limit) } if ack.phase != Phase::Loss => u64::from(limit),
                        Counting::Bytes { limit: None } => u64::MAX,
                        _ => 1,
                    };
                    let acked = ack.acked.min(limit.saturating_mul(self.window.mss)) as f64;
                    self.slow_start(self.params.slow_start_step(self.rho) * acked);
                } else {
                    let acked = ack.acked.min(LARGEST_WINDOW) as f64;
                    self.steps += self.rho * self.rho * acked / self.window.bytes as f64;
                    self.add_whole_steps();
                }
            }
            HyblaSteps::Segments => {
                let mut segments = self.window.whole_segments(ack.acked);
                if self.window.in_slow_start() && segments > 0 {
                    self.slow_start((self.params.slow_start_step(self.rho) * self.window.mss as f64).trunc());
                    segments -= 1;
                }
                if !self.window.in_slow_start() {
                    let size = self.window.segments();
                    // No ACK is for more; the bound keeps the loop short.
                    for _ in 0..segments.min(1 << 16) {
                        self.steps += self.rho.powf(2.0) / size as f64;
                    }
                    self.add_whole_steps();
                }
            }
            HyblaSteps::Parts { of } => self.grow_by_parts(f64::from(of.max(1))),
        }
    }

    fn grow_by_parts(&mut self, of: f64) {
        let starts = self.window.in_slow_start();
        let parts = if starts {
            self.params.slow_start_step(self.rho) * of
        } else {
            (self.rho * self.rho * of / self.window.segments() as f64).floor()
        };
        if !starts && parts < of {
            self.window.credit = self.window.credit.saturating_add(1);
        }
        let left = (parts % of + self.steps * of).round();
        self.steps = left % of / of;
        self.window.add_segments((parts / of) as u64 + (left / of) as u64);
        if left >= of {
            self.window.credit = 0;
        }
        // An increase below a part is nothing. Then it grows as Reno, ACK by ACK.
        if parts == 0.0 && self.window.credit >= self.window.segments() {
            self.window.add_segments(1);
            self.window.credit = 0;
        }
        if starts {
            self.window.set(self.window.bytes.min(self.window.threshold));
        }
    }

    fn slow_start(&mut self, bytes: f64) {
        self.window.set(self.window.bytes.saturating_add(bytes as u64).min(self.window.threshold));
    }

    fn add_whole_steps(&mut self) {
        if self.steps >= 1.0 {
            let whole = self.steps.trunc();
            self.steps -= whole;
            self.window.add_segments(whole as u64);
        }
    }

    fn halve(&mut self, bytes: u64) {
        let half = match self.params.reduced {
            Reduced::Window => bytes / self.window.mss / 2 * self.window.mss,
            Reduced::InFlight | Reduced::Pipe => bytes / 2,
        };
        self.window.reduce(half, 2);
    }
}

impl CongestionControl for Hybla {
    fn on_established(&mut self, rtt: Option<Nanos>, _now: Nanos) {
        let rtt = rtt.filter(|rtt| rtt.0 > 0);
        if self.params.start != HyblaStart::Unchanged
            && let Some(rtt) = rtt
        {
            self.rho = self.params.rho(rtt);
        }
        match self.params.start {
            HyblaStart::Scaled => self.window.set((self.window.bytes as f64 * self.rho) as u64),
            HyblaStart::Rho => self.window.set(self.rho as u64 * self.window.mss),
            HyblaStart::Unchanged => {}
        }
        let unmeasured = if self.params.start == HyblaStart::Rho { Nanos::ZERO } else { Nanos::MAX };
        self.smallest = rtt.unwrap_or(unmeasured);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        if may_grow(ack) || !self.params.repairs_as_reno {
            self.observe(ack);
        }
        if !may_grow(ack) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if self.params.repairs_as_reno && ack.phase == Phase::Loss {
            self.params.counting.grow(&mut self.window, ack.acked);
        } else {
            self.grow(ack);
        }
        if let Some(most) = self.params.largest_window {
            self.window.set(self.window.bytes.min(most.saturating_mul(self.window.mss)));
        }
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

impl Ns3 for Hybla {
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
