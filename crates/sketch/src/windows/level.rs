//! A level: a ring of closed windows.

use crate::windows::tally::Tally;
use queuescope_wire::FlowId;

/// A window without its list of flows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    /// The time of its first record, in nanoseconds.
    pub start: u64,
    /// The time of its last record, in nanoseconds.
    pub end: u64,
    /// The exact bytes of all flows.
    pub bytes: u64,
    /// An upper bound for the variance of a flow's estimate, in bytes squared.
    pub variance: f32,
    /// The number of flows in its list; 0 until it is in a level.
    pub len: u32,
}

impl Window {
    /// Adds the next window to this one.
    pub fn merge(&mut self, next: &Self) {
        self.end = next.end;
        self.bytes += next.bytes;
        self.variance += next.variance;
    }
}

/// A ring of windows, each with a list of at most `room` flows.
#[derive(Debug, Clone)]
pub(super) struct Level {
    windows: Box<[Window]>,
    /// The index of the oldest window, and the number of windows.
    first: usize,
    len: usize,
    /// The most flows of a window.
    room: usize,
    flows: Box<[u32]>,
    bytes: Box<[Packed]>,
}

impl Level {
    /// Creates a ring for `windows` windows of at most `room` flows.
    pub fn new(windows: usize, room: usize) -> Self {
        Self {
            windows: vec![Window::default(); windows].into(),
            first: 0,
            len: 0,
            room,
            flows: vec![0; windows * room].into(),
            bytes: vec![Packed(0); windows * room].into(),
        }
    }

    pub fn is_full(&self) -> bool {
        self.len == self.windows.len()
    }

    fn front(&self) -> Option<&Window> {
        (self.len > 0).then(|| &self.windows[self.first])
    }

    /// Adds the newest window. There must be room for it and for its flows.
    pub fn push(&mut self, window: Window, items: impl Iterator<Item = (u32, u64)>) {
        debug_assert!(!self.is_full(), "the caller made room");
        let place = (self.first + self.len) % self.windows.len();
        let mut len = 0;
        let slots = place * self.room..(place + 1) * self.room;
        let slots = self.flows[slots.clone()].iter_mut().zip(&mut self.bytes[slots]);
        for ((flow, bytes), item) in slots.zip(items) {
            (*flow, *bytes) = (item.0, Packed::new(item.1));
            len += 1;
        }
        self.windows[place] = Window { len, ..window };
        self.len += 1;
    }

    /// Removes the oldest window.
    pub fn pop(&mut self) -> Option<Window> {
        let window = *self.front()?;
        self.first = (self.first + 1) % self.windows.len();
        self.len -= 1;
        Some(window)
    }

    /// Removes the oldest window and adds its flows to a tally, which must have room for them.
    pub fn pop_into(&mut self, tally: &mut Tally) -> Option<Window> {
        let place = self.first;
        let window = self.pop()?;
        for (flow, bytes) in self.items(place) {
            tally.add(flow, bytes);
        }
        Some(window)
    }

    /// The windows with their flows, newest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Window, impl Iterator<Item = (u32, u64)>)> {
        (0..self.len).rev().map(|number| {
            let place = (self.first + number) % self.windows.len();
            (&self.windows[place], self.items(place))
        })
    }

    /// The memory of the rings, in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.windows) + size_of_val(&*self.flows) + size_of_val(&*self.bytes)
    }

    fn items(&self, place: usize) -> impl Iterator<Item = (u32, u64)> {
        let start = place * self.room;
        let slots = start..start + self.windows[place].len as usize;
        self.flows[slots.clone()].iter().zip(&self.bytes[slots]).map(|(flow, bytes)| (*flow, bytes.value()))
    }
}

/// The memory of a window, and of a flow in a list, in bytes.
pub(super) const WINDOW_BYTES: usize = size_of::<Window>();
pub(super) const ITEM_BYTES: usize = size_of::<FlowId>() + size_of::<Packed>();

/// A number of bytes in 16 bits: exact below 2^11, else rounded to 11 significant bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed(u16);

const DIGITS: u32 = 11;

impl Packed {
    fn new(value: u64) -> Self {
        let excess = (u64::BITS - value.leading_zeros()).saturating_sub(DIGITS);
        if excess == 0 {
            return Self(value as u16);
        }
        let rounded = (value >> (excess - 1)).div_ceil(2);
        // If rounding up gives 2^11, use the next exponent.
        let (rounded, excess) = if rounded >> DIGITS == 0 { (rounded, excess) } else { (rounded >> 1, excess + 1) };
        if excess >= 1 << (u16::BITS - DIGITS) {
            return Self(u16::MAX);
        }
        Self((excess << DIGITS) as u16 | rounded as u16)
    }

    #[inline]
    fn value(self) -> u64 {
        u64::from(self.0 & ((1 << DIGITS) - 1)) << (self.0 >> DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_of_bytes_are_exact_and_huge_ones_saturate() {
        for value in 0..2048 {
            assert_eq!(Packed::new(value).value(), value);
        }
        assert_eq!(Packed::new(4095).value(), 4096);
        assert_eq!(Packed::new(u64::MAX).value(), 2047 << 31);
    }

    #[test]
    fn a_full_ring_returns_its_oldest_window() {
        let mut level = Level::new(2, 3);
        let mut tally = Tally::new(3);
        for n in 0..5u32 {
            if level.is_full() {
                let window = level.pop_into(&mut tally).unwrap();
                assert_eq!(window.start, u64::from(n) - 2);
            }
            level.push(Window { start: u64::from(n), ..Window::default() }, [(n, 7), (9, 1)].into_iter());
        }
        assert_eq!(tally.items().iter().find(|item| item.0 == 9), Some(&(9, 3)));
        let starts: Vec<_> = level.iter().map(|(window, items)| (window.start, items.count())).collect();
        assert_eq!(starts, [(4, 2), (3, 2)]);
    }

    proptest! {
        #[test]
        fn packed_bytes_have_an_error_below_a_part_in_2048(value in 0u64..1 << 42) {
            let error = Packed::new(value).value().abs_diff(value);
            prop_assert!(error * 2048 <= value.max(1), "{value}: {error}");
        }
    }
}
