//! A sender's timers: the retransmission timer, probes of a closed window, pacing, idleness.

use super::rack::ReorderingInputs;
use super::{Sender, State};
use crate::congestion::{Congestion, CongestionControl, Phase};
use crate::params::LossDetection;
use queuescope_wire::Nanos;

/// How long a tail loss probe waits beyond two round-trip times.
const LEAST_PROBE_WAIT: Nanos = Nanos(2_000_000);

impl<C: CongestionControl> Sender<C> {
    /// When to call [`Sender::on_timer`] next: for the retransmission timer, a probe, or the next paced segment.
    #[inline]
    pub fn next_timer(&self) -> Option<Nanos> {
        let pace = self.pace.waits.then_some(self.pace.release_at);
        let all = [self.timers.rto, self.rack.timer, self.rack.probe_at, self.timers.persist, pace];
        all.into_iter().flatten().min()
    }

    /// Two of the times behind [`Sender::next_timer`]: when a paced segment may be sent, and the retransmission timer.
    #[inline]
    pub fn timers(&self) -> [Option<Nanos>; 2] {
        [self.pace.waits.then_some(self.pace.release_at), self.timers.rto]
    }

    /// Handles the timers that have expired at `now`. Calls before [`Sender::next_timer`] have no effect.
    pub fn on_timer(&mut self, now: Nanos) {
        self.due.nothing &= self.next_timer().is_none_or(|at| at > now);
        let may_leave = self.pace.waits && self.pace.release_at <= now;
        self.pace.waits &= !may_leave;
        if self.timers.persist.is_some_and(|at| at <= now) {
            self.due.window_probe = true;
            let timeout = Nanos(self.timers.persist_timeout.0.saturating_mul(2)).min(self.params.max_rto);
            self.timers.persist_timeout = timeout;
            self.timers.persist = Some(now.saturating_add(timeout));
        }
        if self.rack.timer.is_some_and(|at| at <= now) {
            self.on_reordering_timer(now);
        }
        // A probe may replace the timeout, which is then postponed.
        if self.rack.probe_at.is_some_and(|at| at <= now) {
            self.on_probe_timer(now);
        }
        if let Some(at) = self.timers.rto.filter(|at| *at <= now) {
            // The timer that was set first fires first: the paced segment is sent, and the next call handles the
            // timeout.
            if may_leave && self.params.paces_to_nearest && self.pace.set_at <= at.saturating_sub(self.rtt.rto()) {
                return;
            }
            match self.state {
                State::SynSent => {
                    self.stats.repeated_syns += 1;
                    self.due.syn = true;
                    self.rtt.back_off();
                    self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
                }
                State::Established => self.on_timeout(now),
                State::Closed => self.timers.rto = None,
            }
        }
    }

    /// Nothing was acknowledged for too long (RFC 6298 rules 5.4 to 5.6, RFC 6675 section 5.1).
    fn on_timeout(&mut self, now: Nanos) {
        if self.flight.is_empty() && !self.may_stall() {
            self.timers.rto = None;
            return;
        }
        self.stats.timeouts += 1;
        self.hold_what_is_left();
        let in_flight = self.flight.in_network();
        let moment = self.moment(false, now);
        let window = self.rack.window(&self.flight, &moment);
        let (rack, timed) = (&self.rack, self.detects_by_time());
        let lost = self.flight.lose_late(!self.params.sack, |sent| !timed || rack.is_late(sent.sent_at, window, now));
        self.stats.lost += lost;
        self.rack.forget_probe();
        self.rack.timer = None;
        self.phase = Phase::Loss;
        self.recovery_point = self.flight.next();
        self.duplicates = 0;
        self.due.forced = false;
        self.due.settled = None;
        self.due.tail_probe = false;
        if self.params.timeouts_compound
            && let Some(ns3) = self.ns3
        {
            ns3(&mut self.control).forget_timeouts();
        }
        self.control.on_timeout(&Congestion { in_flight, lost, delivered: 0, next: self.flight.next() }, now);
        self.marks.cwr |= self.ecn && self.params.cwr_after_loss;
        self.rtt.back_off();
        self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
        self.pace.release_at = now;
    }

    /// A reordering window has ended (RFC 8985 section 6.3).
    fn on_reordering_timer(&mut self, now: Nanos) {
        let moment = self.moment(false, now);
        let lost = self.rack.find_losses(&mut self.flight, &moment);
        if lost > 0 {
            self.enter_recovery(lost, false, 0, now);
            self.stats.lost += lost;
        }
    }

    /// The tail is silent: new data, or else the last segment again, makes the receiver send an ACK (RFC 8985 section
    /// 7.3).
    fn on_probe_timer(&mut self, now: Nanos) {
        self.rack.probe_at = None;
        if self.flight.is_empty() {
            return;
        }
        self.stats.tail_probes += 1;
        self.due.tail_probe = true;
        self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
    }

    /// Schedules a tail loss probe, in case nothing arrives before (RFC 8985 section 7.2).
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        if !self.detects_by_time() {
            return;
        }
        let may = matches!(self.phase, Phase::Open | Phase::Reduced)
            && self.rack.may_probe()
            && !self.flight.is_empty()
            && self.flight.sacked_segments() == 0;
        if !may {
            self.rack.probe_at = None;
            return;
        }
        let mut timeout = self.rtt.smoothed().map_or(Nanos(1_000_000_000), |rtt| Nanos(2 * rtt.0));
        // A single segment may wait for a delayed ACK. Several need time to be sent, which a round-trip time measured
        // by the handshake does not include. Linux adds two ticks of its clock (TCP_TIMEOUT_MIN).
        let alone = self.flight.outstanding() <= u64::from(self.params.mss);
        timeout = timeout.saturating_add(if alone { self.params.max_ack_delay } else { LEAST_PROBE_WAIT });
        let at = now.saturating_add(timeout);
        self.rack.probe_at = Some(self.timers.rto.map_or(at, |rto| at.min(rto)));
    }

    /// Whether RACK finds the losses.
    #[inline]
    pub(super) fn detects_by_time(&self) -> bool {
        self.params.sack && self.params.detection == LossDetection::RackTlp
    }

    #[inline]
    pub(super) fn moment(&self, duplicate: bool, now: Nanos) -> ReorderingInputs {
        ReorderingInputs {
            now,
            least_rtt: self.rtt.least().unwrap_or(Nanos::ZERO),
            smoothed_rtt: self.rtt.smoothed().unwrap_or(Nanos::ZERO),
            recovering: matches!(self.phase, Phase::Recovery | Phase::Loss),
            duplicate,
        }
    }

    /// Something was sent: the timer runs (RFC 6298 rule 5.1).
    #[inline]
    pub(super) fn arm(&mut self, now: Nanos) {
        if self.timers.rto.is_none() {
            self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
        }
    }

    /// An ACK advanced: restarts the timer, or stops it (rules 5.2 and 5.3).
    #[inline]
    pub(super) fn rearm(&mut self, now: Nanos) {
        let partial = self.phase == Phase::Recovery;
        // With timestamps, retransmissions can be measured too, so any advancing ACK ends the backoff.
        if self.clock.is_some() {
            self.rtt.reset_backoff();
        }
        if self.flight.is_empty() && !self.may_stall() {
            self.timers.rto = None;
        } else if !partial || self.params.partial_ack_restarts_timer || !self.timers.restarted {
            self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
            self.timers.restarted |= partial;
        }
    }

    /// Whether the timer runs with nothing in flight, because the window may be too small for the waiting data. A
    /// closed window of the peer is probed instead.
    #[inline]
    fn may_stall(&self) -> bool {
        self.params.stalls_below_segment && self.tail().min(self.peer_limit) > self.flight.next()
    }

    /// Probes the peer's window if it is closed and no ACK will come that opens it (RFC 9293 section 3.8.6.1).
    #[inline]
    pub(super) fn watch_peer_window(&mut self, now: Nanos) {
        let next = self.flight.next();
        let closed = self.flight.is_empty() && self.peer_limit <= next && self.supplied > next;
        if !closed {
            self.timers.persist = None;
        } else if self.timers.persist.is_none() {
            self.timers.persist_timeout = self.rtt.rto();
            self.timers.persist = Some(now.saturating_add(self.rtt.rto()));
        }
    }

    /// Called when something is sent after nothing was in flight: after a long time, the old window is no longer valid
    /// (RFC 5681 section 4.1).
    pub(super) fn restart_after_idle(&mut self, now: Nanos) {
        let rto = self.rtt.rto().0.max(1);
        let idle = now.saturating_sub(self.timers.last_sent_at).0;
        if self.params.restarts_after_idle && self.timers.last_sent_at > Nanos::ZERO && idle > rto {
            let floor = u64::from(self.params.initial_window) * u64::from(self.params.mss);
            let timeouts = u32::try_from(idle / rto).unwrap_or(u32::MAX);
            self.control.on_idle(timeouts, floor, now);
        }
    }
}
