//! The keys of the ConQuest AQM.

use super::{STEP, TIME, optional};
use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::Written;
use crate::keys::{Field, KeyVisitor, Table, choice};
use crate::read::Findings;
use crate::traffic::LONGEST;
use crate::value::names;
use queuescope_queue::{
    ActAt, ConQuestAqmParams, ConQuestChange, Curve, FlowLimit, HeldAction, HoldParams, Response, Step, Steps,
    WeightUnit,
};
use queuescope_sketch::Estimator;
use queuescope_text::Problem;
use queuescope_wire::Nanos;
use std::ops::RangeInclusive;

/// The bounds of a threshold, in any unit.
const WEIGHT: RangeInclusive<f64> = 0.0..=1e15;

/// All parameters except the expiry and the weights of the sketch, which have their defaults.
pub(crate) fn conquest_aqm<K: KeyVisitor>(params: &mut ConQuestAqmParams, keys: &mut K) {
    let sketch = &mut params.sketch;
    keys.within("snapshots", &mut sketch.snapshots, 2..=64, "The number of snapshots of the sketch: h.");
    keys.within("rows", &mut sketch.rows, 1..=8, "The rows of each snapshot: R.");
    keys.within("columns", &mut sketch.columns, 1..=65_536, "The columns of each snapshot: C.");
    keys.within("window", &mut sketch.window, Nanos(1_000)..=*TIME.end(), "The length of a snapshot's window: T.");
    keys.key("estimator", &mut params.estimator, "The windows that count for a packet's sojourn time.");
    keys.key("unit", &mut params.unit, "The unit of a flow's weight.");
    keys.within("tau", &mut params.tau, TIME, "Packets with at most this sojourn time are left alone.");
    keys.within("behind", &mut params.behind, TIME, "Packets that leave a shorter backlog behind are left alone.");
    keys.within(
        "threshold",
        &mut params.threshold,
        WEIGHT,
        "The lowest weight at which the AQM acts on a flow, in `unit`: w_T.",
    );
    let most = params.changes.iter().filter_map(|change| change.threshold).fold(params.threshold, f64::max);
    let is_share =
        matches!(params.unit, WeightUnit::ShareOfDeparted | WeightUnit::ShareOfDelay | WeightUnit::ShareOfQueue);
    keys.ensure("threshold", !is_share || most <= 1.0, || {
        let help = "write `threshold = 0.5` for flows that have half of the queue".to_owned();
        (format!("a share is from 0 to 1, so no flow reaches {most}"), help)
    });
    keys.key(
        "curve",
        &mut params.curve,
        "The probability with which a packet is chosen, as a function of its flow's weight.",
    );
    keys.key("response", &mut params.response, "What happens to a chosen packet.");
    keys.key("act-at", &mut params.act_at, "Where that happens.");
    let responds = match params.act_at {
        ActAt::Egress => true,
        ActAt::Ingress(hold) => hold.action == HeldAction::Respond,
    };
    keys.ensure("response", responds || params.response == ConQuestAqmParams::default().response, || {
        let help = "leave it out, or write `act-at.ingress.action = \"respond\"`";
        ("the action at ingress leaves no response to choose".to_owned(), help.to_owned())
    });
    keys.list(
        "changes",
        &mut params.changes,
        |_| ConQuestChange::fresh(),
        false,
        "Changes of `tau` and `threshold` at given times, as by a control plane, in order of time. Of several at the same \
         time, the last holds.",
    );
    // Only the first one out of order, because those after it may be right.
    let early = params.changes.windows(2).position(|two| two[1].at < two[0].at);
    let path = early.map_or("changes".to_owned(), |before| format!("changes.{}.at", before + 1));
    keys.ensure(&path, early.is_none(), || {
        let help = "sort them by `at`; of several at the same time, the last holds";
        ("the changes are not in order of time".to_owned(), help.to_owned())
    });
}

impl Table for ConQuestChange {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within("at", &mut self.at, Nanos::ZERO..=LONGEST, "The time of the change.");
        keys.required("at");
        optional(keys, "tau", &mut self.tau, &TIME, "The new `tau`; none: as before.");
        optional(keys, "threshold", &mut self.threshold, &WEIGHT, "The new `threshold`; none: as before.");
        keys.ensure("tau", self.tau.is_some() || self.threshold.is_some(), || {
            ("the change changes nothing".to_owned(), "write `tau` or `threshold`, or both".to_owned())
        });
    }
}

names! {
    WeightUnit, "a unit of weights":
        "packets" = WeightUnit::Packets, "bytes" = WeightUnit::Bytes,
        "share-of-departed" = WeightUnit::ShareOfDeparted, "share-of-delay" = WeightUnit::ShareOfDelay,
        "share-of-queue" = WeightUnit::ShareOfQueue;
    Estimator, "an estimator":
        "inner" = Estimator::Inner, "outer" = Estimator::Outer, "overlap" = Estimator::Overlap;
    Response, "a response":
        "mark-or-drop" = Response::MarkOrDrop, "mark-only" = Response::MarkOnly, "drop" = Response::Drop;
}

choice! {
    Curve, "curve of the ConQuest AQM", keys;
    "threshold", "1 from the threshold on.", Self::Threshold, Self::Threshold => {};
    "linear", "Linear above the threshold.",
        Self::Linear { full: 512.0 }, Self::Linear { full } => {
            keys.within("full", full, 1e-12..=1e15, "The distance above the threshold at which the probability is 1.");
        };
    "squared", "Quadratic above the threshold.",
        Self::Squared { full: 512.0 }, Self::Squared { full } => {
            keys.within("full", full, 1e-12..=1e15, "The distance above the threshold at which the probability is 1.");
        };
    "steps", "A table, independent of the threshold.",
        Self::Steps(Steps::default()), Self::Steps(steps) => {
            keys.key("steps", steps, "Pairs of a lowest weight and a probability: [[100, 0.1], [500, 1.0]].");
        };
}

choice! {
    ActAt, "place of the ConQuest AQM", keys;
    "egress", "Behind the queue, on the chosen packet.", Self::Egress, Self::Egress => {};
    "ingress", "Before the queue, on later packets of its flow.",
        Self::Ingress(HoldParams::default()), Self::Ingress(params) => {
            keys.within("hold", &mut params.hold, TIME, "How long ingress acts on a flow after feedback.");
            keys.within("registers", &mut params.registers, 1..=1 << 20, "Registers that remember flows.");
            keys.key("action", &mut params.action, "What happens to packets of these flows.");
        };
}

choice! {
    HeldAction, "action on a held flow", keys;
    "respond", "What `response` says.", Self::Respond, Self::Respond => {};
    "drop", "They are dropped.", Self::Drop, Self::Drop => {};
    "limit", "They pass at most at a rate; others are dropped.",
        Self::Limit(FlowLimit::default()), Self::Limit(limit) => {
            keys.within("interval", &mut limit.interval, STEP, "The time from one packet of a flow to the next at this rate.");
            keys.within("burst", &mut limit.burst, 1..=65_536, "The packets of a flow that may pass at once.");
        };
    "reroute", "They enter another queue of the port; both are served in turn.", Self::Reroute, Self::Reroute => {};
}

impl Field for Steps {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        const HELP: &str = "write pairs of a weight and a probability: [[100, 0.1], [500, 1.0]]";
        let TomlValue::List(items) = &node.value else {
            return findings.problem(|| {
                Problem::new("steps are a list of pairs")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help(HELP)
            });
        };
        let mut steps = Vec::with_capacity(items.len());
        for item in items {
            let TomlValue::List(pair) = &item.value else {
                return findings
                    .problem(|| Problem::new("a step is a pair").at(item.place.clone(), "not a pair").help(HELP));
            };
            let [weight, share] = pair.as_slice() else {
                return findings
                    .problem(|| Problem::new("a step is a pair").at(item.place.clone(), "not a pair").help(HELP));
            };
            let (mut from, mut probability) = (0.0, 0.0);
            from.read(weight, findings);
            probability.read(share, findings);
            steps.push(Step { from, probability });
        }
        match Self::new(steps) {
            Ok(steps) => *self = steps,
            Err(error) => findings.problem(|| {
                Problem::new("the steps are not a curve").at(node.place.clone(), error.to_string()).help(HELP)
            }),
        }
    }

    fn write(&self) -> Written {
        let steps: Vec<_> =
            self.steps().iter().map(|step| format!("[{:?}, {:?}]", step.from, step.probability)).collect();
        Written::Inline(format!("[{}]", steps.join(", ")))
    }

    fn kind() -> ValueKind {
        ValueKind::List(Box::new(ValueKind::List(Box::new(ValueKind::Number))))
    }
}
