//! Checks of statements: what they do, assign and compare.

use super::access::{check_access, check_swap};
use super::operands::{bits, fits, is_fixed, unit};
use super::tables::{check_choice, check_table};
use super::{Broken, HASH_BITS, QUEUE_BITS};
use crate::ir::builder::{Does, Statement, SwitchProgram, VariableInfo};
use crate::ir::condition::Condition;
use crate::ir::operation::Operation;
use crate::ir::pair::HALF_BITS;
use crate::ir::variable::{Input, Operand, Unit, Variable};

/// The first broken rule, and the statement that breaks it.
pub(super) fn check_all(
    program: &SwitchProgram,
    statements: &[Statement],
    accesses: &mut [usize],
) -> Result<(), (String, Broken)> {
    for statement in statements {
        match &statement.does {
            Does::Mark
            | Does::Drop
            | Does::FeedBack
            | Does::Recirculate
            | Does::Enqueue(_)
            | Does::SetWindow(_)
            | Does::Push(_)
            | Does::Strip
                if program.is_off_path =>
            {
                let why = "a switch off the path has copies of packets, and only reports".to_owned();
                return Err(("an act".to_owned(), why));
            }
            Does::Comment(_) | Does::Mark | Does::Drop | Does::FeedBack | Does::Recirculate => {}
            Does::Report { port, delay, estimate } => {
                let checked = check_report(program, *port, [*delay, *estimate]);
                checked.map_err(|why| ("a report".to_owned(), why))?;
            }
            Does::Enqueue(queue) => {
                fits(program, *queue, QUEUE_BITS).map_err(|why| ("the queue".to_owned(), why))?;
            }
            Does::SetWindow(window) => {
                check_window(program, *window).map_err(|why| ("the receive window".to_owned(), why))?;
            }
            Does::Push(activity) => {
                check_push(program, *activity).map_err(|why| ("a push of the activity".to_owned(), why))?;
            }
            Does::Strip => check_has_activity(program).map_err(|why| ("a removal of the activity".to_owned(), why))?,
            Does::Lookup(table) => {
                let table = &program.tables[*table];
                check_table(program, table).map_err(|why| (format!("the table {}", table.name), why))?;
            }
            Does::Choose(table) => {
                let table = &program.choices[*table];
                check_choice(program, table, accesses).map_err(|why| (format!("the table {}", table.name), why))?;
            }
            Does::Set { variable, operation } => {
                let name = program.variables.get(variable.0).map_or("a variable of another program", |it| &it.name);
                let place = format!("the assignment to {name}");
                check_operation(program, *variable, operation).map_err(|why| (place, why))?;
            }
            Does::If { condition, then, otherwise } => {
                check_condition(program, condition).map_err(|why| ("a condition".to_owned(), why))?;
                // A packet takes one of the branches.
                let mut other = accesses.to_vec();
                check_all(program, then, accesses)?;
                check_all(program, otherwise, &mut other)?;
                accesses.iter_mut().zip(other).for_each(|(count, other)| *count = (*count).max(other));
            }
            Does::Swap { register, index, action, result } => {
                let action = &program.pair_actions[*action];
                let place = format!("the action {}", action.name);
                check_swap(program, *register, *index, action, *result).map_err(|why| (place, why))?;
                accesses[*register] += 1;
            }
            Does::Access { register, index, action, result } => {
                let action = &program.actions[*action];
                let place = format!("the action {}", action.name);
                check_access(program, *register, *index, action, *result).map_err(|why| (place, why))?;
                accesses[*register] += 1;
            }
        }
    }
    Ok(())
}

fn check_report(program: &SwitchProgram, port: Operand, values: [Operand; 2]) -> Result<(), Broken> {
    if !program.is_off_path {
        return Err("is for switches off the path: this one forwards packets".to_owned());
    }
    fits(program, port, Input::ArrivalPort.bits())?;
    values.into_iter().try_for_each(|value| fits(program, value, HALF_BITS))
}

/// Windows are written with the checksum.
fn check_window(program: &SwitchProgram, window: Operand) -> Result<(), Broken> {
    let missing = [Input::Window, Input::TcpChecksum].into_iter().find(|input| program.inputs().all(|it| it != *input));
    if let Some(missing) = missing {
        return Err(format!("the program does not have the input {}", missing.name()));
    }
    fits(program, window, Input::Window.bits())
}

fn check_push(program: &SwitchProgram, activity: Operand) -> Result<(), Broken> {
    check_has_activity(program)?;
    fits(program, activity, Input::Activity.bits())?;
    match bits(program, activity) {
        Some(bits) if bits < Input::Activity.bits() => {
            Err(format!("has {bits} bits; an activity has {}", Input::Activity.bits()))
        }
        _ => Ok(()),
    }
}

/// A program that changes activity headers reads whether there is one, so that it is parsed.
fn check_has_activity(program: &SwitchProgram) -> Result<(), Broken> {
    let reads = |it: &VariableInfo| it.input == Some(Input::HasActivity);
    let is_read = program.variables.iter().any(reads);
    if is_read { Ok(()) } else { Err("the program does not have the input has_activity".to_owned()) }
}

fn check_operation(program: &SwitchProgram, to: Variable, operation: &Operation) -> Result<(), Broken> {
    let info = program.variables.get(to.0).ok_or("it does not exist here")?;
    if is_fixed(info) {
        return Err("it is an input, which cannot be assigned".to_owned());
    }
    for operand in operation.operands() {
        fits(program, operand, info.bits)?;
    }
    if let Operation::ShiftLeft(_, by) | Operation::Gather(_, by) | Operation::ShiftRight(_, by) = operation
        && *by >= info.bits
    {
        return Err(format!("a shift by {by} leaves nothing of {} bits", info.bits));
    }
    if let Operation::Join(one, other, by) = *operation {
        let [one, other] = [one, other].map(|operand| bits(program, operand).unwrap_or(0));
        if other != by || one == 0 || one + by > info.bits {
            return Err(format!("joins {one} and {other} bits into {}, with {by} behind", info.bits));
        }
    }
    if let Some((parts, _)) = operation.hashes() {
        let has = |input: &Input| program.variables.iter().any(|it| it.input == Some(*input));
        if let Some(missing) = parts.iter().find(|input| !has(input)) {
            let what = if parts == Input::FLOW { "flow" } else { "packet" };
            return Err(format!("hashes the {what}, and the program does not have the input {}", missing.name()));
        }
        if info.bits > HASH_BITS {
            return Err(format!("takes {} bits of a hash, which has {HASH_BITS}", info.bits));
        }
    }
    let units: Vec<_> = operation.operands().iter().filter_map(|operand| unit(program, *operand)).collect();
    let expected = match *operation {
        Operation::ShiftRight(_, by) => units.first().map(|unit| unit.without_low_bits(by)),
        // A product is a plain number.
        Operation::ShiftLeft(..)
        | Operation::Join(..)
        | Operation::Random
        | Operation::Hash(_)
        | Operation::HashReversed(_)
        | Operation::HashPacket(_) => None,
        _ => units.first().copied(),
    };
    if let Some(other) = units.iter().find(|unit| Some(**unit) != units.first().copied()) {
        return Err(format!("combines {} and {}", units[0], other));
    }
    let is_drawn = matches!(operation, Operation::Random) || operation.hashes().is_some();
    let is_constant = units.is_empty() && !is_drawn;
    match expected.unwrap_or(Unit::Number) {
        _ if is_constant => Ok(()),
        // A copy of bits as a plain number is possible.
        unit if unit == info.unit || info.unit == Unit::Number => Ok(()),
        unit => Err(format!("the result is in {unit}, and the variable in {}", info.unit)),
    }
}

fn check_condition(program: &SwitchProgram, condition: &Condition) -> Result<(), Broken> {
    if let Condition::All(parts) | Condition::Any(parts) = condition {
        if parts.is_empty() {
            return Err("has no parts".to_owned());
        }
        return parts.iter().try_for_each(|part| check_condition(program, part));
    }
    for (left, right) in condition.comparisons() {
        let widest = [left, right].map(|operand| bits(program, operand).unwrap_or(0)).into_iter().max();
        let widest = widest.filter(|bits| *bits > 0).ok_or("compares constants")?;
        [left, right].into_iter().try_for_each(|operand| fits(program, operand, widest))?;
        if let (Some(left), Some(right)) = (unit(program, left), unit(program, right))
            && left != right
        {
            return Err(format!("compares {left} with {right}"));
        }
    }
    Ok(())
}
