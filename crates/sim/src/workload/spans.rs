//! Random durations, and a clock that runs only during some of them.

use super::Random;
use queuescope_wire::Nanos;

/// A sequence of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Always the same.
    Fixed(Nanos),
    /// Exponential, with this mean; each is rounded to a nanosecond.
    Exponential(Nanos),
}

impl Span {
    /// The mean duration.
    pub fn mean(self) -> Nanos {
        match self {
            Self::Fixed(span) | Self::Exponential(span) => span,
        }
    }

    fn draw(self, random: &mut Random) -> Nanos {
        match self {
            Self::Fixed(span) => span,
            Self::Exponential(mean) => Nanos((mean.0 as f64 * random.exponential()).round() as u64),
        }
    }
}

/// Alternating on and off times; it starts with an on time.
///
/// ```
/// use queuescope_sim::workload::{OnOff, Span};
/// use queuescope_wire::Nanos;
///
/// let periods = OnOff { on: Span::Exponential(Nanos(1_000_000)), off: Span::Fixed(Nanos(3_000_000)) };
/// assert_eq!(periods.share(), 0.25);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnOff {
    /// Length of on times; above 0.
    pub on: Span,
    /// Length of off times.
    pub off: Span,
}

impl OnOff {
    /// The share of time in which it is on.
    pub fn share(self) -> f64 {
        let (on, off) = (self.on.mean().as_secs_f64(), self.off.mean().as_secs_f64());
        on / (on + off)
    }
}

/// A clock that runs only during on times: it maps its own time to real time.
#[derive(Debug, Clone)]
pub(super) struct OnOffClock {
    periods: OnOff,
    random: Random,
    /// Its own time at which it is turned off next.
    until: Nanos,
    /// The total length of off times so far.
    paused: Nanos,
}

impl OnOffClock {
    pub fn new(periods: OnOff, mut random: Random) -> Self {
        let until = periods.on.draw(&mut random);
        Self { periods, random, until, paused: Nanos::ZERO }
    }

    /// The real time at which its own time is `own`, which must not be earlier than in the previous call. The end of an
    /// on time counts as the start of the next.
    #[inline]
    pub fn at(&mut self, own: Nanos) -> Nanos {
        while own >= self.until && self.until < Nanos::MAX {
            self.paused = self.paused.saturating_add(self.periods.off.draw(&mut self.random));
            self.until = self.until.saturating_add(self.periods.on.draw(&mut self.random));
        }
        own.saturating_add(self.paused)
    }
}

/// A time that grows by fractional nanoseconds without accumulating error.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Elapsed {
    whole: Nanos,
    /// The fraction of a nanosecond, below 1.
    part: f64,
}

impl Elapsed {
    /// Advances by this many nanoseconds; returns the whole nanoseconds so far.
    #[inline]
    pub fn advance(&mut self, nanos: f64) -> Nanos {
        let sum = self.part + nanos;
        let whole = sum.floor();
        self.part = sum - whole;
        self.whole = self.whole.saturating_add(Nanos(whole as u64));
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_turned_off_stands() {
        let periods = OnOff { on: Span::Fixed(Nanos(10)), off: Span::Fixed(Nanos(90)) };
        let mut clock = OnOffClock::new(periods, Random::new(1));
        let times = [0, 9, 10, 19, 20, 55].map(|own| clock.at(Nanos(own)).0);
        assert_eq!(times, [0, 9, 100, 109, 200, 505]);
        let ages = OnOff { on: Span::Fixed(Nanos(u64::MAX / 2)), ..periods };
        assert_eq!(OnOffClock::new(ages, Random::new(1)).at(Nanos::MAX), Nanos::MAX, "time ends");
        assert!((periods.share() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn exponential_spans_have_their_mean() {
        let span = Span::Exponential(Nanos(1_000));
        let mut random = Random::new(5);
        let mean = (0..100_000).map(|_| span.draw(&mut random).0).sum::<u64>() as f64 / 100_000.0;
        assert!((mean - 1_000.0).abs() < 16.0, "{mean}");
    }

    #[test]
    fn fractions_add_up() {
        let mut elapsed = Elapsed::default();
        let last = (0..1_000_000).map(|_| elapsed.advance(0.125)).last();
        assert_eq!(last, Some(Nanos(125_000)));
        assert_eq!(elapsed.advance(f64::INFINITY), Nanos::MAX);
    }
}
