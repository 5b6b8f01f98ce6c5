//! Links whose rate follows a trace.
//!
//! There are two kinds:
//!
//! - *opportunities*, the format of mahimahi (Netravali et al., USENIX ATC 2015): a list of milliseconds, at each of
//!   which up to 1504 bytes can be sent; an unused opportunity is lost;
//! - *steps*: a rate that is constant from one change to the next, and may be zero.
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

/// The rate of a link over time. Copies share memory.
///
/// ```
/// use queuescope_sim::RateTrace;
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let trace = RateTrace::steps("0s 8mbps\n1s 0 # an outage\n1.5s 16mbps\n2s repeat")?;
/// assert_eq!(trace.period(), Some(Nanos(2_000_000_000)));
/// assert_eq!(trace.mean_rate().bits_per_second(), 8_000_000);
/// assert_eq!(trace.capacity(Nanos(0)..Nanos(1_500_000_000)), ByteCount(1_000_000));
/// assert_eq!(trace.next_opportunity(Nanos(1_200_000_000)), Nanos(1_500_000_000));
///
/// let error = RateTrace::mahimahi("3\n2\n").unwrap_err();
/// println!("{error}");
/// assert_eq!(error.line, 2);
/// # Ok::<(), queuescope_sim::TraceError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrace(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Opportunities(Arc<Opportunities>),
    Steps(Arc<Steps>),
}

impl RateTrace {
    /// Reads mahimahi's format: on each line a whole number of milliseconds, in order, at which up to 1504 bytes
    /// can be sent. The last time is also the period after which the trace starts again from time 0, so an opportunity at the end and one at 0 are at
    /// the same time.
    ///
    /// # Errors
    /// Fails if a line is not such a number, if the times decrease, or if the last is 0; the error has the number of the line.
    pub fn mahimahi(text: &str) -> Result<Self, TraceError> {
        Ok(Self(Kind::Opportunities(Arc::new(Opportunities::new(&read::mahimahi(text)?)))))
    }

    /// Reads a time and a rate on each line, such as `1.5s 20mbps`: the link has the rate from that time on.
    /// The first time is 0. A rate of `0` is an outage. On the last line, `repeat` in place of a rate starts the trace again
    /// from time 0; otherwise the last rate stays. Empty lines and text behind a `#` are ignored.
    ///
    /// # Errors
    /// Fails if a line is in another format, if the times do not increase, or if nothing could be sent from some time on; the error has the number of the line.
    pub fn steps(text: &str) -> Result<Self, TraceError> {
        let (changes, period) = read::steps(text)?;
        Ok(Self::of_steps(&changes, period))
    }

    /// From times and rates in bits per second (0 in an outage), in order; it repeats if a period is given.
    ///
    /// # Errors
    /// As [`steps`](Self::steps); lines are numbered as `changes`, with one more for the period.
    pub fn from_changes(changes: &[(Nanos, u64)], period: Option<Nanos>) -> Result<Self, TraceError> {
        read::check(changes.iter().copied().zip(1..), period.map(|period| (period, changes.len() + 1)))?;
        Ok(Self::of_steps(changes, period))
    }

    fn of_steps(changes: &[(Nanos, u64)], period: Option<Nanos>) -> Self {
        Self(Kind::Steps(Arc::new(Steps::new(changes, period))))
    }

    /// The period after which it starts again, if it repeats.
    pub fn period(&self) -> Option<Nanos> {
        match &self.0 {
            Kind::Opportunities(trace) => Some(trace.period()),
            Kind::Steps(trace) => trace.period(),
        }
    }

    /// The long-term rate, rounded down, but at least one bit per second: the mean over a period, or the last
    /// rate.
    pub fn mean_rate(&self) -> Rate {
        let bits = match &self.0 {
            Kind::Opportunities(trace) => trace.mean_rate(),
            Kind::Steps(trace) => trace.mean_rate(),
        };
        Rate::from_bits_per_second(bits).or(Rate::from_bits_per_second(1)).expect("one bit per second is a rate")
    }

    /// How much can be sent in an interval (its end excluded), rounded down to bytes: the reference for the utilisation of
    /// such a link.
    pub fn capacity(&self, during: Range<Nanos>) -> ByteCount {
        match &self.0 {
            Kind::Opportunities(trace) => trace.capacity(&during),
            Kind::Steps(trace) => trace.capacity(&during),
        }
    }

    /// The first time, `after` or later, at which something can be sent.
    pub fn next_opportunity(&self, after: Nanos) -> Nanos {
        match &self.0 {
            Kind::Opportunities(trace) => trace.time(trace.first_from(after)),
            Kind::Steps(trace) => trace.sending(after),
        }
    }

    /// When the last bit of a packet is sent that has the link to itself from `start` on, rounded down.
    pub fn finish_of(&self, size: ByteCount, start: Nanos) -> Nanos {
        let mut link = Varying::new(self.clone());
        link.wait_until(start);
        link.send(size);
        link.finished_at()
    }
}

/// A link with a varying rate that sends one packet at a time: the counterpart of [`Transmitter`](crate::Transmitter) for a trace.
///
/// The difference: the time when the link is free for the next packet ([`free_at`](Self::free_at)) may be later
/// than the time when the last bit of a packet was sent ([`finished_at`](Self::finished_at)), because nothing can be
/// sent in between.
///
/// ```
/// use queuescope_sim::{RateTrace, Varying};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let mut link = Varying::new(RateTrace::steps("0s 8mbps\n1ms 0\n5ms 8mbps")?);
/// for _ in 0..2 {
///     link.send(ByteCount(800)); // 0.8 ms at 8 Mb/s
/// }
/// println!("the second packet is sent at {}", link.finished_at());
/// assert_eq!(link.finished_at(), Nanos(5_600_000), "it waits for the end of the outage");
/// # Ok::<(), queuescope_sim::TraceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Varying(State);

#[derive(Debug, Clone)]
enum State {
    Opportunities(OpportunityLink),
    Steps(StepLink),
}

impl Varying {
    /// A link that is free from the first time on at which the trace lets it send.
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

    /// Nothing was to be sent before `now`: unused capacity up to then is lost.
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

    /// When the last bit of the last packet was or will be sent, rounded down; time 0 before the first packet.
    #[inline]
    pub fn finished_at(&self) -> Nanos {
        match &self.0 {
            State::Opportunities(link) => link.finished_at(),
            State::Steps(link) => link.finished_at(),
        }
    }
}
