//! When a queue counts as congested.

use queuescope_wire::Nanos;
use std::fmt;

/// The delay from which on a queue counts as congested (ConQuest's tau).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tau {
    /// So long.
    Given(Nanos),
    /// An eighth of the longest delay so far (ConQuest section 5.1 takes an eighth of the longest of all), but never
    /// below `floor`, so that a few packets in a row are no congestion.
    EighthOfLongest {
        /// The least that tau is.
        floor: Nanos,
        /// The longest delay so far.
        longest: Nanos,
    },
}

impl Tau {
    /// An eighth of the longest delay, once it is known.
    pub fn adaptive(floor: Nanos) -> Self {
        Self::EighthOfLongest { floor: floor.max(Nanos(1)), longest: Nanos::ZERO }
    }

    /// A packet waited `sojourn`: tau, with it.
    #[inline]
    pub fn update(&mut self, sojourn: Nanos) -> Nanos {
        if let Self::EighthOfLongest { longest, .. } = self {
            *longest = sojourn.max(*longest);
        }
        self.value()
    }

    /// Tau as it stands.
    #[inline]
    pub fn value(&self) -> Nanos {
        match *self {
            Self::Given(tau) => tau,
            Self::EighthOfLongest { floor, longest } => floor.max(Nanos(longest.0 / 8)),
        }
    }
}

impl fmt::Display for Tau {
    /// Where its value comes from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Given(_) => "given",
            Self::EighthOfLongest { floor, longest } if floor.0 >= longest.0 / 8 => {
                "the least it may be; 1/8 of the longest delay is less"
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
