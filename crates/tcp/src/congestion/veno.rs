//! Veno (Fu and Liew, *TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks*, 2003).
//!
//! It is Reno with Vegas's estimate of how many of its own packets wait in queues: with a window `w`, the smallest
//! round-trip time `base` and the current one `rtt`, `N = w (1 - base / rtt)` (section II.A). If fewer than beta wait, a
//! loss is taken for random and costs a fifth of the window; otherwise it is taken for congestion and costs half
//! (section II.C). While beta or more wait, the window grows half as fast (section II.B).
//!
//! Parameters describe the differences of ns-3 and Linux, both of which also let the estimate decide after a timeout,
//! and keep the smallest round-trip time after a loss:
//! - Linux counts `N` in halves of segments, takes the smallest round-trip time since the last ACK that could grow the
//!   window, and grows by a segment for every other window of acknowledged segments ([`VenoPace::EveryOtherWindow`]).
//!   Its count of samples wraps after 65 536; here it stops.
//! - ns-3 counts whole segments. It needs more than two samples since the last ACK that could grow the window; as each
//!   ACK is a sample and can grow the window, it grows as NewReno except for an ACK after each repair.
//! - Where either has no sample, the round-trip time counts as infinite, and so the whole window as waiting. This holds
//!   for the ACK that ends a repair: the state is reset between its sample and its growth. Linux also resets it after a
//!   mark; here only losses and reordering do so.

use super::common::{Reduced, ReductionStats, RttSource, Timeouts, Window, ends_repair, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How Veno grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VenoParams {
    /// From this number of waiting packets on, the path is congested: beta, 3.
    pub beta: f64,
    /// What a loss leaves of the window if fewer wait: 4/5.
    pub random_loss: f64,
    /// Whether the number of waiting packets decides after a timeout, too. Otherwise a timeout halves.
    pub judges_timeouts: bool,
    /// The window without its waiting packets is rounded down to multiples of a segment divided by this; `None` does
    /// not round.
    pub parts: Option<u32>,
    /// Which round-trip time is compared with the smallest.
    pub sampling: VenoSampling,
    /// How growth is slowed down on a congested path.
    pub pace: VenoPace,
    /// What a reduction is a fraction of. With the window, the result is whole segments.
    pub reduced: Reduced,
    /// What growth counts.
    pub counting: Counting,
    /// Which round-trip time is a sample.
    pub rtt: RttSource,
    /// Whether a loss or timeout forgets the smallest round-trip time.
    pub forgets_on_loss: bool,
    /// Whether it is forgotten when sending resumes with nothing in flight (Linux).
    pub forgets_when_idle: bool,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// Which round-trip time Veno compares with the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VenoSampling {
    /// The smoothed one.
    Smoothed,
    /// The smallest since the last ACK that could grow the window (Linux). The first two samples only count.
    Smallest,
    /// The same, and the count of samples restarts with that ACK (ns-3).
    SmallestRecounted,
}

/// How Veno grows on a congested path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VenoPace {
    /// Every other ACK grows the window (the paper, ns-3).
    EveryOtherAck,
    /// Every other window of acknowledged segments does (Linux).
    EveryOtherWindow,
}

impl Default for VenoParams {
    fn default() -> Self {
        Self {
            beta: 3.0,
            random_loss: 0.8,
            judges_timeouts: false,
            parts: None,
            sampling: VenoSampling::Smoothed,
            pace: VenoPace::EveryOtherAck,
            reduced: Reduced::Window,
            counting: Counting::Bytes { limit: Some(1) },
            rtt: RttSource::Measured,
            forgets_on_loss: true,
            forgets_when_idle: false,
            only_if_limited: true,
        }
    }
}

impl VenoParams {
    /// Those of ns-3 3.37's `TcpVeno`.
    pub fn ns3() -> Self {
        Self {
            judges_timeouts: true,
            parts: Some(1),
            sampling: VenoSampling::SmallestRecounted,
            reduced: Reduced::Pipe,
            counting: Counting::Acks,
            rtt: RttSource::Smoothed,
            forgets_on_loss: false,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_veno`.
    pub fn linux() -> Self {
        Self {
            judges_timeouts: true,
            parts: Some(2),
            sampling: VenoSampling::Smallest,
            pace: VenoPace::EveryOtherWindow,
            counting: Counting::Segments { carries: true },
            forgets_on_loss: false,
            forgets_when_idle: true,
            ..Self::default()
        }
    }

    /// How many packets of a window of `segments` segments wait: the paper's `N`.
    pub fn waiting(&self, segments: f64, base: Nanos, rtt: Nanos) -> f64 {
        let (base, rtt) = (base.min(rtt).0.max(1), rtt.0.max(1));
        let share = base as f64 / rtt as f64;
        match self.parts.map(|parts| parts.max(1)) {
            None => segments - segments * share,
            // ns-3 rounds the quotient of the times before it multiplies.
            Some(parts) if self.sampling == VenoSampling::SmallestRecounted => {
                let parts = f64::from(parts);
                segments - (segments * parts * share).floor() / parts
            }
            Some(parts) => {
                let without = segments as u128 * u128::from(parts) * u128::from(base) / u128::from(rtt);
                segments - without as f64 / f64::from(parts)
            }
        }
    }
}

/// Veno.
#[derive(Debug, Clone)]
pub struct Veno {
    params: VenoParams,
    window: Window,
    /// The smallest round-trip time, and the smallest since the last ACK that could grow the window.
    base: Nanos,
    smallest: Nanos,
    samples: u32,
    /// The packets that wait: `N`.
    waiting: f64,
    /// Whether the next chance to grow on a congested path is used.
    grows_next: bool,
    /// Whether no loss is being repaired.
    active: bool,
    /// A repair ended, or the last ACKs reported data out of order: samples start again.
    resets: bool,
    disordered: bool,
    timeouts: Timeouts,
    stats: VenoStats,
}

/// Counters of Veno.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VenoStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Losses that were taken for random.
    pub random_losses: u64,
}

impl Veno {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: VenoParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            base: Nanos::MAX,
            smallest: Nanos::MAX,
            samples: 0,
            waiting: 0.0,
            grows_next: true,
            active: true,
            resets: false,
            disordered: false,
            timeouts: Timeouts::default(),
            stats: VenoStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &VenoStats {
        &self.stats
    }

    /// How many packets wait, by the last estimate.
    pub fn waiting(&self) -> f64 {
        self.waiting
    }

    fn is_congested(&self) -> bool {
        self.waiting >= self.params.beta
    }

    #[inline]
    fn sample(&mut self, ack: &Ack) {
        let Some(rtt) = self.params.rtt.of(ack).filter(|_| ack.counted.is_some()) else { return };
        self.base = self.base.min(rtt);
        self.smallest = self.smallest.min(rtt);
        self.samples = self.samples.saturating_add(1);
        if self.params.sampling == VenoSampling::Smoothed && ack.smoothed_rtt.0 > 0 {
            self.estimate(ack.smoothed_rtt);
        }
    }

    fn estimate(&mut self, rtt: Nanos) {
        let segments = match self.params.parts {
            None => self.window.bytes as f64 / self.window.mss as f64,
            Some(_) => self.window.segments() as f64,
        };
        self.waiting = self.params.waiting(segments, self.base, rtt);
    }

    /// The growth of the paper: Reno's, slower where the path is congested.
    fn grow(&mut self, ack: &Ack) {
        match self.params.pace {
            VenoPace::EveryOtherAck => {
                if self.window.in_slow_start() {
                    self.params.counting.slow_start(&mut self.window, ack.acked);
                } else if !self.is_congested() || self.takes_turn() {
                    self.params.counting.grow(&mut self.window, ack.acked);
                }
            }
            VenoPace::EveryOtherWindow => {
                let mut segments = self.window.whole_segments(ack.acked);
                if self.window.in_slow_start() {
                    segments = self.window.slow_start(segments * self.window.mss, None) / self.window.mss;
                    if segments == 0 {
                        return;
                    }
                }
                if !self.is_congested() {
                    self.window.avoid_by_segments(segments);
                } else if self.window.has_counted_a_window(segments) && self.takes_turn() {
                    self.window.add_segments(1);
                }
            }
        }
    }

    fn takes_turn(&mut self) -> bool {
        self.grows_next = !self.grows_next;
        !self.grows_next
    }

    fn reduce(&mut self, from: u64, judged: bool) {
        let keeps = if judged && !self.is_congested() { self.params.random_loss } else { 0.5 };
        let left = match self.params.reduced {
            Reduced::Window => ((from / self.window.mss) as f64 * keeps) as u64 * self.window.mss,
            Reduced::InFlight | Reduced::Pipe => (from as f64 * keeps) as u64,
        };
        self.window.reduce(left, 2);
        if self.params.forgets_on_loss {
            self.base = Nanos::MAX;
        }
    }
}

impl CongestionControl for Veno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        self.sample(ack);
        self.disordered |= ack.phase == Phase::Disorder;
        if self.resets || (self.disordered && may_grow(ack)) {
            (self.resets, self.disordered) = (false, false);
            self.smallest = Nanos::MAX;
        }
        let sampling = self.params.sampling;
        // ns-3 also passes on an ACK that acknowledges nothing. It takes a turn, and the samples restart.
        let passes = may_grow(ack) || (sampling == VenoSampling::SmallestRecounted && ends_repair(ack));
        if !passes || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if sampling == VenoSampling::SmallestRecounted {
            self.estimate(self.smallest);
        }
        if sampling == VenoSampling::Smoothed {
            self.grow(ack);
            return;
        }
        if !self.active || ack.phase == Phase::Loss {
            self.params.counting.grow(&mut self.window, ack.acked);
            return;
        }
        if self.samples <= 2 {
            self.params.counting.grow(&mut self.window, ack.acked);
        } else {
            if sampling == VenoSampling::Smallest {
                self.estimate(self.smallest);
            }
            self.grow(ack);
        }
        self.smallest = Nanos::MAX;
        if sampling == VenoSampling::SmallestRecounted {
            self.samples = 0;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
        self.stats.random_losses += u64::from(congestion.lost > 0 && !self.is_congested());
        self.reduce(self.params.reduced.of(&self.window, congestion), true);
        self.active &= congestion.lost == 0;
    }

    fn on_timeout(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.params.reduced.of_timeout(&self.window, congestion), self.params.judges_timeouts);
        }
        (self.active, self.disordered) = (false, false);
        self.window.collapse();
    }

    fn on_recovered(&mut self, _now: Nanos) {
        self.resets |= !self.active;
        self.active = true;
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, _now: Nanos) {
        if self.params.forgets_when_idle && in_flight <= bytes && self.active {
            (self.base, self.smallest) = (Nanos::MAX, Nanos::MAX);
            self.grows_next = true;
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

impl Ns3 for Veno {
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
