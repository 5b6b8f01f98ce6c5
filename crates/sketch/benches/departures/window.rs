//! The exact alternative to the sketch: the exact bytes of each flow in `[from, now)`. `from` must never decrease.
//!
//! A ring holds the departures since `from`. A hash table (open addressing, linear probing, at most half full) holds
//! the bytes of each flow in the ring. There are no tombstones: removing a flow closes the gap.

/// A sliding window over departures.
pub struct ExactWindow {
    /// Key and bytes; a key of 0 is a free slot.
    table: Vec<(u64, u64)>,
    ring: Vec<Left>,
    first: usize,
    next: usize,
}

#[derive(Clone, Copy, Default)]
struct Left {
    key: u64,
    time: u64,
    weight: u32,
}

impl ExactWindow {
    /// Room for `most` departures.
    pub fn new(most: usize) -> Self {
        let room = most.next_power_of_two();
        Self { table: vec![(0, 0); 2 * room], ring: vec![Left::default(); room], first: 0, next: 0 }
    }

    /// The memory in bytes.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.table[..]) + size_of_val(&self.ring[..])) as u64
    }

    /// Returns what `key` sent in `[from, now)`, then records that it sends `weight` at `now`.
    #[inline]
    pub fn observe(&mut self, key: u64, weight: u32, from: u64, now: u64) -> u64 {
        let mask = self.ring.len() - 1;
        while self.first < self.next {
            let left = self.ring[self.first & mask];
            if left.time >= from {
                break;
            }
            self.subtract(left.key, left.weight);
            self.first += 1;
        }
        assert!(self.next - self.first <= mask, "the ring is full");
        self.ring[self.next & mask] = Left { key, time: now, weight };
        self.next += 1;
        let slot = self.slot(key);
        let (found, bytes) = &mut self.table[slot];
        *found = key;
        *bytes += u64::from(weight);
        *bytes - u64::from(weight)
    }

    /// The slot of a key, or the free slot for it. Keys are digests, so their low bits serve as a hash.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = key as usize & mask;
        while self.table[slot].0 != key && self.table[slot].0 != 0 {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    fn subtract(&mut self, key: u64, weight: u32) {
        let slot = self.slot(key);
        self.table[slot].1 -= u64::from(weight);
        if self.table[slot].1 == 0 {
            self.remove(slot);
        }
    }

    /// Frees a slot, and moves entries behind it back so that lookups still find them.
    #[inline]
    fn remove(&mut self, mut gap: usize) {
        let mask = self.table.len() - 1;
        let mut slot = gap;
        loop {
            slot = (slot + 1) & mask;
            let entry = self.table[slot];
            if entry.0 == 0 {
                break;
            }
            let home = entry.0 as usize & mask;
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                self.table[gap] = entry;
                gap = slot;
            }
        }
        self.table[gap] = (0, 0);
    }
}
