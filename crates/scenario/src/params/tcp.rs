//! The keys of TCP's sender and receiver. Where Linux and ns-3 differ, the profile decides.

use super::{TIME, optional};
use crate::keys::{KeyVisitor, Table, fields};
use crate::profile::Profile;
use crate::value::names;
use queuescope_tcp::{
    LossDetection, Pacing, RateMethod, ReductionBase, ReductionBound, Rescue, RtoFloor, RttMethod, TcpParams,
};
use queuescope_wire::Nanos;

fields!(tables: TcpParams, Pacing; choices:);

/// The TCP parameters of a profile.
pub(crate) fn tcp_of_profile(profile: Profile) -> TcpParams {
    match profile {
        Profile::Linux => TcpParams::linux(),
        Profile::Ns3 => TcpParams::ns3(),
    }
}

/// The bounds of timers, which are not shorter than the granularity of a clock.
const TIMER: std::ops::RangeInclusive<Nanos> = Nanos(1_000)..=Nanos(1_000_000_000_000);
const WINDOW: std::ops::RangeInclusive<u64> = 1..=1 << 40;

impl Table for TcpParams {
    fn fresh() -> Self {
        Self::linux()
    }

    /// All parameters except `ecn`, which is a key of a group of flows.
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("mss", &mut self.mss, 1..=65_000, "The most bytes of data in a segment.");
        keys.within(
            "network-header",
            &mut self.network_header,
            0..=1000,
            "The bytes of headers below TCP: 20 for IPv4.",
        );
        keys.key("mss-option", &mut self.mss_option, "Whether SYNs carry the maximum segment size option.");
        keys.within("initial-window", &mut self.initial_window, 1..=10_000, "The initial window in segments.");
        keys.within(
            "first-data-after",
            &mut self.first_data_after,
            TIME,
            "How long the first data waits after the connection is established.",
        );
        keys.key(
            "repeated-syn-restarts",
            &mut self.repeated_syn_restarts,
            "Whether a repeated SYN of the receiver resets the window to the initial one and is not answered (ns-3).",
        );
        keys.within("initial-rto", &mut self.initial_rto, TIMER, "The retransmission timeout of the first SYN.");
        keys.within("min-rto", &mut self.min_rto, TIMER, "The shortest retransmission timeout.");
        keys.within("max-rto", &mut self.max_rto, TIMER, "The longest retransmission timeout.");
        keys.ensure("max-rto", self.max_rto >= self.min_rto, || {
            ("the longest timeout is below the shortest".to_owned(), format!("`min-rto` is {}", self.min_rto))
        });
        keys.key("rto-floor", &mut self.rto_floor, "What `min-rto` is the lower bound of.");
        keys.within(
            "clock-granularity",
            &mut self.clock_granularity,
            TIME,
            "The granularity of the clock, G in RFC 6298.",
        );
        keys.key("rtt-method", &mut self.rtt_method, "The source of round-trip times.");
        optional(
            keys,
            "timestamp-tick",
            &mut self.timestamp_tick,
            &TIMER,
            "The tick of the timestamp option; none: the option is not in use.",
        );
        keys.within(
            "delayed-ack-count",
            &mut self.delayed_ack_count,
            1..=1000,
            "The number of segments in order until an ACK is due.",
        );
        keys.within(
            "delayed-ack-timeout",
            &mut self.delayed_ack_timeout,
            TIME,
            "The longest delay of an ACK for fewer segments.",
        );
        keys.within(
            "quick-acks",
            &mut self.quick_acks,
            0..=1_000_000,
            "The number of segments at the start that each get an ACK.",
        );
        keys.key(
            "ack-marks-at-once",
            &mut self.ack_marks_at_once,
            "Whether a change between marked and unmarked packets triggers an ACK.",
        );
        keys.key(
            "counted-echo-lags",
            &mut self.counted_echo_lags,
            "Whether the ACK for a change in counted marks repeats the acknowledgement number before the last segment.",
        );
        keys.key("sack", &mut self.sack, "Whether selective acknowledgements are in use (RFC 2018).");
        keys.key("dsack", &mut self.dsack, "Whether the receiver reports data that arrived twice (RFC 2883).");
        keys.key(
            "forgets-blocks",
            &mut self.forgets_blocks,
            "Whether the receiver forgets blocks of data out of order beyond the four that changed last (ns-3).",
        );
        keys.key("detection", &mut self.detection, "How losses are detected.");
        keys.key(
            "reduction",
            &mut self.reduction,
            "The bound of proportional rate reduction (RFC 6937); none: there is no rate reduction.",
        );
        keys.key("reduction-from", &mut self.reduction_from, "The quantity that a reduction is proportional to.");
        keys.key(
            "reduction-wraps",
            &mut self.reduction_wraps,
            "Whether the product in a reduction wraps at 32 bits (ns-3).",
        );
        keys.key(
            "reduction-counts-causes",
            &mut self.reduction_counts_causes,
            "Whether an ACK counts in a reduction once for each reason (ns-3); if not, once if it delivers something.",
        );
        keys.key(
            "repeats-stay-in-flight",
            &mut self.repeats_stay_in_flight,
            "Whether retransmitted data that arrived out of order stays in flight until it is acknowledged (ns-3).",
        );
        keys.key(
            "limited-transmit",
            &mut self.limited_transmit,
            "Whether the first duplicate ACKs allow new data to be sent (RFC 3042).",
        );
        keys.key("rescue", &mut self.rescue, "What is sent in recovery when neither lost nor new data may be sent.");
        keys.key(
            "partial-ack-repeats",
            &mut self.partial_ack_repeats,
            "Whether each partial ACK sends one segment beyond the window.",
        );
        keys.key(
            "partial-ack-restarts-timer",
            &mut self.partial_ack_restarts_timer,
            "Whether every ACK that advances restarts the retransmission timer in recovery.",
        );
        keys.key(
            "disorder",
            &mut self.disorder,
            "Whether ACKs that report data out of order stop growth, and the third starts recovery.",
        );
        keys.key(
            "loss-end-counts-beyond",
            &mut self.loss_end_counts_beyond,
            "Whether the ACK that ends recovery from a timeout counts only data beyond what was in flight at the timeout.",
        );
        keys.key(
            "timeouts-compound",
            &mut self.timeouts_compound,
            "Whether a repeated timeout for the same data is a separate congestion event.",
        );
        keys.key(
            "reduces-what-is-left",
            &mut self.reduces_what_is_left,
            "Whether a timeout or a mark in recovery reduces the window that the rate reduction has left (ns-3).",
        );
        keys.key(
            "stalls-below-segment",
            &mut self.stalls_below_segment,
            "Whether nothing is sent with a window below a segment until the timer expires.",
        );
        keys.key(
            "loss-ends-reduced",
            &mut self.loss_ends_reduced,
            "Whether losses during the reduction for a mark are a separate congestion event.",
        );
        keys.key(
            "mark-in-recovery",
            &mut self.mark_in_recovery,
            "Whether a mark echoed in recovery is also a congestion event.",
        );
        keys.key(
            "restarts-after-idle",
            &mut self.restarts_after_idle,
            "Whether the window shrinks after an idle time (RFC 5681).",
        );
        keys.within(
            "receive-window",
            &mut self.receive_window,
            WINDOW,
            "The bytes that the receiver accepts beyond the data in order.",
        );
        keys.within(
            "send-buffer",
            &mut self.send_buffer,
            WINDOW,
            "The most bytes that the sender holds, unacknowledged or not sent yet.",
        );
        keys.within(
            "application-writes",
            &mut self.application_writes,
            WINDOW,
            "The bytes of one write of the application (`SendSize` in ns-3). A write waits until the send buffer has room for \
             all of it. Only has an effect with `sends-what-is-written`.",
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
            "Whether only data that the application has written is sent, at once and if necessary in short segments (ns-3, \
             without Nagle's algorithm). If not, the application always has data.",
        );
        keys.key(
            "ecn-on-controls",
            &mut self.ecn_on_controls,
            "Whether SYNs and ACKs are ECN-capable if marks are counted.",
        );
        keys.key("ecn-on-repeats", &mut self.ecn_on_repeats, "Whether retransmitted data is ECN-capable.");
        keys.key("cwr-after-loss", &mut self.cwr_after_loss, "Whether CWR is also sent for a reduction after a loss.");
        keys.key(
            "pacing",
            &mut self.pacing,
            "Pacing at a rate that follows from the window. A congestion control's own pacing always applies.",
        );
        keys.key("pace-initial-window", &mut self.pace_initial_window, "Whether the initial window is also paced.");
        keys.key(
            "paces-to-nearest",
            &mut self.paces_to_nearest,
            "Whether times between paced segments are rounded to the nearest nanosecond, and their timer is always set (ns-3).",
        );
        keys.key("rate-method", &mut self.rate_method, "How the delivery rate, which BBR uses, is measured.");
        keys.within(
            "max-ack-delay",
            &mut self.max_ack_delay,
            TIME,
            "How long a tail loss probe waits for a delayed ACK.",
        );
    }
}

impl Table for Pacing {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        const PERCENT: std::ops::RangeInclusive<u32> = 1..=100_000;
        keys.within(
            "slow-start-percent",
            &mut self.slow_start_percent,
            PERCENT,
            "The pacing rate in slow start, as a percentage of window over round-trip time.",
        );
        keys.within(
            "avoidance-percent",
            &mut self.avoidance_percent,
            PERCENT,
            "The pacing rate in congestion avoidance, in the same unit.",
        );
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
