//! Arguments of `compare`.

use super::shared::Overrides;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Example: queuescope compare scenarios/codel.toml --set duration=10s --runs 3")]
pub struct Compare {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub scenario: PathBuf,

    /// Values of the scenario that are replaced.
    #[command(flatten)]
    pub overrides: Overrides,

    /// Number of runs in simulation and on real hosts, with consecutive seeds
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,

    /// Print one line of JSON instead of text, with the values of each run
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub html: Option<PathBuf>,
}
