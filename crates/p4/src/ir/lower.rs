//! Programs as the steps that the placer places.

use super::action::{AluCondition, AluOutput, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::gateway::is_for_gateway;
use super::operation::Operation;
use super::print::{Names, condition_text, operation_text};
use super::table::TableEntries;
use super::validate::bits;
use super::variable::{Input, Operand, Variable};
use crate::program::{Act, Entry, Field, Gress, Match, Micro, Op, Packets, Program, Register};

impl SwitchProgram {
    /// The steps of the program: one for each assignment, access and act, with what it reads. A gateway tests conditions in the stage of what they guard; a condition
    /// that no gateway can test is a step of its own.
    pub fn steps(&self) -> Program {
        let mut steps = Program::new(self.name, self.about);
        steps.at(Gress::Egress);
        let fields = self.variables.iter().map(|it| match it.input {
            Some(Input::Port | Input::Generated | Input::Ecn) => vec![steps.header(it.name, it.bits)],
            Some(Input::Enqueued | Input::Dequeued) => vec![steps.leaving(it.name, it.bits)],
            None => Vec::new(),
        });
        let fields = fields.collect();
        let registers = self.registers.iter().map(|it| steps.register(it.name, it.bits, it.entries)).collect();
        let mut lowering =
            Lowering { program: self, steps, fields, registers, guards: Vec::new(), packets: Packets::Traffic };
        lowering.all(&self.statements);
        lowering.steps
    }
}

/// What the unit does in an action. Conditions on the packet alone are left to a gateway, which chooses between two actions with one
/// update each.
fn micros(action: &RegisterAction) -> Vec<Micro> {
    let of_word: Vec<_> = action.conditions.iter().map(AluCondition::reads_word).collect();
    let is_chosen_before = |when: When| match when {
        When::Always => false,
        When::Holds(condition) | When::Fails(condition) => !of_word[condition],
    };
    let chosen_before = action.updates.iter().filter(|update| is_chosen_before(update.when)).count();
    let updates = action.updates.len() - chosen_before + chosen_before.min(1);
    let conditions = of_word.iter().filter(|of_word| **of_word).map(|_| Micro::Condition);
    conditions.chain(std::iter::repeat_n(Micro::Update, updates)).collect()
}

struct Lowering<'a> {
    program: &'a SwitchProgram,
    steps: Program,
    /// The fields that may hold each variable here: more than one after branches that assign it.
    fields: Vec<Vec<Field>>,
    registers: Vec<Register>,
    /// What the conditions around a statement read.
    guards: Vec<Field>,
    /// The packets that take the statements.
    packets: Packets,
}

impl Lowering<'_> {
    fn all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.steps.of(statement.aspect).by(self.packets);
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
                let micros = micros(action);
                let reads = self.reads(action.operands());
                let entry = self.entry(self.registers[*register], *index);
                let output = match action.output {
                    AluOutput::Before => "before",
                    AluOutput::After => "after",
                    AluOutput::Condition(_) => "the condition",
                };
                let name = format!("{} of {}: {output}", action.name, program.registers[*register].name);
                let given = self.steps.update(entry, &name, &micros, &reads);
                if let Some(Variable(result)) = result {
                    self.fields[*result] = vec![given];
                }
            }
            Does::Lookup(table) => {
                let table = &program.tables[*table];
                let widths = |bits: Vec<Option<u32>>| bits.into_iter().flatten().sum::<u32>();
                let key_bits = widths(table.keys.iter().map(|key| bits(program, *key)).collect());
                let value_bits = table.results.iter().map(|result| program.variables[result.0].bits).sum();
                let found = match &table.entries {
                    TableEntries::Exact(entries) => {
                        Match::Exact { entries: entries.len() as u64, key_bits, value_bits }
                    }
                    TableEntries::Ranges(entries) => {
                        Match::of_ranges(entries.iter().map(|(range, _)| *range), key_bits, value_bits)
                    }
                };
                let reads = self.reads(table.keys.clone());
                let given = self.steps.compute(table.name, Op::Table(found), &reads, value_bits);
                table.results.iter().for_each(|result| self.fields[result.0] = vec![given]);
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
        let (outer, packets) = (self.guards.len(), self.packets);
        if self.is_of_generated(condition) {
            self.packets = Packets::Generated;
        } else {
            self.guard(condition);
        }
        let before = self.fields.clone();
        self.all(then);
        let after = std::mem::replace(&mut self.fields, before);
        self.packets = packets;
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

    /// Whether a condition selects generated packets, and nothing else.
    fn is_of_generated(&self, condition: &Condition) -> bool {
        let Condition::Compare { left: Operand::Variable(variable), comparison: Comparison::Equal, right } = condition
        else {
            return false;
        };
        self.program.variables[variable.0].input == Some(Input::Generated) && *right == Operand::Constant(1)
    }

    /// Adds what a condition reads to the guards. What no gateway can test is a step.
    fn guard(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare { left, comparison, right } => {
                let mut reads = self.fields_of([*left, *right]);
                if !is_for_gateway(self.program, (*left, *comparison, *right)) {
                    let text = condition_text(&Names::plain(self.program), self.program, condition);
                    reads = vec![self.steps.compare(&text, &reads)];
                }
                self.guards.extend(reads);
            }
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| self.guard(part)),
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
