//! The ConQuest AQM.

use super::{TIME, optional};
use crate::describe::Kind;
use crate::dom::{Node, Raw};
use crate::explain::Written;
use crate::keys::{Field, Keys, Table, choice};
use crate::read::Findings;
use crate::traffic::LONGEST;
use crate::value::names;
use queuescope_queue::{
    ActAt, ConQuestAqmParams, ConQuestChange, Curve, HoldParams, Response, Step, Steps, WeightUnit,
};
use queuescope_sketch::Estimator;
use queuescope_text::Problem;
use queuescope_wire::Nanos;
use std::ops::RangeInclusive;

/// What a threshold may be, in any unit.
const WEIGHT: RangeInclusive<f64> = 0.0..=1e15;

/// All but how old counts go away and how windows of a sketch are weighed, which are the defaults.
pub(crate) fn conquest_aqm<K: Keys>(params: &mut ConQuestAqmParams, keys: &mut K) {
    let sketch = &mut params.sketch;
    keys.within("snapshots", &mut sketch.snapshots, 2..=64, "Snapshots of the sketch: h.");
    keys.within("rows", &mut sketch.rows, 1..=8, "Rows of each: R.");
    keys.within("columns", &mut sketch.columns, 1..=65_536, "Columns of each: C.");
    keys.within("window", &mut sketch.window, Nanos(1_000)..=*TIME.end(), "The length of a snapshot's window: T.");
    keys.key("estimator", &mut params.estimator, "Which windows count for a packet's wait.");
    keys.key("unit", &mut params.unit, "What the weight of a flow in the queue is.");
    keys.within("tau", &mut params.tau, TIME, "Packets that waited no longer are left alone.");
    keys.within(
        "behind",
        &mut params.behind,
        TIME,
        "Packets that leave less than this behind them in the queue are left alone.",
    );
    keys.within(
        "threshold",
        &mut params.threshold,
        WEIGHT,
        "The weight from which on a flow is acted on, in the unit: w_T.",
    );
    let most = params.changes.iter().filter_map(|change| change.threshold).fold(params.threshold, f64::max);
    let is_share =
        matches!(params.unit, WeightUnit::ShareOfDeparted | WeightUnit::ShareOfDelay | WeightUnit::ShareOfQueue);
    keys.ensure("threshold", !is_share || most <= 1.0, || {
        let help = "write `threshold = 0.5` for flows that have half of the queue".to_owned();
        (format!("a share is from 0 to 1, and no flow ever has {most}"), help)
    });
    keys.key("curve", &mut params.curve, "With which probability a packet of a flow of some weight is chosen.");
    keys.key("response", &mut params.response, "What becomes of a packet that was chosen.");
    keys.key("act-at", &mut params.act_at, "Where that happens.");
    keys.list(
        "changes",
        &mut params.changes,
        |_| ConQuestChange::fresh(),
        false,
        "When `tau` and `threshold` become others, as a control plane would have it, in the order of time; \
         of several at one time the last holds.",
    );
    // The first only: what comes after it may be in its place.
    let early = params.changes.windows(2).position(|two| two[1].at < two[0].at);
    let path = early.map_or("changes".to_owned(), |before| format!("changes.{}.at", before + 1));
    keys.ensure(&path, early.is_none(), || {
        let help = "none has an earlier `at` than the one before it; of several at one time the last holds";
        ("the changes are not in the order of time".to_owned(), help.to_owned())
    });
}

impl Table for ConQuestChange {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.within("at", &mut self.at, Nanos::ZERO..=LONGEST, "From when on packets meet it.");
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
    "threshold", "From the threshold on, all.", Self::Threshold, Self::Threshold => {};
    "linear", "Rising from the threshold on.",
        Self::Linear { full: 512.0 }, Self::Linear { full } => {
            keys.within("full", full, 1e-12..=1e15, "How far above the threshold it is 1.");
        };
    "squared", "Rising with the square from the threshold on.",
        Self::Squared { full: 512.0 }, Self::Squared { full } => {
            keys.within("full", full, 1e-12..=1e15, "How far above the threshold it is 1.");
        };
    "steps", "As a table says, whatever the threshold.",
        Self::Steps(Steps::default()), Self::Steps(steps) => {
            keys.key("steps", steps, "Pairs of a weight from which on, and a probability: [[100, 0.1], [500, 1.0]].");
        };
}

choice! {
    ActAt, "place of the ConQuest AQM", keys;
    "egress", "Behind the queue, on the packet that was chosen.", Self::Egress, Self::Egress => {};
    "ingress", "Before the queue, on later packets of its flow.",
        Self::Ingress(HoldParams::default()), Self::Ingress(params) => {
            keys.within("hold", &mut params.hold, TIME, "For how long it acts on a flow after it was fed back.");
            keys.within("registers", &mut params.registers, 1..=1 << 20, "Registers that remember flows.");
        };
}

impl Field for Steps {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        const HELP: &str = "write pairs of a weight and a probability: [[100, 0.1], [500, 1.0]]";
        let Raw::List(items) = &node.value else {
            return findings.problem(|| {
                Problem::new("steps are a list of pairs")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help(HELP)
            });
        };
        let mut steps = Vec::with_capacity(items.len());
        for item in items {
            let Raw::List(pair) = &item.value else {
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
                Problem::new("the steps are no curve").at(node.place.clone(), error.to_string()).help(HELP)
            }),
        }
    }

    fn write(&self) -> Written {
        let steps: Vec<_> =
            self.steps().iter().map(|step| format!("[{:?}, {:?}]", step.from, step.probability)).collect();
        Written::Inline(format!("[{}]", steps.join(", ")))
    }

    fn kind() -> Kind {
        Kind::List(Box::new(Kind::List(Box::new(Kind::Number))))
    }
}
