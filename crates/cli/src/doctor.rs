//! `queuescope doctor`: what this machine and this user can do.

use crate::args::Doctor;
use crate::outcome::{Outcome, print};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use queuescope_live::{Ability, abilities};
use std::io::{self, Write};

/// Runs `doctor`.
///
/// # Errors
/// If what was found cannot be told.
pub fn run(args: &Doctor) -> Result<Outcome> {
    let found = abilities();
    print(args.json, |out| json(&found, out), |out| tell(&found, out))?;
    let missing = found.iter().filter(|ability| ability.missing.is_some()).count();
    Ok(Outcome::of((missing > 0).then(|| format!("{missing} of {} abilities are missing", found.len()))))
}

fn tell(abilities: &[Ability], out: &mut dyn Write) -> io::Result<()> {
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default().bold());
    let width = abilities.iter().map(|ability| ability.name.len()).max().unwrap_or(0);
    for ability in abilities {
        let (style, word): (Style, _) = if ability.missing.is_some() { (bad, "NO ") } else { (good, "yes") };
        writeln!(out, "{:width$}  {style}{word}{style:#}  {}", ability.name, ability.about)?;
        if let Some(why) = &ability.missing {
            let indent = " ".repeat(width + 7);
            writeln!(out, "{indent}why:      {why}")?;
            writeln!(out, "{indent}without:  no {}", ability.costs)?;
            writeln!(out, "{indent}to grant: {}", ability.grant)?;
        }
    }
    Ok(())
}

fn json(abilities: &[Ability], out: &mut dyn Write) -> io::Result<()> {
    for Ability { name, about, missing, costs, grant } in abilities {
        let line = serde_json::json!({
            "kind": "ability", "name": name, "about": about, "there": missing.is_none(), "why": missing,
            "costs": costs, "grant": grant,
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}
