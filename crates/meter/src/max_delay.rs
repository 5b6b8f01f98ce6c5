//! The time range of a query across traffic classes (ConQuest section 3.6).

use queuescope_wire::Nanos;

/// The longest recent delay, which decays while delays are low.
///
/// A packet of a class with priority waits little, so the departures during its own sojourn time do not show how much its flow delays
/// others. The range `[d - MaxDelay, d)` does. The value halves with every `half_life` in which no longer delay was seen; within a half-life
/// it falls in a straight line, which a switch can follow with shifts.
#[derive(Debug, Clone)]
pub struct MaxDelay {
    half_life: Nanos,
    value: Nanos,
    /// The time at which `value` was the longest delay.
    since: Nanos,
}

impl MaxDelay {
    /// Creates a register that halves in `half_life` (at least one nanosecond).
    pub fn new(half_life: Nanos) -> Self {
        Self { half_life: half_life.max(Nanos(1)), value: Nanos::ZERO, since: Nanos::ZERO }
    }

    /// A packet that waited `sojourn` leaves at `now`: returns the range of the query, which is never below `sojourn`.
    pub fn update(&mut self, sojourn: Nanos, now: Nanos) -> Nanos {
        let decayed = self.at(now);
        if sojourn >= decayed {
            (self.value, self.since) = (sojourn, now);
            return sojourn;
        }
        decayed
    }

    /// The value at `now`.
    pub fn at(&self, now: Nanos) -> Nanos {
        let idle = now.saturating_sub(self.since).0;
        let (halvings, within) = (idle / self.half_life.0, idle % self.half_life.0);
        let Some(value) = u32::try_from(halvings).ok().and_then(|halvings| self.value.0.checked_shr(halvings)) else {
            return Nanos::ZERO;
        };
        let fall = u128::from(value / 2) * u128::from(within) / u128::from(self.half_life.0);
        Nanos(value - fall as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_halves_in_a_half_life() {
        let mut register = MaxDelay::new(Nanos(100));
        assert_eq!(register.update(Nanos(80), Nanos(1_000)), Nanos(80));
        assert_eq!(register.update(Nanos(1), Nanos(1_050)), Nanos(60));
        assert_eq!(register.update(Nanos(1), Nanos(1_100)), Nanos(40));
        assert_eq!(register.update(Nanos(1), Nanos(1_300)), Nanos(10));
        assert_eq!(register.update(Nanos(50), Nanos(1_300)), Nanos(50));
        assert_eq!(register.at(Nanos(u64::MAX)), Nanos::ZERO);
    }

    proptest! {
        #[test]
        fn it_never_rises_by_itself_nor_hides_a_delay(
            half_life in 0..1_000u64, steps in prop::collection::vec((0..500u64, 0..10_000u64), 1..60)
        ) {
            let mut register = MaxDelay::new(Nanos(half_life));
            let (mut now, mut last) = (0, 0);
            for (gap, sojourn) in steps {
                now += gap;
                let value = register.update(Nanos(sojourn), Nanos(now)).0;
                prop_assert!(value >= sojourn);
                prop_assert!(value <= last.max(sojourn));
                last = value;
            }
        }
    }
}
