//! A segment that was sent.

use queuescope_wire::Nanos;

/// A segment that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentSegment {
    pub(crate) seq: u64,
    pub(crate) length: u32,
    pub(crate) fin: bool,
    /// A selective acknowledgement reported its arrival.
    pub(crate) sacked: bool,
    /// It is marked lost.
    pub(crate) lost: bool,
    /// Retransmitted since it was last marked lost, or before: that copy is in flight (S1 <= HighRxt in SetPipe).
    pub(crate) repeated: bool,
    /// Sent more than once at any time.
    pub(crate) ever_repeated: bool,
    /// The application had nothing more to send at that time.
    pub(crate) application_limited: bool,
    /// At the start of a run of arrived segments: a lower bound of the run's length in segments.
    pub(super) run_after: u32,
    /// At the end of a run: its length in segments.
    pub(super) run_before: u32,
    /// The serial number of its last transmission, counted over the connection.
    pub(crate) serial: u64,
    /// When it was last sent.
    pub(crate) sent_at: Nanos,
    /// At that time: how many bytes had been delivered, when the last of them was, and when the segment was sent from
    /// which the rate is measured.
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Nanos,
    pub(crate) first_sent_at: Nanos,
}

impl SentSegment {
    pub(crate) fn new(seq: u64, length: u32, fin: bool) -> Self {
        Self {
            seq,
            length,
            fin,
            sacked: false,
            lost: false,
            repeated: false,
            ever_repeated: false,
            application_limited: false,
            run_after: 0,
            run_before: 0,
            serial: 0,
            sent_at: Nanos::ZERO,
            delivered: 0,
            delivered_at: Nanos::ZERO,
            first_sent_at: Nanos::ZERO,
        }
    }

    /// Bytes of data: a FIN takes a sequence number, but no room in a window.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.length)
    }

    /// The sequence number after it.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.bytes() + u64::from(self.fin)
    }
}
