//! Arguments of `sim`.

use super::record::Queued;
use super::shared::{Analysed, Keys, Output, Overrides, Parallel, Question, Sketch};
use clap::{Args, ValueHint};
use queuescope_run::sweep::Shard;
use std::path::PathBuf;

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(mut_arg("parquet", |arg| arg.help("Write each packet that left the queue to a Parquet file; of a sweep, the figures of each cell")))]
#[command(mut_arg("log", |arg| arg.help("Put each packet that left a queue or was dropped there into a folder, of all links that are told of: its headers, and what the queue did to it; the folder is made, or gone on with if it has a log of such (queuescope query DIR asks it)")))]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Examples: queuescope sim scenarios/bufferbloat.toml --set link.rate=50mbps --html report.html\n          \
                        queuescope sim scenarios/pie.toml --seeds 10 --results results --shard 1/4")]
pub struct Sim {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub scenario: PathBuf,

    /// What is replaced of it.
    #[command(flatten)]
    pub overrides: Overrides,

    /// Print the scenario as it would be run, with everything that its file leaves out, and do no more
    #[arg(long)]
    pub explain: bool,

    /// The link whose queue is analysed, by its name; none: no queue is, and links and flows are told alone, of one run
    /// [default: those of the scenario's meters, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Write each packet's way to a Parquet file, a row for each switch that it passed: times, queues, marks, and where and
    /// why it was dropped
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub telemetry: Option<PathBuf>,

    /// What is swept.
    #[command(flatten)]
    pub sweep: Sweep,
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
    /// Where packets go.
    #[command(flatten)]
    pub queued: Queued,
}

/// Variants of the scenario.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sweep")]
pub struct Sweep {
    /// Run the scenario with each of these values, such as link.rate=10mbps,100mbps; given several times, with each
    /// combination. Takes the place of a list of the same path in the scenario's [sweep]
    #[arg(long = "sweep", value_name = "KEY=VALUE,...", allow_hyphen_values = true)]
    pub lists: Vec<String>,

    /// Run each combination with so many seeds, from the scenario's seed on
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,

    /// Run the scenario as it stands, and leave its [sweep] aside
    #[arg(long, conflicts_with_all = ["lists", "seeds", "jobs", "results", "shard"])]
    pub no_sweep: bool,

    /// How many cells at once.
    #[command(flatten)]
    pub parallel: Parallel,

    /// Keep the result of each cell as a file in this folder; what is there already is not run again
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Option<PathBuf>,

    /// Run one of several equal parts, such as 2/3; queuescope merge joins their results
    #[arg(long, value_name = "PART/PARTS", allow_hyphen_values = true, requires = "results")]
    pub shard: Option<Shard>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(mut_arg("html", |arg| arg.help("Write the summary as a page to look at in a browser; one file that needs nothing else")))]
#[command(mut_arg("parquet", |arg| arg.help("Write the figures of each cell to a Parquet file")))]
#[command(
    after_help = "Exit status: 0 if all cells are there, 1 if some are missing or damaged, or if results of one cell \
                        differ (what is there is reported), 2 if nothing could be done.\n\n\
                        Example: queuescope merge results-1 results-2 results-3 --json"
)]
pub struct Merge {
    /// Folders with results, as queuescope sim --results has made them
    #[arg(required = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Vec<PathBuf>,

    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}
