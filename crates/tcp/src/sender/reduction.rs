//! Proportional rate reduction (RFC 6937): how much may leave with each ACK until the window is down at the threshold.

use crate::params::ReductionBound;

/// The state of one reduction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reduction {
    /// RecoverFS, prr_delivered and prr_out in the RFC; in bytes.
    from: u64,
    delivered: u64,
    out: u64,
    window: u64,
}

/// What an ACK means to a reduction; in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) delivered: u64,
    pub(crate) in_network: u64,
    pub(crate) threshold: u64,
    pub(crate) mss: u64,
    /// Data that was sent again was delivered.
    pub(crate) repaired: bool,
    /// The ACK advances and tells of no new loss.
    pub(crate) advancing: bool,
}

impl Reduction {
    /// It begins, from so many bytes.
    pub(crate) fn begin(&mut self, from: u64) {
        *self = Self { from: from.max(1), ..Self::default() };
    }

    /// Bytes were sent.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// What may be in flight until the next ACK.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// An ACK has come (RFC 6937 section 3.1, which computes `sndcnt`).
    pub(crate) fn step(&mut self, step: &Step, bound: ReductionBound) {
        self.delivered += step.delivered;
        let unspent = self.delivered.saturating_sub(self.out);
        let count = if step.in_network > step.threshold {
            let due = u128::from(self.delivered) * u128::from(step.threshold);
            let due = u64::try_from(due.div_ceil(u128::from(self.from))).unwrap_or(u64::MAX);
            due.saturating_sub(self.out)
        } else {
            let slow_start = unspent.max(step.delivered) + step.mss;
            let limit = match bound {
                ReductionBound::Conservative => unspent,
                ReductionBound::SlowStart => slow_start,
                ReductionBound::SlowStartIfRepaired if step.repaired => slow_start,
                ReductionBound::SlowStartIfAdvancing if step.advancing => slow_start,
                ReductionBound::SlowStartIfRepaired | ReductionBound::SlowStartIfAdvancing => step.delivered,
            };
            limit.min(step.threshold - step.in_network)
        };
        // The first retransmission always leaves.
        let count = if self.out == 0 { count.max(step.mss) } else { count };
        self.window = step.in_network + count;
    }
}
