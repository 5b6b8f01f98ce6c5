//! What a TCP is made of: numbers, and where two well-known ones differ.
//!
//! [`TcpParams::ns3`] behaves as ns-3 3.37 does by default, [`TcpParams::linux`] as Linux 6 does by default. docs/explanation/tcp.md
//! lists each difference and where it was found.

use queuescope_wire::Nanos;

/// What a TCP is made of; the same for both ends. The default is [`TcpParams::linux`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpParams {
    /// The most bytes of data in a segment.
    pub mss: u32,
    /// Bytes of headers below TCP on each packet; 20 for IPv4.
    pub network_header: u32,
    /// Whether SYNs tell the maximum segment size (RFC 9293 section 3.7.1); ns-3's do not.
    pub mss_option: bool,
    /// The initial window in segments (RFC 6928: 10). The congestion control is made with it; after idleness the window
    /// goes back to it.
    pub initial_window: u32,
    /// How long the first data waits once the connection is established (ns-3 3.37, `TcpSocketBase::Send`: one step of its
    /// clock).
    pub first_data_after: Nanos,
    /// Whether a SYN of the receiver that comes again is not answered, but makes the window the initial one and forgets the
    /// threshold (ns-3 3.37, `TcpSocketBase::DoForwardUp`); otherwise it is answered, and no more (RFC 9293).
    pub repeated_syn_restarts: bool,
    /// The timeout of the first SYN (RFC 6298 section 2.1: 1 s).
    pub initial_rto: Nanos,
    /// The least retransmission timeout; what it is the least of, `rto_floor` says.
    pub min_rto: Nanos,
    /// The most (RFC 6298 section 2.5: at least 60 s).
    pub max_rto: Nanos,
    /// What `min_rto` is the least of.
    pub rto_floor: RtoFloor,
    /// The granularity of the clock, G in RFC 6298.
    pub clock_granularity: Nanos,
    /// Where round-trip times come from.
    pub rtt_method: RttMethod,
    /// The tick of the timestamp option (RFC 7323), if it is in use.
    pub timestamp_tick: Option<Nanos>,
    /// Segments in order until an ACK is due (RFC 9293 section 3.8.6.3: 2).
    pub delayed_ack_count: u32,
    /// How long an ACK waits for that many.
    pub delayed_ack_timeout: Nanos,
    /// ACKs at the start of a connection that do not wait: so many segments get one each, unless some come out of order.
    pub quick_acks: u32,
    /// Whether a change between marked and unmarked arrivals gets an ACK at once, with classic ECN too.
    pub ack_marks_at_once: bool,
    /// Whether, where marks are counted, the ACK for a change between marked and unmarked arrivals acknowledges what was
    /// expected before the segment before, which is nothing new, and takes the place of the delayed one (ns-3 3.37,
    /// `TcpDctcp::CeState0to1`); otherwise all that came before the change (RFC 8257 section 3.2).
    pub counted_echo_lags: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Whether the receiver tells of data that came twice (RFC 2883).
    pub dsack: bool,
    /// Whether the receiver forgets what it has out of order beyond the four blocks that changed last: what touches a
    /// forgotten block is a block of its own (ns-3 3.37, `TcpRxBuffer::UpdateSackList`); otherwise a block is all that is
    /// contiguous (RFC 2018 section 4).
    pub forgets_blocks: bool,
    /// How losses are found; without selective acknowledgements by three duplicates in any case (RFC 6582).
    pub detection: LossDetection,
    /// Proportional rate reduction (RFC 6937) in recovery and after a mark, and its bound; `None`: the window is the
    /// threshold at once.
    pub reduction: Option<ReductionBound>,
    /// What a reduction is in proportion to.
    pub reduction_from: ReductionBase,
    /// Whether the product in the reduction wraps at 32 bits: with windows of some hundred kilobytes and more, less leaves
    /// than is due; and so does what was delivered less what left: if more left, as partial ACKs let it, that much less may
    /// leave below the threshold (ns-3 3.37, `TcpPrrRecovery::DoRecovery`).
    pub reduction_wraps: bool,
    /// Whether an ACK counts in a reduction once for each reason: that it tells of data out of order, that it advances, that
    /// the reduction begins with it for a mark (ns-3 3.37); otherwise once if it delivers something (RFC 6937).
    pub reduction_counts_causes: bool,
    /// Whether what was sent again and has arrived out of order counts as in flight until it is acknowledged (ns-3 3.37,
    /// `TcpTxBuffer::Update`).
    pub repeats_stay_in_flight: bool,
    /// Whether the first duplicates let new data out (RFC 3042).
    pub limited_transmit: bool,
    /// Whether, in recovery, data is sent again that is not known to be lost if nothing else may be sent, and the last once
    /// more (RFC 6675 NextSeg rules 3 and 4).
    pub rescue: Rescue,
    /// Whether each ACK in recovery that advances sends one segment past window and pace if the first that lacks was not
    /// repeated, and so does the one that begins it. It is paced at the rate before that ACK (ns-3 3.37).
    pub partial_ack_repeats: bool,
    /// Whether every ACK that advances restarts the retransmission timer; otherwise, in recovery, the first only (RFC 6582
    /// section 4, "impatient").
    pub partial_ack_restarts_timer: bool,
    /// Whether ACKs that tell of data out of order are of [`Phase::Disorder`](crate::Phase::Disorder), in which no window
    /// grows, and do not restart the retransmission timer; and whether recovery begins with the third ACK of this kind in
    /// a row, or when more than the first segment is lost, in place of with any loss, but not with one that ends a repair; and
    /// whether congestion controls are told of plain duplicates, and what ns-3 takes an ACK for ([`Ack::told`](crate::Ack))
    /// (ns-3 3.37).
    pub disorder: bool,
    /// Whether the ACK that ends [`Phase::Loss`](crate::Phase::Loss) counts, for windows, only what it acknowledges beyond
    /// what was in flight at the timeout (ns-3 3.37).
    pub loss_end_counts_beyond: bool,
    /// Whether a timer that expires again for the same data is a congestion event of its own, in place of none (RFC 5681
    /// section 3.1).
    pub timeouts_compound: bool,
    /// Whether a timeout or a mark in recovery reduces what the rate reduction has left of the window by then, in place of the
    /// window that the loss left (ns-3 3.37, which has one variable for both).
    pub reduces_what_is_left: bool,
    /// Whether a window of less than a segment lets nothing out, even if nothing is in flight; then the retransmission timer
    /// goes on, and expires (ns-3 3.37, `TcpSocketBase::SendPendingData`). So too a reduction for a mark goes on until something is
    /// acknowledged that left later, in place of ending with nothing in flight.
    pub stalls_below_segment: bool,
    /// Whether losses found while the window is reduced for a mark are a congestion event of their own.
    pub loss_ends_reduced: bool,
    /// Whether a mark echoed in recovery, or after a timeout, is a congestion event too.
    pub mark_in_recovery: bool,
    /// Whether the window goes back towards the initial one after idleness (RFC 5681 section 4.1).
    pub restarts_after_idle: bool,
    /// Bytes that the receiver takes beyond what it has in order.
    pub receive_window: u64,
    /// The most bytes that the sender holds unacknowledged.
    pub send_buffer: u64,
    /// Bytes of one write of the application, which writes whenever the send buffer has room for a whole write. It has an
    /// effect only with [`TcpParams::sends_what_is_written`]. The default is 512 bytes, that of ns-3's `SendSize`
    /// (`BulkSendApplication`, `OnOffApplication`).
    pub application_writes: u64,
    /// Whether only what the application has written can leave, at once, so that segments can be short (ns-3 3.37 with its
    /// default `TcpNoDelay`, i.e. without Nagle's algorithm); otherwise the application is never behind, and only full
    /// segments leave but for the last. With it come the rest of ns-3's rules for short segments: congestion controls count
    /// whole segments and carry the remainder over, a retransmission joins a short segment with the one behind it
    /// (`TcpTxBuffer::GetTransmittedSegment`), and a write that leaves less than a segment to send marks the flow as limited
    /// by its application (`TcpRateLinux::CalculateAppLimited`), which BBR's start depends on. It has an effect only with
    /// selective acknowledgements.
    pub sends_what_is_written: bool,
    /// Whether ECN is asked for and agreed to (RFC 3168).
    pub ecn: bool,
    /// Whether SYNs and ACKs are ECN-capable when marks are counted (RFC 8257 says no; data centres do).
    pub ecn_on_controls: bool,
    /// Whether data sent again is ECN-capable (RFC 3168 section 6.1.5 says no).
    pub ecn_on_repeats: bool,
    /// Whether CWR tells of a reduction after a loss too (RFC 3168 section 6.1.2), or after an echo only.
    pub cwr_after_loss: bool,
    /// Pacing at a rate from the window; a rate of the congestion control's own is obeyed in any case.
    pub pacing: Option<Pacing>,
    /// Whether the initial window is paced too.
    pub pace_initial_window: bool,
    /// Whether times between paced segments are rounded to the nearest nanosecond, in place of down, and the timer of the pace
    /// is set as each leaves, in place of once something waits for it (ns-3 3.37).
    pub paces_to_nearest: bool,
    /// How the rate of delivery is measured.
    pub rate_method: RateMethod,
    /// Tail loss probes wait for a delayed ACK so long if one segment is in flight (RFC 8985 section 7.2).
    pub max_ack_delay: Nanos,
}

/// What the least retransmission timeout is the least of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 rule 2.4).
    Whole,
    /// Of the part that stands for variation (Linux): the timeout is at least the round-trip time and `min_rto`.
    Variation,
}

/// Where round-trip times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMethod {
    /// The echoed timestamp, in its ticks, if the first segment that the ACK covers was sent once, of those that left after
    /// the last timeout (ns-3, whose history of segments is emptied then).
    Timestamps,
    /// The times at which the acknowledged segments were sent, if they were sent once (Linux).
    SendTimes,
}

/// How the rate of delivery is measured, which BBR goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMethod {
    /// As the draft has it (draft-cheng-iccrg-delivery-rate-estimation section 3), and Linux.
    Draft,
    /// As ns-3 3.37 (`TcpRateLinux`). A sample stays until a segment arrives that left after more was delivered, and what
    /// is delivered meanwhile counts over the same time. The time in which it was acknowledged counts from where the sample
    /// before it does. One that is too short gives the rate before once more, and makes the next count from the start of
    /// time. What is repaired counts as lost, as what is found to be.
    Ns3,
}

/// How losses are found with selective acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetection {
    /// Three segments above it have arrived (RFC 6675).
    Rfc6675,
    /// A segment that was sent later has arrived, a reordering window ago; and tail loss probes (RFC 8985).
    RackTlp,
}

/// How much may be sent in recovery when less is in flight than the threshold (RFC 6937 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionBound {
    /// No more than was delivered (PRR-CRB).
    Conservative,
    /// A segment more (PRR-SSRB).
    SlowStart,
    /// A segment more if the ACK newly covers, cumulatively, data that was sent again; what it delivers otherwise (ns-3).
    SlowStartIfRepaired,
    /// A segment more if the ACK advances and tells of no new loss, what it delivers otherwise (Linux; RFC 9937).
    SlowStartIfAdvancing,
}

/// What a reduction is in proportion to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionBase {
    /// What was sent and is not acknowledged cumulatively (RFC 6937, ns-3).
    Outstanding,
    /// The congestion window (Linux).
    Window,
}

/// What is sent in recovery when neither lost nor new data may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescue {
    /// Nothing.
    Nothing,
    /// Data above which something arrived, known lost or not (NextSeg rule 3).
    Unconfirmed,
    /// That, and the last segment once (rules 3 and 4).
    UnconfirmedAndLast,
}

/// A pacing rate from the window (Linux's `tcp_update_pacing_rate`): a percentage of window over smoothed round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Below half of the slow-start threshold.
    pub slow_start_percent: u32,
    /// Else.
    pub avoidance_percent: u32,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { slow_start_percent: 200, avoidance_percent: 120 }
    }
}

const MILLISECOND: u64 = 1_000_000;

impl TcpParams {
    /// As ns-3 3.37 by default (`TcpSocket`, `TcpSocketBase`, `TcpTxBuffer`, `TcpPrrRecovery`), but for the segment size,
    /// which is 536 there, and the buffers, 131 072 bytes there: scenarios always set them.
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

    /// As Linux 6 by default.
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
