//! The project's own development tasks; `cargo xtask --help` lists them.

#![allow(clippy::disallowed_methods, reason = "tasks open files and start programs; the rule is for the core crates")]

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
The project's own development tasks.

cargo xtask book [FOLDER]
    Check that the book in docs has every page, that all links of Markdown in the repository have targets, and that the types
    in the glossary exist. With FOLDER, also check the links of the built book in it.

cargo xtask circles
    Check that no more than ten files of a crate import each other in a circle.

cargo xtask floors
    Check that no crate of the workspace imports a crate of its own floor or a higher one, and that only the command uses
    what belongs to a command line.

cargo xtask licences
    Check that every dependency is under a licence that allows its use here.

cargo xtask models
    Run the models of the log's order under loom and shuttle, and show that each of its fences and checks is needed.

cargo xtask notes [--write]
    Print the page of the book that lists the notes of reports, or write it; book checks that it is current.

cargo xtask orphans
    Check that every test file is compiled, in crates whose tests are one binary.

cargo xtask prose
    Check that no text has words of the project's old dialect (xtask/prose.toml), except in unfinished folders.

cargo xtask repeat IN.pcap OUT.pcap (--times N | --packets N | --bytes N)
    Make a large capture by repeating a small one: N times, or as often as needed for N packets or N bytes.
    Each repetition follows the one before, and has its own IPv4 and IPv6 addresses, so its flows are new.
    Checksums are not corrected. IN is a pcap file (not pcapng, not compressed); `-` is standard input or output.
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
        other => Err(anyhow::anyhow!("unknown task '{other}'; see cargo xtask --help")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {chore}: {error:#}");
            ExitCode::from(2)
        }
    }
}
