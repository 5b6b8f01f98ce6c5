//! The keys of Westwood+.

use super::TIME;
use super::shared::{COUNTING, ONLY_IF_LIMITED, RTT};
use crate::keys::{KeyVisitor, choice};
use crate::value::names;
use queuescope_tcp::congestion::{WestwoodFilter, WestwoodParams, WestwoodSampling, WestwoodUnit};
use queuescope_wire::Nanos;

pub(crate) fn westwood<K: KeyVisitor>(params: &mut WestwoodParams, keys: &mut K) {
    keys.key("sampling", &mut params.sampling, "When a sample of the bandwidth begins and ends.");
    keys.within("least-interval", &mut params.least_interval, TIME, "The shortest time that a sample takes.");
    keys.key("unit", &mut params.unit, "The unit to which the bandwidth is rounded.");
    keys.key("filter", &mut params.filter, "How samples are filtered.");
    keys.within("memory", &mut params.memory, 0.0..=0.999, "The weight of older samples in the filter: alpha.");
    keys.key(
        "after-repair",
        &mut params.after_repair,
        "Whether the estimate sets the window when the repair of a loss ends, and not at the loss.",
    );
    keys.key(
        "halves-without-sample",
        &mut params.halves_without_sample,
        "Whether a loss before the first sample halves the window. Otherwise it leaves two segments.",
    );
    keys.key("timeout-forgets", &mut params.timeout_forgets, "Whether a timeout forgets the smallest round-trip time.");
    keys.key("reduced", &mut params.reduced, "The quantity that is halved where a loss halves.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

choice! {
    WestwoodUnit, "unit of the bandwidth", keys;
    "exact", "Real numbers.", Self::Exact, Self::Exact => {};
    "bits-per-second", "Whole bits per second (ns-3).", Self::BitsPerSecond, Self::BitsPerSecond => {};
    "bytes-per-tick", "Whole bytes per tick of a clock (Linux).",
        Self::BytesPerTick(Nanos(1_000_000)), Self::BytesPerTick(tick) => {
            keys.within("tick", tick, Nanos(1)..=*TIME.end(), "The period of the clock.");
        };
}

names! {
    WestwoodSampling, "a sampling of Westwood+":
        "by-ack" = WestwoodSampling::ByAck, "by-ack-accounted" = WestwoodSampling::ByAckAccounted,
        "by-timer" = WestwoodSampling::ByTimer;
    WestwoodFilter, "a filter of Westwood+":
        "once" = WestwoodFilter::Once, "twice" = WestwoodFilter::Twice, "of-means" = WestwoodFilter::OfMeans;
}
