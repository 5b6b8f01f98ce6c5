//! The number of flows: exact while it is small, and a good estimate in fixed memory when it is large.

use queuescope_wire::Distinct;

/// Counts distinct digests. The count is exact up to a given number; above it, a HyperLogLog of 2^16 registers takes over
/// ([`Distinct`]), with a standard error of 1.04 / 2^8 = 0.41 %.
#[derive(Debug)]
pub struct DistinctFlows(Distinct);

/// The number of high bits of a mixed digest that select a register.
const REGISTER_BITS: u32 = 16;

impl DistinctFlows {
    /// Counts exactly up to `exact_up_to` digests, which take 8 to 20 bytes each.
    pub fn new(exact_up_to: usize) -> Self {
        Self(Distinct::new(exact_up_to, REGISTER_BITS))
    }

    /// Counts a flow.
    pub fn insert(&mut self, digest: u64) {
        self.0.insert(digest);
    }

    /// The number of distinct digests, and whether it is exact.
    pub fn count(&self) -> (u64, bool) {
        (self.0.count(), self.0.is_exact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(n: u64) -> u64 {
        let product = u128::from(n ^ 0x243f_6a88_85a3_08d3) * 0x9fb2_1c65_1e98_df25_u128;
        product as u64 ^ (product >> 64) as u64
    }

    #[test]
    fn few_flows_are_counted_exactly() {
        let mut distinct = DistinctFlows::new(1_000);
        for n in 0..3_000 {
            distinct.insert(digest(n % 1_000));
        }
        assert_eq!(distinct.count(), (1_000, true));
    }

    /// Two percent are five standard errors.
    #[test]
    fn many_flows_are_estimated_within_two_percent() {
        for many in [2_000, 100_000, 250_000, 1_500_000u64] {
            let mut distinct = DistinctFlows::new(1_000);
            for n in 0..many {
                distinct.insert(digest(n));
                distinct.insert(digest(n / 2));
            }
            let (count, exact) = distinct.count();
            assert!(!exact);
            assert!((count as f64 / many as f64 - 1.0).abs() < 0.02, "{count} of {many}");
        }
    }
}
