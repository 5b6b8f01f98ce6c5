//! The throughput of H-TCP: of windows of data, smoothed, and its maximum since a congestion event.

use queuescope_wire::Nanos;

/// Nanoseconds in a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Measurements of the throughput, in bytes per second, or in Linux's version in segments per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Throughput {
    /// What was delivered since `from`, in bytes.
    pub sum: u64,
    pub from: Nanos,
    pub current: f64,
    pub largest: f64,
    /// Its value before the last congestion event.
    pub before: f64,
    /// Whether the throughput was steady at the last event.
    pub steady: bool,
}

impl Throughput {
    /// Begins a window of data.
    pub fn begin(&mut self, now: Nanos) {
        (self.sum, self.from) = (0, now);
    }

    /// `delivered` bytes were delivered. The window of data ends if it has `enough` bytes and has lasted a round trip. A throughput
    /// that is new replaces the earlier ones. With a `unit`, it is a whole number of units for each second, and its averages
    /// are rounded down.
    pub fn measure(
        &mut self,
        delivered: u64,
        enough: u64,
        round_trip: Nanos,
        is_new: bool,
        unit: Option<u64>,
        now: Nanos,
    ) {
        self.sum = self.sum.saturating_add(delivered);
        let elapsed = now.saturating_sub(self.from);
        if self.sum < enough || elapsed < round_trip || elapsed.0 == 0 {
            return;
        }
        let whole = |value: f64| if unit.is_some() { value.floor() } else { value };
        let sum = self.sum / unit.unwrap_or(1).max(1);
        let measured = whole(sum as f64 * SECOND as f64 / elapsed.0 as f64);
        if is_new {
            (self.current, self.largest) = (measured, measured);
        } else {
            self.current = whole((3.0 * self.current + measured) / 4.0);
            self.largest = self.largest.max(self.current);
        }
        self.begin(now);
    }
}
