//! Losses by time (RACK) and probes of a silent tail (TLP): RFC 8985.
//!
//! Transmissions stand in a queue in the order in which they left, so that only those are looked at whose time may be up.
//!
//! Deviations:
//! - The reordering timer expires for the first segment whose window ends, not for the last (section 6.2 step 5 takes the
//!   maximum): each is found lost when its own window ends.
//! - Of segments that left at the same instant, as many do in virtual time, the order in which they left counts, not their
//!   numbers (RACK_sent_after in section 6.2).
//! - Which copy of a segment arrived is judged by the least round-trip time alone, as Linux does: the timestamp that an ACK
//!   gives back is not that of a segment out of order (RFC 7323 section 4.3).
//! - The least round-trip time is that of the whole connection; section 6.2 step 1 leaves the window of time open.

use super::flight::Flight;
use super::sent::Sent;
use super::tally::Tally;
use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// Arrivals above a segment that close the reordering window if no reordering was seen (DupThresh).
const DUPLICATES: usize = 3;
/// Recoveries without a duplicate that the receiver told of until the window goes back (section 6.2 step 4).
const PERSISTENCE: u32 = 16;

/// What is known of times and orders of arrival.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Which transmission was the last among those that have arrived, and when it left (RACK.xmit_ts).
    newest: Option<(u64, Nanos)>,
    rtt: Nanos,
    /// The number behind the highest that has arrived (RACK.fack).
    highest: u64,
    reordering_seen: bool,
    duplicate_round: Option<u64>,
    multiple: u32,
    persistence: u32,
    /// Transmissions: which, when, and of which segment.
    left: VecDeque<(u64, Nanos, u64)>,
    /// When the first reordering window ends that is under way.
    pub(super) timer: Option<Nanos>,
    /// When the tail is probed.
    pub(super) probe_at: Option<Nanos>,
    /// TLP.end_seq, and TLP.is_retrans.
    probe: Option<(u64, bool)>,
}

/// What else decides how long segments may be out of order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Nanos,
    pub(super) least_rtt: Nanos,
    pub(super) smoothed_rtt: Nanos,
    pub(super) recovering: bool,
    /// The receiver told of data that came twice.
    pub(super) duplicate: bool,
}

impl Rack {
    /// A segment leaves.
    #[inline]
    pub(super) fn sent(&mut self, sent: &Sent) {
        self.left.push_back((sent.serial, sent.sent_at, sent.seq));
    }

    /// Steps 2 to 4 of section 6.2.
    #[inline]
    pub(super) fn note(&mut self, tally: &Tally, flight: &Flight, moment: &Moment) {
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

    /// A recovery is over.
    pub(super) fn recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiple = 1;
        }
    }

    /// Step 5 of section 6.2: takes for lost what was sent long enough before something that arrived; returns bytes.
    #[inline]
    pub(super) fn find_losses(&mut self, flight: &mut Flight, moment: &Moment) -> u64 {
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
            let waiting = |sent: &&Sent| !sent.sacked && sent.serial == serial && (!sent.lost || sent.repeated);
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
    fn reordering_window(&self, flight: &Flight, moment: &Moment) -> Nanos {
        if !self.reordering_seen && (moment.recovering || flight.sacked_segments() >= DUPLICATES) {
            return Nanos::ZERO;
        }
        Nanos(u64::from(self.multiple.max(1)) * moment.least_rtt.0 / 4).min(moment.smoothed_rtt)
    }

    /// Whether a segment that was sent then is late when the retransmission timer expires (section 6.3).
    pub(super) fn is_late(&self, sent_at: Nanos, window: Nanos, now: Nanos) -> bool {
        sent_at.saturating_add(self.rtt).saturating_add(window) <= now
    }

    /// The window as it stands, for the retransmission timer.
    pub(super) fn window(&self, flight: &Flight, moment: &Moment) -> Nanos {
        self.reordering_window(flight, moment)
    }

    /// Whether a probe may be scheduled: none is under way.
    #[inline]
    pub(super) fn may_probe(&self) -> bool {
        self.probe.is_none()
    }

    /// A probe leaves: the number behind all that was sent then, and whether it was sent again.
    pub(super) fn probed(&mut self, end: u64, again: bool) {
        self.probe = Some((end, again));
    }

    /// Loss recovery goes on without probes.
    pub(super) fn forget_probe(&mut self) {
        self.probe = None;
        self.probe_at = None;
    }

    /// TLP_process_ack (section 7.4.2): true if the probe has repaired a loss that nothing else would tell of.
    #[inline]
    pub(super) fn judge_probe(&mut self, ack: u64, duplicate_told: bool, plain_duplicate: bool) -> bool {
        let Some((end, again)) = self.probe else { return false };
        if ack < end {
            return false;
        }
        if !again || duplicate_told || plain_duplicate {
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
