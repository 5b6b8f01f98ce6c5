//! The keys of H-TCP.

use super::shared::{COUNTING, ONLY_IF_LIMITED, RTT};
use super::{FACTOR, SHARE, TIME, optional};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{HtcpIncrease, HtcpParams, HtcpThroughput};
use queuescope_wire::Nanos;

pub(crate) fn htcp<K: KeyVisitor>(params: &mut HtcpParams, keys: &mut K) {
    keys.within(
        "rise-after",
        &mut params.rise_after,
        TIME,
        "The time after a congestion event from which alpha rises: Delta_L.",
    );
    keys.within(
        "least-beta",
        &mut params.least_beta,
        SHARE,
        "The smallest beta, the part of the window that a congestion event leaves.",
    );
    keys.within("largest-beta", &mut params.largest_beta, SHARE, "The largest beta.");
    keys.ensure("largest-beta", params.largest_beta >= params.least_beta, || {
        ("the largest is below the smallest".to_owned(), format!("`least-beta` is {}", params.least_beta))
    });
    keys.within("initial-beta", &mut params.initial_beta, SHARE, "Beta before the first congestion event.");
    keys.within("least-alpha", &mut params.least_alpha, FACTOR, "The smallest increase per round trip, in segments.");
    keys.within(
        "throughput-change",
        &mut params.throughput_change,
        FACTOR,
        "The relative change of the throughput above which beta is the smallest: Delta_B.",
    );
    keys.key("throughput", &mut params.throughput, "How the throughput before a congestion event is measured.");
    optional(
        keys,
        "rtt-reference",
        &mut params.rtt_reference,
        &(Nanos(1_000)..=*TIME.end()),
        "Alpha is multiplied by the smallest round-trip time over this.",
    );
    keys.within(
        "fade",
        &mut params.fade,
        SHARE,
        "What remains of the largest round-trip time, above the smallest, after a congestion event.",
    );
    optional(
        keys,
        "largest-rise",
        &mut params.largest_rise,
        &TIME,
        "A round-trip time that exceeds the largest by more than this is ignored for it.",
    );
    keys.within("least-rtt", &mut params.least_rtt, TIME, "Beta is the smallest up to this round-trip time.");
    keys.key("waits", &mut params.waits, "Whether beta follows the delay only after two steady throughputs in a row.");
    keys.key(
        "counts-from-end",
        &mut params.counts_from_end,
        "Whether the time counts from the end of a recovery, not from the congestion event.",
    );
    keys.key("increase", &mut params.increase, "How the window increases.");
    keys.within("tick", &mut params.tick, Nanos(1)..=Nanos(1_000_000_000), "The unit to which times are rounded.");
    keys.key("fixed-point", &mut params.fixed_point, "Whether alpha and beta are integers in units of 1/128 (Linux).");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("reduced", &mut params.reduced, "The quantity that beta is a fraction of.");
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    HtcpThroughput, "a measurement of the throughput":
        "windows" = HtcpThroughput::Windows, "average" = HtcpThroughput::Average;
    HtcpIncrease, "an increase of H-TCP":
        "bytes" = HtcpIncrease::Bytes,
        "segments" = HtcpIncrease::Segments,
        "bytes-for-each-ack" = HtcpIncrease::BytesForEachAck;
}
