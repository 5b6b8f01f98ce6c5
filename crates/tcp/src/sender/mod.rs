//! The sending end: opens, sends what the windows allow, repairs losses, closes.
//!
//! - this file: what a sender is, and what leaves next;
//! - `acknowledge`: what an ACK does; `timers`: what time does;
//! - `flight`: the scoreboard; `rack`: losses by time, and probes; `reduction`: the window in recovery; `delivery`: the delivery rate.
//!
//! Sources: RFC 9293 (handshake, windows, probes), RFC 6298 (timer), RFC 6675, 6582 and 8985 (losses), RFC 6937 (recovery's
//! window), RFC 3042 (limited transmit), RFC 3168 and 8257 (marks). Where two implementations differ, [`TcpParams`] names it.

mod acknowledge;
mod delivery;
mod flight;
mod rack;
mod reduction;
mod tally;
mod timers;

use crate::clock::Clock;
use crate::congestion::{CongestionControl, EcnUse, Phase};
use crate::params::{Rescue, TcpParams};
use crate::rtt::RttEstimator;
use crate::segment::{Flags, Sacks, Segment, Timestamps};
use delivery::Delivery;
use flight::{Flight, Sent};
use queuescope_wire::{Ecn, Nanos, Rate};
use rack::Rack;
use reduction::Reduction;

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender<C: CongestionControl> {
    params: TcpParams,
    control: C,
    state: State,
    ecn: bool,
    flight: Flight,
    /// The number behind the last byte that the application has supplied.
    supplied: u64,
    /// Whether the application may supply more before it closes.
    held_open: bool,
    fin_sent: bool,
    /// The peer's window, and the number behind what it takes.
    peer_window: u64,
    peer_limit: u64,
    phase: Phase,
    /// When this is acknowledged, the phase is over: what was next when it began.
    recovery_point: u64,
    duplicates: u32,
    reduction: Reduction,
    clock: Option<Clock>,
    rtt: RttEstimator,
    rack: Rack,
    delivery: Delivery,
    due: Due,
    timers: Timers,
    pace: Pace,
    marks: Marks,
    usage: Usage,
    echo_timestamp: u32,
    stats: SenderStats,
}

/// What a sender counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with data or FIN that left, repeated ones included.
    pub segments: u64,
    /// Bytes of data in them.
    pub bytes: u64,
    /// Segments that were sent again.
    pub repeated: u64,
    /// SYNs that were sent again.
    pub repeated_syns: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Times that recovery began (RFC 6675).
    pub recoveries: u64,
    /// Times that the window was reduced for marks.
    pub reductions: u64,
    /// ACKs that came, and those that echoed a mark.
    pub acks: u64,
    /// See `acks`.
    pub echoes: u64,
    /// Bytes found to be lost.
    pub lost: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_probes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    SynSent,
    Established,
}

/// What leaves next whatever the windows say.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    syn: bool,
    ack: bool,
    window_probe: bool,
    /// One segment, past the congestion window.
    forced: bool,
    /// A probe of the tail, past the congestion window too.
    tail_probe: bool,
    /// One rescue retransmission is left in this recovery (NextSeg rule 4).
    rescue: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Timers {
    rto: Option<Nanos>,
    persist: Option<Nanos>,
    persist_timeout: Nanos,
    syn_sent_at: Nanos,
    syns: u32,
    last_sent_at: Nanos,
    /// A partial ACK has restarted the timer in this recovery.
    restarted: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    release_at: Nanos,
    waits: bool,
    rate: Option<Rate>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    /// The next new segment says that the window was reduced.
    cwr: bool,
    /// The number that said so last: an echo from before it says nothing new.
    cwr_seq: u64,
}

/// Whether the window is used (Linux's `tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    limited: bool,
    most_in_flight: u64,
    until: u64,
}

impl<C: CongestionControl> Sender<C> {
    /// It is closed. It will send `bytes` and then close, or without end.
    pub fn new(params: &TcpParams, control: C, bytes: Option<u64>) -> Self {
        Self {
            params: *params,
            control,
            state: State::Closed,
            ecn: false,
            flight: Flight::new(1, params.mss).keep_ghosts(params.repeats_stay_in_flight),
            supplied: bytes.map_or(u64::MAX, |bytes| 1 + bytes),
            held_open: bytes.is_none(),
            fin_sent: false,
            peer_window: 0,
            peer_limit: 0,
            phase: Phase::Open,
            recovery_point: 0,
            duplicates: 0,
            reduction: Reduction::default(),
            clock: Clock::new(params.timestamp_tick),
            rtt: RttEstimator::new(params),
            rack: Rack::default(),
            delivery: Delivery::default(),
            due: Due::default(),
            timers: Timers::default(),
            pace: Pace::default(),
            marks: Marks::default(),
            usage: Usage::default(),
            echo_timestamp: 0,
            stats: SenderStats::default(),
        }
    }

    /// Opens the connection. Call [`Sender::transmit`] afterwards until it returns nothing; so too after each of
    /// [`Sender::receive`], [`Sender::on_timer`] and [`Sender::supply`].
    pub fn connect(&mut self, now: Nanos) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.due.syn = true;
            self.timers.syn_sent_at = now;
            self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
        }
    }

    /// The application has so many bytes more to send. No effect once the end was sent: see [`Sender::keep_open`].
    pub fn supply(&mut self, bytes: u64) {
        if !self.fin_sent {
            self.supplied = self.supplied.saturating_add(bytes);
        }
    }

    /// The connection stays open when all is sent, since more will be supplied, until [`Sender::close`].
    pub fn keep_open(&mut self) {
        self.held_open = true;
    }

    /// Nothing more will be supplied: after what was, the connection closes.
    pub fn close(&mut self) {
        if self.supplied < u64::MAX {
            self.held_open = false;
        }
    }

    /// What is to be sent now; call it until it returns nothing.
    #[inline]
    pub fn transmit(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        match self.state {
            State::Established if self.due.ack || self.due.window_probe => self.transmit_control(now),
            State::Established => self.transmit_data(now),
            State::SynSent if self.due.syn => Some(self.transmit_syn(now)),
            State::SynSent | State::Closed => None,
        }
    }

    /// Whether all bytes and the end are acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.fin_sent && self.flight.is_empty()
    }

    /// Its congestion control.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Bytes in the network, as far as is known: pipe in RFC 6675.
    pub fn in_flight(&self) -> u64 {
        self.flight.in_network()
    }

    /// The window that holds now: in recovery not the congestion control's.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.reduces() { self.reduction.window() } else { self.control.window() }
    }

    /// What it is doing about losses and marks.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The smoothed round-trip time, once one was measured.
    pub fn smoothed_rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// How long it waits for an ACK, backed off or not (RFC 6298).
    pub fn retransmission_timeout(&self) -> Nanos {
        self.rtt.rto()
    }

    /// What was counted so far.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
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
            // A number that was acknowledged, so that an answer is sure (RFC 9293 section 3.8.6.1; as Linux does).
            self.due.window_probe = false;
            self.stats.window_probes += 1;
            self.flight.una() - 1
        };
        let codepoint = if self.ecn { self.control_codepoint() } else { Ecn::NotEct };
        Some((self.segment(seq, Flags::ACK, now), codepoint))
    }

    fn transmit_data(&mut self, now: Nanos) -> Option<(Segment, Ecn)> {
        let choice = self.choose()?;
        if self.waits_for_pace(now) {
            return None;
        }
        self.due.forced = false;
        if self.due.tail_probe {
            self.due.tail_probe = false;
            let again = matches!(choice, Choice::Again(_));
            let new = match choice {
                Choice::New { length, fin } => u64::from(length) + u64::from(fin),
                Choice::Again(_) => 0,
            };
            let end = self.flight.next() + new;
            self.rack.probed(end, again);
        }
        match choice {
            Choice::New { length, fin } => Some(self.send_new(length, fin, now)),
            Choice::Again(seq) => self.send_again(seq, now),
        }
    }

    /// The segment to send next (NextSeg in RFC 6675), if the windows have room for it.
    fn choose(&mut self) -> Option<Choice> {
        let window = self.window();
        let in_network = self.occupied();
        if let Some(seq) = self.flight.next_lost() {
            let bytes = self.flight.find(seq).map_or(0, |sent| u64::from(sent.length));
            return self.fits(in_network, bytes, window).then_some(Choice::Again(seq));
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
        // The end takes a number, but no room in the network.
        if self.due.tail_probe || length == 0 || self.fits(in_network, length, window) {
            return Some(Choice::New { length: length as u32, fin });
        }
        self.usage.limited = true;
        None
    }

    /// How much of what was not sent yet may go in one segment, as the peer's window and the buffer say.
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
            // Silly window: it waits for room for a whole segment (RFC 9293 section 3.8.6.2.1).
            0
        }
    }

    /// The last segment once more.
    fn probe_again(&mut self) -> Option<Choice> {
        let last = self.flight.last().filter(|last| !last.sacked).map(|last| Choice::Again(last.seq));
        self.due.tail_probe &= last.is_some();
        last
    }

    fn choose_unconfirmed(&mut self, in_network: u64, window: u64) -> Option<Choice> {
        if self.flight.is_empty() {
            return None;
        }
        if self.due.forced {
            return self.flight.first().filter(|first| !first.sacked).map(|first| Choice::Again(first.seq));
        }
        if self.phase == Phase::Recovery && self.params.sack && self.params.rescue != Rescue::Nothing {
            if !self.fits(in_network, u64::from(self.params.mss), window) {
                return None;
            }
            if let Some(seq) = self.flight.next_unconfirmed(self.params.rescue == Rescue::UnconfirmedAndLast) {
                return Some(Choice::Again(seq));
            }
            if self.due.rescue && self.params.rescue == Rescue::UnconfirmedAndLast {
                let last = self.flight.last().filter(|last| !last.sacked)?.seq;
                self.due.rescue = false;
                return Some(Choice::Again(last));
            }
        }
        if in_network < window {
            self.delivery.limit(in_network);
        }
        None
    }

    /// Whether so many bytes more may be in flight; nothing in flight lets one segment out whatever the window.
    #[inline]
    fn fits(&self, in_network: u64, bytes: u64, window: u64) -> bool {
        in_network + bytes <= window || self.due.forced || in_network == 0
    }

    /// Bytes that the window has to hold. Without limited transmit, what arrived out of order still counts.
    #[inline]
    fn occupied(&self) -> u64 {
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
        let mut sent = Sent::new(seq, length, fin);
        self.delivery.stamp(&mut sent, idle, now);
        self.flight.push(sent);
        self.fin_sent |= fin;
        let mut flags = Flags::ACK;
        if fin {
            flags = flags | Flags::FIN;
        }
        if self.marks.cwr {
            self.marks.cwr = false;
            self.marks.cwr_seq = seq;
            flags = flags | Flags::CWR;
        }
        self.note_usage();
        let codepoint = if self.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let segment = self.leave(&sent, flags, now);
        self.schedule_probe(now);
        (segment, codepoint)
    }

    fn send_again(&mut self, seq: u64, now: Nanos) -> Option<(Segment, Ecn)> {
        let delivery = &mut self.delivery;
        let sent = self.flight.repeat(seq, |sent| delivery.stamp(sent, false, now))?;
        self.stats.repeated += 1;
        let flags = if sent.fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let codepoint = if self.ecn && self.params.ecn_on_repeats { Ecn::Ect0 } else { Ecn::NotEct };
        Some((self.leave(&sent, flags, now), codepoint))
    }

    fn leave(&mut self, sent: &Sent, flags: Flags, now: Nanos) -> Segment {
        let bytes = sent.bytes();
        self.arm(now);
        if matches!(self.phase, Phase::Recovery | Phase::Reduced) {
            self.reduction.sent(bytes);
        }
        self.control.on_sent(bytes, self.flight.in_network(), now);
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
        Segment { seq, ack: 1, window, length: 0, flags, timestamps, sacks: Sacks::default() }
    }

    fn control_codepoint(&self) -> Ecn {
        let capable = self.control.ecn() == EcnUse::Counted && self.params.ecn_on_controls;
        if capable { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Whether the window is the sender's and not the congestion control's.
    #[inline]
    fn reduces(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reduced)
            && self.params.reduction.is_some()
            && !self.control.rules_recovery()
    }

    /// Remembers how much of the window was used most in a round trip.
    #[inline]
    fn note_usage(&mut self) {
        let in_network = self.flight.in_network();
        if self.flight.una() >= self.usage.until || in_network > self.usage.most_in_flight {
            self.usage.most_in_flight = in_network;
            self.usage.until = self.flight.next();
        }
    }

    #[inline]
    fn waits_for_pace(&mut self, now: Nanos) -> bool {
        self.pace.waits = false;
        if now >= self.pace.release_at {
            return false;
        }
        self.pace.waits = true;
        true
    }

    #[inline]
    fn after_pace(&mut self, bytes: u64, now: Nanos) {
        let Some(rate) = self.control.pacing_rate().or(self.pace.rate) else { return };
        let initial = u64::from(self.params.initial_window) * u64::from(self.params.mss);
        if !self.params.pace_initial_window && self.flight.next() <= 1 + initial {
            return;
        }
        self.pace.release_at = Nanos(now.0 + bytes * 8_000_000_000 / rate.bits_per_second());
    }
}

/// What may leave.
#[derive(Debug, Clone, Copy)]
enum Choice {
    New { length: u32, fin: bool },
    Again(u64),
}
