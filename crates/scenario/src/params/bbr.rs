//! BBR.

use super::congestion::RTT;
use super::{FACTOR, TIME};
use crate::keys::Keys;
use crate::value::names;
use queuescope_tcp::congestion::{AfterRecovery, BbrParams, Quantum};
use queuescope_wire::Nanos;

/// All but the cycle of gains, the room for aggregated ACKs and the policer, which the profile decides.
pub(crate) fn bbr<K: Keys>(params: &mut BbrParams, keys: &mut K) {
    keys.within("high-gain", &mut params.high_gain, 1.0..=1000.0, "Gain of pacing and window in startup.");
    keys.within(
        "window-gain",
        &mut params.window_gain,
        0.01..=1000.0,
        "Gain of the window when probing for bandwidth.",
    );
    keys.within(
        "cycle-starts",
        &mut params.cycle_starts,
        1..=8,
        "The cycle begins at random in one of so many phases.",
    );
    keys.key("draws", &mut params.draws, "Who draws it.");
    keys.within(
        "bandwidth-rounds",
        &mut params.bandwidth_rounds,
        1..=1000,
        "The bandwidth is the largest of so many round trips.",
    );
    keys.key(
        "late-third",
        &mut params.late_third,
        "Whether the filter of the largest takes its third value late (ns-3).",
    );
    keys.key(
        "bandwidth-from-window",
        &mut params.bandwidth_from_window,
        "Whether the bandwidth before the first sample is the initial window in a round-trip time (ns-3).",
    );
    keys.within(
        "full-growth",
        &mut params.full_growth,
        FACTOR,
        "The pipe is full when the bandwidth did not grow by this factor,",
    );
    keys.within("full-rounds", &mut params.full_rounds, 1..=1000, "for so many round trips.");
    keys.key(
        "timeout-resets-growth",
        &mut params.timeout_resets_growth,
        "Whether a timeout in startup begins that count anew.",
    );
    keys.within(
        "rtt-window",
        &mut params.rtt_window,
        Nanos(1_000_000)..=*TIME.end(),
        "The smallest round-trip time is that of so long.",
    );
    keys.key("equal-renews", &mut params.equal_renews, "Whether an equal round-trip time renews it.");
    keys.within(
        "probe-rtt",
        &mut params.probe_rtt,
        TIME,
        "So long the window is smallest to probe the round-trip time.",
    );
    keys.key(
        "probe-limits-samples",
        &mut params.probe_limits_samples,
        "Whether what is delivered then counts as limited.",
    );
    keys.within(
        "least-window",
        &mut params.least_window,
        1..=1_000_000,
        "The smallest window outside of recovery, in segments.",
    );
    keys.within(
        "pacing-margin",
        &mut params.pacing_margin,
        0.0..=0.9,
        "Pacing is slower than the bandwidth by this part.",
    );
    keys.key(
        "restarts-once-probed",
        &mut params.restarts_once_probed,
        "Whether sending starts from idleness only once the round-trip time was probed, then always (ns-3).",
    );
    keys.key("whole-bits", &mut params.whole_bits, "Whether rates are kept in whole bits a second (ns-3).");
    keys.key("quantum", &mut params.quantum, "How much is sent at once.");
    keys.key("even-segments", &mut params.even_segments, "Whether the window is an even number of segments.");
    keys.key("recovery-begins-round", &mut params.recovery_begins_round, "Whether a round trip begins with recovery.");
    keys.key("after-recovery", &mut params.after_recovery, "The window after recovery.");
    keys.within(
        "first-rtt-unit",
        &mut params.first_rtt_unit,
        Nanos(1)..=*TIME.end(),
        "The first rate takes the round trip in whole numbers of this.",
    );
    keys.key("rtt", &mut params.rtt, RTT);
}

names! {
    Quantum, "a quantum": "segment" = Quantum::Segment, "by-rate" = Quantum::ByRate;
    AfterRecovery, "a window after recovery":
        "restored" = AfterRecovery::Restored, "threshold" = AfterRecovery::Threshold;
}
