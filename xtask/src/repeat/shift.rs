//! How addresses change from one repetition to the next, so that no flow of one is a flow of another.
//!
//! Every address word changes by the same amount, so both directions of a connection stay one connection. The amount
//! does not affect the last octet, so addresses of the same /24 stay in one.

use anyhow::ensure;
use std::collections::BTreeSet;

/// The change of an address word at each repetition: odd in its upper 24 bits, so that 2^24 repetitions are distinct,
/// and far from the small differences between real addresses.
const STEP: u32 = 0x009e_3779 << 8;

/// The most repetitions that can be distinguished.
const MOST: u64 = 1 << 24;

/// The change of the addresses in a repetition.
pub fn offset(repetition: u64) -> u32 {
    (repetition as u32).wrapping_mul(STEP)
}

/// A directed flow, ordered so that flows that a shift could make equal are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// What no shift changes: the distance between both ends, the source's last octet, and all other fields.
    fixed: (u32, u8, u64),
    /// The repetition whose shift turns the upper 24 bits of the source to 0: a shift by n adds n to this.
    phase: u32,
}

impl Flow {
    /// `rest` is a digest of everything else that distinguishes flows.
    pub fn new(source: u32, destination: u32, rest: u64) -> Self {
        let phase = (source >> 8).wrapping_mul(inverse(STEP >> 8)) & (MOST as u32 - 1);
        Self { fixed: (destination.wrapping_sub(source), source as u8, rest), phase }
    }
}

/// Checks that `times` repetitions keep all flows distinct.
pub fn check(flows: &BTreeSet<Flow>, times: u64) -> anyhow::Result<()> {
    ensure!(times <= MOST, "addresses can be distinguished for {MOST} repetitions, not for {times}");
    for (flow, next) in flows.iter().zip(flows.iter().skip(1)) {
        let apart = u64::from(next.phase.wrapping_sub(flow.phase));
        ensure!(
            flow.fixed != next.fixed || apart >= times,
            "two of its flows would be the same one after {apart} repetitions; take fewer, or a part of the capture"
        );
    }
    // The phases are a circle: the last of each group meets the first again.
    let mut first = flows.iter().next();
    for (flow, next) in flows.iter().zip(flows.iter().skip(1).map(Some).chain([None])) {
        if next.is_some_and(|next| next.fixed == flow.fixed) {
            continue;
        }
        if let Some(first) = first {
            let apart = MOST - u64::from(flow.phase - first.phase);
            ensure!(apart >= times, "two of its flows would be the same one after {apart} repetitions; take fewer");
        }
        first = next;
    }
    Ok(())
}

/// The number by which an odd number must be multiplied to give 1 (modulo 2^32): Newton's iteration, each step doubles
/// the bits that are right.
const fn inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_inverse_is_one() {
        assert_eq!((STEP >> 8).wrapping_mul(inverse(STEP >> 8)), 1);
    }

    #[test]
    fn flows_that_would_meet_are_found() {
        let flow = |repetition| Flow::new(0x0a00_0001 + offset(repetition), 0x0a00_0002 + offset(repetition), 7);
        let flows = BTreeSet::from([flow(0), flow(10)]);
        assert!(check(&flows, 10).is_ok());
        assert!(check(&flows, 11).unwrap_err().to_string().contains("after 10"));
        assert!(check(&BTreeSet::from([flow(0)]), MOST).is_ok());
        assert!(check(&BTreeSet::from([flow(0)]), MOST + 1).is_err());
    }

    proptest! {
        /// Against the plain way: make every repetition's flows and see whether two are equal.
        #[test]
        fn the_check_is_right(
            flows in prop::collection::btree_set((0..40u64, 0..3u32, 0..2u64), 1..8), times in 1..40u64
        ) {
            let ends = |from: u64, distance: u32| {
                let source = 0xffff_ff01u32.wrapping_add(offset(from));
                (source, source.wrapping_add(distance))
            };
            let arranged = flows.iter().map(|&(from, distance, rest)| {
                let (source, destination) = ends(from, distance);
                Flow::new(source, destination, rest)
            }).collect();
            let mut seen = BTreeSet::new();
            let distinct = (0..times).all(|repetition| flows.iter().all(|&(from, distance, rest)| {
                let (source, destination) = ends(from, distance);
                let shift = offset(repetition);
                seen.insert((source.wrapping_add(shift), destination.wrapping_add(shift), rest))
            }));
            prop_assert_eq!(check(&arranged, times).is_ok(), distinct);
        }
    }
}
