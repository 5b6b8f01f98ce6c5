//! Estimators: which windows count for an interval, and how much.

use queuescope_wire::Nanos;
use std::fmt;
use std::str::FromStr;

/// Which windows count for the interval `[from, to)`, and how much.
///
/// ```
/// use queuescope_sketch::Estimator;
///
/// let estimator: Estimator = "overlap".parse()?;
/// assert_eq!(estimator, Estimator::Overlap);
/// println!("choose from {}", Estimator::ALL.map(|estimator| estimator.to_string()).join(", "));
/// assert!("middle".parse::<Estimator>().is_err());
/// # Ok::<(), queuescope_sketch::EstimatorError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Estimator {
    /// Windows within the interval: `ceil(from / T)` to `floor(to / T) - 1` (section 3.3). Misses both ends.
    Inner,
    /// All windows that the interval touches, with their whole counts. Includes what passed just before `from` (the
    /// error that section 5.1 describes).
    Outer,
    /// All windows that the interval touches, each weighted by the part of it within the interval.
    Overlap,
}

impl Estimator {
    /// All estimators.
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

/// Counts of keys in windows of time, to compare with exact counts.
///
/// ```
/// use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Ideal, Snapshots};
/// use queuescope_wire::Nanos;
///
/// fn bytes_of(snapshots: &mut impl Snapshots, key: u64) -> u64 {
///     snapshots.record(key, 1_500, Nanos(0));
///     snapshots.estimate(key, Nanos(0), Nanos(1), Estimator::Outer)
/// }
///
/// let params = ConQuestParams::fit("4ms".parse()?, "64KiB".parse()?, 4, None, Expiry::Tag)?;
/// assert_eq!(bytes_of(&mut Ideal::new(&params)?, 1), 1_500);
/// assert_eq!(bytes_of(&mut ConQuest::new(params)?, 1), 1_500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Snapshots {
    /// Records that `weight` of `key` passes at `now`.
    fn record(&mut self, key: u64, weight: u32, now: Nanos);

    /// Estimates how much of `key` passed in `[from, to)`. `to` must not be before any recorded packet. If it is in a
    /// later window, that window starts.
    fn estimate(&mut self, key: u64, from: Nanos, to: Nanos, estimator: Estimator) -> u64;
}

/// A text that does not name an estimator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an estimator: use inner, outer or overlap")]
pub struct EstimatorError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for estimator in Estimator::ALL {
            assert_eq!(estimator.to_string().parse(), Ok(estimator));
        }
        let error = "outter".parse::<Estimator>().unwrap_err();
        assert_eq!(error.to_string(), "'outter' is not an estimator: use inner, outer or overlap");
    }
}
