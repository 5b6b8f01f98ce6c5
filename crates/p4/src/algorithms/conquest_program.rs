//! ConQuest as a program that is run and printed (Chen et al., CoNEXT 2019, sections 3 and 4).

use super::conquest::{Snapshots, conquest, conquest_at_ingress};
use crate::ir::{
    ActionTable, AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input,
    InvalidProgram, MatchTable, Name, Operand, Operation, Polynomial, RegisterAction, RegisterArray, SwitchProgram,
    TableAction, TableEntries, Unit, Variable, When,
};
use crate::{Aspect, Gress, Program};
use queuescope_queue::{ActAt, ConQuestAqmParams, Curve, HoldParams, Response, Steps, WeightUnit};
use queuescope_sketch::{ConQuestParams, Estimator, Expiry, Passes};
use queuescope_wire::Nanos;
use std::ops::RangeInclusive;

/// The ECN field of a packet that is not ECN-capable (RFC 3168).
const NOT_ECT: u64 = 0b00;
/// The hash functions that snapshots can have if the ingress takes the others.
const FOR_SNAPSHOTS: usize = 2;
/// The shortest period of generated packets, in nanoseconds.
const LEAST_PERIOD: u64 = 128;
/// The longest time that a flow is acted on at ingress: half of the range of 32 bits.
const LONGEST_HOLD: u64 = (1 << 31) - 1;
/// The logarithms of windows: the number of a window is a range key.
const WINDOWS: RangeInclusive<u32> = TIME_BITS - RANGE_BITS..=26;
/// Accesses to registers in a stage of a Tofino.
const ACCESSES: usize = 4;
/// The most counts that share a group of containers with a threshold and the difference from it.
const MOST_IN_A_GROUP: usize = 14;
/// The bits of times in which windows are counted.
const TIME_BITS: u32 = 32;
/// The heaviest step of a curve: 32 bits in the units of a range key.
const LAST_STEP: f64 = (((1u64 << RANGE_BITS) - 1) << (TIME_BITS - RANGE_BITS)) as f64;
/// The most bits of a range key, and of the weight that a table of probabilities takes.
const RANGE_BITS: u32 = 16;

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
    let Snapshots { snapshots, rows, columns } = dimensions;
    let defaults = conquest_defaults();
    let sketch = ConQuestParams {
        snapshots: snapshots as usize,
        rows: rows as usize,
        columns: columns as usize,
        expiry: Expiry::Clean { passes: Passes::None },
        ..defaults.sketch
    };
    match conquest_with(&ConQuestAqmParams { sketch, act_at, ..defaults }) {
        Ok(program) => program.steps(),
        Err(_) if act_at == ActAt::Egress => conquest(dimensions),
        Err(_) => conquest_at_ingress(dimensions),
    }
}

/// ConQuest behind the queue: measures the part of the queue that the packet's flow has, and marks or drops.
///
/// Models [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with one port, [`Estimator::Inner`] and [`Expiry::Clean`]. Division and modulus are
/// slices, so the window, h and C are powers of two. A sojourn time of 2.1 s or more counts as none. `tau` and `w_T` are parameters of a table, which a control plane changes while the
/// switch runs. All ports share the snapshots.
///
/// With [`ActAt::Ingress`], a packet that is chosen sends a copy back to the ingress, which then acts on packets of its flow until the hold
/// ends. A flow is known there by a hash of 31 bits, whatever its port. Times have 32 bits: until another flow takes the entry, packets of a flow
/// are acted on for as long as the hold every 4.3 s.
///
/// # Errors
/// Names the parameter that the program cannot have, and what is possible.
pub fn conquest_with(params: &ConQuestAqmParams) -> Result<SwitchProgram, InvalidProgram> {
    let shape = Shape::new(params)?;
    let about = "measures each flow's part of the queue, and marks or drops packets of flows that have too much of it";
    let mut p =
        Builder::new(name(params), about, "Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019");
    let inputs = Inputs::new(&mut p, params.unit, shape.has_generator);
    if shape.has_generator {
        // One packet for each column and window cleans a snapshot by itself.
        p.generated_every(Nanos(1 << (shape.window - shape.columns)));
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
            |p| react(p, params, &shape, &inputs, [weight, sojourn]),
        ),
        None => react(&mut p, params, &shape, &inputs, [weight, sojourn]),
    }
    if let ActAt::Ingress(hold) = params.act_at {
        act_at_ingress(&mut p, params.response, hold, inputs.ecn);
    }
    p.build()
}

fn name(params: &ConQuestAqmParams) -> &'static str {
    if params.act_at == ActAt::Egress { "conquest" } else { "conquest-ingress" }
}

/// The logarithms of the dimensions, and what else the parameters mean for a program.
struct Shape {
    window: u32,
    snapshots: u32,
    columns: u32,
    rows: usize,
    has_generator: bool,
    threshold: u64,
    tau: u64,
}

impl Shape {
    fn new(params: &ConQuestAqmParams) -> Result<Self, InvalidProgram> {
        let sketch = &params.sketch;
        let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(name(params), key, why));
        if !sketch.window.0.is_power_of_two() || !WINDOWS.contains(&sketch.window.0.ilog2()) {
            let below = 1u64 << sketch.window.0.max(1).ilog2().clamp(*WINDOWS.start(), *WINDOWS.end());
            let is_closer_to_next =
                sketch.window.0 - below.min(sketch.window.0) > below / 2 && below < 1 << WINDOWS.end();
            let near = if is_closer_to_next { below * 2 } else { below };
            let why = format!(
                "must be a power of two from 65536 ns to 67.1 ms, such as {near} ns: a switch divides by slices of bits"
            );
            return fail("window", &why);
        }
        if !matches!(sketch.snapshots, 4 | 8 | 16) {
            return fail("snapshots", "must be 4, 8 or 16: a power of two, because a switch divides by slices of bits");
        }
        if !(1..=Polynomial::ALL.len()).contains(&sketch.rows) {
            return fail("rows", &format!("must be 1 to {}, one for each hash function", Polynomial::ALL.len()));
        }
        if !sketch.columns.is_power_of_two() || !(2..=1 << 16).contains(&sketch.columns) {
            return fail("columns", "must be a power of two from 2 to 65536, because a column is a slice of a hash");
        }
        let has_generator = match sketch.expiry {
            Expiry::Tag => {
                return fail("expiry", "must be cleaning: a switch cannot compare the tags of all snapshots at once");
            }
            Expiry::Clean { passes } => passes == Passes::Generated,
        };
        if has_generator && (sketch.window.0 >> sketch.columns.ilog2()) < LEAST_PERIOD {
            let why = format!(
                "must be at least {} ns with {} columns: a generated packet for each column comes at least {LEAST_PERIOD} ns after another",
                LEAST_PERIOD << sketch.columns.ilog2(),
                sketch.columns
            );
            return fail("window", &why);
        }
        if params.estimator != Estimator::Inner {
            return fail("estimator", "must be inner: a part of a window takes a product");
        }
        if params.behind != Nanos::ZERO {
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
                return fail("act-at.ingress.hold", "must be at most 2.14 s");
            }
        }
        if !params.changes.is_empty() {
            return fail("changes", "must be empty: the control plane makes changes, in the table of parameters");
        }
        if !matches!(params.unit, WeightUnit::Packets | WeightUnit::Bytes) {
            return fail("unit", "must be packets or bytes: a share takes a division");
        }
        if matches!(params.curve, Curve::Linear { .. } | Curve::Squared { .. }) {
            return fail(
                "curve",
                "must be a threshold or steps: a switch approximates other functions by steps (section 4.2)",
            );
        }
        if let Curve::Steps(steps) = &params.curve
            && steps.steps().last().is_some_and(|step| step.from > LAST_STEP)
        {
            return fail("curve", "must have its last step below 4294901760");
        }
        // Weights are whole numbers.
        let threshold = params.threshold.ceil();
        if threshold > f64::from(u32::MAX) {
            return fail("threshold", "must be below 2^32");
        }
        if params.tau.0 >= 1 << (TIME_BITS - 1) {
            return fail("tau", "must be below 2.147 s: a sojourn time that is longer counts as none");
        }
        Ok(Self {
            window: sketch.window.0.ilog2(),
            snapshots: sketch.snapshots.ilog2(),
            columns: sketch.columns.ilog2(),
            rows: sketch.rows,
            has_generator,
            threshold: threshold as u64,
            tau: params.tau.0,
        })
    }

    /// h.
    fn count(&self) -> usize {
        1 << self.snapshots
    }

    /// The bits of a number of windows.
    fn windows_bits(&self) -> u32 {
        TIME_BITS - self.window
    }
}

struct Inputs {
    enqueued: Operand,
    dequeued: Operand,
    /// All 48 bits of the latter.
    left: Variable,
    generated: Option<Variable>,
    ecn: Variable,
    unit: Unit,
    size: Operand,
}

impl Inputs {
    fn new(p: &mut Builder, unit: WeightUnit, has_generator: bool) -> Self {
        let enqueued = p.input(Input::Enqueued).slice(0, TIME_BITS);
        let left = p.input(Input::Dequeued);
        let generated = has_generator.then(|| p.input(Input::Generated));
        let ecn = p.input(Input::Ecn);
        Input::FLOW.into_iter().for_each(|input| _ = p.input(input));
        let (unit, size) = match unit {
            WeightUnit::Bytes => (Unit::Bytes, p.input(Input::Length).into()),
            _ => (Unit::Packets, 1.into()),
        };
        Self { enqueued, dequeued: left.slice(0, TIME_BITS), left, generated, ecn, unit, size }
    }
}

/// Updates the snapshots. Returns the flow's part of the queue.
fn weight(p: &mut Builder, shape: &Shape, inputs: &Inputs) -> Variable {
    let columns = hashes(p, shape);
    p.comment("The windows between the packet's enqueuing and the window in which it leaves (section 3.3).");
    let whole = Operation::And(inputs.dequeued, (u64::from(u32::MAX) >> shape.window << shape.window).into());
    let start = p.compute("window_start", TIME_BITS, Unit::NANOS, whole);
    let before = p.compute("before_window", TIME_BITS, Unit::NANOS, Operation::Subtract(start.into(), inputs.enqueued));
    let entries = entries(p, shape, inputs, &columns);
    p.comment("Each snapshot is written, read or cleaned, by the window (section 3.4).");
    let counts: Vec<Vec<_>> = (entries.iter().enumerate())
        .map(|(snapshot, entries)| {
            let rows = entries.iter().enumerate();
            rows.map(|(row, entry)| access(p, shape, inputs, [snapshot, row], *entry, before)).collect()
        })
        .collect();
    let weight = combine(p, shape, &counts);
    if shape.rows << shape.snapshots <= MOST_IN_A_GROUP {
        return weight;
    }
    p.comment(
        "The counts fill a group of containers. The sum leaves it, so that there is room for what it is compared with.",
    );
    p.compute("weight", 32, inputs.unit, Operation::Gather(weight.into(), 0))
}

/// The flow's column in each row.
fn hashes(p: &mut Builder, shape: &Shape) -> Vec<Variable> {
    let polynomials = Polynomial::ALL.into_iter().take(shape.rows).enumerate();
    polynomials
        .map(|(row, polynomial)| {
            p.compute(format!("hash_{row}"), shape.columns, Unit::Number, Operation::Hash(polynomial))
        })
        .collect()
}

/// The entry of each row of each snapshot: the next one to clean in the snapshot that is cleaned, otherwise that of the flow.
fn entries(p: &mut Builder, shape: &Shape, inputs: &Inputs, hashes: &[Variable]) -> Vec<Vec<Variable>> {
    p.comment("A count of packets names the next entry to clean (section 3.4).");
    let count = p.register(RegisterArray {
        name: "packets".into(),
        about: "The number of packets so far".into(),
        bits: 32,
        unit: Unit::Packets,
        entries: 1,
        initial: 0,
    });
    let one = AluExpression::Add(AluTerm::Word, AluTerm::Value(1.into()));
    let counting = RegisterAction {
        name: "count_packet".into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: one }],
        output: AluOutput::Before,
    };
    let next = p.variable("next", 32, Unit::Packets);
    p.access(count, 0, counting, Some(next));
    let entry = |snapshot| (0..shape.rows).map(move |row| format!("entry_{snapshot}_{row}"));
    let entries: Vec<Vec<_>> = (0..shape.count())
        .map(|snapshot| entry(snapshot).map(|name| p.variable(name, shape.columns, Unit::Number)).collect())
        .collect();
    let action = |p: &mut Builder, cleaned: usize| {
        p.action(format!("clean_{cleaned}"), |p| {
            for (snapshot, rows) in entries.iter().enumerate() {
                for (entry, hash) in rows.iter().zip(hashes) {
                    let cleaned = snapshot == cleaned;
                    p.set(*entry, Operation::Copy(if cleaned { next.slice(0, shape.columns) } else { (*hash).into() }));
                }
            }
        })
    };
    let actions: Vec<_> = (0..shape.count()).map(|cleaned| action(p, cleaned)).collect();
    let of_window = (0..shape.count()).map(|window| {
        let window = window as u64;
        (vec![(window, window)], (window as usize + 1) % shape.count())
    });
    p.choose_by(ActionTable {
        name: "reached".into(),
        about: "The entry that the packet reaches of each snapshot".into(),
        keys: vec![window(shape, inputs)],
        entries: of_window.collect(),
        actions,
    });
    entries
}

/// The number of the window in which the packet leaves, modulo h.
fn window(shape: &Shape, inputs: &Inputs) -> Operand {
    inputs.left.slice(shape.window, shape.snapshots)
}

/// The access of one row of a snapshot. Returns the count: zero if the snapshot is not read.
fn access(
    p: &mut Builder,
    shape: &Shape,
    inputs: &Inputs,
    [snapshot, row]: [usize; 2],
    entry: Variable,
    before: Variable,
) -> Variable {
    let name = |what: &str| Name::from(format!("{what}_{snapshot}_{row}"));
    let register = p.register(RegisterArray {
        name: name("snapshot"),
        about: format!("Row {row} of snapshot {snapshot}").into(),
        bits: 32,
        unit: inputs.unit,
        entries: 1 << shape.columns,
        initial: 0,
    });
    let count = p.variable(name("count"), 32, inputs.unit);
    let mut action = |what: &str, value: Option<AluExpression>| -> TableAction {
        let action = RegisterAction {
            name: name(what),
            conditions: Vec::new(),
            updates: value.map(|value| AluUpdate { when: When::Always, value }).into_iter().collect(),
            output: if value.is_none() { AluOutput::Before } else { AluOutput::Nothing },
        };
        p.action(name(&format!("do_{what}")), |p| p.access(register, entry, action, Some(count)))
    };
    let sum = AluExpression::AddSaturating(AluTerm::Word, AluTerm::Value(inputs.size));
    let actions = vec![
        action("write", Some(sum)),
        action("read", None),
        action("clear", Some(AluExpression::Term(AluTerm::Value(0.into())))),
    ];
    let bits = shape.windows_bits();
    let (any, positive) = ((0, (1 << bits) - 1), (1 << (bits - 1)) - 1);
    let of_window = (0..shape.count()).map(|window| {
        let age = (window + shape.count() - snapshot) % shape.count();
        let (covered, action) = match age {
            0 => (any, 0),
            age if age + 1 == shape.count() => (any, 2),
            age => ((age as u64, positive), 1),
        };
        let generated = inputs.generated.map(|_| if action == 2 { (0, 1) } else { (0, 0) });
        let window = window as u64;
        ([(window, window), covered].into_iter().chain(generated).collect(), action)
    });
    let generated = inputs.generated.map(Operand::from);
    p.choose_by(ActionTable {
        name: name("role"),
        about: format!("What the packet does with row {row} of snapshot {snapshot}").into(),
        keys: [window(shape, inputs), before.slice(shape.window, bits)].into_iter().chain(generated).collect(),
        entries: of_window.collect(),
        actions,
    });
    count
}

/// The least over the rows of each snapshot, and the sum over the snapshots. Each result takes the variable of a value that it combines: the units of a
/// group of containers read that group only, and [`MOST_IN_A_GROUP`] counts leave no room for more.
fn combine(p: &mut Builder, shape: &Shape, counts: &[Vec<Variable>]) -> Variable {
    p.comment("The least over the rows, and the sum over the snapshots, in place.");
    let by_snapshot = Combining::new(counts, |snapshot, row| (snapshot * shape.rows + row) / ACCESSES);
    let by_row = Combining::new(counts, |snapshot, row| (row * shape.count() + snapshot) / ACCESSES);
    let Combining { steps, sum, .. } = if by_row.stage < by_snapshot.stage { by_row } else { by_snapshot };
    for (one, operation) in steps {
        p.set(one, operation);
    }
    sum
}

/// In which order values are combined.
struct Combining {
    /// The results and how each is computed.
    steps: Vec<(Variable, Operation)>,
    /// The variable that has the sum.
    sum: Variable,
    /// The stage of the sum, counted from that of the first counts.
    stage: usize,
}

impl Combining {
    /// The two values that are known first are combined next, so that counts of late stages pass few others. `stage` is that of the count of a snapshot and a row.
    fn new(counts: &[Vec<Variable>], stage: impl Fn(usize, usize) -> usize) -> Self {
        let mut steps = Vec::new();
        let mut join = |mut values: Vec<(usize, Variable)>, operation: fn(Operand, Operand) -> Operation| {
            while values.len() > 1 {
                values.sort_by_key(|(stage, _)| *stage);
                let ((_, one), (stage, other)) = (values[0], values.remove(1));
                steps.push((one, operation(one.into(), other.into())));
                values[0].0 = stage + 1;
            }
            values[0]
        };
        let least = counts.iter().enumerate().map(|(snapshot, rows)| {
            let rows = rows.iter().enumerate().map(|(row, count)| (stage(snapshot, row), *count));
            join(rows.collect(), Operation::Minimum)
        });
        let least = least.collect();
        let (stage, sum) = join(least, Operation::AddSaturating);
        Self { steps, sum, stage }
    }
}

/// Marks or drops a packet that waited longer than tau, by the weight of its flow (section 4.2).
fn react(
    p: &mut Builder,
    params: &ConQuestAqmParams,
    shape: &Shape,
    inputs: &Inputs,
    [weight, sojourn]: [Variable; 2],
) {
    let tau = p.variable("tau", TIME_BITS, Unit::NANOS);
    let threshold = (params.curve == Curve::Threshold).then(|| p.variable("threshold", 32, inputs.unit));
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
        otherwise: [shape.tau].into_iter().chain(threshold.map(|_| shape.threshold)).collect(),
    });
    let is_long = Condition::compare(sojourn, Comparison::Greater, tau);
    match &params.curve {
        Curve::Steps(steps) => {
            let [chance, certain] = chance(p, inputs.unit, weight, steps);
            p.when(is_long, |p| {
                let random = p.compute("drawn", 32, Unit::Number, Operation::Random);
                let below = Condition::compare(random, Comparison::Less, chance);
                let chosen = Condition::Any(vec![Condition::compare(certain, Comparison::Equal, 1), below]);
                p.when(chosen, |p| choose(p, params, inputs.ecn));
            });
        }
        _ => {
            let Some(threshold) = threshold else { return };
            let is_heavy = Condition::compare(weight, Comparison::GreaterOrEqual, threshold);
            p.when(Condition::All(vec![is_long, is_heavy]), |p| choose(p, params, inputs.ecn));
        }
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

/// Acts on packets of flows that were fed back (section 4.2, "Act on future packets"). An array has a flow in each entry, another one the last
/// time at which it is acted on.
fn act_at_ingress(p: &mut Builder, response: Response, hold: HoldParams, ecn: Variable) {
    p.at(Gress::Ingress).of(Aspect::Reaction);
    let arrived = p.input(Input::Arrived).slice(0, TIME_BITS);
    let fed_back = p.input(Input::FedBack);
    let [_, _, of_entry, of_flow] = Polynomial::ALL;
    let entry = p.compute("held_entry", hold.registers.ilog2(), Unit::Number, Operation::Hash(of_entry));
    let hash = p.compute("flow_hash", 31, Unit::Number, Operation::Hash(of_flow));
    p.comment("No flow is zero, which an entry without a flow is.");
    let flow = p.compute("flow", 32, Unit::Number, Operation::Or(hash.into(), (1 << 31).into()));
    let mut register = |name: &'static str, about: &'static str, unit| {
        let (name, about) = (name.into(), about.into());
        p.register(RegisterArray { name, about, bits: 32, unit, entries: hold.registers.into(), initial: 0 })
    };
    let flows = register("held_flow", "The flow that is acted on", Unit::Number);
    let ends = register("held_until", "The last time at which it is", Unit::NANOS);
    let store = |name: &'static str, value: Variable| RegisterAction {
        name: name.into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: AluExpression::Term(AluTerm::Value(value.into())) }],
        output: AluOutput::Nothing,
    };
    let test = |name: &'static str, condition| RegisterAction {
        name: name.into(),
        conditions: vec![condition],
        updates: Vec::new(),
        output: AluOutput::Condition(0),
    };
    let last = Operation::Add(arrived, (hold.hold.0.wrapping_sub(1) & u64::from(u32::MAX)).into());
    let last = p.compute("last", TIME_BITS, Unit::NANOS, last);
    p.choose(
        Condition::compare(fed_back, Comparison::Equal, 1),
        |p| {
            p.comment("It goes no further. The newest flow takes the entry.");
            p.access(flows, entry, store("hold_flow", flow), None);
            p.access(ends, entry, store("hold_until", last), None);
            p.drop_packet();
        },
        |p| {
            let same = AluCondition {
                left: AluExpression::Term(AluTerm::Word),
                comparison: Comparison::Equal,
                right: AluTerm::Value(flow.into()),
            };
            let is_same = p.variable("is_same", 1, Unit::Number);
            p.access(flows, entry, test("test_flow", same), Some(is_same));
            let until = p.variable("until", TIME_BITS, Unit::NANOS);
            p.access(ends, entry, super::pie_data_plane::read("read_until"), Some(until));
            p.comment("The time that is left is below the hold, and beyond its end very large.");
            let left = p.compute("left", TIME_BITS, Unit::NANOS, Operation::Subtract(until.into(), arrived));
            let is_held = Condition::compare(left, Comparison::Less, hold.hold.0);
            let is_same = Condition::compare(is_same, Comparison::Equal, 1);
            p.when(Condition::All(vec![is_same, is_held]), |p| respond(p, response, ecn));
        },
    );
}

fn respond(p: &mut Builder, response: Response, ecn: Variable) {
    let is_capable = Condition::compare(ecn, Comparison::NotEqual, NOT_ECT);
    match response {
        Response::MarkOrDrop => p.choose(is_capable, Builder::mark_packet, Builder::drop_packet),
        Response::MarkOnly => p.when(is_capable, Builder::mark_packet),
        Response::Drop => p.drop_packet(),
    }
}
