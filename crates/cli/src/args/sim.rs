//! Arguments of `sim`.

use super::record::Queued;
use super::shared::{Analysed, Keys, Output, Overrides, Parallel, Question, Sketch};
use clap::{Args, ValueHint};
use queuescope_run::sweep::Shard;
use std::path::PathBuf;

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(mut_arg("parquet", |arg| arg.help("Write each packet that left the queue to a Parquet file; for a sweep, the figures of each cell")))]
#[command(mut_arg("log", |arg| arg.help("Record each packet that left a queue or was dropped there in a folder, for all links of the report: its headers, and what the queue did to it. The folder is created; if it has a log of this kind, that is continued (queuescope query DIR searches it)")))]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Examples: queuescope sim scenarios/bufferbloat.toml --set link.rate=50mbps --html report.html\n          \
                        queuescope sim scenarios/pie.toml --seeds 10 --results results --shard 1/4")]
pub struct Sim {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub scenario: PathBuf,

    /// Values of the scenario that are replaced.
    #[command(flatten)]
    pub overrides: Overrides,

    /// Print the scenario as it would be run, with all defaults filled in, and do not run it
    #[arg(long)]
    pub explain: bool,

    /// Name of the link whose queue is analysed; none analyses no queue, and reports links and flows only, of one run
    /// [default: the links of the scenario's meters, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Write the path of each packet to a Parquet file, a row for each switch that it passed: times, queues, marks, and
    /// where and why it was dropped
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub telemetry: Option<PathBuf>,

    /// The sweep.
    #[command(flatten)]
    pub sweep: Sweep,
    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What to look for in the queue.
    #[command(flatten)]
    pub question: Question,
    /// The sketch.
    #[command(flatten)]
    pub sketch: Sketch,
    /// Where the report goes.
    #[command(flatten)]
    pub output: Output,
    /// The folder for single packets.
    #[command(flatten)]
    pub queued: Queued,
}

/// Variants of the scenario.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sweep")]
pub struct Sweep {
    /// Run the scenario with each of these values, such as link.rate=10mbps,100mbps. If given several times, with each
    /// combination of values. Replaces a list of the same path in the scenario's [sweep]
    #[arg(long = "sweep", value_name = "KEY=VALUE,...", allow_hyphen_values = true)]
    pub lists: Vec<String>,

    /// Run each combination with this number of seeds, counted up from the scenario's seed
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,

    /// Run the scenario once, and ignore its [sweep]
    #[arg(long, conflicts_with_all = ["lists", "seeds", "jobs", "results", "shard"])]
    pub no_sweep: bool,

    /// How many cells run at once.
    #[command(flatten)]
    pub parallel: Parallel,

    /// Keep the result of each cell as a file in this folder. Cells whose results are there already are not run again
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Option<PathBuf>,

    /// Run one of several equal parts of the sweep, such as 2/3; queuescope merge joins their results
    #[arg(long, value_name = "PART/PARTS", allow_hyphen_values = true, requires = "results")]
    pub shard: Option<Shard>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(mut_arg("html", |arg| arg.help("Write the summary as one self-contained HTML file")))]
#[command(mut_arg("parquet", |arg| arg.help("Write the figures of each cell to a Parquet file")))]
#[command(
    after_help = "Exit status: 0 if all cells are there, 1 if some are missing or damaged, or if results of one cell differ (what is there is reported), 2 if nothing could be done.\n\n\
                        Example: queuescope merge results-1 results-2 results-3 --json"
)]
pub struct Merge {
    /// Folders with results that queuescope sim --results has made
    #[arg(required = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Vec<PathBuf>,

    /// Where the report goes.
    #[command(flatten)]
    pub output: Output,
}
