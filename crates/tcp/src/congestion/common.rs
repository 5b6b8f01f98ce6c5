//! What congestion controls have in common: a window that grows as Reno's does, round trips, and which round-trip time is
//! read.

use super::{Ack, Congestion, Phase};
use queuescope_wire::Nanos;

/// No window grows past this, in bytes: a terabyte, which no path holds and any arithmetic here can square in floating point.
pub(super) const LARGEST_WINDOW: u64 = 1 << 40;

/// A congestion window with what Reno needs to grow it (RFC 5681 section 3.1, RFC 3465 section 2).
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// The size of a segment in bytes; at least 1.
    pub mss: u64,
    /// The least that it may be, in bytes: `mss`; nothing for ns-3's DCTCP.
    pub least: u64,
    /// From `least` to [`LARGEST_WINDOW`].
    pub bytes: u64,
    /// `u64::MAX` before the first congestion.
    pub threshold: u64,
    /// Bytes acknowledged in congestion avoidance since the window last grew; or segments, where those are counted.
    credit: u64,
    /// Whether a reduction leaves that.
    pub keeps_credit: bool,
    /// Bytes acknowledged that do not make a segment yet; see [`Self::whole_segments`].
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

    /// Slow start by bytes, at most `limit` segments for an ACK, and not past the threshold: what is left over of `acked`.
    #[inline]
    pub fn slow_start(&mut self, acked: u64, limit: Option<u32>) -> u64 {
        let most = limit.map_or(acked, |limit| acked.min(u64::from(limit) * self.mss));
        let before = self.bytes;
        self.set(before.saturating_add(most).min(self.threshold));
        most.saturating_sub(self.bytes.saturating_sub(before))
    }

    /// Congestion avoidance by bytes: a segment for each window's worth of them.
    #[inline]
    pub fn avoid_congestion(&mut self, acked: u64) {
        self.credit = self.credit.saturating_add(acked.min(LARGEST_WINDOW));
        if self.credit >= self.bytes {
            let segments = self.credit / self.bytes;
            self.credit %= self.bytes;
            self.add_segments(segments);
        }
    }

    /// Congestion avoidance by whole segments: one for as many as are in the window. What a larger window left in the count is
    /// worth one of them.
    #[inline]
    pub fn avoid_by_segments(&mut self, acked: u64) {
        let size = self.segments();
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

    /// Whole segments that `acked` completes with what was left over of earlier ACKs.
    #[inline]
    pub fn whole_segments(&mut self, acked: u64) -> u64 {
        // Almost always a whole segment or two are acknowledged, and a division costs more than all the rest.
        if self.remainder == 0 && acked == self.mss {
            return 1;
        }
        let bytes = self.remainder.saturating_add(acked);
        self.remainder = bytes % self.mss;
        bytes / self.mss
    }

    /// A reduction to a new threshold, which is no less than `floor` segments.
    pub fn reduce(&mut self, threshold: u64, floor: u64) {
        self.threshold = threshold.max(floor * self.mss).min(LARGEST_WINDOW);
        self.set(self.threshold);
        self.forget_credit();
    }

    /// Nothing was in flight for so many timeouts: the window is halved for each, and the threshold remembers three quarters of
    /// it (RFC 2861 section 3.1).
    pub fn decay(&mut self, timeouts: u32, floor: u64) {
        self.threshold = self.threshold.max(self.bytes * 3 / 4);
        let left = self.bytes.checked_shr(timeouts).unwrap_or(0);
        self.set(left.max(floor.min(self.bytes)));
    }

    /// The window and the threshold are as at the beginning.
    pub fn restart(&mut self, initial: u64) {
        self.set(initial);
        self.threshold = u64::MAX;
    }

    /// The window after a timeout (RFC 5681 section 3.1, equation 4 and what follows it).
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

/// Of what a part is left on congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduced {
    /// Of what was in flight (RFC 5681 equation 4).
    InFlight,
    /// Of what was in flight without what was found to be lost (ns-3).
    Pipe,
    /// Of the window (Linux).
    Window,
}

impl Reduced {
    /// In bytes.
    pub(super) fn of(self, window: &Window, congestion: &Congestion) -> u64 {
        match self {
            Self::InFlight => congestion.in_flight,
            Self::Pipe => congestion.in_flight.saturating_sub(congestion.lost),
            Self::Window => window.bytes,
        }
    }

    /// After a timeout, when all counts as lost and nothing is to be taken off for that.
    pub(super) fn of_timeout(self, window: &Window, congestion: &Congestion) -> u64 {
        self.of(window, &Congestion { lost: 0, ..*congestion })
    }
}

/// Counts reductions by their cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReductionStats {
    /// Reductions because data was lost.
    pub losses: u64,
    /// Reductions because an ECN mark was echoed.
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

/// Whether the timer expires again for the same data: the threshold stays then (RFC 5681 section 3.1).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timeouts {
    repeated: bool,
}

impl Timeouts {
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.repeated &= ack.acked == 0;
    }

    /// The timer has expired: whether it is the first time for what is in flight.
    pub fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.repeated, true)
    }
}

/// A round trip: until what was sent when it began is acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    end: u64,
}

/// When a round trip is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundEnd {
    /// As soon as all that was sent before it is acknowledged.
    Reached,
    /// With the first acknowledgement of something that was sent in it, as RFC 8257 and Linux's algorithms say.
    Passed,
    /// As soon as what left last before it is acknowledged: after a retransmission that is not all (ns-3 3.37, whose
    /// `m_nextTxSequence` goes back with one), so that in recovery each partial ACK may end a round trip.
    LastReached,
}

impl Round {
    /// Whether this ACK ends the round trip; the next one begins then.
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

    /// A round trip begins.
    pub fn begin(&mut self, next: u64) {
        self.end = next;
    }

    /// A round trip begins with this ACK.
    #[inline]
    pub fn begin_with(&mut self, ack: &Ack, end: RoundEnd) {
        self.end = if end == RoundEnd::LastReached { ack.left_last } else { ack.next };
    }
}

/// Which round-trip time an algorithm reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSource {
    /// What an ACK measured, if it did.
    Measured,
    /// The smoothed one, with each ACK: ns-3 hands its estimator's state to its congestion controls, not the sample.
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

/// Whether the window may grow with this ACK: it acknowledges something, and no reduction is under way.
#[inline]
pub(super) fn may_grow(ack: &Ack) -> bool {
    ack.acked > 0 && matches!(ack.phase, Phase::Open | Phase::Loss)
}
