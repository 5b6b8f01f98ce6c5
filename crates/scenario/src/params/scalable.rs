//! The keys of Scalable TCP.

use super::shared::{COUNTING, ONLY_IF_LIMITED, SEGMENTS};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{ScalableParams, ScalableSteps};

pub(crate) fn scalable<K: KeyVisitor>(params: &mut ScalableParams, keys: &mut K) {
    keys.within(
        "interval",
        &mut params.interval,
        1..=1_000_000,
        "The number of acknowledged segments that add a segment to the window.",
    );
    keys.within("decrease", &mut params.decrease, 0.0..=0.99, "The fraction by which a loss reduces the window.");
    keys.within(
        "low-window",
        &mut params.low_window,
        SEGMENTS,
        "The largest window at which it is NewReno, in segments: the legacy window.",
    );
    keys.key("steps", &mut params.steps, "How congestion avoidance counts.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("reduced", &mut params.reduced, "The quantity that the decrease is a fraction of.");
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    ScalableSteps, "a count of steps":
        "bytes" = ScalableSteps::Bytes,
        "segments" = ScalableSteps::Segments,
        "segments-without-rest" = ScalableSteps::SegmentsWithoutRest;
}
