//! What can go wrong with the kernel.

use crate::ActingError;
use std::io;

/// Why an interface cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is none of this name in the network namespace that the thread is in.
    #[error("there is no interface {name} here; `ip link` lists those there are")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The kernel or this user lacks something.
    #[error("{what}: {why}; `queuescope doctor` tells what is missing, and what grants it")]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        why: String,
    },
    /// The kernel has no such tracepoint.
    #[error(
        "watch what leaves queues: this kernel has no tracepoint {tracepoint} ({since}); `queuescope doctor` tells what else is missing"
    )]
    NoTracepoint {
        /// Its name.
        tracepoint: &'static str,
        /// Which kernels have it.
        since: &'static str,
    },
    /// The kernel's part cannot do what is asked.
    #[error("act on flows: {0}")]
    Acting(#[from] ActingError),
    /// Something about the system could not be found out.
    #[error("read {what}: {why}")]
    System {
        /// What was to be read.
        what: &'static str,
        /// Why not.
        why: io::Error,
    },
}

impl ProbeError {
    /// Why, in short.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Refused { what, why } => format!("{what}: {why}"),
            Self::NoTracepoint { tracepoint, since } => format!("this kernel has no tracepoint {tracepoint} ({since})"),
            other => other.to_string(),
        }
    }
}
