//! Who hears of departures as they are read.

use queuescope_log::packet;
use queuescope_pcap::Record;
use queuescope_sim::Output;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::ops::Range;

/// Hears of everything that leaves a queue or is dropped there, under flow ids that it hands out.
pub trait Listener: Output {
    /// What says which flow a packet belongs to: a [`MaskedKey`](queuescope_wire::MaskedKey) or, from a table, a name.
    type Key: ?Sized;
    /// What can go wrong with it, which ends the run.
    type Error;

    /// The id of a packet's flow.
    fn intern(&mut self, key: &Self::Key, now: Nanos) -> FlowId;

    /// A frame of a capture was read, which becomes these packets: none if it is left out. It comes as a copy, so that where
    /// nobody wants it it can stay in registers.
    ///
    /// # Errors
    /// What went wrong since the last frame, which ends the run.
    #[inline]
    fn read(
        &mut self,
        _record: &Record<'_>,
        _frame: Frame,
        _time: Nanos,
        _packets: Range<u64>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A packet with these headers, a record of the schema [`packet`], is about to leave or be dropped, where there is no frame of it.
    fn came(&mut self, _packet: PacketId, _headers: [u8; packet::SIZE]) {}

    /// A packet left of which it is not known when it came: `enqueued` is when it left.
    fn passed(&mut self, departure: &Departure) {
        self.departed(departure);
    }

    /// The next frame may be a while: what is known is handed to those who keep it.
    ///
    /// # Errors
    /// If they cannot.
    fn hand_over(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The next packet left earlier than it says: it is given the time of the one before it, so its place says nothing about the order.
    fn moved(&mut self) {}

    /// A row of a table was read, which is this packet: none if it is left out.
    ///
    /// # Errors
    /// What went wrong since the last row, which ends the run.
    fn row(&mut self, _packets: Range<u64>) -> Result<(), Self::Error> {
        Ok(())
    }
}
