//! Sorts departures by time before they reach a listener.

use crate::Listener;
use queuescope_wire::{Departure, Nanos};
use std::collections::BTreeMap;

/// Number of departures over which they are sorted by time.
const REORDER: usize = 1 << 16;

/// Sorts departures by time, within a window of 65 536 of them. Departures of the same time keep their order. A departure that is too
/// late to be sorted counts as leaving with the one before it.
#[derive(Debug, Default)]
pub struct DepartureSorter {
    /// By departure time, then in the order in which they came.
    waiting: BTreeMap<(Nanos, u64), (Departure, bool)>,
    pushed: u64,
    /// The time of the last departure that was passed on.
    now: Nanos,
    /// The time of the latest departure so far.
    latest: Nanos,
    out_of_order: u64,
    too_late: u64,
}

impl DepartureSorter {
    /// Adds a departure, and passes those on to `listener` whose turn has come.
    pub fn push<L: Listener + ?Sized>(&mut self, departure: Departure, listener: &mut L) {
        self.out_of_order += u64::from(departure.dequeued < self.latest);
        self.latest = self.latest.max(departure.dequeued);
        let is_late = departure.dequeued < self.now;
        self.too_late += u64::from(is_late);
        let dequeued = departure.dequeued.max(self.now);
        self.waiting.insert((dequeued, self.pushed), (Departure { dequeued, ..departure }, is_late));
        self.pushed += 1;
        if self.waiting.len() > REORDER {
            self.pop(listener);
        }
    }

    /// Passes all remaining departures on.
    pub fn finish<L: Listener + ?Sized>(&mut self, listener: &mut L) {
        while !self.waiting.is_empty() {
            self.pop(listener);
        }
    }

    /// Departures that left before an earlier one of the input.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Departures that were too late to be sorted.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    fn pop<L: Listener + ?Sized>(&mut self, listener: &mut L) {
        let Some((_, (departure, is_late))) = self.waiting.pop_first() else { return };
        self.now = departure.dequeued;
        if is_late {
            listener.moved();
        }
        listener.departed(&departure);
    }
}
