//! Programs with one small error: tests show that comparing packets finds them.

use super::action::{AluExpression, AluOutput, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::interpreter::Interpreter;
use super::operation::Operation;
use super::validate::validate;
use super::variable::{Input, Operand, ones};
use crate::algorithms::executable;

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
                Does::Comment(_) | Does::Mark | Does::Drop => {}
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
                Does::Access { .. } | Does::Lookup(_) => {}
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
            Add, AddSaturating, And, Copy, Maximum, Minimum, Or, Random, ShiftLeft, ShiftRight, Subtract,
            SubtractSigned, Xor,
        };
        let others = match *operation {
            Copy(one) => constants(one).into_iter().map(Copy).collect(),
            Random => Vec::new(),
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
            AluOutput::Condition(_) => Vec::new(),
        };
        self.replace(&mut action.output, output);
    }

    fn expression(&mut self, expression: &mut AluExpression) {
        use AluExpression::{Add, AddSaturating, AddSigned, Subtract, SubtractSaturating, Term};
        let same = *expression;
        let others = match same {
            Term(_) => Vec::new(),
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
        mutation.statements(&mut mutant.statements);
        mutant.actions.iter_mut().for_each(|action| mutation.action(action));
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
    (0..packets).any(|packet| {
        if packet % 4 == 0 {
            for (register, words) in program.registers.iter().zip(&mut one.registers) {
                words.iter_mut().for_each(|word| *word = numbers.of(register.bits));
            }
            other.registers.clone_from(&one.registers);
        }
        let inputs = Input::ALL
            .map(|input| (input, if input == Input::Port { numbers.of(1) } else { numbers.of(input.bits()) }));
        // Most sojourn times are short.
        let width = 8 + (numbers.next() % 24) as u32;
        let sojourn = numbers.of(width);
        let dequeued = inputs.iter().find(|(input, _)| *input == Input::Dequeued).map_or(0, |(_, value)| *value);
        let read = |input| match input {
            Input::Enqueued => dequeued.wrapping_sub(sojourn) & ones(48),
            _ => inputs.iter().find(|(it, _)| *it == input).map_or(0, |(_, value)| *value),
        };
        let random = [numbers.of(32), numbers.of(32)];
        let run = |interpreter: &mut Interpreter<'_>| {
            let mut drawn = 0;
            interpreter.run(&read, &mut |bits| {
                drawn += 1;
                random[drawn % 2] & ones(bits)
            })
        };
        run(&mut one) != run(&mut other) || one.registers != other.registers
    })
}

/// Changes that change nothing, with the proof. Variables are numbered as in the program.
type Equivalent = [(&'static str, &'static str)];

/// Those of PIE in the data plane.
const OF_PIE: [(&str, &str); 8] = [
    ("Equal as GreaterOrEqual", "one bit: generated == 1"),
    ("Before as After", "an action without updates: read_delay"),
    ("Equal as GreaterOrEqual", "one bit: up == 1"),
    ("Fails(0) as Always", "the first update is made where the condition holds"),
    ("After as Before", "the output is not used: change_probability"),
    ("Before as After", "the output is not used: keep_random_here"),
    ("Before as After", "the output is not used: store_delay"),
    ("Before as After", "an action without updates: read_probability"),
];

/// Those of the shifts of PIE_DP.
const OF_SHIFTS: [(&str, &str); 6] = [
    (
        "GreaterOrEqual as Greater",
        "delay = target: the distance is 0, and so is alpha; with either sign, the step is beta in its own direction",
    ),
    ("Constant(125) as Constant(126)", "the same"),
    (
        "Subtract(Constant(125), Variable(Variable(4))) as SubtractSigned(Constant(125), Variable(Variable(4)))",
        "both numbers are below 2^15 where delay < 125",
    ),
    ("GreaterOrEqual as Greater", "delay = delay before: the change is 0, and so is beta; the same as for alpha"),
    ("GreaterOrEqual as Greater", "alpha = beta: the step is 0"),
    (
        "Subtract(Variable(Variable(10)), Variable(Variable(11))) as SubtractSigned(Variable(Variable(10)), Variable(Variable(11)))",
        "beta <= alpha < 2^25",
    ),
];

const OF_EGRESS_PI: [(&str, &str); 12] = [
    ("Equal as GreaterOrEqual", "one bit: long == 1"),
    (
        "Add(Variable(Variable(9)), Variable(Variable(10))) as AddSaturating(Variable(Variable(9)), Variable(Variable(10)))",
        "alpha < 2^19 and beta < 2^30",
    ),
    (
        "Subtract(Variable(Variable(11)), Constant(62464)) as SubtractSigned(Variable(Variable(11)), Constant(62464))",
        "both numbers are below 2^31",
    ),
    ("Equal as GreaterOrEqual", "one bit: due == 1"),
    (
        "Xor(Variable(Variable(19)), Constant(2147483648)) as Or(Variable(Variable(19)), Constant(2147483648))",
        "half is below 2^31",
    ),
    ("Equal as LessOrEqual", "ecn == 0"),
    ("Equal as GreaterOrEqual", "one bit: larger[31:31] == 1"),
    ("NotEqual as Greater", "excess != 0"),
    ("Equal as LessOrEqual", "one bit: excess[31:31] == 0"),
    ("Equal as LessOrEqual", "where p' is an eighth or more, delay >= short holds if delay >= calm does"),
    ("Equal as GreaterOrEqual", "the same"),
    ("Equal as LessOrEqual", "ecn == 0"),
];

fn equivalent(program: &str) -> Vec<&'static Equivalent> {
    match program {
        "pie-dp" => vec![&OF_PIE, &OF_SHIFTS],
        "pie-table" => vec![&OF_PIE],
        "egress-pi" => vec![&OF_EGRESS_PI],
        _ => Vec::new(),
    }
}

/// Every change of one operation, constant, comparison, branch, statement or register action is seen, except those that change nothing.
#[test]
fn mutants_are_caught() {
    for program in executable().expect("the defaults fit") {
        let mutants = mutants(&program);
        let missed = mutants.iter().filter(|(_, mutant)| !is_caught(&program, mutant, 200_000));
        let mut missed: Vec<_> = missed.map(|(made, _)| made.as_str()).collect();
        let equivalent = equivalent(program.name).into_iter().flatten();
        let mut equivalent: Vec<_> = equivalent.map(|(made, _)| *made).collect();
        println!("{}: of {} mutants, {} change nothing", program.name, mutants.len(), equivalent.len());
        missed.sort_unstable();
        equivalent.sort_unstable();
        assert_eq!(missed, equivalent, "{}", program.name);
        assert!(mutants.len() > 50, "{}", mutants.len());
    }
}
