//! The keys of BBR version 3.

use super::shared::RTT;
use super::{FACTOR, SHARE, TIME, optional};
use crate::keys::KeyVisitor;
use queuescope_tcp::congestion::Bbr3Params;
use queuescope_wire::Nanos;

/// All parameters except the room for aggregated ACKs, which the profile decides.
pub(crate) fn bbr3<K: KeyVisitor>(params: &mut Bbr3Params, keys: &mut K) {
    keys.within("startup-gain", &mut params.startup_gain, 1.0..=1000.0, "The pacing gain in startup.");
    keys.within("drain-gain", &mut params.drain_gain, 0.01..=1.0, "The pacing gain in drain.");
    keys.within("down-gain", &mut params.down_gain, 0.01..=1.0, "The pacing gain after a probe for bandwidth.");
    keys.within("up-gain", &mut params.up_gain, 1.0..=1000.0, "The pacing gain in a probe for bandwidth.");
    keys.within("window-gain", &mut params.window_gain, 0.01..=1000.0, "The gain of the window.");
    keys.within(
        "up-window-gain",
        &mut params.up_window_gain,
        0.01..=1000.0,
        "The gain of the window in a probe for bandwidth.",
    );
    keys.within(
        "loss-threshold",
        &mut params.loss_threshold,
        SHARE,
        "The largest tolerable loss rate of a round trip in a probe for bandwidth.",
    );
    keys.within(
        "beta",
        &mut params.beta,
        0.01..=1.0,
        "The smallest factor of the short-term bounds in a round trip with losses.",
    );
    keys.within(
        "headroom",
        &mut params.headroom,
        0.0..=0.99,
        "The share of the long-term bound that is left to others.",
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
    keys.within(
        "full-losses",
        &mut params.full_losses,
        0..=1_000_000,
        "The number of ACKs with losses in a round trip after which startup ends.",
    );
    optional(
        keys,
        "drain-rounds",
        &mut params.drain_rounds,
        &(0..=1_000_000),
        "The number of round trips after which drain ends in any case.",
    );
    keys.within("wait", &mut params.wait, TIME, "The shortest time between probes for bandwidth.");
    keys.within("more-wait", &mut params.more_wait, TIME, "The largest random addition to it.");
    keys.within(
        "most-rounds",
        &mut params.most_rounds,
        0..=1_000_000,
        "The largest number of round trips between probes for bandwidth.",
    );
    keys.key(
        "precautionary",
        &mut params.precautionary,
        "Whether a probe turns back where the last one lost too much.",
    );
    keys.key("draws", &mut params.draws, "The source of random numbers.");
    keys.within(
        "rtt-window",
        &mut params.rtt_window,
        Nanos(1_000_000)..=*TIME.end(),
        "The time over which the smallest round-trip time is the minimum.",
    );
    keys.within(
        "probe-rtt-interval",
        &mut params.probe_rtt_interval,
        Nanos(1_000_000)..=*TIME.end(),
        "The time between probes of the round-trip time.",
    );
    keys.within("probe-rtt", &mut params.probe_rtt, TIME, "How long such a probe lasts.");
    keys.within("probe-rtt-gain", &mut params.probe_rtt_gain, 0.01..=1000.0, "The gain of the window in such a probe.");
    keys.within("least-window", &mut params.least_window, 1..=1_000_000, "The smallest window, in segments.");
    keys.within(
        "pacing-margin",
        &mut params.pacing_margin,
        0.0..=0.9,
        "The fraction by which pacing is slower than the bandwidth.",
    );
    keys.key("rtt", &mut params.rtt, RTT);
}
