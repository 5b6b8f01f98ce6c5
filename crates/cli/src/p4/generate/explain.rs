//! `p4 generate --explain`: what a program does, in words.

use super::Parameters;
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
    let mut parameters = parameters.list();
    let mut note = "";
    match name {
        // The rest is CoDel's.
        "step" => parameters.retain(|it| it.key == "ce-threshold"),
        "conquest" | "conquest-ingress" => note = OF_CONQUEST,
        // Each role is a program, and queues are the switch's.
        "abc-edge" => parameters
            .retain(|it| ["reference", "memory", "least-time"].contains(&&*it.key) || it.key.starts_with("aqm")),
        "abc-core" => parameters.retain(|it| it.key.starts_with("aqm")),
        "abc-core-median" => {
            parameters.retain(|it| it.key.starts_with("aqm") && it.key != "aqm.memory");
        }
        "abc-strip" => parameters.clear(),
        "p4air" => note = OF_P4AIR,
        _ => {}
    }
    let width = |cell: fn(&Parameter) -> &str| parameters.iter().map(|it| cell(it).chars().count()).max().unwrap_or(0);
    let (keys, values, ranges) = (width(|it| &it.key), width(|it| &it.value), width(|it| &it.range));
    text.push_str("\nparameters (--set), with their ranges:\n");
    for it in &parameters {
        let _ = writeln!(text, "  {:<keys$}  {:<values$}  {:<ranges$}  {}", it.key, it.value, it.range, it.about);
    }
    text.push_str(note);
}

/// What a switch demands of ConQuest's parameters.
const OF_CONQUEST: &str = "  \
A switch demands more: window, snapshots (4, 8 or 16), columns and act-at.ingress.registers are powers of two, window from 65536 ns to 67.1 ms; rows
  are 1 to 4, and 1 or 2 with act-at = \"ingress\"; estimator is inner, unit packets or bytes, curve threshold or steps; behind is 0, and changes
  are left to the control plane. tau and act-at.ingress.hold are below 2.147 s, and the threshold is below 2^32. With the generator, a window has at
  least 128 ns for each column.
";

/// What a switch demands of P4air's parameters.
const OF_P4AIR: &str = "  \
A switch demands more: queues are 8, 16 or 32, and table.hashed.entries a power of two from 128 to 65536; newest is of-queue, start new-flows, assignment
  in-turn, queueing divided, rtt handshake, share a shift, act-on share and act-every packet; mark is 0, and delay-passes at most 255. All ports are managed.
";

/// The stages that the placer gives the program on a Tofino.
fn placed(program: &SwitchProgram, text: &mut String) -> Result<()> {
    let target = Target::tofino();
    let fit = Fit::new(&program.steps(), &target);
    let mut out = Vec::new();
    writeln!(out, "\n  on {}: {}", target.about, whole(&fit))?;
    if let Some(why) = &fit.room {
        writeln!(out, "  {why}")?;
    }
    if let Some(placement) = &fit.placement {
        stages(placement, fit.grade(), &target, &mut out)?;
    }
    text.push_str(&anstream::adapter::strip_str(&String::from_utf8_lossy(&out)).to_string());
    Ok(())
}
