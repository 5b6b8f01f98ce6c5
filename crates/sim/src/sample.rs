//! The state of a simulation at a moment.

use crate::topology::LinkId;
use queuescope_wire::{Backlog, Nanos};

/// The state at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// Of each link that is measured.
    pub links: Vec<LinkSample>,
    /// Of the first flows that are active.
    pub flows: Vec<FlowSample>,
}

/// The state of a link; what it counted is since the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSample {
    /// Which one.
    pub link: LinkId,
    /// What waits.
    pub backlog: Backlog,
    /// What it has sent.
    pub sent: Backlog,
    /// Of that, packets that were lost on it.
    pub lost: u64,
    /// What its queue has dropped.
    pub drops: u64,
    /// What it has marked.
    pub marks: u64,
    /// The probability with which it drops, if what manages its queue keeps one.
    pub drop_probability: Option<f64>,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSample {
    /// Its number.
    pub number: u64,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Nanos>,
    /// Bytes that the receiver has in order.
    pub delivered: u64,
}
