//! Routers observed from outside: packets captured before and behind the router are matched (ConQuest section 6).
//!
//! Two or more captures, of the links into a router and of one link out of it, become departures of the queue in between. The arrival of a
//! packet is its capture time on the way in, and its departure the capture time on the way out. This takes
//!
//! 1. a [`Survey`] of both sides, which samples packets by their fingerprints and estimates the offsets between the clocks of the captures:
//!    a [`Clock`] for each way in, with its uncertainty;
//! 2. a [`Matcher`], a table of fixed size in which packets wait for their second capture, for at most the longest possible delay. It
//!    counts unmatched packets by reason ([`TapStats`]), and has better estimates of the clocks afterwards;
//! 3. [`drive`], which passes the packets of all captures to a matcher in order.
//!
//! Memory does not depend on the size of the captures.

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
pub use survey::{LinkSurvey, Survey, SurveyError, SurveyParams};

use queuescope_wire::parse::{Fingerprint, Frame, InvariantParams, NoFingerprint};
use queuescope_wire::{ByteCount, Ecn, FlowKey, Nanos, Rate};

/// A packet in one of the captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapPacket {
    /// The capture time, by the clock of that capture.
    pub time: Nanos,
    /// The flow, as in that capture; a NAT changes it.
    pub key: FlowKey,
    /// The size on that link, bytes.
    pub size: u32,
    /// The ECN codepoint, as in that capture.
    pub ecn: Ecn,
    /// The fingerprint that identifies it in the other capture, or why there is none.
    pub print: Result<Fingerprint, NoFingerprint>,
}

impl TapPacket {
    /// Creates it from a frame that was captured at `time` with the bytes `data`.
    pub fn new(time: Nanos, frame: &Frame, data: &[u8], params: &InvariantParams) -> Self {
        Self { time, key: frame.key, size: frame.size, ecn: frame.ecn, print: frame.fingerprint(data, params) }
    }

    /// For captures whose timestamps are of a packet's last bit: moves the time to when the link, of this rate, started to send it.
    /// Otherwise the delay of a packet would include its own transmission time, which depends on its size.
    #[must_use]
    pub fn stamped_at_end(self, rate: Rate) -> Self {
        Self { time: self.time.saturating_sub(rate.time_for(ByteCount(u64::from(self.size)))), ..self }
    }

    /// For captures whose timestamps are of a packet's first bit, before a router that stores and forwards: moves the time to when the last
    /// bit had arrived over a link of this rate.
    #[must_use]
    pub fn stamped_at_start(self, rate: Rate) -> Self {
        Self { time: self.time.saturating_add(rate.time_for(ByteCount(u64::from(self.size)))), ..self }
    }
}
