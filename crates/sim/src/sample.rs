//! Samples of the state of a simulation.

use crate::topology::LinkId;
use queuescope_wire::{Backlog, Nanos};

/// The state at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The time, since the start of the simulation.
    pub at: Nanos,
    /// The states of the measured links.
    pub links: Vec<LinkSample>,
    /// The states of the first active flows.
    pub flows: Vec<FlowSample>,
}

/// The state of a link; its counters are since the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSample {
    /// The link.
    pub link: LinkId,
    /// The packets and bytes that wait.
    pub backlog: Backlog,
    /// Packets and bytes that it has sent.
    pub sent: Backlog,
    /// Packets of these that were lost on it.
    pub lost: u64,
    /// Packets that its queue has dropped.
    pub drops: u64,
    /// Packets that it has marked.
    pub marks: u64,
    /// The drop probability, if the manager of its queue has one.
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
