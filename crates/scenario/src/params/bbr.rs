//! The keys of BBR.

use super::shared::RTT;
use super::{FACTOR, TIME};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{AfterRecovery, BbrParams, Quantum};
use queuescope_wire::Nanos;

/// All parameters except the cycle of gains, the room for aggregated ACKs and the policer, which the profile decides.
pub(crate) fn bbr<K: KeyVisitor>(params: &mut BbrParams, keys: &mut K) {
    keys.within("high-gain", &mut params.high_gain, 1.0..=1000.0, "The gain of pacing and window in startup.");
    keys.within(
        "window-gain",
        &mut params.window_gain,
        0.01..=1000.0,
        "The gain of the window when probing for bandwidth.",
    );
    keys.within(
        "cycle-starts",
        &mut params.cycle_starts,
        1..=8,
        "The number of phases in one of which the cycle starts at random.",
    );
    keys.key("draws", &mut params.draws, "The source of random numbers.");
    keys.within(
        "bandwidth-rounds",
        &mut params.bandwidth_rounds,
        1..=1000,
        "The number of round trips over which the bandwidth is the maximum.",
    );
    keys.key("late-third", &mut params.late_third, "Whether the maximum filter updates its third value late (ns-3).");
    keys.key(
        "bandwidth-from-window",
        &mut params.bandwidth_from_window,
        "Whether the bandwidth before the first sample is the initial window in a round-trip time (ns-3).",
    );
    keys.within(
        "full-growth",
        &mut params.full_growth,
        FACTOR,
        "The pipe is full when the bandwidth has not grown by this factor for `full-rounds` round trips.",
    );
    keys.within(
        "full-rounds",
        &mut params.full_rounds,
        1..=1000,
        "The number of round trips without growth after which the pipe is full.",
    );
    keys.key(
        "timeout-resets-growth",
        &mut params.timeout_resets_growth,
        "Whether a timeout in startup restarts the count of round trips without growth.",
    );
    keys.within(
        "rtt-window",
        &mut params.rtt_window,
        Nanos(1_000_000)..=*TIME.end(),
        "The time over which the smallest round-trip time is the minimum.",
    );
    keys.key("equal-renews", &mut params.equal_renews, "Whether an equal round-trip time renews the minimum.");
    keys.within(
        "probe-rtt",
        &mut params.probe_rtt,
        TIME,
        "How long the window is smallest to probe the round-trip time.",
    );
    keys.key(
        "probe-limits-samples",
        &mut params.probe_limits_samples,
        "Whether data delivered during that probe counts as limited by the application.",
    );
    keys.within(
        "least-window",
        &mut params.least_window,
        1..=1_000_000,
        "The smallest window outside recovery, in segments.",
    );
    keys.within(
        "pacing-margin",
        &mut params.pacing_margin,
        0.0..=0.9,
        "The fraction by which pacing is slower than the bandwidth.",
    );
    keys.key(
        "restarts-once-probed",
        &mut params.restarts_once_probed,
        "Whether a restart from idle is recognised only after the first probe of the round-trip time, then always (ns-3).",
    );
    keys.key("whole-bits", &mut params.whole_bits, "Whether rates are kept in whole bits per second (ns-3).");
    keys.key("quantum", &mut params.quantum, "How much is sent at once.");
    keys.key("even-segments", &mut params.even_segments, "Whether the window is an even number of segments.");
    keys.key(
        "recovery-begins-round",
        &mut params.recovery_begins_round,
        "Whether the start of recovery starts a round trip.",
    );
    keys.key("after-recovery", &mut params.after_recovery, "The window after recovery.");
    keys.within(
        "first-rtt-unit",
        &mut params.first_rtt_unit,
        Nanos(1)..=*TIME.end(),
        "The unit to which the round-trip time is rounded for the first rate.",
    );
    keys.key("rtt", &mut params.rtt, RTT);
}

names! {
    Quantum, "a quantum": "segment" = Quantum::Segment, "by-rate" = Quantum::ByRate;
    AfterRecovery, "a window after recovery":
        "restored" = AfterRecovery::Restored, "threshold" = AfterRecovery::Threshold;
}
