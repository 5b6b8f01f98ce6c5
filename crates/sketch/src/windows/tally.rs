//! The bytes of each flow of a window, while records are added.

/// A list of flows in order of first appearance, and a hash table of indexes into it (open addressing, linear probing,
/// at most half full). The table is small and is all that must be cleared, because most windows have few flows.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// Flow id and bytes.
    items: Vec<(u32, u64)>,
    /// One more than an index into the list; 0 is a free slot.
    slots: Box<[u32]>,
    /// The right shift from a digest to a slot.
    shift: u32,
    /// The most flows; before more are added, the tally must be thinned.
    most: usize,
}

impl Tally {
    /// Creates a tally with room for [`SURPLUS`] times `flows`.
    pub fn new(flows: usize) -> Self {
        let slots = slots(flows);
        Self {
            items: Vec::with_capacity(SURPLUS * flows),
            slots: vec![0; slots].into(),
            shift: u32::BITS - slots.ilog2(),
            most: SURPLUS * flows,
        }
    }

    /// Adds bytes to a flow. Returns whether the flow is new.
    #[inline]
    pub fn add(&mut self, flow: u32, bytes: u64) -> bool {
        if bytes == 0 {
            return false;
        }
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: ids are small and dense.
        let mut place = (flow.wrapping_mul(0x9e37_79b9) >> self.shift) as usize & mask;
        while let Some(number) = self.slots[place].checked_sub(1) {
            let item = &mut self.items[number as usize];
            if item.0 == flow {
                item.1 = item.1.saturating_add(bytes);
                return false;
            }
            place = (place + 1) & mask;
        }
        self.items.push((flow, bytes));
        self.slots[place] = self.items.len() as u32;
        true
    }

    /// The flow ids and their bytes.
    pub fn items(&self) -> &[(u32, u64)] {
        &self.items
    }

    /// Replaces the bytes of each flow by the result of `thin`. Removes flows with 0 bytes.
    pub fn thin(&mut self, mut thin: impl FnMut(u64) -> u64) {
        let mut items = std::mem::take(&mut self.items);
        items.retain_mut(|item| {
            item.1 = thin(item.1);
            item.1 > 0
        });
        self.slots.fill(0);
        let mask = self.slots.len() - 1;
        for (number, item) in items.iter().enumerate() {
            let mut place = (item.0.wrapping_mul(0x9e37_79b9) >> self.shift) as usize & mask;
            while self.slots[place] > 0 {
                place = (place + 1) & mask;
            }
            self.slots[place] = number as u32 + 1;
        }
        self.items = items;
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.items.len() >= self.most
    }

    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.items.clear();
    }

    pub fn memory(&self) -> usize {
        size_of_val(&*self.slots) + self.items.capacity() * size_of::<(u32, u64)>()
    }

    /// The memory in bytes of a tally for windows of `flows` flows.
    pub const fn memory_for(flows: usize) -> usize {
        slots(flows) * size_of::<u32>() + SURPLUS * flows * size_of::<(u32, u64)>()
    }
}

/// The factor by which a tally may exceed the flows of a window before it is thinned. With a larger factor, it is
/// thinned less often.
const SURPLUS: usize = 4;

const fn slots(flows: usize) -> usize {
    (2 * SURPLUS * flows).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_tally_agrees_with_a_map(adds in prop::collection::vec((prop_oneof![0..9u32, any::<u32>()], 0..3u64), 0..16)) {
            let (mut tally, mut map) = (Tally::new(8), BTreeMap::new());
            for (flow, bytes) in adds {
                let new = bytes > 0 && !map.contains_key(&flow);
                prop_assert_eq!(tally.add(flow, bytes), new);
                if bytes > 0 {
                    *map.entry(flow).or_insert(0) += bytes;
                }
            }
            prop_assert_eq!(tally.len(), map.len());
            prop_assert_eq!(tally.items().iter().copied().collect::<BTreeMap<_, _>>(), map);
        }
    }
}
