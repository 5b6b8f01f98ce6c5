//! Building programs.

use super::action::{RegisterAction, RegisterArray};
use super::condition::Condition;
use super::operation::Operation;
use super::table::MatchTable;
use super::validate::{InvalidProgram, validate};
use super::variable::{Input, Operand, Unit, Variable};
use crate::Aspect;
use queuescope_wire::Nanos;

/// A program for packets that have left the queue. It was checked: all widths and units fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchProgram {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) source: &'static str,
    pub(crate) variables: Vec<VariableInfo>,
    pub(crate) registers: Vec<RegisterArray>,
    pub(crate) actions: Vec<RegisterAction>,
    pub(crate) tables: Vec<MatchTable>,
    pub(crate) statements: Vec<Statement>,
    /// The period of generated packets, if there are any.
    pub(crate) period: Option<Nanos>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableInfo {
    pub name: &'static str,
    pub bits: u32,
    pub unit: Unit,
    /// What the packet brings along, if it does.
    pub input: Option<Input>,
}

/// A statement, and the part of the algorithm that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub aspect: Aspect,
    pub does: Does,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Does {
    Comment(&'static str),
    Set {
        variable: Variable,
        operation: Operation,
    },
    If {
        condition: Condition,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Access {
        register: usize,
        index: Operand,
        action: usize,
        result: Option<Variable>,
    },
    /// A lookup in the table of this number.
    Lookup(usize),
    Mark,
    Drop,
}

/// Builds a [`SwitchProgram`], statement by statement.
#[derive(Debug)]
pub struct Builder {
    program: SwitchProgram,
    aspect: Aspect,
}

impl SwitchProgram {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A description in one sentence, without a final period.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Its registers.
    pub fn registers(&self) -> &[RegisterArray] {
        &self.registers
    }
}

impl Builder {
    /// A program without statements. `source` names the paper's section or the type that it follows.
    pub fn new(name: &'static str, about: &'static str, source: &'static str) -> Self {
        let (variables, registers, actions, tables, statements) = Default::default();
        let program =
            SwitchProgram { name, about, source, variables, registers, actions, tables, statements, period: None };
        Self { program, aspect: Aspect::Metric }
    }

    /// Assigns the following statements to this part of the algorithm.
    pub fn of(&mut self, aspect: Aspect) -> &mut Self {
        self.aspect = aspect;
        self
    }

    /// The packet generator sends a packet to each port after each period.
    pub fn generated_every(&mut self, period: Nanos) {
        self.program.period = Some(period);
    }

    /// Writes a comment into the printed program.
    pub fn comment(&mut self, text: &'static str) {
        self.push(Does::Comment(text));
    }

    /// A value that the packet brings along.
    pub fn input(&mut self, input: Input) -> Variable {
        self.add(VariableInfo { name: input.name(), bits: input.bits(), unit: input.unit(), input: Some(input) })
    }

    /// A variable.
    pub fn variable(&mut self, name: &'static str, bits: u32, unit: Unit) -> Variable {
        self.add(VariableInfo { name, bits, unit, input: None })
    }

    /// A register.
    pub fn register(&mut self, register: RegisterArray) -> usize {
        self.program.registers.push(register);
        self.program.registers.len() - 1
    }

    /// Assigns the result of an operation to a variable.
    pub fn set(&mut self, variable: Variable, operation: Operation) {
        self.push(Does::Set { variable, operation });
    }

    /// A new variable with the result of an operation.
    pub fn compute(&mut self, name: &'static str, bits: u32, unit: Unit, operation: Operation) -> Variable {
        let variable = self.variable(name, bits, unit);
        self.set(variable, operation);
        variable
    }

    /// Accesses one word of a register. `result`, if any, takes the output of the action.
    pub fn access(
        &mut self,
        register: usize,
        index: impl Into<Operand>,
        action: RegisterAction,
        result: Option<Variable>,
    ) {
        self.program.actions.push(action);
        let action = self.program.actions.len() - 1;
        self.push(Does::Access { register, index: index.into(), action, result });
    }

    /// Looks up the entry of a table.
    pub fn look_up(&mut self, table: MatchTable) {
        self.program.tables.push(table);
        self.push(Does::Lookup(self.program.tables.len() - 1));
    }

    /// Statements that are executed if a condition holds.
    pub fn when(&mut self, condition: Condition, then: impl FnOnce(&mut Self)) {
        self.choose(condition, then, |_| ());
    }

    /// Statements that are executed if a condition holds, and others if it does not.
    pub fn choose(&mut self, condition: Condition, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.program.statements);
        then(self);
        let then = std::mem::take(&mut self.program.statements);
        otherwise(self);
        let otherwise = std::mem::replace(&mut self.program.statements, before);
        self.push(Does::If { condition, then, otherwise });
    }

    /// Marks the packet with CE. The program has to check that it is ECN-capable.
    pub fn mark_packet(&mut self) {
        self.push(Does::Mark);
    }

    /// Drops the packet.
    pub fn drop_packet(&mut self) {
        self.push(Does::Drop);
    }

    /// Checks the program.
    ///
    /// # Errors
    /// Names the first statement that is not valid, and why.
    pub fn build(self) -> Result<SwitchProgram, InvalidProgram> {
        validate(&self.program)?;
        Ok(self.program)
    }

    fn add(&mut self, info: VariableInfo) -> Variable {
        self.program.variables.push(info);
        Variable(self.program.variables.len() - 1)
    }

    fn push(&mut self, does: Does) {
        self.program.statements.push(Statement { aspect: self.aspect, does });
    }
}
