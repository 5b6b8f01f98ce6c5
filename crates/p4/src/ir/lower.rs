//! Programs as the steps that the placer places.

use super::action::{AluCondition, AluExpression, AluOutput, AluTerm, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::containers::{groups, wide};
use super::gateway::is_for_gateway;
use super::operation::Operation;
use super::pair::{HALF_BITS, PAIR_BITS, PairAction};
use super::print::{Architecture, Names, condition_text, operation_text};
use super::refusal::refusal;
use super::table::{ActionTable, TableEntries};
use super::validate::bits;
use super::variable::{Input, Operand, Variable, ones};
use crate::program::{Act, Entry, Field, Gress, Match, Micro, Op, Packets, Program, Register, Special, StepAction};
use std::collections::BTreeSet;

impl SwitchProgram {
    /// The steps of the program: one for each assignment, access and act, with what it reads. A gateway tests conditions in the stage of what they guard; a condition
    /// that no gateway can test is a step of its own.
    pub fn steps(&self) -> Program {
        let mut steps = Program::new(self.name, self.about);
        let fields = self.variables.iter().map(|it| match it.input {
            Some(Input::Enqueued | Input::Dequeued | Input::Depth | Input::LengthBehind) => {
                vec![steps.leaving(&it.name, it.bits)]
            }
            Some(Input::QueueLength) => vec![steps.queue_state(&it.name, it.bits)],
            Some(_) => vec![steps.header(&it.name, it.bits)],
            None => Vec::new(),
        });
        let fields = fields.collect();
        let registers = self.registers.iter().map(|it| match it.bits {
            PAIR_BITS => steps.pair(&it.name, HALF_BITS, it.entries),
            bits => steps.register(&it.name, bits, it.entries),
        });
        let registers = registers.collect();
        let mut lowering = Lowering {
            program: self,
            steps,
            fields,
            registers,
            inputs: vec![Vec::new(); self.registers.len()],
            guards: Vec::new(),
            packets: Packets::Traffic,
            swapped: Vec::new(),
        };
        for gress in [Gress::Ingress, Gress::Egress] {
            lowering.steps.at(gress);
            lowering.all(self.at(gress));
            lowering.steps.groups.extend(groups(self, gress));
        }
        lowering.steps.containers = wide(self);
        lowering.steps.refused = refusal(self, Architecture::Tna);
        for (register, inputs) in lowering.steps.registers.iter_mut().zip(&lowering.inputs) {
            register.inputs = inputs.len() as u64;
        }
        for task in &self.tasks {
            lowering.steps.of(task.aspect).control_plane(&task.name, task.feeds_back);
        }
        lowering.steps
    }
}

/// What the unit does in an action. Conditions on the packet alone are left to a gateway, which chooses between two actions with one
/// update each. To keep the word is no update, and an average is what a special unit does.
fn micros(action: &RegisterAction) -> Vec<Micro> {
    let of_word: Vec<_> = action.conditions.iter().map(AluCondition::reads_word).collect();
    let is_chosen_before = |when: When| match when {
        When::Always => false,
        When::Holds(condition) | When::Fails(condition) => !of_word[condition],
    };
    let is_update = |value| value != AluExpression::Term(AluTerm::Word);
    let updates = || action.updates.iter().filter(|update| is_update(update.value));
    let is_average = |value| matches!(value, AluExpression::MoveTowards(..));
    let averages = updates().filter(|update| is_average(update.value)).count();
    let chosen_before = updates().filter(|update| is_chosen_before(update.when)).count();
    let changes = updates().count() - averages - chosen_before + chosen_before.min(1);
    let conditions = of_word.iter().filter(|of_word| **of_word).map(|_| Micro::Condition);
    let averages = std::iter::repeat_n(Micro::Special(Special::Average), averages);
    conditions.chain(std::iter::repeat_n(Micro::Update, changes)).chain(averages).collect()
}

/// How an action table finds its entry. Ternary memory matches a range four bits at a time, each with 16 bits of the key.
fn chosen_by(program: &SwitchProgram, table: &ActionTable) -> Match {
    let widths = table.keys.iter().map(|key| bits(program, *key).unwrap_or(0));
    let kinds = widths.enumerate().map(|(key, bits)| (table.kind(key, ones(bits)), bits));
    let kinds: Vec<_> = kinds.collect();
    let entries = table.entries.len() as u64;
    if kinds.iter().all(|(kind, _)| *kind == "exact") {
        return Match::Exact { entries, key_bits: kinds.iter().map(|(_, bits)| bits).sum(), value_bits: 0 };
    }
    let of_key = |(kind, bits): &(&str, u32)| if *kind == "range" { bits.div_ceil(4) * 16 } else { *bits };
    Match::Range { prefixes: entries, key_bits: kinds.iter().map(of_key).sum(), value_bits: 0 }
}

struct Lowering<'a> {
    program: &'a SwitchProgram,
    steps: Program,
    /// The fields that may hold each variable here: more than one after branches that assign it.
    fields: Vec<Vec<Field>>,
    registers: Vec<Register>,
    /// What the actions of each register read.
    inputs: Vec<Vec<Operand>>,
    /// What the conditions around a statement read.
    guards: Vec<Field>,
    /// The packets that take the statements.
    packets: Packets,
    /// The accesses to pairs so far: the entry, the packets, the step and its result.
    swapped: Vec<(Entry, Packets, usize, Field)>,
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
                let mut reads = self.reads(operation.operands());
                let op = match operation {
                    Operation::Random => Op::Random,
                    Operation::Gather(..) | Operation::Join(..) => Op::Hash,
                    Operation::Hash(_) | Operation::HashReversed(_) | Operation::HashPacket(_) => {
                        let hashed = operation.hashes().map_or(&[][..], |(parts, _)| parts);
                        reads.extend(self.inputs(hashed));
                        Op::Hash
                    }
                    _ => Op::Simple,
                };
                self.fields[variable.0] = vec![self.steps.compute(&name, op, &reads, info.bits)];
            }
            Does::If { condition, then, otherwise } => self.branch(condition, then, otherwise),
            Does::Access { register, index, action, result } => {
                let action = &program.actions[*action];
                let output = match action.output {
                    AluOutput::Before => ": before",
                    AluOutput::After => ": after",
                    AluOutput::Condition(_) => ": the condition",
                    AluOutput::Computed(_) => ": a value",
                    AluOutput::Nothing => "",
                };
                let name = format!("{} of {}{output}", action.name, program.registers[*register].name);
                self.access(*register, *index, &name, &[action], *result, &[]);
            }
            Does::Swap { register, index, action, result } => {
                self.swap(*register, *index, &program.pair_actions[*action], *result);
            }
            Does::Choose(table) => self.choose(&program.choices[*table]),
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
                let given = self.steps.compute(&table.name, Op::Table(found), &reads, value_bits);
                table.results.iter().for_each(|result| self.fields[result.0] = vec![given]);
            }
            Does::Mark => self.act("mark", Act::Mark),
            Does::Drop => self.act("drop", Act::Drop),
            Does::FeedBack => self.act("send a copy back", Act::FeedBack),
            Does::Push(activity) => {
                let reads = self.reads(vec![*activity]);
                self.steps.act("push the activity header", Act::Rewrite, &reads);
            }
            Does::Strip => self.act("remove the activity header", Act::Rewrite),
            Does::Report { port, delay, estimate } => {
                let reads = self.reads(vec![*port, *delay, *estimate]);
                self.steps.act("report", Act::Rewrite, &reads);
            }
            Does::Recirculate => self.act("come again", Act::FeedBack),
            Does::Enqueue(queue) => {
                let reads = self.reads(vec![*queue]);
                self.steps.compute("choose the queue", Op::Simple, &reads, 7);
            }
            Does::SetWindow(window) => {
                let reads = self.reads(vec![*window]);
                self.steps.act("write the receive window", Act::Rewrite, &reads);
            }
        }
    }

    /// One access of a register, by one of these actions.
    fn access(
        &mut self,
        register: usize,
        index: Operand,
        name: &str,
        actions: &[&RegisterAction],
        result: Option<Variable>,
        keys: &[Operand],
    ) {
        let micros = actions.iter().map(|action| micros(action)).max_by_key(Vec::len).unwrap_or_default();
        let operands: Vec<_> = actions.iter().flat_map(|action| action.operands()).collect();
        self.note_inputs(register, &operands);
        // Other branches may have set the index.
        let reads = self.reads(operands.into_iter().chain(keys.iter().copied()).chain([index]).collect());
        let entry = self.entry(self.registers[register], index);
        let given = self.steps.update(entry, name, &micros, &reads);
        if let Some(Variable(result)) = result {
            self.fields[result] = vec![given];
        }
    }

    /// One access of a pair: comparisons, and a change of both words.
    fn swap(&mut self, register: usize, index: Operand, action: &PairAction, Variable(result): Variable) {
        let micros = action.conditions.iter().map(|_| Micro::Condition).chain([Micro::Update; 2]);
        let micros: Vec<_> = micros.collect();
        let name = format!("{} of {}", action.name, self.program.registers[register].name);
        let entry = self.entry(self.registers[register], index);
        let operands = action.operands();
        self.note_inputs(register, &operands);
        let reads = self.reads(operands);
        // A packet accesses a register once. A second access is in another branch, so that the unit does one or the other.
        let same = |it: &&(Entry, Packets, usize, Field)| it.0 == entry && it.1 == self.packets;
        if let Some((_, _, step, given)) = self.swapped.iter().find(same).copied() {
            let step = &mut self.steps.steps[step];
            step.name = format!("{name} or {}", step.name);
            step.reads.extend(reads);
            if let StepAction::Access { micros: most, .. } = &mut step.does
                && most.len() < micros.len()
            {
                *most = micros;
            }
            self.fields[result] = vec![given];
            return;
        }
        let given = self.steps.update(entry, &name, &micros, &reads);
        self.swapped.push((entry, self.packets, self.steps.steps.len() - 1, given));
        self.fields[result] = vec![given];
    }

    /// Notes what the unit of a register reads of packets.
    fn note_inputs(&mut self, register: usize, operands: &[Operand]) {
        for operand in operands {
            if operand.variable().is_some() && !self.inputs[register].contains(operand) {
                self.inputs[register].push(*operand);
            }
        }
    }

    /// A table whose entries choose: one step for all assignments, and one for each register.
    fn choose(&mut self, table: &ActionTable) {
        let (program, statements) = (self.program, || table.actions.iter().flat_map(|action| &action.statements));
        let chosen_by = chosen_by(program, table);
        let (mut assigned, mut operands) = (BTreeSet::new(), table.keys.clone());
        for statement in statements() {
            if let Does::Set { variable, operation } = &statement.does {
                assigned.insert(*variable);
                operands.extend(operation.operands());
            }
        }
        let registers = statements().filter_map(|statement| match &statement.does {
            Does::Access { register, .. } => Some(*register),
            _ => None,
        });
        for register in registers.collect::<BTreeSet<_>>() {
            let accesses = statements().filter_map(|statement| match &statement.does {
                Does::Access { register: it, index, action, result } if *it == register => {
                    Some((*index, &program.actions[*action], *result))
                }
                _ => None,
            });
            let accesses: Vec<_> = accesses.collect();
            let index = accesses[0].0;
            let result = accesses.iter().find_map(|(_, _, result)| *result);
            let actions: Vec<_> = accesses.iter().map(|(_, action, _)| *action).collect();
            let name = format!("{} of {}", table.name, program.registers[register].name);
            self.access(register, index, &name, &actions, result, &table.keys);
            self.steps.with_actions(table.actions.len() as u64, chosen_by);
        }
        if !assigned.is_empty() {
            let bits = assigned.iter().map(|variable| program.variables[variable.0].bits).sum();
            let reads = self.reads(operands);
            let given = self.steps.compute(&table.name, Op::Simple, &reads, bits);
            self.steps.with_actions(table.actions.len() as u64, chosen_by);
            assigned.iter().for_each(|variable| self.fields[variable.0] = vec![given]);
        }
    }

    /// The fields of these inputs.
    fn inputs(&self, parts: &[Input]) -> Vec<Field> {
        let is_part = |number: &usize| self.program.variables[*number].input.is_some_and(|it| parts.contains(&it));
        (0..self.fields.len()).filter(is_part).flat_map(|number| self.fields[number].iter().copied()).collect()
    }

    fn act(&mut self, name: &str, act: Act) {
        let reads = self.guards.clone();
        self.steps.act(name, act, &reads);
    }

    fn branch(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let (outer, packets) = (self.guards.len(), self.packets);
        if self.selects(condition, Input::Generated) {
            self.packets = Packets::Generated;
        } else if self.selects(condition, Input::FedBack) {
            self.packets = Packets::FedBack;
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

    /// Whether a condition selects the packets for which an input is 1, and nothing else.
    fn selects(&self, condition: &Condition, input: Input) -> bool {
        let Condition::Compare { left: Operand::Variable(variable), comparison: Comparison::Equal, right } = condition
        else {
            return false;
        };
        self.program.variables[variable.0].input == Some(input) && *right == Operand::Constant(1)
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
