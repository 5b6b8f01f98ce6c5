//! Links that send at given times: mahimahi's link.
//!
//! Behaviour of `mm-link` (mahimahi's `LinkQueue`): an opportunity sends up to 1504 bytes of the waiting packets, of any number of
//! packets, and is lost if it is not used. A packet that is not completely sent continues with the next opportunity,
//! before any other. A packet is dequeued at the opportunity that sends its first byte, and arrives at the
//! one that sends its last. After the last opportunity of the trace, the trace starts again.
//!
//! Differences: a packet that comes exactly at the time of an opportunity can use it (in mahimahi, it comes after the
//! opportunity of the same millisecond), because here arrivals always come before departures. And a packet may
//! be larger than 1504 bytes, which mahimahi refuses.

use queuescope_wire::{ByteCount, Nanos};
use std::ops::Range;
use std::sync::Arc;

/// The capacity of an opportunity: mahimahi's packets of 1500 bytes with the 4 bytes that its tunnel adds.
pub(super) const BYTES: u64 = 1504;

/// The opportunities of a trace that repeats, numbered from 0 without end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opportunities {
    /// Nanoseconds; they do not decrease, and the last is the period, above 0.
    times: Vec<u64>,
}

impl Opportunities {
    /// From milliseconds that were checked.
    pub fn new(millis: &[u64]) -> Self {
        Self { times: millis.iter().map(|ms| ms * 1_000_000).collect() }
    }

    pub fn period(&self) -> Nanos {
        Nanos(self.times[self.times.len() - 1])
    }

    /// The time of an opportunity.
    #[inline]
    pub fn time(&self, number: u64) -> Nanos {
        let count = self.times.len() as u64;
        let start = (number / count).saturating_mul(self.period().0);
        Nanos(start.saturating_add(self.times[(number % count) as usize]))
    }

    /// The first opportunity at a time or later.
    pub fn first_from(&self, moment: Nanos) -> u64 {
        let period = self.period().0;
        // Opportunities at the end of a round are at the start of the next: here, a round reaches from just after 0 to its end.
        let round = moment.0.saturating_sub(1) / period;
        let before = self.times.partition_point(|time| *time < moment.0 - round * period);
        round.saturating_mul(self.times.len() as u64).saturating_add(before as u64)
    }

    pub fn mean_rate(&self) -> u64 {
        let bits = self.times.len() as u128 * u128::from(BYTES) * 8 * 1_000_000_000;
        u64::try_from(bits / u128::from(self.period().0)).unwrap_or(u64::MAX)
    }

    pub fn capacity(&self, during: &Range<Nanos>) -> ByteCount {
        let count = self.first_from(during.end).saturating_sub(self.first_from(during.start));
        ByteCount(count.saturating_mul(BYTES))
    }
}

/// A link that sends at the opportunities.
#[derive(Debug, Clone)]
pub(super) struct OpportunityLink {
    trace: Arc<Opportunities>,
    /// The opportunity that sends the next byte.
    number: u64,
    /// Its remaining bytes; above 0.
    left: u64,
    /// Its time.
    free: Nanos,
    finished: Nanos,
}

impl OpportunityLink {
    pub fn new(trace: Arc<Opportunities>) -> Self {
        let free = trace.time(0);
        Self { trace, number: 0, left: BYTES, free, finished: Nanos::ZERO }
    }

    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free
    }

    #[inline]
    pub fn finished_at(&self) -> Nanos {
        self.finished
    }

    #[inline]
    pub fn wait_until(&mut self, now: Nanos) {
        if now > self.free {
            self.number = self.trace.first_from(now);
            (self.left, self.free) = (BYTES, self.trace.time(self.number));
        }
    }

    #[inline]
    pub fn send(&mut self, size: ByteCount) {
        if size.0 < self.left {
            self.left -= size.0;
            self.finished = self.free;
            return;
        }
        let after = size.0 - self.left;
        // The opportunity of the next byte: also that of the last byte, unless nothing of it is left.
        let next = self.number.saturating_add(1 + after / BYTES);
        self.left = BYTES - after % BYTES;
        let last = if self.left == BYTES { next - 1 } else { next };
        self.finished = if last == self.number { self.free } else { self.trace.time(last) };
        self.number = next;
        self.free = self.trace.time(next);
    }
}
