//! The keys of Hybla.

use super::shared::{COUNTING, ONLY_IF_LIMITED, RTT};
use super::{TIME, optional};
use crate::keys::{KeyVisitor, choice};
use crate::value::names;
use queuescope_tcp::congestion::{HyblaParams, HyblaStart, HyblaSteps};
use queuescope_wire::Nanos;

pub(crate) fn hybla<K: KeyVisitor>(params: &mut HyblaParams, keys: &mut K) {
    let times = Nanos(1)..=*TIME.end();
    keys.within("reference", &mut params.reference, times.clone(), "The reference round-trip time: RTT0.");
    keys.within("rtt-unit", &mut params.rtt_unit, times, "The unit to which round-trip times are rounded.");
    optional(keys, "rho-parts", &mut params.rho_parts, &(1..=1_000_000), "The parts of 1 in which rho is rounded.");
    keys.key("start", &mut params.start, "The window at the start.");
    keys.key("steps", &mut params.steps, "What an ACK adds.");
    optional(
        keys,
        "largest-exponent",
        &mut params.largest_exponent,
        &(1..=1_000),
        "The largest whole part of rho as an exponent in slow start.",
    );
    optional(
        keys,
        "largest-window",
        &mut params.largest_window,
        &(1..=1_000_000_000),
        "The largest window, in segments.",
    );
    keys.key(
        "repairs-as-reno",
        &mut params.repairs_as_reno,
        "Whether it grows as Reno while it repairs a timeout, and ignores round-trip times while it answers a loss.",
    );
    keys.key("reduced", &mut params.reduced, "The quantity that is halved on congestion.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

choice! {
    HyblaSteps, "step of Hybla", keys;
    "bytes", "In proportion to the acknowledged bytes.", Self::Bytes, Self::Bytes => {};
    "segments", "For each whole segment (ns-3).", Self::Segments, Self::Segments => {};
    "parts", "Once per ACK, in whole parts of a segment (Linux).",
        Self::Parts { of: 128 }, Self::Parts { of } => {
            keys.within("of", of, 1..=1_000_000, "The number of parts of a segment.");
        };
}

names! {
    HyblaStart, "a start of Hybla":
        "scaled" = HyblaStart::Scaled, "rho" = HyblaStart::Rho, "unchanged" = HyblaStart::Unchanged;
}
