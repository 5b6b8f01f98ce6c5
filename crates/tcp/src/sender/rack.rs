//! Losses by time (RACK) and probes of a silent tail (TLP): RFC 8985.
//!
//! Transmissions are queued in the order in which they were sent, so that only those are examined whose time may be up.
//!
//! Deviations:
//! - The reordering timer expires for the first segment whose window ends, not for the last (section 6.2 step 5 takes
//!   the
//!   maximum): each segment is found lost when its own window ends.
//! - Many segments are sent at the same instant of virtual time. Their order of transmission counts, not their sequence
//!   numbers (RACK_sent_after in section 6.2).
//! - The least round-trip time alone decides which copy of a segment arrived, as in Linux: the timestamp that an ACK
//!   echoes is not that of a segment out of order (RFC 7323 section 4.3).
//! - The least round-trip time is that of the whole connection; section 6.2 step 1 leaves the period open.

use super::flight::Flight;
use super::sent::SentSegment;
use super::tally::Tally;
use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// Arrivals above a segment that close the reordering window if no reordering was seen (DupThresh).
const DUPLICATES: usize = 3;
/// Recoveries without a duplicate reported by the receiver after which the window is reset (section 6.2 step 4).
const PERSISTENCE: u32 = 16;

/// When segments were sent and in which order they arrived.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// The last transmission among those that have arrived: its serial number, and when it was sent (RACK.xmit_ts).
    newest: Option<(u64, Nanos)>,
    rtt: Nanos,
    /// The sequence number after the highest byte that has arrived (RACK.fack).
    highest: u64,
    reordering_seen: bool,
    duplicate_round: Option<u64>,
    multiple: u32,
    persistence: u32,
    /// Transmissions: serial number, time, and first sequence number of the segment.
    left: VecDeque<(u64, Nanos, u64)>,
    /// When the first of the current reordering windows ends.
    pub(super) timer: Option<Nanos>,
    /// When to send a tail loss probe.
    pub(super) probe_at: Option<Nanos>,
    /// TLP.end_seq, and TLP.is_retrans.
    probe: Option<(u64, bool)>,
}

/// Other inputs to the reordering window.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReorderingInputs {
    pub(super) now: Nanos,
    pub(super) least_rtt: Nanos,
    pub(super) smoothed_rtt: Nanos,
    pub(super) recovering: bool,
    /// Whether the receiver reported data that arrived twice.
    pub(super) duplicate: bool,
}

impl Rack {
    /// A segment was sent.
    #[inline]
    pub(super) fn sent(&mut self, sent: &SentSegment) {
        self.left.push_back((sent.serial, sent.sent_at, sent.seq));
    }

    /// Steps 2 to 4 of section 6.2.
    #[inline]
    pub(super) fn note(&mut self, tally: &Tally, flight: &Flight, moment: &ReorderingInputs) {
        if tally.newest_sure > self.newest
            && let Some((_, sent_at)) = tally.newest_sure
        {
            self.newest = tally.newest_sure;
            self.rtt = moment.now.saturating_sub(sent_at);
        }
        self.reordering_seen |= tally.lowest_sure.is_some_and(|end| end < self.highest);
        self.highest = self.highest.max(tally.highest);
        if self.duplicate_round.is_some_and(|round| flight.una() >= round) {
            self.duplicate_round = None;
        }
        if moment.duplicate && self.duplicate_round.is_none() {
            self.duplicate_round = Some(flight.next());
            self.multiple = self.multiple.max(1) + 1;
            self.persistence = PERSISTENCE;
        }
    }

    /// A recovery ended.
    pub(super) fn recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiple = 1;
        }
    }

    /// Step 5 of section 6.2: marks as lost the segments that were sent long enough before one that arrived. Returns
    /// their bytes.
    #[inline]
    pub(super) fn find_losses(&mut self, flight: &mut Flight, moment: &ReorderingInputs) -> u64 {
        self.timer = None;
        let Some((newest, _)) = self.newest else { return 0 };
        while self.left.front().is_some_and(|left| left.2 < flight.una()) {
            self.left.pop_front();
        }
        if self.left.front().is_none_or(|left| left.0 >= newest) {
            return 0;
        }
        let patience = Nanos(self.rtt.0 + self.reordering_window(flight, moment).0);
        let mut found = 0;
        while let Some(&(serial, sent_at, seq)) = self.left.front() {
            let waiting = |sent: &&SentSegment| !sent.sacked && sent.serial == serial && (!sent.lost || sent.repeated);
            if flight.find(seq).filter(waiting).is_none() {
                self.left.pop_front();
                continue;
            }
            if serial >= newest {
                break;
            }
            let deadline = sent_at.saturating_add(patience);
            if deadline > moment.now {
                self.timer = Some(deadline);
                break;
            }
            found += flight.lose_again(seq);
            self.left.pop_front();
        }
        found
    }

    /// RACK_update_reo_wnd.
    fn reordering_window(&self, flight: &Flight, moment: &ReorderingInputs) -> Nanos {
        if !self.reordering_seen && (moment.recovering || flight.sacked_segments() >= DUPLICATES) {
            return Nanos::ZERO;
        }
        Nanos(u64::from(self.multiple.max(1)) * moment.least_rtt.0 / 4).min(moment.smoothed_rtt)
    }

    /// Whether a segment sent at `sent_at` is late when the retransmission timer expires (section 6.3).
    pub(super) fn is_late(&self, sent_at: Nanos, window: Nanos, now: Nanos) -> bool {
        sent_at.saturating_add(self.rtt).saturating_add(window) <= now
    }

    /// The current reordering window, for the retransmission timer.
    pub(super) fn window(&self, flight: &Flight, moment: &ReorderingInputs) -> Nanos {
        self.reordering_window(flight, moment)
    }

    /// Whether a probe may be scheduled: none is in flight.
    #[inline]
    pub(super) fn may_probe(&self) -> bool {
        self.probe.is_none()
    }

    /// A probe was sent: the sequence number after everything sent so far, and whether the probe was a retransmission.
    pub(super) fn probed(&mut self, end: u64, again: bool) {
        self.probe = Some((end, again));
    }

    /// Loss recovery continues without probes.
    pub(super) fn forget_probe(&mut self) {
        self.probe = None;
        self.probe_at = None;
    }

    /// TLP_process_ack (section 7.4.2): true if the probe has repaired a loss that nothing else would reveal.
    #[inline]
    pub(super) fn judge_probe(&mut self, ack: u64, duplicate_reported: bool, plain_duplicate: bool) -> bool {
        let Some((end, again)) = self.probe else { return false };
        if ack < end {
            return false;
        }
        if !again || duplicate_reported || plain_duplicate {
            self.probe = None;
            return false;
        }
        if ack > end {
            self.probe = None;
            return true;
        }
        false
    }
}
