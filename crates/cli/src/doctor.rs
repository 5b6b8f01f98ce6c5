//! `queuescope doctor`: what this machine and this user can do.

use crate::args::Doctor;
use crate::outcome::{Outcome, print};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use queuescope_live::capabilities::{Seer, names};
use queuescope_live::{Ability, Gain, Grant, abilities_seen_by};
use queuescope_report::json::FORMAT_VERSION;
use std::io::{self, Write};

/// Runs `doctor`; `seer` sees the processes of other users.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn run(args: &Doctor, seer: Option<&Seer>) -> Result<Outcome> {
    let mut found = abilities_seen_by(seer);
    found.retain(|ability| args.what.is_empty() || args.what.iter().any(|what| is_chosen(what, ability)));
    let grant = Grant::new(&found, seer);
    print(args.json, |out| json(&found, grant, out), |out| write_text(&found, grant, out))?;
    let missing = found.iter().filter(|ability| ability.missing.is_some()).count();
    Ok(Outcome::from_damage((missing > 0).then(|| lacking(missing, found.len()))))
}

/// How many of the tested abilities are missing.
fn lacking(missing: usize, tested: usize) -> String {
    match (missing, tested) {
        (1, 1) => "the ability is missing".to_owned(),
        (1, tested) => format!("1 of {tested} abilities is missing"),
        (missing, tested) => format!("{missing} of {tested} abilities are missing"),
    }
}

fn is_chosen(what: &str, ability: &Ability) -> bool {
    ability.name == what || ability.commands.contains(&what)
}

fn write_text(abilities: &[Ability], grant: Grant, out: &mut dyn Write) -> io::Result<()> {
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default().bold());
    let width = abilities.iter().map(|ability| ability.name.len()).max().unwrap_or(0);
    for ability in abilities {
        let (style, word): (Style, _) = if ability.missing.is_some() { (bad, "NO ") } else { (good, "yes") };
        writeln!(out, "{:width$}  {style}{word}{style:#}  {}", ability.name, ability.about)?;
        let indent = " ".repeat(width + 7);
        if let Some(why) = &ability.missing {
            writeln!(out, "{indent}why:      {why}")?;
            writeln!(out, "{indent}without:  {}", ability.costs)?;
            let needs = if ability.mend.is_some() { "to mend:" } else { "needs:" };
            writeln!(out, "{indent}{needs:9} {}", ability.grant())?;
        }
        if let Some(note) = &ability.note {
            writeln!(out, "{indent}but:      {note}")?;
        }
    }
    if grant.is_empty() {
        return Ok(());
    }
    let file = program();
    writeln!(out, "\nThis line grants all of it to you and to the group queuescope, from your next login on:\n")?;
    writeln!(out, "  {}\n", grant.line(&file))?;
    writeln!(out, "It replaces what an earlier setcap granted. {SMALLER}")?;
    writeln!(out, "With {file}, each member of the group:")?;
    for Gain { of, uses, by_a_fault } in grant.gains() {
        writeln!(
            out,
            "- {}: {uses}. An attacker who exploits a fault in queuescope {by_a_fault}.",
            names(of).join(", ")
        )?;
    }
    writeln!(out, "Files are opened with the rights of the user alone. {SERVICE}")
}

const SMALLER: &str = "For a smaller grant, name what is needed: queuescope doctor ringbuf tp_btf tcx (live without owners), or capture, and so on.";
const SERVICE: &str =
    "To watch an interface permanently, use the service, which needs no grant (systemd/queuescope-live@.service).";

/// This program's file, as a shell has it.
fn program() -> String {
    let Ok(file) = std::env::current_exe() else { return "\"$(command -v queuescope)\"".to_owned() };
    let file = file.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if file.chars().all(is_plain) { file } else { format!("'{}'", file.replace('\'', r"'\''")) }
}

fn json(abilities: &[Ability], grant: Grant, out: &mut dyn Write) -> io::Result<()> {
    for ability in abilities {
        let Ability { name, about, commands, missing, note, costs, needs, .. } = ability;
        let line = serde_json::json!({
            "format_version": FORMAT_VERSION, "kind": "ability", "name": name, "about": about, "commands": commands, "available": missing.is_none(), "missing": missing,
            "note": note, "costs": costs, "grant": ability.grant(), "capabilities": names(*needs),
        });
        writeln!(out, "{line}")?;
    }
    if grant.is_empty() {
        return Ok(());
    }
    let gain = |Gain { of, uses, by_a_fault }| serde_json::json!({"capabilities": names(of), "uses": uses, "by_a_fault": by_a_fault});
    let line = serde_json::json!({
        "format_version": FORMAT_VERSION, "kind": "grant", "capabilities": names(grant.0), "setcap": grant.text(), "line": grant.line(&program()),
        "gains": grant.gains().map(gain).collect::<Vec<_>>(),
    });
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ability_is_missing_and_two_are() {
        assert_eq!(lacking(1, 1), "the ability is missing");
        assert_eq!(lacking(1, 9), "1 of 9 abilities is missing");
        assert_eq!(lacking(2, 9), "2 of 9 abilities are missing");
    }
}
