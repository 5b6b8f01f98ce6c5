//! Errors of experiments.

use queuescope_ingest as ingest;
use queuescope_run as run;
use queuescope_scenario::TextError;
use queuescope_sim::BuildError;
use queuescope_sketch::ParamsError;

/// The result of an operation on an experiment.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an experiment stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A scenario cannot be run, or its result cannot be stored.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// A scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A scenario is invalid.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A capture cannot be read.
    #[error(transparent)]
    Input(#[from] ingest::Error),
    /// A capture is damaged.
    #[error("{file} is damaged: {damage}")]
    Damaged {
        /// The file.
        file: String,
        /// What is damaged.
        damage: String,
    },
    /// The capture is standard input, but it must be read more than once.
    #[error("the capture is read more than once: name a file, not standard input")]
    StandardInput,
    /// No packet waits, so there is nothing to measure.
    #[error(
        "no packet of {packets} waits, so there is no queue to measure: {name} has {megabits:.3} Mb/s on average; give a lower \
         rate, or a speedup"
    )]
    NothingWaits {
        /// How many packets passed.
        packets: usize,
        /// The name of the traffic.
        name: String,
        /// The mean rate of the traffic, in Mb/s.
        megabits: f64,
    },
    /// The parameters of a sketch are impossible.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
    /// A cell failed.
    #[error("{name}")]
    Cell {
        /// The cell.
        name: String,
        /// The cause.
        #[source]
        why: Box<Self>,
    },
    /// A cell or a scenario lacks something that its experiment needs.
    #[error("{0}")]
    Lacks(String),
    /// The experiment has fewer seeds.
    #[error("{wanted} seeds: {study} has at most {has}")]
    Seeds {
        /// The requested number of seeds.
        wanted: u64,
        /// The experiment.
        study: &'static str,
        /// The number of seeds that it has.
        has: u64,
    },
    /// The experiment does not have this figure.
    #[error("there is no {wanted}: {study} has {}", known.join(", "))]
    Figure {
        /// The requested figure.
        wanted: String,
        /// The experiment.
        study: &'static str,
        /// The figures that it has.
        known: Vec<&'static str>,
    },
    /// The experiment always runs on real hosts, so the option has no effect.
    #[error("{0} runs on real hosts anyway")]
    RealAnyway(&'static str),
    /// This machine has no real hosts.
    #[error("real hosts are namespaces of Linux")]
    NoRealHosts,
    /// A plot cannot be drawn.
    #[error("cannot draw {name}: {why}")]
    Draw {
        /// The plot.
        name: String,
        /// The cause.
        why: String,
    },
    /// A record cannot be written as CSV.
    #[error(transparent)]
    Record(#[from] csv::Error),
    /// A table cannot be written as CSV.
    #[error("cannot write a table")]
    Table(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error for something that is missing.
    pub(crate) fn lacks(what: impl Into<String>) -> Self {
        Self::Lacks(what.into())
    }
}
