//! What can go wrong while a queue is watched.

use queuescope_ingest::ExpressionError;
use queuescope_live::{ActingError, NeverError, ProbeError};
use std::io;
use std::path::PathBuf;

/// Why an interface cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// Waits of that length are not measured.
    #[error("--tau is from 1ns to 137s: no longer waits are measured")]
    Tau,
    /// The expression that chooses packets means nothing.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// What is asked of the queue means nothing.
    #[error(transparent)]
    Analysis(#[from] queuescope_analysis::Error),
    /// Those of the kernel.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Flows cannot be acted on.
    #[error(transparent)]
    Act(#[from] ActError),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The terminal.
    #[error(transparent)]
    Screen(#[from] ScreenError),
}

/// Why flows cannot be acted on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// Those of the kernel.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// What is asked for cannot be done.
    #[error(transparent)]
    Acting(#[from] ActingError),
    /// Too much is exempt.
    #[error(transparent)]
    Never(#[from] NeverError),
    /// An expression exempts no flows.
    #[error("cannot use --never '{text}'")]
    Exempt {
        /// The expression.
        text: String,
        /// Why.
        #[source]
        why: ExemptError,
    },
    /// The policy file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// What the policy file says cannot be done.
    #[error("cannot act as {} says", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: Box<Self>,
    },
    /// A policy cannot be understood.
    #[error("{0}")]
    Policy(String),
    /// Something is to be bounded, and nothing is done.
    #[error("--never and --act-for bound what is done: say what, by --mark, --drop, --limit or --policy-file")]
    NothingToBound,
}

/// Why an expression exempts no flows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExemptError {
    /// It means every flow.
    #[error("it is empty, which means every flow: write which flows are never acted on, such as `tcp port 22`")]
    Empty,
    /// It means nothing.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// It is about what is not known before the queue.
    #[error(
        "`{0}` is not known of a flow before the queue: use src_ip, dst_ip, src_port, dst_port, protocol and ip_version"
    )]
    Unknown(String),
    /// It is about an aggregate.
    #[error("a flow cannot be compared with an aggregate here")]
    Aggregate,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be had.
    #[error("cannot listen on {at}: --metrics needs an address of this machine and a port that nobody has")]
    Listen {
        /// The address.
        at: String,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot begin a thread")]
    Thread(#[source] io::Error),
}

/// Why nobody sees a queue of a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no terminal that can be drawn on.
    #[error("nothing can be shown: {obstacle}; leave --view out")]
    Nothing {
        /// Why.
        obstacle: &'static str,
    },
    /// There is no thread for it.
    #[error("cannot begin to draw")]
    Thread(#[source] io::Error),
    /// The thread has failed.
    #[error("what draws the view has panicked")]
    Panicked,
    /// The terminal.
    #[error(transparent)]
    Screen(#[from] ScreenError),
}

/// What went wrong with the terminal.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ScreenError {
    what: &'static str,
    #[source]
    why: io::Error,
}

impl ScreenError {
    pub(crate) fn of(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self { what, why }
    }
}
