//! HighSpeed TCP (RFC 3649): NewReno whose increase `a(w)` and decrease `b(w)` depend on the window `w`.
//!
//! Up to 38 segments it is NewReno: `a` is 1 and `b` is 1/2. Above that (section 5), `b(w)` falls with the logarithm of the
//! window to 1/10 at 83000 segments, and `a(w)` is what gives the response function `p(w) = 0.078 / w^1.2`, where `p` is the
//! rate of losses. Appendix B has both as a table.
//!
//! Deviations and choices:
//! - The table ends at 94717 segments. Larger windows have the values of that one, because `b(w)` would become negative.
//! - A timeout sets the threshold by `b(w)`, too, as in Linux and ns-3.
//! - The limit of slow start that the RFC mentions (RFC 3742) is not part of this, nor of Linux or ns-3.
//!
//! Linux and ns-3 use the table, whose increase is the next whole number. Parameters describe their differences:
//! - ns-3 has 53667 in the table, where the RFC and the formula have 53677. It reduces what is in flight. It keeps its
//!   count when it reduces, so a count of a larger window may be worth some segments.
//! - Linux counts ACKs, not segments: with delayed ACKs it grows half as fast. It looks up the row of the table only where
//!   it grows in congestion avoidance, and a reduction takes the row found last: after slow start that is the first row,
//!   half of the window. Its table ends with 89053. It has `b` in units of 1/256.

use super::common::{Reduced, ReductionStats, Timeouts, Window, ends_repair, may_grow, segments_for};
use super::{Ack, Congestion, CongestionControl, Counting, Ns3};
use queuescope_wire::Nanos;

/// How HighSpeed TCP grows and shrinks. The default follows RFC 3649.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HighSpeedParams {
    /// Up to this window, in segments, it is NewReno: `Low_Window`, 38. For the table too.
    pub low_window: u64,
    /// The window at which the decrease is `high_decrease`: `High_Window`, 83000 segments.
    pub high_window: u64,
    /// The decrease at `high_window`: `High_Decrease`, 0.1.
    pub high_decrease: f64,
    /// The response function is `p(w) = response_scale / w^response_power`: 0.078.
    pub response_scale: f64,
    /// The power in the response function: 1.2.
    pub response_power: f64,
    /// Where `a(w)` and `b(w)` come from. The five parameters above are those of the formulas.
    pub coefficients: Coefficients,
    /// What counts in congestion avoidance.
    pub steps: HighSpeedSteps,
    /// What growth in slow start counts.
    pub counting: Counting,
    /// The base of which `b(w)` is taken.
    pub reduced: Reduced,
    /// Whether the window grows only when it was what limited the sender.
    pub only_if_limited: bool,
}

/// Where `a(w)` and `b(w)` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coefficients {
    /// The formulas of section 5.
    Formulas,
    /// The table of appendix B as ns-3 has it, looked up whenever it is used.
    Ns3Table,
    /// The table of appendix B as Linux has it. The row is looked up for each step of congestion avoidance, and a
    /// reduction uses the row found last.
    LinuxTable,
}

/// What counts in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HighSpeedSteps {
    /// Acknowledged bytes.
    Bytes,
    /// Whole segments. Reductions keep the count (ns-3).
    Segments,
    /// ACKs. An ACK adds at most one segment (Linux).
    Acks,
}

impl Default for HighSpeedParams {
    fn default() -> Self {
        Self {
            low_window: 38,
            high_window: 83_000,
            high_decrease: 0.1,
            response_scale: 0.078,
            response_power: 1.2,
            coefficients: Coefficients::Formulas,
            steps: HighSpeedSteps::Bytes,
            counting: Counting::Bytes { limit: Some(1) },
            reduced: Reduced::InFlight,
            only_if_limited: true,
        }
    }
}

impl HighSpeedParams {
    /// Those of ns-3 3.37's `TcpHighSpeed`.
    pub fn ns3() -> Self {
        Self {
            coefficients: Coefficients::Ns3Table,
            steps: HighSpeedSteps::Segments,
            counting: Counting::Acks,
            reduced: Reduced::Pipe,
            only_if_limited: false,
            ..Self::default()
        }
    }

    /// Those of Linux's `tcp_highspeed`.
    pub fn linux() -> Self {
        Self {
            coefficients: Coefficients::LinuxTable,
            steps: HighSpeedSteps::Acks,
            counting: Counting::Segments { carries: true },
            reduced: Reduced::Window,
            ..Self::default()
        }
    }

    /// The increase per round trip in segments, for a window in segments: `a(w)`; at least 1.
    pub fn increase(&self, window: f64) -> f64 {
        match self.coefficients {
            Coefficients::Formulas => {
                let window = window.min(LAST_WINDOW as f64);
                if window <= self.low_window as f64 {
                    return 1.0;
                }
                let (loss, decrease) = (self.response_scale / window.powf(self.response_power), self.formula(window));
                (window * window * loss * 2.0 * decrease / (2.0 - decrease)).max(1.0)
            }
            Coefficients::Ns3Table | Coefficients::LinuxTable => (self.row(window as u64) + 1) as f64,
        }
    }

    /// The fraction of the window that a loss takes, for a window in segments: `b(w)`.
    pub fn decrease(&self, window: f64) -> f64 {
        match self.coefficients {
            Coefficients::Formulas => self.formula(window),
            Coefficients::Ns3Table | Coefficients::LinuxTable => self.decrease_of_row(self.row(window as u64)),
        }
    }

    fn formula(&self, window: f64) -> f64 {
        let (low, high) = (self.low_window.max(1) as f64, self.high_window as f64);
        if window <= low || high <= low {
            return 0.5;
        }
        let part = (window.min(LAST_WINDOW as f64) / low).ln() / (high / low).ln();
        (0.5 + (self.high_decrease - 0.5) * part).clamp(0.0, 0.5)
    }

    /// The row of the table, from zero, for a window in segments: the first whose window is not smaller.
    fn row(&self, window: u64) -> usize {
        let rows = match self.coefficients {
            Coefficients::LinuxTable => TABLE.len() - 1,
            Coefficients::Ns3Table | Coefficients::Formulas => TABLE.len(),
        };
        let ends_at = |row: usize| match (self.coefficients, TABLE[row].0) {
            (Coefficients::Ns3Table, 53_677) => 53_667,
            (_, end) => u64::from(end),
        };
        let (mut low, mut high) = (0, rows - 1);
        while low < high {
            let middle = low.midpoint(high);
            if window > ends_at(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn decrease_of_row(&self, row: usize) -> f64 {
        let (window, hundredths) = TABLE[row];
        match self.coefficients {
            // Linux has the formula's values at the windows of the table, rounded down.
            Coefficients::LinuxTable => (Self::default().formula(f64::from(window)) * 256.0).floor() / 256.0,
            Coefficients::Ns3Table | Coefficients::Formulas => f64::from(hundredths) / 100.0,
        }
    }
}

/// The window of the last row of the table.
const LAST_WINDOW: u64 = 94_717;

/// The table of RFC 3649, appendix B. Row `n` (from 1) has the largest window, in segments, at which `a(w)` is at most `n`,
/// and `b(w)` there in hundredths.
const TABLE: [(u32, u8); 73] = [
    (38, 50),
    (118, 44),
    (221, 41),
    (347, 38),
    (495, 37),
    (663, 35),
    (851, 34),
    (1058, 33),
    (1284, 32),
    (1529, 31),
    (1793, 30),
    (2076, 29),
    (2378, 28),
    (2699, 28),
    (3039, 27),
    (3399, 27),
    (3778, 26),
    (4177, 26),
    (4596, 25),
    (5036, 25),
    (5497, 24),
    (5979, 24),
    (6483, 23),
    (7009, 23),
    (7558, 22),
    (8130, 22),
    (8726, 22),
    (9346, 21),
    (9991, 21),
    (10661, 21),
    (11358, 20),
    (12082, 20),
    (12834, 20),
    (13614, 19),
    (14424, 19),
    (15265, 19),
    (16137, 19),
    (17042, 18),
    (17981, 18),
    (18955, 18),
    (19965, 17),
    (21013, 17),
    (22101, 17),
    (23230, 17),
    (24402, 16),
    (25618, 16),
    (26881, 16),
    (28193, 16),
    (29557, 15),
    (30975, 15),
    (32450, 15),
    (33986, 15),
    (35586, 14),
    (37253, 14),
    (38992, 14),
    (40808, 14),
    (42707, 13),
    (44694, 13),
    (46776, 13),
    (48961, 13),
    (51258, 13),
    (53677, 12),
    (56230, 12),
    (58932, 12),
    (61799, 12),
    (64851, 11),
    (68113, 11),
    (71617, 11),
    (75401, 10),
    (79517, 10),
    (84035, 10),
    (89053, 10),
    (94717, 9),
];

/// HighSpeed TCP.
#[derive(Debug, Clone)]
pub struct HighSpeed {
    params: HighSpeedParams,
    window: Window,
    /// The window for which `increase` was computed, in bytes, and the increase.
    computed: (u64, f64),
    /// The row of Linux's table.
    row: usize,
    /// The sum of `a(w)` over what was acknowledged since a segment was added: over bytes, segments or ACKs.
    count: f64,
    timeouts: Timeouts,
    stats: ReductionStats,
}

impl HighSpeed {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. The algorithm uses no randomness.
    pub fn new(params: HighSpeedParams, mss: u32, initial_window: u64, _seed: u64) -> Self {
        Self {
            params,
            window: params.counting.window(mss, initial_window),
            computed: (0, 1.0),
            row: 0,
            count: 0.0,
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
        let left = match self.params.coefficients {
            Coefficients::Formulas => {
                let decrease = self.params.decrease(from as f64 / mss as f64);
                (from as f64 * (1.0 - decrease)) as u64
            }
            Coefficients::Ns3Table => (segments as f64 * (1.0 - self.params.decrease(segments as f64))) as u64 * mss,
            Coefficients::LinuxTable => {
                (segments - (segments as f64 * self.params.decrease_of_row(self.row)) as u64) * mss
            }
        };
        self.window.reduce(left, 2);
        self.forget_count();
    }

    fn forget_count(&mut self) {
        if self.params.steps != HighSpeedSteps::Segments {
            self.count = 0.0;
        }
    }

    /// `a(w)` of the current window.
    #[inline]
    fn increase(&mut self) -> f64 {
        if self.computed.0 != self.window.bytes {
            let segments = match self.params.coefficients {
                Coefficients::Formulas => self.window.bytes as f64 / self.window.mss as f64,
                Coefficients::Ns3Table | Coefficients::LinuxTable => self.window.segments() as f64,
            };
            self.computed = (self.window.bytes, self.params.increase(segments));
            self.row = self.params.row(self.window.segments());
        }
        self.computed.1
    }

    fn avoid_congestion(&mut self, acked: u64) {
        let (increase, size) = (self.increase(), self.window.segments());
        match self.params.steps {
            HighSpeedSteps::Bytes => {
                // At most this much can have been in flight.
                self.count += acked.min(2 * self.window.bytes) as f64 * increase;
                let more = (self.count / self.window.bytes as f64).floor();
                if more >= 1.0 {
                    self.count -= more * self.window.bytes as f64;
                    self.window.add_segments(more as u64);
                }
            }
            HighSpeedSteps::Segments => {
                self.count += (acked / self.window.mss) as f64 * increase;
                let more;
                (more, self.count) = segments_for(self.count, size);
                if more > 0 {
                    self.window.set(size.saturating_add(more).saturating_mul(self.window.mss));
                }
            }
            HighSpeedSteps::Acks => {
                self.count += increase;
                if self.count >= size as f64 {
                    self.count -= size as f64;
                    self.window.add_segments(1);
                }
            }
        }
    }
}

impl CongestionControl for HighSpeed {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        self.timeouts.on_ack(ack);
        // ns-3 keeps the count of a larger window, and an ACK that acknowledges nothing may find it worth a segment.
        let counts_on = self.params.steps == HighSpeedSteps::Segments;
        if !(may_grow(ack) || (counts_on && ends_repair(ack))) || (self.params.only_if_limited && !ack.window_limited) {
            return;
        }
        if self.params.steps == HighSpeedSteps::Acks && self.window.in_slow_start() {
            self.params.counting.slow_start(&mut self.window, ack.acked);
        } else if let Some(rest) = self.params.counting.slow_start_first(&mut self.window, ack.acked) {
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

impl Ns3 for HighSpeed {
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
