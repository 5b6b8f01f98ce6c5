//! Arguments of `sim`.

use super::{Keys, Output, Question, Sketch};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Example: queuescope sim scenarios/pie.toml --set link.rate=50mbps --html report.html")]
pub struct Sim {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub scenario: PathBuf,

    /// Replace a value of the scenario, by its path: link.rate=1gbps, flows.0.count=50; can be given several times
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub set: Vec<String>,

    /// Print the scenario as it would be run, with everything that its file leaves out, and do no more
    #[arg(long)]
    pub explain: bool,

    /// The link whose queue is analysed, by its name; none: only links and flows are told [default: that of the scenario's
    /// first meter, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Write each packet's way to a Parquet file, a row for each switch that it passed: times, queues, marks, and where and
    /// why it was dropped
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub telemetry: Option<PathBuf>,

    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What is asked.
    #[command(flatten)]
    pub question: Question,
    /// The sketch.
    #[command(flatten)]
    pub sketch: Sketch,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}
