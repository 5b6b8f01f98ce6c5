//! What an architecture cannot have, whatever the placer says.

use super::action::{AluExpression, AluTerm, RegisterAction};
use super::builder::SwitchProgram;
use super::gateway;
use super::print::Architecture;
use super::variable::Operand;
use crate::Gress;

/// The largest constant with which a Tofino's register unit compares: it subtracts it, as a number of 32 bits with a sign.
const LARGEST_OF_UNIT: u64 = 1 << 31;

/// Why an architecture cannot have a program, whatever the placer says: a register action that its unit cannot do, or a rejection of the compiler that
/// was measured. Such a program is printed for people to
/// read; no compiler takes it.
pub fn refusal(program: &SwitchProgram, architecture: Architecture) -> Option<String> {
    if let Some((_, why)) = program.rejected.filter(|(it, _)| *it == architecture) {
        return Some(why.to_owned());
    }
    if architecture == Architecture::V1model {
        return None;
    }
    let averages = |action: &RegisterAction| {
        let values = action.updates.iter().map(|update| update.value);
        values
            .chain(action.conditions.iter().map(|condition| condition.left))
            .any(|it| matches!(it, AluExpression::MoveTowards(..)))
    };
    let is_large = |action: &RegisterAction| {
        action.conditions.iter().any(|condition| match condition.right {
            AluTerm::Value(Operand::Constant(value)) => value > LARGEST_OF_UNIT,
            _ => false,
        })
    };
    let too_wide =
        || [Gress::Ingress, Gress::Egress].iter().find_map(|gress| gateway::too_wide(program, program.at(*gress)));
    if let Some(action) = program.actions.iter().find(|action| averages(action)) {
        Some(format!("{} averages by a shift of a difference, and a Tofino's register unit cannot shift", action.name))
    } else if let Some(action) = program.actions.iter().find(|action| is_large(action)) {
        Some(format!(
            "{} compares with a constant above {LARGEST_OF_UNIT}, which a Tofino's register unit lacks",
            action.name
        ))
    } else {
        too_wide().map(|bits| format!("a condition tests {bits} bits at once, and the gateways of a Tofino 64"))
    }
}
