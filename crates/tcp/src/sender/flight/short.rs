//! Short segments on the scoreboard, as in ns-3 3.37: a retransmission joins them, and a question about the segment
//! after the first looks one full segment past its beginning.

use super::Flight;
use crate::sender::sent::SentSegment;

impl Flight {
    /// Whether the second segment is lost. With short segments: whether the first segment that is lost or has arrived,
    /// of those at least one full segment past the beginning of the first, is lost (ns-3 3.37, `TcpTxBuffer::IsLost`).
    pub(crate) fn second_is_lost(&self) -> bool {
        if !self.joins_short {
            return self.ring.get(1).is_some_and(|second| second.lost);
        }
        let from = self.place(self.una + self.mss);
        self.ring.iter().skip(from).find(|sent| sent.lost || sent.sacked).is_some_and(|sent| sent.lost)
    }

    /// Whether the first segment was retransmitted and is in flight. With short segments: the one that ends a full
    /// segment past the beginning of the first (ns-3 3.37, `TcpTxBuffer::IsRetransmittedDataAcked`).
    pub(crate) fn first_is_repeated(&self) -> bool {
        if !self.joins_short {
            return self.ring.front().is_none_or(|first| first.repeated);
        }
        let end = self.una + self.mss;
        let last = self.place(end).checked_sub(1).and_then(|place| self.ring.get(place));
        self.ring.is_empty() || last.is_some_and(|sent| sent.end() == end && sent.repeated && !sent.sacked)
    }

    /// How many bytes a retransmission of the data at `seq` carries, joined with the next segment or not, up to `most`.
    pub(crate) fn repeat_length(&self, seq: u64, most: u64) -> u64 {
        let place = self.place(seq);
        let Some(sent) = self.ring.get(place).filter(|sent| sent.seq == seq) else { return 0 };
        match self.ring.get(place + 1).filter(|behind| self.joins_short && !behind.sacked && behind.lost == sent.lost) {
            Some(behind) => sent.bytes().max(most.min(sent.bytes() + behind.bytes())),
            None => sent.bytes(),
        }
    }

    /// Joins the segment at index `place` with all or part of the next one, so that it has `length` bytes.
    pub(super) fn join(&mut self, place: usize, length: u64) {
        let (Some(&sent), Some(&behind)) = (self.ring.get(place), self.ring.get(place + 1)) else { return };
        let moved = length - sent.bytes();
        // If only one of the two was retransmitted, the result does not count as retransmitted.
        let again = sent.repeated && behind.repeated;
        self.repeated -= match (sent.repeated, behind.repeated) {
            (true, false) => sent.bytes(),
            (false, true) => behind.bytes(),
            _ => 0,
        };
        let joined = &mut self.ring[place];
        joined.length += moved as u32;
        joined.repeated = again;
        joined.sent_at = sent.sent_at.max(behind.sent_at);
        if moved == behind.bytes() {
            joined.fin |= behind.fin;
            self.ring.remove(place + 1);
            return;
        }
        // For delivery rates, the rest of the second segment was sent when the first was.
        let rest = &mut self.ring[place + 1];
        *rest = SentSegment {
            seq: behind.seq + moved,
            length: behind.length - moved as u32,
            repeated: again,
            sent_at: sent.sent_at.max(behind.sent_at),
            delivered: sent.delivered,
            delivered_at: sent.delivered_at,
            first_sent_at: sent.first_sent_at,
            application_limited: sent.application_limited,
            ..behind
        };
        if rest.lost && !rest.repeated {
            self.again.push_front(rest.seq);
        }
    }
}
