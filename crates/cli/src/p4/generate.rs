//! `queuescope p4 generate`: an algorithm as a P4 program.

use crate::args::Generate as Args;
use crate::outcome::Outcome;
use crate::paths::{cannot_write, create};
use anyhow::{Context, Result, anyhow, bail};
use queuescope_p4::algorithms::{self, Dimensions, egress_pi_with, pie_dp_with, pie_table_with};
use queuescope_p4::ir::{Architecture, SwitchProgram, print, print_entries};
use queuescope_p4::{Fit, Grade, Target};
use queuescope_queue::PipelineParams;
use queuescope_scenario::Management;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Runs `p4 generate`.
///
/// # Errors
/// Fails if the algorithm has no program, a parameter is not valid, the program does not fit the target, or it cannot be written.
pub fn run(args: &Args) -> Result<Outcome> {
    let (Some(name), Some(target)) = (&args.algorithm, &args.target) else { return text(&list()?) };
    let architecture = Architecture::ALL.into_iter().find(|it| it.name() == target).context("the target is known")?;
    let program = program(name, &args.set)?;
    check(&program, architecture)?;
    if let Some(set) = args.set.iter().find(|set| set.chars().any(char::is_control)) {
        bail!("--set {set:?} has a control character, such as a line break: write KEY=VALUE");
    }
    let set: String = args.set.iter().map(|set| format!(" --set {}", quoted(set))).collect();
    let made_by = format!("// Made by: queuescope p4 generate {name} --target {target}{set}\n");
    let code = made_by + &print(&program, architecture);
    match &args.output {
        Some(folder) => write(folder, &program, architecture, &code),
        None => text(&code),
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=._-/:%+@".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn text(text: &str) -> Result<Outcome> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Outcome::Complete),
        other => other.context("cannot write to standard output").map(|()| Outcome::Complete),
    }
}

/// All algorithms, and for which targets they can be generated.
fn list() -> Result<String> {
    let executable = algorithms::executable()?;
    let mut list = format!("{:<16}  v1model  tna  about\n", "algorithm");
    for steps in algorithms::all(Dimensions::default()) {
        let program = executable.iter().find(|program| program.name() == steps.name());
        let cell = |architecture| match program {
            Some(program) if check(program, architecture).is_ok() => "yes",
            _ => "no",
        };
        let [v1model, tna] = Architecture::ALL.map(cell);
        let _ = writeln!(list, "{:<16}  {v1model:>7}  {tna:>3}  {}", steps.name(), steps.about());
    }
    list.push_str("\nThose with no are known to p4 fit as steps only: they cannot be run or generated yet.\n");
    Ok(list)
}

/// The program of an algorithm, with parameters that replace its defaults.
fn program(name: &str, set: &[String]) -> Result<SwitchProgram> {
    if !algorithms::EXECUTABLE.contains(&name) {
        bail!("{name} is known as steps only, and cannot be generated yet: --list shows which algorithms can");
    }
    let text = [&[name.to_owned()], set].concat().join(",");
    let params = match Management::parse("--set", &text).map_err(|why| anyhow!("{why}"))? {
        Management::Program(params) => params,
        Management::Discipline(_) => bail!("{name} is a discipline of one queue, not a program of a switch"),
    };
    match params {
        PipelineParams::PieDp(params) => Ok(pie_dp_with(&params)?),
        PipelineParams::PieTable(params) => Ok(pie_table_with(&params)?),
        PipelineParams::EgressPi(params) => Ok(egress_pi_with(&params)?),
        _ => bail!("{name} has no program"),
    }
}

/// Checks that a program fits its target. BMv2 has no stages.
fn check(program: &SwitchProgram, architecture: Architecture) -> Result<()> {
    if architecture == Architecture::V1model {
        return Ok(());
    }
    let fit = Fit::new(&program.steps(), &Target::tofino());
    if fit.grade() < Grade::Infeasible {
        return Ok(());
    }
    let reasons = fit.aspects.iter().filter(|(_, verdict)| verdict.grade == Grade::Infeasible);
    let reasons = reasons.flat_map(|(_, verdict)| verdict.reasons.iter().cloned()).chain(fit.room.clone());
    bail!("{} does not fit a Tofino: {}", program.name(), reasons.collect::<Vec<_>>().join("; "))
}

/// Writes the program, the entries of its tables, and a makefile.
fn write(folder: &Path, program: &SwitchProgram, architecture: Architecture, code: &str) -> Result<Outcome> {
    if folder.extension().is_some_and(|ending| ending == "p4") {
        bail!(
            "-o {}: names a folder, for the program and what belongs to it; without -o, the program is printed",
            folder.display()
        );
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let name = program.name();
    let mut files = vec![(format!("{name}.p4"), code.to_owned()), (format!("{name}.mk"), makefile(name, architecture))];
    let entries = match architecture {
        Architecture::V1model => format!("{name}.cli"),
        Architecture::Tna => format!("{name}.bfrt.py"),
    };
    files.extend(print_entries(program, architecture).map(|text| (entries, text)));
    let mut written = String::new();
    for (file, contents) in files {
        let path = folder.join(file);
        create(&path)?.write_whole(|out| out.write_all(contents.as_bytes())).with_context(|| cannot_write(&path))?;
        let _ = writeln!(written, "{}", path.display());
    }
    text(&written)
}

/// What compiles the program.
fn makefile(name: &str, architecture: Architecture) -> String {
    let (file, flags) = match architecture {
        Architecture::V1model => (format!("{name}.json"), "--target bmv2 --arch v1model -o ."),
        Architecture::Tna => (format!("{name}.tofino"), "--target tofino --arch tna -o $@"),
    };
    format!(
        "# Compiles the program with p4c (https://github.com/p4lang/p4c): make -f {name}.mk, or make -f {name}.mk P4C=/path/to/p4c.\n\
         P4C ?= p4c\n\n{file}: {name}.p4\n\t$(P4C) {flags} $<\n"
    )
}
