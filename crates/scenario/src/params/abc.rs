//! The keys of ABC. In a scenario, a program has the same role at each port that has a queue of the scenario.

use super::{FACTOR, STEP, TIME};
use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::Written;
use crate::keys::{Field, KeyVisitor, Table, choice, fields};
use crate::read::Findings;
use queuescope_queue::{AbcParams, ActivityAqmParams, Contract, DelayClass, Missing, Others, PortRole, QueueLength};
use queuescope_text::Problem;
use queuescope_wire::{Nanos, Rate};
use std::ops::RangeInclusive;

/// Each host is an aggregate. Its contract is `reference` and `class` of its flows; for other hosts, it is the one
/// here. Delay class n has queue n.
pub(crate) fn abc<K: KeyVisitor>(params: &mut AbcParams, keys: &mut K) {
    let mut role = params.ports.first().copied().unwrap_or_else(|| PortRole::single(ActivityAqmParams::default()));
    keys.key(
        "meters",
        &mut role.meters,
        "Whether packets come from outside the domain: activity is measured and written.",
    );
    keys.key("aqm", &mut role.aqm, "Whether and how packets are dropped by their activity.");
    keys.key("strips", &mut role.strips, "Whether packets leave the domain: their activity is removed.");
    params.ports = vec![role];
    let mut reference = match params.aggregates.others {
        Others::EachHost { contract, .. } | Others::Together(contract) => contract.reference,
        Others::Inside => Contract::default().reference,
    };
    keys.key::<Rate>("reference", &mut reference, "The reference rate of hosts whose flows do not set one: R_r.");
    if let Others::EachHost { contract, .. } | Others::Together(contract) = &mut params.aggregates.others {
        contract.reference = reference;
    }
    let mut surcharges = Surcharges(params.classes.iter().map(|class| class.surcharge).collect());
    keys.key(
        "surcharges",
        &mut surcharges,
        "The surcharge of each delay class, the most urgent first: it is added to the activity. `class` of flows selects \
         the delay class; a number above the last means the last.",
    );
    let classes = (0..).zip(surcharges.0).map(|(queue, surcharge)| DelayClass { queue, surcharge });
    params.classes = classes.collect();
    keys.within("memory", &mut params.meter.memory, STEP, "The memory of the activity meter: M.");
    keys.within("least-time", &mut params.meter.least_time, STEP, "The shortest time by which bytes are divided.");
    keys.key("missing", &mut params.missing, "The activity that is assumed for packets without activity.");
    keys.key("queue-length", &mut params.queue_length, "The queue length that the AQM uses.");
}

fields!(tables: ActivityAqmParams; choices:);

/// The surcharges that edges add to the activity of each delay class; at least one.
#[derive(Debug, Clone, PartialEq)]
struct Surcharges(Vec<f64>);

/// The most delay classes: as many as there are classes of service.
const MOST_CLASSES: usize = 64;
/// The bounds of an activity in a header.
pub(crate) const ACTIVITY: RangeInclusive<f64> = -128.0..=127.0;

impl Field for Surcharges {
    fn blank() -> Self {
        Self(vec![0.0])
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        const HELP: &str = "write a surcharge for each delay class, for example [0.0, 1.0]";
        let TomlValue::List(items) = &node.value else {
            return findings.problem(|| {
                Problem::new("surcharges are a list of numbers")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help(HELP)
            });
        };
        if !(1..=MOST_CLASSES).contains(&items.len()) {
            return findings.problem(|| {
                Problem::new(format!("there must be 1 to {MOST_CLASSES} delay classes"))
                    .at(node.place.clone(), format!("this list has {}", items.len()))
                    .help(HELP)
            });
        }
        let mut surcharges = Vec::with_capacity(items.len());
        for item in items {
            let (mut surcharge, before) = (0.0, findings.count());
            surcharge.read(item, findings);
            if findings.count() == before && !ACTIVITY.contains(&surcharge) {
                findings.problem(|| {
                    Problem::new("the surcharge is out of bounds").at(item.place.clone(), "").help(format!(
                        "use {:?} to {:?}",
                        ACTIVITY.start(),
                        ACTIVITY.end()
                    ))
                });
            }
            surcharges.push(surcharge);
        }
        self.0 = surcharges;
    }

    fn write(&self) -> Written {
        let surcharges: Vec<_> = self.0.iter().map(|surcharge| format!("{surcharge:?}")).collect();
        Written::Inline(format!("[{}]", surcharges.join(", ")))
    }

    fn kind() -> ValueKind {
        ValueKind::List(Box::new(ValueKind::Number))
    }
}

impl Table for ActivityAqmParams {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within(
            "least",
            &mut self.least,
            FACTOR,
            "A packet that finds no more packets than this is accepted: Q_min.",
        );
        keys.within(
            "base",
            &mut self.base,
            FACTOR,
            "A packet of average activity is dropped if it finds more than this: Q_base.",
        );
        keys.within(
            "gamma",
            &mut self.gamma,
            FACTOR,
            "How many packets lower the threshold is for an activity higher by 1.",
        );
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
    "average", "The average activity of accepted packets.", Self::Average, Self::Average => {};
    "assumed", "A fixed activity.", Self::Assumed(0.0), Self::Assumed(activity) => {
        keys.within("activity", activity, ACTIVITY, "The activity: log2 of the rate over the reference rate.");
    };
}

choice! {
    QueueLength, "length of the queue", keys;
    "counted", "The exact length. The program drops packets that do not fit into the buffer.",
        Self::Counted { buffer: 24 }, Self::Counted { buffer } => {
            keys.within(
                "buffer",
                buffer,
                1..=1_000_000_000,
                "Packets that the queues hold together. The link's limit must be at least as large.",
            );
        };
    "register", "A register that is updated only when a packet leaves (section 5.1).", Self::Register, Self::Register => {};
}
