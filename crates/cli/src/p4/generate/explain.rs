//! `p4 generate --explain`: what a program does, in words.

use super::{Parameters, limits};
use crate::p4::{stages, whole};
use anyhow::Result;
use queuescope_p4::ir::{Architecture, SwitchProgram, explain, explain_target};
use queuescope_p4::{Fit, Target};
use queuescope_scenario::Parameter;
use std::fmt::Write as _;
use std::io::Write as _;

/// The whole text: for one target, or for all.
///
/// # Errors
/// Never fails: the text is written to memory.
pub(super) fn text(
    parameters: &Parameters,
    program: &SwitchProgram,
    architecture: Option<Architecture>,
) -> Result<String> {
    let mut text = explain(program);
    list(program.name(), parameters, &mut text);
    for each in Architecture::ALL.into_iter().filter(|each| architecture.is_none_or(|one| one == *each)) {
        let _ = write!(text, "\n{}:\n{}", each.name(), explain_target(program, each));
        if each == Architecture::Tna {
            placed(program, &mut text)?;
        }
    }
    Ok(text)
}

/// The parameters with their values and ranges.
fn list(name: &str, parameters: &Parameters, text: &mut String) {
    let parameters = limits::of_program(name, parameters.list());
    let width = |cell: fn(&Parameter) -> &str| parameters.iter().map(|it| cell(it).chars().count()).max().unwrap_or(0);
    let (keys, values, ranges) = (width(|it| &it.key), width(|it| &it.value), width(|it| &it.range));
    text.push_str("\nparameters (--set), with their ranges:\n");
    for it in &parameters {
        let _ = writeln!(text, "  {:<keys$}  {:<values$}  {:<ranges$}  {}", it.key, it.value, it.range, it.about);
    }
}

/// The stages that the placer gives the program on a Tofino.
fn placed(program: &SwitchProgram, text: &mut String) -> Result<()> {
    let target = Target::tofino();
    let fit = Fit::new(&program.steps(), &target);
    let mut out = Vec::new();
    writeln!(out, "\n  on {}: {}", target.about, whole(&fit))?;
    for why in [&fit.room, &fit.refused].into_iter().flatten() {
        writeln!(out, "  {why}")?;
    }
    if let Some(placement) = &fit.placement {
        stages(placement, fit.grade(), &target, &mut out)?;
    }
    text.push_str(&anstream::adapter::strip_str(&String::from_utf8_lossy(&out)).to_string());
    Ok(())
}
