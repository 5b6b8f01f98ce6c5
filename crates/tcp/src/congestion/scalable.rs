//! Scalable TCP (Kelly, *Scalable TCP: Improving Performance in Highspeed Wide Area Networks*, 2003).
//!
//! Each acknowledged segment adds a hundredth of a segment to the window, and a loss takes an eighth of it. The time to
//! recover from a loss is then the same for all windows: about 13 round trips. Up to the legacy window of 16 segments it is
//! NewReno.
//!
//! Parameters describe the differences of Linux and ns-3. Neither has a legacy window: they add a segment for each `interval`
//! acknowledged ones or for each window of them, whichever is less, so below `interval` segments they grow as NewReno and
//! reduce by an eighth.
//! - Linux counts as Reno does ([`Counting::Segments`]).
//! - ns-3 has an interval of 50, which Linux had for delayed ACKs until version 5.6. When it adds segments, it drops the rest
//!   of its count; a reduction keeps the count. It reduces what is in flight.

use super::common::{Reduced, ReductionStats, Timeouts, Window, ends_repair, may_grow};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3};
use queuescope_wire::Nanos;

/// How Scalable TCP grows and shrinks. The default follows the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalableParams {
    /// How many acknowledged segments add a segment: 1 / `a`, 100.
    pub interval: u32,
    /// The fraction of the window that a loss takes: `b`, 1/8.
    pub decrease: f64,
    /// Up to this window, in segments, it is NewReno: `lwnd`, 16.
    pub low_window: u64,
    /// How segments are counted in congestion avoidance.
    pub steps: ScalableSteps,
    /// What growth in slow start counts.
    pub counting: Counting,
    /// The base of which `decrease` is taken.
    pub reduced: Reduced,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// How congestion avoidance counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalableSteps {
    /// Bytes: a segment for each `interval` segments of them.
    Bytes,
    /// Whole segments: a segment for each `interval` or for each window of them, whichever is less (Linux).
    Segments,
    /// The same, but the rest is dropped when segments are added, and a reduction keeps the count (ns-3).
    SegmentsWithoutRest,
}

impl Default for ScalableParams {
    fn default() -> Self {
        Self {
            interval: 100,
            decrease: 0.125,
            low_window: 16,
            steps: ScalableSteps::Bytes,
            counting: Counting::Bytes { limit: Some(1) },
            reduced: Reduced::Window,
            only_if_limited: true,
        }
    }
}

impl ScalableParams {
    /// Those of ns-3 3.37's `TcpScalable`.
    pub fn ns3() -> Self {
        Self {
            interval: 50,
            low_window: 0,
            steps: ScalableSteps::SegmentsWithoutRest,
            counting: Counting::Acks,
            reduced: Reduced::Pipe,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_scalable`.
    pub fn linux() -> Self {
        Self {
            low_window: 0,
            steps: ScalableSteps::Segments,
            counting: Counting::Segments { carries: true },
            ..Self::default()
        }
    }
}

/// Scalable TCP.
#[derive(Debug, Clone)]
pub struct Scalable {
    params: ScalableParams,
    window: Window,
    /// What was acknowledged since a segment was added: bytes, or segments in ns-3's version. Linux's count is Reno's.
    count: u64,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl Scalable {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: ScalableParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            count: 0,
            timeouts: Timeouts::default(),
            stats: ReductionStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReductionStats {
        &self.stats
    }

    fn reduce(&mut self, from: u64) {
        let (mss, segments) = (self.window.mss, from / self.window.mss);
        let decrease = if segments <= self.params.low_window { 0.5 } else { self.params.decrease };
        let left = match self.params.steps {
            ScalableSteps::Bytes => (from as f64 * (1.0 - decrease)) as u64,
            ScalableSteps::Segments => (segments - (segments as f64 * decrease) as u64) * mss,
            ScalableSteps::SegmentsWithoutRest => (segments as f64 * (1.0 - decrease)) as u64 * mss,
        };
        self.window.reduce(left, 2);
        self.forget_count();
    }

    fn forget_count(&mut self) {
        if self.params.steps != ScalableSteps::SegmentsWithoutRest {
            self.count = 0;
        }
    }

    fn avoid_congestion(&mut self, acked: u64) {
        let (interval, size) = (u64::from(self.params.interval.max(1)), self.window.segments());
        let mss = self.window.mss;
        match self.params.steps {
            ScalableSteps::Bytes if size <= self.params.low_window => self.window.avoid_congestion(acked),
            ScalableSteps::Bytes => {
                self.count = self.count.saturating_add(acked);
                self.window.add_segments(self.count / (interval * mss));
                self.count %= interval * mss;
            }
            ScalableSteps::Segments => self.window.avoid_by_segments_of(acked / mss, size.min(interval)),
            ScalableSteps::SegmentsWithoutRest => {
                let (each, mut larger) = (size.min(interval), size);
                if self.count >= each {
                    (self.count, larger) = (0, larger + 1);
                }
                self.count = self.count.saturating_add(acked / mss);
                if self.count >= each {
                    larger = larger.saturating_add(self.count / each);
                    self.count = 0;
                }
                if larger > size {
                    self.window.set(larger.saturating_mul(mss));
                }
            }
        }
    }
}

impl CongestionControl for Scalable {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        // ns-3 keeps the count of a larger window, and an ACK that acknowledges nothing may find it worth a segment.
        let counts_on = self.params.steps == ScalableSteps::SegmentsWithoutRest;
        if !(may_grow(ack) || (counts_on && ends_repair(ack))) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if let Some(rest) = self.params.counting.slow_start_first(&mut self.window, ack.acked) {
            self.avoid_congestion(rest);
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
        self.forget_count();
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

impl Ns3 for Scalable {
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
