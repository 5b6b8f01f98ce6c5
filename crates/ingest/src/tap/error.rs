//! What can go wrong with captures on both sides of a router.

use crate::error::ExpressionError;
use queuescope_meter::tap::SurveyError;
use queuescope_pcap::OpenError;
use std::path::PathBuf;

/// Why captures on both sides of a router do not become departures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapError {
    /// An expression means nothing.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A capture cannot be opened, or is none.
    #[error(transparent)]
    Capture(#[from] OpenError),
    /// A capture cannot be read several times.
    #[error("{what} can be read only once, and tap reads its captures several times; write it to a file first")]
    Once {
        /// What it is called.
        what: String,
    },
    /// Two links have the same capture.
    #[error("{} is given twice; each link has a capture of its own", path.display())]
    Twice {
        /// The capture.
        path: PathBuf,
    },
    /// No capture before the router has packets of the one behind it.
    #[error("cannot match {} with {}", before.display(), behind.display())]
    Unmatched {
        /// The first capture before the router.
        before: PathBuf,
        /// The capture behind it.
        behind: PathBuf,
        /// Why.
        #[source]
        why: SurveyError,
    },
}
