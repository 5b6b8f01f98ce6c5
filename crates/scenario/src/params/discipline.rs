//! The keys of disciplines.

use super::pie::{dual_pi2, pi2, pie};
use super::{BYTES, SHARE, STEP, TIME, optional};
use crate::keys::{Choice, KeyVisitor, Table, choice, fields};
use crate::value::names;
use queuescope_queue::{
    AredParams, CodelFlavour, CodelParams, DisciplineParams, EcnSharpParams, FqCodelParams, HashQueuesParams, Limit,
    MultiQueueParams, Placement, RedAdaptation, RedParams, RedThresholds, RedUnit, Scheduler, TailDropParams,
};
use queuescope_wire::{ByteCount, Nanos};
use std::num::{NonZeroU16, NonZeroU32};
use std::ops::RangeInclusive;

fields!(tables:; choices: DisciplineParams);

impl Choice for DisciplineParams {
    const WHAT: &'static str = "discipline";

    fn fresh() -> Self {
        Self::default()
    }

    fn options(&self) -> Vec<Self> {
        Self::defaults()
    }

    fn name(&self) -> &'static str {
        self.name()
    }

    fn about(&self) -> &'static str {
        self.about()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        match self {
            Self::TailDrop(TailDropParams { limit: _ }) => {}
            Self::Red(params) => red(params, keys),
            Self::Codel(params) => codel(params, keys),
            Self::FqCodel(params) => fq_codel(params, keys),
            Self::EcnSharp(params) => ecn_sharp(params, keys),
            Self::Pie(params) => pie(params, keys),
            Self::Pi2(params) => pi2(params, keys),
            Self::DualPi2(params) => dual_pi2(params, keys),
            Self::MultiQueue(params) => multi_queue(params, keys),
            Self::HashQueues(params) => hash_queues(params, keys),
        }
    }
}

/// The same discipline with the limit of its link.
pub(crate) fn with_limit(params: &DisciplineParams, limit: Limit) -> DisciplineParams {
    let mut params = params.clone();
    match &mut params {
        DisciplineParams::TailDrop(params) => params.limit = limit,
        DisciplineParams::Red(params) => params.limit = limit,
        DisciplineParams::Codel(params) => params.limit = limit,
        DisciplineParams::FqCodel(params) => params.limit = limit,
        DisciplineParams::EcnSharp(params) => params.limit = limit,
        DisciplineParams::Pie(params) => params.limit = limit,
        DisciplineParams::Pi2(params) => params.limit = limit,
        DisciplineParams::DualPi2(params) => params.limit = limit,
        DisciplineParams::MultiQueue(params) => params.shared_limit = limit,
        DisciplineParams::HashQueues(params) => params.shared_limit = limit,
    }
    params
}

fn red<K: KeyVisitor>(params: &mut RedParams, keys: &mut K) {
    keys.key(
        "unit",
        &mut params.unit,
        "The unit of the queue length. In bytes, large packets have a higher drop probability.",
    );
    keys.key(
        "thresholds",
        &mut params.thresholds,
        "The averages between which packets are dropped early, in `unit`; none: from `target-delay` and the link.",
    );
    keys.within(
        "target-delay",
        &mut params.target_delay,
        TIME,
        "The target of the mean sojourn time, if the thresholds follow from it.",
    );
    optional(
        keys,
        "weight",
        &mut params.weight,
        &(1e-12..=1.0),
        "The weight of an arrival in the average (w_q); none: it follows from the link.",
    );
    keys.within(
        "max-probability",
        &mut params.max_probability,
        SHARE,
        "The probability at the highest threshold (max_p).",
    );
    keys.key(
        "gentle",
        &mut params.gentle,
        "Whether the probability rises to 1 at twice the highest threshold, instead of at once.",
    );
    keys.key("wait", &mut params.wait, "Whether there are no drops for a while after a drop.");
    keys.key("nonlinear", &mut params.nonlinear, "Whether the probability rises with the square, times 1.5.");
    keys.key("adaptation", &mut params.adaptation, "Whether and how `max-probability` follows the load.");
    keys.within("mean-packet", &mut params.mean_packet, ByteCount(1)..=ByteCount(65_535), "The mean size of packets.");
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked instead of dropped.");
    keys.key(
        "hard-drop",
        &mut params.hard_drop,
        "Whether ECN-capable packets, too, are dropped above the highest threshold.",
    );
    keys.key(
        "at-egress",
        &mut params.at_egress,
        "Whether packets are judged at dequeue, by the backlog behind them. They are then marked or left alone, not dropped.",
    );
    keys.key("draws", &mut params.draws, "The source of random numbers.");
}

names! {
    RedUnit, "a unit": "packets" = RedUnit::Packets, "bytes" = RedUnit::Bytes;
    Placement, "a placement of flows": "hash" = Placement::Hash, "number" = Placement::Number;
    CodelFlavour, "a flavour of CoDel":
        "rfc" = CodelFlavour::Rfc, "linux" = CodelFlavour::Linux, "ns3" = CodelFlavour::Ns3;
}

fields!(tables: RedThresholds; choices:);

impl Table for RedThresholds {
    fn fresh() -> Self {
        Self { min: 5.0, max: 15.0 }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("min", &mut self.min, 0.0..=1e9, "Below it nothing is dropped early.");
        keys.within("max", &mut self.max, 0.0..=1e9, "At it the probability is `max-probability`.");
        keys.ensure("max", self.max >= self.min, || {
            ("the thresholds are the wrong way round".to_owned(), format!("`min` is {}", self.min))
        });
    }
}

choice! {
    RedAdaptation, "adaptation of RED", keys;
    "fixed", "Constant.", Self::Fixed, Self::Fixed => {};
    "adaptive", "Keeps the average halfway between the thresholds (Floyd, Gummadi and Shenker 2001).",
        Self::Adaptive(AredParams::default()), Self::Adaptive(params) => ared(params, keys);
    "self-configuring", "Changes by a factor when the average leaves the thresholds (Feng et al. 1999).",
        Self::SelfConfiguring { decrease: 3.0, increase: 2.0 }, Self::SelfConfiguring { decrease, increase } => {
            keys.within("decrease", decrease, 1.0..=1e6, "The divisor when the average falls below `min`.");
            keys.within("increase", increase, 1.0..=1e6, "The factor when the average rises above `max`.");
        };
}

fn ared<K: KeyVisitor>(params: &mut AredParams, keys: &mut K) {
    keys.within("interval", &mut params.interval, TIME, "The least time between two changes.");
    keys.within("alpha", &mut params.alpha, SHARE, "The increment of the probability, but at most a quarter of it.");
    keys.within("beta", &mut params.beta, SHARE, "The factor that decreases the probability.");
    optional(keys, "bottom", &mut params.bottom, &SHARE, "The lowest probability; none: as in ns-3.");
    keys.within("top", &mut params.top, SHARE, "The highest probability.");
}

/// An interval must not be zero.
const INTERVAL: RangeInclusive<Nanos> = STEP;
const FULL: NonZeroU32 = NonZeroU32::new(65_536).unwrap();

fn codel<K: KeyVisitor>(params: &mut CodelParams, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, "The sojourn time that is acceptable for longer than an interval.");
    keys.within("interval", &mut params.interval, INTERVAL, "The interval, about the longest usual round-trip time.");
    keys.within(
        "min-bytes",
        &mut params.min_bytes,
        BYTES,
        "A packet is dropped only if more than this many bytes stay behind it.",
    );
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked instead of dropped.");
    optional(
        keys,
        "ce-threshold",
        &mut params.ce_threshold,
        &TIME,
        "ECN-capable packets with a longer sojourn time are marked.",
    );
    keys.key("flavour", &mut params.flavour, "The implementation to follow: the RFC's pseudocode, Linux or ns-3.");
}

fn fq_codel<K: KeyVisitor>(params: &mut FqCodelParams, keys: &mut K) {
    optional(
        keys,
        "memory-limit",
        &mut params.memory_limit,
        &BYTES,
        "The limit of all queues together in bytes, in addition to `limit`.",
    );
    keys.within("queues", &mut params.queues, NonZeroU16::MIN..=NonZeroU16::MAX, "The number of queues.");
    keys.within(
        "quantum",
        &mut params.quantum,
        ByteCount(1)..=ByteCount(1 << 20),
        "Bytes that a queue may send in its turn.",
    );
    keys.within(
        "drop-batch",
        &mut params.drop_batch,
        NonZeroU32::MIN..=FULL,
        "The most packets that are dropped at once from the queue with the most bytes.",
    );
    keys.within("target", &mut params.target, TIME, "The sojourn time that is acceptable for longer than an interval.");
    keys.within("interval", &mut params.interval, INTERVAL, "The interval, about the longest usual round-trip time.");
    keys.within(
        "min-bytes",
        &mut params.min_bytes,
        BYTES,
        "A packet is dropped only if more than this many bytes stay behind it in its queue.",
    );
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked instead of dropped.");
    optional(
        keys,
        "ce-threshold",
        &mut params.ce_threshold,
        &TIME,
        "ECN-capable packets with a longer sojourn time are marked.",
    );
    keys.key("flavour", &mut params.flavour, "The implementation to follow: the RFC's pseudocode, Linux or ns-3.");
    keys.key("placement", &mut params.placement, "How flows are assigned to queues: by hash, or by flow number.");
}

fn ecn_sharp<K: KeyVisitor>(params: &mut EcnSharpParams, keys: &mut K) {
    let EcnSharpParams { limit: _, instant_target, persistent_target, persistent_interval } = params;
    ecn_sharp_times(keys, [instant_target, persistent_target, persistent_interval], [TIME, INTERVAL]);
}

/// The times of ECN#, as a discipline and as a switch program.
pub(super) fn ecn_sharp_times<K: KeyVisitor>(
    keys: &mut K,
    [instant_target, persistent_target, persistent_interval]: [&mut Nanos; 3],
    [targets, intervals]: [RangeInclusive<Nanos>; 2],
) {
    keys.within(
        "instant-target",
        instant_target,
        targets.clone(),
        "ECN-capable packets with a longer sojourn time are marked (ins_target).",
    );
    keys.within(
        "persistent-target",
        persistent_target,
        targets,
        "The sojourn time that is acceptable for longer than an interval (pst_target).",
    );
    keys.within(
        "persistent-interval",
        persistent_interval,
        intervals,
        "How long packets may be at or above that target before one is marked (pst_interval).",
    );
}

const MOST_QUEUES: NonZeroU16 = NonZeroU16::new(4096).unwrap();

fn multi_queue<K: KeyVisitor>(params: &mut MultiQueueParams, keys: &mut K) {
    keys.within(
        "queues",
        &mut params.queues,
        NonZeroU16::MIN..=MOST_QUEUES,
        "The number of queues. A class above the last means the last.",
    );
    keys.key("scheduler", &mut params.scheduler, "Which queue is served next.");
    keys.key("queue-limit", &mut params.limit, "The limit of each queue.");
}

fn hash_queues<K: KeyVisitor>(params: &mut HashQueuesParams, keys: &mut K) {
    keys.within("queues", &mut params.queues, NonZeroU16::MIN..=MOST_QUEUES, "The number of queues.");
    keys.key("queue-limit", &mut params.limit, "The limit of each queue.");
}

choice! {
    Scheduler, "scheduler", keys;
    "round-robin", "The queues with packets in turn, one packet each.",
        Self::RoundRobin, Self::RoundRobin => {};
    "deficit", "The queues with packets in turn, on average a quantum of bytes each.",
        Self::Deficit { quantum: ByteCount(1514) }, Self::Deficit { quantum } => {
            keys.within("quantum", quantum, ByteCount(64)..=ByteCount(1 << 20), "Bytes per turn.");
        };
    "strict-priority", "The queue with the lowest number that has packets.",
        Self::StrictPriority, Self::StrictPriority => {};
}
