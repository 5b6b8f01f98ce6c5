//! What can go wrong while a queue is watched.

use queuescope_ingest::ExpressionError;
use queuescope_live::{ActingError, NeverError, ProbeError};
use std::io;
use std::path::PathBuf;

/// Why an interface cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// `--tau` is out of range.
    #[error("--tau must be from 1ns to 137s, the longest sojourn time that can be measured")]
    Tau,
    /// The expression that selects packets is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The options of the analysis are invalid.
    #[error(transparent)]
    Analysis(#[from] queuescope_analysis::Error),
    /// The kernel probe failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Flows cannot be acted on.
    #[error(transparent)]
    Act(#[from] ActError),
    /// P4air cannot run.
    #[error(transparent)]
    P4air(#[from] P4airWatchError),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The terminal failed.
    #[error(transparent)]
    Screen(#[from] ScreenError),
}

/// Why P4air cannot run on the interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum P4airWatchError {
    /// The kernel refused, or the interface is not fit.
    #[error(transparent)]
    P4air(#[from] queuescope_live::P4airError),
    /// The flows that are never acted on are impossible.
    #[error(transparent)]
    Act(#[from] ActError),
}

/// Why flows cannot be acted on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The kernel probe failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The action is impossible.
    #[error(transparent)]
    Acting(#[from] ActingError),
    /// Too many flows are exempt.
    #[error(transparent)]
    Never(#[from] NeverError),
    /// An expression of `--never` cannot exempt flows.
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
    /// The action in the policy file is impossible.
    #[error("cannot act as {} says", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: Box<Self>,
    },
    /// The policy file is invalid.
    #[error("{0}")]
    Policy(String),
    /// There are bounds, but no action.
    #[error("--never and --act-for bound an action: name one with --mark, --drop, --limit or --policy-file")]
    NothingToBound,
}

/// Why an expression cannot exempt flows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExemptError {
    /// An empty expression would exempt every flow.
    #[error("it is empty, which means every flow: write which flows are never acted on, such as `tcp port 22`")]
    Empty,
    /// The expression is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// It uses a property that is unknown before the queue.
    #[error(
        "`{0}` is not known of a flow before the queue: use src_ip, dst_ip, src_port, dst_port, protocol and ip_version"
    )]
    Unknown(String),
    /// It uses an aggregate.
    #[error("a flow cannot be compared with an aggregate here")]
    Aggregate,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be bound.
    #[error("cannot listen on {at}: --metrics needs an address of this machine and a free port")]
    Listen {
        /// The address.
        at: String,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// The thread that serves metrics cannot start.
    #[error("cannot start the thread that serves metrics")]
    Thread(#[source] io::Error),
}

/// Why the queue of a link cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// No terminal can be drawn on.
    #[error("nothing can be shown: {obstacle}; omit --view")]
    Nothing {
        /// The reason.
        obstacle: &'static str,
    },
    /// The thread that draws cannot start.
    #[error("cannot start the thread that draws the view")]
    Thread(#[source] io::Error),
    /// The thread that draws panicked.
    #[error("the thread that draws the view has panicked")]
    Panicked,
    /// The terminal failed.
    #[error(transparent)]
    Screen(#[from] ScreenError),
}

/// A failure of the terminal.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ScreenError {
    what: &'static str,
    #[source]
    why: io::Error,
}

impl ScreenError {
    pub(crate) fn new(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self { what, why }
    }
}
