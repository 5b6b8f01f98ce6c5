//! Which windows count for a question about `[from, to)`, and how much.

use queuescope_wire::Nanos;
use std::fmt;
use std::str::FromStr;

/// Which windows count for a question about `[from, to)`, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Estimator {
    /// Windows that lie within: `ceil(from / T)` to `floor(to / T) - 1` (section 3.3). Misses both ends.
    Inner,
    /// Windows that are touched, whole. Takes in what passed just before `from` (the error that section 5.1 describes).
    Outer,
    /// Windows that are touched, each weighed by the part of it that lies within.
    Overlap,
}

impl Estimator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Inner, Self::Outer, Self::Overlap];
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Inner => "inner",
            Self::Outer => "outer",
            Self::Overlap => "overlap",
        })
    }
}

impl FromStr for Estimator {
    type Err = EstimatorError;

    fn from_str(text: &str) -> Result<Self, EstimatorError> {
        let found = Self::ALL.into_iter().find(|estimator| estimator.to_string() == text);
        found.ok_or_else(|| EstimatorError { text: text.to_owned() })
    }
}

/// What can be held against the truth: counts of keys by windows of time.
pub trait Snapshots {
    /// `weight` of `key` passes at `now`.
    fn record(&mut self, key: u64, weight: u32, now: Nanos);

    /// How much of `key` passed in `[from, to)`, `to` being no earlier than anything recorded. Asking about a time in a
    /// later window begins that window.
    fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64;
}

/// An estimator that there is none of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no estimator: use inner, outer or overlap")]
pub struct EstimatorError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for estimator in Estimator::ALL {
            assert_eq!(estimator.to_string().parse(), Ok(estimator));
        }
        let error = "outter".parse::<Estimator>().unwrap_err();
        assert_eq!(error.to_string(), "'outter' is no estimator: use inner, outer or overlap");
    }
}
