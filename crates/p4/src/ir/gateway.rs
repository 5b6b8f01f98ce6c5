//! What the gateway of a Tofino's stage can test, and what must be computed before.

use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::validate::bits;
use super::variable::Operand;

/// The widest field that a gateway compares with a constant by order. (The open-source compiler takes 12 or 13 bits.)
const ORDER: u32 = 12;

/// Whether a gateway can test a comparison: equality, or the order of a narrow field and a constant.
pub(crate) fn is_for_gateway(
    program: &SwitchProgram,
    (left, comparison, right): (Operand, Comparison, Operand),
) -> bool {
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    match [left, right].map(|operand| bits(program, operand)) {
        [Some(_), Some(_)] => is_equality,
        [Some(bits), None] | [None, Some(bits)] => is_equality || bits <= ORDER,
        [None, None] => true,
    }
}

/// Bits that a condition can test. A gateway has four bytes and twelve bits, and the open-source compiler makes two gateways of a condition of
/// 64 bits; it rejects one of 102.
const TESTED: u32 = 64;
/// Bits that a part of a longer condition tests: a gateway's four bytes.
const TESTED_TOGETHER: u32 = 32;

/// A condition in parts that gateways can test: all of them hold if it does.
pub(crate) fn parts(program: &SwitchProgram, condition: &Condition) -> Vec<Condition> {
    let Condition::All(parts) = condition else { return vec![condition.clone()] };
    if tested(program, condition) <= TESTED {
        return vec![condition.clone()];
    }
    let mut gateways: Vec<(u32, Vec<Condition>)> = Vec::new();
    for part in parts {
        let bits = tested(program, part);
        match gateways.last_mut() {
            Some((sum, together)) if *sum + bits <= TESTED_TOGETHER => {
                *sum += bits;
                together.push(part.clone());
            }
            _ => gateways.push((bits, vec![part.clone()])),
        }
    }
    gateways.into_iter().map(|(_, together)| Condition::All(together)).collect()
}

/// The first condition that gateways do not test, because it has too many bits and is not in parts: the number of its bits.
pub(crate) fn too_wide(program: &SwitchProgram, statements: &[Statement]) -> Option<u32> {
    statements.iter().find_map(|statement| {
        let Does::If { condition, then, otherwise } = &statement.does else { return None };
        let parts = if otherwise.is_empty() { parts(program, condition) } else { vec![condition.clone()] };
        let widest = parts.iter().map(|part| tested(program, part)).max().unwrap_or(0);
        let own = (widest > TESTED).then_some(widest);
        own.or_else(|| too_wide(program, then)).or_else(|| too_wide(program, otherwise))
    })
}

/// The bits of the fields that a condition tests: those of a difference if that is computed before.
fn tested(program: &SwitchProgram, condition: &Condition) -> u32 {
    match condition {
        Condition::Compare { left, comparison, right } if is_for_gateway(program, (*left, *comparison, *right)) => {
            [left, right].into_iter().filter_map(|operand| bits(program, *operand)).sum()
        }
        Condition::Compare { left, right, .. } => width(program, [*left, *right]),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().map(|part| tested(program, part)).sum(),
    }
}

/// The width of each comparison that is computed before, in the order of the program.
pub(crate) fn computed(program: &SwitchProgram, statements: &[Statement]) -> Vec<u32> {
    let of = |statement: &Statement| match &statement.does {
        Does::If { condition, then, otherwise } => {
            let mut widths = of_condition(program, condition);
            widths.extend(computed(program, then));
            widths.extend(computed(program, otherwise));
            widths
        }
        _ => Vec::new(),
    };
    statements.iter().flat_map(of).collect()
}

/// The widths of those of one condition.
pub(crate) fn of_condition(program: &SwitchProgram, condition: &Condition) -> Vec<u32> {
    match condition {
        Condition::Compare { left, comparison, right } => {
            let is_computed = !is_for_gateway(program, (*left, *comparison, *right));
            is_computed.then(|| width(program, [*left, *right])).into_iter().collect()
        }
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().flat_map(|part| of_condition(program, part)).collect()
        }
    }
}

/// The width of a comparison: that of the wider value.
pub(crate) fn width(program: &SwitchProgram, values: [Operand; 2]) -> u32 {
    values.into_iter().filter_map(|operand| bits(program, operand)).max().unwrap_or(0)
}
