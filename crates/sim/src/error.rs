//! What keeps a simulation from being built.

use crate::workload::{SizesError, WorkloadError};
use queuescope_queue::PipelineError;

/// A simulation that cannot be as it was described.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// There are no links from one node to another.
    #[error("there is no way from {from} to {to}: no links lead there")]
    NoWay {
        /// The one node.
        from: String,
        /// The other.
        to: String,
    },
    /// More links than can be told apart.
    #[error("{links} links are too many: there can be 16 million")]
    TooLarge {
        /// How many there are.
        links: usize,
    },
    /// A switch that the network does not have.
    #[error("there is no switch {name}")]
    NoSwitch {
        /// Its name.
        name: String,
    },
    /// A file that was not given.
    #[error("the contents of {path} are not there")]
    NoFile {
        /// Its path.
        path: String,
    },
    /// Traffic that cannot be.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Sizes of flows that cannot be.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// A distribution of sizes that is not known.
    #[error("no distribution of sizes is named {name}")]
    NoSizes {
        /// Its name.
        name: &'static str,
    },
    /// A switch's program does not fit it.
    #[error("switch {switch} cannot run its program: {error}")]
    Program {
        /// The switch.
        switch: String,
        /// Why not.
        error: PipelineError,
    },
}
