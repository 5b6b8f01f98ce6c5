//! Operations and conditions in words.

use crate::ir::action::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, RegisterAction, RegisterArray, When,
};
use crate::ir::builder::SwitchProgram;
use crate::ir::condition::{Comparison, Condition};
use crate::ir::operation::Operation;
use crate::ir::pair::{PairAction, PairCondition, PairOutput};
use crate::ir::table::{ActionTable, MatchTable};
use crate::ir::variable::{Operand, Unit, Variable};
use std::collections::BTreeSet;

/// A count with a word.
pub(super) fn number_of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The sentences of one program. A variable is named with its width and unit where it first gets a value.
pub(super) struct Words<'a> {
    program: &'a SwitchProgram,
    named: BTreeSet<Variable>,
}

impl<'a> Words<'a> {
    pub fn new(program: &'a SwitchProgram) -> Self {
        Self { program, named: BTreeSet::new() }
    }

    /// A variable that gets a value.
    fn target(&mut self, variable: Variable) -> String {
        let info = &self.program.variables[variable.0];
        if !self.named.insert(variable) {
            return info.name.to_string();
        }
        let bits = number_of(info.bits as usize, "bit", "bits");
        match info.unit {
            Unit::Number => format!("{} ({bits})", info.name),
            unit => format!("{} ({bits}, {unit})", info.name),
        }
    }

    pub fn operand(&self, operand: Operand) -> String {
        let name = |variable: Variable| &*self.program.variables[variable.0].name;
        match operand {
            Operand::Constant(value) if value > 0xffff => format!("{value:#x}"),
            Operand::Constant(value) => value.to_string(),
            Operand::Variable(variable) => name(variable).to_owned(),
            Operand::Slice { of, low, bits: 1 } => format!("bit {low} of {}", name(of)),
            Operand::Slice { of, low: 0, bits } => format!("the low {bits} bits of {}", name(of)),
            Operand::Slice { of, low, bits } => format!("bits {low} to {} of {}", low + bits - 1, name(of)),
        }
    }

    pub fn assignment(&mut self, variable: Variable, operation: &Operation) -> String {
        let text = |operand| self.operand(operand);
        let value = match *operation {
            Operation::Copy(one) | Operation::Gather(one, 0) => text(one),
            Operation::Add(one, other) => format!("{} plus {}", text(one), text(other)),
            Operation::AddSaturating(one, other) => {
                format!("{} plus {}, at most the largest number", text(one), text(other))
            }
            Operation::Subtract(one, other) => format!("{} less {}", text(one), text(other)),
            Operation::SubtractSaturating(one, other) => format!("{} less {}, at least zero", text(one), text(other)),
            Operation::SubtractSigned(one, other) => {
                format!("{} less {}, both in two's complement, within its ends", text(one), text(other))
            }
            Operation::Join(one, other, _) => format!("the bits of {} in front of those of {}", text(one), text(other)),
            Operation::Minimum(one, other) => format!("the smaller of {} and {}", text(one), text(other)),
            Operation::Maximum(one, other) => format!("the larger of {} and {}", text(one), text(other)),
            Operation::And(one, other) => format!("the bits that both {} and {} have", text(one), text(other)),
            Operation::Or(one, other) => format!("the bits that {} or {} has", text(one), text(other)),
            Operation::Xor(one, other) => {
                format!("the bits that exactly one of {} and {} has", text(one), text(other))
            }
            Operation::ShiftLeft(one, by) | Operation::Gather(one, by) => format!("{} times 2^{by}", text(one)),
            Operation::ShiftRight(one, by) => format!("{} divided by 2^{by}, rounded down", text(one)),
            Operation::Random => "a random number".to_owned(),
            Operation::HashPacket(polynomial) => {
                format!("the low bits of the packet's CRC-32 with the polynomial {:#x}", polynomial.coefficients())
            }
            Operation::Hash(polynomial) => {
                format!("the low bits of the flow's CRC-32 with the polynomial {:#x}", polynomial.coefficients())
            }
            Operation::HashReversed(polynomial) => format!(
                "the low bits of the CRC-32 of the flow in the other direction, with the polynomial {:#x}",
                polynomial.coefficients()
            ),
        };
        format!("{} becomes {value}.", self.target(variable))
    }

    pub fn condition(&self, condition: &Condition) -> String {
        let joined = |parts: &[Condition], word: &str| {
            let text = |part: &Condition| match part {
                Condition::Compare { .. } => self.condition(part),
                _ => format!("({})", self.condition(part)),
            };
            parts.iter().map(text).collect::<Vec<_>>().join(word)
        };
        match condition {
            Condition::Compare { left, comparison, right } => {
                format!("{} {} {}", self.operand(*left), verb(*comparison), self.operand(*right))
            }
            Condition::All(parts) => joined(parts, " and "),
            Condition::Any(parts) => joined(parts, " or "),
        }
    }

    /// An access: what the unit does to the word, and what the packet takes along.
    pub fn access(
        &mut self,
        register: &RegisterArray,
        index: Operand,
        action: &RegisterAction,
        result: Option<Variable>,
    ) -> String {
        let place = self.operand(index);
        let updates = self.updates(action);
        let mut text = format!("Access {} at {place} ({}): {updates}.", register.name, action.name);
        if let Some(result) = result.filter(|_| action.output != AluOutput::Nothing) {
            let output = match action.output {
                AluOutput::Before if action.updates.is_empty() => "the word".to_owned(),
                AluOutput::Before => "the word before the change".to_owned(),
                AluOutput::Computed(value) => self.expression(value),
                AluOutput::After | AluOutput::Nothing => "the word after the change".to_owned(),
                AluOutput::Condition(number) => {
                    format!("1 if {}, otherwise 0", self.alu_condition(&action.conditions[number], true))
                }
            };
            text += &format!(" {} becomes {output}.", self.target(result));
        }
        text
    }

    /// An access of a pair of words.
    pub fn swap(&mut self, register: &RegisterArray, index: Operand, action: &PairAction, result: Variable) -> String {
        let place = self.operand(index);
        let condition = |it: &PairCondition| {
            self.alu_condition(&it.condition, false).replace("the word", &format!("the {} word", it.of.name()))
        };
        let conditions: Vec<_> = action.conditions.iter().map(condition).collect();
        let [first, second] = action.words.map(|operand| self.operand(operand));
        let output = match action.output {
            PairOutput::Changed => "1 if they change, otherwise 0".to_owned(),
            PairOutput::Before(half) => format!("the {} word before the change, or 0 if there is none", half.name()),
        };
        format!(
            "Access {} at {place} ({}): if {}, the words become {first} and {second}. {} becomes {output}.",
            register.name,
            action.name,
            conditions.join(" or "),
            self.target(result)
        )
    }

    /// The changes, of which the first is made whose condition holds.
    fn updates(&self, action: &RegisterAction) -> String {
        let change = |(number, update): (usize, &AluUpdate)| {
            let value = format!("the word becomes {}", self.expression(update.value));
            let condition = |of: usize| self.alu_condition(&action.conditions[of], false);
            // It fails if the update before was not made for it.
            let is_left = |of| number == 1 && action.updates[0].when == When::Holds(of);
            match update.when {
                When::Fails(of) if !is_left(of) => format!("unless {}, {value}", condition(of)),
                When::Holds(of) => format!("if {}, {value}", condition(of)),
                When::Always | When::Fails(_) => value,
            }
        };
        if action.updates.is_empty() {
            return "the word stays as it is".to_owned();
        }
        action.updates.iter().enumerate().map(change).collect::<Vec<_>>().join("; otherwise, ")
    }

    fn alu_condition(&self, condition: &AluCondition, after_change: bool) -> String {
        let before = if after_change && condition.reads_word() { ", before the change," } else { "" };
        let left = self.expression(condition.left);
        format!("{left}{before} {} {}", verb(condition.comparison), self.term(condition.right))
    }

    fn term(&self, term: AluTerm) -> String {
        match term {
            AluTerm::Word => "the word".to_owned(),
            AluTerm::Value(operand) => self.operand(operand),
        }
    }

    fn expression(&self, expression: AluExpression) -> String {
        let text = |term| self.term(term);
        match expression {
            AluExpression::Term(one) => text(one),
            AluExpression::Add(one, other) => format!("{} plus {}", text(one), text(other)),
            AluExpression::Subtract(one, other) => format!("{} less {}", text(one), text(other)),
            AluExpression::AddSaturating(one, other) => {
                format!("{} plus {}, at most the largest number", text(one), text(other))
            }
            AluExpression::SubtractSaturating(one, other) => {
                format!("{} less {}, at least zero", text(one), text(other))
            }
            AluExpression::MoveTowards(to, shift) => {
                format!("the word plus a 2^{shift}th of {} less the word, rounded down", text(to))
            }
            AluExpression::AddSigned(one, other) => {
                format!("{} plus {}, both in two's complement, within its ends", text(one), text(other))
            }
        }
    }

    /// What a table chooses by: the keys, and which entries do what.
    pub fn choice(&self, table: &ActionTable) -> (String, Vec<String>) {
        let keys: Vec<_> = table.keys.iter().map(|key| self.operand(*key)).collect();
        let of_action = |number: usize| {
            let range =
                |(low, high): &(u64, u64)| if low == high { low.to_string() } else { format!("{low} to {high}") };
            let ranges = |ranges: &[(u64, u64)]| ranges.iter().map(range).collect::<Vec<_>>().join(", ");
            let entries = table.entries.iter().filter(|(_, action)| *action == number);
            entries.map(|(of_keys, _)| ranges(of_keys)).collect::<Vec<_>>().join("; ")
        };
        (keys.join(", "), (0..table.actions.len()).map(of_action).collect())
    }

    pub fn lookup(&mut self, table: &MatchTable) -> String {
        let keys: Vec<_> = table.keys.iter().map(|key| self.operand(*key)).collect();
        let results: Vec<_> = table.results.iter().map(|result| self.target(*result)).collect();
        let otherwise: Vec<_> = table.otherwise.iter().map(u64::to_string).collect();
        let verb = if results.len() == 1 { "becomes" } else { "become" };
        if keys.is_empty() {
            return format!(
                "{} {verb} {}, unless the control plane sets others in {}.",
                results.join(" and "),
                otherwise.join(" and "),
                table.name
            );
        }
        format!(
            "Look up {} in {}: {} {verb} what the entry has; without an entry, {}.",
            keys.join(" and "),
            table.name,
            results.join(" and "),
            otherwise.join(" and ")
        )
    }
}

fn verb(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "is",
        Comparison::NotEqual => "is not",
        Comparison::Less => "is less than",
        Comparison::LessOrEqual => "is at most",
        Comparison::Greater => "is more than",
        Comparison::GreaterOrEqual => "is at least",
    }
}
