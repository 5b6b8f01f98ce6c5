//! The consumer of departures as they are read.

use queuescope_log::packet;
use queuescope_pcap::Record;
use queuescope_sim::Output;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::ops::Range;

/// A flow that a [`Listener`] interned, and the era in which it did.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeenFlow {
    /// Its id.
    pub flow: FlowId,
    /// The [era](Listener::era); 0 for none.
    pub era: u32,
}

/// Processes every packet that leaves a queue or is dropped there. It assigns the flow ids.
pub trait Listener: Output {
    /// The key of a packet's flow: a [`MaskedKey`](queuescope_wire::MaskedKey) or, from a table, a name.
    type Key: ?Sized;
    /// The error that ends the run.
    type Error;

    /// The id of the flow with this key, for a packet at `now`.
    fn intern(&mut self, key: &Self::Key, now: Nanos) -> FlowId;

    /// Another packet of a flow comes at `now`, in place of [`intern`](Self::intern), which would return this flow too. Returns false, and
    /// does nothing, if that is not certain; then `intern` is called.
    #[inline]
    fn again(&mut self, _flow: SeenFlow, _now: Nanos) -> bool {
        false
    }

    /// The current era, which is above 0. A new one begins whenever ids are freed, so that they may be of other flows.
    #[inline]
    fn era(&self) -> u32 {
        1
    }

    /// Whether [`read`](Self::read) is to be called. If not, another thread may read the capture.
    #[inline]
    fn wants_frames(&self) -> bool {
        true
    }

    /// A frame of a capture was read, which becomes `packets`; the range is empty if the frame is left out. The frame is
    /// passed as a copy, so that it can stay in registers where it is not used.
    ///
    /// # Errors
    /// Returns an error that occurred since the last frame, which ends the run.
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

    /// A packet with these headers, a record of the schema [`packet`], is about to leave or be dropped. Called where there
    /// are no frames.
    fn came(&mut self, _packet: PacketId, _headers: [u8; packet::SIZE]) {}

    /// A packet of a table with this identity will leave. Called if columns for it were named.
    #[cfg(feature = "table")]
    fn identified(&mut self, _packet: PacketId, _identity: queuescope_table::PacketIdentity) {}

    /// A packet left whose arrival time is not known: its `enqueued` is when it left.
    fn passed(&mut self, departure: &Departure) {
        self.departed(departure);
    }

    /// The next frame may take a while: buffered output should be written now.
    ///
    /// # Errors
    /// Returns the error of writing.
    fn hand_over(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The departure time of the next packet was changed to that of the packet before it, because it was earlier. Its
    /// position does not show the order of packets.
    fn moved(&mut self) {}

    /// A row of a table was read, which is this packet; the range is empty if the row is left out.
    ///
    /// # Errors
    /// Returns an error that occurred since the last row, which ends the run.
    fn row(&mut self, _packets: Range<u64>) -> Result<(), Self::Error> {
        Ok(())
    }
}
