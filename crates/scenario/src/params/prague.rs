//! The keys of Prague.

use super::shared::{ONLY_IF_LIMITED, ROUND};
use super::{SHARE, TIME};
use crate::keys::KeyVisitor;
use queuescope_tcp::congestion::PragueParams;

/// All parameters.
pub(crate) fn prague<K: KeyVisitor>(params: &mut PragueParams, keys: &mut K) {
    keys.within("gain", &mut params.gain, 1e-6..=1.0, "The weight of a round trip in the average: g.");
    keys.within("initial-alpha", &mut params.initial_alpha, SHARE, "The average before the first mark.");
    keys.within(
        "reference",
        &mut params.reference,
        TIME,
        "Flows with a shorter round-trip time than this get the same rate as with this one; 0: rates differ.",
    );
    keys.within(
        "transition",
        &mut params.transition,
        0..=1_000_000_000,
        "The number of round trips after slow start until rates no longer depend on round-trip times.",
    );
    keys.within(
        "largest-scaled",
        &mut params.largest_scaled,
        TIME,
        "The longest round-trip time with which the increase is scaled.",
    );
    keys.within("beta", &mut params.beta, 0.01..=0.99, "The factor of the window after a loss.");
    keys.within("floor", &mut params.floor, 0..=1_000_000, "The smallest window after a reduction, in segments.");
    keys.key("round", &mut params.round, ROUND);
    keys.key("paces", &mut params.paces, "Whether segments are paced over the round trip.");
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}
