//! A time or a time range, counted from the first packet.

use queuescope_report::format::moment;
use queuescope_wire::{Nanos, UnitError};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A moment or a time range, counted from the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A moment.
    Moment(Nanos),
    /// From one moment until another, which is not included.
    Stretch(Nanos, Nanos),
}

impl At {
    /// All times.
    pub(super) const EVER: Self = Self::Stretch(Nanos::ZERO, Nanos::MAX);

    /// The time range on a clock on which the first packet comes at `origin`. A moment is one nanosecond long.
    pub fn range(self, origin: Nanos) -> Range<Nanos> {
        let (from, to) = match self {
            Self::Moment(at) => (at, at.saturating_add(Nanos(1))),
            Self::Stretch(from, to) => (from, to),
        };
        origin.saturating_add(from)..origin.saturating_add(to)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moment(at) => f.pad(&format!("at {}", moment(at.0))),
            Self::Stretch(from, to) => f.pad(&format!("from {} to {}", moment(from.0), moment(to.0))),
        }
    }
}

impl FromStr for At {
    type Err = AtError;

    fn from_str(text: &str) -> Result<Self, AtError> {
        let time = |text: &str| text.parse::<Nanos>();
        let Some((from, to)) = text.split_once("..") else { return Ok(Self::Moment(time(text)?)) };
        match (time(from)?, time(to)?) {
            (from, to) if from < to => Ok(Self::Stretch(from, to)),
            _ => Err(AtError::Backwards(text.to_owned())),
        }
    }
}

/// Why a text is neither a moment nor a time range.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtError {
    /// A time is missing or invalid.
    #[error(transparent)]
    Time(#[from] UnitError),
    /// The range is empty.
    #[error("'{0}' is an empty time range: write FROM..TO, such as 1.2s..1.5s")]
    Backwards(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_ranges_are_parsed() {
        let at = |text: &str| text.parse::<At>().expect("it is a time");
        assert_eq!(at("1.5s"), At::Moment(Nanos(1_500_000_000)));
        assert_eq!(at("1ms..2ms"), At::Stretch(Nanos(1_000_000), Nanos(2_000_000)));
        for text in ["", "1", "2ms..1ms", "1ms..1ms", "..", "1ms..", "-1ms", "1ms..2"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }
}
