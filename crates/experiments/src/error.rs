//! What can go wrong with an experiment.

use queuescope_ingest as ingest;
use queuescope_run as run;
use queuescope_scenario::TextError;
use queuescope_sim::BuildError;
use queuescope_sketch::ParamsError;

/// What comes of something that can go wrong with an experiment.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an experiment was not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A scenario cannot be run, or what came of it cannot be kept.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// A scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A scenario means nothing.
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
        /// What is wrong with it.
        damage: String,
    },
    /// A capture is read more than once.
    #[error("the capture is read more than once: name a file, not standard input")]
    StandardInput,
    /// Nothing waits, so that there is nothing to measure.
    #[error(
        "no packet of {packets} waits, so there is no queue to measure: {name} has {megabits:.3} Mb/s on average; give a lower \
         rate, or a speedup"
    )]
    NothingWaits {
        /// Packets that passed.
        packets: usize,
        /// What passed.
        name: String,
        /// Its mean rate.
        megabits: f64,
    },
    /// There is no such sketch.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
    /// A cell failed.
    #[error("{name}")]
    Cell {
        /// The cell.
        name: String,
        /// Why.
        #[source]
        why: Box<Self>,
    },
    /// A cell or a scenario lacks something that its experiment needs.
    #[error("{0}")]
    Lacks(String),
    /// There are fewer seeds.
    #[error("{wanted} seeds: {study} has {has} at most")]
    Seeds {
        /// How many are wanted.
        wanted: u64,
        /// Of which experiment.
        study: &'static str,
        /// How many there are.
        has: u64,
    },
    /// There is no such figure.
    #[error("there is no {wanted}: {study} has {}", known.join(", "))]
    Figure {
        /// The figure that is wanted.
        wanted: String,
        /// Of which experiment.
        study: &'static str,
        /// Those there are.
        known: Vec<&'static str>,
    },
    /// An experiment runs on real hosts whatever is asked.
    #[error("{0} runs on real hosts anyway")]
    RealAnyway(&'static str),
    /// There are no real hosts here.
    #[error("real hosts are namespaces of Linux")]
    NoRealHosts,
    /// A plot cannot be drawn.
    #[error("cannot draw {name}: {why}")]
    Draw {
        /// The plot.
        name: String,
        /// Why.
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
    /// Something is lacking.
    pub(crate) fn lacks(what: impl Into<String>) -> Self {
        Self::Lacks(what.into())
    }
}
