//! The keys of BIC.

use super::TIME;
use super::shared::{COUNTING, ONLY_IF_LIMITED, SEGMENTS};
use crate::keys::{KeyVisitor, choice};
use crate::value::names;
use queuescope_tcp::congestion::{BicParams, BicSearch, BicSteps, FastConvergence};

pub(crate) fn bic<K: KeyVisitor>(params: &mut BicParams, keys: &mut K) {
    keys.within("low-window", &mut params.low_window, SEGMENTS, "Below this window, in segments, it is NewReno.");
    keys.within("beta", &mut params.beta, 0.01..=0.99, "The factor of the window after a reduction.");
    keys.within(
        "largest-step",
        &mut params.largest_step,
        1..=1_000_000,
        "The largest increase per round trip, in segments: S_max.",
    );
    keys.within(
        "least-step",
        &mut params.least_step,
        1e-6..=1e6,
        "The smallest increase per round trip, in segments: S_min. Only of the exact search.",
    );
    keys.key("fast-convergence", &mut params.fast_convergence, "The maximum after a loss below the maximum.");
    keys.key("search", &mut params.search, "How the increase follows from the distance to the maximum.");
    keys.key("steps", &mut params.steps, "How congestion avoidance counts.");
    keys.within("refresh", &mut params.refresh, TIME, "How long the interval stays the same if the window does.");
    keys.key(
        "follows-delayed-acks",
        &mut params.follows_delayed_acks,
        "Whether the interval is divided by the average number of segments that an ACK acknowledges.",
    );
    keys.key("timeout-forgets", &mut params.timeout_forgets, "Whether a timeout forgets the maximum.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("reduced", &mut params.reduced, "The quantity that is halved below the low window.");
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

choice! {
    BicSearch, "search of BIC", keys;
    "exact", "The paper's steps.", Self::Exact, Self::Exact => {};
    "counted", "The integers of Linux and ns-3.",
        Self::Counted { smooth_part: 20 }, Self::Counted { smooth_part } => {
            keys.within("smooth-part", smooth_part, 1..=1_000_000, "Next to the maximum, a segment is added in this many quarters of a round trip.");
        };
}

names! {
    BicSteps, "a count of steps":
        "bytes" = BicSteps::Bytes, "segments" = BicSteps::Segments, "segments-beyond" = BicSteps::SegmentsBeyond;
    FastConvergence, "a fast convergence":
        "off" = FastConvergence::Off, "middle" = FastConvergence::Middle, "reduced" = FastConvergence::Reduced;
}
