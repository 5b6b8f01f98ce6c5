//! Runs each `console` block of the tutorial and the how-to guides, and compares its output.
//!
//! A line `$ COMMAND` is passed to a shell. The lines after it are its output, where a line `...` stands for any number of lines.
//! The commands of a page share a folder, which has the repository's `data`, `scenarios` and `recipes`. A `toml` block is written to
//! a file if the text before it names the file in backquotes and ends in a colon. Blocks of the kind `sh` need root or take long,
//! and are not run.

#![allow(clippy::disallowed_methods, reason = "it reads pages of the documentation, and starts a shell")]

use crate::common::file;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn commands_of_the_tutorial_print_what_it_shows() {
    pages("docs/tutorial", 11);
}

#[test]
fn commands_of_the_guides_print_what_they_show() {
    pages("docs/how-to", 25);
}

/// Runs all pages of a folder, which have at least `least` commands.
fn pages(folder: &str, least: usize) {
    let mut pages: Vec<_> =
        fs::read_dir(file(folder)).expect("it is there").map(|it| it.expect("it can be listed").path()).collect();
    pages.sort();
    let mut problems = String::new();
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("it is text");
        let directory = tempfile::tempdir().expect("there is room");
        for name in ["data", "scenarios", "recipes"] {
            let there = file(name).canonicalize().expect("it is there");
            std::os::unix::fs::symlink(there, directory.path().join(name)).expect("nothing is in its place");
        }
        for step in steps(&text) {
            match step {
                Step::File(name, text) => fs::write(directory.path().join(name), text).expect("there is room"),
                Step::Command(command, shown) => {
                    count += 1;
                    let printed = run(&command, directory.path());
                    if !matches(&shown, &printed.lines().collect::<Vec<_>>()) {
                        let shown = shown.join("\n");
                        let name = page.display();
                        writeln!(problems, "== {name}\n$ {command}\n-- the page has\n{shown}\n-- it prints\n{printed}")
                            .expect("it is a string");
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(count >= least, "{count} commands were run");
}

enum Step {
    Command(String, Vec<String>),
    File(String, String),
}

/// The steps of a page, in order.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut before, mut block) = (Vec::new(), "", None);
    for line in page.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(kind)) => block = Some((kind, Vec::new())),
            (None, None) => before = if line.is_empty() { before } else { line },
            (Some(_), Some(_)) => {
                let (kind, lines) = block.take().expect("a block is open");
                if kind == "console" {
                    steps.extend(commands(&lines));
                }
                if let (true, true, Some(name)) = (kind == "toml", before.ends_with(':'), before.split('`').nth(1)) {
                    steps.push(Step::File(name.to_owned(), lines.join("\n")));
                }
            }
            (Some((_, lines)), None) => lines.push(line),
        }
    }
    steps
}

fn commands(lines: &[&str]) -> Vec<Step> {
    let mut commands = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push(Step::Command(command.to_owned(), Vec::new())),
            (None, Some(Step::Command(_, shown))) => shown.push((*line).to_owned()),
            _ => panic!("a block begins with a command: {line}"),
        }
    }
    commands
}

/// The output of a command, both standard output and standard error.
fn run(command: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_queuescope")).parent().expect("it is in a folder").to_owned();
    let path = std::env::var("PATH").expect("there are programs");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()));
    let output = shell.env_remove("COLUMNS").output().expect("there is a shell");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Whether the printed lines match those shown, where `...` is any number of lines.
fn matches(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == "..." => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| first.trim_end() == line.trim_end() && matches(rest, others)),
    }
}

#[test]
fn lines_are_compared_with_ellipses() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (page, printed, is_same) in [
        ("a\n...\nc", "a\nb\nb\nc", true),
        ("a\n...\nc", "a\nc", true),
        ("...", "", true),
        ("a", "a\nb", false),
        ("...\nb", "a", false),
        ("a  ", "a", true),
    ] {
        assert_eq!(matches(&shown(page), &printed.lines().collect::<Vec<_>>()), is_same, "{page:?} {printed:?}");
    }
}

#[test]
fn a_page_is_parsed_in_order() {
    let page = "Text of `a.toml`:\n\n```toml\nx = 1\n```\n\n```sh\nno\n```\n\n```console\n$ one\n1\n$ two\n```\n";
    let steps: Vec<_> = steps(page)
        .into_iter()
        .map(|step| match step {
            Step::File(name, text) => format!("{name}: {text}"),
            Step::Command(command, shown) => format!("{command} -> {}", shown.join("|")),
        })
        .collect();
    assert_eq!(steps, ["a.toml: x = 1", "one -> 1", "two -> "]);
}
