//! What the application has written, where only written data can be sent ([`sends_what_is_written`](crate::TcpParams)).
//!
//! In ns-3 3.37, `BulkSendApplication::SendData` writes until the buffer has no room for a whole write
//! (`TcpTxBuffer::Add`). It is called when an ACK has made room (`TcpSocketBase::NewAck`), and when less is left to
//! send than the windows allow (`SendPendingData`). The latter also splits data into segments: with Nagle's algorithm
//! off, which is the default, the available data is sent if it fits or if a full segment does.

use super::Sender;
use super::transmit::SegmentChoice;
use crate::congestion::{CongestionControl, Phase};
use crate::params::Rescue;
use queuescope_wire::Nanos;

impl<C: CongestionControl> Sender<C> {
    /// The sequence number after the data that could be sent by now, regardless of the windows.
    #[inline]
    pub(super) fn tail(&self) -> u64 {
        if self.params.sends_what_is_written { self.written } else { self.supplied }
    }

    /// The application writes until the buffer has no room for a whole write. `in_flight` is what the first write finds
    /// in flight, and `later` what the others find; `next` is where the sender would continue. Returns whether
    /// something was written.
    pub(super) fn refill(&mut self, [in_flight, later]: [u64; 2], next: u64) -> bool {
        let size = self.params.application_writes.max(1);
        let left = self.supplied.saturating_sub(self.written);
        let room = self.params.send_buffer.saturating_add(self.flight.una()).saturating_sub(self.written);
        let whole = (room / size).min(left / size) * size;
        // The last write takes the rest.
        let rest = left - whole;
        let amount = if rest < size && rest <= room - whole { left } else { whole };
        if amount == 0 {
            return false;
        }
        self.limit_if_short(self.written + size.min(amount), in_flight, next);
        if amount > size {
            self.limit_if_short(self.written + (2 * size).min(amount), later, next);
        }
        self.written += amount;
        true
    }

    /// A write up to `tail` leaves less than a segment to send. The application limits the flow then, unless the window
    /// is full or a loss is not repaired (`TcpRateLinux::CalculateAppLimited`).
    fn limit_if_short(&mut self, tail: u64, in_flight: u64, next: u64) {
        let short = tail < next.saturating_add(u64::from(self.params.mss));
        if short && in_flight < self.window() && self.flight.lost() <= self.flight.sent_again() {
            self.delivery.limit(in_flight);
        }
    }

    /// The next segment of written data, if window and pacing allow one.
    pub(super) fn choose_written(&mut self, now: Nanos) -> Option<SegmentChoice> {
        let allowed = self.allowance();
        let mss = u64::from(self.params.mss);
        if self.due.forced {
            return Some(self.due.settled.unwrap_or_else(|| self.choose_forced()));
        }
        if self.due.tail_probe {
            let length = self.new_room().min(mss).min(self.written.saturating_sub(self.flight.next()));
            return if length > 0 { Some(self.new_choice(length)) } else { self.probe_again() };
        }
        if allowed == 0 || self.waits_for_pace(now) {
            return self.choose_end();
        }
        let next = self.flight.next();
        let (again, seq, most) = if let Some(seq) = self.flight.next_lost() {
            (true, seq, mss)
        } else if self.written > next {
            (false, next, self.new_room().min(mss))
        } else if let Some(seq) = self.next_unconfirmed() {
            (true, seq, mss)
        } else {
            return self.choose_end();
        };
        let waiting = self.written - seq;
        if waiting < allowed {
            let in_network = self.flight.in_network();
            self.refill([in_network, in_network], self.left_last);
        }
        // Silly window: waits for room for a full segment, unless all available data fits.
        if (allowed < mss && waiting > allowed) || most == 0 {
            self.usage.limited = true;
            return None;
        }
        let most = allowed.min(most);
        Some(if again { SegmentChoice::Again { seq, most } } else { self.new_choice(most.min(self.written - seq)) })
    }

    /// What is sent past window and pacing: lost data, else new data, else the first segment.
    pub(super) fn choose_forced(&mut self) -> SegmentChoice {
        let mss = u64::from(self.params.mss);
        if let Some(seq) = self.flight.next_lost() {
            return SegmentChoice::Again { seq, most: mss };
        }
        let length = self.new_room().min(mss).min(self.written.saturating_sub(self.flight.next()));
        if length > 0 { self.new_choice(length) } else { SegmentChoice::Again { seq: self.flight.una(), most: mss } }
    }

    fn new_choice(&self, length: u64) -> SegmentChoice {
        let fin = !self.held_open && self.flight.next() + length == self.supplied;
        SegmentChoice::New { length: length as u32, fin }
    }

    /// The FIN alone, if everything else was sent.
    fn choose_end(&self) -> Option<SegmentChoice> {
        let due = !self.held_open && !self.fin_sent && self.flight.next() == self.supplied;
        due.then_some(SegmentChoice::New { length: 0, fin: true })
    }

    fn next_unconfirmed(&mut self) -> Option<u64> {
        let repeats = self.phase == Phase::Recovery && self.params.sack && self.params.rescue != Rescue::Nothing;
        let confirmed = self.params.rescue == Rescue::UnconfirmedAndLast;
        if repeats { self.flight.next_unconfirmed(confirmed) } else { None }
    }

    /// Bytes that both windows allow to be sent (`TcpSocketBase::AvailableWindow`).
    fn allowance(&self) -> u64 {
        let peer = self.peer_limit.saturating_sub(self.flight.una());
        let occupied = self.occupied();
        let allowed = self.window().min(peer).saturating_sub(occupied);
        let lets_one_out = occupied == 0 && !self.params.stalls_below_segment;
        if lets_one_out { allowed.max(u64::from(self.params.mss)) } else { allowed }
    }

    /// Room for new data in the peer's window.
    fn new_room(&self) -> u64 {
        self.peer_limit.saturating_sub(self.flight.next())
    }
}
