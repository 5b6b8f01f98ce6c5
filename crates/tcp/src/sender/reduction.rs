//! Proportional rate reduction (RFC 6937): how much each ACK allows to be sent until the window has reached the
//! threshold.

use crate::params::ReductionBound;

/// The state of one reduction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reduction {
    /// RecoverFS, prr_delivered and prr_out of the RFC, in bytes.
    from: u64,
    delivered: u64,
    out: u64,
    window: u64,
    wraps: bool,
}

/// What an ACK means for a reduction, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) delivered: u64,
    pub(crate) in_network: u64,
    pub(crate) threshold: u64,
    pub(crate) mss: u64,
    /// Whether retransmitted data was delivered.
    pub(crate) repaired: bool,
    /// Whether the ACK advances and reveals no new loss.
    pub(crate) advancing: bool,
}

impl Reduction {
    /// Starts a reduction from `from` bytes. `wraps`: the product of two byte counts wraps at 32 bits.
    pub(crate) fn begin(&mut self, from: u64, wraps: bool) {
        *self = Self { from: from.max(1), wraps, ..Self::default() };
    }

    /// `bytes` bytes were sent.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// How many bytes may be in flight until the next ACK.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// How many bytes should have been sent by now: those delivered, times threshold / `from`.
    #[inline]
    fn due(&self, threshold: u64) -> u64 {
        if self.wraps {
            return u64::from((self.delivered as u32).wrapping_mul(threshold as u32)).div_ceil(self.from);
        }
        match self.delivered.checked_mul(threshold) {
            Some(product) => product.div_ceil(self.from),
            None => {
                let product = u128::from(self.delivered) * u128::from(threshold);
                u64::try_from(product.div_ceil(u128::from(self.from))).unwrap_or(u64::MAX)
            }
        }
    }

    /// An ACK arrived (RFC 6937 section 3.1, which computes `sndcnt`).
    pub(crate) fn step(&mut self, step: &Step, bound: ReductionBound) {
        self.delivered += step.delivered;
        let unspent = self.delivered.saturating_sub(self.out);
        let count = if step.in_network > step.threshold {
            self.due(step.threshold).saturating_sub(self.out)
        } else {
            let slow_start = if self.wraps && self.out > self.delivered {
                // ns-3's difference is unsigned: a negative one wraps to a huge number, until a segment more makes it
                // small again.
                (self.delivered + step.mss).saturating_sub(self.out)
            } else {
                unspent.max(step.delivered) + step.mss
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges one segment at a time until `deliveries` are used up; a segment is one byte. Returns how many
    /// segments each ACK sends if everything allowed is sent.
    fn sends(bound: ReductionBound, from: u64, threshold: u64, mut in_network: u64, deliveries: &[u64]) -> Vec<u64> {
        let mut reduction = Reduction::default();
        reduction.begin(from, false);
        let send = |(number, &delivered): (usize, &u64)| {
            // `in_network` already excludes the deliveries of the first ACK.
            in_network -= if number == 0 { 0 } else { delivered };
            reduction
                .step(&Step { delivered, in_network, threshold, mss: 1, repaired: false, advancing: false }, bound);
            let count = reduction.window() - in_network;
            in_network += count;
            reduction.sent(count);
            count
        };
        deliveries.iter().enumerate().map(send).collect()
    }

    #[test]
    fn half_of_what_is_delivered_is_sent_when_half_is_the_target() {
        // RecoverFS 20, threshold 10, one lost: ceil(delivered / 2) - out = 1, 0, 1, 0, ...
        let sent = sends(ReductionBound::SlowStart, 20, 10, 18, &[1; 16]);
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        // CUBIC's 0.7: ceil(0.7 delivered) - out.
        let sent = sends(ReductionBound::SlowStart, 20, 14, 19, &[1; 10]);
        assert_eq!(sent, [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn below_the_threshold_the_bounds_differ() {
        // 15 of 20 were lost: 4 are in the network, and the threshold is 10. The conservative bound keeps them at 4,
        // slow start adds one for each ACK, the newer bounds only for ACKs that repair or advance.
        assert_eq!(sends(ReductionBound::Conservative, 20, 10, 4, &[1; 4]), [1, 1, 1, 1]);
        assert_eq!(sends(ReductionBound::SlowStart, 20, 10, 4, &[1; 4]), [2, 2, 2, 2]);
        assert_eq!(sends(ReductionBound::SlowStartIfRepaired, 20, 10, 4, &[1; 4]), [1, 1, 1, 1]);
        assert_eq!(sends(ReductionBound::SlowStartIfAdvancing, 20, 10, 4, &[1; 4]), [1, 1, 1, 1]);
        // Never past the threshold.
        assert_eq!(sends(ReductionBound::SlowStart, 20, 10, 9, &[1; 4]), [1, 1, 1, 1]);
        let mut reduction = Reduction::default();
        reduction.begin(20, false);
        let step = Step { delivered: 3, in_network: 4, threshold: 10, mss: 1, repaired: true, advancing: false };
        reduction.step(&step, ReductionBound::SlowStartIfRepaired);
        assert_eq!(reduction.window(), 8);
        reduction.step(&Step { advancing: true, ..step }, ReductionBound::SlowStartIfAdvancing);
        assert_eq!(reduction.window(), 10);
    }

    #[test]
    fn the_product_wraps_if_the_parameters_say_so() {
        // 10 000 * 500 000 - 2^32 = 705 032 704.
        let reduction = Reduction { from: 1_000_000, delivered: 10_000, wraps: true, ..Reduction::default() };
        assert_eq!(reduction.due(500_000), 706);
        assert_eq!(Reduction { wraps: false, ..reduction }.due(500_000), 5_000);
        let large = Reduction { from: 1 << 40, delivered: 1 << 40, ..Reduction::default() };
        assert_eq!(large.due(1 << 39), 1 << 39);
    }

    #[test]
    fn if_numbers_wrap_bytes_sent_beyond_those_delivered_reduce_the_window() {
        let step = Step { delivered: 2, in_network: 4, threshold: 10, mss: 1, repaired: true, advancing: true };
        for (wraps, window) in [(false, 7), (true, 4)] {
            let mut reduction = Reduction { from: 20, delivered: 3, out: 6, wraps, ..Reduction::default() };
            reduction.step(&step, ReductionBound::SlowStartIfRepaired);
            assert_eq!(reduction.window(), window);
            // With the deliveries since, the two agree again.
            reduction.step(&Step { delivered: 1, ..step }, ReductionBound::SlowStartIfRepaired);
            assert_eq!(reduction.window(), 6);
        }
    }

    #[test]
    fn the_first_retransmission_is_sent_whatever_was_delivered() {
        let mut reduction = Reduction::default();
        reduction.begin(20_000, false);
        let step =
            Step { delivered: 0, in_network: 16_000, threshold: 10_000, mss: 1_000, repaired: false, advancing: false };
        reduction.step(&step, ReductionBound::Conservative);
        assert_eq!(reduction.window(), 17_000);
        reduction.sent(1_000);
        reduction.step(&step, ReductionBound::Conservative);
        assert_eq!(reduction.window(), 16_000);
    }
}
