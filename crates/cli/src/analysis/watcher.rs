//! Who is shown each packet beside an analysis.

use queuescope_meter::Contribution;
use queuescope_queue::Dropped;
use queuescope_wire::{Departure, FlowId};

/// Hears what becomes of each packet, with its flow's part of the queue: writers of per-packet outputs.
pub trait Watcher {
    /// Whether it wants to know each packet's part of the queue, also where there is no congestion.
    fn wants_parts(&self) -> bool;
    /// A packet left the queue; `flow`, its `part` and its name are those of the first granularity. Of a packet that
    /// nobody saw coming there is no part, and it is told to have come as it left.
    fn departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    );
    /// A packet was dropped; `flow` is its flow of the first granularity.
    fn dropped(&mut self, dropped: &Dropped, flow: FlowId);
    /// The id of a flow of the first granularity is taken back.
    fn forget(&mut self, flow: FlowId);
}
