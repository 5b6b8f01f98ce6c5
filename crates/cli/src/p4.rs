//! `queuescope p4`: whether an algorithm fits a switch, and the program of one.

mod generate;
mod report;

use crate::args::{Fit as Args, P4};
use crate::outcome::{Outcome, print};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use queuescope_p4::algorithms::EXECUTABLE;
use queuescope_p4::{Aspect, Fit, Grade, PerStage, Placement, Program, Stage, Target, Used, Verdict};
use queuescope_report::format::percent;
use queuescope_report::json;
use queuescope_report::model::{SwitchAspect, SwitchFit, SwitchMemory, SwitchPlaced, SwitchStage};
use std::io::{self, Write};

/// Runs `p4`.
///
/// # Errors
/// Fails if an option is of another algorithm, if a program cannot be made, or if standard output cannot be written.
pub fn run(what: &P4) -> Result<Outcome> {
    let args = match what {
        P4::Fit(args) => args,
        P4::Generate(args) => return generate::run(args),
        P4::Report(args) => return report::run(args),
    };
    let (programs, targets) = (args.programs()?, args.targets());
    print(args.json, |out| lines(&programs, &targets, out), |out| text(args, &programs, &targets, out))?;
    Ok(Outcome::Complete)
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();
const GOOD: Style = AnsiColor::Green.on_default();

fn text(args: &Args, programs: &[Program], targets: &[Target], out: &mut dyn Write) -> io::Result<()> {
    if args.algorithm.is_none() {
        return matrix(programs, targets, out);
    }
    for (n, (program, target)) in pairs(programs, targets).enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        drawing(program, target, &Fit::new(program, target), out)?;
    }
    Ok(())
}

fn pairs<'a>(programs: &'a [Program], targets: &'a [Target]) -> impl Iterator<Item = (&'a Program, &'a Target)> {
    programs.iter().flat_map(move |program| targets.iter().map(move |target| (program, target)))
}

/// Writes all algorithms on all switches, as in the paper's table I.
fn matrix(programs: &[Program], targets: &[Target], out: &mut dyn Write) -> io::Result<()> {
    for (n, target) in targets.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", target.name, target.about)?;
        writeln!(
            out,
            "\n  {BOLD}{:<18}  metric  reaction  backflow  memory  room  program    stages{BOLD:#}",
            "algorithm"
        )?;
        for program in programs {
            let fit = Fit::new(program, target);
            let cells = fit.aspects.each_ref().map(|(_, verdict)| cell(verdict.grade));
            let stages = fit.placement.as_ref().map_or("-".to_owned(), |placement| placement.stages.len().to_string());
            let stages = format!("{stages} of {}", target.stages);
            let (verdict, room) = (whole(&fit), if fit.room.is_none() { "yes" } else { "no" });
            let [metric, reaction, backflow, memory] = cells;
            let written = written(program, target, &fit);
            writeln!(
                out,
                "  {:<18}  {metric:>6}  {reaction:>8}  {backflow:>8}  {memory:>6}  {room:>4}  {written:>7}  {stages:>8}  {verdict}",
                program.name()
            )?;
        }
    }
    writeln!(
        out,
        "\nyes: as it is; other: with a workaround; no: not possible. For an algorithm that does not fit, stages are those it would take.\n\
         program: whether p4 generate writes it for this switch, in this size (ConQuest may need a longer window); -: no program is written for the\n\
         algorithm, or for the switch.\n\
         Give the name of an algorithm for the reasons and the stages."
    )
}

/// Whether `p4 generate` writes the program of an algorithm for a switch.
fn written(program: &Program, target: &Target, fit: &Fit) -> &'static str {
    match fit.grade() {
        _ if !target.has_programs || !EXECUTABLE.contains(&program.name()) => "-",
        Grade::Infeasible => "no",
        Grade::Feasible | Grade::Workaround => "yes",
    }
}

fn cell(grade: Grade) -> &'static str {
    match grade {
        Grade::Feasible => "yes",
        Grade::Workaround => "other",
        Grade::Infeasible => "no",
    }
}

/// The verdict in words.
fn whole(fit: &Fit) -> String {
    let (style, words) = match fit.grade() {
        Grade::Feasible => (GOOD, "fits"),
        Grade::Workaround => (NOTE, "fits, with a workaround"),
        Grade::Infeasible => (BAD, "does not fit"),
    };
    format!("{style}{words}{style:#}")
}

/// Writes one algorithm on one switch: the verdicts with their reasons, and the stages.
fn drawing(program: &Program, target: &Target, fit: &Fit, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BOLD}{} on {}{BOLD:#}  {}", program.name(), target.name, whole(fit))?;
    writeln!(out, "   about  {}", program.about())?;
    writeln!(out, "  switch  {}\n", target.about)?;
    for (aspect, Verdict { grade, reasons }) in &fit.aspects {
        let style = match grade {
            Grade::Feasible => GOOD,
            Grade::Workaround => NOTE,
            Grade::Infeasible => BAD,
        };
        writeln!(out, "{:>10}  {style}{}{style:#}", aspect.name(), grade.name())?;
        for reason in reasons {
            writeln!(out, "{:>10}  {reason}", "")?;
        }
    }
    for (name, why) in [("room", &fit.room), ("program", &fit.refused)] {
        if let Some(why) = why {
            writeln!(out, "{name:>10}  {BAD}infeasible{BAD:#}\n{:>10}  {why}", "")?;
        }
    }
    if let Some(placement) = &fit.placement {
        stages(placement, fit.grade(), target, out)?;
    }
    memory(program, target, out)
}

fn stages(placement: &Placement, grade: Grade, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let if_it_fitted = if grade == Grade::Infeasible { ", if it fitted" } else { "" };
    writeln!(out, "\n{BOLD}   stage  registers  tables     SRAM    TCAM  contents{if_it_fitted}{BOLD:#}")?;
    for (n, stage) in placement.stages.iter().enumerate() {
        draw_stage(n, stage, target, out)?;
    }
    totals(placement, target, out)
}

fn draw_stage(n: usize, stage: &Stage, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let Used { registers, tables, sram, tcam, .. } = stage.used;
    let has = &target.per_stage;
    let of = |used: u64, has: u64| if used == 0 { "-".to_owned() } else { format!("{used}/{has}") };
    let style = if n < target.stages { Style::new() } else { BAD };
    let mut head = format!(
        "{style}{:>8}{style:#}  {:>9}  {:>6}  {:>7}  {:>6}",
        n + 1,
        of(registers, has.registers),
        of(tables, has.tables),
        of(sram, has.sram),
        of(tcam, has.tcam)
    );
    for placed in &stage.placed {
        let more = if placed.continued { " (continued)" } else { "" };
        writeln!(out, "{head}  {DIM}{:<7}{DIM:#}  {}{more}", placed.gress.name(), placed.name)?;
        head = " ".repeat(44);
    }
    if stage.placed.is_empty() {
        writeln!(out, "{head}")?;
    }
    Ok(())
}

fn totals(placement: &Placement, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let stages = target.stages as u64;
    let PerStage { registers, tables, sram, tcam, .. } = target.per_stage;
    let used = placement.used();
    let share = |used: u64, has: u64| percent(used as f64 / (has * stages) as f64);
    writeln!(
        out,
        "\n{} of {stages} stages ({}); of their total: {} of the register accesses, {} of the tables, {} of the SRAM, {} of the TCAM",
        placement.stages.len(),
        percent(placement.stages.len() as f64 / stages as f64),
        share(used.registers, registers),
        share(used.tables, tables),
        share(used.sram, sram),
        share(used.tcam, tcam)
    )
}

/// Writes the memory of a program whose registers have named parts, and what is known of the hash units.
fn memory(program: &Program, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let parts = program.memory();
    if parts.is_empty() {
        return Ok(());
    }
    let all: u64 = parts.iter().map(|(_, bits)| bits).sum();
    writeln!(out, "\n{BOLD}{:>15}         kB    share{BOLD:#}", "register memory")?;
    let kilobytes = |bits: u64| bits as f64 / 8e3;
    for (part, bits) in &parts {
        writeln!(out, "{part:>15}  {:>9.2}  {:>5.2} %", kilobytes(*bits), 100.0 * *bits as f64 / all as f64)?;
    }
    writeln!(out, "{:>15}  {:>9.2}", "all", kilobytes(all))?;
    let stages = target.stages as u64;
    let share = |used: u64, has: u64| percent(used as f64 / (has * stages) as f64);
    writeln!(
        out,
        "\nin the words of the switch, registers take {} of the SRAM; hashes take {} of {} hash units ({})\n\
         not known: hash units that find the entries of {} registers, container space of the packet's fields, forwarding",
        share(program.register_blocks(target), target.per_stage.sram),
        program.hashes(),
        target.hash_units * stages,
        share(program.hashes(), target.hash_units),
        program.indexed_registers(),
    )
}

/// Writes a line of JSON for each algorithm on each switch.
fn lines(programs: &[Program], targets: &[Target], mut out: &mut dyn Write) -> io::Result<()> {
    for (program, target) in pairs(programs, targets) {
        json::write_fit(reported(program, target, &Fit::new(program, target)), &mut out)?;
    }
    Ok(())
}

fn reported(program: &Program, target: &Target, fit: &Fit) -> SwitchFit {
    let aspect = |(aspect, Verdict { grade, reasons }): &(Aspect, Verdict)| SwitchAspect {
        aspect: aspect.name().to_owned(),
        grade: grade.name().to_owned(),
        reasons: reasons.clone(),
    };
    SwitchFit {
        algorithm: program.name().to_owned(),
        target: target.name.to_owned(),
        target_stages: target.stages as u64,
        grade: fit.grade().name().to_owned(),
        aspects: fit.aspects.iter().map(aspect).collect(),
        exhausted: fit.room.clone(),
        refused: fit.refused.clone(),
        stages: fit.placement.as_ref().map(|placement| placement.stages.iter().map(reported_stage).collect()),
        register_memory: program
            .memory()
            .into_iter()
            .map(|(part, bits)| SwitchMemory { part: part.to_owned(), bits })
            .collect(),
    }
}

fn reported_stage(stage: &Stage) -> SwitchStage {
    let Used { registers, tables, sram, tcam, actions: _ } = stage.used;
    let placed = stage.placed.iter().map(|placed| SwitchPlaced {
        control: placed.gress.name().to_owned(),
        name: placed.name.clone(),
        continued: placed.continued,
    });
    SwitchStage { registers, tables, sram_blocks: sram, tcam_blocks: tcam, placed: placed.collect() }
}
