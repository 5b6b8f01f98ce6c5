//! The sending end: opens, sends what the windows allow, repairs losses, closes.
//!
//! - this file: what a sender is; `transmit`: what leaves next; `written`: the same where the application can be behind;
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
mod sent;
mod tally;
mod timers;
mod transmit;
mod written;

use crate::clock::Clock;
use crate::congestion::{CongestionControl, Ns3, Phase};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use delivery::Delivery;
use flight::Flight;
use queuescope_wire::{Nanos, Rate};
use rack::Rack;
use reduction::Reduction;
use transmit::Choice;

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender<C: CongestionControl> {
    params: TcpParams,
    control: C,
    /// The congestion control as ns-3's, if it is to be that.
    ns3: Option<fn(&mut C) -> &mut dyn Ns3>,
    state: State,
    ecn: bool,
    flight: Flight,
    /// The number behind the last byte that the application has supplied.
    supplied: u64,
    /// Whether the application may supply more before it closes.
    held_open: bool,
    /// The number behind the last byte that it has written, where that counts; see `written`.
    written: u64,
    /// Bytes acknowledged that do not make a whole segment yet, where whole segments count.
    remainder: u64,
    fin_sent: bool,
    /// The peer's window, and the number behind what it takes.
    peer_window: u64,
    peer_limit: u64,
    phase: Phase,
    /// When this is acknowledged, the phase is over: what was next when it began.
    recovery_point: u64,
    /// The number behind what left last, or the acknowledged one if that is higher.
    left_last: u64,
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
    /// Nothing: the window has opened, but nobody looks at it before the next ACK or timer.
    nothing: bool,
    window_probe: bool,
    /// One segment, past the congestion window.
    forced: bool,
    /// Which one, where that is settled before the application writes more.
    settled: Option<Choice>,
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
    /// When that was set.
    set_at: Nanos,
    /// The rate before the ACK that lets a segment go past window and pace: as ns-3 sends it before it is done with the ACK,
    /// that is the rate at which the next follows it.
    before: Option<Rate>,
    waits: bool,
    rate: Option<Rate>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    /// The next new segment says that the window was reduced.
    cwr: bool,
    /// The number that said so last: an echo from before it says nothing new.
    cwr_seq: u64,
    /// The last ACK had an echo that counts, and nothing has left since that says that the window was reduced.
    heard: bool,
}

/// Whether the window is used (Linux's `tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    limited: bool,
    most_in_flight: u64,
    until: u64,
}

impl<C: Ns3> Sender<C> {
    /// Where its parameters are those of ns-3, the congestion control does what ns-3 does beside [`CongestionControl`].
    pub fn following_ns3(self) -> Self {
        Self { ns3: Some(|control| control), ..self }
    }
}

impl<C: CongestionControl> Sender<C> {
    /// It is closed. It will send `bytes` and then close, or without end.
    pub fn new(params: &TcpParams, control: C, bytes: Option<u64>) -> Self {
        // The rules of writes are those of ns-3 with selective acknowledgements, its default.
        let params = &TcpParams { sends_what_is_written: params.sends_what_is_written && params.sack, ..*params };
        Self {
            params: *params,
            control,
            ns3: None,
            state: State::Closed,
            ecn: false,
            flight: Flight::new(1, params.mss)
                .keep_ghosts(params.repeats_stay_in_flight)
                .join_short(params.sends_what_is_written),
            supplied: bytes.map_or(u64::MAX, |bytes| 1 + bytes),
            held_open: bytes.is_none(),
            written: 1,
            remainder: 0,
            fin_sent: false,
            peer_window: 0,
            peer_limit: 0,
            phase: Phase::Open,
            recovery_point: 0,
            left_last: 1,
            duplicates: 0,
            reduction: Reduction::default(),
            clock: Clock::new(params.timestamp_tick),
            rtt: RttEstimator::new(params),
            rack: Rack::default(),
            delivery: Delivery::new(params.rate_method),
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
            if self.params.sends_what_is_written && self.state == State::Established {
                let in_network = self.flight.in_network();
                self.refill([in_network, in_network], self.left_last);
            }
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

    /// The application stops: what it has handed over and was not sent yet is not sent any more, and the connection closes
    /// behind what was.
    pub fn stop(&mut self) {
        if !self.fin_sent {
            self.supplied = self.supplied.min(self.flight.next().max(1));
            self.written = self.written.min(self.supplied);
            self.held_open = false;
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

    /// Whether the window is the sender's and not the congestion control's.
    #[inline]
    fn reduces(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reduced)
            && self.params.reduction.is_some()
            && !self.control.rules_recovery()
    }
}
