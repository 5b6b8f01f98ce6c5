//! Arguments of `sim`.

use super::record::Queued;
use super::shared::{Keys, Output, Question, Sketch};
use clap::{Args, ValueHint};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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

    /// Replace a value of the scenario, by its path: link.rate=1gbps, flows.0.count=50; can be given several times
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub set: Vec<String>,

    /// Print the scenario as it would be run, with everything that its file leaves out, and do no more
    #[arg(long)]
    pub explain: bool,

    /// The link whose queue is analysed, by its name; none: no queue is, and links and flows are told alone, of one run
    /// [default: those of the scenario's meters, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Take only packets of which an expression holds to be in the queue that is analysed, such as `class == 1`; the link carries
    /// all (`queuescope query --attributes --departures` lists what it can be about)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,

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

    /// Cells to run at a time [default: one on each core]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Keep the result of each cell as a file in this folder; what is there already is not run again
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Option<PathBuf>,

    /// Run one of several equal parts, such as 2/3; queuescope merge joins their results
    #[arg(long, value_name = "PART/PARTS", allow_hyphen_values = true, requires = "results")]
    pub shard: Option<Shard>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all cells are there, 1 if some are missing or damaged, or if results of one cell \
                        differ (what is there is reported), 2 if nothing could be done.\n\n\
                        Example: queuescope merge results-1 results-2 results-3 --json"
)]
pub struct Merge {
    /// Folders with results, as queuescope sim --results has made them
    #[arg(required = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub results: Vec<PathBuf>,

    /// Print JSON Lines in place of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write the summary as a page to look at in a browser; one file that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Write the figures of each cell to a Parquet file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub parquet: Option<PathBuf>,
}

impl Merge {
    /// Where the answer goes.
    pub fn output(&self) -> Output {
        Output { json: self.json, html: self.html.clone(), parquet: self.parquet.clone() }
    }
}

/// A part of a sweep: every so many-th cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    index: u64,
    /// Of how many.
    of: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// How many of so many cells it has.
    pub fn count(self, cells: u64) -> u64 {
        cells.saturating_sub(self.index).div_ceil(self.of)
    }

    /// The number in the sweep of its `n`-th cell.
    pub fn cell(self, n: u64) -> u64 {
        n * self.of + self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
        match parts {
            Some((part, parts)) if (1..=parts).contains(&part) && parts <= 1_000_000 => {
                Ok(Self { index: part - 1, of: parts })
            }
            Some((_, 0)) => Err("there is no part of none: write PART/PARTS, such as 2/3".to_owned()),
            Some((_, parts)) if parts > 1_000_000 => Err("no sweep has more than 1000000 cells".to_owned()),
            Some((part, parts)) => {
                Err(format!("there is no part {part} of {parts}: parts are 1/{parts} to {parts}/{parts}"))
            }
            None => Err(format!("'{text}' is no part of a sweep: write PART/PARTS, such as 2/3")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.index + 1, self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_each_cell_once() {
        for (of, cells) in [(1, 5), (2, 5), (3, 5), (5, 5), (7, 5), (3, 0), (4, 12)] {
            let mut all: Vec<_> = (1..=of)
                .map(|part| format!("{part}/{of}").parse::<Shard>().unwrap())
                .flat_map(|shard| (0..shard.count(cells)).map(move |n| shard.cell(n)))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..cells).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shards_are_within_their_bounds() {
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for text in ["0/3", "4/3", "1/0", "0/0", "1", "/", "1/", "a/b", "-1/3", "1/2/3", "1/1000001", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
