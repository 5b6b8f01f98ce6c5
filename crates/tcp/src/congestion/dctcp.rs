//! DCTCP (RFC 8257): it reduces the window in proportion to the marked fraction of the data.
//!
//! For each window of data it computes the marked fraction of the acknowledged bytes, `M`, and averages it: `alpha = (1
//! - g) alpha + g M`. The first mark in a window of data is a congestion event for the sender, as with classic ECN
//! ([`CongestionControl::on_congestion`]); it leaves `window (1 - alpha / 2)`. A loss halves the window (section 3.5).
//!
//! Deviations:
//! - In section 3.3 the new `alpha` is ready before the reduction if the same ACK triggers both. Here the sender sets
//!   the order: as in ns-3, the reduction comes first. This changes `alpha` by at most a sixteenth.
//! - Growth is NewReno's, and stops while a reduction for a mark is under way, as in Linux and ns-3.
//! - Linux keeps `alpha` in units of 1/1024, and sets values below 16 of them to zero. [`DctcpParams::linux`] does the
//!   same, but in floating point.
//! - ns-3 also reduces by `alpha` after a loss, and allows less than two segments: even less than one, so that nothing
//!   can be sent until the retransmission timer expires and leaves one.

use super::common::{ReductionStats, Round, RoundEnd, Timeouts, Window};
use super::{Ack, Congestion, CongestionControl, Counting, EcnUse, Ns3};
use queuescope_wire::Nanos;

/// How DCTCP averages and reduces. The default follows RFC 8257.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DctcpParams {
    /// The weight of one window in the average, `g`: 1/16.
    pub gain: f64,
    /// The average before the first window: 1.
    pub initial_alpha: f64,
    /// An average below this becomes zero in a window without marks: 0; Linux 16/1024.
    pub least_alpha: f64,
    /// When a window of data ends.
    pub round: RoundEnd,
    /// Whether a loss halves the window and does not count as a mark (section 3.5).
    pub loss_halves: bool,
    /// The smallest window after a reduction, in segments: 2; ns-3 0, less than a segment.
    pub floor: u64,
    /// What growth counts.
    pub counting: Counting,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

impl Default for DctcpParams {
    fn default() -> Self {
        Self {
            gain: 1.0 / 16.0,
            initial_alpha: 1.0,
            least_alpha: 0.0,
            round: RoundEnd::Passed,
            loss_halves: true,
            floor: 2,
            counting: Counting::Bytes { limit: Some(1) },
            only_if_limited: true,
        }
    }
}

impl DctcpParams {
    /// Those of ns-3 3.37's `TcpDctcp`.
    pub fn ns3() -> Self {
        Self {
            round: RoundEnd::LastReached,
            loss_halves: false,
            floor: 0,
            counting: Counting::Segments { carries: false },
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_dctcp`.
    pub fn linux() -> Self {
        let counting = Counting::Segments { carries: true };
        Self { least_alpha: 16.0 / 1024.0, round: RoundEnd::Reached, counting, ..Self::default() }
    }

    /// The average after a window of data whose fraction `marked` was marked.
    #[inline]
    pub fn average(&self, alpha: f64, marked: f64) -> f64 {
        let kept = if alpha < self.least_alpha { 0.0 } else { (1.0 - self.gain) * alpha };
        (kept + self.gain * marked).clamp(0.0, 1.0)
    }
}

/// DCTCP.
#[derive(Debug, Clone)]
pub struct Dctcp {
    params: DctcpParams,
    window: Window,
    round: Round,
    /// Whether the first window of data has begun.
    begun: bool,
    alpha: f64,
    acked: u64,
    marked: u64,
    timeouts: Timeouts,
    stats: DctcpStats,
}

/// Counters of DCTCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DctcpStats {
    /// Reductions by cause.
    pub reductions: ReductionStats,
    /// Windows of data that went into the average.
    pub windows: u64,
    /// Bytes acknowledged as marked.
    pub marked_bytes: u64,
}

impl Dctcp {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: DctcpParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        let mut window = params.counting.window(mss, initial_window);
        if params.floor == 0 {
            window.least = 0;
        }
        Self {
            params,
            window,
            round: Round::default(),
            begun: false,
            alpha: params.initial_alpha.clamp(0.0, 1.0),
            acked: 0,
            marked: 0,
            timeouts: Timeouts::default(),
            stats: DctcpStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &DctcpStats {
        &self.stats
    }

    /// The average marked fraction of the data, 0.0 to 1.0.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    #[inline]
    fn observe(&mut self, ack: &Ack) {
        let Some(counted) = ack.counted else { return };
        let marked = ack.marked.min(counted);
        self.acked = self.acked.saturating_add(counted);
        self.marked = self.marked.saturating_add(marked);
        self.stats.marked_bytes = self.stats.marked_bytes.saturating_add(marked);
        let begins = !std::mem::replace(&mut self.begun, true);
        if begins {
            self.round.begin_with(ack, self.params.round);
        }
        // ns-3 checks at once whether everything sent is acknowledged, which it is after a timeout of the first window.
        if (!begins || self.params.round == RoundEnd::LastReached) && self.round.is_over(ack, self.params.round) {
            let marked = if self.acked > 0 { self.marked as f64 / self.acked as f64 } else { 0.0 };
            self.alpha = self.params.average(self.alpha, marked);
            self.stats.windows += 1;
            (self.acked, self.marked) = (0, 0);
        }
    }

    fn reduce(&mut self, lost: bool) {
        let left = if lost && self.params.loss_halves {
            self.window.bytes / 2
        } else {
            (self.window.bytes as f64 * (1.0 - self.alpha / 2.0)) as u64
        };
        self.window.reduce(left, self.params.floor);
    }
}

impl CongestionControl for Dctcp {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        self.observe(ack);
        if self.params.counting.may_grow(ack) && (ack.window_limited || !self.params.only_if_limited) {
            self.params.counting.grow(&mut self.window, ack.acked);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.count(congestion);
        self.reduce(congestion.lost > 0);
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.stats.reductions.timeouts += 1;
        if self.timeouts.is_first() {
            self.reduce(true);
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

    fn ecn(&self) -> EcnUse {
        EcnUse::Counted
    }
}

impl Ns3 for Dctcp {
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
