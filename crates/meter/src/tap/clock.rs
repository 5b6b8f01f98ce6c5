//! The relation between the clocks of two captures.

use queuescope_wire::Nanos;

/// The number of fractional bits of [`Clock::drift`].
const POINT: u32 = 60;

/// A conversion from the clock of a capture before the router to that of the capture behind it: a straight line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// The time at which `offset` applies, by the clock before the router.
    reference: Nanos,
    /// How far the clock behind the router is ahead at that time, nanoseconds, including the shortest time through the router.
    offset: i64,
    /// The growth of the offset in each nanosecond, in units of 2^-60.
    drift: i64,
}

/// An estimate of a clock, and its accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    /// The clock. Its offset includes the shortest time through the router, which cannot be distinguished from the offset unless one of
    /// them is known.
    pub clock: Clock,
    /// The line is based on packets within this distance of it. It is also the possible error of the line between the first and the last
    /// of these packets.
    pub within: Nanos,
    /// The arrivals of the first and the last of these packets, by the clock before the router. Outside, the possible error grows by
    /// `within` for each distance of this length.
    pub span: (Nanos, Nanos),
    /// The number of time intervals with packets.
    pub stretches: u32,
    /// Those of them with a packet within `within` of the line.
    pub supporting: u32,
    /// Whether the drift was estimated. With too few packets or too short a time, it is assumed to be zero.
    pub with_drift: bool,
}

impl Clock {
    /// A clock that is ahead by `offset` nanoseconds at `reference` and gains `drift_ppm` parts per million.
    pub fn new(reference: Nanos, offset: i64, drift_ppm: f64) -> Self {
        Self { reference, offset, drift: (drift_ppm / 1e6 * (1u64 << POINT) as f64) as i64 }
    }

    /// The time by the clock behind the router when the clock before it shows `time`.
    #[inline]
    pub fn convert(&self, time: Nanos) -> Nanos {
        let shown = i128::from(time.0) + self.ahead(time);
        Nanos(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// How far the clock behind the router is ahead when the clock before it shows `time`, nanoseconds.
    #[inline]
    pub fn offset_at(&self, time: Nanos) -> i64 {
        self.ahead(time).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// How much faster the clock behind the router is, parts per million.
    pub fn drift_ppm(&self) -> f64 {
        self.drift as f64 / (1u64 << POINT) as f64 * 1e6
    }

    #[inline]
    fn ahead(&self, time: Nanos) -> i128 {
        let since = i128::from(time.0) - i128::from(self.reference.0);
        // |since| < 2^64 and |drift| < 2^63: the product fits.
        i128::from(self.offset) + ((since * i128::from(self.drift)) >> POINT)
    }
}

impl ClockEstimate {
    /// The possible error of the drift, parts per million; none if the drift was not estimated.
    pub fn drift_error_ppm(&self) -> Option<f64> {
        let span = self.span.1.saturating_sub(self.span.0).0;
        (self.with_drift && span > 0).then(|| self.within.0 as f64 / span as f64 * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_ahead_and_gains() {
        let clock = Clock::new(Nanos(1_000_000_000), 400_000_000, 20.0);
        assert_eq!(clock.convert(Nanos(1_000_000_000)), Nanos(1_400_000_000));
        assert_eq!(clock.convert(Nanos(101_000_000_000)), Nanos(101_402_000_000 - 1), "rounded down, as drift is");
        assert!((clock.drift_ppm() - 20.0).abs() < 1e-9);
        let behind = Clock::new(Nanos::ZERO, -5, 0.0);
        assert_eq!((behind.convert(Nanos(3)), behind.convert(Nanos(8))), (Nanos::ZERO, Nanos(3)));
        assert_eq!(Clock::new(Nanos::ZERO, i64::MAX, 900.0).convert(Nanos::MAX), Nanos::MAX);
    }
}
