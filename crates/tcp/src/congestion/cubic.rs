//! CUBIC (RFC 9438).
//!
//! After a reduction from a window `W_max` the window follows `W(t) = C (t - K)^3 + W_max` (section 4.2). It returns to
//! `W_max` after `K` seconds, whatever the round-trip time, stays there for a while, and then probes for more. Where
//! Reno would have a larger window, CUBIC uses Reno's (the Reno-friendly region, section 4.3).
//!
//! There are two forms ([`Growth`]). One grows by fractions of a segment, as in the RFC. The other counts, as in Linux
//! and in ns-3 after it: it adds a whole segment for each `window / (target - window)` acknowledged segments.
//!
//! Deviations:
//! - Section 4.3 sets the window to `W_est` where `W(t)` is below it. The window is ahead of `W(t)` by a round trip, so
//!   this could shrink it; here it does not.
//! - Linux computes `K` by a table and two steps of Newton in integers, with an error up to 0.2 %, and time in ticks.
//!   Here `K` is exact and time continuous.
//! - Linux and the RFC undo spurious reductions (section 4.9). The sender here does not detect them.
//! - Linux keeps the threshold if the timer expires during recovery. Here it is reduced again (RFC 6675 section 5.1).
//! - ns-3.37 has no Reno-friendly region; nor has [`CubicParams::ns3`].

use super::common::{LARGEST_WINDOW, ReductionStats, RttSource, Timeouts, Window, may_grow};
use super::hystart::{Exit, HyStart, HyStartParams, HyStartPlusPlus, HyStartPlusPlusParams};
use super::{Ack, Congestion, CongestionControl, Ns3};
use queuescope_wire::Nanos;

/// How CUBIC grows and shrinks. The default follows RFC 9438, with HyStart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicParams {
    /// `C`, in segments per second cubed: 0.4.
    pub c: f64,
    /// `beta_cubic`: the fraction of the window that a reduction leaves, above 0 and below 1: 0.7.
    pub beta: f64,
    /// Whether a flow whose window shrinks twice in a row gives up some of it (section 4.7).
    pub fast_convergence: bool,
    /// Whether the window is never below Reno's (section 4.3).
    pub reno_friendly: bool,
    /// How the window grows: by fractions or by counting.
    pub growth: Growth,
    /// How slow start ends before a loss.
    pub slow_start: SlowStart,
    /// The most that an ACK adds in slow start, in segments: 8 (RFC 9406 section 4.2, without pacing).
    pub slow_start_limit: Option<u32>,
    /// How long after the start of congestion avoidance the smallest round-trip time is not updated. Linux 1 s, ns-3 10
    /// ms.
    pub settling: Nanos,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender (section 5.8).
    pub only_if_limited: bool,
    /// Whether time with nothing in flight is skipped (section 5.8).
    pub skips_idle: bool,
}

/// How the window grows: by fractions or by counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// By `(target - window) / window` for each acknowledged segment. `target` is between the window and one and a half
    /// times the window.
    Continuous,
    /// By whole segments.
    Counted {
        /// Before the first congestion event the window grows by a segment for at most this many acknowledged segments:
        /// 20.
        most: u64,
        /// How long the target stays valid while the window does not change. Linux 1/32 s; ns-3 always recomputes it.
        refresh: Nanos,
        /// Whether an ACK adds at most one segment (ns-3).
        one_an_ack: bool,
        /// Whether slow start stops at the threshold, and the rest counts in congestion avoidance (Linux).
        stops_at_threshold: bool,
    },
}

/// How slow start ends before a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStart {
    /// It does not end before a loss (RFC 5681).
    UntilLoss,
    /// By HyStart.
    HyStart(HyStartParams),
    /// By HyStart++ (RFC 9406), in the first slow start.
    HyStartPlusPlus(HyStartPlusPlusParams),
}

impl Default for CubicParams {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            reno_friendly: true,
            growth: Growth::Continuous,
            slow_start: SlowStart::HyStart(HyStartParams::default()),
            slow_start_limit: Some(8),
            settling: Nanos::ZERO,
            rtt: RttSource::Measured,
            only_if_limited: true,
            skips_idle: true,
        }
    }
}

impl CubicParams {
    /// Those of ns-3 3.37's `TcpCubic`.
    pub fn ns3() -> Self {
        let growth = Growth::Counted { most: 20, refresh: Nanos::ZERO, one_an_ack: true, stops_at_threshold: false };
        Self {
            reno_friendly: false,
            growth,
            slow_start: SlowStart::HyStart(HyStartParams::ns3()),
            slow_start_limit: None,
            settling: Nanos(10_000_000),
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            skips_idle: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_cubic` for a sender without pacing. Its constants are fractions of 1024.
    pub fn linux() -> Self {
        let growth =
            Growth::Counted { most: 20, refresh: Nanos(31_250_000), one_an_ack: false, stops_at_threshold: true };
        Self {
            c: 410.0 / 1024.0,
            beta: 717.0 / 1024.0,
            growth,
            slow_start: SlowStart::HyStart(HyStartParams::linux()),
            slow_start_limit: None,
            settling: Nanos(1_000_000_000),
            ..Self::default()
        }
    }
}

/// CUBIC.
#[derive(Debug, Clone)]
pub struct Cubic {
    params: CubicParams,
    window: Window,
    slow_start: SlowStartState,
    /// Reno with this beta would add a segment for this many acknowledged segments, in eighths of the window (counted).
    reno_scale: f64,
    /// `W_max` in segments; zero after a timeout, or before the first reduction.
    largest: f64,
    /// The window before the last reduction, in segments: `cwnd_prior`.
    prior: f64,
    curve: Option<Curve>,
    /// The smallest round-trip time.
    path: Option<Nanos>,
    /// Growth that does not make a byte yet, in bytes (continuous).
    fraction: f64,
    /// Segments acknowledged since one was added, and how many are needed for the next (counted).
    count: u64,
    needed: u64,
    /// When `needed` was computed, and for which window.
    computed: Option<(Nanos, u64)>,
    last_sent: Nanos,
    timeouts: Timeouts,
    stats: CubicStats,
}

/// Counters of CUBIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CubicStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Slow starts ended by a train of ACKs.
    pub train_exits: u64,
    /// Slow starts ended by a rise of the delay.
    pub delay_exits: u64,
}

/// The curve of the window since congestion avoidance began, in seconds and segments.
#[derive(Debug, Clone, Copy)]
struct Curve {
    began: Nanos,
    /// `K`.
    k: f64,
    /// `W_max`, or the window at the start if that was larger.
    origin: f64,
    /// `W_est`: Reno's window.
    reno: f64,
    /// Acknowledged segments that have not added to `reno` yet (counted).
    reno_count: u64,
}

#[derive(Debug, Clone)]
enum SlowStartState {
    Plain,
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
}

impl Cubic {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: CubicParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        let slow_start = match params.slow_start {
            SlowStart::UntilLoss => SlowStartState::Plain,
            SlowStart::HyStart(params) => SlowStartState::HyStart(HyStart::new(params)),
            SlowStart::HyStartPlusPlus(params) => SlowStartState::PlusPlus(HyStartPlusPlus::new(params)),
        };
        Self {
            params,
            window: Window::new(mss, initial_window),
            slow_start,
            reno_scale: (8.0 * (1.0 + params.beta) / 3.0 / (1.0 - params.beta)).floor(),
            largest: 0.0,
            prior: 0.0,
            curve: None,
            path: None,
            fraction: 0.0,
            count: 0,
            needed: 2,
            computed: None,
            last_sent: Nanos::ZERO,
            timeouts: Timeouts::default(),
            stats: CubicStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &CubicStats {
        &self.stats
    }

    fn is_continuous(&self) -> bool {
        self.params.growth == Growth::Continuous
    }

    /// The window in segments, with fractions in the continuous form.
    fn size(&self) -> f64 {
        if self.is_continuous() {
            (self.window.bytes as f64 + self.fraction) / self.window.mss as f64
        } else {
            self.window.segments() as f64
        }
    }

    /// Updates the smallest round-trip time, and judges a window that is not above the threshold by it.
    fn take_time(&mut self, ack: &Ack, rtt: Option<Nanos>, now: Nanos) {
        if self.curve.is_some_and(|curve| now.saturating_sub(curve.began) < self.params.settling) {
            return;
        }
        if let Some(rtt) = rtt {
            self.path = Some(self.path.map_or(rtt, |path| path.min(rtt)));
        }
        if let SlowStartState::HyStart(hystart) = &mut self.slow_start
            && ack.window <= self.window.threshold
            && let Some(exit) =
                hystart.on_any_ack(rtt, self.path.unwrap_or(Nanos::MAX), ack.window / self.window.mss, now)
        {
            // The threshold is the window with which a reduction is to end.
            self.window.set(ack.window);
            self.leave_slow_start(exit);
        }
    }

    fn leave_slow_start(&mut self, exit: Exit) {
        self.window.threshold = self.window.bytes;
        match exit {
            Exit::Train => self.stats.train_exits += 1,
            Exit::Delay => self.stats.delay_exits += 1,
        }
    }

    /// Judges whether slow start ends. Returns by how much less than usual it grows.
    fn judge_slow_start(&mut self, ack: &Ack, rtt: Option<Nanos>, now: Nanos) -> u64 {
        let first = self.window.threshold == u64::MAX;
        let exit = match &mut self.slow_start {
            SlowStartState::HyStart(hystart) => {
                let path = self.path.unwrap_or(Nanos::MAX);
                hystart.on_ack(ack, rtt, path, self.window.segments(), now)
            }
            SlowStartState::PlusPlus(hystart) if first => {
                if !hystart.on_ack(ack, rtt) {
                    return hystart.divisor();
                }
                Some(Exit::Delay)
            }
            SlowStartState::Plain | SlowStartState::PlusPlus(_) => None,
        };
        if let Some(exit) = exit {
            self.leave_slow_start(exit);
        }
        1
    }

    /// Grows in slow start by the bytes that an ACK acknowledged. Returns those of them that count in congestion
    /// avoidance.
    fn grow_in_slow_start(&mut self, acked: u64, divisor: u64) -> u64 {
        if let Growth::Counted { stops_at_threshold: false, .. } = self.params.growth {
            let segments = self.window.whole_segments(acked);
            self.window.add_segments(segments);
            return 0;
        }
        let left = self.window.slow_start(acked / divisor, self.params.slow_start_limit);
        if self.window.in_slow_start() { 0 } else { left }
    }

    /// The current curve; starts one if there is none.
    fn curve(&mut self, now: Nanos) -> &mut Curve {
        let size = self.size();
        self.curve.get_or_insert_with(|| {
            let (k, origin) = if size < self.largest {
                (libm::cbrt((self.largest - size) / self.params.c.max(f64::MIN_POSITIVE)), self.largest)
            } else {
                (0.0, size)
            };
            Curve { began: now, k, origin, reno: size, reno_count: 0 }
        })
    }

    fn grow_continuously(&mut self, acked: u64, smoothed: Nanos, now: Nanos) {
        let (c, beta, mss) = (self.params.c, self.params.beta, self.window.mss as f64);
        let (size, prior, friendly) = (self.size(), self.prior, self.params.reno_friendly);
        let segments = acked as f64 / mss;
        let curve = self.curve(now);
        let since = now.saturating_sub(curve.began).as_secs_f64();
        let target = curve.at(c, since + smoothed.as_secs_f64()).clamp(size, 1.5 * size);
        let mut grown = (size + (target - size) / size * segments).min(1.5 * size);
        if friendly {
            // Until Reno's window is back at the old one, it grows slower to make up for its larger reduction (section
            // 4.3).
            let alpha = if curve.reno < prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
            curve.reno += alpha * segments / size;
            if curve.at(c, since) < curve.reno {
                grown = grown.max(curve.reno);
            }
        }
        let bytes = (grown * mss).min(LARGEST_WINDOW as f64);
        self.window.set(bytes as u64);
        self.fraction = bytes.fract();
    }

    fn grow_by_counting(&mut self, segments: u64, now: Nanos) {
        let Growth::Counted { most, refresh, one_an_ack, .. } = self.params.growth else {
            return;
        };
        let size = self.window.segments();
        let path = self.path.unwrap_or(Nanos::ZERO);
        self.curve(now).reno_count += segments;
        let fresh = self.computed.is_some_and(|(at, of)| of == size && now.saturating_sub(at) <= refresh);
        if refresh == Nanos::ZERO || !fresh {
            self.computed = Some((now, size));
            self.needed = self.needed_for(size, path, most, now);
        }
        if one_an_ack {
            self.count += segments;
            if self.count >= self.needed {
                self.count -= self.needed;
                self.window.add_segments(1);
            }
            return;
        }
        // The rest of a larger count is worth only one segment.
        if self.count >= self.needed {
            self.count = 0;
            self.window.add_segments(1);
        }
        self.count += segments;
        if self.count >= self.needed {
            let more = self.count / self.needed;
            self.count %= self.needed;
            self.window.add_segments(more);
        }
    }

    /// The number of acknowledged segments for which a window of `size` segments grows by one: at least 2.
    fn needed_for(&mut self, size: u64, path: Nanos, most: u64, now: Nanos) -> u64 {
        let (c, friendly, unreduced) = (self.params.c, self.params.reno_friendly, self.largest == 0.0);
        let scale = self.reno_scale;
        let curve = self.curve(now);
        let since = now.saturating_add(path).saturating_sub(curve.began).as_secs_f64();
        let target = curve.at_whole(c, since);
        let mut needed = if target > size as f64 { size / (target - size as f64) as u64 } else { 100 * size };
        if unreduced {
            needed = needed.min(most);
        }
        if friendly {
            // Reno with this beta would add a segment for each `each` acknowledged ones.
            let each = ((size as f64 * scale / 8.0) as u64).max(1);
            let grown = curve.reno_count.saturating_sub(1) / each;
            curve.reno_count -= grown * each;
            curve.reno += grown as f64;
            if curve.reno > size as f64 {
                needed = needed.min(size / ((curve.reno - size as f64) as u64).max(1));
            }
        }
        needed.max(2)
    }

    /// Sets `W_max` for a reduction. Returns the threshold in bytes.
    fn end_curve(&mut self, in_flight: u64) -> u64 {
        let (size, beta) = (self.size(), self.params.beta);
        self.prior = size;
        self.largest =
            if self.params.fast_convergence && size < self.largest { size * (1.0 + beta) / 2.0 } else { size };
        self.curve = None;
        self.fraction = 0.0;
        self.computed = None;
        if self.is_continuous() {
            return (in_flight as f64 * beta) as u64;
        }
        self.largest = self.largest.floor();
        if !matches!(self.params.growth, Growth::Counted { one_an_ack: true, .. }) {
            self.count = 0;
        }
        (size * beta) as u64 * self.window.mss
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        let rtt = self.params.rtt.of(ack);
        self.take_time(ack, rtt, now);
        if !may_grow(ack) {
            return;
        }
        let mut acked = ack.acked;
        if self.window.in_slow_start() {
            let divisor = self.judge_slow_start(ack, rtt, now);
            if self.params.only_if_limited && !ack.window_limited {
                return;
            }
            if self.window.in_slow_start() {
                acked = self.grow_in_slow_start(acked, divisor);
                if acked == 0 {
                    return;
                }
            }
        } else if self.params.only_if_limited && !ack.window_limited {
            return;
        }
        if self.is_continuous() {
            self.grow_continuously(acked, ack.smoothed_rtt, now);
        } else {
            let segments = self.window.whole_segments(acked);
            if segments > 0 {
                self.grow_by_counting(segments, now);
            }
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
        let threshold = self.end_curve(congestion.in_flight);
        self.window.reduce(threshold, 2);
    }

    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            let threshold = self.end_curve(congestion.in_flight);
            self.window.reduce(threshold, 2);
        }
        self.window.collapse();
        (self.largest, self.path, self.curve) = (0.0, None, None);
        if let SlowStartState::HyStart(hystart) = &mut self.slow_start {
            hystart.restart(congestion.next, now);
        }
    }

    fn on_recovered(&mut self, _now: Nanos) {}

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, now: Nanos) {
        if in_flight <= bytes && self.params.skips_idle {
            let idle = now.saturating_sub(self.last_sent);
            if let Some(curve) = &mut self.curve {
                curve.began = curve.began.saturating_add(idle).min(now);
            }
        }
        self.last_sent = now;
    }

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
}

impl Ns3 for Cubic {
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

impl Curve {
    /// `W(t)`.
    #[inline]
    fn at(&self, c: f64, since: f64) -> f64 {
        let from_k = since - self.k;
        self.origin + c * from_k * from_k * from_k
    }

    /// `W(t)` with its distance from the origin cut to whole segments.
    #[inline]
    fn at_whole(&self, c: f64, since: f64) -> f64 {
        let from_k = since - self.k;
        self.origin + (c * from_k * from_k * from_k).trunc()
    }
}
