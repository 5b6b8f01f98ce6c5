//! Checks of tables, their entries and actions.

use super::Broken;
use super::operands::{bits, fits, is_fixed};
use super::statements::check_all;
use crate::ir::builder::{Does, SwitchProgram};
use crate::ir::operation::Operation;
use crate::ir::table::{ActionTable, MatchTable, TableAction, TableEntries};
use crate::ir::variable::{Operand, ones};
use std::collections::BTreeSet;

pub(super) fn check_table(program: &SwitchProgram, table: &MatchTable) -> Result<(), Broken> {
    table.keys.iter().try_for_each(|key| fits(program, *key, u64::BITS))?;
    let widths: Vec<_> = table.keys.iter().filter_map(|key| bits(program, *key)).collect();
    if widths.is_empty() && !table.entries.is_empty() || widths.len() != table.keys.len() {
        return Err("needs variables as keys".to_owned());
    }
    for result in &table.results {
        let info = program.variables.get(result.0).ok_or("gives a value to a variable of another program")?;
        if is_fixed(info) {
            return Err(format!("{} is an input, which cannot be assigned", info.name));
        }
        if table.results.iter().filter(|other| *other == result).count() > 1 {
            return Err(format!("gives {} two values", info.name));
        }
    }
    check_keys(&table.keys)?;
    let results: Vec<_> = table.results.iter().map(|result| program.variables[result.0].bits).collect();
    let all_fit = |values: &[u64], widths: &[u32]| {
        let fit = values.len() == widths.len() && values.iter().zip(widths).all(|(value, bits)| *value <= ones(*bits));
        if fit { Ok(()) } else { Err(format!("{values:?} does not fit {widths:?} bits")) }
    };
    all_fit(&table.otherwise, &results)?;
    match &table.entries {
        TableEntries::Exact(entries) => {
            let mut keys = BTreeSet::new();
            for (key, values) in entries {
                all_fit(key, &widths)?;
                all_fit(values, &results)?;
                if !keys.insert(key) {
                    return Err(format!("has two entries for {key:?}"));
                }
            }
        }
        TableEntries::Ranges(entries) => {
            let mut next = 0;
            for ((low, high), values) in entries {
                all_fit(&[*high], &widths)?;
                all_fit(values, &results)?;
                if low > high || *low < next {
                    return Err(format!("{low} to {high} is not after the range before it"));
                }
                next = high.saturating_add(1);
            }
        }
    }
    Ok(())
}

pub(super) fn check_choice(program: &SwitchProgram, table: &ActionTable, accesses: &mut [usize]) -> Result<(), Broken> {
    table.keys.iter().try_for_each(|key| fits(program, *key, u64::BITS))?;
    let widths: Vec<_> = table.keys.iter().filter_map(|key| bits(program, *key)).collect();
    if widths.is_empty() || widths.len() != table.keys.len() {
        return Err("needs variables as keys".to_owned());
    }
    check_keys(&table.keys)?;
    if table.entries.is_empty() {
        return Err("has no entries".to_owned());
    }
    let mut most = accesses.to_vec();
    for action in &table.actions {
        let mut own = accesses.to_vec();
        check_action(program, action, &mut own).map_err(|why| format!("{}: {why}", action.name))?;
        most.iter_mut().zip(own).for_each(|(count, own)| *count = (*count).max(own));
    }
    accesses.copy_from_slice(&most);
    for (number, (ranges, action)) in table.entries.iter().enumerate() {
        let fit = |((low, high), bits): (&(u64, u64), &u32)| low <= high && *high <= ones(*bits);
        if ranges.len() != widths.len() || !ranges.iter().zip(&widths).all(fit) {
            return Err(format!("{ranges:?} does not fit {widths:?} bits"));
        }
        if *action >= table.actions.len() {
            return Err(format!("names action {action}, which it does not have"));
        }
        let meet =
            |other: &[(u64, u64)]| ranges.iter().zip(other).all(|(one, other)| one.0 <= other.1 && other.0 <= one.1);
        if let Some((other, _)) = table.entries[..number].iter().find(|(other, _)| meet(other)) {
            return Err(format!("packets can match both {other:?} and {ranges:?}"));
        }
    }
    Ok(())
}

/// Checks what an entry does: a stage does all of it at once.
fn check_action(program: &SwitchProgram, action: &TableAction, accesses: &mut [usize]) -> Result<(), Broken> {
    let mut assigned = BTreeSet::new();
    for statement in &action.statements {
        let (reads, sets) = match &statement.does {
            Does::Set { operation, .. } if *operation == Operation::Random || operation.hashes().is_some() => {
                return Err("random numbers and hashes are drawn before a table, not in it".to_owned());
            }
            Does::Set { variable, operation } => (operation.operands(), Some(*variable)),
            Does::Access { index, action, result, .. } => {
                (program.actions[*action].operands().into_iter().chain([*index]).collect(), *result)
            }
            _ => return Err("does more than assignments and accesses".to_owned()),
        };
        let read = reads.into_iter().filter_map(Operand::variable).find(|read| assigned.contains(read));
        if let Some(read) = read {
            return Err(format!(
                "reads {}, which it assigns: that takes another stage",
                program.variables[read.0].name
            ));
        }
        if let Some(twice) = sets.filter(|set| !assigned.insert(*set)) {
            return Err(format!("assigns {} twice", program.variables[twice.0].name));
        }
    }
    check_all(program, &action.statements, accesses).map_err(|(place, why)| format!("{place}: {why}"))
}

/// A variable names its key in a control plane.
fn check_keys(keys: &[Operand]) -> Result<(), Broken> {
    let variables: BTreeSet<_> = keys.iter().filter_map(|key| key.variable()).collect();
    if variables.len() == keys.len() { Ok(()) } else { Err("has a variable twice as key".to_owned()) }
}
