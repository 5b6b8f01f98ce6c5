//! Flows that a reader met lately, for a reader and a table of flows on different threads.

use crate::{FlowKey, KeyMask, MaskedKey};

/// The flows that were met lately, each at a place. A flow that takes a place displaces the one before. Each has two places to choose from, and
/// takes that of the flow that was met longer ago.
///
/// The reader of a capture finds the place of each packet's flow without the table of all flows, and passes on the place. It passes on the
/// key only as a flow takes its place, so that the other side can keep the keys of all places. Only then does the key need its digest.
///
/// ```
/// use queuescope_wire::{FlowKey, Granularity, KeyMask, MetFlows};
///
/// let mask = KeyMask::covering(&[Granularity::FiveTuple]);
/// let mut met = MetFlows::new(mask);
/// let web = FlowKey { dst_port: 443, protocol: 6, ..FlowKey::default() };
/// let (place, new) = met.place(&web);
/// assert_eq!(new.map(|new| *new.key()), Some(web));
/// assert_eq!(met.place(&FlowKey { vlan: 7, ..web }), (place, None), "the mask leaves out the VLAN");
/// ```
#[derive(Debug)]
pub struct MetFlows {
    mask: KeyMask,
    /// Keys by place, in pairs. At first, each place has the default key.
    keys: Box<[FlowKey; MetFlows::PLACES]>,
    /// For each pair, which of its places was met last.
    last: Box<[u8; MetFlows::PLACES / 2]>,
}

impl MetFlows {
    /// The number of places. The keys take 192 KiB.
    pub const PLACES: usize = 1 << 12;

    /// No flow was met. Keys are reduced by `mask`.
    pub fn new(mask: KeyMask) -> Self {
        let keys = vec![FlowKey::default(); Self::PLACES].into_boxed_slice();
        let keys = keys.try_into().expect("the slice has that many");
        Self { mask, keys, last: Box::new([0; Self::PLACES / 2]) }
    }

    /// The key that every place has at first.
    pub fn first_key() -> MaskedKey {
        MaskedKey { key: FlowKey::default(), digest: FlowKey::default().digest() }
    }

    /// The place of the flow with this key, which is not reduced yet; and its reduced key, if it takes that place now.
    #[inline]
    pub fn place(&mut self, key: &FlowKey) -> (u32, Option<MaskedKey>) {
        let reduced = self.mask.apply(key);
        let pair = pair_of(&reduced.words());
        let last = &mut self.last[pair];
        let place = 2 * pair + usize::from(*last & 1);
        if self.keys[place] == reduced {
            return (place as u32, None);
        }
        *last ^= 1;
        let other = place ^ 1;
        if self.keys[other] == reduced {
            return (other as u32, None);
        }
        self.keys[other] = reduced;
        (other as u32, Some(MaskedKey { digest: reduced.digest(), key: reduced }))
    }
}

/// The pair of places for a key: high bits of a product of products, so that all bits of the key count. Three flows that share a pair cost
/// time, and no more.
#[inline]
fn pair_of(words: &[u64; 6]) -> usize {
    let [a, b, c, d, ports, rest] = *words;
    let ends = (a ^ b.rotate_left(32) ^ rest).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let others = (c ^ d.rotate_left(32) ^ ports.rotate_left(24)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let sum = (ends ^ others.rotate_left(31)).wrapping_mul(0xa24b_aed4_963e_e407);
    (sum >> (65 - MetFlows::PLACES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Granularity};
    use proptest::prelude::*;

    /// Few values for each field, so that keys come again.
    fn key() -> impl Strategy<Value = FlowKey> {
        (0..40u128, 0..40u128, 0..3u16, 0..3u16, 0..2u8, any::<bool>()).prop_map(
            |(src, dst, src_port, vlan, dscp, v6)| FlowKey {
                src,
                dst: if v6 { dst << 64 } else { dst },
                src_port,
                vlan,
                dscp,
                family: if v6 { Family::V6 } else { Family::V4 },
                ..FlowKey::default()
            },
        )
    }

    proptest! {
        /// One who keeps the key of each place knows the key of every packet.
        #[test]
        fn places_stand_for_keys(keys in prop::collection::vec(key(), 0..400), all in any::<bool>()) {
            let mask = if all { KeyMask::WHOLE } else { KeyMask::covering(&[Granularity::Pair]) };
            let mut met = MetFlows::new(mask);
            let mut kept = vec![MetFlows::first_key(); MetFlows::PLACES];
            for key in keys {
                let (place, new) = met.place(&key);
                if let Some(new) = new {
                    kept[place as usize] = new;
                }
                let (expected, found) = (mask.mask(&key), kept[place as usize]);
                prop_assert_eq!((expected.key, expected.digest), (found.key, found.digest));
            }
        }
    }

    #[test]
    fn keys_that_differ_little_have_different_pairs() {
        let keys = (0..1_000u32).map(|n| FlowKey {
            src: u128::from(0x0a00_0001 + n % 10),
            dst: 0xc0a8_0001 + u128::from(n / 10 % 10),
            src_port: 50_000 + (n / 100) as u16,
            dst_port: 443,
            protocol: 6,
            family: Family::V4,
            ..FlowKey::default()
        });
        let mut pairs: Vec<_> = keys.map(|key| pair_of(&key.words())).collect();
        pairs.sort_unstable();
        pairs.dedup();
        // By chance, 1000 keys fall on some 790 of 2048 pairs.
        assert!(pairs.len() > 740, "{}", pairs.len());
    }
}
