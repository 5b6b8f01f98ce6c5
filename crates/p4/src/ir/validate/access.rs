//! Checks of accesses to registers.

use super::operands::{bits, fits, is_fixed, unit};
use super::{Broken, CONDITIONS};
use crate::ir::action::{AluExpression, AluOutput, AluTerm, RegisterAction, RegisterArray, When};
use crate::ir::builder::SwitchProgram;
use crate::ir::pair::{HALF_BITS, Half, PAIR_BITS, PairAction, PairCondition, PairOutput};
use crate::ir::variable::{Operand, Unit, Variable, ones};

pub(super) fn check_access(
    program: &SwitchProgram,
    register: usize,
    index: Operand,
    action: &RegisterAction,
    result: Option<Variable>,
) -> Result<(), Broken> {
    let register = indexed(program, register, index)?;
    if register.bits == PAIR_BITS {
        return Err(format!("accesses {}, whose entries are pairs of words: swap them", register.name));
    }
    if action.conditions.len() > CONDITIONS {
        return Err(format!("has {} conditions; the unit has {CONDITIONS}", action.conditions.len()));
    }
    if matches!(action.output, AluOutput::Computed(_)) && !action.updates.is_empty() {
        return Err("returns a value that it computes, and changes the word too".to_owned());
    }
    for operand in action.operands() {
        fits(program, operand, register.bits)?;
        if let Some(unit) = unit(program, operand)
            && unit != register.unit
        {
            return Err(format!("reads {unit}; the words are in {}", register.unit));
        }
    }
    let named = action.updates.iter().filter_map(|update| match update.when {
        When::Always => None,
        When::Holds(condition) | When::Fails(condition) => Some(condition),
    });
    let of_output = match action.output {
        AluOutput::Condition(condition) => Some(condition),
        AluOutput::Before | AluOutput::After | AluOutput::Computed(_) | AluOutput::Nothing => None,
    };
    if let Some(missing) = named.chain(of_output).find(|condition| *condition >= action.conditions.len()) {
        return Err(format!("names condition {missing}, which it does not have"));
    }
    let is_constant = |expression: AluExpression| {
        expression.terms().iter().all(|term| matches!(term, AluTerm::Value(Operand::Constant(_))))
    };
    if action.conditions.iter().any(|condition| is_constant(condition.left)) {
        return Err("compares a constant".to_owned());
    }
    let of_conditions = action.conditions.iter().map(|condition| condition.left);
    for expression in action.updates.iter().map(|update| update.value).chain(of_conditions) {
        if let AluExpression::MoveTowards(_, shift) = expression
            && !(1..register.bits).contains(&shift)
        {
            return Err(format!(
                "a shift by {shift} leaves nothing of a change of {} bits, or all of it",
                register.bits
            ));
        }
    }
    let Some(result) = result else { return Ok(()) };
    let (bits, unit) = match action.output {
        AluOutput::Condition(_) => (1, Unit::Number),
        AluOutput::Before | AluOutput::After | AluOutput::Computed(_) => (register.bits, register.unit),
        AluOutput::Nothing => return Ok(()),
    };
    returns(program, result, bits, unit)
}

/// Checks an access to a pair: what is compared with a word, or becomes one, is in its unit.
pub(super) fn check_swap(
    program: &SwitchProgram,
    register: usize,
    index: Operand,
    action: &PairAction,
    result: Variable,
) -> Result<(), Broken> {
    let register = indexed(program, register, index)?;
    if register.bits != PAIR_BITS {
        return Err(format!("swaps the words of {}, which has no pairs", register.name));
    }
    if !(1..=CONDITIONS).contains(&action.conditions.len()) {
        return Err(format!("has {} conditions; 1 to {CONDITIONS} are possible", action.conditions.len()));
    }
    let unit_of = |half: Half| if half == Half::First { Unit::Number } else { register.unit };
    let value = |operand, half| {
        fits(program, operand, HALF_BITS)?;
        match unit(program, operand) {
            Some(unit) if unit != unit_of(half) => {
                Err(format!("reads {unit}; the {} words are in {}", half.name(), unit_of(half)))
            }
            _ => Ok(()),
        }
    };
    value(action.words[0], Half::First)?;
    value(action.words[1], Half::Second)?;
    for PairCondition { of, condition } in &action.conditions {
        if matches!(condition.left, AluExpression::MoveTowards(..)) {
            return Err("averages in a condition".to_owned());
        }
        if !condition.reads_word() {
            return Err("has a condition that does not read a word".to_owned());
        }
        let terms = condition.left.terms().into_iter().chain([condition.right]);
        let operands = terms.filter_map(|term| if let AluTerm::Value(operand) = term { Some(operand) } else { None });
        operands.into_iter().try_for_each(|operand| value(operand, *of))?;
    }
    let (bits, unit) = match action.output {
        PairOutput::Changed => (1, Unit::Number),
        PairOutput::Before(half) => (HALF_BITS, unit_of(half)),
    };
    returns(program, result, bits, unit)
}

/// A register, all of whose indexes are possible.
fn indexed(program: &SwitchProgram, register: usize, index: Operand) -> Result<&RegisterArray, Broken> {
    let register = program.registers.get(register).ok_or("accesses a register that does not exist")?;
    fits(program, index, u64::BITS)?;
    let highest = match index {
        Operand::Constant(index) => index,
        index => ones(bits(program, index).unwrap_or(0)),
    };
    if highest >= register.entries {
        return Err(format!("its index can be {highest}, and {} has {} words", register.name, register.entries));
    }
    Ok(register)
}

/// Checks the variable that takes what an access returns.
fn returns(program: &SwitchProgram, result: Variable, bits: u32, unit: Unit) -> Result<(), Broken> {
    let info = program.variables.get(result.0).ok_or("returns into a variable of another program")?;
    if is_fixed(info) {
        return Err(format!("{} is an input, which cannot be assigned", info.name));
    }
    if info.bits != bits || info.unit != unit {
        return Err(format!("returns {bits} bits in {unit}; {} has {} in {}", info.name, info.bits, info.unit));
    }
    Ok(())
}
