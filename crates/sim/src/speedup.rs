//! Arrival times, compressed by an exact ratio.

use queuescope_wire::Nanos;
use std::fmt;
use std::str::FromStr;

/// How many times faster than captured a stream is replayed (ConQuest section 5.1 replays its trace 50 times faster).
/// An exact ratio: time `t` after the first packet becomes `t * denominator / numerator`, rounded down.
///
/// ```
/// use queuescope_sim::Speedup;
/// use queuescope_wire::Nanos;
///
/// let speedup: Speedup = "2.5x".parse()?;
/// assert_eq!(speedup.apply(Nanos(1_000)), Nanos(400));
/// assert_eq!(Speedup::NONE.apply(Nanos(1_000)), Nanos(1_000));
/// assert!("0".parse::<Speedup>().is_err());
/// # Ok::<(), queuescope_sim::SpeedupError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speedup {
    numerator: u64,
    denominator: u64,
}

impl Speedup {
    /// As captured.
    pub const NONE: Self = Self { numerator: 1, denominator: 1 };

    /// The nearest multiple of a billionth to a factor above zero; at least a billionth.
    ///
    /// # Errors
    /// Fails if the factor is not a finite number above zero.
    pub fn nearest(factor: f64) -> Result<Self, SpeedupError> {
        const BILLION: u64 = 1_000_000_000;
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(SpeedupError { text: factor.to_string() });
        }
        Ok(Self { numerator: ((factor * BILLION as f64).round() as u64).max(1), denominator: BILLION })
    }

    /// Converts captured time to replayed time.
    #[inline]
    pub fn apply(self, span: Nanos) -> Nanos {
        if self == Self::NONE {
            return span;
        }
        let scaled = u128::from(span.0) * u128::from(self.denominator) / u128::from(self.numerator);
        Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.numerator / self.denominator, self.numerator % self.denominator);
        if part == 0 {
            return f.pad(&whole.to_string());
        }
        let digits = self.denominator.ilog10() as usize;
        f.pad(format!("{whole}.{part:0digits$}").trim_end_matches('0'))
    }
}

/// Written `50`, `2.5`, `0.1` or `50x`, with at most nine decimals.
impl FromStr for Speedup {
    type Err = SpeedupError;

    fn from_str(text: &str) -> Result<Self, SpeedupError> {
        let error = || SpeedupError { text: text.to_owned() };
        let number = text.trim().trim_end_matches(['x', 'X']);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(part) || whole.len() + part.len() == 0 || whole.len() > 9 || part.len() > 9 {
            return Err(error());
        }
        let numerator = format!("{whole}{part}").parse().map_err(|_| error())?;
        if numerator == 0 {
            return Err(error());
        }
        Ok(Self { numerator, denominator: 10u64.pow(part.len() as u32) })
    }
}

/// A speedup that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a speedup: use a number above zero and below 10^9, with at most nine decimals, such as 50, 2.5 or 0.1"
)]
pub struct SpeedupError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speedups_read_show_and_scale() {
        let speedup = |text: &str| text.parse::<Speedup>().unwrap();
        assert_eq!(speedup("50").apply(Nanos(1_000)), Nanos(20));
        assert_eq!(speedup("2.5x").apply(Nanos(1_000)), Nanos(400));
        assert_eq!(speedup("0.1").apply(Nanos(1_000)), Nanos(10_000));
        assert_eq!(speedup("3").apply(Nanos(u64::MAX)), Nanos(u64::MAX / 3));
        for (text, shown) in [("50", "50"), ("2.50", "2.5"), ("0.05", "0.05"), ("1.000", "1"), (".5", "0.5")] {
            assert_eq!(speedup(text).to_string(), shown);
        }
        for text in ["", "0", "0.0", "-1", "+1", "1e3", "x", "1.2.3", "inf", "12345678901"] {
            assert!(text.parse::<Speedup>().is_err(), "{text}");
        }
        assert_eq!(Speedup::nearest(2.5).unwrap().apply(Nanos(1_000)), Nanos(400));
        for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -3.0, 0.0] {
            let error = Speedup::nearest(factor).unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{factor}' is not a speedup")), "{error}");
        }
    }
}
