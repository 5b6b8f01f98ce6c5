//! The sender and receiver of TCP. Where Linux and ns-3 differ, the profile says which.

use super::{TIME, optional};
use crate::keys::{Keys, Table, fields};
use crate::profile::Profile;
use crate::value::names;
use queuescope_tcp::{
    LossDetection, Pacing, RateMethod, ReductionBase, ReductionBound, Rescue, RtoFloor, RttMethod, TcpParams,
};
use queuescope_wire::Nanos;

fields!(tables: TcpParams, Pacing; choices:);

/// The parameters that a profile has.
pub(crate) fn of_profile(profile: Profile) -> TcpParams {
    match profile {
        Profile::Linux => TcpParams::linux(),
        Profile::Ns3 => TcpParams::ns3(),
    }
}

/// Times of timers: none is shorter than a clock's granularity.
const TIMER: std::ops::RangeInclusive<Nanos> = Nanos(1_000)..=Nanos(1_000_000_000_000);
const WINDOW: std::ops::RangeInclusive<u64> = 1..=1 << 40;

impl Table for TcpParams {
    fn fresh() -> Self {
        Self::linux()
    }

    /// All but `ecn`, which a group of flows says.
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.within("mss", &mut self.mss, 1..=65_000, "The most bytes of data in a segment.");
        keys.within("network-header", &mut self.network_header, 0..=1000, "Bytes of headers below TCP: 20 for IPv4.");
        keys.key("mss-option", &mut self.mss_option, "Whether SYNs tell the maximum segment size.");
        keys.within("initial-window", &mut self.initial_window, 1..=10_000, "The initial window in segments.");
        keys.within("first-data-after", &mut self.first_data_after, TIME, "How long data waits for the handshake.");
        keys.key(
            "repeated-syn-restarts",
            &mut self.repeated_syn_restarts,
            "Whether a repeated SYN of the receiver is not answered, but makes the window the initial one (ns-3).",
        );
        keys.within("initial-rto", &mut self.initial_rto, TIMER, "The timeout of the first SYN.");
        keys.within("min-rto", &mut self.min_rto, TIMER, "The least retransmission timeout.");
        keys.within("max-rto", &mut self.max_rto, TIMER, "The most.");
        keys.ensure("max-rto", self.max_rto >= self.min_rto, || {
            ("the longest timeout is below the least".to_owned(), format!("`min-rto` is {}", self.min_rto))
        });
        keys.key("rto-floor", &mut self.rto_floor, "What `min-rto` is the least of.");
        keys.within(
            "clock-granularity",
            &mut self.clock_granularity,
            TIME,
            "The granularity of the clock, G in RFC 6298.",
        );
        keys.key("rtt-method", &mut self.rtt_method, "Where round-trip times come from.");
        optional(
            keys,
            "timestamp-tick",
            &mut self.timestamp_tick,
            &TIMER,
            "The tick of the timestamp option; none: not in use.",
        );
        keys.within(
            "delayed-ack-count",
            &mut self.delayed_ack_count,
            1..=1000,
            "Segments in order until an ACK is due.",
        );
        keys.within("delayed-ack-timeout", &mut self.delayed_ack_timeout, TIME, "How long an ACK waits for that many.");
        keys.within(
            "quick-acks",
            &mut self.quick_acks,
            0..=1_000_000,
            "Segments at the start each of which gets an ACK.",
        );
        keys.key(
            "ack-marks-at-once",
            &mut self.ack_marks_at_once,
            "Whether a change between marked and unmarked gets an ACK.",
        );
        keys.key(
            "counted-echo-lags",
            &mut self.counted_echo_lags,
            "Whether the ACK for a change in counted marks repeats the number before the last segment.",
        );
        keys.key("sack", &mut self.sack, "Selective acknowledgements (RFC 2018).");
        keys.key("dsack", &mut self.dsack, "Whether the receiver tells of data that came twice (RFC 2883).");
        keys.key(
            "forgets-blocks",
            &mut self.forgets_blocks,
            "Whether blocks of data out of order are forgotten beyond the four that changed last (ns-3).",
        );
        keys.key("detection", &mut self.detection, "How losses are found.");
        keys.key(
            "reduction",
            &mut self.reduction,
            "The bound of proportional rate reduction (RFC 6937); none: no such.",
        );
        keys.key("reduction-from", &mut self.reduction_from, "What a reduction is in proportion to.");
        keys.key(
            "reduction-wraps",
            &mut self.reduction_wraps,
            "Whether the product in a reduction wraps at 32 bits (ns-3).",
        );
        keys.key(
            "reduction-counts-causes",
            &mut self.reduction_counts_causes,
            "Whether an ACK counts in a reduction once for each reason (ns-3), or once if it delivers something.",
        );
        keys.key(
            "repeats-stay-in-flight",
            &mut self.repeats_stay_in_flight,
            "Whether what was sent again and arrived out of order is in flight until it is acknowledged (ns-3).",
        );
        keys.key(
            "limited-transmit",
            &mut self.limited_transmit,
            "Whether the first duplicates let new data out (RFC 3042).",
        );
        keys.key("rescue", &mut self.rescue, "What is sent in recovery when neither lost nor new data may be.");
        keys.key(
            "partial-ack-repeats",
            &mut self.partial_ack_repeats,
            "Whether each partial ACK sends one segment past the window.",
        );
        keys.key(
            "partial-ack-restarts-timer",
            &mut self.partial_ack_restarts_timer,
            "Whether every ACK that advances restarts the retransmission timer in recovery.",
        );
        keys.key(
            "disorder",
            &mut self.disorder,
            "Whether ACKs that tell of data out of order stop growth, and the third begins recovery.",
        );
        keys.key(
            "loss-end-counts-beyond",
            &mut self.loss_end_counts_beyond,
            "Whether the ACK that ends a timeout's repair counts only what is beyond it.",
        );
        keys.key(
            "timeouts-compound",
            &mut self.timeouts_compound,
            "Whether a timer that expires again for the same data is a congestion event of its own.",
        );
        keys.key(
            "reduces-what-is-left",
            &mut self.reduces_what_is_left,
            "Whether a timeout or a mark in recovery reduces what the rate reduction has left of the window (ns-3).",
        );
        keys.key(
            "stalls-below-segment",
            &mut self.stalls_below_segment,
            "Whether a window of less than a segment lets nothing out until the timer expires.",
        );
        keys.key(
            "loss-ends-reduced",
            &mut self.loss_ends_reduced,
            "Whether losses while the window is reduced for a mark are a congestion event of their own.",
        );
        keys.key("mark-in-recovery", &mut self.mark_in_recovery, "Whether a mark echoed in recovery is an event too.");
        keys.key(
            "restarts-after-idle",
            &mut self.restarts_after_idle,
            "Whether the window shrinks after idleness (RFC 5681).",
        );
        keys.within(
            "receive-window",
            &mut self.receive_window,
            WINDOW,
            "Bytes that the receiver takes beyond what is in order.",
        );
        keys.within(
            "send-buffer",
            &mut self.send_buffer,
            WINDOW,
            "The most bytes that the sender holds, sent and not acknowledged or not sent yet.",
        );
        keys.within(
            "application-writes",
            &mut self.application_writes,
            WINDOW,
            "Bytes of one write of the application (`SendSize` in ns-3), which waits until the send buffer has room for all \
             of it. It matters only with `sends-what-is-written`.",
        );
        keys.ensure(
            "application-writes",
            !self.sends_what_is_written || self.application_writes <= self.send_buffer,
            || {
                (
                    "no write of the application fits into the send buffer".to_owned(),
                    format!("`send-buffer` is {}; nothing would ever be sent", self.send_buffer),
                )
            },
        );
        keys.key(
            "sends-what-is-written",
            &mut self.sends_what_is_written,
            "Whether only what the application has written can leave, at once and in short segments if need be (ns-3, which \
             has Nagle's algorithm off); otherwise the application is never behind.",
        );
        keys.key(
            "ecn-on-controls",
            &mut self.ecn_on_controls,
            "Whether SYNs and ACKs are ECN-capable when marks are counted.",
        );
        keys.key("ecn-on-repeats", &mut self.ecn_on_repeats, "Whether data sent again is ECN-capable.");
        keys.key("cwr-after-loss", &mut self.cwr_after_loss, "Whether CWR tells of a reduction after a loss too.");
        keys.key(
            "pacing",
            &mut self.pacing,
            "Pacing at a rate from the window; a congestion control's own is obeyed in any case.",
        );
        keys.key("pace-initial-window", &mut self.pace_initial_window, "Whether the initial window is paced too.");
        keys.key(
            "paces-to-nearest",
            &mut self.paces_to_nearest,
            "Whether times between paced segments are rounded to the nearest nanosecond, and their timer is always set (ns-3).",
        );
        keys.key("rate-method", &mut self.rate_method, "How the rate of delivery is measured, which BBR goes by.");
        keys.within(
            "max-ack-delay",
            &mut self.max_ack_delay,
            TIME,
            "How long tail loss probes wait for a delayed ACK.",
        );
    }
}

impl Table for Pacing {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        const PERCENT: std::ops::RangeInclusive<u32> = 1..=100_000;
        keys.within(
            "slow-start-percent",
            &mut self.slow_start_percent,
            PERCENT,
            "Of window over round-trip time, in slow start.",
        );
        keys.within("avoidance-percent", &mut self.avoidance_percent, PERCENT, "The same in congestion avoidance.");
    }
}

names! {
    RtoFloor, "a floor of timeouts": "whole" = RtoFloor::Whole, "variation" = RtoFloor::Variation;
    RttMethod, "a source of round-trip times": "timestamps" = RttMethod::Timestamps, "send-times" = RttMethod::SendTimes;
    RateMethod, "a measurement of rates": "draft" = RateMethod::Draft, "ns3" = RateMethod::Ns3;
    LossDetection, "a way to find losses": "rfc6675" = LossDetection::Rfc6675, "rack-tlp" = LossDetection::RackTlp;
    ReductionBound, "a bound of reductions":
        "conservative" = ReductionBound::Conservative,
        "slow-start" = ReductionBound::SlowStart,
        "slow-start-if-repaired" = ReductionBound::SlowStartIfRepaired,
        "slow-start-if-advancing" = ReductionBound::SlowStartIfAdvancing;
    ReductionBase, "a base of reductions": "outstanding" = ReductionBase::Outstanding, "window" = ReductionBase::Window;
    Rescue, "a rescue":
        "nothing" = Rescue::Nothing, "unconfirmed" = Rescue::Unconfirmed,
        "unconfirmed-and-last" = Rescue::UnconfirmedAndLast;
}
