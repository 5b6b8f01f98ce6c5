//! Errors of captures on both sides of a router.

use crate::error::ExpressionError;
use queuescope_meter::tap::SurveyError;
use queuescope_pcap::OpenError;
use std::path::PathBuf;

/// Why captures on both sides of a router cannot be turned into departures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapError {
    /// An expression is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A file cannot be opened, or is not a capture.
    #[error(transparent)]
    Capture(#[from] OpenError),
    /// A capture cannot be read several times.
    #[error("{what} can be read only once, and tap reads its captures several times; write it to a file first")]
    Once {
        /// The name of the input.
        what: String,
    },
    /// Two links are given the same capture.
    #[error("{} is given twice; each link has a capture of its own", path.display())]
    Twice {
        /// The capture.
        path: PathBuf,
    },
    /// No capture before the router shares packets with the one behind it.
    #[error("cannot match {} with {}", before.display(), behind.display())]
    Unmatched {
        /// The first capture before the router.
        before: PathBuf,
        /// The capture behind it.
        behind: PathBuf,
        /// The reason.
        #[source]
        why: SurveyError,
    },
}
