//! Running programs.

use super::action::AluOutput;
use super::builder::{Does, Statement, SwitchProgram};
use super::hash::{Polynomial, ReplacedHash};
use super::operation::Operation;
use super::table::TableEntries;
use super::variable::{Input, NOTES, Operand, Variable, ones};

use crate::Gress;
use std::collections::BTreeMap;

/// Runs a program: the reference of what it does.
#[derive(Debug, Clone)]
pub struct Interpreter<'a> {
    program: &'a SwitchProgram,
    pub(super) registers: Vec<Vec<u64>>,
    /// The exact entries of each table.
    exact: Vec<BTreeMap<&'a [u64], &'a [u64]>>,
    hash: ReplacedHash,
    /// The values of all variables after the last packet.
    variables: Vec<u64>,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketFate {
    /// Whether it is dropped.
    pub dropped: bool,
    /// Whether it is marked with CE.
    pub marked: bool,
    /// Whether a copy of it goes back to the part before the queue.
    pub fed_back: bool,
    /// The activity of a header that it gets.
    pub pushed: Option<u16>,
    /// Whether its activity header is removed.
    pub stripped: bool,
    /// The queue that it enters, if the program chooses one.
    pub queue: Option<u8>,
    /// The receive window that it gets, and the checksum with it.
    pub window: Option<[u16; 2]>,
    /// Whether it passes the part before the queue again.
    pub recirculated: bool,
    /// Its note at the end.
    pub note: [u16; NOTES],
    /// Where it is sent from a switch off the path, and with what.
    pub reported: Option<PacketReport>,
}

/// What a switch off the path sends to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketReport {
    /// The port of the collector.
    pub port: u16,
    /// How long the packet was in the router, in nanoseconds.
    pub delay: u32,
    /// The estimate: bytes of its flow that were in the queue before it.
    pub estimate: u32,
}

/// The variables of one packet, and what happens to it.
struct Execution<'a, 'b> {
    interpreter: &'a mut Interpreter<'b>,
    input: &'a dyn Fn(Input) -> u64,
    random: &'a mut dyn FnMut(u32) -> u64,
    fate: PacketFate,
}

impl<'a> Interpreter<'a> {
    /// All registers have their initial values. Each has at most `entries` words, for programs that are run for a few ports only.
    pub fn new(program: &'a SwitchProgram, entries: u64) -> Self {
        let registers = program.registers.iter();
        let words = registers.map(|register| vec![register.initial; register.entries.min(entries) as usize]).collect();
        let exact = program.tables.iter().map(|table| match &table.entries {
            TableEntries::Exact(entries) => entries.iter().map(|(key, values)| (&key[..], &values[..])).collect(),
            TableEntries::Ranges(_) => BTreeMap::new(),
        });
        let hash = |polynomial: Polynomial, input: &dyn Fn(Input) -> u64| polynomial.hash(input);
        Self { program, registers: words, exact: exact.collect(), hash, variables: Vec::new() }
    }

    /// Replaces the hashes, to compare with a type that has other ones.
    #[must_use]
    pub fn with_hash(self, hash: ReplacedHash) -> Self {
        Self { hash, ..self }
    }

    /// The value of an operand after the last packet; zero before the first.
    pub(crate) fn value(&self, operand: Operand) -> u64 {
        if self.variables.is_empty() { 0 } else { read(&self.variables, operand) }
    }

    /// The words of a register.
    pub fn words(&self, register: usize) -> Option<&[u64]> {
        self.registers.get(register).map(Vec::as_slice)
    }

    /// Writes a word of a register, as a control plane does. Returns whether there is such a word.
    pub fn write(&mut self, register: usize, index: usize, value: u64) -> bool {
        let bits = self.program.registers.get(register).map_or(0, |it| it.bits);
        let word = self.registers.get_mut(register).and_then(|words| words.get_mut(index));
        word.map(|word| *word = value & ones(bits)).is_some()
    }

    /// Runs the part behind the queue for one packet. `random` returns random numbers of a number of bits, in the order in which the program draws
    /// them. Accesses beyond the end of a register read zero and change nothing.
    pub fn run(&mut self, input: &dyn Fn(Input) -> u64, random: &mut dyn FnMut(u32) -> u64) -> PacketFate {
        self.run_at(Gress::Egress, input, random)
    }

    /// The same for a half of the pipeline.
    pub fn run_at(
        &mut self,
        gress: Gress,
        input: &dyn Fn(Input) -> u64,
        random: &mut dyn FnMut(u32) -> u64,
    ) -> PacketFate {
        let program = self.program;
        let begin = program.variables.iter().map(|it| it.input.map_or(0, |what| input(what) & ones(it.bits)));
        self.variables = begin.collect();
        let mut execution = Execution { interpreter: self, input, random, fate: PacketFate::default() };
        execution.all(program.at(gress));
        let mut fate = execution.fate;
        for (info, value) in program.variables.iter().zip(&self.variables) {
            if let Some(Input::Note(slot)) = info.input {
                fate.note[usize::from(slot)] = *value as u16;
            }
        }
        fate
    }
}

impl Execution<'_, '_> {
    fn all(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.one(&statement.does));
    }

    fn one(&mut self, does: &Does) {
        match does {
            Does::Comment(_) => {}
            Does::Set { variable, operation } => {
                let Interpreter { program, hash, variables, .. } = &mut *self.interpreter;
                let bits = program.variables[variable.0].bits;
                let hash = |operation: Operation| match operation {
                    Operation::HashReversed(polynomial) => Polynomial::reversed(*hash, polynomial, self.input),
                    Operation::HashPacket(polynomial) => polynomial.hash_packet(self.input),
                    other => other.hashes().map_or(0, |(_, polynomial)| hash(polynomial, self.input)),
                };
                variables[variable.0] = operation.result(bits, |operand| read(variables, operand), self.random, hash);
            }
            Does::If { condition, then, otherwise } => {
                let holds = condition.holds(&|operand| read(&self.interpreter.variables, operand));
                self.all(if holds { then } else { otherwise });
            }
            Does::Access { register, index, action, result } => self.access(*register, *index, *action, *result),
            Does::Swap { register, index, action, result } => self.swap(*register, *index, *action, *result),
            Does::Lookup(table) => self.look_up(*table),
            Does::Choose(table) => {
                let table = &self.interpreter.program.choices[*table];
                let keys: Vec<_> = table.keys.iter().map(|key| read(&self.interpreter.variables, *key)).collect();
                if let Some(action) = table.action(&keys) {
                    self.all(&action.statements);
                }
            }
            Does::Mark => self.fate.marked = true,
            Does::Drop => self.fate.dropped = true,
            Does::FeedBack => self.fate.fed_back = true,
            Does::Push(activity) => self.fate.pushed = Some(read(&self.interpreter.variables, *activity) as u16),
            Does::Strip => self.fate.stripped = true,
            Does::Report { port, delay, estimate } => {
                let read = |operand: &Operand| read(&self.interpreter.variables, *operand);
                let (port, delay, estimate) = (read(port) as u16, read(delay) as u32, read(estimate) as u32);
                self.fate.reported = Some(PacketReport { port, delay, estimate });
            }
            Does::Recirculate => self.fate.recirculated = true,
            Does::Enqueue(queue) => self.fate.queue = Some(read(&self.interpreter.variables, *queue) as u8),
            Does::SetWindow(window) => {
                let window = read(&self.interpreter.variables, *window) as u16;
                let [before, checksum] = [Input::Window, Input::TcpChecksum].map(|input| (self.input)(input) as u16);
                self.fate.window = Some([window, checksum_after(checksum, before, window)]);
            }
        }
    }

    fn look_up(&mut self, table: usize) {
        let Interpreter { program, exact, variables, .. } = &mut *self.interpreter;
        let found = &program.tables[table];
        let keys: Vec<_> = found.keys.iter().map(|key| read(variables, *key)).collect();
        let values = match &found.entries {
            TableEntries::Exact(_) => exact[table].get(&keys[..]).copied(),
            TableEntries::Ranges(entries) => {
                let key = keys.first().copied().unwrap_or(0);
                let place = entries.partition_point(|((_, high), _)| *high < key);
                entries.get(place).filter(|((low, _), _)| *low <= key).map(|(_, values)| &values[..])
            }
        };
        let values = values.unwrap_or(&found.otherwise);
        for (Variable(result), value) in found.results.iter().zip(values) {
            variables[*result] = *value;
        }
    }

    /// Beyond the end of the register, it returns zero.
    fn swap(&mut self, register: usize, index: Operand, action: usize, result: Variable) {
        let Interpreter { program, registers, variables, .. } = &mut *self.interpreter;
        let index = read(variables, index) as usize;
        let action = &program.pair_actions[action];
        let output =
            registers[register].get_mut(index).map(|pair| action.apply(pair, |operand| read(variables, operand)));
        variables[result.0] = output.unwrap_or(0);
    }

    fn access(&mut self, register: usize, index: Operand, action: usize, result: Option<Variable>) {
        let Interpreter { program, registers, variables, .. } = &mut *self.interpreter;
        let index = read(variables, index) as usize;
        let action = &program.actions[action];
        let beyond = (action.output != AluOutput::Nothing).then_some(0);
        let output = registers[register].get_mut(index).map_or(beyond, |word| {
            action.apply(word, program.registers[register].bits, |operand| read(variables, operand))
        });
        if let (Some(Variable(result)), Some(output)) = (result, output) {
            variables[result] = output;
        }
    }
}

/// The checksum after a change of 16 bits (RFC 1624, equation 3).
fn checksum_after(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

fn read(variables: &[u64], operand: Operand) -> u64 {
    match operand {
        Operand::Variable(Variable(variable)) => variables[variable],
        Operand::Slice { of: Variable(variable), low, bits } => {
            variables[variable].checked_shr(low).unwrap_or(0) & ones(bits)
        }
        Operand::Constant(value) => value,
    }
}
