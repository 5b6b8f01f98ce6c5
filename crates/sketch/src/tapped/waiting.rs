//! The packets that came into the router and have not left it: an array that hashes index, as a register of pairs of words.

use queuescope_wire::Nanos;

/// What a register has at an empty place: a time that is not before any other.
const EMPTY: (u32, u32) = (0, u32::MAX);

/// Digests of packets with their times of arrival.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    slots: Vec<(u32, u32)>,
    max_delay: u32,
}

impl Waiting {
    /// `slots` is a power of two, and `max_delay` is below 2^31 ns.
    pub fn new(slots: u32, max_delay: Nanos) -> Self {
        Self { slots: vec![EMPTY; slots as usize], max_delay: max_delay.0 as u32 }
    }

    /// Puts a packet to its place, if that is empty or its packet has expired (section 6.2). A register's unit compares 32 bits and does not see that times
    /// wrapped: an arrival after now is from before the wrap, and may be replaced.
    pub fn insert(&mut self, packet: u64, now: Nanos) -> bool {
        let (now, max_delay) = (now.0 as u32, self.max_delay);
        let (place, digest) = self.place(packet);
        let arrived = place.1;
        let is_free = now.wrapping_sub(arrived) > max_delay || arrived > now;
        if is_free {
            *place = (digest, now);
        }
        is_free
    }

    /// The time since a packet came. Its place is empty afterwards. `None` if another packet has its place, or if it came longer ago than the longest
    /// delay. A register returns 0 for another packet, so an arrival at 0 is none.
    pub fn take(&mut self, packet: u64, now: Nanos) -> Option<Nanos> {
        let max_delay = self.max_delay;
        let (place, digest) = self.place(packet);
        if place.0 != digest {
            return None;
        }
        let arrived = std::mem::replace(place, EMPTY).1;
        let delay = (now.0 as u32).wrapping_sub(arrived);
        (arrived != 0 && delay <= max_delay).then_some(Nanos(delay.into()))
    }

    pub fn slot(&self, slot: usize) -> Option<(u32, u32)> {
        self.slots.get(slot).copied()
    }

    /// The place of a packet, and what is compared there.
    fn place(&mut self, packet: u64) -> (&mut (u32, u32), u32) {
        let last = self.slots.len() as u64 - 1;
        (&mut self.slots[(packet >> 32 & last) as usize], packet as u32)
    }
}
