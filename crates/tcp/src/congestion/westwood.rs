//! Westwood+ (Grieco and Mascolo, *Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion
//! Control*, 2004; Mascolo, Casetti, Gerla, Sanadidi and Wang, *TCP Westwood*, 2001).
//!
//! It grows as Reno. Each round trip it samples the rate at which ACKs acknowledge data, and filters it. After a loss or
//! a timeout, the slow-start threshold is that bandwidth times the smallest round-trip time: what the path holds without
//! a queue. So a random loss costs little (section 2.2).
//!
//! Deviations:
//! - The paper does not say what a loss before the first sample does. Here it halves the window.
//! - The filter starts with the first sample, as in Linux.
//! - Bytes count when they are delivered, also selectively.
//!
//! Parameters describe the differences of ns-3 and Linux:
//! - ns-3's `TcpWestwood` is Westwood unless its attribute `ProtocolType` is `WestwoodPlus`; this is the latter. Its
//!   sample lasts from an ACK, whose segments count, for the smoothed round-trip time; its filter starts at zero, so
//!   that after `n` round trips it has found at most `1 - 0.9^n` of the bandwidth. A loss before the first sample
//!   leaves two segments.
//! - Linux samples for at least 50 ms, in whole ticks of the clock (here of 1 ms) and bytes per tick, and filters twice.
//!   After a loss or a mark it halves the threshold; only when the repair ends, the estimate becomes window and
//!   threshold. A timeout also forgets the smallest round-trip time. Linux does not count the bytes of the first ACK.

use super::common::{Reduced, ReductionStats, RttSource, Timeouts, Window, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3};
use queuescope_wire::Nanos;

/// How Westwood+ estimates, grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WestwoodParams {
    /// When a sample of the bandwidth begins and ends.
    pub sampling: WestwoodSampling,
    /// The shortest time that a sample takes.
    pub least_interval: Nanos,
    /// The unit of the bandwidth.
    pub unit: WestwoodUnit,
    /// How samples are filtered.
    pub filter: WestwoodFilter,
    /// The weight of the older samples: alpha, 0.9.
    pub memory: f64,
    /// Whether the estimate becomes window and threshold when the repair of a loss ends, and the threshold is half of
    /// the window until then (Linux).
    pub after_repair: bool,
    /// Whether a loss before the first sample halves the window. Otherwise it leaves two segments.
    pub halves_without_sample: bool,
    /// Whether a timeout forgets the smallest round-trip time (Linux).
    pub timeout_forgets: bool,
    /// What a loss halves where it halves.
    pub reduced: Reduced,
    /// What growth counts.
    pub counting: Counting,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// When a sample of the bandwidth begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WestwoodSampling {
    /// The first ACK after more than a round-trip time ends a sample. It counts in the next.
    ByAck,
    /// The same. An ACK that acknowledges nothing new counts for a segment, which a later one for more than a segment
    /// does not count again (Linux).
    ByAckAccounted,
    /// A timer ends it after a round-trip time. The next ACK starts another, and counts in it (ns-3).
    ByTimer,
}

/// The unit of the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WestwoodUnit {
    /// Real numbers.
    Exact,
    /// Whole bits per second, rounded down at each step (ns-3).
    BitsPerSecond,
    /// Whole bytes per tick of a clock, whose period this is, rounded down at each step. All times are in ticks, and
    /// round-trip times are rounded up (Linux).
    BytesPerTick(Nanos),
}

/// How samples are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WestwoodFilter {
    /// An exponential average, which starts with the first sample.
    Once,
    /// An exponential average of that average (Linux).
    Twice,
    /// An exponential average of the mean of each two successive samples, which starts at zero (ns-3).
    OfMeans,
}

impl Default for WestwoodParams {
    fn default() -> Self {
        Self {
            sampling: WestwoodSampling::ByAck,
            least_interval: Nanos::ZERO,
            unit: WestwoodUnit::Exact,
            filter: WestwoodFilter::Once,
            memory: 0.9,
            after_repair: false,
            halves_without_sample: true,
            timeout_forgets: false,
            reduced: Reduced::Window,
            counting: Counting::Bytes { limit: Some(1) },
            rtt: RttSource::Measured,
            only_if_limited: true,
        }
    }
}

impl WestwoodParams {
    /// Those of ns-3 3.37's `TcpWestwood` with `ProtocolType` set to `WestwoodPlus`.
    pub fn ns3() -> Self {
        Self {
            sampling: WestwoodSampling::ByTimer,
            unit: WestwoodUnit::BitsPerSecond,
            filter: WestwoodFilter::OfMeans,
            halves_without_sample: false,
            counting: Counting::Acks,
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_westwood`, with ticks of 1 ms.
    pub fn linux() -> Self {
        Self {
            sampling: WestwoodSampling::ByAckAccounted,
            least_interval: Nanos(50_000_000),
            unit: WestwoodUnit::BytesPerTick(Nanos(1_000_000)),
            filter: WestwoodFilter::Twice,
            memory: 0.875,
            after_repair: true,
            halves_without_sample: false,
            timeout_forgets: true,
            counting: Counting::Segments { carries: true },
            ..Self::default()
        }
    }
}

impl WestwoodUnit {
    fn tick(self) -> u64 {
        match self {
            Self::BytesPerTick(tick) => tick.0.max(1),
            Self::Exact | Self::BitsPerSecond => 1,
        }
    }

    fn whole(self, value: f64) -> f64 {
        if self == Self::Exact { value } else { value.floor() }
    }

    /// The rate of `bytes` bytes in `time`, in this unit.
    fn rate(self, bytes: u64, time: Nanos) -> f64 {
        let (bytes, time) = (bytes as f64, time.0.max(1) as f64);
        match self {
            Self::Exact => bytes / (time / 1e9),
            Self::BitsPerSecond => (bytes * 8.0 / (time / 1e9)).floor(),
            Self::BytesPerTick(_) => (bytes / (time / self.tick() as f64)).floor(),
        }
    }

    /// The bytes of a rate in `time`.
    fn bytes(self, rate: f64, time: Nanos) -> f64 {
        let time = time.0 as f64;
        match self {
            Self::Exact => rate * (time / 1e9),
            Self::BitsPerSecond => (time / 1e9) * rate / 8.0,
            Self::BytesPerTick(_) => rate * (time / self.tick() as f64),
        }
    }
}

/// Westwood+.
#[derive(Debug, Clone)]
pub struct Westwood {
    params: WestwoodParams,
    window: Window,
    /// The bandwidth, in the parameters' unit; the first filter's result; and the last sample.
    bandwidth: f64,
    once: f64,
    last: f64,
    /// The bytes of this sample, when it began, and for how long it will last if a timer ends it.
    bytes: u64,
    began: Nanos,
    timer: Option<Nanos>,
    /// Bytes that ACKs which acknowledged nothing new counted for.
    accounted: u64,
    rtt: Option<Nanos>,
    least_rtt: Nanos,
    /// Whether the next ACK's round-trip time replaces the smallest.
    forgets: bool,
    /// Whether a loss or mark is being answered.
    repairs: bool,
    timeouts: Timeouts,
    stats: WestwoodStats,
}

/// Counters of Westwood+.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WestwoodStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Samples of the bandwidth.
    pub samples: u64,
}

impl Westwood {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: WestwoodParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            bandwidth: 0.0,
            once: 0.0,
            last: 0.0,
            bytes: 0,
            began: Nanos::ZERO,
            timer: None,
            accounted: 0,
            rtt: None,
            least_rtt: Nanos::MAX,
            forgets: params.timeout_forgets,
            repairs: false,
            timeouts: Timeouts::default(),
            stats: WestwoodStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &WestwoodStats {
        &self.stats
    }

    /// The estimated bandwidth, in bits per second.
    pub fn bandwidth(&self) -> f64 {
        self.params.unit.bytes(self.bandwidth, Nanos(1_000_000_000)) * 8.0
    }

    fn observe(&mut self, ack: &Ack, now: Nanos) {
        let rtt = self.params.rtt.of(ack);
        match self.params.sampling {
            WestwoodSampling::ByTimer => {
                self.check_timer(now);
                let Some(rtt) = rtt else { return };
                self.least_rtt = self.least_rtt.min(rtt);
                let Some(counted) = ack.counted else { return };
                self.bytes = self.bytes.saturating_add(counted);
                if self.timer.is_none() {
                    (self.began, self.timer) = (now, Some(rtt));
                }
            }
            WestwoodSampling::ByAck | WestwoodSampling::ByAckAccounted => {
                let tick = self.params.unit.tick();
                if let Some(rtt) = rtt {
                    self.rtt = Some(Nanos(rtt.0.div_ceil(tick).saturating_mul(tick)));
                }
                let (now, Some(rtt)) = (Nanos(now.0 / tick * tick), self.rtt) else { return self.count(ack) };
                let elapsed = now.saturating_sub(self.began);
                if elapsed > rtt.max(self.params.least_interval) {
                    self.take_sample(elapsed);
                    self.began = now;
                }
                self.count(ack);
                self.least_rtt = if self.forgets { rtt } else { self.least_rtt.min(rtt) };
                self.forgets = false;
            }
        }
    }

    fn count(&mut self, ack: &Ack) {
        let mut bytes = ack.delivered;
        if self.params.sampling == WestwoodSampling::ByAckAccounted {
            let mss = self.window.mss;
            bytes = ack.acked;
            if bytes == 0 && ack.delivered > 0 {
                self.accounted = self.accounted.saturating_add(mss);
                bytes = mss;
            } else if bytes > mss && self.accounted >= bytes {
                self.accounted -= bytes;
                bytes = mss;
            } else if bytes > mss {
                bytes -= std::mem::take(&mut self.accounted);
            }
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn check_timer(&mut self, now: Nanos) {
        if let Some(length) = self.timer
            && now >= self.began.saturating_add(length)
        {
            self.timer = None;
            self.take_sample(length);
        }
    }

    fn take_sample(&mut self, time: Nanos) {
        let WestwoodParams { unit, memory, .. } = self.params;
        let sample = unit.rate(std::mem::take(&mut self.bytes), time);
        self.stats.samples += 1;
        let average = |old: f64, new: f64| unit.whole(old * memory + new * (1.0 - memory));
        let is_first = self.bandwidth == 0.0 && self.once == 0.0;
        match self.params.filter {
            WestwoodFilter::OfMeans => {
                let mean = unit.whole((sample + self.last) * 0.5);
                self.bandwidth = unit.whole(self.bandwidth * memory) + unit.whole(mean * (1.0 - memory));
            }
            _ if is_first => (self.bandwidth, self.once) = (sample, sample),
            WestwoodFilter::Once => self.bandwidth = average(self.bandwidth, sample),
            WestwoodFilter::Twice => {
                self.once = average(self.once, sample);
                self.bandwidth = average(self.bandwidth, self.once);
            }
        }
        self.last = sample;
    }

    /// What the path holds without a queue, in bytes.
    fn content(&self) -> u64 {
        let bytes = self.params.unit.bytes(self.bandwidth, self.least_rtt) as u64;
        match self.params.unit {
            WestwoodUnit::BytesPerTick(_) => bytes / self.window.mss * self.window.mss,
            WestwoodUnit::Exact | WestwoodUnit::BitsPerSecond => bytes,
        }
    }

    fn reduce(&mut self, from: u64, now: Nanos, is_repaired: bool) {
        self.check_timer(now);
        let halves = self.params.halves_without_sample && self.bandwidth == 0.0;
        let left = if halves || (self.params.after_repair && is_repaired) {
            from / self.window.mss / 2 * self.window.mss
        } else {
            self.content()
        };
        self.window.reduce(left, 2);
        self.repairs = is_repaired;
    }
}

impl CongestionControl for Westwood {
    fn on_established(&mut self, rtt: Option<Nanos>, now: Nanos) {
        let tick = self.params.unit.tick();
        self.began = Nanos(now.0 / tick * tick);
        self.least_rtt = rtt.filter(|rtt| rtt.0 > 0).unwrap_or(Nanos::MAX);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        self.observe(ack, now);
        if may_grow(ack) && (ack.window_limited || !self.params.only_if_limited) {
            self.params.counting.grow(&mut self.window, ack.acked);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.reductions.count(congestion);
        self.reduce(self.params.reduced.of(&self.window, congestion), now, true);
    }

    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.params.reduced.of_timeout(&self.window, congestion), now, false);
            self.forgets |= self.params.timeout_forgets;
        }
        self.repairs = false;
        self.window.collapse();
    }

    fn on_recovered(&mut self, _now: Nanos) {
        if self.params.after_repair && self.repairs {
            self.window.reduce(self.content(), 2);
        }
        self.repairs = false;
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

impl Ns3 for Westwood {
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
