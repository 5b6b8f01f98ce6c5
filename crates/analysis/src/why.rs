//! Finds what made a packet, a flow, or the packets of a time range wait.

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

/// A question about the past of a queue: a packet, a flow, packets that match an expression, or a time. [`Recorder`] answers
/// it.
///
/// The first of the fields `packet`, `flow`, `victims` and `at` that is given is the question. With a flow or with victims,
/// a time range restricts it. If none is given, the question is about all packets that waited.
///
/// ```
/// use queuescope_analysis::why::Question;
///
/// let question = Question::default().about_flow("10.0.0.1:443").alpha(0.05);
/// assert_eq!(question.flow.as_deref(), Some("10.0.0.1:443"));
/// assert_eq!(question.alpha, 0.05);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// A packet, by its number in the input, counted from 1; of a table, its row.
    pub packet: Option<NonZeroU64>,
    /// A flow, by its name in a report, or by a part that occurs in no other name.
    pub flow: Option<String>,
    /// Packets that match an expression.
    pub victims: Option<PacketFilter<Departures>>,
    /// The time range in which they waited; or a moment, for what was in the queue then. Counted from the first packet.
    pub at: Option<At>,
    /// The least share of the bytes for a flow to be listed, from 0 to 1. The default is [`ALPHA`].
    pub alpha: f64,
    /// Which flows are listed; all if this is `None`.
    pub show: Option<Show>,
}

/// Builders.
impl Question {
    /// Asks why a packet waited: its number in the input, counted from 1.
    #[must_use]
    pub fn about_packet(self, packet: NonZeroU64) -> Self {
        Self { packet: Some(packet), ..self }
    }

    /// Asks about a flow, by its name in a report, or by a part that occurs in no other name.
    #[must_use]
    pub fn about_flow(self, flow: impl Into<String>) -> Self {
        Self { flow: Some(flow.into()), ..self }
    }

    /// Asks about packets that match an expression.
    #[must_use]
    pub fn about_victims(self, victims: PacketFilter<Departures>) -> Self {
        Self { victims: Some(victims), ..self }
    }

    /// Sets the time range, or the moment.
    #[must_use]
    pub fn at(self, at: At) -> Self {
        Self { at: Some(at), ..self }
    }

    /// Sets the least share of the bytes for a flow to be listed, from 0 to 1.
    #[must_use]
    pub fn alpha(self, share: f64) -> Self {
        Self { alpha: share, ..self }
    }

    /// Lists only these flows.
    #[must_use]
    pub fn show(self, show: Show) -> Self {
        Self { show: Some(show), ..self }
    }
}

impl Default for Question {
    fn default() -> Self {
        Self { packet: None, flow: None, victims: None, at: None, alpha: ALPHA, show: None }
    }
}
