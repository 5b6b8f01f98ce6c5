//! Congestion controls, and what passes between them and a sender. One file per algorithm; the list of them is below.
//!
//! The sender finds losses, repairs them and keeps the window during recovery (RFC 6675, RFC 6937); the algorithm decides
//! how large the window and the pacing rate are. All windows are in bytes.

mod any;
mod bbr;
mod common;
mod cubic;
mod custom;
mod dctcp;
mod hystart;
mod illinois;
mod new_reno;
mod vegas;

pub use any::{Profile, UnknownName};
pub use common::{Reduced, ReductionStats, RoundEnd, RttSource};
pub use custom::{ControlFactory, CustomControl, Opening};
pub use hystart::{HyStartParams, HyStartPlusPlusParams};

use queuescope_wire::{Nanos, Rate};

// Every congestion control: its name in scenarios and reports, what its file exports (the type, its parameters, all else),
// and what it is.
any::algorithms! {
    "newreno" new_reno::{NewReno, NewRenoParams, Counting}:
        "NewReno (RFC 5681, RFC 6582).";
    "cubic" cubic::{Cubic, CubicParams, CubicStats, Growth, SlowStart}:
        "CUBIC (RFC 9438), with HyStart.";
    "bbr" bbr::{Bbr, BbrParams, AfterRecovery, AggregationParams, BbrMode, BbrStats, Limit, PolicerParams, Quantum}:
        "BBR version 1.";
    "vegas" vegas::{Vegas, VegasParams, OnLoss, VegasStats, Waiting}:
        "Vegas (Brakmo and Peterson 1995).";
    "illinois" illinois::{Illinois, IllinoisParams}:
        "Illinois (Liu, Başar and Srikant 2006).";
    "dctcp" dctcp::{Dctcp, DctcpParams, DctcpStats}:
        "DCTCP (RFC 8257); it needs ECN.";
}

/// A congestion control. Times never decrease.
pub trait CongestionControl {
    /// The connection is established. `rtt` is what the handshake measured, if it did.
    fn on_established(&mut self, _rtt: Option<Nanos>, _now: Nanos) {}

    /// An ACK has acknowledged something for the first time, cumulatively or selectively, or echoed a mark; in profiles with
    /// [`Phase::Disorder`] (ns-3), any ACK while data is in flight.
    fn on_ack(&mut self, ack: &Ack, now: Nanos);

    /// A loss was found, or a mark was echoed: the first in a window of data. The slow-start threshold is to be set; the
    /// sender enters recovery (after a loss) or goes on (after a mark).
    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos);

    /// The retransmission timer has expired (RFC 6298): everything in flight counts as lost.
    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos);

    /// All that was in flight when the congestion or the timeout came is acknowledged.
    fn on_recovered(&mut self, now: Nanos);

    /// Bytes were sent, after which `in_flight` were in flight.
    fn on_sent(&mut self, _bytes: u64, _in_flight: u64, _now: Nanos) {}

    /// Something is about to be sent after nothing was in flight for so many whole retransmission timeouts: the window is to
    /// be halved for each, though not below `floor` bytes (RFC 5681 section 4.1). Only in profiles that do so; algorithms
    /// that rule their window by a model ignore it.
    fn on_idle(&mut self, _timeouts: u32, _floor: u64, _now: Nanos) {}

    /// The congestion window.
    fn window(&self) -> u64;

    /// The slow-start threshold; `u64::MAX` before the first congestion.
    fn slow_start_threshold(&self) -> u64;

    /// How fast to send, if sending is paced.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Whether it says how large the window is in recovery too, in place of the sender's proportional rate reduction.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// What it does with marks.
    fn ecn(&self) -> EcnUse {
        EcnUse::Classic
    }
}

/// What ns-3 does to a congestion control beside [`CongestionControl`]. A sender does it only
/// [on request](crate::Sender::following_ns3), and as its parameters say.
pub trait Ns3: CongestionControl {
    /// The timer is about to expire, and that counts as the first time for what is in flight, whether it is or not: ns-3 does
    /// not have RFC 5681's exception for repeated expiries.
    fn forget_timeouts(&mut self);

    /// The sender's rate reduction has come to this window, which counts as the congestion window in the event that follows:
    /// ns-3 has one window for both.
    fn hold(&mut self, bytes: u64);

    /// The other end's SYN has come once more, which counts for an established connection: the window is the initial one, and
    /// there is no threshold.
    fn restart(&mut self, initial_window: u64);
}

/// What an ACK said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ack {
    /// Bytes acknowledged cumulatively for the first time, whether or not they had been selectively before.
    pub acked: u64,
    /// Bytes delivered for the first time, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes in flight before this ACK.
    pub in_flight_before: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// The lowest number that is not acknowledged, after this ACK, and the next that was not sent yet: a round trip is over
    /// when the first passes what the second was at its start.
    pub unacknowledged: u64,
    /// See `unacknowledged`.
    pub next: u64,
    /// The number behind what left last, or the acknowledged one if that is higher: below `next` after a retransmission. What
    /// leaves with this ACK past the window counts as begun: the number where it starts.
    pub left_last: u64,
    /// The round-trip time that this ACK measured, if it did.
    pub rtt: Option<Nanos>,
    /// The smoothed round-trip time, with this one; zero before the first.
    pub smoothed_rtt: Nanos,
    /// What the sender was doing when the ACK came.
    pub phase: Phase,
    /// The window in force: while losses are repaired or a mark is answered, what the rate reduction has left; with the ACK
    /// that ends a recovery, what it had left.
    pub window: u64,
    /// Of `told`, the bytes whose ACKs said that they had been marked (RFC 8257 section 3.3).
    /// An ACK that does not advance says so only if the one before did.
    pub marked: u64,
    /// The bytes for which this ACK counts in averages over a window of data, of which `marked` are marked: `acked`. In ns-3's
    /// profile a segment if it does not advance or comes in recovery; if it ends a row of those that told of data out of order,
    /// as many segments less; and none at all if that is less than nothing (`TcpSocketBase::ProcessAck`).
    pub told: Option<u64>,
    /// Whether the window was what kept the sender from sending more before this ACK.
    pub window_limited: bool,
    /// How fast data was delivered, if that could be measured.
    pub rate: Option<RateSample>,
}

/// How fast data was delivered (draft-cheng-iccrg-delivery-rate-estimation section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// All bytes delivered on the connection so far, with this ACK's.
    pub delivered: u64,
    /// The same when the packet left that this ACK is for.
    pub prior_delivered: u64,
    /// What was delivered in `interval`: the difference, unless the sample has the rate of the one before
    /// ([`RateMethod::Ns3`](crate::RateMethod::Ns3)).
    pub amount: u64,
    /// How long that took: the longer of the times in which it was sent and was acknowledged.
    pub interval: Nanos,
    /// Whether the sender had nothing to send when that packet left.
    pub application_limited: bool,
    /// Bytes newly found to be lost with this ACK.
    pub lost: u64,
}

/// What the sender is doing about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: no loss is known.
    Open,
    /// Nothing yet, but this ACK told of data out of order. Only in profiles whose windows do not grow with such ACKs (ns-3).
    Disorder,
    /// It has reduced its window for a mark, less than a window ago.
    Reduced,
    /// It repairs losses that ACKs told of.
    Recovery,
    /// It repairs what was in flight when the retransmission timer expired.
    Loss,
}

/// A congestion event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// Bytes in flight when it was found, with those lost.
    pub in_flight: u64,
    /// Bytes found to be lost; none if packets were marked.
    pub lost: u64,
    /// Bytes that the ACK with which it was found delivered for the first time.
    pub delivered: u64,
    /// The next number that was not sent yet.
    pub next: u64,
}

/// What a congestion control does with ECN marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnUse {
    /// One reduction a window of data, as after a loss (RFC 3168 section 6.1.2); data is ECT(0).
    Classic,
    /// It counts them (RFC 8257); the receiver echoes each, and data is ECT(0). The first in a window of data is a congestion
    /// event all the same.
    Counted,
}
