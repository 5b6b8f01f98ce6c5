//! The project's own chores; `cargo xtask --help` lists them.

#![allow(clippy::disallowed_methods, reason = "chores open files and start programs; the rule is for the core crates")]

mod book;
mod circles;
mod floors;
mod licences;
mod metadata;
mod models;
mod notes;
mod orphans;
mod prose;
mod repeat;

use std::process::ExitCode;

const HELP: &str = "\
The project's own chores.

cargo xtask book [FOLDER]
    Check that the book in docs has every page, and that all links of Markdown in the repository lead somewhere; with FOLDER,
    those of the built book in it too.

cargo xtask circles
    Check that no more than ten files of a crate import each other in a circle.

cargo xtask floors
    Check that no crate of the workspace imports a crate of its own floor or a higher one, and that only the command uses what
    belongs to a command line.

cargo xtask licences
    Check that every dependency is under a licence that allows its use here.

cargo xtask models
    Run the models of the log's order under loom and shuttle, and show that each of its fences and checks is needed.

cargo xtask notes [--write]
    Print the page of the book that lists the notes of reports, or write it; book checks that it is current.

cargo xtask orphans
    Check that every test file of a crate whose tests are one binary is in it.

cargo xtask prose
    Check that no text has words of the project's old dialect (xtask/prose.toml), but in folders that are not rewritten yet.

cargo xtask repeat IN.pcap OUT.pcap (--times N | --packets N | --bytes N)
    Make a large capture by repeating a small one: N times, or as often as it takes to reach N packets or N bytes.
    Every repetition comes after the one before, with IPv4 and IPv6 addresses of its own, so that its flows are new.
    Checksums are not put right. IN is a pcap file (not pcapng, not compressed); `-` is standard input or output.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = arguments.split_first().map_or(("--help", &[][..]), |(chore, rest)| (chore.as_str(), rest));
    let outcome = match chore {
        "book" => book::run(rest),
        "circles" => circles::run(rest),
        "floors" => floors::run(rest),
        "licences" => licences::run(rest),
        "models" => models::run(rest),
        "notes" => notes::run(rest),
        "orphans" => orphans::run(rest),
        "prose" => prose::run(rest),
        "repeat" => repeat::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("'{other}' is no chore; see cargo xtask --help")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {chore}: {error:#}");
            ExitCode::from(2)
        }
    }
}
