//! The keys of PIE, PI2 and DualPI2.

use super::{BYTES, FACTOR, SHARE, STEP, TIME, optional};
use crate::keys::{KeyVisitor, choice};
use crate::value::names;
use queuescope_queue::{
    DualPi2Params, DualPi2Scheduler, Pi2Params, PieActivation, PieBurst, PieDecay, PieDelay, PieParams, PieScaling,
    ShortQueue,
};
use queuescope_wire::{ByteCount, Nanos};

const FIRST: &str = "The time of the first update of the probability; none: one `update` after the first packet.";
const ALPHA: &str = "The gain for the distance of the delay to its target, in Hz.";
const BETA: &str = "The gain for the change of the delay, in Hz.";

pub(crate) fn pie<K: KeyVisitor>(params: &mut PieParams, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, "The target delay.");
    keys.within("update", &mut params.update, STEP, "The interval between updates of the probability.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.key("scaling", &mut params.scaling, "How the size of an update depends on the probability.");
    keys.key("delay", &mut params.delay, "How the delay is measured.");
    keys.key("decay", &mut params.decay, "When the probability decays by 2 % per update.");
    keys.key("cap", &mut params.cap, "Whether an update raises a probability of at least 10 % by at most 2 %.");
    optional(
        keys,
        "raise-above",
        &mut params.raise_above,
        &TIME,
        "A delay above which each update raises the probability by 2 % more (Linux: 250ms).",
    );
    keys.key("burst", &mut params.burst, "How bursts are allowed to pass.");
    keys.key(
        "spare-below-half",
        &mut params.spare_below_half,
        "Whether nothing is dropped early while the delay is below half of the target and the probability below 20 %.",
    );
    keys.key("short-queue", &mut params.short_queue, "A queue that holds at most this has no early drops.");
    keys.key(
        "derandomise",
        &mut params.derandomise,
        "Whether drops are kept from being too close together or too far apart.",
    );
    optional(
        keys,
        "mark-below",
        &mut params.mark_below,
        &(0.0..=2.0),
        "ECN-capable packets are marked instead of dropped while the probability is below this; above 1: always.",
    );
    optional(
        keys,
        "scale-to-size",
        &mut params.scale_to_size,
        &(ByteCount(1)..=ByteCount(65_535)),
        "The probability is scaled by the ratio of a packet's size to this size.",
    );
    keys.key("activation", &mut params.activation, "When PIE is active.");
    keys.key("draws", &mut params.draws, "The source of random numbers.");
}

names! {
    PieScaling, "a scaling of PIE":
        "rfc" = PieScaling::Rfc8033, "ns3-old" = PieScaling::Ns3Old, "off" = PieScaling::None;
    PieDecay, "a decay of PIE":
        "both-zero" = PieDecay::BothZero, "both-below-half" = PieDecay::BothBelowHalf, "off" = PieDecay::None;
}

choice! {
    PieDelay, "measurement of PIE", keys;
    "timestamps", "The sojourn time of the last packet that left.",
        Self::Timestamps { zero_when_empty: true }, Self::Timestamps { zero_when_empty } => {
            keys.key("zero-when-empty", zero_when_empty, "Whether the delay is 0 once the queue is empty.");
        };
    "departure-rate", "The backlog over the measured departure rate.",
        Self::DepartureRate { threshold: ByteCount(16_384) }, Self::DepartureRate { threshold } => {
            keys.within("threshold", threshold, BYTES, "The backlog that starts a measurement, and the bytes that must leave to end it.");
        };
    "link-rate", "The backlog over the rate of the link.", Self::LinkRate, Self::LinkRate => {};
}

choice! {
    PieBurst, "burst allowance of PIE", keys;
    "rfc", "Nothing is dropped early for a while after calm (RFC 8033 section 4.4).",
        Self::Rfc8033(Nanos(150_000_000)), Self::Rfc8033(time) => keys.within("time", time, TIME, "The length of the allowance.");
    "ns3", "The burst allowance of ns-3.",
        Self::Ns3(Nanos(150_000_000)), Self::Ns3(time) => keys.within("time", time, TIME, "The length of the allowance.");
    "off", "No burst allowance.", Self::None, Self::None => {};
}

choice! {
    ShortQueue, "short queue", keys;
    "bytes", "A number of bytes.",
        Self::Bytes(ByteCount(2000)), Self::Bytes(size) => keys.within("size", size, BYTES, "The number of bytes.");
    "packets", "A number of packets.",
        Self::Packets(2), Self::Packets(count) => keys.within("count", count, 0..=1_000_000_000, "The number of packets.");
}

choice! {
    PieActivation, "activation of PIE", keys;
    "always", "Always active.", Self::Always, Self::Always => {};
    "third-of-limit", "From the time when the queue is a third full until the probability is 0 and the delay low.", Self::ThirdOfLimit, Self::ThirdOfLimit => {};
    "delay", "From the time when the delay reaches `above` until the probability is 0 and the delay low.",
        Self::Delay(Nanos(1_000_000_000)), Self::Delay(above) => keys.within("above", above, TIME, "The delay at which PIE becomes active.");
}

pub(crate) fn pi2<K: KeyVisitor>(params: &mut Pi2Params, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, "The target delay.");
    keys.within("update", &mut params.update, STEP, "The interval between updates of the probability.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.within(
        "coupling",
        &mut params.coupling,
        FACTOR,
        "The factor between p' and the probability with which scalable packets are marked.",
    );
    keys.within(
        "max-classic",
        &mut params.max_classic,
        SHARE,
        "The highest probability with which classic packets are dropped or marked.",
    );
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked instead of dropped.");
    keys.within(
        "short-queue",
        &mut params.short_queue,
        BYTES,
        "A queue that holds at most this has no drops or marks.",
    );
}

pub(crate) fn dual_pi2<K: KeyVisitor>(params: &mut DualPi2Params, keys: &mut K) {
    keys.within("mtu", &mut params.mtu, ByteCount(1)..=ByteCount(65_535), "The size of the largest packet.");
    keys.within("target", &mut params.target, TIME, "The target delay of the classic queue.");
    keys.within("update", &mut params.update, STEP, "The interval between updates of the probability.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.within("coupling", &mut params.coupling, FACTOR, "The coupling factor k.");
    keys.within(
        "ramp-start",
        &mut params.ramp_start,
        TIME,
        "The delay above which the ramp marks packets of the L queue.",
    );
    keys.within(
        "ramp-length",
        &mut params.ramp_length,
        TIME,
        "The length of the ramp: at `ramp-start` plus this, every packet is marked.",
    );
    keys.within(
        "ramp-spares",
        &mut params.ramp_spares,
        0..=1_000_000,
        "The ramp marks nothing while the L queue holds at most this many packets.",
    );
    keys.key("scheduler", &mut params.scheduler, "How the two queues share the link.");
    keys.key("even", &mut params.even, "Whether marks and drops are spaced evenly, not drawn at random.");
    keys.key(
        "spare-short",
        &mut params.spare_short,
        "Whether nothing is dropped or marked while both queues together hold less than two full packets, as in Linux.",
    );
}

choice! {
    DualPi2Scheduler, "scheduler of DualPI2", keys;
    "weighted", "Weighted round robin: while both queues have packets, the classic queue gets one byte of every `of`.",
        Self::WeightedRoundRobin { of: 16 }, Self::WeightedRoundRobin { of } => {
            keys.within("of", of, 2..=10_000, "How many bytes both queues get for each byte of the classic queue.");
        };
    "time-shifted", "The queue whose head has waited longest. Packets of the L queue count as having waited longer by `shift`.",
        Self::TimeShiftedFifo(Nanos(50_000_000)), Self::TimeShiftedFifo(shift) => {
            keys.within("shift", shift, TIME, "How much longer packets of the L queue count as having waited.");
        };
}
