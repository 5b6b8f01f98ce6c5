//! The distance of two clocks, from packets that both saw.
//!
//! A packet that leaves one place and then comes to another shows how far the second clock is ahead of the first, plus the time in between. That time is not negative, so
//! the smallest difference is the most that the second clock can be ahead. Packets the other way bound it from the other side. This is the envelope of
//! Moon, Skelly and Towsley (INFOCOM 1999), which `queuescope tap` fits a line to. Here a bound is wanted that holds, not the best estimate, and some seconds of packets are
//! enough: so no line is assumed, only that no clock gains or loses more than [`DRIFT_PPM`].

use queuescope_wire::Nanos;

/// The most that two clocks gain or lose against each other, parts per million: a tenth of a per mille each. Crystals of computers stay within that, and so does a clock
/// that is slewed slowly; one that is set between two packets does not.
pub const DRIFT_PPM: u64 = 200;

/// A packet at two places, each with the times at which it came and left by the clock of that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// At one place.
    pub first: (Nanos, Nanos),
    /// At the other.
    pub second: (Nanos, Nanos),
}

/// Packets that were at two places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passages {
    /// Packets of the flow in question.
    pub there: Vec<Passage>,
    /// Packets of the flow the other way.
    pub back: Vec<Passage>,
}

/// How far a second clock is ahead of a first, nanoseconds, at some time of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offset {
    /// At least so far; none if no packet bounds it.
    pub least: Option<i64>,
    /// At most so far.
    pub most: Option<i64>,
}

impl Offset {
    /// Clocks that are one.
    pub const SAME: Self = Self { least: Some(0), most: Some(0) };

    /// Whether there is such an offset.
    pub fn is_possible(&self) -> bool {
        !matches!((self.least, self.most), (Some(least), Some(most)) if least > most)
    }

    /// Whether it is bounded on both sides.
    pub fn is_known(&self) -> bool {
        self.least.is_some() && self.most.is_some() && self.is_possible()
    }
}

impl Passages {
    /// How far the second clock was ahead when the first showed `at`, if packets of the flow pass the first place first (`is_first`), or the second one. Both
    /// directions take the same places in opposite orders.
    ///
    /// ```
    /// use queuescope_fleet::journey::{Offset, Passage, Passages};
    /// use queuescope_wire::Nanos;
    ///
    /// // The second clock is 1000 ns ahead. A packet takes 30 ns between the places, and one the other way 20 ns.
    /// let there = Passage { first: (Nanos(100), Nanos(110)), second: (Nanos(1_140), Nanos(1_150)) };
    /// let back = Passage { first: (Nanos(220), Nanos(230)), second: (Nanos(1_190), Nanos(1_200)) };
    /// let passages = Passages { there: vec![there], back: vec![back] };
    /// let offset = passages.offset(Nanos(110), true);
    /// assert!(offset.least < Some(1_000) && Some(1_000) < offset.most && offset.is_known());
    /// // In the other order, packets would have come before they left.
    /// assert!(!passages.offset(Nanos(110), false).is_possible());
    /// ```
    pub fn offset(&self, at: Nanos, is_first: bool) -> Offset {
        let (onward, backward) = if is_first { (&self.there, &self.back) } else { (&self.back, &self.there) };
        let most = onward.iter().filter_map(|packet| {
            let (left, came) = (packet.first.1, packet.second.0);
            difference(left, came)?.checked_add(slack(at, left))
        });
        let least = backward.iter().filter_map(|packet| {
            let (left, came) = (packet.second.1, packet.first.0);
            difference(came, left)?.checked_sub(slack(at, came))
        });
        Offset { least: least.max(), most: most.min() }
    }

    /// Whether packets of the flow pass the first place first; none if these packets do not show it.
    pub fn is_first(&self, at: Nanos) -> Option<bool> {
        match [true, false].map(|is_first| self.offset(at, is_first).is_possible()) {
            [true, false] => Some(true),
            [false, true] => Some(false),
            // With packets in one direction only, both are possible. If neither is, a clock was set, or packets were taken for others.
            [true, true] | [false, false] => None,
        }
    }
}

/// How much two clocks can move against each other between two times, rounded up.
fn slack(at: Nanos, other: Nanos) -> i64 {
    let drift = u128::from(at.0.abs_diff(other.0)) * u128::from(DRIFT_PPM) / 1_000_000 + 1;
    i64::try_from(drift).unwrap_or(i64::MAX)
}

/// `after - before`.
pub fn difference(before: Nanos, after: Nanos) -> Option<i64> {
    i64::try_from(i128::from(after.0) - i128::from(before.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_700_000_000_000_000_000;

    /// What a clock shows at a time that counts from `START`.
    fn shown(at: u64, ahead: i64, ppm: i64) -> Nanos {
        let drift = i128::from(at) * i128::from(ppm) / 1_000_000;
        Nanos((i128::from(START) + i128::from(at) + i128::from(ahead) + drift) as u64)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Clocks that differ by up to a second and gain or lose up to 100 ppm: the true distance is in the interval, and the order of the places is found if packets
        /// go both ways.
        #[test]
        fn the_true_distance_is_in_the_interval(
            ahead in prop::array::uniform2(-1_000_000_000..1_000_000_000i64), ppm in prop::array::uniform2(-100..=100i64),
            packets in prop::collection::vec((0..2_000_000_000u64, 0..20_000_000u64, 1_000..500_000u64, 0..20_000_000u64, any::<bool>()), 1..40),
            at in 0..2_000_000_000u64,
        ) {
            let clock = |n: usize, at: u64| shown(at, ahead[n], ppm[n]);
            let mut passages = Passages::default();
            for (came, wait, link, next, is_back) in packets {
                let times = [came, came + wait, came + wait + link, came + wait + link + next];
                let visit = |n: usize, at: usize| (clock(n, times[at]), clock(n, times[at + 1]));
                if is_back {
                    passages.back.push(Passage { first: visit(0, 2), second: visit(1, 0) });
                } else {
                    passages.there.push(Passage { first: visit(0, 0), second: visit(1, 2) });
                }
            }
            let truth = difference(clock(0, at), clock(1, at)).unwrap();
            let offset = passages.offset(clock(0, at), true);
            prop_assert!(offset.most.is_none_or(|most| truth <= most), "{truth}: {offset:?}");
            prop_assert!(offset.least.is_none_or(|least| least <= truth), "{truth}: {offset:?}");
            prop_assert_eq!(offset.most.is_some(), !passages.there.is_empty());
            prop_assert_eq!(offset.least.is_some(), !passages.back.is_empty());
            prop_assert_ne!(passages.is_first(clock(0, at)), Some(false));
        }
    }

    #[test]
    fn packets_both_ways_show_the_order_and_those_of_one_way_do_not() {
        let there = Passage { first: (Nanos(0), Nanos(10)), second: (Nanos(5_000), Nanos(5_010)) };
        let back = Passage { first: (Nanos(200), Nanos(210)), second: (Nanos(5_150), Nanos(5_160)) };
        let both = Passages { there: vec![there], back: vec![back] };
        assert_eq!(both.is_first(Nanos(10)), Some(true));
        let turned = Passages { there: vec![back], back: vec![there] };
        assert_eq!(turned.is_first(Nanos(10)), Some(false));
        for one_way in [Passages { there: vec![there], ..Passages::default() }, Passages::default()] {
            assert_eq!(one_way.is_first(Nanos(10)), None);
        }
    }
}
