//! LoLa (Hock, Neumeister, Zitterbart and Bless, *TCP LoLa: Congestion Control for Low Latencies and High Throughput*,
//! 2017).
//!
//! It keeps a standing queue whose delay lies between two thresholds, whatever the number of flows. The queueing delay
//! is `RTT_now - RTT_min`: the smallest round-trip time of the last 40 ms, above the smallest ever. Flows pass these
//! states at about the same time, because all of them see the same queue:
//! - *Slow start* ends when the delay exceeds `2 Q_low`.
//! - *Cubic increase* follows `C (t - K)^3 + CWnd_max` while the delay is at most `Q_low`: the link may not be full.
//! - *Fair flow balancing* gives each flow the same amount of data in the queue, `X(t) = (t / phi)^3` bytes, whatever its
//!   round-trip time: a flow whose own share `Q_data = CWnd (RTT_now - RTT_min) / RTT_now` is smaller adds the difference.
//! - *CWnd hold*, once the delay exceeds `Q_target`, keeps the window for 250 ms: all flows find the same end.
//! - *Tailored decrease* leaves `gamma (CWnd - Q_data)`, which empties the queue. A new cubic increase begins there.
//!
//! Choices and deviations:
//! - After a step the next round-trip times are still those of the old window. They are skipped for a round trip: the
//!   step is measured, not repeated.
//! - A step of fair flow balancing adds at most half of the window. `X` may be large after the application was idle.
//! - In slow start the delay is judged once per round trip, by the smallest of its first samples as in HyStart, because
//!   bursts queue long before the link is full. The window then stops growing, and is reduced as soon as the queue that
//!   it causes is measured.
//! - A loss reduces as in CUBIC (RFC 9438 section 4.6 and 4.7).
//! - Neither ns-3 nor Linux has LoLa. [`LolaParams::ns3`] is the default with ns-3's round-trip time.
//!   [`LolaParams::linux`] has the constants of the authors' module for Linux (version 1.5), which differ from the
//!   paper's. That module counts whole segments, also has Reno's growth for small windows, and spreads the steps of fair
//!   flow balancing over 40 ms. Here they are exact, and at once.

use super::common::{Reduced, ReductionStats, Round, RoundEnd, RttSource, Timeouts, Window, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3};
use queuescope_wire::Nanos;

/// How LoLa grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LolaParams {
    /// `C` of the cubic increase, in segments per second cubed: 0.4.
    pub c: f64,
    /// The fraction of the window that a loss leaves: 0.7.
    pub beta: f64,
    /// What a loss reduces.
    pub reduced: Reduced,
    /// `gamma`: the fraction of the window without its queue that a tailored decrease leaves: 973/1024.
    pub gamma: f64,
    /// The queueing delay that ends slow start: `2 Q_low`, 2 ms; Linux 1 ms.
    pub slow_start_exit: Nanos,
    /// How many round-trip times of a round trip are judged in slow start: 16.
    pub slow_start_samples: u32,
    /// The queueing delay above which fair flow balancing begins, `Q_low`: 1 ms; Linux 0.5 ms.
    pub low: Nanos,
    /// The queueing delay above which it ends, `Q_target`: 5 ms.
    pub target: Nanos,
    /// `phi`: after this time in fair flow balancing each flow should have one unit in the queue. 35 ms; Linux 75 ticks
    /// of 4 ms.
    pub phi: Nanos,
    /// That unit.
    pub unit: QueueUnit,
    /// How long the window is held: 250 ms.
    pub hold: Nanos,
    /// The time over which the smallest round-trip time is taken, `t_measure`: 40 ms.
    pub measure: Nanos,
    /// How many round-trip times it takes, at least: 1; Linux 20.
    pub samples: u32,
    /// The smallest round-trip time ever is forgotten after this many tailored decreases that did not measure it again:
    /// 100; Linux 10.
    pub base_decreases: u32,
    /// A round-trip time counts as the smallest ever up to this difference: 0.1 ms.
    pub base_epsilon: Nanos,
    /// The smallest window that a tailored decrease leaves, in segments: 2; Linux 5.
    pub floor: u64,
    /// What growth counts in slow start.
    pub counting: Counting,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// The unit in which `X(t)` counts data in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueUnit {
    /// Bytes.
    Byte,
    /// Segments.
    Segment,
}

impl Default for LolaParams {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            reduced: Reduced::InFlight,
            gamma: 973.0 / 1024.0,
            slow_start_exit: Nanos(2_000_000),
            slow_start_samples: 16,
            low: Nanos(1_000_000),
            target: Nanos(5_000_000),
            phi: Nanos(35_000_000),
            unit: QueueUnit::Byte,
            hold: Nanos(250_000_000),
            measure: Nanos(40_000_000),
            samples: 1,
            base_decreases: 100,
            base_epsilon: Nanos(100_000),
            floor: 2,
            counting: Counting::Bytes { limit: Some(1) },
            rtt: RttSource::Measured,
            only_if_limited: true,
        }
    }
}

impl LolaParams {
    /// The default with the smoothed round-trip time, which ns-3 3.37 gives to congestion controls. ns-3 has no LoLa.
    pub fn ns3() -> Self {
        Self { rtt: RttSource::Smoothed, reduced: Reduced::Pipe, only_if_limited: false, ..Self::default() }
    }

    /// The constants of the authors' module for Linux. Linux itself has no LoLa.
    pub fn linux() -> Self {
        Self {
            c: 410.0 / 1024.0,
            beta: 717.0 / 1024.0,
            reduced: Reduced::Window,
            gamma: 927.0 / 1024.0,
            slow_start_exit: Nanos(1_000_000),
            low: Nanos(500_000),
            phi: Nanos(300_000_000),
            unit: QueueUnit::Segment,
            samples: 20,
            base_decreases: 10,
            floor: 5,
            counting: Counting::Segments { carries: true },
            ..Self::default()
        }
    }

    /// `X(t)`: the bytes that each flow should have in the queue, `since` the start of fair flow balancing.
    pub fn share(&self, since: Nanos, mss: u64) -> f64 {
        let ratio = since.0 as f64 / self.phi.0.max(1) as f64;
        let unit = match self.unit {
            QueueUnit::Byte => 1.0,
            QueueUnit::Segment => mss as f64,
        };
        ratio * ratio * ratio * unit
    }

    /// `Q_data`: the bytes of a window of `window` bytes that wait in the queue.
    pub fn queued(&self, window: u64, base: Nanos, rtt: Nanos) -> f64 {
        window as f64 * rtt.saturating_sub(base).0 as f64 / rtt.0.max(1) as f64
    }

    /// The window that a tailored decrease leaves of `window` bytes, without rounding.
    pub fn decreased(&self, window: u64, base: Nanos, rtt: Nanos) -> f64 {
        self.gamma * (window as f64 - self.queued(window, base, rtt))
    }

    /// `K`: the seconds in which the cubic increase leads from one window to another, in segments.
    pub fn k(&self, largest: f64, size: f64) -> f64 {
        libm::cbrt((largest - size).max(0.0) / self.c.max(f64::MIN_POSITIVE))
    }
}

/// LoLa.
#[derive(Debug, Clone)]
pub struct Lola {
    params: LolaParams,
    window: Window,
    state: LolaState,
    /// When fair flow balancing began, or when the hold ends.
    since: Nanos,
    /// `CWnd_max` in segments; zero after a timeout and before the first reduction.
    largest: f64,
    curve: Option<Curve>,
    /// Growth that does not make a byte yet, in bytes.
    fraction: f64,
    queue: Measurement,
    /// The smallest round-trip time ever, and the tailored decreases since it was last measured.
    base: Option<Nanos>,
    unseen: u32,
    timeouts: Timeouts,
    stats: LolaStats,
}

/// What LoLa does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LolaState {
    /// Doubles its window in each round trip.
    SlowStart,
    /// Follows the cubic function: there is no standing queue.
    Cubic,
    /// Adapts its data in the queue to `X(t)`.
    FairFlow,
    /// Keeps its window, and then empties the queue.
    Hold,
}

/// Counters of LoLa.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LolaStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Tailored decreases.
    pub decreases: u64,
    /// Slow starts that ended because of the delay.
    pub slow_start_exits: u64,
    /// How often the smallest round-trip time was forgotten.
    pub base_resets: u64,
}

/// The cubic increase: it began at `began`, and reaches `largest` segments after `k` seconds.
#[derive(Debug, Clone, Copy)]
struct Curve {
    began: Nanos,
    k: f64,
    largest: f64,
}

/// Measures the smallest round-trip time of an interval.
#[derive(Debug, Clone, Default)]
struct Measurement {
    /// Ends the round trip whose samples are still those of an older window.
    round: Round,
    skips: bool,
    began: Option<Nanos>,
    smallest: Option<Nanos>,
    samples: u32,
    /// That of the last complete interval.
    last: Option<Nanos>,
}

impl Lola {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: LolaParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            state: LolaState::SlowStart,
            since: Nanos::ZERO,
            largest: 0.0,
            curve: None,
            fraction: 0.0,
            queue: Measurement::default(),
            base: None,
            unseen: 0,
            timeouts: Timeouts::default(),
            stats: LolaStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &LolaStats {
        &self.stats
    }

    /// The current state.
    pub fn state(&self) -> LolaState {
        self.state
    }

    /// The queueing delay as last measured.
    pub fn queueing_delay(&self) -> Option<Nanos> {
        Some(self.queue.last?.saturating_sub(self.base?))
    }

    /// Takes the round-trip time of an ACK. Returns that of an interval which this ACK completes.
    #[inline]
    fn measure(&mut self, ack: &Ack, now: Nanos) -> Option<Nanos> {
        let rtt = self.params.rtt.of(ack);
        if let Some(rtt) = rtt {
            let base = self.base.map_or(rtt, |base| base.min(rtt));
            if rtt.saturating_sub(base) <= self.params.base_epsilon {
                self.unseen = 0;
            }
            self.base = Some(base);
        }
        let queue = &mut self.queue;
        if queue.skips {
            queue.skips = !queue.round.is_over(ack, RoundEnd::Passed);
            return None;
        }
        let began = *queue.began.get_or_insert(now);
        if let Some(rtt) = rtt {
            queue.smallest = Some(queue.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
            queue.samples = queue.samples.saturating_add(1);
        }
        if self.state == LolaState::SlowStart {
            queue.skips = queue.samples >= self.params.slow_start_samples;
            if !queue.skips && !queue.round.is_over(ack, RoundEnd::Passed) {
                return None;
            }
        } else if now.saturating_sub(began) < self.params.measure || queue.samples < self.params.samples {
            return None;
        }
        queue.last = queue.smallest.take();
        (queue.began, queue.samples) = (None, 0);
        queue.last
    }

    /// Skips the round-trip times of what is in flight, and begins an interval after it.
    fn skip_round(&mut self, next: u64) {
        self.queue.round.begin(next);
        self.queue =
            Measurement { skips: true, last: self.queue.last, round: self.queue.round, ..Measurement::default() };
    }

    /// An interval is complete. Its smallest round-trip time was `rtt`.
    fn judge(&mut self, rtt: Nanos, next: u64, now: Nanos) {
        let Some(base) = self.base else { return };
        let delay = rtt.saturating_sub(base);
        match self.state {
            LolaState::SlowStart if delay > self.params.slow_start_exit => {
                self.stats.slow_start_exits += 1;
                self.window.threshold = self.window.bytes;
                self.hold(Nanos::ZERO, now);
                self.skip_round(next);
            }
            LolaState::Cubic if delay > self.params.low => {
                self.state = LolaState::FairFlow;
                self.since = now;
                if delay > self.params.target {
                    self.hold(self.params.hold, now);
                }
            }
            LolaState::FairFlow if delay > self.params.target => self.hold(self.params.hold, now),
            LolaState::FairFlow => self.balance(base, rtt, next, now),
            LolaState::Hold if now >= self.since => self.decrease(base, rtt, next),
            LolaState::SlowStart | LolaState::Cubic | LolaState::Hold => {}
        }
    }

    fn hold(&mut self, time: Nanos, now: Nanos) {
        self.state = LolaState::Hold;
        self.since = now.saturating_add(time);
    }

    /// Adds what is missing to the flow's share of the queue.
    fn balance(&mut self, base: Nanos, rtt: Nanos, next: u64, now: Nanos) {
        let share = self.params.share(now.saturating_sub(self.since), self.window.mss);
        let missing = share - self.params.queued(self.window.bytes, base, rtt);
        if missing >= 1.0 {
            self.grow(missing.min(self.window.bytes as f64 / 2.0));
            self.skip_round(next);
        }
    }

    /// Empties the queue.
    fn decrease(&mut self, base: Nanos, rtt: Nanos, next: u64) {
        self.stats.decreases += 1;
        self.largest = self.size();
        let left = self.params.decreased(self.window.bytes, base, rtt);
        // Not above the window, where the floor is.
        let left = (left as u64).max(self.params.floor.max(1) * self.window.mss).min(self.window.bytes);
        self.window.reduce(left, 1);
        self.begin_cubic(next);
        self.unseen += 1;
        if self.unseen > self.params.base_decreases {
            self.stats.base_resets += 1;
            (self.base, self.unseen) = (None, 0);
        }
    }

    fn begin_cubic(&mut self, next: u64) {
        self.state = LolaState::Cubic;
        (self.curve, self.fraction) = (None, 0.0);
        self.skip_round(next);
    }

    /// The window in segments, with fractions.
    fn size(&self) -> f64 {
        (self.window.bytes as f64 + self.fraction) / self.window.mss as f64
    }

    fn grow(&mut self, bytes: f64) {
        let sum = self.window.bytes as f64 + self.fraction + bytes;
        self.window.set(sum as u64);
        self.fraction = if self.window.bytes == sum as u64 { sum.fract() } else { 0.0 };
    }

    /// Moves the window towards the cubic function of the time when the data sent now is acknowledged.
    fn follow_curve(&mut self, acked: u64, now: Nanos) {
        let (size, largest) = (self.size(), self.largest);
        let params = self.params;
        let curve = self.curve.get_or_insert_with(|| {
            let largest = largest.max(size);
            Curve { began: now, k: params.k(largest, size), largest }
        });
        let rtt = self.base.unwrap_or(Nanos::ZERO);
        let since = now.saturating_add(rtt).saturating_sub(curve.began).as_secs_f64() - curve.k;
        let target = (curve.largest + params.c * since * since * since).clamp(size, 1.5 * size);
        let segments = (acked as f64 / self.window.mss as f64).min(size);
        self.grow((target - size) / size * segments * self.window.mss as f64);
    }

    /// A loss or the timer ends whatever is under way. Returns the threshold in bytes.
    fn lose(&mut self, from: u64) -> u64 {
        let size = self.size();
        self.largest = if size < self.largest { size * (1.0 + self.params.beta) / 2.0 } else { size };
        (from as f64 * self.params.beta) as u64
    }
}

impl CongestionControl for Lola {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        let measured = self.measure(ack, now);
        if !may_grow(ack) {
            return;
        }
        if let Some(rtt) = measured {
            self.judge(rtt, ack.next, now);
        }
        if self.params.only_if_limited && !ack.window_limited {
            return;
        }
        match self.state {
            LolaState::SlowStart if self.window.in_slow_start() => {
                self.params.counting.slow_start(&mut self.window, ack.acked);
            }
            LolaState::SlowStart => self.begin_cubic(ack.next),
            LolaState::Cubic => self.follow_curve(ack.acked, now),
            LolaState::FairFlow | LolaState::Hold => {}
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
        let threshold = self.lose(self.params.reduced.of(&self.window, congestion));
        self.window.reduce(threshold, 2);
        self.begin_cubic(congestion.next);
    }

    fn on_timeout(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            let threshold = self.lose(self.params.reduced.of_timeout(&self.window, congestion));
            self.window.reduce(threshold, 2);
        }
        self.window.collapse();
        self.begin_cubic(congestion.next);
        self.state = LolaState::SlowStart;
    }

    fn on_recovered(&mut self, _now: Nanos) {}

    fn on_idle(&mut self, timeouts: u32, floor: u64, _now: Nanos) {
        self.window.decay(timeouts, floor);
        (self.curve, self.fraction) = (None, 0.0);
        if self.window.in_slow_start() {
            self.state = LolaState::SlowStart;
        }
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

impl Ns3 for Lola {
    fn forget_timeouts(&mut self) {
        self.timeouts = Timeouts::default();
    }

    fn hold(&mut self, bytes: u64) {
        self.window.set(bytes);
    }

    fn restart(&mut self, initial_window: u64) {
        self.window.restart(initial_window);
        self.state = LolaState::SlowStart;
    }
}
