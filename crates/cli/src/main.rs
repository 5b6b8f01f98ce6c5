//! The command `queuescope`.

use anyhow::Result;
use queuescope_cli::args::{Cli, Command};
use queuescope_cli::outcome::Outcome;
use queuescope_cli::{analyze, folder, generate, merge, p4, query, record, sim, tap, watch, why};
use std::process::ExitCode;

fn main() -> ExitCode {
    silence_decoders();
    match run() {
        Ok(Outcome::Complete) => ExitCode::SUCCESS,
        Ok(Outcome::Ended(status)) => ExitCode::from(status),
        Ok(Outcome::Damaged(damage)) => {
            print_error(&damage);
            ExitCode::from(1)
        }
        Err(error) => {
            print_error(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn print_error(error: &str) {
    anstream::eprintln!("{}error:{} {error}", ERROR.render(), ERROR.render_reset());
}

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();

fn run() -> Result<Outcome> {
    // Give up the capabilities that this process has beyond its user's rights before it reads or opens anything.
    #[cfg(target_os = "linux")]
    let seer = queuescope_live::capabilities::restrain()?;
    let cli = Cli::read();
    #[cfg(target_os = "linux")]
    let seer = queuescope_cli::granted::keep_for(&cli.command, seer)?;
    match &cli.command {
        Command::Analyze(args) => analyze::run(args),
        Command::Why(args) => why::run(args),
        Command::Tap(args) => tap::run(args),
        Command::Query(args) => query::run(args),
        Command::Record(args) => record::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Log(what) => folder::run(what),
        Command::Sim(args) => sim::run(args),
        Command::Merge(args) => merge::run(args),
        #[cfg(feature = "experiments")]
        Command::Experiment(args) => queuescope_cli::experiment::run(args),
        #[cfg(not(feature = "experiments"))]
        Command::Experiment { .. } => anyhow::bail!(
            "this queuescope was built without the papers' experiments, as `make demo` builds it; `cargo install --path crates/cli --locked` \
             builds one that has them"
        ),
        Command::P4(what) => p4::run(what),
        #[cfg(target_os = "linux")]
        Command::Live(args) => queuescope_cli::live::run(args, seer),
        #[cfg(target_os = "linux")]
        Command::Doctor(args) => queuescope_cli::doctor::run(args, seer.as_ref()),
        #[cfg(target_os = "linux")]
        Command::Capture(args) => queuescope_cli::capture_live::run(args),
        #[cfg(target_os = "linux")]
        Command::Link(args) => queuescope_cli::link::run(args),
        #[cfg(target_os = "linux")]
        Command::Compare(args) => queuescope_cli::compare::run(args),
        #[cfg(target_os = "linux")]
        Command::Keep(args) => queuescope_cli::link::keep(args),
        #[cfg(target_os = "linux")]
        Command::GuardQueues => queuescope_cli::p4air::guard(),
        #[cfg(target_os = "linux")]
        Command::Traffic(what) => queuescope_cli::traffic::run(what),
        #[cfg(all(target_os = "linux", feature = "fleet"))]
        Command::Agent(args) => queuescope_cli::agent::run(args),
        #[cfg(all(target_os = "linux", feature = "fleet"))]
        Command::Coordinator(what) => queuescope_cli::coordinator::run(what),
        #[cfg(all(target_os = "linux", feature = "fleet"))]
        Command::Fleet(what) => queuescope_cli::fleet::run(what),
        #[cfg(not(all(target_os = "linux", feature = "fleet")))]
        Command::Fleet { .. } => anyhow::bail!(
            "this queuescope was built without fleets, as `make demo` builds it, or is not for Linux; `cargo install --path crates/cli \
             --locked` builds one that has them"
        ),
        Command::Generate { what } => generate::run(*what).map(|()| Outcome::Complete),
    }
}

/// Hides the panic messages of decoders. A damaged Parquet file can make its decoder panic; `queuescope-table` catches the
/// panic and returns an error, which is printed instead.
fn silence_decoders() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if !["/parquet-", "/arrow-", "/bytes-"].iter().any(|decoder| file.contains(decoder)) {
            report(panic);
        }
    }));
}
