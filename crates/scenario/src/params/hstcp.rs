//! The keys of HighSpeed TCP.

use super::FACTOR;
use super::shared::{COUNTING, ONLY_IF_LIMITED, SEGMENTS};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{Coefficients, HighSpeedParams, HighSpeedSteps};

pub(crate) fn high_speed<K: KeyVisitor>(params: &mut HighSpeedParams, keys: &mut K) {
    keys.within(
        "low-window",
        &mut params.low_window,
        1..=1_000_000_000,
        "The largest window at which it is NewReno, in segments: `Low_Window`.",
    );
    keys.within(
        "high-window",
        &mut params.high_window,
        SEGMENTS,
        "The window at which the decrease is `high-decrease`, in segments: `High_Window`.",
    );
    keys.ensure("high-window", params.high_window > params.low_window, || {
        ("the high window is not above the low window".to_owned(), format!("`low-window` is {}", params.low_window))
    });
    keys.within(
        "high-decrease",
        &mut params.high_decrease,
        0.0..=0.5,
        "The fraction by which a loss reduces the high window: `High_Decrease`.",
    );
    keys.within(
        "response-scale",
        &mut params.response_scale,
        FACTOR,
        "The rate of losses for a window of `w` segments is this divided by `w` to the power `response-power`.",
    );
    keys.within("response-power", &mut params.response_power, 0.0..=2.0, "That power.");
    keys.key("coefficients", &mut params.coefficients, "Where the increase and the decrease come from.");
    keys.key("steps", &mut params.steps, "What counts in congestion avoidance.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("reduced", &mut params.reduced, "The quantity that the decrease is a fraction of.");
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    Coefficients, "a source of the coefficients":
        "formulas" = Coefficients::Formulas,
        "ns3-table" = Coefficients::Ns3Table,
        "linux-table" = Coefficients::LinuxTable;
    HighSpeedSteps, "a count of steps":
        "bytes" = HighSpeedSteps::Bytes, "segments" = HighSpeedSteps::Segments, "acks" = HighSpeedSteps::Acks;
}
