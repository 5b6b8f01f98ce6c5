//! `queuescope fleet program`: control programs.

use super::{say, table, with_client};
use crate::args::{FleetProgram, ProgramAdd, ProgramFile, ProgramList, ProgramRemove, parameter_values};
use crate::outcome::{Outcome, print};
use crate::paths::read_text;
use anyhow::{Context, Result, anyhow, bail};
use queuescope_fleet::program::Program;
use queuescope_fleet::protocol::ProgramState;
use queuescope_report::format::count;
use serde_json::{Value, json};
use std::io::Write;

/// The longest file of a program, in bytes. The parser allows less.
const LONGEST: u64 = 1 << 20;

/// Runs `fleet program`.
///
/// # Errors
/// Fails if a program is wrong, or if the coordinator refuses the call.
pub fn run(what: &FleetProgram) -> Result<Outcome> {
    match what {
        FleetProgram::Add(args) => add(args),
        FleetProgram::Check(args) => check(args),
        FleetProgram::List(args) => list(args),
        FleetProgram::Remove(args) => remove(args),
    }
}

type Values = Vec<(String, String)>;

/// A program of a file, which is checked: its text, the values of its parameters, and what it means.
fn read(args: &ProgramFile) -> Result<(String, Values, Program)> {
    let path = args.file.display();
    let text = read_text(&args.file, LONGEST).with_context(|| format!("cannot read {path}"))?;
    let values = parameter_values(&args.set)?;
    let borrowed: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let program = Program::parse(&path.to_string(), &text, &borrowed).map_err(|error| anyhow!("{error}"))?;
    Ok((text, values, program))
}

fn add(args: &ProgramAdd) -> Result<Outcome> {
    let (text, values, _) = read(&args.program)?;
    with_client(&args.access, async |client| {
        Ok(client.add_program(&args.name, &text, values.into_iter().collect()).await?)
    })?;
    say(&format!("added {}", args.name))
}

fn check(args: &ProgramFile) -> Result<Outcome> {
    let (_, _, program) = read(args)?;
    let (asks, raises) = (program.asks().len() as u64, program.raises().len() as u64);
    let about = if program.about().is_empty() { "no description" } else { program.about() };
    let mut text = format!("{about}\n{} questions, {} alerts", count(asks), count(raises));
    for act in program.acts() {
        let (alert, dry) = (&program.raises()[act.after].name, if act.dry { ", as a dry run" } else { ", for real" });
        text += &format!("\nafter {alert}: {} for {}{dry}", act.action, act.time);
    }
    say(&text)
}

fn list(args: &ProgramList) -> Result<Outcome> {
    let programs = with_client(&args.access, async |client| Ok(client.programs().await?))?;
    let lines = |out: &mut dyn Write| programs.iter().try_for_each(|program| writeln!(out, "{}", as_json(program)));
    print(args.json, lines, |out| {
        let rows = programs.iter().map(|program| {
            let installed = program.members.iter().filter(|member| member.is_installed).count();
            let hosts = format!("{installed} of {}", program.members.len());
            let ProgramState { name, about, runs, raised, undecided, .. } = program;
            [name.clone(), hosts, count(*runs), count(*raised), count(*undecided), about.clone()]
        });
        table(&["program", "installed", "runs", "alerts", "undecided", "about"], rows, out)?;
        programs.iter().flat_map(troubles).try_for_each(|trouble| writeln!(out, "{trouble}"))
    })?;
    let troubles: Vec<_> = programs.iter().flat_map(troubles).collect();
    Ok(Outcome::from_damage((!troubles.is_empty()).then(|| troubles.join("; "))))
}

fn remove(args: &ProgramRemove) -> Result<Outcome> {
    let removed = with_client(&args.access, async |client| Ok(client.remove_program(&args.name).await?))?;
    if !removed {
        bail!("there is no program {}: queuescope fleet program list has the names", args.name);
    }
    say(&format!("removed {}", args.name))
}

/// What is wrong with a program, and where.
fn troubles(program: &ProgramState) -> Vec<String> {
    let of_host = program.members.iter().filter(|member| !member.error.is_empty());
    let own = Some(&program.trouble).filter(|trouble| !trouble.is_empty());
    let own = own.map(|trouble| format!("{}: {trouble}", program.name));
    own.into_iter().chain(of_host.map(|host| format!("{} on {}: {}", program.name, host.member, host.error))).collect()
}

fn as_json(program: &ProgramState) -> Value {
    let members = program.members.iter().map(|member| {
        let error = (!member.error.is_empty()).then_some(&member.error);
        json!({ "host": member.member, "installed": member.is_installed, "error": error })
    });
    let trouble = (!program.trouble.is_empty()).then_some(&program.trouble);
    json!({
        "program": program.name, "about": program.about, "runs": program.runs, "alerts": program.raised,
        "undecided": program.undecided, "joined": program.joined, "actions": program.acted, "refused": program.refused,
        "trouble": trouble,
        "hosts": members.collect::<Vec<_>>(), "values": program.values, "text": program.text,
    })
}
