//! How far the clocks of members are ahead of the coordinator's.
//!
//! A message goes to a member and comes back with what the member's clock showed in between. So that was shown at a moment between the two, and the distance of the clocks is
//! known up to the round trip (Cristian, "Probabilistic clock synchronization", Distributed Computing 1989). Later measurements narrow it, since clocks
//! drift by at most [`DRIFT_PPM`] against each other.

use crate::clock;
use crate::journey::DRIFT_PPM;
use crate::protocol::ClockOffset;
use queuescope_wire::Nanos;

/// What is not known of a member whose time decides.
pub(super) const NO_CLOCK: &str = "the distance of its clock has not been measured since it connected";

/// What is known of the distance of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredClock {
    least: i64,
    most: i64,
    /// When, by the steady clock.
    at: Nanos,
}

/// A message that came back with a time.
#[derive(Debug, Clone, Copy)]
pub struct ShownTime {
    /// When the message went out and when the reply came, by the coordinator's steady clock.
    pub sent: Nanos,
    /// See `sent`.
    pub came: Nanos,
    /// What the coordinator's clock showed when the reply came, nanoseconds since 1970.
    pub wall: Nanos,
    /// What the member's clock showed in between.
    pub shown: Nanos,
}

impl ShownTime {
    /// A message that went out at `sent` came back now with what the member's clock showed.
    pub fn now(sent: Nanos, shown: u64) -> Self {
        // The wall first: what passes until the other is read widens the interval.
        let wall = clock::wall();
        Self { sent, came: clock::steady(), wall, shown: Nanos(shown) }
    }
}

impl MeasuredClock {
    /// The distance by one message. `None` if it is longer than 64 bits of nanoseconds have.
    fn of(time: ShownTime) -> Option<Self> {
        let ahead = |wall: Nanos| i64::try_from(i128::from(time.shown.0) - i128::from(wall.0)).ok();
        let trip = time.came.saturating_sub(time.sent);
        let sent = time.wall.saturating_sub(trip);
        let slack = slack(trip);
        Some(Self {
            least: ahead(time.wall)?.saturating_sub(slack),
            most: ahead(sent)?.saturating_add(slack),
            at: time.came,
        })
    }

    /// The distance by earlier messages and this one. If they contradict each other, a clock was set, and this one counts.
    pub fn with(earlier: Option<Self>, time: ShownTime) -> Option<Self> {
        let Some(new) = Self::of(time) else { return earlier };
        let Some(old) = earlier else { return Some(new) };
        let slack = slack(new.at.saturating_sub(old.at));
        let least = old.least.saturating_sub(slack).max(new.least);
        let most = old.most.saturating_add(slack).min(new.most);
        Some(if least <= most { Self { least, most, at: new.at } } else { new })
    }

    /// As a message, at some time of the steady clock.
    pub fn offset(&self, now: Nanos) -> ClockOffset {
        let slack = slack(now.saturating_sub(self.at));
        ClockOffset { least: self.least.saturating_sub(slack), most: self.most.saturating_add(slack) }
    }
}

/// How much two clocks can move against each other in some time, rounded up.
fn slack(time: Nanos) -> i64 {
    i64::try_from(u128::from(time.0) * u128::from(DRIFT_PPM) / 1_000_000 + 1).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: i128 = 1_700_000_000_000_000_000;

    /// What a clock that is ahead and drifts shows at a time.
    fn shown(at: u64, ahead: i64, ppm: i64) -> Nanos {
        Nanos((START + i128::from(at) + i128::from(ahead) + i128::from(at) * i128::from(ppm) / 1_000_000) as u64)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The coordinator's clock is right; a member's is up to ten seconds off and drifts.
        #[test]
        fn the_true_distance_is_in_the_interval(
            ahead in -10_000_000_000..10_000_000_000i64, ppm in -150..=150i64,
            messages in prop::collection::vec((1..5_000_000_000u64, 0..5_000_000u64, 0..5_000_000u64), 1..30),
        ) {
            let (mut now, mut clock) = (0, None);
            for (pause, there, back) in messages {
                now += pause;
                let (sent, came) = (now, now + there + back);
                let time = ShownTime { sent: Nanos(sent), came: Nanos(came), wall: shown(came, 0, 0), shown: shown(sent + there, ahead, ppm) };
                clock = MeasuredClock::with(clock, time);
                now = came;
                let offset = clock.expect("it was measured").offset(Nanos(now));
                let truth = (i128::from(shown(now, ahead, ppm).0) - i128::from(shown(now, 0, 0).0)) as i64;
                prop_assert!(offset.least - 2 <= truth && truth <= offset.most + 2, "{truth}: {offset:?}");
                let trip = there + back;
                prop_assert!(offset.most - offset.least <= (trip + 2 * (trip / 5_000 + 4)) as i64, "no wider than its round trip");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_counts_as_it_is_now() {
        let time = |sent: u64, ahead: i64| ShownTime {
            sent: Nanos(sent),
            came: Nanos(sent + 100),
            wall: shown(sent + 100, 0, 0),
            shown: shown(sent + 50, ahead, 0),
        };
        let clock = MeasuredClock::with(None, time(0, 0));
        let clock = MeasuredClock::with(clock, time(1_000, 5_000_000)).expect("it was measured");
        assert_eq!(clock.offset(Nanos(1_100)), ClockOffset { least: 4_999_948, most: 5_000_052 });
        // Later it is less certain.
        assert_eq!(clock.offset(Nanos(1_001_100)), ClockOffset { least: 4_999_748, most: 5_000_252 });
    }
}
