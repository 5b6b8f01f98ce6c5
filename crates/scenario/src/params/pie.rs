//! PIE and what came of it: PI2, DualPI2.

use super::{BYTES, FACTOR, SHARE, STEP, TIME, optional};
use crate::keys::{Keys, choice};
use crate::value::names;
use queuescope_queue::{
    DualPi2Params, DualPi2Scheduler, Pi2Params, PieActivation, PieBurst, PieDecay, PieDelay, PieParams, PieScaling,
    ShortQueue,
};
use queuescope_wire::{ByteCount, Nanos};

const FIRST: &str = "When the probability is computed for the first time; none: one `update` after the first packet.";
const ALPHA: &str = "What the distance of the delay to its target weighs, in Hz.";
const BETA: &str = "What the change of the delay weighs, in Hz.";

pub(crate) fn pie<K: Keys>(params: &mut PieParams, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, "The delay to be held.");
    keys.within("update", &mut params.update, STEP, "How often the probability is computed.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.key("scaling", &mut params.scaling, "How an update is scaled by how large the probability is.");
    keys.key("delay", &mut params.delay, "Where the delay is known from.");
    keys.key("decay", &mut params.decay, "When the probability decays by 2 % an update.");
    keys.key("cap", &mut params.cap, "Whether an update raises a probability of 10 % and more by no more than 2 %.");
    optional(
        keys,
        "raise-above",
        &mut params.raise_above,
        &TIME,
        "A delay above which each update raises the probability by 2 % more (Linux: 250ms).",
    );
    keys.key("burst", &mut params.burst, "How bursts are let pass.");
    keys.key(
        "spare-below-half",
        &mut params.spare_below_half,
        "Whether nothing is dropped early while the delay is below half of the target and the probability below 20 %.",
    );
    keys.key("short-queue", &mut params.short_queue, "A queue of no more than this has nothing dropped early.");
    keys.key(
        "derandomise",
        &mut params.derandomise,
        "Whether drops are kept from coming too close to each other, or too far.",
    );
    optional(
        keys,
        "mark-below",
        &mut params.mark_below,
        &(0.0..=2.0),
        "ECN-capable packets are marked, not dropped, while the probability is below this; above 1: always.",
    );
    optional(
        keys,
        "scale-to-size",
        &mut params.scale_to_size,
        &(ByteCount(1)..=ByteCount(65_535)),
        "A size to whose ratio a packet's size scales its probability.",
    );
    keys.key("activation", &mut params.activation, "When PIE is on at all.");
    keys.key("draws", &mut params.draws, "Whose random numbers it draws.");
}

names! {
    PieScaling, "a scaling of PIE":
        "rfc" = PieScaling::Rfc8033, "ns3-old" = PieScaling::Ns3Old, "off" = PieScaling::None;
    PieDecay, "a decay of PIE":
        "both-zero" = PieDecay::BothZero, "both-below-half" = PieDecay::BothBelowHalf, "off" = PieDecay::None;
}

choice! {
    PieDelay, "measurement of PIE", keys;
    "timestamps", "How long the packet that left last had waited.",
        Self::Timestamps { zero_when_empty: true }, Self::Timestamps { zero_when_empty } => {
            keys.key("zero-when-empty", zero_when_empty, "Whether the delay is 0 once the queue is empty.");
        };
    "departure-rate", "The backlog over the measured departure rate.",
        Self::DepartureRate { threshold: ByteCount(16_384) }, Self::DepartureRate { threshold } => {
            keys.within("threshold", threshold, BYTES, "So much has to wait for a measurement, and to leave for its end.");
        };
    "link-rate", "The backlog over the rate of the link.", Self::LinkRate, Self::LinkRate => {};
}

choice! {
    PieBurst, "burst allowance of PIE", keys;
    "rfc", "Nothing is dropped early for a while after calm (RFC 8033 section 4.4).",
        Self::Rfc8033(Nanos(150_000_000)), Self::Rfc8033(time) => keys.within("time", time, TIME, "For how long.");
    "ns3", "The same as ns-3 does it.",
        Self::Ns3(Nanos(150_000_000)), Self::Ns3(time) => keys.within("time", time, TIME, "For how long.");
    "off", "There is none.", Self::None, Self::None => {};
}

choice! {
    ShortQueue, "short queue", keys;
    "bytes", "So many bytes.",
        Self::Bytes(ByteCount(2000)), Self::Bytes(size) => keys.within("size", size, BYTES, "How many.");
    "packets", "So many packets.",
        Self::Packets(2), Self::Packets(count) => keys.within("count", count, 0..=1_000_000_000, "How many.");
}

choice! {
    PieActivation, "activation of PIE", keys;
    "always", "It is always on.", Self::Always, Self::Always => {};
    "third-of-limit", "From when the queue is a third full until it is calm.", Self::ThirdOfLimit, Self::ThirdOfLimit => {};
    "delay", "From when the delay reaches this until it is calm.",
        Self::Delay(Nanos(1_000_000_000)), Self::Delay(above) => keys.within("above", above, TIME, "How long the delay is.");
}

pub(crate) fn pi2<K: Keys>(params: &mut Pi2Params, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, "The delay to be held.");
    keys.within("update", &mut params.update, STEP, "How often the probability is computed.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.within(
        "coupling",
        &mut params.coupling,
        FACTOR,
        "How much more often than the root scalable packets are marked.",
    );
    keys.within("max-classic", &mut params.max_classic, SHARE, "The highest probability for classic packets.");
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked, not dropped.");
    keys.within(
        "short-queue",
        &mut params.short_queue,
        BYTES,
        "A queue of no more than this has nothing dropped or marked.",
    );
}

pub(crate) fn dual_pi2<K: Keys>(params: &mut DualPi2Params, keys: &mut K) {
    keys.within("mtu", &mut params.mtu, ByteCount(1)..=ByteCount(65_535), "The size of the largest packet.");
    keys.within("target", &mut params.target, TIME, "The delay to be held in the classic queue.");
    keys.within("update", &mut params.update, STEP, "How often the probability is computed.");
    optional(keys, "first-update", &mut params.first_update, &TIME, FIRST);
    keys.within("alpha", &mut params.alpha, FACTOR, ALPHA);
    keys.within("beta", &mut params.beta, FACTOR, BETA);
    keys.within("coupling", &mut params.coupling, FACTOR, "The coupling factor k.");
    keys.within(
        "ramp-start",
        &mut params.ramp_start,
        TIME,
        "The delay in the L queue above which its packets are marked.",
    );
    keys.within("ramp-length", &mut params.ramp_length, TIME, "How much further the delay is when all are marked.");
    keys.within(
        "ramp-spares",
        &mut params.ramp_spares,
        0..=1_000_000,
        "The ramp marks nothing in a queue of so many packets.",
    );
    keys.key("scheduler", &mut params.scheduler, "Whose turn it is.");
    keys.key("even", &mut params.even, "Whether marks and drops are spread evenly, not drawn.");
    keys.key(
        "spare-short",
        &mut params.spare_short,
        "Whether both queues below two full packets are spared, as in Linux.",
    );
}

choice! {
    DualPi2Scheduler, "scheduler of DualPI2", keys;
    "weighted", "While both have packets, the classic queue gets one of so many bytes.",
        Self::WeightedRoundRobin { of: 16 }, Self::WeightedRoundRobin { of } => {
            keys.within("of", of, 2..=10_000, "Of how many.");
        };
    "time-shifted", "Who has waited longest, where packets of the L queue count as having waited longer.",
        Self::TimeShiftedFifo(Nanos(50_000_000)), Self::TimeShiftedFifo(shift) => {
            keys.within("shift", shift, TIME, "By how much.");
        };
}
