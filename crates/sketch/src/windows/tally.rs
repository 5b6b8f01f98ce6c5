//! The flows of one window and their bytes, while they are added up.

/// An open-addressing table with linear probing, at most half full. Nothing is removed but all at once.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// Flow and bytes; a slot with no bytes is free.
    slots: Box<[(u32, u64)]>,
    len: usize,
    /// From a digest to a slot.
    shift: u32,
    /// It is to be thinned before it has more.
    most: usize,
}

impl Tally {
    /// Room for twice `flows`.
    pub fn new(flows: usize) -> Self {
        let slots = slots(flows);
        Self { slots: vec![(0, 0); slots].into(), len: 0, shift: u32::BITS - slots.ilog2(), most: 2 * flows }
    }

    /// Adds bytes to a flow; whether it is a new one.
    #[inline]
    pub fn add(&mut self, flow: u32, bytes: u64) -> bool {
        if bytes == 0 {
            return false;
        }
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: ids are small and dense.
        let mut place = (flow.wrapping_mul(0x9e37_79b9) >> self.shift) as usize & mask;
        loop {
            let slot = &mut self.slots[place];
            if slot.1 == 0 {
                *slot = (flow, bytes);
                self.len += 1;
                return true;
            }
            if slot.0 == flow {
                slot.1 = slot.1.saturating_add(bytes);
                return false;
            }
            place = (place + 1) & mask;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.slots.iter().copied().filter(|slot| slot.1 > 0)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len >= self.most
    }

    pub fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.len = 0;
    }

    pub fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// Bytes of a tally for so many flows to a window.
    pub const fn memory_for(flows: usize) -> usize {
        slots(flows) * size_of::<(u32, u64)>()
    }
}

const fn slots(flows: usize) -> usize {
    (4 * flows).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_adds_up_like_a_map(adds in prop::collection::vec((prop_oneof![0..9u32, any::<u32>()], 0..3u64), 0..16)) {
            let (mut tally, mut map) = (Tally::new(8), BTreeMap::new());
            for (flow, bytes) in adds {
                let new = bytes > 0 && !map.contains_key(&flow);
                prop_assert_eq!(tally.add(flow, bytes), new);
                if bytes > 0 {
                    *map.entry(flow).or_insert(0) += bytes;
                }
            }
            prop_assert_eq!(tally.len(), map.len());
            prop_assert_eq!(tally.iter().collect::<BTreeMap<_, _>>(), map);
        }
    }
}
