//! The fields that must be in one group of containers.
//!
//! A Tofino keeps the fields of a packet in containers of 8, 16 and 32 bits. The unit that writes a container reads the containers of its own group
//! of 16. So all fields that operations combine, directly or through others, are in one group. What a register, a hash unit or an entry of a table gives
//! comes from elsewhere, and may go to any group.

use super::builder::{Does, Statement, SwitchProgram};
use super::condition::Condition;
use super::gateway::{is_for_gateway, width};
use super::uses::Uses;
use super::validate::bits;
use super::variable::Operand;
use crate::Gress;
use crate::program::FieldGroup;
use std::collections::BTreeMap;

/// The groups of a half of the pipeline that have at least two fields, in the order of their first fields.
///
/// Two fields never share a container here, even if one is read for the last time before the other is written. The compiler rarely puts them into
/// the same container (seen in the logs of ConQuest).
pub(crate) fn groups(program: &SwitchProgram, gress: Gress) -> Vec<FieldGroup> {
    let mut joined = Joined {
        program,
        group_of: (0..program.variables.len()).collect(),
        bits: BTreeMap::new(),
        differences: Vec::new(),
    };
    joined.all(program.at(gress));
    joined.groups(gress)
}

/// How many containers of 32 bits the fields of both halves take that no narrower container holds.
pub(crate) fn wide(program: &SwitchProgram) -> u64 {
    let of = |gress| {
        let variables = Uses::of(program, gress).variables;
        variables
            .into_iter()
            .map(|it| container_bits(program.variables[it.0].bits))
            .filter(|bits| *bits >= 32)
            .sum::<u64>()
    };
    (of(Gress::Ingress) + of(Gress::Egress)) / 32
}

struct Joined<'a> {
    program: &'a SwitchProgram,
    /// The first variable of the group of each variable.
    group_of: Vec<usize>,
    /// The bits of each variable that operations read or write.
    bits: BTreeMap<usize, u32>,
    /// Differences in place of comparisons that no gateway makes: a variable that is compared, and the width.
    differences: Vec<(usize, u32)>,
}

impl Joined<'_> {
    fn all(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.one(&statement.does));
    }

    fn one(&mut self, does: &Does) {
        match does {
            Does::Set { operation, .. } if operation.moves_bits() => {}
            Does::Set { variable, operation } => {
                // A hash or a random number comes from another unit.
                let operands = operation.operands();
                if !operands.is_empty() {
                    self.join(&[&[(*variable).into()], &operands[..]].concat());
                }
            }
            Does::If { condition, then, otherwise } => {
                self.condition(condition);
                self.all(then);
                self.all(otherwise);
            }
            Does::Choose(table) => {
                let table = &self.program.choices[*table];
                table.actions.iter().for_each(|action| self.all(&action.statements));
            }
            Does::Comment(_)
            | Does::Access { .. }
            | Does::Swap { .. }
            | Does::Report { .. }
            | Does::Lookup(_)
            | Does::Mark
            | Does::Drop
            | Does::FeedBack
            | Does::Recirculate
            | Does::Enqueue(_)
            | Does::SetWindow(_)
            | Does::Push(_)
            | Does::Strip => {}
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare { left, comparison, right } => {
                if !is_for_gateway(self.program, (*left, *comparison, *right)) {
                    let operands = [*left, *right];
                    self.join(&operands);
                    let compared = operands.into_iter().find_map(Operand::variable);
                    self.differences.extend(compared.map(|it| (it.0, width(self.program, operands))));
                }
            }
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| self.condition(part)),
        }
    }

    fn join(&mut self, operands: &[Operand]) {
        let mut first = None;
        for operand in operands {
            let (Some(variable), Some(bits)) = (operand.variable(), bits(self.program, *operand)) else { continue };
            let used = self.bits.entry(variable.0).or_default();
            *used = bits.max(*used);
            let group = self.group_of[variable.0];
            let first = *first.get_or_insert(group);
            self.group_of.iter_mut().filter(|it| **it == group).for_each(|it| *it = first);
        }
    }

    fn groups(self, gress: Gress) -> Vec<FieldGroup> {
        let mut groups: BTreeMap<usize, FieldGroup> = BTreeMap::new();
        let fields = self.bits.iter().map(|(variable, bits)| (*variable, *bits));
        for (variable, bits) in fields.chain(self.differences.iter().copied()) {
            let group = groups.entry(self.group_of[variable]);
            let group = group.or_insert_with(|| FieldGroup {
                gress,
                first: self.program.variables[variable].name.to_string(),
                fields: 0,
                bits: 0,
            });
            group.fields += 1;
            group.bits += container_bits(bits);
        }
        groups.into_values().filter(|group| group.fields > 1).collect()
    }
}

/// The bits of the containers that hold a field.
fn container_bits(bits: u32) -> u64 {
    match bits {
        0..=8 => 8,
        9..=16 => 16,
        bits => u64::from(bits.next_multiple_of(32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, Comparison, Input, Operation, Unit};

    /// The fields and bits of the groups behind the queue.
    fn shape(build: impl FnOnce(&mut Builder)) -> Vec<(String, u64, u64)> {
        let mut p = Builder::new("grouped", "has groups", "");
        build(&mut p);
        let program = p.build().expect("it is valid");
        groups(&program, Gress::Egress).into_iter().map(|it| (it.first, it.fields, it.bits)).collect()
    }

    #[test]
    fn operations_join_what_they_read_and_write() {
        let found = shape(|p| {
            let [a, b, c] = ["a", "b", "c"].map(|name| p.compute(name, 32, Unit::Number, Operation::Random));
            let sum = p.compute("sum", 32, Unit::Number, Operation::Add(a.into(), b.into()));
            p.compute("narrow", 9, Unit::Number, Operation::Copy(c.slice(3, 9)));
            p.set(sum, Operation::Xor(sum.into(), 1.into()));
        });
        // Of c, the nine bits that are moved.
        assert_eq!(found, [("a".to_owned(), 3, 96), ("c".to_owned(), 2, 32)]);
    }

    #[test]
    fn a_hash_unit_joins_nothing() {
        let found = shape(|p| {
            let a = p.compute("a", 32, Unit::Number, Operation::Random);
            let moved = p.compute("moved", 32, Unit::Number, Operation::Gather(a.into(), 0));
            let b = p.compute("b", 32, Unit::Number, Operation::Random);
            p.set(b, Operation::Add(b.into(), moved.into()));
        });
        assert_eq!(found, [("moved".to_owned(), 2, 64)]);
    }

    #[test]
    fn a_difference_in_place_of_a_comparison_is_a_field() {
        let found = shape(|p| {
            let [ecn, a, b] = [Input::Ecn, Input::Source, Input::Destination].map(|input| p.input(input));
            p.when(Condition::compare(a, Comparison::Less, b), |p| {
                p.when(Condition::compare(ecn, Comparison::NotEqual, 0), Builder::mark_packet);
            });
        });
        // A gateway tests the ECN field.
        assert_eq!(found, [("source".to_owned(), 3, 96)]);
    }
}
