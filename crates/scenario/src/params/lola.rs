//! The keys of LoLa.

use super::TIME;
use super::shared::{COUNTING, ONLY_IF_LIMITED, RTT};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{LolaParams, QueueUnit};
use queuescope_wire::Nanos;

/// All parameters.
pub(crate) fn lola<K: KeyVisitor>(params: &mut LolaParams, keys: &mut K) {
    keys.within("c", &mut params.c, 1e-6..=1e6, "C of the cubic increase, in segments per second cubed.");
    keys.within("beta", &mut params.beta, 0.01..=0.99, "The factor of the window after a loss.");
    keys.key("reduced", &mut params.reduced, "The quantity that a loss reduces.");
    keys.within("gamma", &mut params.gamma, 0.01..=1.0, "The factor of the window in a tailored decrease.");
    keys.within(
        "slow-start-exit",
        &mut params.slow_start_exit,
        TIME,
        "The queueing delay above which slow start ends.",
    );
    keys.within(
        "slow-start-samples",
        &mut params.slow_start_samples,
        1..=1_000_000,
        "The number of round-trip times in a round trip before slow start is judged.",
    );
    keys.within("low", &mut params.low, TIME, "The queueing delay above which fair flow balancing begins: Q_low.");
    keys.within("target", &mut params.target, TIME, "The queueing delay above which the window is held: Q_target.");
    keys.ensure("target", params.target >= params.low, || {
        ("the target is below the low delay".to_owned(), format!("`low` is {}", params.low))
    });
    keys.within(
        "phi",
        &mut params.phi,
        Nanos(1)..=*TIME.end(),
        "The time in fair flow balancing after which a flow should have one unit in the queue.",
    );
    keys.key("unit", &mut params.unit, "That unit.");
    keys.within("hold", &mut params.hold, TIME, "How long the window is held before the queue is emptied.");
    keys.within(
        "measure",
        &mut params.measure,
        TIME,
        "The time over which the smallest round-trip time is taken: t_measure.",
    );
    keys.within("samples", &mut params.samples, 0..=1_000_000, "The smallest number of round-trip times in it.");
    keys.within(
        "base-decreases",
        &mut params.base_decreases,
        0..=1_000_000,
        "The smallest round-trip time ever is forgotten after this many tailored decreases that did not measure it.",
    );
    keys.within(
        "base-epsilon",
        &mut params.base_epsilon,
        TIME,
        "The difference up to which a round-trip time counts as the smallest ever.",
    );
    keys.within(
        "floor",
        &mut params.floor,
        0..=1_000_000,
        "The smallest window after a tailored decrease, in segments.",
    );
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    QueueUnit, "a unit of data in the queue": "byte" = QueueUnit::Byte, "segment" = QueueUnit::Segment;
}
