//! A rate that is constant from one change to the next.
//!
//! Work is counted in bits per second times nanoseconds, that is in 10^-9 bits: at each whole nanosecond the work that the
//! link could have done since time 0 is a whole number, so the end of any packet is found exactly. The part
//! between nanoseconds is a remainder in units of `1 / rate` nanoseconds, as in [`Transmitter`](crate::Transmitter).

use queuescope_wire::{ByteCount, Nanos};
use std::ops::Range;
use std::sync::Arc;

/// The work to send a byte.
const BYTE: u64 = 8_000_000_000;

/// Steps, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steps {
    /// The first starts at 0. Without a period, the last has a rate above 0; with one, at least one has.
    steps: Vec<Step>,
    period: Option<u64>,
    /// The work of a period.
    round: u128,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    /// Start of the step in nanoseconds.
    start: u64,
    /// Bits per second.
    rate: u64,
    /// The work until its start.
    work: u128,
}

/// A position in the trace: the step, and when it starts and ends.
struct StepPosition {
    step: Step,
    start: u64,
    end: u64,
}

impl Steps {
    /// From changes that were checked.
    pub fn new(changes: &[(Nanos, u64)], period: Option<Nanos>) -> Self {
        let (mut steps, mut work) = (Vec::<Step>::with_capacity(changes.len()), 0);
        for (start, rate) in changes {
            work += steps.last().map_or(0, |last| u128::from(start.0 - last.start) * u128::from(last.rate));
            steps.push(Step { start: start.0, rate: *rate, work });
        }
        let last = steps[steps.len() - 1];
        let period = period.map(|period| period.0);
        let round = period.map_or(0, |period| work + u128::from(period - last.start) * u128::from(last.rate));
        Self { steps, period, round }
    }

    pub fn period(&self) -> Option<Nanos> {
        self.period.map(Nanos)
    }

    pub fn mean_rate(&self) -> u64 {
        match self.period {
            Some(period) => (self.round / u128::from(period)) as u64,
            None => self.steps[self.steps.len() - 1].rate,
        }
    }

    pub fn capacity(&self, during: &Range<Nanos>) -> ByteCount {
        let work = self.work(during.end.0).saturating_sub(self.work(during.start.0));
        ByteCount(u64::try_from(work / u128::from(BYTE)).unwrap_or(u64::MAX))
    }

    /// The first time, `after` or later, with a rate above 0.
    pub fn sending(&self, after: Nanos) -> Nanos {
        Nanos(self.place(after.0).start.max(after.0))
    }

    /// How many rounds are over at a time, and the time within the current round.
    fn round_at(&self, moment: u64) -> (u64, u64) {
        self.period.map_or((0, moment), |period| (moment / period, moment % period))
    }

    /// The work that can be done until a time.
    fn work(&self, moment: u64) -> u128 {
        let (rounds, within) = self.round_at(moment);
        let step = self.steps[self.steps.partition_point(|step| step.start <= within) - 1];
        u128::from(rounds) * self.round + step.work + u128::from(within - step.start) * u128::from(step.rate)
    }

    /// The step at a time; in an outage, the next step with a rate.
    fn place(&self, moment: u64) -> StepPosition {
        let (rounds, within) = self.round_at(moment);
        let first = self.steps.partition_point(|step| step.start <= within) - 1;
        let place = |index: usize, rounds: u64| {
            let before = rounds.saturating_mul(self.period.unwrap_or(0));
            let end = self.steps.get(index + 1).map(|next| next.start).or(self.period).unwrap_or(u64::MAX);
            let step = self.steps[index];
            StepPosition { step, start: before.saturating_add(step.start), end: before.saturating_add(end) }
        };
        let sends = |index: &usize| self.steps[*index].rate > 0;
        let later = (first..self.steps.len()).find(sends).map(|index| place(index, rounds));
        // Some step has a rate: if none is left in this round, one of the next round.
        later
            .or_else(|| (0..first).find(sends).map(|index| place(index, rounds.saturating_add(1))))
            .unwrap_or_else(|| StepPosition { step: self.steps[first], start: u64::MAX, end: u64::MAX })
    }

    /// When this much work, above 0, is done: whole nanoseconds, and the rest in units of `1 / rate` nanoseconds.
    fn when(&self, work: u128) -> (u64, u64) {
        let rounds = (work - 1).checked_div(self.round).unwrap_or(0);
        let work = work - rounds * self.round;
        let step = self.steps[self.steps.partition_point(|step| step.work < work) - 1];
        let (whole, rest) = ((work - step.work) / u128::from(step.rate), (work - step.work) % u128::from(step.rate));
        let before = rounds.saturating_mul(u128::from(self.period.unwrap_or(0)));
        let moment = before.saturating_add(u128::from(step.start)).saturating_add(whole);
        u64::try_from(moment).map_or((u64::MAX, 0), |moment| (moment, rest as u64))
    }
}

/// A link that sends at the rate of the step.
#[derive(Debug, Clone)]
pub(super) struct StepLink {
    trace: Arc<Steps>,
    free: Nanos,
    /// In units of `1 / rate` nanoseconds; below `rate`.
    remainder: u64,
    finished: Nanos,
    /// The rate at `free`, above 0.
    rate: u64,
    /// The end of the step.
    end: u64,
}

impl StepLink {
    pub fn new(trace: Arc<Steps>) -> Self {
        let mut link = Self { trace, free: Nanos::ZERO, remainder: 0, finished: Nanos::ZERO, rate: 1, end: 0 };
        link.seek(0);
        link
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
            self.remainder = 0;
            if now.0 < self.end {
                self.free = now;
            } else {
                self.seek(now.0);
            }
        }
    }

    #[inline]
    pub fn send(&mut self, size: ByteCount) {
        if size.0 < 1 << 30 && self.rate < 1 << 63 {
            let work = size.0 * BYTE + self.remainder;
            let end = self.free.0.saturating_add(work / self.rate);
            if end < self.end {
                self.free = Nanos(end);
                (self.finished, self.remainder) = (self.free, work % self.rate);
                return;
            }
        }
        self.send_over_steps(size);
    }

    fn send_over_steps(&mut self, size: ByteCount) {
        self.finished = self.free;
        if size.0 == 0 || self.free == Nanos::MAX {
            return;
        }
        let done = self.trace.work(self.free.0).saturating_add(u128::from(self.remainder));
        let (moment, rest) = self.trace.when(done.saturating_add(u128::from(size.0) * u128::from(BYTE)));
        self.finished = Nanos(moment);
        self.seek(moment);
        // A remainder belongs to the step that continues: at the start of another step there is none.
        self.remainder = rest;
    }

    /// Sets the time when it is free: the given one, or the next one with a rate.
    fn seek(&mut self, moment: u64) {
        let place = self.trace.place(moment);
        (self.free, self.remainder) = (Nanos(place.start.max(moment)), 0);
        (self.rate, self.end) = (place.step.rate.max(1), place.end);
    }
}
