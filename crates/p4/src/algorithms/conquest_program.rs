//! ConQuest as a program that is run and printed (Chen et al., CoNEXT 2019, sections 3 and 4).

mod combining;
mod ingress;
mod snapshots;

use super::conquest::{Snapshots, conquest, conquest_at_ingress, conquest_standing, conquest_with_feedback};
use crate::ir::{
    Builder, Comparison, Condition, Input, InvalidProgram, MatchTable, Operation, SwitchProgram, TableEntries, Unit,
    Variable,
};
use crate::{Aspect, Program};
use ingress::{act_at_ingress, respond};
use queuescope_queue::{ActAt, ConQuestAqmParams, Curve, FlowLimit, HeldAction, HoldParams, Steps, WeightUnit};
use queuescope_sketch::{ConQuestParams, Estimator, Expiry, Passes};
use queuescope_wire::Nanos;
use snapshots::RANGE_BITS;
pub(super) use snapshots::{Shape, SnapshotInputs, TIME_BITS, weight};

/// The hash functions that snapshots can have if the ingress takes the others.
pub(super) const FOR_SNAPSHOTS: usize = 2;
/// The longest time that a flow is acted on at ingress: half of the range of 32 bits.
const LONGEST_HOLD: u64 = (1 << 31) - 1;
/// The heaviest step of a curve: 32 bits in the units of a range key.
const LAST_STEP: f64 = (((1u64 << RANGE_BITS) - 1) << (TIME_BITS - RANGE_BITS)) as f64;

/// The parameters of [`ConQuestAqm`](queuescope_queue::ConQuestAqm) that are closest to its defaults of those that a switch can have. An idle
/// link is cleaned by generated packets.
pub fn conquest_defaults() -> ConQuestAqmParams {
    let defaults = ConQuestAqmParams::default();
    let expiry = Expiry::Clean { passes: Passes::Generated };
    let sketch = ConQuestParams { window: Nanos(1 << 21), expiry, ..defaults.sketch };
    ConQuestAqmParams { sketch, estimator: Estimator::Inner, ..defaults }
}

/// The steps of ConQuest with these dimensions: those of [`conquest_with`], cleaned by traffic, where it can have them. It takes powers of two; for
/// others, those that [`conquest`] and [`conquest_at_ingress`] have in words.
pub(super) fn conquest_steps(dimensions: Snapshots, act_at: ActAt) -> Program {
    let params = ConQuestAqmParams { act_at, ..sized(conquest_defaults(), dimensions) };
    steps_or(conquest_with(&params), || match act_at {
        ActAt::Egress => conquest(dimensions),
        ActAt::Ingress(HoldParams { action: HeldAction::Respond, .. }) => conquest_at_ingress(dimensions),
        ActAt::Ingress(_) => conquest_with_feedback(dimensions),
    })
}

/// Parameters with other dimensions, cleaned by traffic.
fn sized(params: ConQuestAqmParams, dimensions: Snapshots) -> ConQuestAqmParams {
    let Snapshots { snapshots, rows, columns } = dimensions;
    let sketch = ConQuestParams {
        snapshots: snapshots as usize,
        rows: rows as usize,
        columns: columns as usize,
        expiry: Expiry::Clean { passes: Passes::None },
        ..params.sketch
    };
    ConQuestAqmParams { sketch, ..params }
}

/// The steps of a program or, if it cannot be, those in words, refused with the reason.
fn steps_or(program: Result<SwitchProgram, InvalidProgram>, in_words: impl FnOnce() -> Program) -> Program {
    program.map_or_else(
        |why| {
            let mut steps = in_words();
            steps.refused = Some(why.to_string());
            steps
        },
        |program| program.steps(),
    )
}

/// Our mark for a standing queue, in as many snapshots as the paper has: windows of 1.05 ms, and a `tau` of 1 ms.
pub fn conquest_stands_defaults() -> ConQuestAqmParams {
    let defaults = conquest_defaults();
    let sketch = ConQuestParams { window: Nanos(1 << 20), ..defaults.sketch };
    let (unit, threshold, tau) = (WeightUnit::ShareOfQueue, HALF, Nanos(1_000_000));
    ConQuestAqmParams { sketch, unit, threshold, tau, ..defaults }
}

/// The steps of the mark for a standing queue with these dimensions, likewise: others than the program can have are those that [`conquest_standing`] has in words.
pub(super) fn conquest_stands_steps(dimensions: Snapshots) -> Program {
    let params = sized(conquest_stands_defaults(), dimensions);
    steps_or(conquest_stands_with(&params, BEHIND), || conquest_standing(dimensions))
}

/// ConQuest's mark for a standing queue: marks or drops a packet whose flow has at least half of the queue that it found, if it waited longer than `tau` and
/// leaves at least `behind` packets in the queue.
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with [`WeightUnit::ShareOfQueue`] from 1/2 on, as [`conquest_with`] does. Half of a length,
/// rounded up, is a sum and a shift. A switch counts the queue behind a packet in packets, or in cells; there, `behind` is a time at the link's rate.
///
/// # Errors
/// Names the parameter that the program cannot have, and what is possible.
pub fn conquest_stands_with(params: &ConQuestAqmParams, behind: u32) -> Result<SwitchProgram, InvalidProgram> {
    let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(STANDS, key, why));
    if params.unit != WeightUnit::ShareOfQueue || params.threshold != HALF || params.curve != Curve::Threshold {
        return fail("threshold", "must be 0.5 of the unit share-of-queue, as a threshold: a half is a shift");
    }
    if params.act_at != ActAt::Egress {
        return fail("act-at", "must be egress");
    }
    if u64::from(behind) >= 1 << Input::LengthBehind.bits() {
        return fail("behind-packets", "must be below 524288: a queue length has 19 bits");
    }
    measured(params, Some(behind))
}

/// The packets behind a packet that is marked: those of 1500 bytes that a link of 10 Gb/s sends in 1 ms.
pub const BEHIND: u32 = 833;
/// The name of the program with the mark for a standing queue, and its share.
const STANDS: &str = "conquest-stands";
const HALF: f64 = 0.5;

/// ConQuest behind the queue: measures the part of the queue that the packet's flow has, and marks or drops.
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with one port, [`Estimator::Inner`] and [`Expiry::Clean`]. Division and modulus are
/// slices, so the window, h and C are powers of two. A sojourn time of 2.1 s or more counts as none. `tau` and `w_T` are parameters of a table, which a control plane changes while the
/// switch runs. All ports share the snapshots.
///
/// With [`ActAt::Ingress`], a packet that is chosen sends a copy back to the ingress, which then acts on packets of its flow until the hold
/// ends. A flow is known there by a hash of 31 bits, whatever its port. Times have 32 bits: until another flow takes the entry, packets of a flow
/// are acted on for as long as the hold every 4.3 s. The program that marks or drops by [`Response`](queuescope_queue::Response) is `conquest-ingress`; that
/// with another [`HeldAction`] is `conquest-feedback`.
///
/// # Errors
/// Names the parameter that the program cannot have, and what is possible.
pub fn conquest_with(params: &ConQuestAqmParams) -> Result<SwitchProgram, InvalidProgram> {
    if !matches!(params.unit, WeightUnit::Packets | WeightUnit::Bytes) {
        let why =
            "must be packets or bytes: a share takes a division, except half of the queue, which conquest-stands has";
        let named = ConQuestAqmParams { unit: WeightUnit::Packets, ..params.clone() };
        return Err(InvalidProgram::of_parameter(name(&named), "unit", why));
    }
    measured(params, None)
}

/// A program that measures, and marks or drops by that: for a standing queue if it has this many packets `behind`.
fn measured(params: &ConQuestAqmParams, behind: Option<u32>) -> Result<SwitchProgram, InvalidProgram> {
    let shape = Shape::new(name(params), &params.sketch)?;
    let limits = Limits::new(params)?;
    let mut p = Builder::new(
        name(params),
        about(params),
        "Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019",
    );
    let (inputs, ecn) = inputs(&mut p, params.unit, shape.has_generator);
    let standing = behind.map(|behind| Standing::new(&mut p, behind));
    if shape.has_generator {
        p.generated_every(shape.period());
    }
    p.of(Aspect::Metric);
    let weight = weight(&mut p, &shape, &inputs);
    let difference = Operation::Subtract(inputs.dequeued, inputs.enqueued);
    let sojourn = p.compute("sojourn", TIME_BITS, Unit::NANOS, difference);
    p.of(Aspect::Reaction);
    match inputs.generated {
        Some(generated) => p.choose(
            Condition::compare(generated, Comparison::Equal, 1),
            |p| {
                p.comment("It has no other purpose than cleaning (section 3.4).");
                p.drop_packet();
            },
            |p| react(p, params, &limits, (ecn, inputs.unit, standing), [weight, sojourn]),
        ),
        None => react(&mut p, params, &limits, (ecn, inputs.unit, standing), [weight, sojourn]),
    }
    if let ActAt::Ingress(hold) = params.act_at {
        act_at_ingress(&mut p, params.response, hold, ecn);
    }
    p.build()
}

/// `conquest-feedback` acts at ingress, and limits flows there by default.
pub(super) fn feedback() -> ActAt {
    ActAt::Ingress(HoldParams { action: HeldAction::Limit(FlowLimit::default()), ..HoldParams::default() })
}

fn name(params: &ConQuestAqmParams) -> &'static str {
    match params.act_at {
        _ if params.unit == WeightUnit::ShareOfQueue => STANDS,
        ActAt::Egress => "conquest",
        ActAt::Ingress(HoldParams { action: HeldAction::Respond, .. }) => "conquest-ingress",
        ActAt::Ingress(_) => "conquest-feedback",
    }
}

/// What a program does, in one sentence.
fn about(params: &ConQuestAqmParams) -> &'static str {
    match params.act_at {
        _ if params.unit == WeightUnit::ShareOfQueue => {
            "marks or drops packets of flows that have half of a queue which stands"
        }
        ActAt::Ingress(HoldParams { action: HeldAction::Drop, .. }) => {
            "measures each flow's part of the queue, and drops packets of flows that have too much of it, before the queue"
        }
        ActAt::Ingress(HoldParams { action: HeldAction::Limit(_), .. }) => {
            "measures each flow's part of the queue, and limits flows that have too much of it to a rate, before the queue"
        }
        ActAt::Ingress(HoldParams { action: HeldAction::Reroute, .. }) => {
            "measures each flow's part of the queue, and puts flows that have too much of it into another queue"
        }
        _ => "measures each flow's part of the queue, and marks or drops packets of flows that have too much of it",
    }
}

/// The parameters of the reaction.
struct Limits {
    threshold: u64,
    tau: u64,
}

impl Limits {
    fn new(params: &ConQuestAqmParams) -> Result<Self, InvalidProgram> {
        let sketch = &params.sketch;
        let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(name(params), key, why));
        if params.estimator != Estimator::Inner {
            return fail("estimator", "must be inner: a part of a window takes a product");
        }
        if params.behind != Nanos::ZERO && params.unit != WeightUnit::ShareOfQueue {
            return fail("behind", "must be 0: this program does not know how long the queue is");
        }
        if let ActAt::Ingress(hold) = params.act_at {
            if sketch.rows > FOR_SNAPSHOTS {
                return fail("rows", "must be 1 or 2 to act at ingress, which takes two more hash functions");
            }
            if !hold.registers.is_power_of_two() || !(2..=1 << 16).contains(&hold.registers) {
                return fail(
                    "act-at.ingress.registers",
                    "must be a power of two from 2 to 65536, because an entry is a slice of a hash",
                );
            }
            if hold.hold.0 > LONGEST_HOLD {
                return fail("act-at.ingress.hold", "must be at most 2.147 s");
            }
            if let HeldAction::Limit(limit) = hold.action
                && ingress::furthest(limit).saturating_add(hold.hold).0 > LONGEST_HOLD
            {
                return fail(
                    "act-at.ingress.action.limit.interval",
                    "must be at most 2.147 s, also times the packets of `burst` and with `hold` added",
                );
            }
            if hold.action != HeldAction::Respond && params.response != ConQuestAqmParams::default().response {
                return fail("response", "has no effect with this action at ingress: leave it out");
            }
        }
        if !params.changes.is_empty() {
            return fail("changes", "must be empty: the control plane makes changes, in the table of parameters");
        }
        if matches!(params.curve, Curve::Linear { .. } | Curve::Squared { .. }) {
            return fail(
                "curve",
                "must be a threshold or steps: a switch approximates other functions by steps (section 4.2)",
            );
        }
        if let Curve::Steps(steps) = &params.curve {
            if steps.steps().is_empty() {
                return fail("curve.steps.steps", "must have a step: without one, the program never acts");
            }
            if steps.steps().last().is_some_and(|step| step.from > LAST_STEP) {
                return fail("curve", "must have its last step below 4294901760");
            }
            if params.threshold != ConQuestAqmParams::default().threshold {
                return fail("threshold", "has no effect beside steps: leave it out");
            }
        }
        // Weights are whole numbers.
        let threshold = params.threshold.ceil();
        if threshold > f64::from(u32::MAX) {
            return fail("threshold", "must be below 2^32");
        }
        if params.tau.0 >= 1 << (TIME_BITS - 1) {
            return fail("tau", "must be below 2.147 s: a sojourn time that is longer counts as none");
        }
        Ok(Self { threshold: threshold as u64, tau: params.tau.0 })
    }
}

/// What the snapshots need of a packet, and its ECN field.
fn inputs(p: &mut Builder, unit: WeightUnit, has_generator: bool) -> (SnapshotInputs, Variable) {
    let enqueued = p.input(Input::Enqueued).slice(0, TIME_BITS);
    let left = p.input(Input::Dequeued);
    let generated = has_generator.then(|| p.input(Input::Generated));
    let ecn = p.input(Input::Ecn);
    Input::FLOW.into_iter().for_each(|input| _ = p.input(input));
    let (unit, size) = match unit {
        WeightUnit::Bytes => (Unit::Bytes, p.input(Input::Length).into()),
        _ => (Unit::Packets, 1.into()),
    };
    let dequeued = left.slice(0, TIME_BITS);
    (SnapshotInputs { enqueued, dequeued, left, generated, unit, size, only: None, rounds_outwards: false }, ecn)
}

/// Marks or drops a packet that waited longer than tau, by the weight of its flow (section 4.2).
fn react(
    p: &mut Builder,
    params: &ConQuestAqmParams,
    limits: &Limits,
    (ecn, unit, standing): (Variable, Unit, Option<Standing>),
    [weight, sojourn]: [Variable; 2],
) {
    if let Some(standing) = standing {
        return standing.react(p, params, limits, ecn, [weight, sojourn]);
    }
    let tau = p.variable("tau", TIME_BITS, Unit::NANOS);
    let threshold = (params.curve == Curve::Threshold).then(|| p.variable("threshold", 32, unit));
    let mut about = "The longest sojourn time without a reaction".to_owned();
    if threshold.is_some() {
        about += ", and the least weight of a flow with one";
    }
    p.look_up(MatchTable {
        name: "parameters".into(),
        about: about.into(),
        keys: Vec::new(),
        entries: TableEntries::Exact(Vec::new()),
        results: [tau].into_iter().chain(threshold).collect(),
        otherwise: [limits.tau].into_iter().chain(threshold.map(|_| limits.threshold)).collect(),
    });
    let is_long = Condition::compare(sojourn, Comparison::Greater, tau);
    match &params.curve {
        Curve::Steps(steps) => {
            let [chance, certain] = chance(p, unit, weight, steps);
            p.when(is_long, |p| {
                let random = p.compute("drawn", 32, Unit::Number, Operation::Random);
                let below = Condition::compare(random, Comparison::Less, chance);
                let chosen = Condition::Any(vec![Condition::compare(certain, Comparison::Equal, 1), below]);
                p.when(chosen, |p| choose(p, params, ecn));
            });
        }
        _ => {
            let Some(threshold) = threshold else { return };
            let is_heavy = Condition::compare(weight, Comparison::GreaterOrEqual, threshold);
            p.when(Condition::All(vec![is_long, is_heavy]), |p| choose(p, params, ecn));
        }
    }
}

/// The queue before and behind a packet.
#[derive(Clone, Copy)]
struct Standing {
    found: Variable,
    behind: Variable,
    least_behind: u32,
}

impl Standing {
    fn new(p: &mut Builder, least_behind: u32) -> Self {
        let [found, behind] = [Input::QueueLength, Input::LengthBehind].map(|input| p.input(input));
        Self { found, behind, least_behind }
    }

    /// Marks or drops a packet of a flow that has half of a queue which stands.
    fn react(
        self,
        p: &mut Builder,
        params: &ConQuestAqmParams,
        limits: &Limits,
        ecn: Variable,
        [weight, sojourn]: [Variable; 2],
    ) {
        let tau = p.variable("tau", TIME_BITS, Unit::NANOS);
        let least_behind = p.variable("least_behind", Input::LengthBehind.bits(), Unit::Packets);
        p.look_up(MatchTable {
            name: "parameters".into(),
            about: "The longest sojourn time without a reaction, and the fewest packets behind a packet with one"
                .into(),
            keys: Vec::new(),
            entries: TableEntries::Exact(Vec::new()),
            results: vec![tau, least_behind],
            otherwise: vec![limits.tau, self.least_behind.into()],
        });
        p.comment("Half of what it found, rounded up.");
        let more = p.compute("more", 32, Unit::Packets, Operation::Add(self.found.into(), 1.into()));
        let half = p.compute("half", 32, Unit::Packets, Operation::ShiftRight(more.into(), 1));
        let acts = Condition::All(vec![
            Condition::compare(sojourn, Comparison::Greater, tau),
            Condition::compare(self.found, Comparison::NotEqual, 0),
            Condition::compare(self.behind, Comparison::GreaterOrEqual, least_behind),
            Condition::compare(weight, Comparison::GreaterOrEqual, half),
        ]);
        p.when(acts, |p| respond(p, params.response, ecn));
    }
}

/// The probability for a weight, in units of 2^-32, and whether it is one. A range key has 16 bits: heavier weights count as the heaviest,
/// and if the last step is heavier, weights are in larger units, so that a step begins up to one unit too late.
fn chance(p: &mut Builder, unit: Unit, weight: Variable, steps: &Steps) -> [Variable; 2] {
    let steps = steps.steps();
    let last = steps.last().map_or(0.0, |step| step.from.max(0.0).ceil().min(f64::from(u32::MAX))) as u64;
    let shift = (last.max(1).ilog2() + 1).saturating_sub(RANGE_BITS);
    let most = ((1u64 << RANGE_BITS) - 1) << shift;
    let capped = p.compute("capped", 32, unit, Operation::Minimum(weight.into(), (most | ((1 << shift) - 1)).into()));
    let key = capped.slice(shift, RANGE_BITS);
    let first = |from: f64| ((from.max(0.0).ceil().min(f64::from(u32::MAX)) as u64) + (1 << shift) - 1) >> shift;
    let ends = steps.iter().skip(1).map(|step| first(step.from)).chain([1 << RANGE_BITS]);
    let entries = steps.iter().zip(ends).filter_map(|(step, end)| {
        let chance = (step.probability * (1u64 << 32) as f64) as u64;
        let values = vec![chance.min(u32::MAX.into()), u64::from(chance > u32::MAX.into())];
        (first(step.from) < end).then(|| ((first(step.from), end - 1), values))
    });
    let (chance, certain) = (p.variable("chance", 32, Unit::Number), p.variable("certain", 1, Unit::Number));
    p.look_up(MatchTable {
        name: "probability".into(),
        about: "The probability for a weight, in units of 2^-32, and whether it is one".into(),
        keys: vec![key],
        entries: TableEntries::Ranges(entries.collect()),
        results: vec![chance, certain],
        otherwise: vec![0, 0],
    });
    [chance, certain]
}

/// What is done with a chosen packet behind the queue.
fn choose(p: &mut Builder, params: &ConQuestAqmParams, ecn: Variable) {
    match params.act_at {
        ActAt::Egress => respond(p, params.response, ecn),
        ActAt::Ingress(_) => p.feed_back(),
    }
}
