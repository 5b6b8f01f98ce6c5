//! Programs as the steps that the placer places.

use super::action::AluOutput;
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::operation::Operation;
use super::print::{Names, condition_text, operation_text};
use super::validate::bits;
use super::variable::{Input, Operand, Variable};
use crate::program::{Act, Entry, Field, Gress, Micro, Op, Program, Register};

/// The widest constant that a gateway compares a field with by order. (Measured with the open-source compiler: 12 or 13 bits.)
const GATEWAY_ORDER: u32 = 12;

impl SwitchProgram {
    /// The steps of the program: one for each assignment, access and act, with what it reads. A gateway tests conditions in the stage of what they guard; a condition
    /// that no gateway can test is a step of its own.
    pub fn steps(&self) -> Program {
        let mut steps = Program::new(self.name, self.about);
        steps.at(Gress::Egress);
        let fields = self.variables.iter().map(|it| match it.input {
            Some(Input::Port | Input::Ecn) => vec![steps.header(it.name, it.bits)],
            Some(Input::Enqueued | Input::Dequeued) => vec![steps.leaving(it.name, it.bits)],
            None => Vec::new(),
        });
        let fields = fields.collect();
        let registers = self.registers.iter().map(|it| steps.register(it.name, it.bits, it.entries)).collect();
        let mut lowering = Lowering { program: self, steps, fields, registers, guards: Vec::new() };
        lowering.all(&self.statements);
        lowering.steps
    }
}

struct Lowering<'a> {
    program: &'a SwitchProgram,
    steps: Program,
    /// The fields that may hold each variable here: more than one after branches that assign it.
    fields: Vec<Vec<Field>>,
    registers: Vec<Register>,
    /// What the conditions around a statement read.
    guards: Vec<Field>,
}

impl Lowering<'_> {
    fn all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.steps.of(statement.aspect);
            self.one(&statement.does);
        }
    }

    fn one(&mut self, does: &Does) {
        let (program, names) = (self.program, Names::plain(self.program));
        match does {
            Does::Comment(_) => {}
            Does::Set { variable, operation } => {
                let info = &program.variables[variable.0];
                let name = format!("{} = {}", info.name, operation_text(&names, info.bits, operation));
                let reads = self.reads(operation.operands());
                let op = if *operation == Operation::Random { Op::Random } else { Op::Simple };
                self.fields[variable.0] = vec![self.steps.compute(&name, op, &reads, info.bits)];
            }
            Does::If { condition, then, otherwise } => self.branch(condition, then, otherwise),
            Does::Access { register, index, action, result } => {
                let action = &program.actions[*action];
                let conditions = action.conditions.iter().map(|_| Micro::Condition);
                let updates = action.updates.iter().map(|_| Micro::Update);
                let micros: Vec<_> = conditions.chain(updates).collect();
                let reads = self.reads(action.operands());
                let entry = self.entry(self.registers[*register], *index);
                let output = match action.output {
                    AluOutput::Before => "before",
                    AluOutput::After => "after",
                    AluOutput::Condition(_) => "whether it changed",
                };
                let name = format!("{} of {}: {output}", action.name, program.registers[*register].name);
                let given = self.steps.update(entry, &name, &micros, &reads);
                if let Some(Variable(result)) = result {
                    self.fields[*result] = vec![given];
                }
            }
            Does::Mark => self.act("mark", Act::Mark),
            Does::Drop => self.act("drop", Act::Drop),
        }
    }

    fn act(&mut self, name: &str, act: Act) {
        let reads = self.guards.clone();
        self.steps.act(name, act, &reads);
    }

    fn branch(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let outer = self.guards.len();
        self.guard(condition);
        let before = self.fields.clone();
        self.all(then);
        let after = std::mem::replace(&mut self.fields, before);
        self.all(otherwise);
        for (fields, other) in self.fields.iter_mut().zip(after) {
            for field in other {
                if !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        self.guards.truncate(outer);
    }

    /// Adds what a condition reads to the guards. What no gateway can test is a step.
    fn guard(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare { left, comparison, right } => {
                let mut reads = self.fields_of([*left, *right]);
                if !self.is_for_gateway(*left, *comparison, *right) {
                    let text = condition_text(&Names::plain(self.program), self.program, condition);
                    reads = vec![self.steps.compare(&text, &reads)];
                }
                self.guards.extend(reads);
            }
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| self.guard(part)),
        }
    }

    /// Whether a gateway can test it: equality, or the order of a narrow field and a constant.
    fn is_for_gateway(&self, left: Operand, comparison: Comparison, right: Operand) -> bool {
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        match [left, right].map(|operand| bits(self.program, operand)) {
            [Some(_), Some(_)] => is_equality,
            [Some(bits), None] | [None, Some(bits)] => is_equality || bits <= GATEWAY_ORDER,
            [None, None] => true,
        }
    }

    fn entry(&self, register: Register, index: Operand) -> Entry {
        let variable = index.variable();
        let is_port = variable.is_none_or(|it| self.program.variables[it.0].input == Some(Input::Port));
        match self.fields_of([index]).first() {
            Some(field) if !is_port => register.at(*field),
            _ => register.into(),
        }
    }

    /// The fields that operands read, and those of the conditions around.
    fn reads(&self, operands: Vec<Operand>) -> Vec<Field> {
        self.fields_of(operands).into_iter().chain(self.guards.iter().copied()).collect()
    }

    fn fields_of(&self, operands: impl IntoIterator<Item = Operand>) -> Vec<Field> {
        let variables = operands.into_iter().filter_map(Operand::variable);
        variables.flat_map(|Variable(variable)| self.fields[variable].iter().copied()).collect()
    }
}
