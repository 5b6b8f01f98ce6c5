//! Errors of building a simulation.

use crate::workload::{SizesError, WorkloadError};
use queuescope_queue::PipelineError;

/// Why a simulation cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No links lead from one node to another.
    #[error("there is no route from {from} to {to}: no links lead there")]
    NoWay {
        /// The first node.
        from: String,
        /// The other node.
        to: String,
    },
    /// There are more links than ids.
    #[error("{links} links are too many: there can be 16 million")]
    TooLarge {
        /// The number of links.
        links: usize,
    },
    /// The share of packets that a link loses is not a share.
    #[error("link {link} loses a share of {loss} of its packets: it must be from 0 to 1")]
    Loss {
        /// The link's name.
        link: String,
        /// The share that was given.
        loss: f64,
    },
    /// A replayed workload cannot have this speedup.
    #[error(transparent)]
    Speedup(#[from] crate::SpeedupError),
    /// The network does not have this switch.
    #[error("there is no switch {name}")]
    NoSwitch {
        /// Its name.
        name: String,
    },
    /// The contents of a file were not given.
    #[error("the contents of {path} are not there")]
    NoFile {
        /// Its path.
        path: String,
    },
    /// The traffic is not possible.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The distribution of flow sizes is not possible.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// The distribution of sizes is unknown.
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
        /// The reason.
        error: PipelineError,
    },
}
