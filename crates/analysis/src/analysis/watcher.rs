//! What sees each packet beside an analysis.

use queuescope_log::packet;
use queuescope_meter::Contribution;
use queuescope_pcap::Record;
use queuescope_queue::Dropped;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::convert::Infallible;
use std::ops::Range;

/// Sees what becomes of each packet, with its flow's part of the queue: writers of per-packet outputs. `()` watches nothing.
pub trait Watcher {
    /// What can go wrong with it, which ends the run.
    type Error;

    /// Whether it wants each packet's part of the queue, also where there is no congestion.
    fn wants_parts(&self) -> bool {
        false
    }
    /// Whether it wants the frames of a capture.
    fn wants_packets(&self) -> bool {
        false
    }
    /// A packet left the queue; `flow`, its `part` and its name are those of the first granularity. A packet that was not seen
    /// coming has no part, and `enqueued` is when it left.
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

    /// A packet with these headers is about to leave or be dropped, where there is no frame of it.
    fn came(&mut self, _packet: PacketId, _headers: [u8; packet::SIZE]) {}
    /// A frame of a capture was read, which becomes these packets: none if it is left out. Only if it
    /// [wants](Self::wants_packets) frames.
    ///
    /// # Errors
    /// What went wrong since the last frame.
    fn read(
        &mut self,
        _record: &Record<'_>,
        _frame: Frame,
        _time: Nanos,
        _packets: Range<u64>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
    /// The next packet may be a while: what is buffered is written.
    ///
    /// # Errors
    /// If it cannot be written.
    fn hand_over(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Reports an error since the last call, which ends the run.
    ///
    /// # Errors
    /// That error.
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
