//! The clock of a switch, as times since 1970.

use queuescope_wire::Nanos;

/// A clock that differs from that of its collector by more than this, ns, counts from another moment.
const APART: u64 = 60_000_000_000;

/// Places the times of a switch on the time line of the host that collects its reports.
///
/// Times of fewer than 64 bits begin again at 0. Of all that a time can mean, it is the one nearest to where the last time of this switch leads: that time, and what has
/// passed since between the arrivals of reports. The first one is the nearest to its arrival.
///
/// A clock of 64 bits that is more than a minute away counts from another moment, such as the start of the switch. It is shifted, so that the first time is
/// that of its arrival; later ones keep the distance.
///
/// ```
/// use queuescope_recording::SwitchClock;
/// use queuescope_wire::Nanos;
///
/// // 32 bits of nanoseconds begin again every 4.3 s.
/// let mut clock = SwitchClock::new(Nanos(1), 32);
/// let arrival = 1_700_000_000_000_000_000;
/// let left = arrival - 40_000;
/// assert_eq!(clock.place(left & 0xffff_ffff, Nanos(arrival)), Nanos(left));
/// ```
#[derive(Debug, Clone)]
pub struct SwitchClock {
    unit: u64,
    bits: u32,
    /// The last time, and the arrival of its report.
    last: Option<(Nanos, Nanos)>,
    /// What is added to times of 64 bits.
    shift: i128,
    shifts: u64,
}

impl SwitchClock {
    /// A clock that shows times in this unit with this number of bits, from 16 to 64.
    pub fn new(unit: Nanos, bits: u32) -> Self {
        Self { unit: unit.0.max(1), bits: bits.clamp(16, u64::BITS), last: None, shift: 0, shifts: 0 }
    }

    /// When the clock showed `raw`, in a report that came at `arrival`.
    pub fn place(&mut self, raw: u64, arrival: Nanos) -> Nanos {
        let placed = if self.bits < u64::BITS { self.unwrap(raw, arrival) } else { self.shifted(raw, arrival) };
        self.last = Some((placed, arrival));
        placed
    }

    /// How much later it showed `later` than `earlier`; none if it showed that earlier.
    pub fn between(&self, earlier: u64, later: u64) -> Option<Nanos> {
        let mask = u64::MAX >> (u64::BITS - self.bits);
        let apart = later.wrapping_sub(earlier) & mask;
        (apart <= mask / 2).then(|| Nanos(apart.saturating_mul(self.unit)))
    }

    /// A latency of this clock.
    pub fn span(&self, raw: u32) -> Nanos {
        Nanos(u64::from(raw).saturating_mul(self.unit))
    }

    /// How often the clock was shifted: once for a clock with its own beginning, and again when it was set.
    pub fn shifts(&self) -> u64 {
        self.shifts
    }

    fn unwrap(&self, raw: u64, arrival: Nanos) -> Nanos {
        let turn = i128::from(self.unit) << self.bits;
        let shown = i128::from(raw & (u64::MAX >> (u64::BITS - self.bits))) * i128::from(self.unit);
        let expected = match self.last {
            Some((last, at)) => i128::from(last.0) + i128::from(arrival.0) - i128::from(at.0),
            None => i128::from(arrival.0),
        };
        // Wrong times must not lead away for good.
        let is_near = (expected - i128::from(arrival.0)).abs() <= turn;
        let expected = if is_near { expected } else { i128::from(arrival.0) };
        let turns = (expected - shown + turn / 2).div_euclid(turn);
        clamped(shown + turns * turn)
    }

    fn shifted(&mut self, raw: u64, arrival: Nanos) -> Nanos {
        let shown = i128::from(raw) * i128::from(self.unit);
        if clamped(shown + self.shift).0.abs_diff(arrival.0) > APART {
            self.shift = if clamped(shown).0.abs_diff(arrival.0) > APART { i128::from(arrival.0) - shown } else { 0 };
            self.shifts += 1;
        }
        clamped(shown + self.shift)
    }
}

fn clamped(time: i128) -> Nanos {
    Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_700_000_000_000_000_000;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A clock that agrees with the collector's but for less than a quarter of a turn is followed over any number of turns, and drifts.
        #[test]
        fn a_short_clock_is_followed_over_its_turns(
            bits in 24..64u32, unit in 1..2_000u64, ahead in -1_000..1_000i64, ppm in -100..100i64,
            gaps in prop::collection::vec((0..1u64 << 40, 0..200_000u64), 1..50),
        ) {
            let mut clock = SwitchClock::new(Nanos(unit), bits);
            let turn = u128::from(unit) << bits;
            let mut at = NOW;
            for (gap, delay) in gaps {
                at += (u128::from(gap) % (turn * 100)).min(1 << 40) as u64;
                let drifted = i128::from(at) + i128::from(ahead) + i128::from(at - NOW) * i128::from(ppm) / 1_000_000;
                let shown = drifted as u64 / unit;
                // A report takes less than a quarter of a turn.
                let arrival = at + (u128::from(delay) % (turn / 4)) as u64;
                let placed = clock.place(shown & (u64::MAX >> (64 - bits)), Nanos(arrival));
                let is_followed = u128::from(at - NOW) * 100 / 1_000_000 < turn / 8 && 1_200 < turn / 8;
                prop_assert!(!is_followed || placed.0 == shown * unit, "{placed:?} is not {}", shown * unit);
            }
        }
    }

    #[test]
    fn a_clock_of_its_own_keeps_its_distances() {
        let mut clock = SwitchClock::new(Nanos(1), 64);
        assert_eq!(clock.place(5_000, Nanos(NOW)), Nanos(NOW));
        assert_eq!(clock.place(9_000, Nanos(NOW + 100)), Nanos(NOW + 4_000));
        assert_eq!(clock.shifts(), 1);
        // The switch was started again, and later its clock was set.
        assert_eq!(clock.place(70, Nanos(NOW + 3_600_000_000_000)), Nanos(NOW + 3_600_000_000_000));
        assert_eq!(clock.place(NOW + 3_600_000_000_500, Nanos(NOW + 3_600_000_000_900)).0, NOW + 3_600_000_000_500);
        assert_eq!(clock.shifts(), 3);
    }

    #[test]
    fn times_of_one_packet_are_apart_as_shown_also_over_a_turn() {
        let clock = SwitchClock::new(Nanos(1_000), 32);
        assert_eq!(clock.between(u64::from(u32::MAX), 4), Some(Nanos(5_000)));
        assert_eq!(clock.between(4, u64::from(u32::MAX)), None, "it left before it came");
        assert_eq!(SwitchClock::new(Nanos(1), 64).between(7, 3), None);
    }
}
