//! The number of flows: exact while it is small, and a good estimate in fixed memory when it is large.

use hashbrown::HashTable;

/// Counts distinct digests. The count is exact up to a given number; above it, a HyperLogLog of 2^16 registers takes over
/// (Flajolet et al. 2007), with a standard error of 1.04 / 2^8 = 0.41 %.
#[derive(Debug)]
pub struct DistinctFlows {
    exact_up_to: usize,
    state: Counter,
}

#[derive(Debug)]
enum Counter {
    Exact(HashTable<u64>),
    Estimate(Box<[u8]>),
}

/// The number of high bits of a mixed digest that select a register.
const INDEX_BITS: u32 = 16;

impl DistinctFlows {
    /// Counts exactly up to `exact_up_to` digests, which take 8 to 20 bytes each.
    pub fn new(exact_up_to: usize) -> Self {
        Self { exact_up_to, state: Counter::Exact(HashTable::new()) }
    }

    /// Counts a flow.
    pub fn insert(&mut self, digest: u64) {
        match &mut self.state {
            Counter::Exact(seen) => {
                if seen.find(digest, |other| *other == digest).is_none() {
                    seen.insert_unique(digest, digest, |other| *other);
                    if seen.len() > self.exact_up_to {
                        let mut registers = vec![0; 1 << INDEX_BITS].into_boxed_slice();
                        seen.iter().for_each(|digest| raise(&mut registers, *digest));
                        self.state = Counter::Estimate(registers);
                    }
                }
            }
            Counter::Estimate(registers) => raise(registers, digest),
        }
    }

    /// The number of distinct digests, and whether it is exact.
    pub fn count(&self) -> (u64, bool) {
        match &self.state {
            Counter::Exact(seen) => (seen.len() as u64, true),
            Counter::Estimate(registers) => (estimate(registers), false),
        }
    }
}

fn raise(registers: &mut [u8], digest: u64) {
    // Digests are hashes already; another round keeps the registers independent of tables that use the same bits.
    let product = u128::from(digest ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    let mixed = product as u64 ^ (product >> 64) as u64;
    let rank = ((mixed << INDEX_BITS) | (1 << (INDEX_BITS - 1))).leading_zeros() as u8 + 1;
    let register = &mut registers[(mixed >> (64 - INDEX_BITS)) as usize];
    *register = rank.max(*register);
}

fn estimate(registers: &[u8]) -> u64 {
    let count = registers.len() as f64;
    let sum: f64 = registers.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
    let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
    let empty = registers.iter().filter(|&&rank| rank == 0).count();
    // With few digests some registers are empty, and counting these gives a better estimate (linear counting).
    let value = if raw <= 2.5 * count && empty > 0 { count * (count / empty as f64).ln() } else { raw };
    value.round() as u64
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
