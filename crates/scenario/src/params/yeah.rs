//! The keys of YeAH.

use super::shared::{COUNTING, ONLY_IF_LIMITED, ROUND, RTT};
use super::{FACTOR, SHARE};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{YeahParams, YeahQueue};

pub(crate) fn yeah<K: KeyVisitor>(params: &mut YeahParams, keys: &mut K) {
    keys.within("longest-queue", &mut params.longest_queue, FACTOR, "The longest queue of the fast mode: Qmax.");
    keys.within(
        "largest-level",
        &mut params.largest_level,
        SHARE,
        "The largest queueing delay of the fast mode, relative to the smallest round-trip time: 1/phi.",
    );
    keys.within(
        "gamma",
        &mut params.gamma,
        1..=1_000_000,
        "The number of round trips in which a long queue is removed.",
    );
    keys.within(
        "epsilon",
        &mut params.epsilon,
        1..=1_000_000,
        "The window divided by this is the most that is removed with a queue.",
    );
    keys.within(
        "delta",
        &mut params.delta,
        2..=1_000_000,
        "The window divided by this is the least by which a loss reduces it.",
    );
    keys.within(
        "competing-rounds",
        &mut params.competing_rounds,
        0..=1_000_000,
        "The number of successive round trips in the slow mode after which a loss halves the window.",
    );
    keys.within(
        "forgetting-rounds",
        &mut params.forgetting_rounds,
        0..=1_000_000,
        "The number of round trips in the fast mode after which a competing flow is forgotten.",
    );
    keys.within(
        "scalable-step",
        &mut params.scalable_step,
        1..=1_000_000,
        "The number of acknowledged segments that add one in the fast mode.",
    );
    keys.key("queue", &mut params.queue, "How the queue is computed.");
    keys.key(
        "judges-timeouts",
        &mut params.judges_timeouts,
        "Whether the queue also decides the reduction after a timeout.",
    );
    keys.key("wraps", &mut params.wraps, "Whether a reduction by more than there is wraps at 32 bits (ns-3).");
    keys.key("reduced", &mut params.reduced, "The quantity that a reduction is taken from.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("round", &mut params.round, ROUND);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key(
        "forgets-when-idle",
        &mut params.forgets_when_idle,
        "Whether the smallest round-trip time is forgotten when the flow is idle.",
    );
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    YeahQueue, "a computation of YeAH's queue":
        "exact" = YeahQueue::Exact, "whole" = YeahQueue::Whole, "from-rate" = YeahQueue::FromRate;
}
