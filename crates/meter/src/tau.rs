//! When a queue counts as congested.

use queuescope_wire::Nanos;
use std::fmt;

/// The sojourn time from which a queue counts as congested (ConQuest's tau).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tau {
    /// A fixed value.
    Given(Nanos),
    /// An eighth of the longest delay so far (ConQuest section 5.1 uses an eighth of the longest of all), but at least
    /// `floor`, so that a few packets in a row do not count as congestion.
    EighthOfLongest {
        /// The smallest value of tau.
        floor: Nanos,
        /// The longest delay so far.
        longest: Nanos,
    },
}

impl Tau {
    /// Creates a tau that follows the longest delay.
    pub fn adaptive(floor: Nanos) -> Self {
        Self::EighthOfLongest { floor: floor.max(Nanos(1)), longest: Nanos::ZERO }
    }

    /// A packet waited `sojourn`: returns tau, with this packet included.
    #[inline]
    pub fn update(&mut self, sojourn: Nanos) -> Nanos {
        if let Self::EighthOfLongest { longest, .. } = self {
            *longest = sojourn.max(*longest);
        }
        self.value()
    }

    /// The current value.
    #[inline]
    pub fn value(&self) -> Nanos {
        match *self {
            Self::Given(tau) => tau,
            Self::EighthOfLongest { floor, longest } => floor.max(Nanos(longest.0 / 8)),
        }
    }
}

impl fmt::Display for Tau {
    /// The origin of the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Given(_) => "given",
            Self::EighthOfLongest { floor, longest } if floor.0 >= longest.0 / 8 => {
                "the minimum; 1/8 of the longest delay is less"
            }
            Self::EighthOfLongest { .. } => "1/8 of the longest delay so far",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_follows_the_longest_delay() {
        let mut tau = Tau::adaptive(Nanos(10));
        assert_eq!(tau.update(Nanos(40)), Nanos(10));
        assert_eq!(tau.update(Nanos(800)), Nanos(100));
        assert_eq!(tau.update(Nanos(8)), Nanos(100));
        assert_eq!(Tau::Given(Nanos(3)).update(Nanos(800)), Nanos(3));
    }
}
