//! Values of arguments that need reading.

/// A moment or a stretch of time, from the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A moment.
    Moment(Nanos),
    /// From one moment until another.
    Stretch(Nanos, Nanos),
}

impl At {
    /// The same on a clock that shows `origin` as the first packet comes; a moment is a nanosecond.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| text.parse::<Nanos>().map_err(|error| error.to_string());
        let Some((from, to)) = text.split_once("..") else { return time(text).map(Self::Moment) };
        match (time(from)?, time(to)?) {
            (from, to) if from < to => Ok(Self::Stretch(from, to)),
            _ => Err(format!("'{text}' ends before it begins, or as it does: write FROM..TO, such as 1.2s..1.5s")),
        }
    }
}

/// A share, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alpha(pub f64);

impl FromStr for Alpha {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
        match number.parse::<f64>().map(|number| number / scale) {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(Self(share)),
            _ => Err(format!("'{text}' is no such share: use one above 0 and up to 100%, such as 1% or 0.01")),
        }
    }
}

/// A factor by which something grows, at least 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor(pub f64);

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().trim_end_matches(['x', 'X']).parse::<f64>() {
            Ok(factor) if factor >= 2.0 && factor.is_finite() => Ok(Self(factor)),
            _ => Err(format!("'{text}' is no factor: use one of at least 2, such as 4 or 4x")),
        }
    }
}

use queuescope_report::format::moment;
use queuescope_wire::Nanos;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_stretches_are_read() {
        assert_eq!("1.5s".parse(), Ok(At::Moment(Nanos(1_500_000_000))));
        assert_eq!("1ms..2ms".parse(), Ok(At::Stretch(Nanos(1_000_000), Nanos(2_000_000))));
        for text in ["", "1", "2ms..1ms", "1ms..1ms", "..", "1ms..", "-1ms", "1ms..2"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_above_nothing_and_at_most_everything() {
        assert_eq!("1%".parse(), Ok(Alpha(0.01)));
        assert_eq!("0.3".parse(), Ok(Alpha(0.3)));
        for text in ["0", "101%", "-1%", "NaN", "inf", "", "%"] {
            assert!(text.parse::<Alpha>().is_err(), "{text}");
        }
    }
}
