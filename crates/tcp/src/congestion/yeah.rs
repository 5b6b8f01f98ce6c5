//! YeAH (Baiocchi, Castellani and Vacirca, *YeAH-TCP: Yet Another Highspeed TCP*, 2007).
//!
//! Once per round trip it estimates the queue that it causes, from the smallest round-trip times ever, `base`, and of
//! this round trip, `rtt`: `Q = w (rtt - base) / rtt` packets, and the level `L = (rtt - base) / base` (section 3). With
//! a short queue, at most 80 packets and `L` at most 1/8, it is in its fast mode and grows as Scalable TCP: a segment
//! for each 100 acknowledged ones. Otherwise it is in its slow mode and grows as Reno.
//!
//! In the slow mode it removes a queue above 80 packets before it overflows: the window shrinks by `Q`, by at most half.
//! It does not shrink below the window of a Reno flow that would compete for the path, which it estimates by counting
//! round trips in the slow mode. A loss takes `Q`, from an eighth to half of the window; it takes half after 16
//! successive round trips in the slow mode, because flows that do not avoid queues compete then.
//!
//! Deviations:
//! - Parameters that the paper leaves open are Linux's: 50 round trips in the fast mode forget the Reno flow.
//! - A timeout halves, as in Reno; the paper does not mention timeouts.
//! - With at most two round-trip times in a round trip, either of which may belong to a delayed ACK, it does not judge
//!   the queue (ns-3, Linux).
//!
//! Parameters describe the differences of ns-3 and Linux, which work in whole segments and let the queue decide
//! after a timeout, too:
//! - ns-3 computes 1/8 as an integer, 0: any queue puts it in the slow mode. In the fast mode, segments beyond a whole
//!   step are lost. It takes the loss from what is in flight; if more is taken than that, the threshold wraps at 32
//!   bits and is nearly infinite.
//! - Linux judges the queue only if the window limited the sender when a round trip ended, and forgets the smallest
//!   round-trip time when sending resumes with nothing in flight.

use super::common::{
    LARGEST_WINDOW, Reduced, ReductionStats, Round, RoundEnd, RttSource, Timeouts, Window, ends_repair, may_grow,
};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How YeAH grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct YeahParams {
    /// The longest queue of the fast mode, in packets: Qmax, 80.
    pub longest_queue: f64,
    /// The largest level of the fast mode: 1/phi, 1/8.
    pub largest_level: f64,
    /// The queue is removed in this number of round trips: gamma, 1.
    pub gamma: u32,
    /// The part of the window that is removed with a queue is at most 1 divided by this: 2.
    pub epsilon: u32,
    /// The part of the window that a loss takes is at least 1 divided by this: 8.
    pub delta: u32,
    /// After this many successive round trips in the slow mode, a loss takes half: rho, 16.
    pub competing_rounds: u32,
    /// After more than this many round trips in the fast mode, the window of a competing Reno flow is forgotten: 50.
    pub forgetting_rounds: u32,
    /// The fast mode adds a segment for each this many acknowledged ones, or for each window of them: 100.
    pub scalable_step: u32,
    /// How the queue is computed.
    pub queue: YeahQueue,
    /// Whether the queue decides after a timeout, too. Otherwise a timeout halves.
    pub judges_timeouts: bool,
    /// Whether a reduction by more than there is wraps at 32 bits (ns-3).
    pub wraps: bool,
    /// What a reduction is taken from.
    pub reduced: Reduced,
    /// What growth counts.
    pub counting: Counting,
    /// When a round trip ends.
    pub round: RoundEnd,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the smallest round-trip time is forgotten when sending resumes with nothing in flight (Linux).
    pub forgets_when_idle: bool,
    /// Whether the window changes only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// How the queue and everything that follows from it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YeahQueue {
    /// In real numbers.
    Exact,
    /// In whole segments, rounded down (Linux).
    Whole,
    /// The same; the queue is the rate, in floating point, times the delay in seconds (ns-3).
    FromRate,
}

impl Default for YeahParams {
    fn default() -> Self {
        Self {
            longest_queue: 80.0,
            largest_level: 0.125,
            gamma: 1,
            epsilon: 2,
            delta: 8,
            competing_rounds: 16,
            forgetting_rounds: 50,
            scalable_step: 100,
            queue: YeahQueue::Exact,
            judges_timeouts: false,
            wraps: false,
            reduced: Reduced::Window,
            counting: Counting::Bytes { limit: Some(1) },
            round: RoundEnd::Passed,
            rtt: RttSource::Measured,
            forgets_when_idle: false,
            only_if_limited: true,
        }
    }
}

impl YeahParams {
    /// Those of ns-3 3.37's `TcpYeah`.
    pub fn ns3() -> Self {
        Self {
            largest_level: 0.0,
            queue: YeahQueue::FromRate,
            judges_timeouts: true,
            wraps: true,
            reduced: Reduced::Pipe,
            counting: Counting::Acks,
            round: RoundEnd::LastReached,
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_yeah`.
    pub fn linux() -> Self {
        Self {
            queue: YeahQueue::Whole,
            judges_timeouts: true,
            counting: Counting::Segments { carries: true },
            forgets_when_idle: true,
            ..Self::default()
        }
    }

    /// How many packets of a window of `segments` segments wait: the paper's `Q`.
    pub fn queue(&self, segments: f64, base: Nanos, rtt: Nanos) -> f64 {
        let (delay, rtt) = (rtt.saturating_sub(base).0, rtt.0.max(1));
        match self.queue {
            YeahQueue::Exact => segments * (delay as f64 / rtt as f64),
            YeahQueue::Whole => (segments as u128 * u128::from(delay) / u128::from(rtt)) as f64,
            YeahQueue::FromRate => (segments / (rtt as f64 / 1e9) * (delay as f64 / 1e9)).floor(),
        }
    }

    /// A number of segments as the profile has it.
    fn whole(&self, segments: f64) -> f64 {
        if self.queue == YeahQueue::Exact { segments } else { segments.floor() }
    }

    /// The segments that a loss takes from `segments`, with a queue of `queue` packets.
    fn cut(&self, segments: f64, queue: f64, competes: bool) -> f64 {
        let half = self.whole(segments / 2.0).max(2.0);
        if competes { half } else { queue.max(self.whole(segments / f64::from(self.delta.max(1)))).min(half) }
    }
}

/// YeAH.
#[derive(Debug, Clone)]
pub struct Yeah {
    params: YeahParams,
    window: Window,
    round: Round,
    /// The smallest round-trip time ever, and that of this round trip.
    base: Nanos,
    smallest: Nanos,
    samples: u32,
    /// The last estimate of the queue, in packets.
    queue: f64,
    /// Successive round trips in the slow mode; zero in the fast mode.
    slow_rounds: u32,
    /// Round trips in the fast mode since the last loss.
    fast_rounds: u32,
    /// The window of a Reno flow that competes, in segments; 2 if there is none.
    competitor: f64,
    /// Segments that count for the next step of ns-3's fast mode.
    scalable_count: u64,
    /// Whether no loss is being repaired.
    active: bool,
    begins_round: bool,
    disordered: bool,
    timeouts: Timeouts,
    stats: YeahStats,
}

/// Counters of YeAH.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct YeahStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Round trips after which it was in the fast mode.
    pub fast_rounds: u64,
    /// Round trips after which it was in the slow mode.
    pub slow_rounds: u64,
    /// Queues that it removed without a loss.
    pub decongestions: u64,
}

impl Yeah {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: YeahParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            round: Round::default(),
            base: Nanos::MAX,
            smallest: Nanos::MAX,
            samples: 0,
            queue: 0.0,
            slow_rounds: 0,
            fast_rounds: 0,
            competitor: 2.0,
            scalable_count: 0,
            active: true,
            begins_round: false,
            disordered: false,
            timeouts: Timeouts::default(),
            stats: YeahStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &YeahStats {
        &self.stats
    }

    /// The last estimate of the queue, in packets.
    pub fn queue(&self) -> f64 {
        self.queue
    }

    /// The estimated window of a competing Reno flow, in segments.
    pub fn competitor(&self) -> f64 {
        self.competitor
    }

    fn size(&self) -> f64 {
        match self.params.queue {
            YeahQueue::Exact => self.window.bytes as f64 / self.window.mss as f64,
            YeahQueue::Whole | YeahQueue::FromRate => self.window.segments() as f64,
        }
    }

    /// A round trip with more than two measured times is over.
    fn judge(&mut self) {
        let size = self.size();
        let queue = self.params.queue(size, self.base, self.smallest);
        let delay = self.smallest.saturating_sub(self.base).0 as f64;
        self.queue = queue;
        if queue <= self.params.longest_queue && delay <= self.base.0 as f64 * self.params.largest_level {
            self.stats.fast_rounds += 1;
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > self.params.forgetting_rounds {
                (self.fast_rounds, self.competitor) = (0, 2.0);
            }
            return;
        }
        self.stats.slow_rounds += 1;
        self.slow_rounds = self.slow_rounds.saturating_add(1);
        let mut left = size;
        if queue > self.params.longest_queue && size > self.competitor {
            self.stats.decongestions += 1;
            let part = |of: f64, by: u32| self.params.whole(of / f64::from(by.max(1)));
            let cut = part(queue, self.params.gamma).min(part(size, self.params.epsilon));
            left = (size - cut).max(self.competitor);
            self.window.set((left * self.window.mss as f64) as u64);
            self.window.threshold = self.window.bytes;
        }
        self.competitor =
            if self.competitor <= 2.0 { self.params.whole(left / 2.0).max(2.0) } else { self.competitor + 1.0 };
    }

    fn grow(&mut self, acked: u64) {
        let is_fast = self.slow_rounds == 0;
        let step = u64::from(self.params.scalable_step);
        match self.params.counting {
            Counting::Bytes { .. } if self.window.in_slow_start() => {
                self.params.counting.slow_start(&mut self.window, acked);
            }
            Counting::Bytes { .. } => {
                let most = if is_fast { step * self.window.mss } else { u64::MAX };
                self.window.avoid_congestion_within(acked, most);
            }
            Counting::Segments { .. } => {
                let mut segments = self.window.whole_segments(acked);
                if self.window.in_slow_start() {
                    segments = self.window.slow_start(segments * self.window.mss, None) / self.window.mss;
                    if segments == 0 {
                        return;
                    }
                }
                let size = self.window.segments().min(if is_fast { step } else { u64::MAX });
                self.window.avoid_by_segments_of(segments, size);
            }
            Counting::Acks if self.window.in_slow_start() => self.params.counting.slow_start(&mut self.window, acked),
            Counting::Acks if is_fast => self.step_by_acks(acked, step),
            Counting::Acks => self.params.counting.grow(&mut self.window, acked),
        }
    }

    /// ns-3's `TcpScalable`: a window of whole segments, and what is left after a step is dropped.
    fn step_by_acks(&mut self, acked: u64, step: u64) {
        let size = self.window.segments();
        let needed = size.min(step).max(1);
        let mut more = 0;
        if self.scalable_count >= needed {
            (self.scalable_count, more) = (0, 1);
        }
        self.scalable_count = self.scalable_count.saturating_add(self.window.whole_segments(acked));
        if self.scalable_count >= needed {
            more += self.scalable_count / needed;
            self.scalable_count = 0;
        }
        if more > 0 {
            self.window.set(size.saturating_add(more).saturating_mul(self.window.mss));
        }
    }

    fn reduce(&mut self, from: u64, judged: bool) {
        let mss = self.window.mss;
        let from = from.min(LARGEST_WINDOW);
        let segments = self.params.whole(from as f64 / mss as f64);
        let competes = !judged || self.slow_rounds >= self.params.competing_rounds;
        let cut = (self.params.cut(segments, self.queue, competes) * mss as f64) as u64;
        let mut left = from.saturating_sub(cut);
        if self.params.wraps && cut > from {
            left = (1 << 32) - (cut - from) % (1 << 32);
        }
        if self.params.reduced == Reduced::Window && self.params.queue != YeahQueue::Exact {
            left = left / mss * mss;
        }
        self.window.reduce(left, 2);
        self.fast_rounds = 0;
        self.competitor = self.params.whole(self.competitor / 2.0).max(2.0);
    }
}

impl CongestionControl for Yeah {
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
        // ns-3 keeps the count of a larger window, and an ACK that acknowledges nothing may find it worth a segment.
        let counts_on = self.params.counting == Counting::Acks;
        if !(may_grow(ack) || (counts_on && ends_repair(ack))) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        self.grow(ack.acked);
        if self.round.is_over(ack, self.params.round) {
            if self.samples > 2 {
                self.judge();
            }
            (self.smallest, self.samples) = (Nanos::MAX, 0);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
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
        self.begins_round |= !self.active;
        self.active = true;
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, _now: Nanos) {
        if self.params.forgets_when_idle && in_flight <= bytes && self.active {
            self.base = Nanos::MAX;
            self.begins_round = true;
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

impl Ns3 for Yeah {
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
