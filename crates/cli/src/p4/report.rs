//! `queuescope p4 report`: what the compiler for Tofino gave a program, beside the placer.

use super::generate::made_from;
use super::{BOLD, DIM};
use crate::args::P4Report as Args;
use crate::outcome::{Outcome, print};
use crate::paths::read_text;
use crate::terminal::note;
use anyhow::{Context, Result, bail};
use queuescope_p4::{CompiledStage, CompilerReport, Fit, Placement, Target, Used};
use queuescope_report::json;
use queuescope_report::model::{SwitchCompiled, SwitchContainers, SwitchResources};
use std::io::{self, Write};
use std::path::Path;

/// The longest file that is read: logs of the largest programs have some megabytes.
const LONGEST: u64 = 1 << 28;

/// Runs `p4 report`.
///
/// # Errors
/// Fails if a log is missing or not in the known format, or if the program cannot be read.
pub fn run(args: &Args) -> Result<Outcome> {
    let target = Target::tofino();
    let compiled = compiled(&args.folder)?;
    let placement = placement(args, &compiled.program, &target)?;
    print(
        args.json,
        |mut out| json::write_compiled(reported(&compiled, placement.as_ref().ok()), &mut out),
        |out| text(&compiled, &placement, &target, out),
    )?;
    Ok(Outcome::Complete)
}

fn compiled(folder: &Path) -> Result<CompilerReport> {
    let logs = folder.join("pipe").join("logs");
    let log = |name: &str| {
        let path = logs.join(name);
        read_text(&path, LONGEST).with_context(|| {
            format!(
                "cannot read {}: the folder {} is not the output of p4c -g for Tofino, or the compiler failed",
                path.display(),
                folder.display()
            )
        })
    };
    let (resources, metrics) = (log("resources.json")?, log("metrics.json")?);
    let report = CompilerReport::from_json(&resources, &metrics)
        .with_context(|| format!("{} has logs that cannot be read together", logs.display()))?;
    if report.stages.is_empty() {
        bail!("{} has logs of a program without a table in any stage: the compiler failed", logs.display());
    }
    Ok(report)
}

/// What the placer gives the program, or why it gives nothing.
fn placement(args: &Args, compiled: &str, target: &Target) -> Result<Result<Placement, &'static str>> {
    let beside = args.folder.with_extension("p4");
    let path = args.program.as_deref().unwrap_or(&beside);
    if args.program.is_none() && !path.is_file() {
        return Ok(Err("there is no P4 file beside the folder: name it with --program"));
    }
    let text = read_text(path, LONGEST).with_context(|| format!("cannot read {}", path.display()))?;
    let program = made_from(&text).with_context(|| path.display().to_string())?;
    Ok(match program {
        None => Err("the P4 file was not made by p4 generate"),
        Some(program) if program.name() != compiled => {
            bail!("{} has the program {}, and the logs are of {compiled}", path.display(), program.name())
        }
        Some(program) => {
            note_age(path, &args.folder);
            Fit::new(&program.steps(), target).placement.ok_or("the program cannot be placed")
        }
    })
}

/// A note if the program was written after it was compiled: with other parameters, both columns are of different programs.
fn note_age(program: &Path, folder: &Path) {
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    if let (Some(written), Some(compiled)) = (changed(program), changed(&folder.join("pipe/logs/resources.json")))
        && written > compiled
    {
        note(&format!(
            "{} is newer than what the compiler made of it: compile it again, or the columns may be of different programs",
            program.display()
        ));
    }
}

fn text(
    compiled: &CompilerReport,
    placement: &Result<Placement, &'static str>,
    target: &Target,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}  compiled for Tofino by p4c {}", compiled.program, compiled.compiler)?;
    writeln!(out, "\n{BOLD}{:>20}  compiler  placer  of{BOLD:#}", "")?;
    let (total, has, stages) = (compiled.total(), &target.per_stage, target.stages as u64);
    let placed = placement.as_ref().ok().map(|it| (it.stages.len() as u64, it.used()));
    let used = placed.map(|(_, used)| used);
    let rows = [
        ("stages", compiled.stages.len() as u64, placed.map(|(stages, _)| stages), Some(stages)),
        ("stateful ALUs", total.used.registers, used.map(|it| it.registers), Some(has.registers * stages)),
        ("tables", total.used.tables, used.map(|it| it.tables), Some(has.tables * stages)),
        ("blocks of SRAM", total.used.sram, used.map(|it| it.sram), Some(has.sram * stages)),
        ("blocks of TCAM", total.used.tcam, used.map(|it| it.tcam), Some(has.tcam * stages)),
        ("actions", total.used.actions, used.map(|it| it.actions), Some(has.actions * stages)),
        ("hash units", total.hash_units, None, Some(target.hash_units * stages)),
        ("gateways", total.gateways, None, None),
        ("instruction words", total.instructions, None, None),
    ];
    for (name, compiler, placer, of) in rows {
        let cell = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        writeln!(out, "{name:>20}  {compiler:>8}  {:>6}  {}", cell(placer), cell(of))?;
    }
    for it in &compiled.containers {
        let name = format!("{}-bit containers", it.bits);
        writeln!(
            out,
            "{name:>20}  {:>8}  {:>6}  -  {DIM}and {} that pass from the parser to the deparser only{DIM:#}",
            it.normal, "-", it.tagalong
        )?;
    }
    if let Err(why) = placement {
        writeln!(out, "\nThe placer has no column: {why}.")?;
    }
    per_stage(compiled, placement.as_ref().ok(), out)
}

/// Writes the stages, each resource as the compiler's number and the placer's.
fn per_stage(compiled: &CompilerReport, placement: Option<&Placement>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{BOLD}   stage  registers   tables      SRAM     TCAM{BOLD:#}  {DIM}compiler/placer{DIM:#}")?;
    let stages = placement.map_or(&[][..], |it| &it.stages);
    for stage in 0..compiled.stages.len().max(stages.len()) {
        let compiler = compiled.stages.get(stage).map(|it| it.used);
        let placer = stages.get(stage).map(|it| it.used);
        let cell = |of: fn(&Used) -> u64| {
            let text = |used: Option<Used>| used.as_ref().map_or("-".to_owned(), |used| of(used).to_string());
            format!("{}/{}", text(compiler), text(placer))
        };
        writeln!(
            out,
            "{:>8}  {:>9}  {:>7}  {:>8}  {:>7}",
            stage + 1,
            cell(|it| it.registers),
            cell(|it| it.tables),
            cell(|it| it.sram),
            cell(|it| it.tcam)
        )?;
    }
    Ok(())
}

fn reported(compiled: &CompilerReport, placement: Option<&Placement>) -> SwitchCompiled {
    let resources = |Used { registers, tables, sram, tcam, actions }, more: Option<&CompiledStage>| SwitchResources {
        registers,
        tables,
        sram,
        tcam,
        actions,
        hash_units: more.map(|it| it.hash_units),
        gateways: more.map(|it| it.gateways),
        instructions: more.map(|it| it.instructions),
    };
    let containers = compiled.containers.iter();
    SwitchCompiled {
        program: compiled.program.clone(),
        compiler: compiled.compiler.clone(),
        compiled: compiled.stages.iter().map(|it| resources(it.used, Some(it))).collect(),
        placed: placement.map(|it| it.stages.iter().map(|stage| resources(stage.used, None)).collect()),
        containers: containers
            .map(|it| SwitchContainers { bits: it.bits, normal: it.normal, tagalong: it.tagalong })
            .collect(),
    }
}
