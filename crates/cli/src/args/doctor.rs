//! Arguments of `doctor`.

use clap::Args;
use queuescope_live::Ability;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if nothing is missing, 1 if something is.")]
pub struct Doctor {
    /// Check only these abilities, or those that these commands need [default: all]
    #[arg(value_name = "WHAT", value_parser = clap::builder::PossibleValuesParser::new(known()))]
    pub what: Vec<String>,

    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// The names of abilities, and of the commands that need some.
fn known() -> Vec<&'static str> {
    Ability::names().chain(COMMANDS).collect()
}

const COMMANDS: [&str; 6] = ["live", "link", "capture", "traffic", "compare", "experiment"];
