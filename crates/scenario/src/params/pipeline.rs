//! The keys of switch programs.

use super::abc::abc;
use super::conquest::conquest_aqm;
use super::discipline::ecn_sharp_times;
use super::p4air::p4air;
use super::{FACTOR, STEP, TIME};
use crate::keys::{Choice, KeyVisitor, Table, fields};
use crate::value::names;
use queuescope_queue::{
    AckWindowParams, CodelDpParams, DropSchedule, EcnSharpDpParams, EgressPiParams, HashToQueuesParams,
    LONGEST_PIE_TARGET, PieCpDecay, PieCpParams, PieDpParams, PieGains, PieTableLayout, PieTableParams, PipelineParams,
    Trend,
};
use queuescope_wire::{ByteCount, Nanos};
use std::ops::RangeInclusive;

fields!(tables:; choices: PipelineParams);

impl Choice for PipelineParams {
    const WHAT: &'static str = "switch program";

    fn fresh() -> Self {
        Self::HashToQueues(HashToQueuesParams::default())
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
            Self::HashToQueues(params) => hash_to_queues(params, keys),
            Self::AckWindow(params) => ack_window(params, keys),
            Self::PieCp(params) => pie_cp(params, keys),
            Self::PieDp(params) => pie_dp(params, keys),
            Self::PieTable(params) => pie_table(params, keys),
            Self::EgressPi(params) => egress_pi(params, keys),
            Self::CodelDp(params) => codel_dp(params, keys),
            Self::EcnSharpDp(params) => ecn_sharp_dp(params, keys),
            Self::ConQuestAqm(params) => conquest_aqm(params, keys),
            Self::Abc(params) => abc(params, keys),
            Self::P4air(params) => p4air(params, keys),
        }
    }
}

fn hash_to_queues<K: KeyVisitor>(params: &mut HashToQueuesParams, keys: &mut K) {
    keys.within("queues", &mut params.queues, 1..=4096, "The number of queues of each port.");
    keys.within("seed", &mut params.seed, 0..=i64::MAX as u64, "The seed of the hash function.");
}

fn ack_window<K: KeyVisitor>(params: &mut AckWindowParams, keys: &mut K) {
    keys.within("base-rtt", &mut params.base_rtt, TIME, "The round-trip time without queueing.");
    keys.within("least", &mut params.least, ByteCount(1)..=ByteCount(1 << 30), "The smallest window.");
    keys.within("idle", &mut params.idle, STEP, "A flow without data for this long loses its share.");
    keys.within("entries", &mut params.entries, 1..=1 << 20, "The number of entries of the flow table.");
}

const TARGET: &str = "The target delay.";
const ACT: &str = "Whether packets are dropped; if not, the probability is only computed.";
const TREND: &str = "The sign of the change of the delay.";

/// The targets that a register of 16 bits can have.
const REGISTER_TIME: RangeInclusive<Nanos> = Nanos::ZERO..=LONGEST_PIE_TARGET;

fn pie_cp<K: KeyVisitor>(params: &mut PieCpParams, keys: &mut K) {
    keys.within("target", &mut params.target, TIME, TARGET);
    keys.within("period", &mut params.period, STEP, "How often the control plane reads.");
    keys.within("latency", &mut params.latency, TIME, "The time from a read until the new probability is in force.");
    keys.key("gains", &mut params.gains, "The gains of the controller.");
    keys.key("decay", &mut params.decay, "When the probability decays.");
    keys.key("act", &mut params.act, ACT);
}

fn pie_dp<K: KeyVisitor>(params: &mut PieDpParams, keys: &mut K) {
    keys.within("target", &mut params.target, REGISTER_TIME, TARGET);
    keys.within("update", &mut params.update, STEP, "The period of the packet generator.");
    keys.within("alpha-shift", &mut params.alpha_shift, 0..=31, "The left shift of the distance to the target.");
    keys.within("beta-shift", &mut params.beta_shift, 0..=31, "The left shift of the change of the delay.");
    keys.key("trend", &mut params.trend, TREND);
    keys.key("act", &mut params.act, ACT);
}

fn egress_pi<K: KeyVisitor>(params: &mut EgressPiParams, keys: &mut K) {
    keys.within("target", &mut params.target, Nanos(0)..=Nanos(8_000_000), TARGET);
    keys.within("update", &mut params.update, STEP, "The time after an update when the next packet makes another one.");
    keys.within("alpha-shift", &mut params.alpha_shift, 0..=16, "The left shift of the distance to the target.");
    keys.within("beta-shift", &mut params.beta_shift, 0..=17, "The left shift of the change of the delay.");
    keys.within(
        "calm",
        &mut params.calm,
        TIME,
        "Packets with a shorter sojourn time are left alone while p' is below an eighth.",
    );
    keys.within("short", &mut params.short, TIME, "Packets with a shorter sojourn time are always left alone.");
}

/// The sojourn times that a switch compares: those of 32 bits. No packet is below a target of zero, and one has to be before anything is due.
const SOJOURN: RangeInclusive<Nanos> = Nanos(1)..=Nanos(u32::MAX as u64);
/// The intervals that a schedule of drops can have. A register counts units of 1024 ns.
const INTERVAL: RangeInclusive<Nanos> = Nanos(1_024)..=DropSchedule::LONGEST;

fn codel_dp<K: KeyVisitor>(params: &mut CodelDpParams, keys: &mut K) {
    keys.within(
        "target",
        &mut params.target,
        SOJOURN,
        "The sojourn time that is acceptable for longer than an interval.",
    );
    keys.within("interval", &mut params.interval, INTERVAL, "The interval.");
    keys.key("ecn", &mut params.ecn, "Whether ECN-capable packets are marked instead of dropped.");
}

fn ecn_sharp_dp<K: KeyVisitor>(params: &mut EcnSharpDpParams, keys: &mut K) {
    let EcnSharpDpParams { queue: _, instant_target, persistent_target, persistent_interval } = params;
    ecn_sharp_times(keys, [instant_target, persistent_target, persistent_interval], [SOJOURN, INTERVAL]);
}

fn pie_table<K: KeyVisitor>(params: &mut PieTableParams, keys: &mut K) {
    keys.within("target", &mut params.target, REGISTER_TIME, TARGET);
    keys.within(
        "max-delay",
        &mut params.max_delay,
        Nanos(1_000)..=Nanos(4_000_000),
        "The longest delay that the tables cover.",
    );
    keys.within("update", &mut params.update, STEP, "The period of the packet generator.");
    keys.key("gains", &mut params.gains, "The gains of the controller.");
    keys.key("layout", &mut params.layout, "The layout of the tables.");
    keys.key("trend", &mut params.trend, TREND);
    keys.key("act", &mut params.act, ACT);
}

names! {
    PieCpDecay, "a decay": "as-stated" = PieCpDecay::AsStated, "as-published" = PieCpDecay::AsPublished;
    PieTableLayout, "a layout": "as-stated" = PieTableLayout::AsStated, "as-published" = PieTableLayout::AsPublished;
    Trend, "a trend": "as-stated" = Trend::AsStated, "as-published" = Trend::AsPublished;
}

fields!(tables: PieGains; choices:);

impl Table for PieGains {
    fn fresh() -> Self {
        Self::tofino()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("alpha", &mut self.alpha, FACTOR, "The gain for the distance of the delay to its target, in Hz.");
        keys.within("beta", &mut self.beta, FACTOR, "The gain for the change of the delay, in Hz.");
    }
}
