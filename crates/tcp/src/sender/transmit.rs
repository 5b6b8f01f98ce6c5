//! What is sent next: NextSeg (RFC 6675 section 4), new data as the windows allow, probes, pacing.

use super::sent::SentSegment;
use super::{Sender, State};
use crate::congestion::{CongestionControl, Phase};
use crate::params::Rescue;
use crate::segment::{Flags, Sacks, Segment, Timestamps};
use queuescope_wire::{Ecn, Nanos};

impl<C: CongestionControl> Sender<C> {
    /// The next segment to send now. Call it until it returns `None`.
    #[inline]
    pub fn transmit(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        match self.state {
            State::Established if self.due.nothing => None,
            State::Established if self.due.ack || self.due.window_probe => self.transmit_control(now),
            State::Established => self.transmit_data(now),
            State::SynSent if self.due.syn => Some(self.transmit_syn(now)),
            State::SynSent | State::Closed => None,
        }
    }

    fn transmit_syn(&mut self, now: Nanos) -> (Segment, Ecn) {
        self.due.syn = false;
        self.timers.syns += 1;
        self.timers.syn_sent_at = now;
        let mut flags = Flags::SYN;
        if self.params.ecn {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        let mut segment = self.segment(0, flags, now);
        segment.ack = 0;
        let codepoint = if self.params.ecn { self.control_codepoint() } else { Ecn::NotEct };
        (segment, codepoint)
    }

    fn transmit_control(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        let seq = if self.due.ack {
            self.due.ack = false;
            self.flight.next()
        } else {
            // The number is already acknowledged, so the peer must answer (RFC 9293 section 3.8.6.1; as Linux does).
            self.due.window_probe = false;
            self.stats.window_probes += 1;
            self.flight.una() - 1
        };
        let codepoint = if self.ecn { self.control_codepoint() } else { Ecn::NotEct };
        Some((self.segment(seq, Flags::ACK, now), codepoint))
    }

    fn transmit_data(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        let choice = if self.params.sends_what_is_written {
            self.choose_written(now)?
        } else {
            self.choose().filter(|_| self.due.forced || !self.waits_for_pace(now))?
        };
        let forced = self.due.forced;
        self.left_last = match choice {
            SegmentChoice::New { length, .. } => self.flight.next() + if forced { 0 } else { u64::from(length) },
            SegmentChoice::Again { seq, .. } if forced => seq,
            SegmentChoice::Again { seq, most } => seq + self.flight.repeat_length(seq, most),
        };
        if self.due.tail_probe {
            self.due.tail_probe = false;
            let again = matches!(choice, SegmentChoice::Again { .. });
            let new = match choice {
                SegmentChoice::New { length, fin } => u64::from(length) + u64::from(fin),
                SegmentChoice::Again { .. } => 0,
            };
            let end = self.flight.next() + new;
            self.rack.probed(end, again);
        }
        let sent = match choice {
            SegmentChoice::New { length, fin } => Some(self.send_new(length, fin, now)),
            SegmentChoice::Again { seq, most } => self.send_again(seq, most, now),
        };
        self.due.forced = false;
        self.due.settled = None;
        sent
    }

    /// The segment to send next (NextSeg in RFC 6675), if the windows have room for it.
    fn choose(&mut self) -> Option<SegmentChoice> {
        let window = self.window();
        let in_network = self.occupied();
        if let Some(seq) = self.flight.next_lost() {
            let bytes = self.flight.find(seq).map_or(0, |sent| u64::from(sent.length));
            return self.fits(in_network, bytes, window).then_some(SegmentChoice::again(seq));
        }
        let seq = self.flight.next();
        let unsent = self.supplied.saturating_sub(seq);
        let fin_is_due = !self.held_open && !self.fin_sent;
        if unsent == 0 && !fin_is_due {
            if self.due.tail_probe {
                return self.probe_again();
            }
            return self.choose_unconfirmed(in_network, window);
        }
        let length = self.new_length(unsent);
        if length == 0 && unsent > 0 {
            return if self.due.tail_probe { self.probe_again() } else { None };
        }
        let fin = fin_is_due && length == unsent;
        // A FIN takes a sequence number, but no room in the network.
        if self.due.tail_probe || length == 0 || self.fits(in_network, length, window) {
            return Some(SegmentChoice::New { length: length as u32, fin });
        }
        self.usage.limited = true;
        None
    }

    /// Where the forced segment starts, and its bytes. This settles the choice.
    pub(super) fn forced_segment(&mut self) -> (u64, u64) {
        if self.params.sends_what_is_written {
            let choice = self.choose_forced();
            self.due.settled = Some(choice);
            return match choice {
                SegmentChoice::New { length, .. } => (self.flight.next(), length.into()),
                SegmentChoice::Again { seq, most } => (seq, self.flight.repeat_length(seq, most)),
            };
        }
        let start = self.flight.next_lost().unwrap_or_else(|| {
            let next = self.flight.next();
            if self.supplied > next { next } else { self.flight.una() }
        });
        match self.flight.find(start) {
            Some(sent) => (start, sent.bytes()),
            None => (start, self.new_length(self.supplied.saturating_sub(start))),
        }
    }

    /// How much unsent data may go in one segment, by the peer's window and the send buffer.
    #[inline]
    fn new_length(&self, unsent: u64) -> u64 {
        let seq = self.flight.next();
        let mss = u64::from(self.params.mss);
        let outstanding = self.flight.outstanding();
        let room = self.peer_limit.saturating_sub(seq).min(self.params.send_buffer.saturating_sub(outstanding));
        let length = unsent.min(mss);
        if room >= length {
            length
        } else if outstanding == 0 {
            room
        } else {
            // Silly window: waits for room for a whole segment (RFC 9293 section 3.8.6.2.1).
            0
        }
    }

    /// Retransmits the last segment as a probe.
    pub(super) fn probe_again(&mut self) -> Option<SegmentChoice> {
        let last = self.flight.last().filter(|last| !last.sacked).map(|last| SegmentChoice::again(last.seq));
        self.due.tail_probe &= last.is_some();
        last
    }

    fn choose_unconfirmed(&mut self, in_network: u64, window: u64) -> Option<SegmentChoice> {
        if self.flight.is_empty() {
            return None;
        }
        if self.due.forced {
            return self.flight.first().filter(|first| !first.sacked).map(|first| SegmentChoice::again(first.seq));
        }
        if self.phase == Phase::Recovery && self.params.sack && self.params.rescue != Rescue::Nothing {
            if !self.fits(in_network, u64::from(self.params.mss), window) {
                return None;
            }
            if let Some(seq) = self.flight.next_unconfirmed(self.params.rescue == Rescue::UnconfirmedAndLast) {
                return Some(SegmentChoice::again(seq));
            }
            if self.due.rescue && self.params.rescue == Rescue::UnconfirmedAndLast {
                let last = self.flight.last().filter(|last| !last.sacked)?.seq;
                self.due.rescue = false;
                return Some(SegmentChoice::again(last));
            }
        }
        if in_network < window {
            self.delivery.limit(in_network);
        }
        None
    }

    /// Whether `bytes` more bytes may be in flight. With nothing in flight, one segment may be sent whatever the
    /// window, except in ns-3.
    #[inline]
    fn fits(&self, in_network: u64, bytes: u64, window: u64) -> bool {
        in_network + bytes <= window || self.due.forced || (in_network == 0 && !self.params.stalls_below_segment)
    }

    /// Bytes that the window has to hold. Without limited transmit, data that arrived out of order still counts.
    #[inline]
    pub(super) fn occupied(&self) -> u64 {
        let in_network = self.flight.in_network();
        if self.params.limited_transmit || self.phase != Phase::Open {
            return in_network;
        }
        in_network + self.flight.sacked() + self.flight.guessed()
    }

    fn send_new(&mut self, length: u32, fin: bool, now: Nanos) -> (Segment, Ecn) {
        let idle = self.flight.is_empty();
        if idle {
            self.restart_after_idle(now);
        }
        let seq = self.flight.next();
        let mut sent = SentSegment::new(seq, length, fin);
        let begins = self.delivery.begins(!idle, self.flight.in_network());
        self.delivery.stamp(&mut sent, begins, now);
        self.flight.push(sent);
        self.fin_sent |= fin;
        let mut flags = Flags::ACK;
        if fin {
            flags = flags | Flags::FIN;
        }
        if self.marks.cwr {
            self.marks.cwr = false;
            self.marks.cwr_seq = seq;
            self.marks.heard = false;
            flags = flags | Flags::CWR;
        }
        self.note_usage();
        let codepoint = if self.ecn { self.control.ecn().codepoint() } else { Ecn::NotEct };
        let segment = self.leave(&sent, flags, now);
        self.schedule_probe(now);
        (segment, codepoint)
    }

    fn send_again(&mut self, seq: u64, most: u64, now: Nanos) -> Option<(Segment, Ecn)> {
        let begins = self.delivery.begins(true, self.flight.in_network());
        let delivery = &mut self.delivery;
        let sent = self.flight.repeat(seq, most, |sent| delivery.stamp(sent, begins, now))?;
        self.stats.repeated += 1;
        let flags = if sent.fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let capable = self.ecn && self.params.ecn_on_repeats;
        let codepoint = if capable { self.control.ecn().codepoint() } else { Ecn::NotEct };
        Some((self.leave(&sent, flags, now), codepoint))
    }

    fn leave(&mut self, sent: &SentSegment, flags: Flags, now: Nanos) -> Segment {
        let bytes = sent.bytes();
        self.arm(now);
        if matches!(self.phase, Phase::Recovery | Phase::Reduced) {
            self.reduction.sent(bytes);
        }
        // In ns-3, a segment past window and pacing is part of processing the ACK: it does not count as a restart from
        // idleness.
        if !self.due.forced {
            self.control.on_sent(bytes, self.flight.in_network(), now);
        }
        self.after_pace(bytes, now);
        self.timers.last_sent_at = now;
        if self.detects_by_time() {
            self.rack.sent(sent);
        }
        self.stats.segments += 1;
        self.stats.bytes += u64::from(sent.length);
        let mut segment = self.segment(sent.seq, flags, now);
        segment.length = sent.length;
        segment
    }

    fn segment(&mut self, seq: u64, flags: Flags, now: Nanos) -> Segment {
        let echo = self.echo_timestamp;
        let timestamps = self.clock.as_mut().map(|clock| Timestamps { value: clock.at(now), echo });
        let window = self.params.receive_window;
        let without_mss = !self.params.mss_option;
        Segment { seq, ack: 1, window, length: 0, flags, timestamps, sacks: Sacks::default(), without_mss }
    }

    fn control_codepoint(&self) -> Ecn {
        let ecn = self.control.ecn();
        if ecn.counts() && self.params.ecn_on_controls { ecn.codepoint() } else { Ecn::NotEct }
    }

    /// Remembers the most of the window that was used within a round trip.
    #[inline]
    fn note_usage(&mut self) {
        let in_network = self.flight.in_network();
        if self.flight.una() >= self.usage.until || in_network > self.usage.most_in_flight {
            self.usage.most_in_flight = in_network;
            self.usage.until = self.flight.next();
        }
    }

    #[inline]
    pub(super) fn waits_for_pace(&mut self, now: Nanos) -> bool {
        self.pace.waits = false;
        if now >= self.pace.release_at {
            return false;
        }
        self.pace.waits = true;
        true
    }

    #[inline]
    fn after_pace(&mut self, bytes: u64, now: Nanos) {
        let before = self.pace.before.take();
        if now < self.pace.release_at || (now == self.pace.release_at && self.pace.waits) {
            // Sent past the pacing, which continues; also if its turn is at this instant but has not come yet.
            return;
        }
        let Some(rate) = before.or(self.control.pacing_rate()).or(self.pace.rate) else { return };
        let initial = u64::from(self.params.initial_window) * u64::from(self.params.mss);
        // The last segment of the initial window is paced: the next one keeps its distance, as in ns-3, even if that is
        // the first one again.
        if !self.params.pace_initial_window && self.flight.next() <= initial {
            return;
        }
        let rate = rate.bits_per_second();
        let half = if self.params.paces_to_nearest { rate / 2 } else { 0 };
        self.pace.set_at = now;
        self.pace.release_at = Nanos(now.0 + (bytes * 8_000_000_000).saturating_add(half) / rate);
        // Its turn at that instant then counts as set now, even if a segment starts to wait for it only later.
        self.pace.waits = self.params.paces_to_nearest;
    }
}

/// What may be sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum SegmentChoice {
    /// The next segment of new data.
    New { length: u32, fin: bool },
    /// Retransmits the segment at `seq`, joined with the next one up to `most` bytes where possible.
    Again { seq: u64, most: u64 },
}

impl SegmentChoice {
    /// Retransmits the segment at `seq` as it is.
    fn again(seq: u64) -> Self {
        Self::Again { seq, most: 0 }
    }
}
