//! A segment that was sent.

use queuescope_wire::Nanos;

/// A segment that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) seq: u64,
    pub(crate) length: u32,
    pub(crate) fin: bool,
    /// Arrived, as a selective acknowledgement said.
    pub(crate) sacked: bool,
    /// Taken for lost.
    pub(crate) lost: bool,
    /// Sent again since it was last taken for lost, or before it was: that copy is in flight (S1 <= HighRxt in SetPipe).
    pub(crate) repeated: bool,
    /// Sent more than once ever.
    pub(crate) ever_repeated: bool,
    /// The application had nothing more when it was sent.
    pub(crate) application_limited: bool,
    /// If it begins a run of segments that have arrived: at least how many they are.
    pub(super) run_after: u32,
    /// If it ends one: how many they are.
    pub(super) run_before: u32,
    /// Which transmission on the connection its last was.
    pub(crate) serial: u64,
    /// When it was sent last.
    pub(crate) sent_at: Nanos,
    /// How much had been delivered then, when the last of that was, and when what it is measured from was sent.
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Nanos,
    pub(crate) first_sent_at: Nanos,
}

impl Sent {
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

    /// Bytes of data: a FIN takes a number, but no room in a window.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.length)
    }

    /// The number behind it.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.bytes() + u64::from(self.fin)
    }
}
