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
    /// The network does not have this link, for which there is a discipline of one's own.
    #[error("there is no link '{name}'; the links are {}", known.join(", "))]
    NoLink {
        /// Its name.
        name: String,
        /// The links of the network.
        known: Vec<String>,
    },
    /// A switch program manages the queue of this link, for which there is a discipline of one's own.
    #[error("a switch program manages the queue of link '{link}': remove `pipeline` from it, or the discipline")]
    HasProgram {
        /// The link.
        link: String,
    },
    /// The scenario does not have this group of TCP flows, for which there is a congestion control of one's own.
    #[error("there is no group of TCP flows '{name}'; the groups are {}", known.join(", "))]
    NoGroup {
        /// Its name.
        name: String,
        /// The groups of TCP flows.
        known: Vec<String>,
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
