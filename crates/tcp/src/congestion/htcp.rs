//! H-TCP (Leith and Shorten, draft-leith-tcp-htcp-06): NewReno whose increase alpha grows with the time since the last
//! congestion event, and whose decrease beta follows the round-trip times.
//!
//! With `d` seconds more than one since the event, an increase is `f = 1 + 10 d + (d / 2)^2`, and 1 before. A congestion
//! event leaves beta of the window: the smallest round-trip time divided by the largest, between 0.5 and 0.8, so that the
//! queue just empties. It is 0.5 if the throughput before the event differs by more than a fifth from that before the
//! previous one. Alpha is `2 (1 - beta) f`: flows with different beta then share a link fairly.
//!
//! Choices:
//! - The throughput before an event is the largest since the previous one, in windows of data of at least the smallest
//!   round-trip time, smoothed by 1/4; as in Linux.
//! - The smallest round-trip time is that of the connection. What the largest has above it shrinks by a twentieth with each
//!   event, as in Linux and FreeBSD.
//! - The draft's scaling of alpha by the round-trip time is off, as in FreeBSD.
//!
//! Linux has times in ticks, here milliseconds (`HZ` of 1000), and alpha and beta in units of 1/128, rounded down at each
//! step. It scales alpha by the smallest round-trip time over 100 ms, which with rounding only increases it. The time counts
//! from the end of the recovery, and alpha changes only when the window grows: the old one stays after a loss until then. A
//! largest round-trip time above 20 ms more than before is ignored. Its beta is 0.5 unless the throughput was steady twice
//! in a row, and below 10 ms. Its products of 32 bits overflow after two minutes without congestion, and its first
//! throughput is over the time since the machine started; here neither is so.
//!
//! ns-3 differs more:
//! - An ACK adds `mss^2 / window + alpha` bytes, where it should add `alpha mss^2 / window`: alpha counts bytes, and in
//!   effect it is NewReno.
//! - The throughput is the average since the event. Beta follows the round-trip times only if the throughput has grown by
//!   less than its double (an integer division), and then has no bounds.
//! - Before the first event, beta is zero, and the time counts from the start of the simulation.

use super::common::{Reduced, ReductionStats, RttSource, Timeouts, Window, may_grow};
use super::throughput::{SECOND, Throughput};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3, Phase};
use queuescope_wire::Nanos;

/// How H-TCP grows and shrinks. The default follows the draft.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HtcpParams {
    /// How long after a congestion event the increase is 1: `Delta_L`, 1 s.
    pub rise_after: Nanos,
    /// The smallest beta, also the one after a change of the throughput: 0.5.
    pub least_beta: f64,
    /// The largest beta: 0.8.
    pub largest_beta: f64,
    /// Beta before the first congestion event.
    pub initial_beta: f64,
    /// The smallest alpha.
    pub least_alpha: f64,
    /// The relative change of the throughput above which beta is the smallest: `Delta_B`, 0.2.
    pub throughput_change: f64,
    /// How the throughput is measured.
    pub throughput: HtcpThroughput,
    /// Alpha is multiplied by the smallest round-trip time over this, at least 0.1 and at most 2.
    pub rtt_reference: Option<Nanos>,
    /// What remains of the largest round-trip time, above the smallest, after a congestion event.
    pub fade: f64,
    /// A round-trip time is ignored for the largest if it exceeds it by more than this (Linux).
    pub largest_rise: Option<Nanos>,
    /// Beta is the smallest up to this round-trip time (Linux).
    pub least_rtt: Nanos,
    /// Whether beta follows the round-trip times only after two steady throughputs in a row (Linux).
    pub waits: bool,
    /// Whether the time counts from the end of a recovery (Linux), not from the congestion event.
    pub counts_from_end: bool,
    /// How the window increases.
    pub increase: HtcpIncrease,
    /// Times are whole multiples of this.
    pub tick: Nanos,
    /// Whether alpha and beta are integers in units of 1/128, computed with integers (Linux).
    pub fixed_point: bool,
    /// What growth in slow start counts.
    pub counting: Counting,
    /// The base of which beta is taken.
    pub reduced: Reduced,
    /// Which round-trip time is used.
    pub rtt: RttSource,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// How the throughput before a congestion event is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtcpThroughput {
    /// The largest smoothed throughput of a window of data.
    Windows,
    /// The average since the previous event. Beta follows the round-trip times if it has grown by less than its double
    /// (ns-3).
    Average,
}

/// How the window increases in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtcpIncrease {
    /// By alpha segments for each window of acknowledged bytes. Alpha is computed with each ACK.
    Bytes,
    /// By a segment for each 1 / alpha of a window of acknowledged segments; the ACK that adds it does not count. Then alpha is
    /// computed (Linux).
    Segments,
    /// By `mss^2 / window + alpha` bytes for each ACK (ns-3).
    BytesForEachAck,
}

impl Default for HtcpParams {
    fn default() -> Self {
        Self {
            rise_after: Nanos(SECOND),
            least_beta: 0.5,
            largest_beta: 0.8,
            initial_beta: 0.5,
            least_alpha: 0.0,
            throughput_change: 0.2,
            throughput: HtcpThroughput::Windows,
            rtt_reference: None,
            fade: 0.95,
            largest_rise: None,
            least_rtt: Nanos::ZERO,
            waits: false,
            counts_from_end: false,
            increase: HtcpIncrease::Bytes,
            tick: Nanos(1),
            fixed_point: false,
            counting: Counting::Bytes { limit: Some(1) },
            reduced: Reduced::Window,
            rtt: RttSource::Measured,
            only_if_limited: true,
        }
    }
}

impl HtcpParams {
    /// Those of ns-3 3.37's `TcpHtcp`.
    pub fn ns3() -> Self {
        Self {
            initial_beta: 0.0,
            least_alpha: 1.0,
            throughput: HtcpThroughput::Average,
            increase: HtcpIncrease::BytesForEachAck,
            counting: Counting::Acks,
            reduced: Reduced::Pipe,
            rtt: RttSource::Smoothed,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_htcp`.
    pub fn linux() -> Self {
        Self {
            largest_beta: 102.0 / UNITS as f64,
            rtt_reference: Some(Nanos(SECOND / 10)),
            largest_rise: Some(Nanos(20 * MILLISECOND)),
            least_rtt: Nanos(10 * MILLISECOND),
            waits: true,
            counts_from_end: true,
            increase: HtcpIncrease::Segments,
            tick: Nanos(MILLISECOND),
            fixed_point: true,
            counting: Counting::Segments { carries: true },
            ..Self::default()
        }
    }

    /// Alpha in segments, at a time `since` after the congestion event, for a beta and the smallest round-trip time, if
    /// known.
    pub fn alpha(&self, since: Nanos, beta: f64, smallest: Option<Nanos>) -> f64 {
        let later = since.saturating_sub(self.rise_after);
        let scaled = self.rtt_reference.zip(smallest);
        let factor = if self.fixed_point {
            let (later, second) = (later.0 / self.tick(), (SECOND / self.tick()).max(1));
            let half = later / 2;
            let factor = 1 + (later.saturating_mul(10)).saturating_add(half.saturating_mul(half) / second) / second;
            let scaled = scaled.map(|(reference, smallest)| {
                let scale = (8 * (reference.0 / self.tick()) / (smallest.0 / self.tick()).max(1)).clamp(4, 80);
                (factor.saturating_mul(8) / scale).max(1)
            });
            scaled.unwrap_or(factor) as f64
        } else {
            let later = later.0 as f64 / SECOND as f64;
            let scale = scaled
                .map_or(1.0, |(reference, smallest)| (smallest.0 as f64 / reference.0.max(1) as f64).clamp(0.1, 2.0));
            (1.0 + 10.0 * later + 0.25 * (later * later)) * scale
        };
        (2.0 * (1.0 - beta) * factor).max(self.least_alpha)
    }

    /// Beta for the smallest and the largest round-trip time.
    pub fn beta(&self, smallest: Nanos, largest: Nanos) -> f64 {
        let ratio = smallest.0 as f64 / largest.0.max(1) as f64;
        match self.throughput {
            HtcpThroughput::Average => ratio,
            HtcpThroughput::Windows if self.fixed_point => {
                let units = (u128::from(smallest.0) * UNITS / u128::from(largest.0.max(1))) as f64;
                (units / UNITS as f64).clamp(self.least_beta, self.largest_beta.max(self.least_beta))
            }
            HtcpThroughput::Windows => ratio.clamp(self.least_beta, self.largest_beta.max(self.least_beta)),
        }
    }

    fn tick(&self) -> u64 {
        self.tick.0.max(1)
    }

    /// A point in time in whole ticks.
    fn whole(&self, time: Nanos) -> Nanos {
        Nanos(time.0 - time.0 % self.tick())
    }

    /// A round-trip time in whole ticks, rounded up.
    fn whole_rtt(&self, rtt: Nanos) -> Nanos {
        Nanos(rtt.0.div_ceil(self.tick()).saturating_mul(self.tick()))
    }
}

const MILLISECOND: u64 = 1_000_000;
/// Up to this number of round trips after a congestion event, a measured throughput replaces the earlier ones.
const NEW: u64 = 3;
/// Linux's alpha and beta are in units of the inverse of this.
const UNITS: u128 = 128;

/// H-TCP.
#[derive(Debug, Clone)]
pub struct Htcp {
    params: HtcpParams,
    window: Window,
    alpha: f64,
    beta: f64,
    /// Sum of what was acknowledged since a segment was added: bytes times alpha, or segments.
    count: f64,
    /// What the next step counts, in segments (Linux).
    acked: u64,
    smallest: Option<Nanos>,
    largest: Nanos,
    /// When the time since the congestion event began.
    since: Nanos,
    /// The phase at the end of the last event.
    phase: Phase,
    throughput: Throughput,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl Htcp {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: HtcpParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            alpha: 1.0,
            beta: params.initial_beta,
            count: 0.0,
            acked: 1,
            smallest: None,
            largest: Nanos::ZERO,
            since: Nanos::ZERO,
            phase: Phase::Open,
            throughput: Throughput::default(),
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

    /// The part of the window that a congestion event leaves.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    fn follow_time(&mut self, now: Nanos) {
        let since = self.params.whole(now).saturating_sub(self.since);
        self.alpha = self.params.alpha(since, self.beta, self.smallest);
    }

    fn measure(&mut self, ack: &Ack, now: Nanos) {
        let average = self.params.throughput == HtcpThroughput::Average;
        // Both Linux and ns-3 measure before they leave a phase; ns-3 has left that of a mark.
        let open = ack.phase == Phase::Open && (self.phase == Phase::Open || (average && self.phase == Phase::Reduced));
        let disorder = ack.phase == Phase::Disorder || (ack.phase == Phase::Open && self.phase == Phase::Disorder);
        if average {
            self.measure_average(ack, open, now);
        }
        if let Some(rtt) = self.params.rtt.of(ack).filter(|_| !average || ack.counted.is_some()) {
            let rtt = self.params.whole_rtt(rtt);
            let smallest = self.smallest.map_or(rtt, |smallest| smallest.min(rtt));
            self.smallest = Some(smallest);
            if open || average {
                self.largest = self.largest.max(smallest);
                let bound = self.params.largest_rise.map_or(Nanos::MAX, |rise| self.largest.saturating_add(rise));
                if rtt <= bound {
                    self.largest = self.largest.max(rtt);
                }
            }
        }
        if open {
            self.acked = ack.delivered.div_ceil(self.window.mss);
        }
        if !average {
            self.measure_window(ack, open || disorder, self.params.whole(now));
        }
    }

    fn measure_window(&mut self, ack: &Ack, counts: bool, now: Nanos) {
        if !counts {
            self.throughput.begin(now);
            return;
        }
        let missing = (self.alpha as u64).max(1).saturating_mul(self.window.mss);
        // In Linux the difference wraps: with an alpha above the window it does not measure.
        let wraps = self.params.fixed_point && missing > self.window.bytes;
        let enough = if wraps { u64::MAX } else { self.window.bytes.saturating_sub(missing) };
        let Some(round_trip) = self.smallest else {
            self.throughput.sum = self.throughput.sum.saturating_add(ack.delivered);
            return;
        };
        let is_new = now.saturating_sub(self.since).0 / round_trip.0.max(1) <= NEW;
        let unit = self.params.fixed_point.then_some(self.window.mss);
        self.throughput.measure(ack.delivered, enough, round_trip, is_new, unit, now);
    }

    fn measure_average(&mut self, ack: &Ack, open: bool, now: Nanos) {
        let Some(counted) = ack.counted else { return };
        if open {
            self.throughput.sum = self.throughput.sum.saturating_add(counted);
        }
        let seconds = |time: Nanos| time.0 as f64 / SECOND as f64;
        let measured = self.throughput.sum as f64 / (seconds(now) - seconds(self.since));
        // ns-3 has it in 32 bits. Without time in between the result is zero, as on most processors.
        self.throughput.current = if measured.is_finite() { f64::from(measured as u64 as u32) } else { 0.0 };
        self.follow_time(now);
    }

    /// Beta at a congestion event.
    fn follow_path(&mut self) {
        let Throughput { current, largest, before, steady, .. } = self.throughput;
        let change = self.params.throughput_change;
        let ratio = self.smallest.map(|smallest| self.params.beta(smallest, self.largest));
        self.beta = self.params.least_beta;
        match self.params.throughput {
            HtcpThroughput::Average => {
                let grown = current > before && before > 0.0 && ((current - before) / before).floor() <= change;
                self.beta = ratio.filter(|_| grown).unwrap_or(self.beta);
                self.throughput = Throughput { before: current, ..Throughput::default() };
            }
            HtcpThroughput::Windows => {
                self.throughput.before = largest;
                // Linux compares five times the one with four and six times the other.
                let is_steady = (largest - before).abs() <= change * before + 1e-9 * before;
                self.throughput.steady = is_steady;
                let long = self.smallest.is_some_and(|smallest| smallest > self.params.least_rtt);
                if is_steady && long && self.largest.0 > 0 && (steady || !self.params.waits) {
                    self.beta = ratio.unwrap_or(self.beta);
                }
            }
        }
    }

    fn reduce(&mut self, from: u64, now: Nanos) {
        let average = self.params.throughput == HtcpThroughput::Average;
        self.follow_path();
        if average {
            self.since = now;
        }
        self.follow_time(now);
        if average {
            (self.smallest, self.largest) = (None, Nanos::ZERO);
        } else if let Some(smallest) = self.smallest {
            let more = self.largest.saturating_sub(smallest);
            let left = self.params.whole(Nanos((more.0 as f64 * self.params.fade) as u64));
            self.largest = self.largest.min(smallest.saturating_add(left));
        }
        let left = match self.params.increase {
            HtcpIncrease::Segments => (self.window.segments() as f64 * self.beta) as u64 * self.window.mss,
            HtcpIncrease::Bytes | HtcpIncrease::BytesForEachAck => (from as f64 * self.beta) as u64,
        };
        self.window.reduce(left, 2);
    }

    /// The time counts from now on.
    fn restart_time(&mut self, now: Nanos) {
        self.since = self.params.whole(now);
        self.count = 0.0;
    }

    fn avoid_congestion(&mut self, acked: u64, now: Nanos) {
        // At most this much can have been in flight.
        let acked = acked.min(2 * self.window.bytes);
        match self.params.increase {
            HtcpIncrease::Bytes => {
                self.follow_time(now);
                self.count += acked as f64 * self.alpha;
                let size = self.window.bytes as f64;
                let more = (self.count / size).floor();
                if more >= 1.0 {
                    self.count -= more * size;
                    self.window.add_segments(more as u64);
                }
            }
            HtcpIncrease::Segments => {
                if self.count * self.alpha >= self.window.segments() as f64 {
                    self.count = 0.0;
                    self.window.add_segments(1);
                    self.follow_time(now);
                } else {
                    self.count += self.acked as f64;
                }
                // One ACK may make several steps.
                self.acked = 1;
            }
            HtcpIncrease::BytesForEachAck => {
                if acked > 0 {
                    let (mss, size) = (self.window.mss as f64, self.window.bytes as f64);
                    let more = ((mss * mss + size * self.alpha) / size).max(1.0);
                    self.window.set(self.window.bytes.saturating_add(more as u64));
                }
            }
        }
    }
}

impl CongestionControl for Htcp {
    fn on_established(&mut self, _rtt: Option<Nanos>, now: Nanos) {
        if self.params.throughput == HtcpThroughput::Windows {
            self.restart_time(now);
            self.throughput.from = self.params.whole(now);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        self.measure(ack, now);
        self.phase = ack.phase;
        if !may_grow(ack) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if self.params.increase == HtcpIncrease::Segments && self.window.in_slow_start() {
            self.params.counting.slow_start(&mut self.window, ack.acked);
        } else if let Some(rest) = self.params.counting.slow_start_first(&mut self.window, ack.acked) {
            self.avoid_congestion(rest, now);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.count(congestion);
        self.reduce(self.params.reduced.of(&self.window, congestion), now);
        self.restart_time(now);
        self.phase = if congestion.lost > 0 { Phase::Recovery } else { Phase::Reduced };
    }

    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(self.params.reduced.of_timeout(&self.window, congestion), now);
        }
        self.window.collapse();
        self.restart_time(now);
        self.phase = Phase::Loss;
    }

    fn on_recovered(&mut self, now: Nanos) {
        if self.params.counts_from_end {
            self.since = self.params.whole(now);
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

impl Ns3 for Htcp {
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
