//! A link whose rate varies, as a trace has it.
//!
//! Two kinds:
//!
//! - *opportunities*, the format of mahimahi (Netravali et al., USENIX ATC 2015): a list of milliseconds, at each of
//!   which up to 1504 bytes can be sent, or not at all;
//! - *steps*: a rate that is constant from one change to the next, and may be none.
//!
//! The arithmetic is exact: whole bytes of opportunities, whole bits and remainders of steps.

mod opportunities;
mod read;
mod steps;

pub use read::TraceError;

use opportunities::{Opportunities, OpportunityLink};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::ops::Range;
use std::sync::Arc;
use steps::{StepLink, Steps};

/// How a link's rate varies. A copy shares its memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrace(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Opportunities(Arc<Opportunities>),
    Steps(Arc<Steps>),
}

impl RateTrace {
    /// From text in mahimahi's format: on each line a whole number of milliseconds, in order, at which up to 1504 bytes
    /// can be sent. The last is also when it starts again from time 0, so that an opportunity on it and one at 0 are of
    /// the same moment.
    ///
    /// # Errors
    /// Where a line is not such a number, they decrease, or the last is 0; with the number of the line.
    pub fn mahimahi(text: &str) -> Result<Self, TraceError> {
        Ok(Self(Kind::Opportunities(Arc::new(Opportunities::new(&read::mahimahi(text)?)))))
    }

    /// From text with a time and a rate on each line, such as `1.5s 20mbps`: the link has the rate from that time on.
    /// The first time is 0. A rate of `0` is an outage. On the last line, `repeat` in place of a rate starts it again
    /// from time 0; without, the last rate stays. Empty lines and what follows a `#` count for nothing.
    ///
    /// # Errors
    /// Where a line is not that, times do not increase, or nothing could be sent any more; with the number of the line.
    pub fn steps(text: &str) -> Result<Self, TraceError> {
        let (changes, period) = read::steps(text)?;
        Ok(Self::of_steps(&changes, period))
    }

    /// From times and rates in bits per second (0 in an outage), in order; again and again if a period is given.
    ///
    /// # Errors
    /// As [`steps`](Self::steps); the lines are those of `changes`, and one more for the period.
    pub fn from_changes(changes: &[(Nanos, u64)], period: Option<Nanos>) -> Result<Self, TraceError> {
        read::check(changes.iter().copied().zip(1..), period.map(|period| (period, changes.len() + 1)))?;
        Ok(Self::of_steps(changes, period))
    }

    fn of_steps(changes: &[(Nanos, u64)], period: Option<Nanos>) -> Self {
        Self(Kind::Steps(Arc::new(Steps::new(changes, period))))
    }

    /// After how long it starts again, if it does.
    pub fn period(&self) -> Option<Nanos> {
        match &self.0 {
            Kind::Opportunities(trace) => Some(trace.period()),
            Kind::Steps(trace) => trace.period(),
        }
    }

    /// The rate in the long run, rounded down, and at least a bit per second: the mean over a period, or the rate that
    /// stays.
    pub fn mean_rate(&self) -> Rate {
        let bits = match &self.0 {
            Kind::Opportunities(trace) => trace.mean_rate(),
            Kind::Steps(trace) => trace.mean_rate(),
        };
        Rate::from_bits_per_second(bits).or(Rate::from_bits_per_second(1)).expect("one bit per second is a rate")
    }

    /// How much can be sent from one moment until just before another, rounded down to bytes: what the utilisation of
    /// such a link is a share of.
    pub fn capacity(&self, during: Range<Nanos>) -> ByteCount {
        match &self.0 {
            Kind::Opportunities(trace) => trace.capacity(&during),
            Kind::Steps(trace) => trace.capacity(&during),
        }
    }

    /// The first moment, `after` or later, at which something can be sent.
    pub fn next_opportunity(&self, after: Nanos) -> Nanos {
        match &self.0 {
            Kind::Opportunities(trace) => trace.time(trace.first_from(after)),
            Kind::Steps(trace) => trace.sending(after),
        }
    }

    /// When the last bit of a packet is sent that has the link for itself from `start` on, rounded down.
    pub fn finish_of(&self, size: ByteCount, start: Nanos) -> Nanos {
        let mut link = Varying::new(self.clone());
        link.wait_until(start);
        link.send(size);
        link.finished_at()
    }
}

/// A link of a varying rate that sends one packet at a time: as [`Transmitter`](crate::Transmitter), for a trace.
///
/// Where it differs: the moment at which the link is free for the next packet ([`free_at`](Self::free_at)) may be later
/// than that at which the last bit of a packet was sent ([`finished_at`](Self::finished_at)), since in between nothing
/// can be sent.
#[derive(Debug, Clone)]
pub struct Varying(State);

#[derive(Debug, Clone)]
enum State {
    Opportunities(OpportunityLink),
    Steps(StepLink),
}

impl Varying {
    /// A link that is free from the first moment on at which the trace lets it send.
    pub fn new(trace: RateTrace) -> Self {
        Self(match trace.0 {
            Kind::Opportunities(trace) => State::Opportunities(OpportunityLink::new(trace)),
            Kind::Steps(trace) => State::Steps(StepLink::new(trace)),
        })
    }

    /// When it is free to send the next packet, rounded down.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        match &self.0 {
            State::Opportunities(link) => link.free_at(),
            State::Steps(link) => link.free_at(),
        }
    }

    /// Nothing was to be sent before `now`: what could have been sent until then is lost.
    #[inline]
    pub fn wait_until(&mut self, now: Nanos) {
        match &mut self.0 {
            State::Opportunities(link) => link.wait_until(now),
            State::Steps(link) => link.wait_until(now),
        }
    }

    /// Sends a packet as soon as it is free.
    #[inline]
    pub fn send(&mut self, size: ByteCount) {
        match &mut self.0 {
            State::Opportunities(link) => link.send(size),
            State::Steps(link) => link.send(size),
        }
    }

    /// When the last bit of the last packet was or will be sent, rounded down; time 0 before the first.
    #[inline]
    pub fn finished_at(&self) -> Nanos {
        match &self.0 {
            State::Opportunities(link) => link.finished_at(),
            State::Steps(link) => link.finished_at(),
        }
    }
}
