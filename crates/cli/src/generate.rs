//! `queuescope generate`: the man page, completions and the schema, from the definitions that the program itself uses.

use crate::args::{Cli, Generated};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};

/// Prints the text that `what` names.
///
/// # Errors
/// Fails if standard output cannot be written. A closed pipe is not an error.
pub fn run(what: Generated) -> Result<()> {
    let text = match what {
        Generated::Man => man()?,
        Generated::Bash => completions(Shell::Bash),
        Generated::Fish => completions(Shell::Fish),
        Generated::Zsh => completions(Shell::Zsh),
        Generated::Schema => queuescope_report::json::schema().into_bytes(),
    };
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// The man page: the program, then each of its commands. All of them are in one page, so it does not refer to others.
fn man() -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let mut cli = visible();
    cli.build();
    let man = clap_mangen::Man::new(cli.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for command in commands(&cli) {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
        writeln!(page, ".SH \"{}\"", name.to_uppercase())?;
        let man = clap_mangen::Man::new(command.clone());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if command.get_after_help().is_some() {
            man.render_extra_section(&mut page)?;
        }
    }
    Ok(page)
}

/// The commands that have no subcommands, at all levels.
fn commands(cli: &clap::Command) -> Vec<&clap::Command> {
    let own = cli.get_subcommands().filter(|command| command.get_name() != "help");
    own.flat_map(|command| if command.has_subcommands() { commands(command) } else { vec![command] }).collect()
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(), "queuescope", &mut text);
    text
}

/// The command line without hidden commands, which only queuescope itself starts. Generators list hidden ones, too.
fn visible() -> clap::Command {
    let cli = Cli::command();
    let commands: Vec<_> = cli.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let text = |text: Option<&clap::builder::StyledStr>| text.cloned().unwrap_or_default();
    clap::Command::new("queuescope")
        .version(env!("CARGO_PKG_VERSION"))
        .about(text(cli.get_about()))
        .long_about(text(cli.get_long_about().or(cli.get_about())))
        .args(cli.get_arguments().cloned().collect::<Vec<_>>())
        .subcommands(commands)
}
