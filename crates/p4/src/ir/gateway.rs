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
