//! Routers seen from outside: the same packets captured before and after, matched (ConQuest section 6).
//!
//! Two or more captures, of links into a router and of one out of it, become departures of the queue in between: a packet
//! came when it was seen on its way in, and left when it was seen on its way out. That takes
//!
//! 1. a [`Survey`] of both sides, which samples packets by their fingerprints and finds how the clocks of the captures
//!    stand to each other: a [`Clock`] for each way in, with what is not known about it;
//! 2. a [`Matcher`], a table of fixed size in which packets wait for their second appearance, for as long as the longest
//!    possible delay. It counts by reason what has no match ([`TapStats`]), and knows better clocks afterwards;
//! 3. [`drive`], which gives a matcher the packets of all captures in order.
//!
//! All memory is of fixed size, whatever the captures'.

mod clock;
mod drive;
mod envelope;
mod matcher;
mod routes;
mod stats;
mod survey;
mod table;

pub use clock::{Clock, ClockEstimate};
pub use drive::{Feed, drive};
pub use envelope::Envelope;
pub use matcher::{Arrived, Matcher, TapDeparture, TapOutput, TapParams, Unseen};
pub use routes::{RouteBy, Routes};
pub use stats::TapStats;
pub use survey::{Survey, SurveyError, SurveyParams, Surveyed};

use queuescope_wire::parse::{Fingerprint, Frame, InvariantParams, NoFingerprint};
use queuescope_wire::{ByteCount, Ecn, FlowKey, Nanos, Rate};

/// A packet as one capture saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When, by the clock of that capture.
    pub time: Nanos,
    /// Whose it is, there: behind a NAT it is another.
    pub key: FlowKey,
    /// Bytes on that link.
    pub size: u32,
    /// Its ECN codepoint, there.
    pub ecn: Ecn,
    /// What it is known by on the other side, if by anything.
    pub print: Result<Fingerprint, NoFingerprint>,
}

impl Seen {
    /// A frame captured at `time`, of which `data` was captured.
    pub fn new(time: Nanos, frame: &Frame, data: &[u8], params: &InvariantParams) -> Self {
        Self { time, key: frame.key, size: frame.size, ecn: frame.ecn, print: frame.fingerprint(data, params) }
    }

    /// Where packets are stamped at their last bit: when the link, of that rate, started to send it. Without this, a
    /// packet's delay has the time in which it was sent itself in it, which differs by its size.
    #[must_use]
    pub fn stamped_at_end(self, rate: Rate) -> Self {
        Self { time: self.time.saturating_sub(rate.time_for(ByteCount(u64::from(self.size)))), ..self }
    }

    /// Where packets are stamped at their first bit, and the router waits for the last: when it had arrived over a link
    /// of that rate.
    #[must_use]
    pub fn stamped_at_start(self, rate: Rate) -> Self {
        Self { time: self.time.saturating_add(rate.time_for(ByteCount(u64::from(self.size)))), ..self }
    }
}
