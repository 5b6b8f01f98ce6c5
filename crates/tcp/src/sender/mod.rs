//! The sending end: opens, sends what the windows allow, repairs losses, closes.
//!
//! - this file: the sender; `transmit`: what is sent next; `written`: the same where the application can be behind;
//! - `acknowledge`: ACKs; `timers`: timeouts;
//! - `flight`: the scoreboard; `rack`: losses by time, and probes; `reduction`: the window in recovery; `delivery`: the
//!   delivery rate.
//!
//! Sources: RFC 9293 (handshake, windows, probes), RFC 6298 (timer), RFC 6675, 6582 and 8985 (losses), RFC 6937 (the
//! window in recovery), RFC 3042 (limited transmit), RFC 3168 and 8257 (marks). [`TcpParams`] names the differences
//! between implementations.

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
use transmit::SegmentChoice;

/// The sending end of a connection.
///
/// ```
/// use queuescope_tcp::{Algorithm, Controller, EcnUse, Profile, Receiver, Sender, TcpParams};
/// use queuescope_wire::Nanos;
/// use std::iter::from_fn;
///
/// let (params, cubic) = (TcpParams::linux(), Algorithm::Cubic.params(Profile::Linux));
/// let control = Controller::new(&cubic, params.mss, 14_480, 1);
/// let (mut sender, mut receiver) = (Sender::new(&params, control, Some(100_000)), Receiver::new(&params, EcnUse::Classic));
/// let (mut now, one_way) = (Nanos::ZERO, Nanos(5_000_000));
/// sender.connect(now);
/// let mut segments: Vec<_> = from_fn(|| sender.transmit(now)).collect();
/// while !sender.is_done() {
///     now = now + one_way;
///     receiver.on_timer(now);
///     let mut acks: Vec<_> = from_fn(|| receiver.transmit(now)).collect();
///     for (segment, ecn) in segments.drain(..) {
///         receiver.receive(&segment, ecn, now);
///         acks.extend(from_fn(|| receiver.transmit(now)));
///     }
///     now = now + one_way;
///     sender.on_timer(now);
///     segments.extend(from_fn(|| sender.transmit(now)));
///     for (ack, ecn) in acks {
///         sender.receive(&ack, ecn, now);
///         segments.extend(from_fn(|| sender.transmit(now)));
///     }
/// }
/// println!("{} segments, {now}", sender.stats().segments);
/// assert_eq!((receiver.delivered(), sender.stats().repeated), (100_000, 0));
/// ```
#[derive(Debug)]
pub struct Sender<C: CongestionControl> {
    params: TcpParams,
    control: C,
    /// How to view the congestion control as ns-3's, if the sender follows ns-3.
    ns3: Option<fn(&mut C) -> &mut dyn Ns3>,
    state: State,
    ecn: bool,
    flight: Flight,
    /// The sequence number after the last byte that the application has supplied.
    supplied: u64,
    /// Whether the application may supply more before it closes.
    held_open: bool,
    /// The sequence number after the last byte written, where writes count; see `written`.
    written: u64,
    /// Acknowledged bytes that do not make a whole segment yet, where whole segments count.
    remainder: u64,
    fin_sent: bool,
    /// The peer's window in bytes, and the sequence number after the last one that the peer accepts.
    peer_window: u64,
    peer_limit: u64,
    phase: Phase,
    /// The phase ends when this number is acknowledged: the next sequence number at its start.
    recovery_point: u64,
    /// The sequence number after the segment that was sent last, or the acknowledged one if that is higher.
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
    usage: WindowUsage,
    echo_timestamp: u32,
    stats: SenderStats,
}

/// Counters of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with data or FIN that were sent, including retransmissions.
    pub segments: u64,
    /// Bytes of data in these segments.
    pub bytes: u64,
    /// Segments that were retransmitted.
    pub repeated: u64,
    /// SYNs that were retransmitted.
    pub repeated_syns: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Recoveries entered (RFC 6675).
    pub recoveries: u64,
    /// Reductions of the window for marks.
    pub reductions: u64,
    /// ACKs received.
    pub acks: u64,
    /// ACKs that echoed a mark.
    pub echoes: u64,
    /// Bytes found lost.
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

/// What is sent next, regardless of the windows.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    syn: bool,
    ack: bool,
    /// The window has opened, but nothing is sent before the next ACK or timer.
    nothing: bool,
    window_probe: bool,
    /// One segment is sent past the congestion window.
    forced: bool,
    /// Which segment that is, if it was chosen before the application writes more.
    settled: Option<SegmentChoice>,
    /// A tail loss probe is sent, also past the congestion window.
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
    /// When `release_at` was set.
    set_at: Nanos,
    /// The pacing rate before the ACK that sends a segment past window and pacing. ns-3 sends that segment while it
    /// processes the ACK, so this rate decides when the next segment follows.
    before: Option<Rate>,
    waits: bool,
    rate: Option<Rate>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    /// Whether the next new segment carries CWR.
    cwr: bool,
    /// The last sequence number that carried CWR: an echo from before it brings no news.
    cwr_seq: u64,
    /// The last ACK had an echo that counts, and no CWR has been sent since.
    heard: bool,
}

/// Whether the window is fully used (Linux's `tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct WindowUsage {
    limited: bool,
    most_in_flight: u64,
    until: u64,
}

impl<C: Ns3> Sender<C> {
    /// Makes the sender do to its congestion control what ns-3 does beyond [`CongestionControl`], where the parameters
    /// are those of ns-3.
    pub fn following_ns3(self) -> Self {
        Self { ns3: Some(|control| control), ..self }
    }
}

impl<C: CongestionControl> Sender<C> {
    /// A closed sender. It will send `bytes` bytes and then close the connection; `None`: it sends without end.
    pub fn new(params: &TcpParams, control: C, bytes: Option<u64>) -> Self {
        // The rules for writes are ns-3's with selective acknowledgements, which is its default.
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
            usage: WindowUsage::default(),
            echo_timestamp: 0,
            stats: SenderStats::default(),
        }
    }

    /// Opens the connection. Afterwards call [`Sender::transmit`] until it returns `None`; do the same after
    /// [`Sender::receive`], [`Sender::on_timer`] and [`Sender::supply`].
    pub fn connect(&mut self, now: Nanos) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.due.syn = true;
            self.timers.syn_sent_at = now;
            self.timers.rto = Some(now.saturating_add(self.rtt.rto()));
        }
    }

    /// Adds `bytes` bytes to send. Has no effect once the end was sent: see [`Sender::keep_open`].
    pub fn supply(&mut self, bytes: u64) {
        if !self.fin_sent {
            self.supplied = self.supplied.saturating_add(bytes);
            if self.params.sends_what_is_written && self.state == State::Established {
                let in_network = self.flight.in_network();
                self.refill([in_network, in_network], self.left_last);
            }
        }
    }

    /// Keeps the connection open when everything is sent, because more will be supplied, until [`Sender::close`].
    pub fn keep_open(&mut self) {
        self.held_open = true;
    }

    /// Closes the connection after the data that was supplied.
    pub fn close(&mut self) {
        if self.supplied < u64::MAX {
            self.held_open = false;
        }
    }

    /// The application stops. Supplied data that was not sent yet is dropped, and the connection closes after the data
    /// that was sent.
    pub fn stop(&mut self) {
        if !self.fin_sent {
            self.supplied = self.supplied.min(self.flight.next().max(1));
            self.written = self.written.min(self.supplied);
            self.held_open = false;
        }
    }

    /// Whether all bytes and the FIN are acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.fin_sent && self.flight.is_empty()
    }

    /// The congestion control.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Bytes in the network, as far as the sender knows: pipe in RFC 6675.
    pub fn in_flight(&self) -> u64 {
        self.flight.in_network()
    }

    /// The window in force, in bytes. In recovery it is not the congestion control's.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.reduces() { self.reduction.window() } else { self.control.window() }
    }

    /// What the sender does about losses and marks.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    pub fn smoothed_rtt(&self) -> Option<Nanos> {
        self.rtt.smoothed()
    }

    /// The retransmission timeout, with any backoff (RFC 6298).
    pub fn retransmission_timeout(&self) -> Nanos {
        self.rtt.rto()
    }

    /// The counters so far.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Whether the window is set by the sender's rate reduction, not by the congestion control.
    #[inline]
    fn reduces(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reduced)
            && self.params.reduction.is_some()
            && !self.control.rules_recovery()
    }
}
