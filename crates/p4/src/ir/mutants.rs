//! Programs with one small error: tests show that comparing packets finds them.

use super::action::{AluExpression, AluOutput, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::hash::Polynomial;
use super::interpreter::Interpreter;
use super::operation::Operation;
use super::table::ActionTable;
use super::validate::validate;
use super::variable::{Input, Operand, ones};
use crate::Gress;
use crate::algorithms::{
    AbcCoreParams, AbcEdgeParams, abc_core_with, abc_edge_with, abc_strip_with, codel_dp_with, conquest_defaults,
    conquest_with, ecn_sharp_dp_with, executable, printqueue_monitor_with, printqueue_windows_with, step_with,
};
use queuescope_queue::{
    ActAt, CodelDpParams, ConQuestAqmParams, DropSchedule, EcnSharpDpParams, HoldParams, SwitchAqmParams,
    SwitchAverage, SwitchMeterParams,
};
use queuescope_sketch::{CellWindowsParams, DepthStackParams};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Changes the `wanted`-th thing that can be changed. Counts down, so that one walk through a program makes one mutant.
struct Mutation {
    left: usize,
    made: Option<String>,
}

impl Mutation {
    /// Whether the next change is the one.
    fn here(&mut self) -> bool {
        let here = self.left == 0 && self.made.is_none();
        self.left = self.left.wrapping_sub(1);
        here
    }

    fn statements(&mut self, statements: &mut Vec<Statement>) {
        for place in 0..statements.len() {
            if !matches!(statements[place].does, Does::Comment(_)) && self.here() {
                self.made = Some(format!("without {:?}", statements.remove(place).does));
                return;
            }
            match &mut statements[place].does {
                Does::Comment(_) | Does::Mark | Does::Drop | Does::FeedBack | Does::Push(_) | Does::Strip => {}
                Does::Set { operation, .. } => self.operation(operation),
                Does::If { condition, then, otherwise } => {
                    self.condition(condition);
                    if self.here() {
                        self.made = Some(format!("branches of {condition:?}"));
                        std::mem::swap(then, otherwise);
                    }
                    self.statements(then);
                    self.statements(otherwise);
                }
                // Actions are changed by themselves, and entries by those who make them.
                Does::Access { .. } | Does::Lookup(_) | Does::Choose(_) => {}
            }
        }
    }

    fn replace<T: Clone + std::fmt::Debug>(&mut self, place: &mut T, others: impl IntoIterator<Item = T>) {
        for other in others {
            if self.here() {
                self.made = Some(format!("{place:?} as {other:?}"));
                *place = other;
                return;
            }
        }
    }

    fn operation(&mut self, operation: &mut Operation) {
        use Operation::{
            Add, AddSaturating, And, Copy, Hash, Maximum, Minimum, Or, Random, ShiftLeft, ShiftRight, Subtract,
            SubtractSigned, Xor,
        };
        let others = match *operation {
            Copy(one) => constants(one).into_iter().map(Copy).collect(),
            Random => Vec::new(),
            Hash(polynomial) => Polynomial::ALL.into_iter().map(Hash).filter(|it| *it != Hash(polynomial)).collect(),
            ShiftLeft(one, by) => vec![ShiftLeft(one, by + 1), ShiftLeft(one, by.wrapping_sub(1)), ShiftRight(one, by)],
            ShiftRight(one, by) => {
                vec![ShiftRight(one, by + 1), ShiftRight(one, by.wrapping_sub(1)), ShiftLeft(one, by)]
            }
            Add(a, b) => vec![Subtract(a, b), AddSaturating(a, b), Copy(a), Copy(b)],
            AddSaturating(a, b) => vec![Add(a, b), Subtract(a, b), Copy(a), Copy(b)],
            Subtract(a, b) => vec![Subtract(b, a), Add(a, b), SubtractSigned(a, b), Copy(a)],
            SubtractSigned(a, b) => vec![SubtractSigned(b, a), Subtract(a, b), Add(a, b)],
            Minimum(a, b) => vec![Maximum(a, b), Copy(a), Copy(b)],
            Maximum(a, b) => vec![Minimum(a, b), Copy(a), Copy(b)],
            And(a, b) | Or(a, b) | Xor(a, b) => vec![And(a, b), Or(a, b), Xor(a, b), Copy(a)],
        };
        let same = *operation;
        let with_constant = |of: &dyn Fn(Operand) -> Operation, b| constants(b).into_iter().map(of).collect::<Vec<_>>();
        let more = match same {
            Subtract(a, b) => with_constant(&|b| Subtract(a, b), b),
            Minimum(a, b) => with_constant(&|b| Minimum(a, b), b),
            Xor(a, b) => with_constant(&|b| Xor(a, b), b),
            _ => Vec::new(),
        };
        self.replace(operation, others.into_iter().chain(more).filter(|other| *other != same));
    }

    fn condition(&mut self, condition: &mut Condition) {
        match condition {
            Condition::Compare { comparison, right, .. } => {
                self.comparison(comparison);
                let others = constants(*right);
                self.replace(right, others);
            }
            Condition::All(parts) => {
                parts.iter_mut().for_each(|part| self.condition(part));
                let any = Condition::Any(parts.clone());
                self.replace(condition, [any]);
            }
            Condition::Any(parts) => {
                parts.iter_mut().for_each(|part| self.condition(part));
                let all = Condition::All(parts.clone());
                self.replace(condition, [all]);
            }
        }
    }

    fn comparison(&mut self, comparison: &mut Comparison) {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let same = *comparison;
        let all = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
        self.replace(comparison, all.into_iter().filter(|other| *other != same));
    }

    /// The actions of a table, and its entries: each does without, takes another action, or ends elsewhere.
    fn table(&mut self, table: &mut ActionTable) {
        table.actions.iter_mut().for_each(|action| self.statements(&mut action.statements));
        for place in 0..table.entries.len() {
            if self.here() {
                self.made = Some(format!("without the entry {:?}", table.entries.remove(place)));
                return;
            }
            let (ranges, action) = table.entries[place].clone();
            let mut others: Vec<_> =
                (0..table.actions.len()).filter(|it| *it != action).map(|it| (ranges.clone(), it)).collect();
            for (key, (low, high)) in ranges.iter().enumerate() {
                let lower = [low.wrapping_sub(1), low + 1].map(|low| (low, *high));
                for range in lower.into_iter().chain([high.wrapping_sub(1), high + 1].map(|high| (*low, high))) {
                    let mut ranges = ranges.clone();
                    ranges[key] = range;
                    others.push((ranges, action));
                }
            }
            self.replace(&mut table.entries[place], others);
        }
    }

    fn action(&mut self, action: &mut RegisterAction) {
        for condition in &mut action.conditions {
            self.comparison(&mut condition.comparison);
            self.expression(&mut condition.left);
        }
        for place in 0..action.updates.len() {
            if self.here() {
                self.made = Some(format!("without {:?}", action.updates.remove(place)));
                return;
            }
            let when = match action.updates[place].when {
                When::Holds(condition) => vec![When::Fails(condition), When::Always],
                When::Fails(condition) => vec![When::Holds(condition), When::Always],
                When::Always => Vec::new(),
            };
            self.replace(&mut action.updates[place].when, when);
            self.expression(&mut action.updates[place].value);
        }
        let output = match action.output {
            AluOutput::Before => vec![AluOutput::After],
            AluOutput::After => vec![AluOutput::Before],
            AluOutput::Condition(_) | AluOutput::Nothing => Vec::new(),
        };
        self.replace(&mut action.output, output);
    }

    fn expression(&mut self, expression: &mut AluExpression) {
        use AluExpression::{Add, AddSaturating, AddSigned, MoveTowards, Subtract, SubtractSaturating, Term};
        let same = *expression;
        let others = match same {
            Term(_) => Vec::new(),
            MoveTowards(to, shift) => vec![MoveTowards(to, shift + 1), MoveTowards(to, shift - 1), Term(to)],
            Add(a, b) | AddSaturating(a, b) | AddSigned(a, b) | Subtract(a, b) | SubtractSaturating(a, b) => {
                vec![
                    Add(a, b),
                    AddSaturating(a, b),
                    AddSigned(a, b),
                    Subtract(a, b),
                    SubtractSaturating(a, b),
                    Term(a),
                    Term(b),
                ]
            }
        };
        self.replace(expression, others.into_iter().filter(|other| *other != same));
    }
}

/// A constant that is one larger or smaller.
fn constants(operand: Operand) -> Vec<Operand> {
    match operand {
        Operand::Constant(value) => {
            [value.checked_add(1), value.checked_sub(1)].into_iter().flatten().map(Operand::Constant).collect()
        }
        Operand::Variable(_) | Operand::Slice { .. } => Vec::new(),
    }
}

/// All valid programs that differ in one place, with what is changed.
fn mutants(program: &SwitchProgram) -> Vec<(String, SwitchProgram)> {
    let mut mutants = Vec::new();
    for left in 0.. {
        let mut mutant = program.clone();
        let mut mutation = Mutation { left, made: None };
        mutation.statements(&mut mutant.ingress);
        mutation.statements(&mut mutant.statements);
        mutant.actions.iter_mut().for_each(|action| mutation.action(action));
        mutant.choices.iter_mut().for_each(|table| mutation.table(table));
        let Some(made) = mutation.made else { return mutants };
        if validate(&mutant).is_ok() {
            mutants.push((made, mutant));
        }
    }
    mutants
}

/// Random numbers (xorshift64*, Vigna 2016), of which many are at the ends of their range.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number of `bits` bits: any, a small one, a large one, or one beside the middle.
    fn of(&mut self, bits: u32) -> u64 {
        let any = self.next();
        let small = any >> 8 & 3;
        let number = match any & 7 {
            0 => small,
            1 => ones(bits).wrapping_sub(small),
            2 => (1u64 << (bits - 1)).wrapping_sub(2).wrapping_add(small),
            3 => any >> (64 - bits) >> ((any >> 16) % u64::from(bits)),
            _ => any >> (64 - bits),
        };
        number & ones(bits)
    }
}

/// Whether packets show a difference in what happens to them, or in a register. Registers and random numbers take any values.
fn is_caught(program: &SwitchProgram, mutant: &SwitchProgram, packets: usize) -> bool {
    let (mut one, mut other) = (Interpreter::new(program, 2), Interpreter::new(mutant, 2));
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let has_schedule = program.registers.iter().any(|register| register.name == "last_below");
    let schedule = has_schedule.then(|| DropSchedule::new(DropSchedule::LONGEST));
    // PrintQueue compares times with those of earlier packets, and levels: numbers of few bits meet.
    let is_printqueue = program.name.starts_with("printqueue");
    (0..packets).any(|packet| {
        let few = |bits: u32| if is_printqueue && packet / 4 % 8 != 0 { bits.min(4) } else { bits };
        // Some times are around the middle of their range.
        let middle = if is_printqueue && packet / 4 % 8 == 1 { (1 << 31) - 8 } else { 0 };
        if packet % 4 == 0 {
            for (register, words) in program.registers.iter().zip(&mut one.registers) {
                words.iter_mut().for_each(|word| *word = numbers.of(few(register.bits)) + middle);
            }
            other.registers.clone_from(&one.registers);
        }
        let inputs = program.variables.iter().filter_map(|it| it.input);
        // Few ports and flows, so that packets meet what others left, and times before the queue with their highest bit alone.
        let bits = |input| match input {
            Input::Port if is_printqueue => 2,
            Input::Port | Input::Source | Input::Destination | Input::Ports | Input::Protocol | Input::ArrivalPort => 1,
            // The epochs of ABC are in the higher bits.
            Input::Arrived if program.name != "abc-edge" => 32,
            input => few(input.bits()),
        };
        let inputs = inputs.map(|input| (input, numbers.of(bits(input))));
        let inputs: Vec<_> = inputs.collect();
        // Most sojourn times are short.
        // Most compare sojourn times of 32 bits with constants.
        let compares_times = !["pie", "egress-pi", "printqueue"].iter().any(|name| program.name.starts_with(name));
        let widths = if compares_times { 25 } else { 24 };
        let width = 8 + (numbers.next() % widths) as u32;
        let sojourn = numbers.of(width);
        let dequeued = inputs.iter().find(|(input, _)| *input == Input::Dequeued).map_or(0, |(_, value)| *value);
        // Many packets leave at the start of a window, and some where the highest of 32 bits changes.
        let dequeued = match dequeued >> 45 {
            _ if !compares_times => dequeued + middle,
            0 | 1 => dequeued & !0xffff,
            2 => dequeued & !0xffff_ffff | 1 << 31 | dequeued & 0x1_ffff,
            _ => dequeued,
        };
        if let Some(schedule) = &schedule
            && packet % 4 == 2
        {
            // Around the end of the table, and around the numbers that are due there.
            let elapsed =
                u64::from(schedule.end()) + ((numbers.next() % 3) << schedule.tail()) + numbers.next() % 4 - 2;
            let count = u64::from(schedule.due(elapsed as u32)) + numbers.next() % 3 - 1;
            let words = [(dequeued >> 10).wrapping_sub(elapsed) & ones(32), count];
            for interpreter in [&mut one, &mut other] {
                interpreter.registers.iter_mut().zip(words).for_each(|(register, word)| register.fill(word));
            }
        }
        let read = |input| match input {
            Input::Dequeued => dequeued,
            Input::Enqueued => dequeued.wrapping_sub(sojourn) & ones(48),
            // Most queues are short, and some as long as ABC distinguishes.
            Input::QueueLength => match inputs.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value) {
                length if length & 0x300 == 0 => 508 + (length & 7),
                length => length & if length & 0xc00 == 0 { ones(19) } else { 63 },
            },
            _ => inputs.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value),
        };
        if packet % 4 == 0 && program.name.starts_with("abc") {
            near_the_limits(program, &mut one, &read, &mut numbers);
            other.registers.clone_from(&one.registers);
        }
        let random = [numbers.of(32), numbers.of(32)];
        let gresses = if program.has_ingress() { &[Gress::Ingress, Gress::Egress][..] } else { &[Gress::Egress] };
        let run = |interpreter: &mut Interpreter<'_>| {
            let mut drawn = 0;
            let mut random = |bits| {
                drawn += 1;
                random[drawn % 2] & ones(bits)
            };
            gresses.iter().map(|gress| interpreter.run_at(*gress, &read, &mut random)).collect::<Vec<_>>()
        };
        run(&mut one) != run(&mut other) || one.registers != other.registers
    })
}

/// Sets most registers of ABC to words at which the next packet shows a difference.
fn near_the_limits(
    program: &SwitchProgram,
    interpreter: &mut Interpreter<'_>,
    read: &dyn Fn(Input) -> u64,
    numbers: &mut Numbers,
) {
    let (arrived, meter) = (Nanos(read(Input::Arrived)), SwitchMeterParams::default());
    let first = u64::from(SwitchMeterParams::FIRST);
    let window = arrived.0 >> meter.window & 3;
    let place = (arrived.0 >> meter.tick() & (first - 1) | first) << window;
    let activity = |activity: u64| activity << 16 & u64::from(u32::MAX) ^ 1 << 31;
    let behind = 20u64.wrapping_sub(read(Input::QueueLength).min(511)) << 4;
    let limits = [activity(read(Input::Activity)), activity(read(Input::Activity).wrapping_sub(behind))];
    for (register, words) in program.registers.iter().zip(&mut interpreter.registers) {
        for word in words {
            let kind = numbers.next();
            let small = kind >> 8 & 3;
            *word = match (&*register.name, kind & 7) {
                ("last_epoch", 0..6) => u64::from(meter.epoch(arrived)).wrapping_sub(small),
                ("begin_of_even" | "begin_of_odd", 0..3) => place.wrapping_sub(small),
                ("begin_of_even" | "begin_of_odd", 3..6) => (first << 4).wrapping_sub(small << 4),
                ("sum_of_even" | "sum_of_odd", 0..3) => kind >> 55,
                ("average_activity", 0..6) => limits[kind as usize & 1].wrapping_sub(1).wrapping_add(small),
                _ => *word,
            } & ones(register.bits);
        }
    }
}

/// Changes that change nothing, how many there are, and the proof. Variables are numbered as in the program. Three dots stand for any beginning.
type Equivalent = [(&'static str, usize, &'static str)];

/// Those of PIE in the data plane.
const OF_PIE: [(&str, usize, &str); 8] = [
    ("Equal as GreaterOrEqual", 1, "one bit: generated == 1"),
    ("Before as After", 1, "an action without updates: read_delay"),
    ("Equal as GreaterOrEqual", 1, "one bit: up == 1"),
    ("Fails(0) as Always", 1, "the first update is made where the condition holds"),
    ("After as Before", 1, "the output is not used: change_probability"),
    ("Before as After", 1, "the output is not used: keep_random_here"),
    ("Before as After", 1, "the output is not used: store_delay"),
    ("Before as After", 1, "an action without updates: read_probability"),
];

/// Those of the shifts of PIE_DP.
const OF_SHIFTS: [(&str, usize, &str); 6] = [
    (
        "GreaterOrEqual as Greater",
        1,
        "delay = target: the distance is 0, and so is alpha; with either sign, the step is beta in its own direction",
    ),
    ("Constant(125) as Constant(126)", 1, "the same"),
    (
        "Subtract(Constant(125), Variable(Variable(4))) as SubtractSigned(Constant(125), Variable(Variable(4)))",
        1,
        "both numbers are below 2^15 where delay < 125",
    ),
    ("GreaterOrEqual as Greater", 1, "delay = delay before: the change is 0, and so is beta; the same as for alpha"),
    ("GreaterOrEqual as Greater", 1, "alpha = beta: the step is 0"),
    (
        "Subtract(Variable(Variable(10)), Variable(Variable(11))) as SubtractSigned(Variable(Variable(10)), Variable(Variable(11)))",
        1,
        "beta <= alpha < 2^25",
    ),
];

/// Those of PIE_CP.
const OF_PIE_CP: [(&str, usize, &str); 2] = [
    ("Before as After", 1, "an action without updates: read_probability"),
    ("Before as After", 1, "the output is not used: store_delay"),
];

/// Those of the step.
const OF_STEP: [(&str, usize, &str); 1] = [("NotEqual as Greater", 1, "ecn != 0")];

/// Those of CoDel_DP and ECN#_DP.
const OF_SCHEDULE: [(&str, usize, &str); 6] = [
    (
        "Before as After",
        3,
        "an action without updates, read_time, or an output that is not used: keep_time, begin_count",
    ),
    ("Equal as GreaterOrEqual", 1, "one bit: due == 1"),
    (
        "Minimum(Variable(Variable(7)), Constant(2104328192)) as Minimum(Variable(Variable(7)), Constant(2104328193))",
        1,
        "the key has the bits from 2^15 on, and the end is a multiple of that",
    ),
    (
        "Add(Variable(Variable(9)), Variable(Variable(12))) as AddSaturating(Variable(Variable(9)), Variable(Variable(12)))",
        1,
        "at most 512 and at most 2^32 / 2^21",
    ),
    ("Add(Word, Value(Constant(1))) as AddSaturating(Word, Value(Constant(1)))", 1, "the word is below scheduled"),
    ("Add(Word, Value(Constant(1))) as AddSigned(Word, Value(Constant(1)))", 1, "the same, which is below 2^31"),
];

/// Those of CoDel_DP alone.
const OF_CODEL: [(&str, usize, &str); 1] = [("Equal as LessOrEqual", 1, "ecn == 0")];

/// Those of ConQuest.
const OF_CONQUEST: [(&str, usize, &str); 8] = [
    ("Before as After", 8, "an action without updates: read"),
    ("...(0, 1)], 1)", 16, "a generated packet is dropped, whatever it reads"),
    ("...(0, 32767), (0, 0)], 1)", 8, "read in one row only: the count of the other is zero, and so is the least"),
    ("...(1, 32767), (0, 0)], 1)", 8, "the same"),
    ("...(1, 32768), (0, 0)], 1)", 8, "the same"),
    ("...(2, 32768), (0, 0)], 1)", 8, "the same"),
    ("Equal as GreaterOrEqual", 1, "one bit: generated == 1"),
    ("NotEqual as Greater", 1, "ecn != 0"),
];

/// Those of ConQuest that acts at ingress, with one row.
const OF_CONQUEST_INGRESS: [(&str, usize, &str); 6] = [
    ("Equal as GreaterOrEqual", 3, "one bit: generated == 1, fed_back == 1, is_same == 1"),
    ("NotEqual as Greater", 1, "ecn != 0"),
    ("...(0, 32767), (0, 0)], 1)", 4, "a packet that covers no whole window waited no longer than tau, which is two"),
    ("Before as After", 5, "an action without updates: read, read_until"),
    ("...(0, 1)], 1)", 8, "a generated packet is dropped, whatever it reads"),
    (
        "Or(Variable(Variable(29)), Constant(2147483648)) as Xor(Variable(Variable(29)), Constant(2147483648))",
        1,
        "the hash has 31 bits",
    ),
];

/// Those of the check of arrivals of ABC.
const OF_ARRIVALS: [(&str, usize, &str); 1] =
    [("Equal as GreaterOrEqual", 3, "one bit: malformed == 1, has_activity == 1, outside == 1")];

/// Those of ABC's edge.
const OF_ABC_EDGE: [(&str, usize, &str); 8] = [
    ("Before as After", 4, "an action without updates: keep_bytes_even, keep_bytes_odd, keep_time_even, keep_time_odd"),
    ("Equal as GreaterOrEqual", 1, "one bit: outside == 1"),
    ("Equal as LessOrEqual", 1, "one bit: the parity of the epoch is 0"),
    (
        "Or(Variable(Variable(8)), Constant(1048576)) as Xor(Variable(Variable(8)), Constant(1048576))",
        1,
        "within has 20 bits",
    ),
    (
        "Subtract(Constant(1048576), Variable(Variable(23))) as SubtractSigned(Constant(1048576), Variable(Variable(23)))",
        1,
        "before was shifted by 4: both numbers are below 2^31",
    ),
    (
        "Subtract(Variable(Variable(7)), Variable(Variable(11))) as SubtractSigned(Variable(Variable(7)), Variable(Variable(11)))",
        1,
        "the epoch has 15 bits, so that a difference stops at its upper end only, where both results are 2 or more",
    ),
    (
        "SubtractSigned(Variable(Variable(30)), Variable(Variable(29))) as Subtract(Variable(Variable(30)), Variable(Variable(29)))",
        1,
        "the logarithm of bytes is below 2^13, and that of the reference is -2204",
    ),
    (
        "SubtractSigned(Variable(Variable(31)), Variable(Variable(32))) as Subtract(Variable(Variable(31)), Variable(Variable(32)))",
        1,
        "the same: the result is between -2^13 and 2^14",
    ),
];

/// Those of ABC's core, with either average.
const OF_ABC_CORE: [(&str, usize, &str); 3] = [
    ("Equal as GreaterOrEqual", 1, "one bit: has_activity == 1"),
    ("NotEqual as Greater", 1, "average != 0"),
    (
        "Subtract(Constant(20), Slice { of: Variable(7), low: 0, bits: 16 }) as SubtractSigned(Constant(20), Slice { of: Variable(7), low: 0, bits: 16 })",
        1,
        "the queue counts as at most 511",
    ),
];

/// That of the mean.
const OF_ABC_MEAN: [(&str, usize, &str); 1] = [("Equal as LessOrEqual", 1, "word == 0")];

/// That of ABC's exit.
const OF_ABC_STRIP: [(&str, usize, &str); 1] = [("Equal as GreaterOrEqual", 1, "one bit: has_activity == 1")];

const OF_EGRESS_PI: [(&str, usize, &str); 12] = [
    ("Equal as GreaterOrEqual", 1, "one bit: long == 1"),
    (
        "Add(Variable(Variable(9)), Variable(Variable(10))) as AddSaturating(Variable(Variable(9)), Variable(Variable(10)))",
        1,
        "alpha < 2^19 and beta < 2^30",
    ),
    (
        "Subtract(Variable(Variable(11)), Constant(62464)) as SubtractSigned(Variable(Variable(11)), Constant(62464))",
        1,
        "both numbers are below 2^31",
    ),
    ("Equal as GreaterOrEqual", 1, "one bit: due == 1"),
    (
        "Xor(Variable(Variable(19)), Constant(2147483648)) as Or(Variable(Variable(19)), Constant(2147483648))",
        1,
        "half is below 2^31",
    ),
    ("Equal as LessOrEqual", 1, "ecn == 0"),
    ("Equal as GreaterOrEqual", 1, "one bit: larger[31:31] == 1"),
    ("NotEqual as Greater", 1, "excess != 0"),
    ("Equal as LessOrEqual", 1, "one bit: excess[31:31] == 0"),
    ("Equal as LessOrEqual", 1, "where p' is an eighth or more, delay >= short holds if delay >= calm does"),
    ("Equal as GreaterOrEqual", 1, "the same"),
    ("Equal as LessOrEqual", 1, "ecn == 0"),
];

/// Those of PrintQueue's time windows.
const OF_WINDOWS: [(&str, usize, &str); 1] = [("NotEqual as Greater", 1, "old_times_0 != 0")];

/// Those of its queue monitor.
const OF_MONITOR: [(&str, usize, &str); 2] = [
    ("Holds(0) as Always", 1, "the word is the level otherwise"),
    ("Equal as GreaterOrEqual", 1, "one bit: changes == 1"),
];

fn equivalent(program: &str) -> Vec<&'static Equivalent> {
    match program {
        "pie-cp" => vec![&OF_PIE_CP],
        "pie-dp" => vec![&OF_PIE, &OF_SHIFTS],
        "pie-table" => vec![&OF_PIE],
        "egress-pi" => vec![&OF_EGRESS_PI],
        "conquest" => vec![&OF_CONQUEST],
        "conquest-ingress" => vec![&OF_CONQUEST_INGRESS],
        "codel-dp" => vec![&OF_SCHEDULE, &OF_CODEL],
        "ecn-sharp-dp" => vec![&OF_SCHEDULE, &OF_STEP],
        "step" => vec![&OF_STEP],
        "printqueue-windows" => vec![&OF_WINDOWS],
        "printqueue-monitor" => vec![&OF_MONITOR],
        "abc-edge" => vec![&OF_ARRIVALS, &OF_ABC_EDGE],
        "abc-core" => vec![&OF_ARRIVALS, &OF_ABC_CORE, &OF_ABC_MEAN],
        "abc-core-median" => vec![&OF_ARRIVALS, &OF_ABC_CORE],
        "abc-strip" => vec![&OF_ARRIVALS, &OF_ABC_STRIP],
        _ => Vec::new(),
    }
}

/// ConQuest with few columns, and a threshold that a few packets reach. `tau` is two windows, so that one window may or may not matter, and a
/// power of two, so that sojourn times are at it.
fn small_conquest(act_at: ActAt, rows: usize) -> SwitchProgram {
    let mut params = ConQuestAqmParams { act_at, ..conquest_defaults() };
    params.sketch.rows = rows;
    params.sketch.columns = 2;
    params.sketch.window = Nanos(1 << 16);
    params.tau = Nanos(1 << 17);
    params.threshold = 3.0;
    conquest_with(&params).expect("it fits")
}

/// All programs, in dimensions for which values at the limits are common.
fn programs() -> Vec<SwitchProgram> {
    let hold = HoldParams { registers: 2, hold: Nanos(2) };
    // A long interval, so that few are due behind the end of the table.
    let (short, interval) = (Nanos(1 << 14), Nanos(u64::from(DropSchedule::LONGEST) << 10));
    let codel = CodelDpParams { target: short, interval, ..CodelDpParams::default() };
    let ecn_sharp = EcnSharpDpParams {
        instant_target: Nanos(1 << 17),
        persistent_target: short,
        persistent_interval: interval,
        ..EcnSharpDpParams::default()
    };
    let cells = CellWindowsParams { cell_bits: 0, index_bits: 1, alpha: 1, windows: 2 };
    let steps = DepthStackParams { step_bits: 1, level_bits: 1 };
    let small = [
        codel_dp_with(&codel).expect("it fits"),
        ecn_sharp_dp_with(&ecn_sharp).expect("it fits"),
        printqueue_windows_with(&cells, 1).expect("it fits"),
        printqueue_monitor_with(&steps, 1).expect("it fits"),
        step_with(Nanos(1 << 14)).expect("it fits"),
        small_conquest(ActAt::Egress, 2),
        small_conquest(ActAt::Ingress(hold), 1),
    ];
    let edge = AbcEdgeParams {
        meter: SwitchMeterParams { least_time: Nanos(1 << 13), ..SwitchMeterParams::default() },
        inside: vec![1],
        ..AbcEdgeParams::default()
    };
    let core = |average| {
        let aqm = SwitchAqmParams { average, ..SwitchAqmParams::default() };
        abc_core_with(&AbcCoreParams { aqm, outside: vec![1] }).expect("it fits")
    };
    let abc = [
        abc_edge_with(&edge).expect("it fits"),
        core(SwitchAverage::MEAN),
        core(SwitchAverage::MEDIAN),
        abc_strip_with(&[1]).expect("it fits"),
    ];
    let small: Vec<_> = abc.into_iter().chain(small).collect();
    let others = executable().expect("the defaults fit").into_iter();
    let others = others.filter(|program| small.iter().all(|it| it.name != program.name));
    small.clone().into_iter().rev().chain(others).collect()
}

/// Every change of one operation, constant, comparison, branch, statement or register action is seen, except those that change nothing.
#[test]
fn mutants_are_caught() {
    for program in programs() {
        let mutants = mutants(&program);
        let mut proven: BTreeMap<&str, usize> = BTreeMap::new();
        let equivalent = equivalent(program.name).into_iter().flatten();
        equivalent.for_each(|(made, count, _)| *proven.entry(made).or_default() += count);
        let is = |made: &str, proven: &str| {
            proven.strip_prefix("...").map_or(made == proven, |ending| made.ends_with(ending))
        };
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for (made, mutant) in &mutants {
            let proven = proven.keys().find(|proven| is(made, proven));
            // Fewer packets for those that change nothing, and for the others with the same description.
            let packets = if proven.is_some() { 20_000 } else { 200_000 };
            if !is_caught(&program, mutant, packets) {
                *found.entry(proven.copied().unwrap_or(made)).or_default() += 1;
            }
        }
        println!("{}: of {} mutants, {} change nothing", program.name, mutants.len(), proven.values().sum::<usize>());
        assert_eq!(found, proven, "{}", program.name);
        assert!(mutants.len() > 10, "{}", mutants.len());
    }
}
