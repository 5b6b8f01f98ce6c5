//! The parameters of a TCP, and where two well-known implementations differ.
//!
//! [`TcpParams::ns3`] behaves as ns-3 3.37 does by default, [`TcpParams::linux`] as Linux 6 does by default.
//! docs/explanation/tcp.md lists each difference with its source.

use queuescope_wire::Nanos;

/// The parameters of a TCP; both ends use the same. The default is [`TcpParams::linux`].
///
/// ```
/// use queuescope_tcp::{LossDetection, TcpParams};
///
/// // Linux with jumbo frames, and losses found by duplicate ACKs alone.
/// let params = TcpParams { mss: 8948, detection: LossDetection::Rfc6675, ..TcpParams::linux() };
/// assert_eq!(params.initial_window, 10);
/// assert_ne!(TcpParams::ns3().delayed_ack_timeout, params.delayed_ack_timeout);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpParams {
    /// Most bytes of data in a segment.
    pub mss: u32,
    /// Bytes of headers below TCP in each packet; 20 for IPv4.
    pub network_header: u32,
    /// Whether SYNs carry the maximum segment size (RFC 9293 section 3.7.1); ns-3's do not.
    pub mss_option: bool,
    /// The initial window, in segments (RFC 6928: 10). The congestion control starts with it, and the window returns to
    /// it after idleness.
    pub initial_window: u32,
    /// How long the first data waits after the connection is established (ns-3 3.37, `TcpSocketBase::Send`: one step of
    /// its clock).
    pub first_data_after: Nanos,
    /// What the sender does if the receiver's SYN arrives again. If true, it does not answer, resets the window to the
    /// initial one and forgets the threshold (ns-3 3.37, `TcpSocketBase::DoForwardUp`). Otherwise it only answers (RFC
    /// 9293).
    pub repeated_syn_restarts: bool,
    /// The retransmission timeout of the first SYN (RFC 6298 section 2.1: 1 s).
    pub initial_rto: Nanos,
    /// The minimum retransmission timeout; `rto_floor` says to which part it applies.
    pub min_rto: Nanos,
    /// The maximum retransmission timeout (RFC 6298 section 2.5: at least 60 s).
    pub max_rto: Nanos,
    /// The part of the retransmission timeout to which `min_rto` applies.
    pub rto_floor: RtoFloor,
    /// The granularity of the clock, `G` in RFC 6298.
    pub clock_granularity: Nanos,
    /// How round-trip times are measured.
    pub rtt_method: RttMethod,
    /// The tick of the timestamp option (RFC 7323); `None`: the option is not used.
    pub timestamp_tick: Option<Nanos>,
    /// In-order segments after which an ACK is due (RFC 9293 section 3.8.6.3: 2).
    pub delayed_ack_count: u32,
    /// How long an ACK is delayed at most.
    pub delayed_ack_timeout: Nanos,
    /// How many ACKs at the start of a connection are not delayed. Each acknowledges one segment, unless some arrive
    /// out of order.
    pub quick_acks: u32,
    /// Whether a change between marked and unmarked arrivals triggers an ACK at once with classic ECN too.
    pub ack_marks_at_once: bool,
    /// What the ACK for a change between marked and unmarked arrivals acknowledges where marks are counted. If true, it
    /// acknowledges what was expected before the previous segment, which is nothing new, and replaces the delayed ACK
    /// (ns-3 3.37, `TcpDctcp::CeState0to1`). Otherwise it acknowledges everything that arrived before the change (RFC
    /// 8257 section 3.2).
    pub counted_echo_lags: bool,
    /// Whether selective acknowledgements are used (RFC 2018).
    pub sack: bool,
    /// Whether the receiver reports data that arrived twice (RFC 2883).
    pub dsack: bool,
    /// Whether the receiver forgets out-of-order data beyond the four blocks that changed last. Then data that touches
    /// a forgotten block starts a new block (ns-3 3.37, `TcpRxBuffer::UpdateSackList`). Otherwise a block is all
    /// contiguous data (RFC 2018 section 4).
    pub forgets_blocks: bool,
    /// How losses are found. Without selective acknowledgements, three duplicate ACKs are always needed (RFC 6582).
    pub detection: LossDetection,
    /// Proportional rate reduction (RFC 6937) in recovery and after a mark, and its bound. `None`: the window drops to
    /// the threshold at once.
    pub reduction: Option<ReductionBound>,
    /// What the reduction is proportional to.
    pub reduction_from: ReductionBase,
    /// Whether two numbers in the reduction wrap at 32 bits (ns-3 3.37, `TcpPrrRecovery::DoRecovery`). If the product
    /// wraps, less is sent than is due with windows of some hundred kilobytes or more. The other number is bytes
    /// delivered minus bytes sent: if more was sent, which partial ACKs allow, that much less may be sent below the
    /// threshold.
    pub reduction_wraps: bool,
    /// Whether an ACK counts in a reduction once for each cause: it reports data out of order, it advances, it starts
    /// the reduction for a mark (ns-3 3.37). Otherwise it counts once if it delivers something (RFC 6937).
    pub reduction_counts_causes: bool,
    /// Whether retransmitted data that arrived out of order counts as in flight until it is acknowledged cumulatively
    /// (ns-3 3.37,
    /// `TcpTxBuffer::Update`).
    pub repeats_stay_in_flight: bool,
    /// Whether the first duplicate ACKs allow new data to be sent (RFC 3042).
    pub limited_transmit: bool,
    /// What is retransmitted in recovery, though it is not known to be lost, if nothing else may be sent (RFC 6675
    /// NextSeg rules 3 and 4).
    pub rescue: Rescue,
    /// Whether each advancing ACK in recovery, including the one that starts it, sends one segment past window and
    /// pacing if the first missing segment was not retransmitted. It is paced at the rate before that ACK (ns-3 3.37).
    pub partial_ack_repeats: bool,
    /// Whether every advancing ACK restarts the retransmission timer. Otherwise, in recovery, only the first does (RFC
    /// 6582 section 4, "impatient").
    pub partial_ack_restarts_timer: bool,
    /// ns-3 3.37's rules for ACKs that report data out of order:
    /// - Such ACKs have [`Phase::Disorder`](crate::Phase::Disorder), in which no window grows, and do not restart the
    ///   retransmission timer.
    /// - Recovery starts with the third such ACK in a row, or when more than the first segment is lost, in place of
    ///   with any loss; but not with an ACK that ends a repair.
    /// - Congestion controls also receive plain duplicate ACKs, and [`Ack::counted`](crate::Ack) follows ns-3's count.
    pub disorder: bool,
    /// Whether the ACK that ends [`Phase::Loss`](crate::Phase::Loss) counts, for windows, only the bytes beyond what
    /// was in flight at the timeout (ns-3 3.37).
    pub loss_end_counts_beyond: bool,
    /// Whether a timer that expires again for the same data is another congestion event. Otherwise it is not (RFC 5681
    /// section 3.1).
    pub timeouts_compound: bool,
    /// Whether a timeout or a mark in recovery reduces the window that the rate reduction has left by then (ns-3 3.37,
    /// which has one variable for both). Otherwise it reduces the window that the loss left.
    pub reduces_what_is_left: bool,
    /// Whether a window smaller than a segment sends nothing even if nothing is in flight, so that the retransmission
    /// timer keeps running and expires (ns-3 3.37, `TcpSocketBase::SendPendingData`). Then a reduction for a mark also
    /// lasts until something is acknowledged that was sent later, in place of ending when nothing is in flight.
    pub stalls_below_segment: bool,
    /// Whether losses found while the window is reduced for a mark are another congestion event.
    pub loss_ends_reduced: bool,
    /// Whether a mark echoed in recovery or after a timeout is also a congestion event.
    pub mark_in_recovery: bool,
    /// Whether the window decays towards the initial one during idleness (RFC 5681 section 4.1).
    pub restarts_after_idle: bool,
    /// Bytes that the receiver accepts beyond its in-order data.
    pub receive_window: u64,
    /// Most unacknowledged bytes that the sender holds.
    pub send_buffer: u64,
    /// Bytes in one write of the application, which writes whenever the send buffer has room for a whole write. It
    /// matters only with [`TcpParams::sends_what_is_written`]. The default is 512 bytes, that of ns-3's `SendSize`
    /// (`BulkSendApplication`, `OnOffApplication`).
    pub application_writes: u64,
    /// Whether only written data can be sent, and at once, so that segments can be short (ns-3 3.37 with its default
    /// `TcpNoDelay`, i.e. without Nagle's algorithm). Otherwise the application is never behind, and all segments but
    /// the last are full. ns-3's other rules for short segments come with it:
    /// - Congestion controls count whole segments and carry the remainder over.
    /// - A retransmission joins a short segment with the next one (`TcpTxBuffer::GetTransmittedSegment`).
    /// - A write that leaves less than a segment to send marks the flow as application-limited
    ///   (`TcpRateLinux::CalculateAppLimited`), which BBR's start depends on.
    ///
    /// It has an effect only with selective acknowledgements.
    pub sends_what_is_written: bool,
    /// Whether the ends negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Whether SYNs and ACKs are ECN-capable when marks are counted (RFC 8257 forbids it; data centres do it).
    pub ecn_on_controls: bool,
    /// Whether retransmitted data is ECN-capable (RFC 3168 section 6.1.5 forbids it).
    pub ecn_on_repeats: bool,
    /// Whether CWR also reports a reduction after a loss (RFC 3168 section 6.1.2), or only one after an echo.
    pub cwr_after_loss: bool,
    /// Pacing at a rate derived from the window. A rate from the congestion control is always used.
    pub pacing: Option<Pacing>,
    /// Whether the initial window is paced too.
    pub pace_initial_window: bool,
    /// Whether intervals between paced segments are rounded to the nearest nanosecond, and the pacing timer is set as
    /// each segment is sent (ns-3 3.37). Otherwise they are rounded down, and the timer is set once a segment waits for
    /// it.
    pub paces_to_nearest: bool,
    /// How the delivery rate is measured.
    pub rate_method: RateMethod,
    /// How long a tail loss probe waits for a delayed ACK if one segment is in flight (RFC 8985 section 7.2).
    pub max_ack_delay: Nanos,
}

/// The part of the retransmission timeout that has a minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 rule 2.4).
    Whole,
    /// The part for the variation (Linux): the timeout is at least the round-trip time plus `min_rto`.
    Variation,
}

/// How round-trip times are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMethod {
    /// From the echoed timestamp, in its ticks, if the first segment that the ACK covers was sent once. Only segments
    /// sent after the last timeout count (ns-3, which empties its history of segments then).
    Timestamps,
    /// From the times when the acknowledged segments were sent, if they were sent once (Linux).
    SendTimes,
}

/// How the delivery rate is measured. BBR depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMethod {
    /// As in draft-cheng-iccrg-delivery-rate-estimation section 3, and Linux.
    Draft,
    /// As in ns-3 3.37 (`TcpRateLinux`). A sample stays until a segment arrives that was sent after more was delivered;
    /// deliveries in the meantime count over the same time. The acknowledging time starts where that of the previous
    /// sample does. A sample that is too short repeats the previous rate, and makes the next one count from time zero.
    /// Repaired data counts as lost, like data found lost.
    Ns3,
}

/// How losses are found with selective acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetection {
    /// Three segments above it have arrived (RFC 6675).
    Rfc6675,
    /// A segment that was sent later arrived at least a reordering window ago. Adds tail loss probes (RFC 8985).
    RackTlp,
}

/// How much may be sent in recovery when less than the threshold is in flight (RFC 6937 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionBound {
    /// As much as was delivered (PRR-CRB).
    Conservative,
    /// One segment more than was delivered (PRR-SSRB).
    SlowStart,
    /// One segment more if the ACK newly covers retransmitted data cumulatively; otherwise what it delivers (ns-3).
    SlowStartIfRepaired,
    /// One segment more if the ACK advances and reveals no new loss; otherwise what it delivers (Linux; RFC 9937).
    SlowStartIfAdvancing,
}

/// What a reduction is proportional to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionBase {
    /// Bytes sent and not acknowledged cumulatively (RFC 6937, ns-3).
    Outstanding,
    /// The congestion window (Linux).
    Window,
}

/// What is retransmitted in recovery when neither lost nor new data may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescue {
    /// Nothing.
    Nothing,
    /// Data above which something has arrived, whether known lost or not (NextSeg rule 3).
    Unconfirmed,
    /// Such data, and once the last segment (rules 3 and 4).
    UnconfirmedAndLast,
}

/// A pacing rate from the window (Linux's `tcp_update_pacing_rate`): a percentage of window / smoothed round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// The percentage below half of the slow-start threshold.
    pub slow_start_percent: u32,
    /// The percentage above it.
    pub avoidance_percent: u32,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { slow_start_percent: 200, avoidance_percent: 120 }
    }
}

const MILLISECOND: u64 = 1_000_000;

impl TcpParams {
    /// The defaults of ns-3 3.37 (`TcpSocket`, `TcpSocketBase`, `TcpTxBuffer`, `TcpPrrRecovery`), except the segment
    /// size (536 there) and the buffers (131 072 bytes there), which scenarios always set.
    pub fn ns3() -> Self {
        Self {
            mss: 1448,
            network_header: 20,
            mss_option: false,
            initial_window: 10,
            first_data_after: Nanos(1),
            repeated_syn_restarts: true,
            initial_rto: Nanos(3_000 * MILLISECOND),
            min_rto: Nanos(1_000 * MILLISECOND),
            max_rto: Nanos(60_000 * MILLISECOND),
            rto_floor: RtoFloor::Whole,
            clock_granularity: Nanos(MILLISECOND),
            rtt_method: RttMethod::Timestamps,
            timestamp_tick: Some(Nanos(MILLISECOND)),
            delayed_ack_count: 2,
            delayed_ack_timeout: Nanos(200 * MILLISECOND),
            quick_acks: 1,
            ack_marks_at_once: false,
            counted_echo_lags: true,
            sack: true,
            dsack: false,
            forgets_blocks: true,
            detection: LossDetection::Rfc6675,
            reduction: Some(ReductionBound::SlowStartIfRepaired),
            reduction_from: ReductionBase::Outstanding,
            reduction_wraps: true,
            reduction_counts_causes: true,
            repeats_stay_in_flight: true,
            limited_transmit: true,
            rescue: Rescue::Unconfirmed,
            partial_ack_repeats: true,
            partial_ack_restarts_timer: false,
            disorder: true,
            loss_end_counts_beyond: true,
            timeouts_compound: true,
            reduces_what_is_left: true,
            stalls_below_segment: true,
            loss_ends_reduced: false,
            mark_in_recovery: true,
            restarts_after_idle: false,
            receive_window: 6 << 20,
            send_buffer: 6 << 20,
            application_writes: 512,
            sends_what_is_written: true,
            ecn: false,
            ecn_on_controls: true,
            ecn_on_repeats: true,
            cwr_after_loss: false,
            pacing: None,
            pace_initial_window: false,
            paces_to_nearest: true,
            rate_method: RateMethod::Ns3,
            max_ack_delay: Nanos(200 * MILLISECOND),
        }
    }

    /// The defaults of Linux 6.
    pub fn linux() -> Self {
        Self {
            mss: 1448,
            network_header: 20,
            mss_option: true,
            initial_window: 10,
            first_data_after: Nanos::ZERO,
            repeated_syn_restarts: false,
            initial_rto: Nanos(1_000 * MILLISECOND),
            min_rto: Nanos(200 * MILLISECOND),
            max_rto: Nanos(120_000 * MILLISECOND),
            rto_floor: RtoFloor::Variation,
            clock_granularity: Nanos(MILLISECOND),
            rtt_method: RttMethod::SendTimes,
            timestamp_tick: Some(Nanos(MILLISECOND)),
            delayed_ack_count: 2,
            delayed_ack_timeout: Nanos(40 * MILLISECOND),
            quick_acks: 16,
            ack_marks_at_once: true,
            counted_echo_lags: false,
            sack: true,
            dsack: true,
            forgets_blocks: false,
            detection: LossDetection::RackTlp,
            reduction: Some(ReductionBound::SlowStartIfAdvancing),
            reduction_from: ReductionBase::Window,
            reduction_wraps: false,
            reduction_counts_causes: false,
            repeats_stay_in_flight: false,
            limited_transmit: true,
            rescue: Rescue::Nothing,
            partial_ack_repeats: false,
            partial_ack_restarts_timer: true,
            disorder: false,
            loss_end_counts_beyond: false,
            timeouts_compound: false,
            reduces_what_is_left: false,
            stalls_below_segment: false,
            loss_ends_reduced: true,
            mark_in_recovery: false,
            restarts_after_idle: true,
            receive_window: 6 << 20,
            send_buffer: 4 << 20,
            application_writes: 512,
            sends_what_is_written: false,
            ecn: false,
            ecn_on_controls: true,
            ecn_on_repeats: false,
            cwr_after_loss: true,
            pacing: None,
            pace_initial_window: true,
            paces_to_nearest: false,
            rate_method: RateMethod::Draft,
            max_ack_delay: Nanos(200 * MILLISECOND),
        }
    }
}

impl Default for TcpParams {
    fn default() -> Self {
        Self::linux()
    }
}
