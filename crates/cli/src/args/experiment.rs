//! Arguments of `experiment`.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Arguments of `experiment`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if it was run, 2 if nothing could be done.\n\n\
                        Examples: queuescope experiment abc --small\n          \
                        queuescope experiment abc --out figures")]
pub struct Experiment {
    /// Whose figures
    pub paper: Paper,

    /// Run a few points with two seeds, and for a shorter time: for a look, not for figures
    #[arg(long)]
    pub small: bool,

    /// Where tables and plots go; cells are kept beside them, and are not run again
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, default_value = "experiments")]
    pub out: PathBuf,

    /// Cells that are run at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// The papers whose figures can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// ABC (Menth et al., Future Internet 2019): figures 4, 5 and 6, what they depend on, a domain of three bottlenecks
    Abc,
    /// ConQuest's AQM (Chen et al., CoNEXT 2019): figures 10 and 11, and a better marking function
    ConquestAqm,
    /// PIE on a switch (Kunze et al., IM 2021): figures 5 and 6
    PieTofino,
}
