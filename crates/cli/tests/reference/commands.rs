//! Every command with its options, from the definition that parses them.

use super::{check, escaped};
use clap::{Arg, Command, CommandFactory};
use queuescope_cli::args::Cli;
use std::fmt::Write;

const ABOUT: &str = "\
# Commands and options

This page is made from the definition that the program parses its arguments by; `queuescope COMMAND --help` prints the same.
`queuescope generate man` prints it as a manual page; `generate bash`, `fish` and `zsh` print completions. Quantities have units: [values](values.md).
[Exit statuses](exit-status.md) are the same for all commands.
";

#[test]
fn commands_in_the_book_are_current() {
    let mut cli = Cli::command();
    cli.build();
    let mut commands = Vec::new();
    collect(&cli, "queuescope", &mut commands);
    let mut text = ABOUT.to_owned();
    text += "\n| command | what it does |\n| --- | --- |\n";
    for (name, command) in &commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let anchor = name.replace(' ', "-");
        writeln!(text, "| [`{name}`](#{anchor}) | {} |", super::cell(about.trim_end_matches('.')))
            .expect("it is a string");
    }
    for (name, command) in &mut commands {
        describe(name, command, &mut text);
    }
    check("commands.md", &text);
}

/// Collects the commands that do something, also those below other commands.
fn collect(command: &Command, name: &str, commands: &mut Vec<(String, Command)>) {
    for command in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        let name = format!("{name} {}", command.get_name());
        if command.has_subcommands() {
            collect(command, &name, commands);
        } else {
            commands.push((name, command.clone()));
        }
    }
}

fn describe(name: &str, command: &mut Command, text: &mut String) {
    *text += &format!("\n## `{name}`\n");
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    *text += &format!("\n{}\n", paragraphs(&about, ""));
    let usage = command.render_usage().to_string();
    *text += &format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage:").trim());
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()));
    let mut groups: Vec<(String, Vec<&Arg>)> = Vec::new();
    for arg in shown {
        let heading = match arg.get_help_heading() {
            Some(heading) => heading.to_owned(),
            None if arg.is_positional() => "Arguments".to_owned(),
            None => "Options".to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, args)) => args.push(arg),
            None => groups.push((heading, vec![arg])),
        }
    }
    for (heading, args) in groups {
        *text += &format!("\n**{heading}**\n\n");
        for arg in args {
            *text += &option(arg);
        }
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        *text += &format!("\n```text\n{}\n```\n", after.to_string().trim());
    }
}

/// One argument, as an item of a list.
fn option(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let takes = arg.get_action().takes_values();
    let mut spelled: Vec<_> = arg.get_short().map(|short| format!("-{short}")).into_iter().collect();
    spelled.extend(arg.get_long().map(|long| format!("--{long}")));
    let mut name = spelled.join(", ");
    if takes {
        let values = values.join(" ");
        let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
        let joint = match (name.is_empty(), arg.is_require_equals_set(), is_optional) {
            (true, ..) => values,
            (_, true, true) => format!("[={values}]"),
            (_, true, false) => format!("={values}"),
            (_, _, true) => format!(" [{values}]"),
            _ => format!(" {values}"),
        };
        name += &joint;
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = paragraphs(&help, "  ");
    let stop = if help.ends_with(['.', ':', '?']) || help.is_empty() { "" } else { "." };
    let mut item = format!("- `{name}`: {help}{stop}\n");
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        item += &format!("  Default: `{}`.\n", defaults.join(","));
    }
    let possible = arg.get_possible_values();
    if takes && !arg.is_hide_possible_values_set() {
        for value in possible.iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(|help| format!(": {}", escaped(&help.to_string()))).unwrap_or_default();
            item += &format!("  - `{}`{help}\n", value.get_name());
        }
    }
    item
}

/// The paragraphs of a help text. All but the first line are indented.
fn paragraphs(text: &str, indent: &str) -> String {
    let lines = text
        .trim()
        .lines()
        .map(|line| if line.is_empty() { String::new() } else { format!("{indent}{}", escaped(line)) });
    lines.collect::<Vec<_>>().join("\n").trim_start().to_owned()
}
