//! The receiving end: it acknowledges, delays ACKs, reports data out of order and echoes marks.
//!
//! Sources: RFC 9293 (acceptance, delayed ACKs), RFC 2018 and 2883 (SACK), RFC 7323 section 4.3 (which timestamp is
//! echoed), RFC 3168 section 6.1.3 (ECE until CWR), RFC 8257 section 3.2 (DCTCP's two states). The application reads at
//! once, so the advertised window never shrinks. The receiver does not close its own half: it acknowledges a FIN, and
//! that is the end.

use crate::clock::Clock;
use crate::congestion::EcnUse;
use crate::params::TcpParams;
use crate::pieces::OutOfOrderSegments;
use crate::recent::RecentBlocks;
use crate::segment::{Flags, Sacks, Segment, Timestamps};
use queuescope_wire::{Ecn, Nanos};
use std::collections::VecDeque;

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    params: TcpParams,
    ecn_use: EcnUse,
    clock: Option<Clock>,
    state: State,
    ecn: bool,
    /// The next byte in order.
    next: u64,
    /// The sequence number behind the FIN, once one has come.
    end: Option<u64>,
    islands: VecDeque<(u64, u64)>,
    /// The same by segments, where blocks are forgotten.
    pieces: OutOfOrderSegments,
    recent: RecentBlocks,
    /// Data that arrived twice, to be reported once.
    duplicate: Option<(u64, u64)>,
    /// The highest ACK sent.
    acknowledged: u64,
    echo_timestamp: u32,
    /// Segments in order since the last ACK.
    unacknowledged: u32,
    quick_acks: u32,
    ack_at: Option<Nanos>,
    due: Due,
    repeat_syn_at: Option<Nanos>,
    syn_rto: Nanos,
    marks: Marks,
    lag: Lag,
    stats: ReceiverStats,
}

/// Counters of a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Segments that arrived.
    pub segments: u64,
    /// Segments whose data had all arrived before.
    pub duplicates: u64,
    /// Segments that arrived before data with lower sequence numbers.
    pub out_of_order: u64,
    /// Segments beyond the window, which were dropped.
    pub beyond_window: u64,
    /// Segments with a CE mark.
    pub marked: u64,
    /// ACKs sent.
    pub acks: u64,
    /// ACKs sent because the timer for delayed ACKs expired.
    pub delayed_acks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Listen,
    SynReceived,
    Established,
}

/// ACKs that are to be sent now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Due {
    syn_ack: bool,
    /// An ACK for part of the data, with the previous echo (RFC 8257 section 3.2).
    earlier: Option<(u64, bool)>,
    ack: bool,
}

/// What ns-3 3.37 remembers for counted marks.
#[derive(Debug, Clone, Copy, Default)]
struct Lag {
    /// The next sequence number expected when the last segment arrived.
    expected: Option<u64>,
    /// The start of the highest marked segment.
    marked: u64,
    /// Whether the ACK of the last in-order segment was delayed.
    delays: bool,
}

/// Whether marks are being echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    /// A mark has arrived and was not echoed yet.
    Fresh,
    /// ECE is being sent.
    Echoing,
}

impl Receiver {
    /// A listening receiver. `ecn_use` says how marks are echoed; it must be that of the sender's congestion control.
    pub fn new(params: &TcpParams, ecn_use: EcnUse) -> Self {
        Self {
            params: *params,
            ecn_use,
            clock: Clock::new(params.timestamp_tick),
            state: State::Listen,
            ecn: false,
            next: 0,
            end: None,
            islands: VecDeque::new(),
            pieces: OutOfOrderSegments::default(),
            recent: RecentBlocks::default(),
            duplicate: None,
            acknowledged: 0,
            echo_timestamp: 0,
            unacknowledged: 0,
            quick_acks: params.quick_acks,
            ack_at: None,
            due: Due::default(),
            repeat_syn_at: None,
            syn_rto: params.initial_rto,
            marks: Marks::None,
            lag: Lag::default(),
            stats: ReceiverStats::default(),
        }
    }

    /// Handles an arriving segment. Afterwards call [`Receiver::transmit`] until it returns `None`.
    pub fn receive(&mut self, segment: &Segment, ecn: Ecn, now: Nanos) {
        self.stats.segments += 1;
        if segment.flags.contains(Flags::SYN) {
            self.receive_syn(segment, now);
            return;
        }
        match self.state {
            State::Listen => return,
            State::SynReceived => {
                self.state = State::Established;
                self.repeat_syn_at = None;
            }
            State::Established => {}
        }
        let (seq, end) = (segment.seq, segment.end());
        if self.ecn {
            self.note_mark(segment, ecn);
        }
        if let Some(timestamps) = segment.timestamps
            && seq <= self.acknowledged
            && end >= self.next
            && timestamps.value >= self.echo_timestamp
        {
            self.echo_timestamp = timestamps.value;
        }
        if end == seq {
            // No data. If the number is old, it is a probe and must be answered (RFC 9293 section 3.8.6.1).
            self.due.ack |= seq < self.next;
            return;
        }
        self.receive_data(segment, now);
    }

    /// The next segment to send now. Call it until it returns `None`.
    pub fn transmit(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        if self.due.syn_ack {
            self.due.syn_ack = false;
            let mut flags = Flags::SYN | Flags::ACK;
            if self.ecn {
                flags = flags | Flags::ECE;
            }
            return Some((self.segment(0, flags, self.next, now), self.codepoint()));
        }
        if let Some((ack, echo)) = self.due.earlier.take() {
            self.stats.acks += 1;
            let flags = if echo { Flags::ACK | Flags::ECE } else { Flags::ACK };
            return Some((self.segment(1, flags, ack, now), self.codepoint()));
        }
        if !self.due.ack {
            return None;
        }
        self.due.ack = false;
        self.ack_at = None;
        self.unacknowledged = 0;
        self.acknowledged = self.next;
        // Each ACK counts, even one for data out of order.
        self.quick_acks = self.quick_acks.saturating_sub(1);
        self.stats.acks += 1;
        let mut flags = Flags::ACK;
        if self.marks != Marks::None {
            flags = flags | Flags::ECE;
            self.marks = Marks::Echoing;
        }
        let mut segment = self.segment(1, flags, self.next, now);
        if self.params.sack {
            segment.sacks = self.sacks();
        }
        Some((segment, self.codepoint()))
    }

    /// When to call [`Receiver::on_timer`] next.
    #[inline]
    pub fn next_timer(&self) -> Option<Nanos> {
        match (self.ack_at, self.repeat_syn_at) {
            (Some(ack), Some(syn)) => Some(ack.min(syn)),
            (ack, syn) => ack.or(syn),
        }
    }

    /// Handles the timers that have expired at `now`. Calls before [`Receiver::next_timer`] have no effect.
    pub fn on_timer(&mut self, now: Nanos) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.due.ack = true;
            self.lag.delays = true;
            self.stats.delayed_acks += 1;
        }
        if self.repeat_syn_at.is_some_and(|at| at <= now) {
            self.due.syn_ack = true;
            self.syn_rto = Nanos(self.syn_rto.0.saturating_mul(2)).min(self.params.max_rto);
            self.repeat_syn_at = Some(now.saturating_add(self.syn_rto));
        }
    }

    /// Bytes of data that arrived in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        let fin = u64::from(self.is_done());
        self.next.saturating_sub(1 + fin)
    }

    /// Whether everything up to the FIN has arrived.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.end == Some(self.next)
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    fn receive_syn(&mut self, segment: &Segment, now: Nanos) {
        match self.state {
            State::Listen => {
                self.state = State::SynReceived;
                self.ecn = self.params.ecn && segment.flags.contains(Flags::ECE | Flags::CWR);
                self.next = segment.seq + 1;
                self.acknowledged = self.next;
                self.due.syn_ack = true;
                self.repeat_syn_at = Some(now.saturating_add(self.syn_rto));
            }
            State::SynReceived => self.due.syn_ack = true,
            // An old duplicate: answer with the expected number (RFC 9293 section 3.10.7.4).
            State::Established => self.due.ack = true,
        }
        if let Some(timestamps) = segment.timestamps {
            self.echo_timestamp = self.echo_timestamp.max(timestamps.value);
        }
    }

    fn receive_data(&mut self, segment: &Segment, now: Nanos) {
        let (seq, end) = (segment.seq, segment.end());
        if segment.flags.contains(Flags::FIN) {
            self.end.get_or_insert(end);
        }
        if end > self.next.saturating_add(self.params.receive_window).saturating_add(1) {
            self.stats.beyond_window += 1;
            self.due.ack = true;
            return;
        }
        let expected = self.next;
        if seq <= expected && end > expected {
            self.next = end;
            if self.islands.is_empty() {
                self.acknowledge_in_order(segment, now);
                return;
            }
            while let Some(&(start, stop)) = self.islands.front()
                && start <= self.next
            {
                self.next = self.next.max(stop);
                self.islands.pop_front();
            }
            self.pieces.forget_below(self.next);
            if self.params.forgets_blocks && self.islands.is_empty() && self.next <= expected + (end - seq) {
                // ns-3 does not notice that this filled a hole.
                self.acknowledge_in_order(segment, now);
                return;
            }
            // A hole was filled, completely or partly (RFC 5681 section 4.2).
            self.lag.delays = false;
            self.due.ack = true;
            return;
        }
        if end <= expected {
            self.stats.duplicates += 1;
            self.duplicate = Some((seq, end));
        } else {
            self.stats.out_of_order += 1;
            self.lag.delays = false;
            self.add_island(seq, end);
        }
        self.due.ack = true;
    }

    fn acknowledge_in_order(&mut self, segment: &Segment, now: Nanos) {
        self.unacknowledged += 1;
        let at_once = self.quick_acks > 0 || segment.flags.contains(Flags::FIN);
        let full = at_once || self.unacknowledged >= self.params.delayed_ack_count;
        self.lag.delays = !full;
        if full {
            self.due.ack = true;
        } else if !self.due.ack && self.ack_at.is_none() {
            self.ack_at = Some(now.saturating_add(self.params.delayed_ack_timeout));
        }
    }

    fn add_island(&mut self, seq: u64, end: u64) {
        let piece = if self.params.forgets_blocks { self.pieces.add(seq, end) } else { None };
        let (mut seq_all, mut end_all) = (seq, end);
        // The islands that touch it: `first..last`.
        let first = self.islands.partition_point(|&(_, stop)| stop < seq);
        let mut last = first;
        while let Some(&(start, stop)) = self.islands.get(last)
            && start <= end
        {
            if start <= seq && stop >= end {
                self.stats.duplicates += 1;
                self.duplicate = Some((seq, end));
            }
            seq_all = seq_all.min(start);
            end_all = end_all.max(stop);
            last += 1;
        }
        if last == first {
            self.islands.insert(first, (seq_all, end_all));
        } else {
            self.islands[first] = (seq_all, end_all);
            if last > first + 1 {
                self.islands.drain(first + 1..last);
            }
        }
        if !self.params.forgets_blocks {
            self.recent.put((seq_all, end_all), self.next);
        } else if let Some(piece) = piece {
            self.recent.join(piece, self.next);
        }
    }

    /// The blocks that changed last, newest first (RFC 2018 section 4), after a block that arrived twice (RFC 2883
    /// section 4).
    fn sacks(&mut self) -> Sacks {
        let mut sacks = Sacks::default();
        if let Some((seq, end)) = self.duplicate.take()
            && self.params.dsack
        {
            sacks.push(seq..end);
        }
        if self.islands.is_empty() {
            return sacks;
        }
        if self.params.forgets_blocks {
            for (start, stop) in self.recent.from(self.next) {
                sacks.push(start..stop);
            }
            return sacks;
        }
        let before = sacks.len();
        for (recent, _) in self.recent.from(self.next) {
            let after = self.islands.partition_point(|&(start, _)| start <= recent);
            if let Some(&(start, stop)) = after.checked_sub(1).and_then(|place| self.islands.get(place))
                && recent < stop
            {
                sacks.push(start..stop);
            }
        }
        // Everything that changed last is in order by now: report the highest of the other blocks.
        if sacks.len() == before {
            for &(start, stop) in self.islands.iter().rev().take(Sacks::MOST) {
                sacks.push(start..stop);
            }
        }
        sacks
    }

    fn note_mark(&mut self, segment: &Segment, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        self.stats.marked += u64::from(marked);
        match self.ecn_use {
            EcnUse::Classic => {
                if segment.flags.contains(Flags::CWR) && self.marks == Marks::Echoing {
                    self.marks = Marks::None;
                    self.due.ack |= self.params.ack_marks_at_once;
                }
                if marked {
                    if self.marks == Marks::None && self.params.ack_marks_at_once {
                        self.quick_acks = self.quick_acks.max(2);
                    }
                    self.marks = Marks::Fresh;
                }
            }
            EcnUse::Counted | EcnUse::Scalable if self.params.counted_echo_lags => {
                self.note_counted_lagging(segment, marked);
            }
            EcnUse::Counted | EcnUse::Scalable => {
                if segment.length == 0 || marked == (self.marks != Marks::None) {
                    return;
                }
                if self.unacknowledged > 0 {
                    self.due.earlier = Some((self.next, !marked));
                    self.acknowledged = self.next;
                    self.unacknowledged = 0;
                    self.ack_at = None;
                }
                self.marks = if marked { Marks::Fresh } else { Marks::None };
            }
        }
    }

    fn note_counted_lagging(&mut self, segment: &Segment, marked: bool) {
        // A mark on retransmitted data does not count.
        let marked = marked && segment.seq > self.lag.marked;
        if marked {
            self.lag.marked = segment.seq;
        }
        if marked != (self.marks != Marks::None)
            && self.lag.delays
            && let Some(expected) = self.lag.expected
        {
            self.due.earlier = Some((expected, !marked));
            self.unacknowledged = 0;
            self.ack_at = None;
        }
        self.lag.expected = Some(self.next);
        self.marks = if marked { Marks::Fresh } else { Marks::None };
    }

    fn segment(&mut self, seq: u64, flags: Flags, ack: u64, now: Nanos) -> Segment {
        let echo = self.echo_timestamp;
        let timestamps = self.clock.as_mut().map(|clock| Timestamps { value: clock.at(now), echo });
        Segment {
            seq,
            ack,
            window: self.params.receive_window,
            length: 0,
            flags,
            timestamps,
            sacks: Sacks::default(),
            without_mss: !self.params.mss_option,
        }
    }

    fn codepoint(&self) -> Ecn {
        let capable = self.ecn && self.ecn_use.counts() && self.params.ecn_on_controls;
        if capable { self.ecn_use.codepoint() } else { Ecn::NotEct }
    }
}
