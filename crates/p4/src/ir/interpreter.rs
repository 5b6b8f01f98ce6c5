//! Running programs.

use super::builder::{Does, Statement, SwitchProgram};
use super::table::TableEntries;
use super::variable::{Input, Operand, Variable, ones};

use std::collections::BTreeMap;

/// Runs a program: the reference of what it does.
#[derive(Debug, Clone)]
pub struct Interpreter<'a> {
    program: &'a SwitchProgram,
    pub(super) registers: Vec<Vec<u64>>,
    /// The exact entries of each table.
    exact: Vec<BTreeMap<&'a [u64], &'a [u64]>>,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketFate {
    /// Whether it is dropped.
    pub dropped: bool,
    /// Whether it is marked with CE.
    pub marked: bool,
}

/// The variables of one packet, and what happens to it.
struct Execution<'a, 'b> {
    interpreter: &'a mut Interpreter<'b>,
    variables: Vec<u64>,
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
        Self { program, registers: words, exact: exact.collect() }
    }

    /// The words of a register.
    pub fn words(&self, register: usize) -> Option<&[u64]> {
        self.registers.get(register).map(Vec::as_slice)
    }

    /// Runs the program for one packet. `random` returns random numbers of a number of bits, in the order in which the program draws
    /// them. Accesses beyond the end of a register read zero and change nothing.
    pub fn run(&mut self, input: &dyn Fn(Input) -> u64, random: &mut dyn FnMut(u32) -> u64) -> PacketFate {
        let program = self.program;
        let begin = program.variables.iter().map(|it| it.input.map_or(0, |what| input(what) & ones(it.bits)));
        let variables = begin.collect();
        let mut execution = Execution { interpreter: self, variables, random, fate: PacketFate::default() };
        execution.all(&program.statements);
        execution.fate
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
                let bits = self.interpreter.program.variables[variable.0].bits;
                let variables = &self.variables;
                self.variables[variable.0] = operation.result(bits, |operand| read(variables, operand), self.random);
            }
            Does::If { condition, then, otherwise } => {
                let holds = condition.holds(&|operand| read(&self.variables, operand));
                self.all(if holds { then } else { otherwise });
            }
            Does::Access { register, index, action, result } => self.access(*register, *index, *action, *result),
            Does::Lookup(table) => self.look_up(*table),
            Does::Mark => self.fate.marked = true,
            Does::Drop => self.fate.dropped = true,
        }
    }

    fn look_up(&mut self, table: usize) {
        let Self { interpreter, variables, .. } = self;
        let found = &interpreter.program.tables[table];
        let keys: Vec<_> = found.keys.iter().map(|key| read(variables, *key)).collect();
        let values = match &found.entries {
            TableEntries::Exact(_) => interpreter.exact[table].get(&keys[..]).copied(),
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

    fn access(&mut self, register: usize, index: Operand, action: usize, result: Option<Variable>) {
        let Self { interpreter, variables, .. } = self;
        let program = interpreter.program;
        let index = read(variables, index) as usize;
        let output = interpreter.registers[register].get_mut(index).map_or(0, |word| {
            program.actions[action].apply(word, program.registers[register].bits, |operand| read(variables, operand))
        });
        if let Some(Variable(result)) = result {
            variables[result] = output;
        }
    }
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
