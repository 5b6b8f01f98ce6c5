//! The number of distinct values: exact while it is small, and an estimate in fixed memory when it is large.

use hashbrown::HashTable;

/// Counts distinct values. The count is exact up to a limit; above it, a HyperLogLog takes over: Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the
/// analysis of a near-optimal cardinality estimation algorithm" (AofA 2007), with hashes of 64 bits and the estimator of Ertl, "New cardinality estimation
/// algorithms for HyperLogLog sketches" (2017, algorithm 6), which needs no correction for small counts.
///
/// The state depends only on the set of values. So states can be joined in any order and any number of times, and the result is that of all values in one
/// place. The hash is fixed, so that the states of several hosts can be joined; a sender who knows it can choose values that falsify an estimate.
///
/// ```
/// use queuescope_wire::Distinct;
///
/// let (mut one, mut other) = (Distinct::of_values(), Distinct::of_values());
/// (0..600u128).for_each(|value| one.insert_value(value));
/// (300..900u128).for_each(|value| other.insert_value(value));
/// one.join(&other);
/// assert_eq!((one.count(), one.is_exact()), (900, true));
/// ```
#[derive(Debug, Clone)]
pub struct Distinct {
    exact_up_to: usize,
    register_bits: u32,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// Hashes of all values.
    Exact(HashTable<u64>),
    /// For each register, the greatest rank of the hashes that select it; 0 without any.
    Estimate(Box<[u8]>),
}

/// Bytes that are not the state of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed state of a distinct count: {0}")]
pub struct MalformedDistinct(&'static str);

/// The first byte of an exact state's form as bytes, and that of an estimate's.
const EXACT: u8 = 0;
const ESTIMATE: u8 = 1;

impl Distinct {
    /// Values of attributes are counted exactly up to this number.
    pub const EXACT_VALUES: u64 = 1024;
    /// The standard error of the estimate above it, relative to the count: 1.04 / 2^6.5.
    pub const STANDARD_ERROR: f64 = 0.0115;
    /// The most bytes of [`to_bytes`](Self::to_bytes) for values of attributes.
    pub const MOST_BYTES: usize = 1 + (1 << VALUE_BITS);

    /// Counts exactly up to `exact_up_to` values, which take 8 to 20 bytes each; then in 2^`register_bits` bytes, with a relative standard error of
    /// 1.04 / 2^(`register_bits` / 2).
    ///
    /// # Panics
    /// Panics if `register_bits` is not from 4 to 20.
    pub fn new(exact_up_to: usize, register_bits: u32) -> Self {
        assert!((4..=20).contains(&register_bits), "2^{register_bits} registers");
        Self { exact_up_to, register_bits, state: State::Exact(HashTable::new()) }
    }

    /// For values of attributes: exact up to [`EXACT_VALUES`](Self::EXACT_VALUES), then in 8 KiB with a relative standard error of
    /// [`STANDARD_ERROR`](Self::STANDARD_ERROR).
    pub fn of_values() -> Self {
        Self::new(Self::EXACT_VALUES as usize, VALUE_BITS)
    }

    /// Counts a value. Values below 2^64 never have equal hashes.
    #[inline]
    pub fn insert_value(&mut self, value: u128) {
        self.insert_hash(mix((value as u64).wrapping_add(mix((value >> 64) as u64))));
    }

    /// Counts something by its digest of 64 bits.
    #[inline]
    pub fn insert(&mut self, digest: u64) {
        self.insert_hash(mix(digest));
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) {
        match &mut self.state {
            State::Estimate(registers) => raise(registers, self.register_bits, hash),
            State::Exact(seen) => {
                if seen.find(hash, |other| *other == hash).is_none() {
                    seen.insert_unique(hash, hash, |other| *other);
                    if seen.len() > self.exact_up_to {
                        self.estimate();
                    }
                }
            }
        }
    }

    /// Adds the values of another count.
    ///
    /// # Panics
    /// Panics if the other one has another limit or number of registers.
    pub fn join(&mut self, other: &Self) {
        let form = |of: &Self| (of.exact_up_to, of.register_bits);
        assert_eq!(form(self), form(other), "counts with the same limit and registers can be joined");
        match &other.state {
            State::Exact(seen) => seen.iter().for_each(|hash| self.insert_hash(*hash)),
            State::Estimate(theirs) => {
                for (own, their) in self.estimate().iter_mut().zip(theirs) {
                    *own = (*own).max(*their);
                }
            }
        }
    }

    /// The number of distinct values. An estimate is above the limit of exact counts, as the number of values is.
    pub fn count(&self) -> u64 {
        match &self.state {
            State::Exact(seen) => seen.len() as u64,
            State::Estimate(registers) => {
                (estimate(registers, self.register_bits).round() as u64).max(self.exact_up_to as u64 + 1)
            }
        }
    }

    /// Whether the count is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.state, State::Exact(_))
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        match &self.state {
            State::Exact(seen) => seen.allocation_size(),
            State::Estimate(registers) => registers.len(),
        }
    }

    /// The state as bytes, for [`read`](Self::read): equal sets of values have equal bytes. A byte 0 and the hashes in ascending order, 8 bytes each, lowest byte
    /// first; or a byte 1 and the registers.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.state {
            State::Exact(seen) => {
                let mut hashes: Vec<_> = seen.iter().copied().collect();
                hashes.sort_unstable();
                [EXACT].into_iter().chain(hashes.into_iter().flat_map(u64::to_le_bytes)).collect()
            }
            State::Estimate(registers) => [ESTIMATE].into_iter().chain(registers.iter().copied()).collect(),
        }
    }

    /// The state of a count with the limit and registers of this one, from its bytes, which may come from outside.
    ///
    /// # Errors
    /// Fails if it is not such a state.
    pub fn read(&self, bytes: &[u8]) -> Result<Self, MalformedDistinct> {
        let mut read = Self::new(self.exact_up_to, self.register_bits);
        match bytes.split_first() {
            Some((&EXACT, hashes)) => {
                let (hashes, rest) = hashes.as_chunks::<8>();
                let hashes: Vec<_> = hashes.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
                if !rest.is_empty() || hashes.len() > self.exact_up_to {
                    return Err(MalformedDistinct("a wrong number of hashes"));
                }
                if !hashes.is_sorted_by(|a, b| a < b) {
                    return Err(MalformedDistinct("hashes that do not ascend"));
                }
                hashes.into_iter().for_each(|hash| read.insert_hash(hash));
            }
            Some((&ESTIMATE, registers)) => {
                if registers.len() != 1 << self.register_bits {
                    return Err(MalformedDistinct("a wrong number of registers"));
                }
                if registers.iter().any(|rank| u32::from(*rank) > u64::BITS - self.register_bits + 1) {
                    return Err(MalformedDistinct("a rank that no hash has"));
                }
                read.state = State::Estimate(registers.into());
            }
            _ => return Err(MalformedDistinct("an unknown kind")),
        }
        Ok(read)
    }

    /// The registers, to which an exact state turns.
    fn estimate(&mut self) -> &mut [u8] {
        if let State::Exact(seen) = &self.state {
            let mut registers = vec![0; 1 << self.register_bits].into_boxed_slice();
            seen.iter().for_each(|hash| raise(&mut registers, self.register_bits, *hash));
            self.state = State::Estimate(registers);
        }
        match &mut self.state {
            State::Estimate(registers) => registers,
            State::Exact(_) => &mut [],
        }
    }
}

/// The number of high bits of a hash that select a register, for values of attributes.
const VALUE_BITS: u32 = 13;

/// A permutation of 64 bits in which each bit depends on all others: the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Adds a hash to the registers.
#[inline]
fn raise(registers: &mut [u8], bits: u32, hash: u64) {
    let rank = ((hash << bits) | (1 << (bits - 1))).leading_zeros() as u8 + 1;
    if let Some(register) = registers.get_mut((hash >> (u64::BITS - bits)) as usize) {
        *register = rank.max(*register);
    }
}

/// Ertl's algorithm 6. `m` is the number of registers, and `C` the number of registers with each rank.
fn estimate(registers: &[u8], bits: u32) -> f64 {
    let m = registers.len() as f64;
    let highest = (u64::BITS - bits + 1) as usize;
    let mut counts = [0u32; 64];
    registers.iter().for_each(|rank| counts[usize::from(*rank).min(highest)] += 1);
    let mut z = m * tau(1.0 - f64::from(counts[highest]) / m);
    for count in counts[1..highest].iter().rev() {
        z = 0.5 * (z + f64::from(*count));
    }
    z += m * sigma(f64::from(counts[0]) / m);
    // Only the empty set leaves all registers at 0, and its sum is infinite.
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(values: impl IntoIterator<Item = u128>) -> Distinct {
        let mut distinct = Distinct::of_values();
        values.into_iter().for_each(|value| distinct.insert_value(value));
        distinct
    }

    /// Values that are few or many: `start` and the multiples of `step` from there on.
    fn values() -> impl Strategy<Value = Vec<u128>> {
        let many = (any::<u128>(), 1..u128::MAX, prop_oneof![0..40usize, 900..1200usize, 2000..4000usize]);
        many.prop_map(|(start, step, count)| {
            (0..count).map(|n| start.wrapping_add(step.wrapping_mul(n as u128))).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        /// The state depends on the set of values only, so joining is associative, commutative and idempotent, and the state of a union is that of all
        /// values in one place.
        #[test]
        fn joined_states_are_the_state_of_the_union(a in values(), b in values(), c in values(), order in 0..6usize) {
            let all = of(a.iter().chain(&b).chain(&c).copied());
            let parts = [of(a.clone()), of(b), of(c)];
            let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
            let [first, second, third] = orders[order].map(|part| &parts[part]);
            let mut left = first.clone();
            left.join(second);
            left.join(third);
            let mut right = second.clone();
            right.join(third);
            let mut whole = first.clone();
            whole.join(&right);
            whole.join(first);
            prop_assert_eq!(left.to_bytes(), all.to_bytes());
            prop_assert_eq!(whole.to_bytes(), all.to_bytes());
            prop_assert_eq!((whole.count(), whole.is_exact()), (all.count(), all.is_exact()));
        }

        #[test]
        fn few_values_are_counted_exactly(values in values()) {
            let (distinct, known) = (of(values.iter().copied()), values.iter().collect::<BTreeSet<_>>().len() as u64);
            prop_assert_eq!(distinct.is_exact(), known <= Distinct::EXACT_VALUES);
            if distinct.is_exact() {
                prop_assert_eq!(distinct.count(), known);
            } else {
                prop_assert!(distinct.count() > Distinct::EXACT_VALUES);
            }
        }

        #[test]
        fn states_are_read_as_they_were_written(values in values()) {
            let distinct = of(values);
            let bytes = distinct.to_bytes();
            prop_assert!(bytes.len() <= Distinct::MOST_BYTES);
            let read = Distinct::of_values().read(&bytes).expect("its own bytes");
            prop_assert_eq!((read.count(), read.to_bytes()), (distinct.count(), bytes));
        }

        #[test]
        fn bytes_from_outside_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..40), registers in any::<bool>(), rank in 0..80u8) {
            if registers {
                bytes = vec![rank; Distinct::MOST_BYTES];
                bytes[0] = ESTIMATE;
            }
            if let Ok(read) = Distinct::of_values().read(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
                let mut joined = of(0..2000);
                joined.join(&read);
                prop_assert!(joined.count() > 0);
            }
        }
    }

    /// Over 400 sets of each size: the root of the mean squared error is near the stated one, and the mean is not biased.
    #[test]
    fn errors_are_as_stated() {
        for count in [1_500u64, 5_000, 20_000, 60_000] {
            const SETS: u64 = 400;
            let (mut sum, mut squares) = (0.0, 0.0);
            for set in 0..SETS {
                let estimate = of((0..count).map(|n| u128::from(set << 40 | n))).count();
                let error = estimate as f64 / count as f64 - 1.0;
                sum += error;
                squares += error * error;
            }
            let (mean, root) = (sum / SETS as f64, (squares / SETS as f64).sqrt());
            // Five standard errors of a mean of 400, and of a root of 400 (its relative one is 1 / sqrt(800)).
            assert!(mean.abs() < 5.0 * Distinct::STANDARD_ERROR / 20.0, "{count}: biased by {mean}");
            assert!(root < Distinct::STANDARD_ERROR * 1.18, "{count}: a standard error of {root}");
        }
    }

    /// Hosts of all versions need the same hashes.
    #[test]
    fn hashes_stay() {
        let bytes = of([0, 1, 0xffff_c000_0201, 1 << 127]).to_bytes();
        let hashes: Vec<_> = bytes[1..].as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
        assert_eq!(hashes, HASHES);
    }

    const HASHES: [u64; 4] =
        [0x2a98_f501_af37_e97f, 0x86db_92e8_33b0_c1a0, 0x98bb_c732_1309_8bbb, 0xa706_dd2f_4d19_7e6f];

    #[test]
    fn malformed_states_are_refused() {
        let read = |bytes: &[u8]| {
            Distinct::of_values().read(bytes).map(|read| read.count()).map_err(|error| error.to_string())
        };
        let hashes = |hashes: &[u64]| {
            [EXACT].into_iter().chain(hashes.iter().flat_map(|hash| hash.to_le_bytes())).collect::<Vec<_>>()
        };
        assert_eq!(read(&hashes(&[])), Ok(0));
        assert_eq!(read(&hashes(&[3, 7])), Ok(2));
        for (bytes, why) in [
            (vec![], "an unknown kind"),
            (vec![2, 0], "an unknown kind"),
            (hashes(&[7, 7]), "hashes that do not ascend"),
            (hashes(&[7, 3]), "hashes that do not ascend"),
            (vec![EXACT, 1, 2, 3], "a wrong number of hashes"),
            (hashes(&(0..1025).collect::<Vec<_>>()), "a wrong number of hashes"),
            (vec![ESTIMATE; 100], "a wrong number of registers"),
            (vec![ESTIMATE; Distinct::MOST_BYTES + 1], "a wrong number of registers"),
            ([ESTIMATE].into_iter().chain([53; 1 << VALUE_BITS]).collect(), "a rank that no hash has"),
        ] {
            assert_eq!(read(&bytes), Err(format!("malformed state of a distinct count: {why}")));
        }
    }
}
