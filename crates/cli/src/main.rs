//! The command `queuescope`.

use anyhow::Result;
use clap::Parser;
use queuescope::analyze::{self, Outcome};
use queuescope::args::{Cli, Command};
use queuescope::generate;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(Outcome::Whole) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged(damage)) => {
            complain(&damage);
            ExitCode::from(1)
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn complain(error: &str) {
    anstream::eprintln!("{}error:{} {error}", ERROR.render(), ERROR.render_reset());
}

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();

fn run(cli: &Cli) -> Result<Outcome> {
    match &cli.command {
        Command::Analyze(args) => analyze::run(args),
        Command::Generate { what } => generate::run(*what).map(|()| Outcome::Whole),
    }
}
