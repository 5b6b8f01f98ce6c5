//! Congestion controls and their interface to the sender. One file per algorithm; the list is below.
//!
//! The sender finds losses, repairs them and sets the window during recovery (RFC 6675, RFC 6937). The algorithm sets
//! the congestion window and the pacing rate. All windows are in bytes.

mod any;
mod bbr;
mod bbr3;
mod bic;
mod common;
mod cubic;
mod custom;
mod dctcp;
mod hstcp;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod lola;
mod new_reno;
mod prague;
mod scalable;
mod throughput;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use any::{Profile, UnknownName};
pub use common::{Reduced, ReductionStats, RoundEnd, RttSource};
pub use custom::{ControlFactory, CustomControl, InitialValues};
pub use hystart::{HyStartParams, HyStartPlusPlusParams};

use queuescope_wire::{Ecn, Nanos, Rate};

// Every congestion control: its name in scenarios and reports, what its file exports (the type, its parameters, the
// rest),
// and a description.
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
    "hstcp" hstcp::{HighSpeed, HighSpeedParams, Coefficients, HighSpeedSteps}:
        "HighSpeed TCP (RFC 3649).";
    "scalable" scalable::{Scalable, ScalableParams, ScalableSteps}:
        "Scalable TCP (Kelly 2003).";
    "htcp" htcp::{Htcp, HtcpParams, HtcpIncrease, HtcpThroughput}:
        "H-TCP (draft-leith-tcp-htcp-06).";
    "bic" bic::{Bic, BicParams, BicSearch, BicSteps, FastConvergence}:
        "BIC (Xu, Harfoush and Rhee 2004).";
    "hybla" hybla::{Hybla, HyblaParams, HyblaStart, HyblaSteps}:
        "Hybla (Caini and Firrincieli 2004).";
    "yeah" yeah::{Yeah, YeahParams, YeahQueue, YeahStats}:
        "YeAH (Baiocchi, Castellani and Vacirca 2007).";
    "veno" veno::{Veno, VenoParams, VenoPace, VenoSampling, VenoStats}:
        "Veno (Fu and Liew 2003).";
    "westwood" westwood::{Westwood, WestwoodParams, WestwoodFilter, WestwoodSampling, WestwoodStats, WestwoodUnit}:
        "Westwood+ (Grieco and Mascolo 2004).";
    "lola" lola::{Lola, LolaParams, LolaState, LolaStats, QueueUnit}:
        "LoLa (Hock, Neumeister, Zitterbart and Bless 2017).";
    "bbr3" bbr3::{Bbr3, Bbr3Params, Bbr3State, Bbr3Stats}:
        "BBR version 3 (draft-ietf-ccwg-bbr).";
    "prague" prague::{Prague, PragueParams, PragueStats}:
        "Prague (draft-briscoe-iccrg-prague-congestion-control-04), the control of L4S; it needs ECN.";
}

/// A congestion control. Times passed to it never decrease.
///
/// ```
/// use queuescope_tcp::{Ack, Congestion, CongestionControl};
/// use queuescope_wire::Nanos;
///
/// /// A constant window, which nothing changes.
/// struct Constant { bytes: u64 }
///
/// impl CongestionControl for Constant {
///     fn on_ack(&mut self, _ack: &Ack, _now: Nanos) {}
///     fn on_congestion(&mut self, _congestion: &Congestion, _now: Nanos) {}
///     fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {}
///     fn on_recovered(&mut self, _now: Nanos) {}
///     fn window(&self) -> u64 {
///         self.bytes
///     }
///     fn slow_start_threshold(&self) -> u64 {
///         self.bytes
///     }
/// }
///
/// let mut control = Constant { bytes: 30_000 };
/// control.on_congestion(&Congestion { in_flight: 30_000, lost: 1448, delivered: 1448, next: 60_000 }, Nanos::ZERO);
/// assert_eq!(control.window(), 30_000);
/// ```
pub trait CongestionControl {
    /// The connection is established. `rtt` is the round-trip time of the handshake, if it was measured.
    fn on_established(&mut self, _rtt: Option<Nanos>, _now: Nanos) {}

    /// An ACK acknowledged something for the first time, cumulatively or selectively, or echoed a mark. In profiles
    /// with [`Phase::Disorder`] (ns-3), any ACK while data is in flight.
    fn on_ack(&mut self, ack: &Ack, now: Nanos);

    /// A loss was found, or a mark was echoed, for the first time in a window of data. Sets the slow-start threshold.
    /// The sender then enters recovery (after a loss) or continues (after a mark).
    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos);

    /// The retransmission timer has expired (RFC 6298): everything in flight counts as lost.
    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos);

    /// Everything that was in flight at the congestion event or timeout is acknowledged.
    fn on_recovered(&mut self, now: Nanos);

    /// The sender sent `bytes` bytes; `in_flight` bytes are in flight now.
    fn on_sent(&mut self, _bytes: u64, _in_flight: u64, _now: Nanos) {}

    /// The sender is about to send after `timeouts` whole retransmission timeouts with nothing in flight. Halves the
    /// window once for each, though not below `floor` bytes (RFC 5681 section 4.1). Called only in profiles that
    /// restart after idleness; algorithms that derive their window from a model ignore it.
    fn on_idle(&mut self, _timeouts: u32, _floor: u64, _now: Nanos) {}

    /// The congestion window, in bytes.
    fn window(&self) -> u64;

    /// The slow-start threshold, in bytes; `u64::MAX` before the first congestion event.
    fn slow_start_threshold(&self) -> u64;

    /// The pacing rate, if the algorithm paces.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Whether it also sets the window in recovery, in place of the sender's proportional rate reduction.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// How it uses ECN marks.
    fn ecn(&self) -> EcnUse {
        EcnUse::Classic
    }
}

/// What ns-3 does to a congestion control beyond [`CongestionControl`]. A sender does it only
/// [on request](crate::Sender::following_ns3), as its parameters say.
pub trait Ns3: CongestionControl {
    /// The timer is about to expire. Treats that as the first expiry for the data in flight, even if it is not: ns-3
    /// lacks RFC 5681's exception for repeated expiries.
    fn forget_timeouts(&mut self);

    /// The sender's rate reduction has reached this window, in bytes. It counts as the congestion window in the next
    /// event, because ns-3 has one variable for both.
    fn hold(&mut self, bytes: u64);

    /// The other end's SYN arrived again on an established connection. Resets the window to the initial one, in bytes,
    /// and forgets the threshold.
    fn restart(&mut self, initial_window: u64);
}

/// What an ACK means to a congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ack {
    /// Bytes acknowledged cumulatively for the first time, whether or not they were acknowledged selectively before.
    pub acked: u64,
    /// Bytes delivered for the first time, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes in flight before this ACK.
    pub in_flight_before: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// The lowest sequence number that is not acknowledged, after this ACK. Together with `next`: a round trip ends
    /// when `unacknowledged` passes the value of `next` at its start.
    pub unacknowledged: u64,
    /// The next sequence number to be sent for the first time.
    pub next: u64,
    /// The sequence number after the segment that was sent last, or the acknowledged one if that is higher. After a
    /// retransmission it is below `next`. A segment that this ACK forces out past the window counts as begun: the
    /// number at which it starts.
    pub left_last: u64,
    /// The round-trip time that this ACK measured, if any.
    pub rtt: Option<Nanos>,
    /// The smoothed round-trip time, including this measurement; zero before the first.
    pub smoothed_rtt: Nanos,
    /// The sender's phase when the ACK arrived.
    pub phase: Phase,
    /// The window in force, in bytes. While losses are repaired or a mark is answered, it is what the rate reduction
    /// has left; for the ACK that ends a recovery, what it had left.
    pub window: u64,
    /// Those bytes of `counted` whose ACKs reported a mark (RFC 8257 section 3.3). An ACK that does not advance reports
    /// one only if the ACK before it did.
    pub marked: u64,
    /// The bytes for which this ACK counts in averages over a window of data; `marked` of them are marked. It is
    /// `acked`, except in ns-3's profile: one segment if the ACK does not advance or arrives in recovery; one segment
    /// less for each preceding duplicate ACK if it ends a run of them; and `None` if that would be negative
    /// (`TcpSocketBase::ProcessAck`).
    pub counted: Option<u64>,
    /// Whether the window kept the sender from sending more before this ACK.
    pub window_limited: bool,
    /// The delivery rate, if it could be measured.
    pub rate: Option<RateSample>,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// All bytes delivered on the connection so far, including those of this ACK.
    pub delivered: u64,
    /// All bytes delivered on the connection when the acknowledged packet was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in `interval`: the difference of the two, unless the sample repeats the previous rate
    /// ([`RateMethod::Ns3`](crate::RateMethod::Ns3)).
    pub amount: u64,
    /// The time that the delivery took: the longer of the sending time and the acknowledging time.
    pub interval: Nanos,
    /// Whether the application had nothing to send when that packet was sent.
    pub application_limited: bool,
    /// Bytes newly found lost with this ACK.
    pub lost: u64,
}

/// What the sender does about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Normal sending: no loss is known.
    Open,
    /// No loss is known yet, but this ACK reported data out of order. Only in profiles whose windows do not grow with
    /// such ACKs (ns-3).
    Disorder,
    /// The sender has reduced its window for a mark, less than a window of data ago.
    Reduced,
    /// The sender repairs losses that ACKs revealed.
    Recovery,
    /// The sender repairs what was in flight when the retransmission timer expired.
    Loss,
}

/// A congestion event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// Bytes in flight when it was found, including the lost ones.
    pub in_flight: u64,
    /// Bytes found lost; zero if packets were marked.
    pub lost: u64,
    /// Bytes that were delivered for the first time by the ACK that revealed it.
    pub delivered: u64,
    /// The next sequence number to be sent for the first time.
    pub next: u64,
}

/// How a congestion control uses ECN marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnUse {
    /// One reduction per window of data, as after a loss (RFC 3168 section 6.1.2). Data is sent as ECT(0).
    Classic,
    /// It counts marks (RFC 8257), and the receiver echoes each of them. Data is sent as ECT(0). The first mark in a
    /// window of data is still a congestion event.
    Counted,
    /// As [`Self::Counted`], but data is sent as ECT(1): queues may mark it early and often (RFC 9331).
    Scalable,
}

impl EcnUse {
    /// Whether marks are counted, so that the receiver echoes each of them.
    #[inline]
    pub fn counts(self) -> bool {
        self != Self::Classic
    }

    /// The codepoint of ECN-capable packets.
    #[inline]
    pub fn codepoint(self) -> Ecn {
        if self == Self::Scalable { Ecn::Ect1 } else { Ecn::Ect0 }
    }
}
