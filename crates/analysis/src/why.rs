//! From a victim or a moment in the past to what made it wait.

mod answer;
mod at;
mod error;
mod recorder;

use crate::analysis::ALPHA;
use crate::show::Show;
pub use at::{At, AtError};
pub use error::{Nothing, WhyError};
use queuescope_ingest::PacketFilter;
use queuescope_ingest::records::Departures;
pub use recorder::Recorder;
use std::num::NonZeroU64;

/// What is to be explained: a packet, a flow, packets that an expression chooses, or a time. [`Recorder`] answers it.
///
/// The first of these that is given is the question; with a flow and with chosen packets, a stretch of time narrows it down.
/// If none is given, it is about all packets that waited.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// A packet, by its number in the input, from 1 (a table's row).
    pub packet: Option<NonZeroU64>,
    /// A flow, by its name in a report, or by a part that no other name has.
    pub flow: Option<String>,
    /// Packets of which an expression holds.
    pub victims: Option<PacketFilter<Departures>>,
    /// When they waited; or a moment, for what was in the queue then.
    pub at: Option<At>,
    /// The share of the bytes from which on a flow is listed; [`ALPHA`] unless set.
    pub alpha: f64,
    /// Which flows are listed; all if there is none.
    pub show: Option<Show>,
}

impl Default for Question {
    fn default() -> Self {
        Self { packet: None, flow: None, victims: None, at: None, alpha: ALPHA, show: None }
    }
}
