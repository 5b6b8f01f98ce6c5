//! Callbacks for each packet of an analysis.

use queuescope_log::packet;
use queuescope_meter::Contribution;
use queuescope_pcap::Record;
use queuescope_queue::Dropped;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::convert::Infallible;
use std::ops::Range;

/// Is called for each departure and drop, with the flow's part of the queue. Writers of per-packet outputs implement it.
/// `()` does nothing.
pub trait Watcher {
    /// The error that ends the run.
    type Error;

    /// Whether it needs each flow's part of the queue even while there is no congestion.
    fn wants_parts(&self) -> bool {
        false
    }
    /// Whether [`read`](Self::read) is to be called for the frames of a capture.
    fn wants_packets(&self) -> bool {
        false
    }
    /// A packet left the queue; `flow`, its `part` and its name are those of the first granularity. A packet whose arrival
    /// was not seen has no part, and its `enqueued` is when it left.
    fn departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    );
    /// A packet was dropped; `flow` is its flow of the first granularity.
    fn dropped(&mut self, dropped: &Dropped, flow: FlowId);
    /// The id of a flow of the first granularity is freed, and may be assigned to another flow.
    fn forget(&mut self, flow: FlowId);

    /// Times of departures count from this time since the Unix epoch. Called before the first packet, where that becomes known only then.
    fn starts_at(&mut self, _origin: Nanos) {}
    /// A packet with these headers is about to leave or be dropped. Called where there are no frames.
    fn came(&mut self, _packet: PacketId, _headers: [u8; packet::SIZE]) {}
    /// A frame of a capture was read, which becomes `packets`; the range is empty if the frame is left out. Called only if
    /// it [wants](Self::wants_packets) frames.
    ///
    /// # Errors
    /// Returns an error that occurred since the last frame.
    fn read(
        &mut self,
        _record: &Record<'_>,
        _frame: Frame,
        _time: Nanos,
        _packets: Range<u64>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Writes what is buffered, since the next packet may take a while.
    ///
    /// # Errors
    /// Returns the error of writing.
    fn hand_over(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Reports an error since the last call, which ends the run.
    ///
    /// # Errors
    /// Returns that error.
    fn check(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Watcher for () {
    type Error = Infallible;

    fn departed(&mut self, _: &Departure, _: FlowId, _: Option<Contribution>, _: impl FnOnce() -> String) {}
    fn dropped(&mut self, _: &Dropped, _: FlowId) {}
    fn forget(&mut self, _: FlowId) {}
}
