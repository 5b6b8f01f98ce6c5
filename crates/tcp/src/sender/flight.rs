//! Data that was sent and is not acknowledged yet: the scoreboard of RFC 6675, in work proportional to the changes.
//!
//! Segments form a ring in the order of their sequence numbers. A cumulative ACK removes segments from its front. A
//! selective one finds its first segment by bisection and skips runs that are known already. Lost segments wait in a
//! queue to be retransmitted. No ACK walks the whole ring.
//!
//! Losses count segments, as in ns-3 and Linux: a segment is lost when three segments above it are selectively
//! acknowledged, contiguous or not. RFC 6675's IsLost requires three discontiguous runs or more than two segments'
//! bytes, which is the same for full segments.

use super::sent::SentSegment;
use super::tally::Tally;
use std::collections::VecDeque;

/// A segment counts as lost when this many segments above it have arrived (DupThresh).
pub(crate) const DUPLICATES: usize = 3;

/// All segments in flight.
#[derive(Debug)]
pub(crate) struct Flight {
    ring: VecDeque<SentSegment>,
    mss: u64,
    /// The first sequence number that is not acknowledged, and the next to be sent for the first time.
    una: u64,
    next: u64,
    /// Whether the FIN is in flight.
    fin: bool,
    sacked: u64,
    sacked_segments: usize,
    lost: u64,
    repeated: u64,
    /// Bytes that were retransmitted and arrived, but still count as in flight; and whether this is in use.
    ghosts: u64,
    keeps_ghosts: bool,
    /// Whether a short segment is joined with the next one when it is retransmitted.
    joins_short: bool,
    /// Bytes of duplicate ACKs that stand for arrivals without selective acknowledgements.
    guessed: u64,
    /// Where the highest segments that have arrived begin, the highest first.
    highest: [u64; DUPLICATES],
    /// Everything below this that has not arrived was marked lost once.
    judged: u64,
    /// Everything below this has arrived or was retransmitted.
    unconfirmed: u64,
    /// Data below this was sent before a timeout and gives no round-trip times.
    timed_from: u64,
    /// Segments marked lost, in the order in which they are to be retransmitted. Some of them are no longer lost.
    again: VecDeque<u64>,
}

impl Flight {
    /// An empty scoreboard. The first sequence number is `start`; full segments have `mss` bytes.
    pub(crate) fn new(start: u64, mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            ring: VecDeque::new(),
            una: start,
            next: start,
            fin: false,
            sacked: 0,
            sacked_segments: 0,
            lost: 0,
            repeated: 0,
            ghosts: 0,
            keeps_ghosts: false,
            joins_short: false,
            guessed: 0,
            highest: [0; DUPLICATES],
            judged: start,
            unconfirmed: start,
            timed_from: start,
            again: VecDeque::new(),
        }
    }

    /// Whether retransmitted data counts as in flight until it is acknowledged cumulatively, though it is known to have
    /// arrived.
    pub(crate) fn keep_ghosts(mut self, keeps: bool) -> Self {
        self.keeps_ghosts = keeps;
        self
    }

    /// Whether a short segment that is retransmitted is joined with the next one, up to a full segment, if both are
    /// lost or neither is; and whether ACKs count whole segments (ns-3 3.37, `TcpTxBuffer::GetTransmittedSegment`).
    pub(crate) fn join_short(mut self, joins: bool) -> Self {
        self.joins_short = joins;
        self
    }

    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes sent and not acknowledged cumulatively.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.next - self.una - u64::from(self.fin)
    }

    /// Bytes still in the network, as far as the sender knows (pipe).
    #[inline]
    pub(crate) fn in_network(&self) -> u64 {
        (self.outstanding() + self.repeated + self.ghosts).saturating_sub(self.sacked + self.lost + self.guessed)
    }

    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Bytes that count as lost.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that were retransmitted, arrived or not.
    #[inline]
    pub(crate) fn sent_again(&self) -> u64 {
        self.repeated + self.ghosts
    }

    #[inline]
    pub(crate) fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    #[inline]
    pub(crate) fn guessed(&self) -> u64 {
        self.guessed
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&SentSegment> {
        self.ring.front()
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<&SentSegment> {
        self.ring.back()
    }

    /// The segment that begins at `seq`.
    #[inline]
    pub(crate) fn find(&self, seq: u64) -> Option<&SentSegment> {
        self.ring.get(self.place(seq)).filter(|sent| sent.seq == seq)
    }

    /// Adds a new segment that was sent.
    #[inline]
    pub(crate) fn push(&mut self, sent: SentSegment) {
        debug_assert_eq!(sent.seq, self.next);
        self.next = sent.end();
        self.fin |= sent.fin;
        self.ring.push_back(sent);
    }

    /// Retransmits the segment at `seq`. If it is short, joins it with the next where possible, up to `most` bytes.
    pub(crate) fn repeat(&mut self, seq: u64, most: u64, stamp: impl FnOnce(&mut SentSegment)) -> Option<SentSegment> {
        let place = self.place(seq);
        let length = self.repeat_length(seq, most);
        if self.ring.get(place).is_some_and(|sent| sent.seq == seq && !sent.sacked && sent.bytes() < length) {
            self.join(place, length);
        }
        let sent = self.ring.get_mut(place).filter(|sent| sent.seq == seq && !sent.sacked)?;
        if !sent.repeated {
            self.repeated += sent.bytes();
            sent.repeated = true;
        }
        sent.ever_repeated = true;
        stamp(sent);
        Some(*sent)
    }

    /// All data below `ack` has arrived.
    pub(crate) fn acknowledge(&mut self, ack: u64, tally: &mut Tally) {
        if ack <= self.una {
            return;
        }
        tally.acked += ack - self.una;
        let hole = self.ring.front().map_or(0, SentSegment::bytes);
        let whole_segments = (ack - self.una) / self.mss;
        let mut is_first = true;
        while let Some(sent) = self.ring.front()
            && sent.end() <= ack
        {
            let bytes = sent.bytes();
            if is_first && sent.seq >= self.timed_from {
                is_first = false;
                tally.first_is_clean = !sent.ever_repeated;
            }
            if sent.fin {
                self.fin = false;
                tally.acked -= 1;
            }
            if sent.sacked {
                self.sacked -= bytes;
                self.sacked_segments -= 1;
                if sent.repeated {
                    self.ghosts -= bytes;
                }
            } else {
                // ns-3 looks at the segment that ends a whole number of segments below the acknowledged number.
                let behind = ack - sent.end();
                let counts =
                    !self.joins_short || (behind.is_multiple_of(self.mss) && behind / self.mss < whole_segments);
                tally.repaired |= sent.ever_repeated && counts;
                if sent.lost {
                    self.lost -= bytes;
                }
                if sent.repeated {
                    self.repeated -= bytes;
                }
                tally.deliver(sent, bytes);
            }
            self.ring.pop_front();
        }
        if let Some(sent) = self.ring.front_mut()
            && sent.seq < ack
        {
            // Part of a segment: only a peer that splits segments acknowledges that.
            let part = ack - sent.seq;
            let whole = *sent;
            sent.seq = ack;
            sent.length = sent.length.saturating_sub(part as u32);
            if whole.sacked {
                self.sacked -= part;
                if whole.repeated {
                    self.ghosts -= part;
                }
            } else {
                if whole.lost {
                    self.lost -= part;
                    self.again.push_front(ack);
                }
                if whole.repeated {
                    self.repeated -= part;
                }
                // ns-3 counts a segment once its whole rest is acknowledged.
                if !self.joins_short {
                    tally.deliver(&whole, part);
                }
            }
        }
        self.una = ack;
        self.judged = self.judged.max(ack);
        if self.guessed > 0 {
            // One segment filled the hole. Guesses stand for the others that the ACK covers, as far as they go.
            let eaten = tally.acked.saturating_sub(hole).min(self.guessed);
            tally.delivered = tally.delivered.saturating_sub(eaten);
            self.guessed = (self.guessed - eaten).min(self.outstanding().saturating_sub(1));
        }
        if self.ring.is_empty() {
            self.again.clear();
        }
    }

    /// The whole segments within the block have arrived.
    pub(crate) fn sack(&mut self, start: u64, end: u64, tally: &mut Tally) {
        let mut place = self.place(start.max(self.una));
        let mut arrived_from = None;
        while let Some(sent) = self.ring.get(place)
            && sent.end() <= end
        {
            if sent.sacked {
                arrived_from.get_or_insert(place);
                place += sent.run_after.max(1) as usize;
                continue;
            }
            self.arrive(place, tally);
            place += 1;
        }
        // Blocks often begin where they did before, also amid arrived data: the next time that takes one step.
        if let Some(from) = arrived_from
            && let Some(sent) = self.ring.get_mut(from)
        {
            sent.run_after = sent.run_after.max((place - from) as u32);
        }
    }

    fn arrive(&mut self, place: usize, tally: &mut Tally) {
        let before = match place.checked_sub(1).and_then(|before| self.ring.get(before)) {
            Some(sent) if sent.sacked => (sent.run_before as usize).clamp(1, place),
            _ => 0,
        };
        let after = match self.ring.get(place + 1) {
            Some(sent) if sent.sacked => (sent.run_after as usize).clamp(1, self.ring.len() - place - 1),
            _ => 0,
        };
        let run = (before + 1 + after) as u32;
        let sent = &mut self.ring[place];
        let bytes = sent.bytes();
        tally.deliver(sent, bytes);
        tally.selectively += bytes;
        if sent.lost {
            self.lost -= bytes;
        }
        if sent.repeated {
            self.repeated -= bytes;
            self.ghosts += if self.keeps_ghosts { bytes } else { 0 };
        }
        sent.sacked = true;
        sent.lost = false;
        sent.repeated &= self.keeps_ghosts;
        sent.run_after = 1 + after as u32;
        sent.run_before = before as u32 + 1;
        self.sacked += bytes;
        self.sacked_segments += 1;
        let seq = sent.seq;
        self.ring[place - before].run_after = run;
        self.ring[place + after].run_before = run;
        for rank in 0..DUPLICATES {
            if seq > self.highest[rank] {
                self.highest[rank..].rotate_right(1);
                self.highest[rank] = seq;
                break;
            }
        }
    }

    /// Marks as lost all segments with [`DUPLICATES`] arrivals above them (IsLost). Returns their bytes.
    pub(crate) fn judge(&mut self) -> u64 {
        let below = self.highest[DUPLICATES - 1];
        if below <= self.judged {
            return 0;
        }
        let mut place = self.place(self.judged);
        let mut found = 0;
        while let Some(sent) = self.ring.get(place)
            && sent.seq < below
        {
            if sent.sacked {
                place += sent.run_after.max(1) as usize;
                continue;
            }
            if !sent.lost {
                found += self.lose(place);
            }
            place += 1;
        }
        self.judged = below;
        found
    }

    /// Marks the first segment as lost, and takes it out of the network if it was retransmitted.
    pub(crate) fn lose_first(&mut self) -> u64 {
        let Some(first) = self.ring.front() else { return 0 };
        let seq = first.seq;
        self.lose_again(seq)
    }

    /// Marks the segment at `seq` as lost, whether or not it was retransmitted. Returns its bytes if it was not lost
    /// before.
    pub(crate) fn lose_again(&mut self, seq: u64) -> u64 {
        let place = self.place(seq);
        let Some(sent) = self.ring.get_mut(place).filter(|sent| sent.seq == seq && !sent.sacked) else { return 0 };
        let bytes = sent.bytes();
        if sent.lost && !sent.repeated {
            return 0;
        }
        if sent.repeated {
            sent.repeated = false;
            self.repeated -= bytes;
        }
        if !sent.lost {
            sent.lost = true;
            self.lost += bytes;
        }
        self.again.push_back(seq);
        bytes
    }

    /// Marks a segment as lost for the first time. If it was retransmitted meanwhile, that copy stays in flight.
    fn lose(&mut self, place: usize) -> u64 {
        let sent = &mut self.ring[place];
        sent.lost = true;
        self.lost += sent.bytes();
        if !sent.repeated {
            self.again.push_back(sent.seq);
        }
        sent.bytes()
    }

    /// The retransmission timer expired: the first segment is lost, and so are those `late` ones that have not arrived
    /// (RFC 6675 section 5.1 keeps what is known to have arrived). Returns the bytes that were not marked lost before.
    pub(crate) fn lose_late(&mut self, forget_arrivals: bool, late: impl Fn(&SentSegment) -> bool) -> u64 {
        let mut found = 0;
        self.timed_from = self.next;
        self.again.clear();
        self.ghosts = 0;
        if forget_arrivals {
            self.highest = [0; DUPLICATES];
            self.sacked = 0;
            self.sacked_segments = 0;
            self.guessed = 0;
        }
        for (place, sent) in self.ring.iter_mut().enumerate() {
            if sent.sacked {
                sent.repeated = false;
            }
            sent.sacked &= !forget_arrivals;
            if sent.sacked {
                continue;
            }
            let bytes = sent.bytes();
            let in_network = !sent.lost || sent.repeated;
            if in_network && place > 0 && !late(sent) {
                continue;
            }
            if sent.repeated {
                sent.repeated = false;
                self.repeated -= bytes;
            }
            if in_network {
                found += bytes;
            }
            if !sent.lost {
                sent.lost = true;
                self.lost += bytes;
            }
            self.again.push_back(sent.seq);
        }
        found
    }

    /// A duplicate ACK without selective acknowledgements: some segment has arrived (as window inflation assumes in RFC
    /// 6582).
    pub(crate) fn guess_arrival(&mut self, mss: u64, tally: &mut Tally) {
        let room = self.in_network().min(self.outstanding().saturating_sub(1));
        let arrived = mss.min(room);
        self.guessed += arrived;
        tally.delivered += arrived;
    }

    /// The first lost segment that is not in flight again.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        if self.again.is_empty() { None } else { self.first_again() }
    }

    fn first_again(&mut self) -> Option<u64> {
        while let Some(&seq) = self.again.front() {
            if self.find(seq).is_some_and(|sent| sent.lost && !sent.sacked && !sent.repeated) {
                return Some(seq);
            }
            self.again.pop_front();
        }
        None
    }

    /// The first segment that has neither arrived nor ever been retransmitted (NextSeg rule 3); if `confirmed`, only
    /// below the highest arrival (criterion 1.b).
    pub(crate) fn next_unconfirmed(&mut self, confirmed: bool) -> Option<u64> {
        let end = if confirmed { self.highest[0] } else { self.next };
        let mut place = self.place(self.unconfirmed);
        while let Some(sent) = self.ring.get(place)
            && sent.seq < end
        {
            self.unconfirmed = sent.seq;
            if !sent.sacked && !sent.ever_repeated {
                return Some(sent.seq);
            }
            place += 1;
        }
        None
    }

    /// The index of the first segment that does not begin below `seq`. Almost all segments are full, so a division
    /// finds it.
    #[inline]
    fn place(&self, seq: u64) -> usize {
        let Some(first) = self.ring.front().filter(|first| first.seq < seq) else { return 0 };
        let guess = ((seq - first.seq) / self.mss) as usize;
        let fits = guess > 0
            && self.ring.get(guess - 1).is_some_and(|sent| sent.seq < seq)
            && self.ring.get(guess).is_none_or(|sent| sent.seq >= seq);
        if fits { guess } else { self.ring.partition_point(|sent| sent.seq < seq) }
    }
}

mod short;
#[cfg(test)]
mod tests;
