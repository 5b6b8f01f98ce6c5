//! The snapshots of a program: which entries a packet reaches, what it does there, and the sum for its flow (sections 3.3 and 3.4).

use super::combining::combine;
use crate::ir::{
    ActionTable, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Condition, InvalidProgram, Name, Operand,
    Operation, Polynomial, RegisterAction, RegisterArray, TableAction, Unit, Variable, When,
};
use queuescope_sketch::{ConQuestParams, Expiry, Passes};
use queuescope_wire::Nanos;
use std::ops::RangeInclusive;

/// The shortest period of generated packets, in nanoseconds.
const LEAST_PERIOD: u64 = 128;
/// The logarithms of windows: the number of a window is a range key.
const WINDOWS: RangeInclusive<u32> = TIME_BITS - RANGE_BITS..=26;
/// The bits of times in which windows are counted.
pub(in crate::algorithms) const TIME_BITS: u32 = 32;
/// The most bits of a range key, and of the weight that a table of probabilities takes.
pub(in crate::algorithms) const RANGE_BITS: u32 = 16;

/// The logarithms of the dimensions, and who cleans.
pub(in crate::algorithms) struct Shape {
    pub window: u32,
    pub snapshots: u32,
    pub columns: u32,
    pub rows: usize,
    pub has_generator: bool,
}

/// What the snapshots need of a packet.
pub(in crate::algorithms) struct SnapshotInputs {
    /// When it came, and when it leaves: 32 bits.
    pub enqueued: Operand,
    pub dequeued: Operand,
    /// All 48 bits of the latter.
    pub left: Variable,
    pub generated: Option<Variable>,
    pub unit: Unit,
    pub size: Operand,
    /// The packets that reach the snapshots; all if there is none.
    pub only: Option<Condition>,
    /// Whether windows that the packet waited in part of count, including that in which it leaves ([`Estimator::Outer`](queuescope_sketch::Estimator)); otherwise they do not
    /// ([`Estimator::Inner`](queuescope_sketch::Estimator)).
    pub rounds_outwards: bool,
}

impl Shape {
    /// # Errors
    /// Names the dimension that a switch cannot have.
    pub fn new(program: &'static str, sketch: &ConQuestParams) -> Result<Self, InvalidProgram> {
        let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(program, key, why));
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
        Ok(Self {
            window: sketch.window.0.ilog2(),
            snapshots: sketch.snapshots.ilog2(),
            columns: sketch.columns.ilog2(),
            rows: sketch.rows,
            has_generator,
        })
    }

    /// The period of generated packets: one for each column and window cleans a snapshot by itself.
    pub fn period(&self) -> Nanos {
        Nanos(1 << (self.window - self.columns))
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

impl SnapshotInputs {
    /// Statements for the packets that reach the snapshots.
    fn when(&self, p: &mut Builder, then: impl FnOnce(&mut Builder)) {
        match &self.only {
            Some(condition) => p.when(condition.clone(), then),
            None => then(p),
        }
    }
}

/// Updates the snapshots. Returns the flow's part of the queue.
pub(in crate::algorithms) fn weight(p: &mut Builder, shape: &Shape, inputs: &SnapshotInputs) -> Variable {
    let columns = hashes(p, shape);
    let within = (1 << shape.window) - 1;
    let (name, edge) = if inputs.rounds_outwards {
        p.comment("The windows from that of the packet's enqueuing on, before that in which it leaves (section 3.3, rounded outwards).");
        ("window_end", Operation::Or(inputs.dequeued, within.into()))
    } else {
        p.comment("The windows between the packet's enqueuing and the window in which it leaves (section 3.3).");
        ("window_start", Operation::And(inputs.dequeued, (u64::from(u32::MAX) ^ within).into()))
    };
    let edge = p.compute(name, TIME_BITS, Unit::NANOS, edge);
    let before = p.compute("before_window", TIME_BITS, Unit::NANOS, Operation::Subtract(edge.into(), inputs.enqueued));
    let mut counts: Vec<Vec<_>> = Vec::new();
    inputs.when(p, |p| {
        let entries = entries(p, shape, inputs, &columns);
        p.comment("Each snapshot is written, read or cleaned, by the window (section 3.4).");
        for (snapshot, entries) in entries.iter().enumerate() {
            let rows = entries.iter().enumerate();
            counts.push(rows.map(|(row, entry)| access(p, shape, inputs, [snapshot, row], *entry, before)).collect());
        }
    });
    combine(p, inputs.unit, &counts)
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
fn entries(p: &mut Builder, shape: &Shape, inputs: &SnapshotInputs, hashes: &[Variable]) -> Vec<Vec<Variable>> {
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
fn window(shape: &Shape, inputs: &SnapshotInputs) -> Operand {
    inputs.left.slice(shape.window, shape.snapshots)
}

/// The access of one row of a snapshot. Returns the count: zero if the snapshot is not read.
fn access(
    p: &mut Builder,
    shape: &Shape,
    inputs: &SnapshotInputs,
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
    let mut action = |what: &str, value: Option<AluExpression>, is_read: bool| -> TableAction {
        let action = RegisterAction {
            name: name(what),
            conditions: Vec::new(),
            updates: value.map(|value| AluUpdate { when: When::Always, value }).into_iter().collect(),
            output: if is_read { AluOutput::Before } else { AluOutput::Nothing },
        };
        p.action(name(&format!("do_{what}")), |p| p.access(register, entry, action, Some(count)))
    };
    let sum = AluExpression::AddSaturating(AluTerm::Word, AluTerm::Value(inputs.size));
    let actions = vec![
        action("write", Some(sum), inputs.rounds_outwards),
        action("read", None, true),
        action("clear", Some(AluExpression::Term(AluTerm::Value(0.into()))), false),
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
