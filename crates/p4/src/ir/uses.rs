//! What a half of the pipeline has of a program.

use super::action::RegisterAction;
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::Condition;
use super::variable::{Input, Operand, Variable};
use crate::Gress;
use std::collections::BTreeSet;

/// The parts of a program that the statements of a half of the pipeline name.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub variables: BTreeSet<Variable>,
    pub registers: BTreeSet<usize>,
    /// Match tables.
    pub tables: BTreeSet<usize>,
    /// Action tables.
    pub choices: BTreeSet<usize>,
    pub feeds_back: bool,
    pub reports: bool,
    /// Whether it pushes or removes activity headers.
    pub uses_activity: bool,
    pub recirculates: bool,
    /// Whether it chooses queues.
    pub enqueues: bool,
    /// Whether it writes receive windows.
    pub sets_windows: bool,
}

impl Uses {
    /// Those of one half.
    pub fn of(program: &SwitchProgram, gress: Gress) -> Self {
        let mut uses = Self::default();
        uses.all(program, program.at(gress));
        uses
    }

    /// Whether an input is among the variables.
    pub fn reads(&self, program: &SwitchProgram, input: Input) -> bool {
        self.variables.iter().any(|variable| program.variables[variable.0].input == Some(input))
    }

    fn all(&mut self, program: &SwitchProgram, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.one(program, &statement.does));
    }

    fn one(&mut self, program: &SwitchProgram, does: &Does) {
        match does {
            Does::Comment(_) | Does::Mark | Does::Drop => {}
            Does::Push(activity) => {
                self.operands([*activity]);
                self.uses_activity = true;
            }
            Does::Strip => self.uses_activity = true,
            Does::FeedBack => self.feeds_back = true,
            Does::Recirculate => self.recirculates = true,
            Does::Enqueue(queue) => {
                self.enqueues = true;
                self.operands([*queue]);
            }
            Does::SetWindow(window) => {
                self.sets_windows = true;
                self.operands([*window]);
                self.inputs(program, |input| input == Input::Window || input == Input::TcpChecksum);
            }
            Does::Set { variable, operation } => {
                self.variables.insert(*variable);
                self.operands(operation.operands());
                if let Some((hashed, _)) = operation.hashes() {
                    self.inputs(program, |input| hashed.contains(&input));
                }
            }
            Does::If { condition, then, otherwise } => {
                self.condition(condition);
                self.all(program, then);
                self.all(program, otherwise);
            }
            Does::Access { register, index, action, result } => {
                self.registers.insert(*register);
                self.variables.extend(*result);
                let action: &RegisterAction = &program.actions[*action];
                self.operands(action.operands().into_iter().chain([*index]));
            }
            Does::Swap { register, index, action, result } => {
                self.registers.insert(*register);
                self.variables.insert(*result);
                self.operands(program.pair_actions[*action].operands().into_iter().chain([*index]));
            }
            Does::Report { port, delay, estimate } => {
                self.operands([*port, *delay, *estimate]);
                self.reports = true;
            }
            Does::Lookup(table) => {
                self.tables.insert(*table);
                let table = &program.tables[*table];
                self.operands(table.keys.iter().copied());
                self.variables.extend(&table.results);
            }
            Does::Choose(table) => {
                self.choices.insert(*table);
                let table = &program.choices[*table];
                self.operands(table.keys.iter().copied());
                table.actions.iter().for_each(|action| self.all(program, &action.statements));
            }
        }
    }

    /// The variables that are some inputs.
    fn inputs(&mut self, program: &SwitchProgram, is_one: impl Fn(Input) -> bool) {
        let variables = program.variables.iter().enumerate().filter(|(_, it)| it.input.is_some_and(&is_one));
        self.variables.extend(variables.map(|(number, _)| Variable(number)));
    }

    fn condition(&mut self, condition: &Condition) {
        self.operands(condition.comparisons().into_iter().flat_map(|(left, right)| [left, right]));
    }

    fn operands(&mut self, operands: impl IntoIterator<Item = Operand>) {
        self.variables.extend(operands.into_iter().filter_map(Operand::variable));
    }
}
