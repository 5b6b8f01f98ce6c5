//! Derives seeds from one seed.

/// The seed with this index. A step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), so that
/// neighbouring seeds are unrelated.
pub(crate) fn derive(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 from 1234567, as its authors' program prints them.
    #[test]
    fn seeds_are_the_outputs_of_splitmix64() {
        let seeds: Vec<_> = (0..3).map(|index| derive(1_234_567, index)).collect();
        assert_eq!(seeds, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
