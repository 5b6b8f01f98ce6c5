//! What congestion controls share: a window that grows as Reno's does, round trips, and the choice of a round-trip
//! time.

use super::{Ack, Congestion, Phase};
use queuescope_wire::Nanos;

/// The largest window, in bytes: a terabyte. No path holds more, and its square is exact enough in floating point.
pub(super) const LARGEST_WINDOW: u64 = 1 << 40;

/// A congestion window with what Reno needs to grow it (RFC 5681 section 3.1, RFC 3465 section 2).
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// The size of a segment in bytes; at least 1.
    pub mss: u64,
    /// The smallest window, in bytes: `mss`; zero for ns-3's DCTCP.
    pub least: u64,
    /// The window in bytes, from `least` to [`LARGEST_WINDOW`].
    pub bytes: u64,
    /// The slow-start threshold in bytes; `u64::MAX` before the first congestion event.
    pub threshold: u64,
    /// Bytes acknowledged in congestion avoidance since the window last grew; or segments, where segments are counted.
    pub credit: u64,
    /// Whether a reduction keeps `credit`.
    pub keeps_credit: bool,
    /// Acknowledged bytes that do not make a segment yet; see [`Self::whole_segments`].
    remainder: u64,
}

impl Window {
    pub fn new(mss: u32, initial: u64) -> Self {
        let mss = u64::from(mss.max(1));
        let bytes = initial.clamp(mss, LARGEST_WINDOW);
        Self { mss, least: mss, bytes, threshold: u64::MAX, credit: 0, keeps_credit: false, remainder: 0 }
    }

    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.bytes < self.threshold
    }

    /// Whole segments in the window; at least one.
    #[inline]
    pub fn segments(&self) -> u64 {
        (self.bytes / self.mss).max(1)
    }

    #[inline]
    pub fn set(&mut self, bytes: u64) {
        self.bytes = bytes.clamp(self.least, LARGEST_WINDOW);
    }

    #[inline]
    pub fn add_segments(&mut self, segments: u64) {
        self.set(self.bytes.saturating_add(segments.saturating_mul(self.mss)));
    }

    /// Slow start by bytes: at most `limit` segments per ACK, and not past the threshold. Returns the unused part of
    /// `acked`.
    #[inline]
    pub fn slow_start(&mut self, acked: u64, limit: Option<u32>) -> u64 {
        let most = limit.map_or(acked, |limit| acked.min(u64::from(limit) * self.mss));
        let before = self.bytes;
        self.set(before.saturating_add(most).min(self.threshold));
        most.saturating_sub(self.bytes.saturating_sub(before))
    }

    /// Congestion avoidance by bytes: one segment for each window of acknowledged bytes.
    #[inline]
    pub fn avoid_congestion(&mut self, acked: u64) {
        self.avoid_congestion_within(acked, u64::MAX);
    }

    /// The same, but one segment for each `most` acknowledged bytes if the window is larger.
    #[inline]
    pub fn avoid_congestion_within(&mut self, acked: u64, most: u64) {
        let size = self.bytes.min(most).max(1);
        self.credit = self.credit.saturating_add(acked.min(LARGEST_WINDOW));
        if self.credit >= size {
            let segments = self.credit / size;
            self.credit %= size;
            self.add_segments(segments);
        }
    }

    /// Congestion avoidance by whole segments: one segment for each window of acknowledged segments. A count left by a
    /// larger window is worth one segment.
    #[inline]
    pub fn avoid_by_segments(&mut self, acked: u64) {
        self.avoid_by_segments_of(acked, self.segments());
    }

    /// The same, with one segment for each `size` acknowledged segments.
    #[inline]
    pub fn avoid_by_segments_of(&mut self, acked: u64, size: u64) {
        let size = size.max(1);
        if self.credit >= size {
            self.credit = 0;
            self.add_segments(1);
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= size {
            self.add_segments(self.credit / size);
            self.credit %= size;
        }
    }

    /// Whether as many segments were counted as the window has. If so, the count restarts, without `acked` segments;
    /// otherwise they are counted.
    #[inline]
    pub fn has_counted_a_window(&mut self, acked: u64) -> bool {
        let counted = self.credit >= self.segments();
        self.credit = if counted { 0 } else { self.credit.saturating_add(acked) };
        counted
    }

    /// The whole segments that `acked` bytes complete together with the remainder of earlier ACKs.
    #[inline]
    pub fn whole_segments(&mut self, acked: u64) -> u64 {
        // Almost always one or two whole segments are acknowledged, and a division costs more than everything else
        // here.
        if self.remainder == 0 && acked == self.mss {
            return 1;
        }
        let bytes = self.remainder.saturating_add(acked);
        self.remainder = bytes % self.mss;
        bytes / self.mss
    }

    /// Reduces the window and the threshold to `threshold` bytes, but not below `floor` segments.
    pub fn reduce(&mut self, threshold: u64, floor: u64) {
        self.threshold = threshold.max(floor * self.mss).min(LARGEST_WINDOW);
        self.set(self.threshold);
        self.forget_credit();
    }

    /// After `timeouts` retransmission timeouts with nothing in flight, halves the window once for each. The threshold
    /// remembers three quarters of the window (RFC 2861 section 3.1).
    pub fn decay(&mut self, timeouts: u32, floor: u64) {
        self.threshold = self.threshold.max(self.bytes * 3 / 4);
        let left = self.bytes.checked_shr(timeouts).unwrap_or(0);
        self.set(left.max(floor.min(self.bytes)));
    }

    /// Resets window and threshold to their initial values.
    pub fn restart(&mut self, initial: u64) {
        self.set(initial);
        self.threshold = u64::MAX;
    }

    /// Sets the window after a timeout (RFC 5681 section 3.1, equation 4 and below).
    pub fn collapse(&mut self) {
        self.set(self.mss);
        self.forget_credit();
    }

    fn forget_credit(&mut self) {
        if !self.keeps_credit {
            self.credit = 0;
        }
    }
}

/// The base of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduced {
    /// The bytes in flight (RFC 5681 equation 4).
    InFlight,
    /// The bytes in flight without those found lost (ns-3).
    Pipe,
    /// The window (Linux).
    Window,
}

impl Reduced {
    /// The base in bytes.
    pub(super) fn of(self, window: &Window, congestion: &Congestion) -> u64 {
        match self {
            Self::InFlight => congestion.in_flight,
            Self::Pipe => congestion.in_flight.saturating_sub(congestion.lost),
            Self::Window => window.bytes,
        }
    }

    /// The base after a timeout in bytes: everything counts as lost, and no losses are subtracted.
    pub(super) fn of_timeout(self, window: &Window, congestion: &Congestion) -> u64 {
        self.of(window, &Congestion { lost: 0, ..*congestion })
    }
}

/// Counts of reductions by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReductionStats {
    /// Reductions for lost data.
    pub losses: u64,
    /// Reductions for echoed ECN marks.
    pub marks: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
}

impl ReductionStats {
    pub(super) fn count(&mut self, congestion: &Congestion) {
        if congestion.lost > 0 {
            self.losses += 1;
        } else {
            self.marks += 1;
        }
    }
}

/// Detects timers that expire again for the same data: the threshold stays then (RFC 5681 section 3.1).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timeouts {
    repeated: bool,
}

impl Timeouts {
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.repeated &= ack.acked == 0;
    }

    /// The timer has expired. Returns whether that is the first time for the data in flight.
    pub fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.repeated, true)
    }
}

/// A round trip. It lasts until the data sent before it is acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    end: u64,
}

/// When a round trip ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundEnd {
    /// As soon as everything sent before it is acknowledged.
    Reached,
    /// With the first acknowledgement of something sent in it, as in RFC 8257 and Linux's algorithms.
    Passed,
    /// As soon as the segment sent last before it is acknowledged. After a retransmission that is not everything, so in
    /// recovery each partial ACK may end a round trip (ns-3 3.37, whose `m_nextTxSequence` goes back with a
    /// retransmission).
    LastReached,
}

impl Round {
    /// Whether this ACK ends the round trip. If so, the next one begins.
    #[inline]
    pub fn is_over(&mut self, ack: &Ack, end: RoundEnd) -> bool {
        let over = match end {
            RoundEnd::Reached | RoundEnd::LastReached => ack.unacknowledged >= self.end,
            RoundEnd::Passed => ack.unacknowledged > self.end,
        };
        if over {
            self.begin_with(ack, end);
        }
        over
    }

    /// Begins a round trip.
    pub fn begin(&mut self, next: u64) {
        self.end = next;
    }

    /// Begins a round trip with this ACK.
    #[inline]
    pub fn begin_with(&mut self, ack: &Ack, end: RoundEnd) {
        self.end = if end == RoundEnd::LastReached { ack.left_last } else { ack.next };
    }
}

/// Which round-trip time an algorithm uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSource {
    /// The measurement of an ACK, if any.
    Measured,
    /// The smoothed one, at each ACK: ns-3 passes its estimator's state to its congestion controls, not the sample.
    Smoothed,
}

impl RttSource {
    /// The round-trip time of this ACK; never zero.
    #[inline]
    pub(super) fn of(self, ack: &Ack) -> Option<Nanos> {
        let rtt = match self {
            Self::Measured => ack.rtt,
            Self::Smoothed => Some(ack.smoothed_rtt),
        };
        rtt.filter(|rtt| rtt.0 > 0)
    }
}

/// How many segments a count adds to a window of `size` segments where the first costs `size` and each further one costs 1
/// more, and what remains of the count.
pub(super) fn segments_for(count: f64, size: u64) -> (u64, f64) {
    let size = size as f64;
    let cost = |segments: f64| segments * size + segments * (segments - 1.0) / 2.0;
    if count < size {
        return (0, count);
    }
    let middle = size - 0.5;
    let mut segments = ((middle * middle + 2.0 * count).sqrt() - middle).floor();
    // The square root may be rounded to the next whole number.
    if cost(segments) > count {
        segments -= 1.0;
    } else if cost(segments + 1.0) <= count {
        segments += 1.0;
    }
    (segments as u64, (count - cost(segments)).max(0.0))
}

/// Whether the window may grow with this ACK: it acknowledges something, and no reduction is under way.
#[inline]
pub(super) fn may_grow(ack: &Ack) -> bool {
    ack.acked > 0 && matches!(ack.phase, Phase::Open | Phase::Loss)
}

/// Whether this ACK ends the repair after a timeout and acknowledges nothing beyond it.
#[inline]
pub(super) fn ends_repair(ack: &Ack) -> bool {
    ack.acked == 0 && ack.delivered > 0 && ack.phase == Phase::Open
}
