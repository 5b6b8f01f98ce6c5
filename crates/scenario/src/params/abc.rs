//! ABC. A program of a scenario does the same with packets towards each port behind which a queue of the scenario is.

use super::{FACTOR, STEP, TIME};
use crate::keys::{Keys, Table, choice, fields};
use queuescope_queue::{AbcParams, ActivityAqmParams, Contract, Missing, Others, PortRole, QueueLength};
use queuescope_wire::{Nanos, Rate};

/// Each host is an aggregate; what it was promised, `reference` of its flows says, and of others the one here. There is one
/// delay class.
pub(crate) fn abc<K: Keys>(params: &mut AbcParams, keys: &mut K) {
    let mut role = params.ports.first().copied().unwrap_or_else(|| PortRole::single(ActivityAqmParams::default()));
    keys.key(
        "meters",
        &mut role.meters,
        "Whether packets come from outside of the domain: activity is measured and written.",
    );
    keys.key("aqm", &mut role.aqm, "Whether and how packets are dropped by their activity.");
    keys.key("strips", &mut role.strips, "Whether packets leave the domain: their activity is removed.");
    params.ports = vec![role];
    let mut reference = match params.aggregates.others {
        Others::EachHost { contract, .. } | Others::Together(contract) => contract.reference,
        Others::Inside => Contract::default().reference,
    };
    keys.key::<Rate>("reference", &mut reference, "The reference rate of a host whose flows do not say: R_r.");
    if let Others::EachHost { contract, .. } | Others::Together(contract) = &mut params.aggregates.others {
        contract.reference = reference;
    }
    keys.within("memory", &mut params.meter.memory, STEP, "How long the meter of activity remembers: M.");
    keys.within("least-time", &mut params.meter.least_time, STEP, "The shortest time by which bytes are divided.");
    keys.key("missing", &mut params.missing, "How active a packet without activity is.");
    keys.key("queue-length", &mut params.queue_length, "Which length of the queue decides.");
}

fields!(tables: ActivityAqmParams; choices:);

impl Table for ActivityAqmParams {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.within(
            "least",
            &mut self.least,
            FACTOR,
            "A packet that finds no more packets than this is accepted: Q_min.",
        );
        keys.within("base", &mut self.base, FACTOR, "Of average activity, it is dropped if it finds more: Q_base.");
        keys.within("gamma", &mut self.gamma, FACTOR, "By how many packets less for an activity higher by 1.");
        keys.within(
            "memory",
            &mut self.memory,
            Nanos(1_000)..=*TIME.end(),
            "The memory of the average activity: M_AA.",
        );
    }
}

choice! {
    Missing, "missing activity", keys;
    "average", "As active as accepted packets are on average.", Self::Average, Self::Average => {};
    "assumed", "So active.", Self::Assumed(0.0), Self::Assumed(activity) => {
        keys.within("activity", activity, -128.0..=127.0, "Its activity: log2 of its rate over the reference rate.");
    };
}

choice! {
    QueueLength, "length of the queue", keys;
    "counted", "The true one; the program drops what does not fit into the buffer.",
        Self::Counted { buffer: 24 }, Self::Counted { buffer } => {
            keys.within("buffer", buffer, 1..=1_000_000_000, "Packets that the queue holds; the link's limit must be as much.");
        };
    "register", "One that is refreshed only when a packet leaves (section 5.1).", Self::Register, Self::Register => {};
}
