//! How the clock of one capture stands to that of another.

use queuescope_wire::Nanos;

/// The fixed point of [`Clock::drift`]: so many bits behind it.
const POINT: u32 = 60;

/// From the clock of a capture before the router to that of the capture after it: a straight line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// Where `offset` holds, by the clock before the router.
    reference: Nanos,
    /// How far the clock after the router is ahead there, nanoseconds, with the shortest time through the router in it.
    offset: i64,
    /// What the offset grows by in each nanosecond, in 2^-60.
    drift: i64,
}

/// A clock, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    /// The clock. Its offset contains the shortest time through the router, which nobody can tell from an offset
    /// without knowing one of them.
    pub clock: Clock,
    /// Packets that came out, by this clock, within this of the shortest time: how far the line may be off where they
    /// are.
    pub within: Nanos,
    /// When the first and the last of them came, by the clock before the router. The line may be off by `within` and as
    /// much again for every such span that a packet lies outside.
    pub span: (Nanos, Nanos),
    /// Stretches of time that had packets, and those that had one within `within`.
    pub stretches: u32,
    /// Those that had one within `within` of the shortest time.
    pub supporting: u32,
    /// Whether the drift was estimated; if there were too few packets or too short a time it is taken to be zero.
    pub with_drift: bool,
}

impl Clock {
    /// A clock that is ahead by `offset` nanoseconds at `reference` and gains `drift` parts per million.
    pub fn new(reference: Nanos, offset: i64, drift_ppm: f64) -> Self {
        Self { reference, offset, drift: (drift_ppm / 1e6 * (1u64 << POINT) as f64) as i64 }
    }

    /// What the clock after the router shows when the one before it shows `time`.
    #[inline]
    pub fn convert(&self, time: Nanos) -> Nanos {
        let shown = i128::from(time.0) + self.ahead(time);
        Nanos(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// How far the clock after the router is ahead when the one before it shows `time`, nanoseconds.
    #[inline]
    pub fn offset_at(&self, time: Nanos) -> i64 {
        self.ahead(time).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// By how much the clock after the router is faster, parts per million.
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
    /// By how much the drift may be off, parts per million; none where it was not estimated.
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
