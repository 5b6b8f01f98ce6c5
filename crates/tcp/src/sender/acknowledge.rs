//! How a sender handles an ACK.

use super::reduction::Step;
use super::tally::Tally;
use super::{Sender, State};
use crate::congestion::{Ack, Congestion, CongestionControl, Phase};
use crate::params::{RateMethod, ReductionBase, RttMethod};
use crate::segment::{Flags, Segment};
use queuescope_wire::{Ecn, Nanos, Rate};

/// Duplicate ACKs that signal a loss (RFC 5681 section 3.2).
const DUPLICATES: u32 = 3;

impl<C: CongestionControl> Sender<C> {
    /// Handles a segment from the receiver.
    pub fn receive(&mut self, segment: &Segment, _ecn: Ecn, now: Nanos) {
        match self.state {
            State::SynSent if segment.flags.contains(Flags::SYN | Flags::ACK) && segment.ack == 1 => {
                self.establish(segment, now);
            }
            State::Established if segment.flags.contains(Flags::SYN) => self.on_repeated_syn(),
            State::Established if segment.flags.contains(Flags::ACK) => self.on_ack(segment, now),
            State::Established | State::SynSent | State::Closed => {}
        }
    }

    /// The receiver repeated its SYN, so it has not seen the answer.
    fn on_repeated_syn(&mut self) {
        if self.params.repeated_syn_restarts {
            if let Some(ns3) = self.ns3 {
                let initial = u64::from(self.params.initial_window) * u64::from(self.params.mss);
                ns3(&mut self.control).restart(initial);
            }
            self.due.nothing = true;
        } else {
            self.due.ack = true;
        }
    }

    fn establish(&mut self, segment: &Segment, now: Nanos) {
        self.state = State::Established;
        self.ecn = self.params.ecn && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
        self.due.ack = true;
        if self.params.sends_what_is_written {
            self.refill([0, 0], self.flight.next());
        }
        self.peer_window = segment.window;
        self.peer_limit = segment.ack.saturating_add(segment.window);
        self.echo_timestamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
        self.timers.rto = None;
        // If several SYNs were sent, only the timestamp says which one was answered.
        let exact = (self.timers.syns == 1).then(|| now.saturating_sub(self.timers.syn_sent_at));
        let rtt = match self.params.rtt_method {
            RttMethod::Timestamps => self.echoed_rtt(segment, now).or(exact),
            RttMethod::SendTimes => exact,
        };
        if let Some(rtt) = rtt {
            self.rtt.measure(rtt);
            self.rtt.note_least(rtt);
        }
        self.pace.release_at = now.saturating_add(self.params.first_data_after);
        self.control.on_established(self.rtt.smoothed(), now);
        self.update_pace();
        self.watch_peer_window(now);
    }

    fn on_ack(&mut self, segment: &Segment, now: Nanos) {
        self.stats.acks += 1;
        self.due.nothing = false;
        let old_una = self.flight.una();
        if segment.ack < old_una || segment.ack > self.flight.next() {
            return;
        }
        let in_flight_before = self.flight.in_network();
        let outstanding_before = self.flight.outstanding();
        let same_window = self.update_peer_window(segment);
        if let Some(timestamps) = segment.timestamps {
            self.echo_timestamp = timestamps.value;
        }
        let echo = self.ecn && segment.flags.contains(Flags::ECE);
        self.stats.echoes += u64::from(echo);

        self.pace.before = self.control.pacing_rate();
        let least = self.rtt.least().unwrap_or(Nanos::ZERO);
        let persistent = self.delivery.persistent();
        let limited = self.delivery.is_limited();
        let mut tally = Tally { sure_until: now.saturating_sub(least), persistent, ..Tally::default() };
        let lost_before = self.flight.lost();
        // ns-3 reads the selective acknowledgements first. Its rate samples depend on that order.
        let blocks_first = self.params.rate_method == RateMethod::Ns3;
        if !blocks_first {
            self.flight.acknowledge(segment.ack, &mut tally);
        }
        let mut duplicate_reported = false;
        if self.params.sack && !segment.sacks.is_empty() {
            duplicate_reported = reports_duplicate(segment);
            for block in segment.sacks.iter() {
                if block.end > segment.ack && block.end <= self.flight.next() {
                    self.flight.sack(block.start, block.end, &mut tally);
                }
            }
        }
        if blocks_first {
            self.flight.acknowledge(segment.ack, &mut tally);
        }
        tally.repaired &= self.phase == Phase::Recovery && segment.ack < self.recovery_point;
        let advanced = segment.ack > old_una;
        let duplicate = if self.params.sack {
            tally.selectively > 0
        } else {
            !advanced && outstanding_before > 0 && same_window && segment.length == 0
        };
        self.marks.heard = echo && (advanced || self.marks.heard);
        let duplicates = match self.phase {
            Phase::Open => self.duplicates,
            Phase::Reduced if duplicate && segment.ack > self.recovery_point => self.duplicates,
            _ => 0,
        };
        let sample = self.measure(segment, &tally, now);
        // ns-3 counts no duplicate ACKs in recovery. An echo ends recovery.
        let over = self.params.mark_in_recovery && echo && advanced;
        let counts = match self.phase {
            Phase::Loss => over,
            Phase::Recovery => over || !self.params.disorder,
            Phase::Open | Phase::Disorder | Phase::Reduced => true,
        };
        if duplicate {
            self.duplicates += u32::from(counts);
            if !self.params.sack && self.phase != Phase::Loss {
                self.flight.guess_arrival(u64::from(self.params.mss), &mut tally);
            }
        } else if advanced {
            self.duplicates = 0;
        }
        self.delivery.deliver(tally.delivered, now);

        let plain_duplicate = !advanced && segment.sacks.is_empty();
        if self.rack.judge_probe(segment.ack, duplicate_reported, plain_duplicate) && self.phase == Phase::Open {
            self.begin_reduction(u64::from(self.params.mss), tally.delivered, now);
            self.control.on_recovered(now);
        }
        let lost = self.find_losses(&tally, advanced, duplicate_reported, now);
        // ns-3 handles the echo first, so a mark that counts in recovery prevents its usual end.
        let reductions = self.stats.reductions;
        let mark_first = self.params.mark_in_recovery && matches!(self.phase, Phase::Recovery | Phase::Loss);
        if mark_first {
            self.note_echo(echo, advanced, segment.ack, now);
        }
        // Bytes that grow the window: if this ACK ends the repair after a timeout, not those that were in flight at the
        // timeout.
        let ends_loss =
            self.phase == Phase::Loss && segment.ack >= self.recovery_point && self.params.loss_end_counts_beyond;
        let acked = if ends_loss { segment.ack - self.recovery_point } else { tally.acked };
        let (acked, counted) = self.whole_segments(tally.acked, acked, advanced);
        let held = (self.phase == Phase::Recovery).then(|| self.window());
        // ns-3 classifies an ACK before it ends a repair phase, and not again afterwards.
        let repairs = self.params.disorder && matches!(self.phase, Phase::Recovery | Phase::Loss);
        self.leave_phase(advanced, now);
        let out_of_order = duplicate && !repairs;
        if !mark_first {
            self.note_echo(echo, advanced, segment.ack, now);
        }
        let newly_reduced = self.stats.reductions > reductions;
        let lost = lost + self.enter_recovery(lost, out_of_order, tally.delivered, now);
        self.stats.lost += lost;
        let disorder = out_of_order && self.phase == Phase::Open && self.params.disorder;
        let partial = advanced && self.phase == Phase::Recovery;
        if self.params.partial_ack_repeats && partial {
            self.due.forced |= !self.flight.first_is_repeated();
        }
        let (forced_start, forced_bytes) = if self.due.forced { self.forced_segment() } else { (self.left_last, 0) };
        let mut refilled = false;
        if advanced {
            if !disorder {
                if self.params.sends_what_is_written {
                    let in_network = self.flight.in_network();
                    refilled = self.refill([in_network, in_network + forced_bytes], forced_start);
                }
                self.rearm(now);
            }
            self.schedule_probe(now);
        } else if tally.selectively > 0 {
            self.rack.probe_at = None;
        }

        let changed = match self.params.rate_method {
            RateMethod::Draft => lost,
            RateMethod::Ns3 => self.flight.lost().abs_diff(lost_before),
        };
        let rate = self.delivery.sample(&tally, changed, self.rtt.least(), now);
        let counts_causes = self.params.reduction_counts_causes;
        if self.reduces() && counts_causes {
            let times = match self.phase {
                Phase::Recovery => u32::from(duplicate) + u32::from(advanced && counted),
                _ => u32::from(newly_reduced),
            };
            for _ in 0..times {
                self.reduce(&tally, advanced, lost);
            }
        }
        self.left_last = self.left_last.max(segment.ack);
        let forced_bytes = if refilled { forced_bytes } else { 0 };
        if self.due.forced {
            self.delivery.limit_next(limited);
        }
        // ns-3 passes plain duplicate ACKs to its congestion controls too; to those that rule recovery even with
        // nothing in flight.
        let passes_all = self.params.disorder && (outstanding_before > 0 || self.control.rules_recovery());
        if tally.delivered > 0 || tally.acked > 0 || echo || passes_all {
            let phase = if disorder { Phase::Disorder } else { self.phase };
            let counted = match self.params.disorder {
                // With nothing outstanding, the ACK is not a duplicate.
                true if !advanced && outstanding_before == 0 => None,
                true => self.counted(acked, advanced, phase, duplicates),
                false => Some(acked),
            };
            let ack = Ack {
                acked,
                delivered: tally.delivered,
                in_flight_before,
                in_flight: self.flight.in_network() + forced_bytes,
                unacknowledged: self.flight.una(),
                next: self.flight.next(),
                left_last: forced_start,
                rtt: sample,
                smoothed_rtt: self.rtt.smoothed().unwrap_or(Nanos::ZERO),
                phase,
                window: held.filter(|_| self.phase == Phase::Open).unwrap_or_else(|| self.window()),
                marked: if self.marks.heard { counted.unwrap_or(0) } else { 0 },
                counted,
                window_limited: self.window_limited(),
                rate,
            };
            self.control.on_ack(&ack, now);
        }
        let reduces_after =
            if counts_causes { advanced && counted && self.phase == Phase::Reduced } else { tally.delivered > 0 };
        if self.reduces() && reduces_after {
            self.reduce(&tally, advanced, lost);
        }
        self.pace.before = self.pace.before.filter(|_| self.due.forced);
        self.usage.limited = false;
        self.update_pace();
        self.watch_peer_window(now);
    }

    /// Counts whole segments, where the parameters say so. An ACK acknowledges `bytes` bytes, of which `acked` count
    /// for windows. Returns the bytes that count, and whether they and the earlier remainder make at least one segment.
    /// The new remainder is carried over, except where the ACK ends a repair (ns-3 3.37, `TcpSocketBase::ProcessAck`).
    fn whole_segments(&mut self, bytes: u64, acked: u64, advanced: bool) -> (u64, bool) {
        if !self.params.sends_what_is_written || !advanced {
            return (acked, true);
        }
        let mss = u64::from(self.params.mss);
        let ends_repair =
            matches!(self.phase, Phase::Recovery | Phase::Loss) && self.flight.una() >= self.recovery_point;
        self.remainder += bytes % mss;
        let more = u64::from(self.remainder >= mss);
        self.remainder -= more * mss;
        let segments = if ends_repair { acked / mss } else { bytes / mss + more };
        (segments * mss, segments > 0)
    }

    /// The bytes for which ns-3 passes an ACK to its congestion control, after `duplicates` ACKs that reported data out
    /// of order; `None` if it passes nothing.
    fn counted(&self, acked: u64, advanced: bool, phase: Phase, duplicates: u32) -> Option<u64> {
        let mss = u64::from(self.params.mss);
        match phase {
            _ if !advanced => Some(mss),
            Phase::Recovery => Some(mss),
            Phase::Open | Phase::Disorder => acked.checked_sub(u64::from(duplicates) * mss),
            Phase::Reduced | Phase::Loss => Some(acked),
        }
    }

    /// Updates the peer's window, unless the segment is older than one seen before (RFC 9293 section 3.10.7.4). A
    /// window that shrinks counts only with an ACK that advances, or when it closes. Returns whether the window is
    /// unchanged.
    #[inline]
    fn update_peer_window(&mut self, segment: &Segment) -> bool {
        let same = segment.window == self.peer_window;
        if segment.ack > self.flight.una() || segment.window > self.peer_window || segment.window == 0 {
            self.peer_window = segment.window;
            self.peer_limit = segment.ack.saturating_add(segment.window);
        }
        same
    }

    /// Gives a round-trip time to the estimator; returns the one for the congestion control.
    #[inline]
    fn measure(&mut self, segment: &Segment, tally: &Tally, now: Nanos) -> Option<Nanos> {
        match self.params.rtt_method {
            RttMethod::Timestamps => {
                if !tally.first_is_clean {
                    return None;
                }
                let exact = || tally.first_sent_at.map(|at| now.saturating_sub(at));
                let rtt = self.echoed_rtt(segment, now).or_else(exact)?;
                self.rtt.measure(rtt);
                self.rtt.note_least(self.rtt.smoothed().unwrap_or(rtt));
                Some(rtt)
            }
            RttMethod::SendTimes => {
                let Some(first) = tally.first_sent_at else {
                    // Only retransmitted data was acknowledged: the timestamp says which copy arrived (RFC 7323 section
                    // 4).
                    if tally.acked > 0
                        && let Some(rtt) = self.echoed_rtt(segment, now)
                    {
                        self.rtt.measure(rtt);
                    }
                    return None;
                };
                self.rtt.measure(now.saturating_sub(first));
                let last = now.saturating_sub(tally.last_sent_at.unwrap_or(first));
                self.rtt.note_least(last);
                Some(last)
            }
        }
    }

    /// The time since the echoed timestamp, in whole ticks; one microsecond if that is zero, as in ns-3.
    fn echoed_rtt(&mut self, segment: &Segment, now: Nanos) -> Option<Nanos> {
        Some(self.clock.as_mut()?.since(segment.timestamps?.echo, now).max(Nanos(1_000)))
    }

    /// Marks segments as lost by the scoreboard or by time. Returns their bytes.
    #[inline]
    fn find_losses(&mut self, tally: &Tally, advanced: bool, duplicate_reported: bool, now: Nanos) -> u64 {
        if self.detects_by_time() {
            let moment = self.moment(duplicate_reported, now);
            self.rack.note(tally, &self.flight, &moment);
            return self.rack.find_losses(&mut self.flight, &moment);
        }
        if self.params.sack {
            return self.flight.judge();
        }
        // A partial ACK reveals the next hole (RFC 6582 section 3.2 step 3).
        let partial = advanced && self.phase == Phase::Recovery && self.flight.una() < self.recovery_point;
        if partial { self.flight.lose_first() } else { 0 }
    }

    fn leave_phase(&mut self, advanced: bool, now: Nanos) {
        let una = self.flight.una();
        let over = match self.phase {
            Phase::Open | Phase::Disorder => false,
            Phase::Recovery | Phase::Loss => una >= self.recovery_point,
            Phase::Reduced if self.params.stalls_below_segment => una > self.recovery_point,
            Phase::Reduced => una > self.recovery_point || self.flight.is_empty(),
        };
        if advanced && over {
            if self.phase != Phase::Reduced {
                self.rack.recovered();
                // Not where a mark turns recovery into a reduction: the next recovery then continues this one.
                self.timers.restarted = false;
            }
            // ns-3 keeps the count when a reduction ends: the ACK that ends it may be the first to reveal a loss.
            if self.phase != Phase::Reduced || !self.params.disorder {
                self.duplicates = 0;
            }
            self.phase = Phase::Open;
            self.due.forced = false;
            self.due.settled = None;
            self.control.on_recovered(now);
        }
    }

    /// An echoed mark reduces the window once per window of data (RFC 3168 section 6.1.2).
    fn note_echo(&mut self, echo: bool, advanced: bool, ack: u64, now: Nanos) {
        if !echo || !advanced {
            return;
        }
        let may = match self.phase {
            Phase::Open | Phase::Disorder => true,
            Phase::Recovery | Phase::Loss => self.params.mark_in_recovery,
            Phase::Reduced => false,
        };
        if may {
            self.stats.reductions += 1;
            self.hold_what_is_left();
            self.phase = Phase::Reduced;
            self.begin_reduction(0, 0, now);
        }
        // Echoes after the segment with CWR mean that it was lost: send CWR again.
        self.marks.cwr |= may || (self.phase == Phase::Reduced && ack > self.marks.cwr_seq);
    }

    /// Enters recovery if the losses require it. The ACK delivered `delivered` bytes. Returns the bytes that were found
    /// lost in doing so.
    pub(super) fn enter_recovery(&mut self, lost: u64, duplicate: bool, delivered: u64, now: Nanos) -> u64 {
        let may = match self.phase {
            Phase::Open | Phase::Disorder => true,
            Phase::Reduced => self.params.loss_ends_reduced,
            Phase::Recovery | Phase::Loss => false,
        };
        let proof = if self.params.disorder && self.params.sack {
            duplicate && (self.duplicates == DUPLICATES || self.flight.second_is_lost())
        } else {
            let enough = self.duplicates >= DUPLICATES && !self.detects_by_time();
            lost > 0 || (enough && !self.flight.is_empty())
        };
        if !may || !proof {
            return 0;
        }
        let first_is_lost = self.flight.first().is_some_and(|first| first.lost);
        let more = if first_is_lost || self.detects_by_time() { 0 } else { self.flight.lose_first() };
        self.stats.recoveries += 1;
        self.phase = Phase::Recovery;
        self.rack.forget_probe();
        self.due.rescue = true;
        self.due.tail_probe = false;
        let found = (lost + more).max(1);
        self.begin_reduction(found, delivered, now);
        self.reduce(&Tally::default(), false, found);
        self.marks.cwr |= self.ecn && self.params.cwr_after_loss;
        // The first lost segment is sent past window and pacing in profiles in which partial ACKs do that too.
        self.due.forced = self.params.partial_ack_repeats;
        more
    }

    /// Makes the window that a running reduction has left the one to be reduced next, if the profile says so.
    pub(super) fn hold_what_is_left(&mut self) {
        if self.params.reduces_what_is_left
            && self.reduces()
            && let Some(ns3) = self.ns3
        {
            ns3(&mut self.control).hold(self.reduction.window());
        }
    }

    fn begin_reduction(&mut self, lost: u64, delivered: u64, now: Nanos) {
        let next = self.flight.next();
        let from = match self.params.reduction_from {
            ReductionBase::Outstanding => self.flight.outstanding(),
            ReductionBase::Window => self.control.window(),
        };
        let congestion = Congestion { in_flight: self.flight.in_network() + lost, lost, delivered, next };
        self.control.on_congestion(&congestion, now);
        self.recovery_point = next;
        self.reduction.begin(from, self.params.reduction_wraps);
    }

    fn reduce(&mut self, tally: &Tally, advanced: bool, lost: u64) {
        let Some(bound) = self.params.reduction else { return };
        let step = Step {
            delivered: tally.delivered,
            in_network: self.flight.in_network(),
            threshold: self.control.slow_start_threshold(),
            mss: u64::from(self.params.mss),
            repaired: tally.repaired,
            advancing: advanced && lost == 0,
        };
        self.reduction.step(&step, bound);
    }

    #[inline]
    fn window_limited(&self) -> bool {
        if self.usage.limited {
            return true;
        }
        let window = self.control.window();
        window < self.control.slow_start_threshold() && window < 2 * self.usage.most_in_flight
    }

    /// Sets the pacing rate from the window, if the profile paces.
    #[inline]
    fn update_pace(&mut self) {
        let Some(pacing) = self.params.pacing else { return };
        let Some(smoothed) = self.rtt.smoothed() else { return };
        let window = self.window().max(self.flight.in_network());
        let slow_start = self.window() < self.control.slow_start_threshold() / 2;
        let percent = if slow_start { pacing.slow_start_percent } else { pacing.avoidance_percent };
        let bits = u128::from(window) * 8 * u128::from(percent) * 10_000_000 / u128::from(smoothed.0.max(1));
        self.pace.rate = Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX));
    }
}

/// Whether the first block reports data that arrived twice (RFC 2883 section 4).
fn reports_duplicate(segment: &Segment) -> bool {
    let mut blocks = segment.sacks.iter();
    let Some(first) = blocks.next() else { return false };
    first.end <= segment.ack
        || blocks.next().is_some_and(|second| second.start <= first.start && first.end <= second.end)
}
