//! Converts text to whole nanoseconds, bytes and classes: digit by digit, so that no binary fraction rounds them.

use crate::stats::Problem;
use std::fmt;
use std::str::FromStr;

/// The unit of the numbers in a table's time columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    #[default]
    Nanos,
}

impl TimeUnit {
    /// The power of ten that converts this unit to nanoseconds.
    pub(crate) fn power(self) -> u32 {
        match self {
            Self::Seconds => 9,
            Self::Millis => 6,
            Self::Micros => 3,
            Self::Nanos => 0,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "us",
            Self::Nanos => "ns",
        })
    }
}

/// Parses `s`, `ms`, `us`, `ns`.
impl FromStr for TimeUnit {
    type Err = TimeUnitError;
    fn from_str(text: &str) -> Result<Self, TimeUnitError> {
        match text.trim() {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Millis),
            "us" | "µs" | "μs" => Ok(Self::Micros),
            "ns" => Ok(Self::Nanos),
            _ => Err(TimeUnitError { text: text.to_owned() }),
        }
    }
}

/// The error for an unknown unit of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a unit of time: units are s, ms, us, ns")]
pub struct TimeUnitError {
    /// The text.
    pub text: String,
}

/// A number in the smallest unit, and whether digits beyond that were rounded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundedNumber {
    pub value: u64,
    pub rounded: bool,
}

impl RoundedNumber {
    pub fn exact(value: u64) -> Self {
        Self { value, rounded: false }
    }
}

/// A decimal number times ten to the `power`, rounded to the nearest whole number (halves up). Accepts signs, a
/// fraction and an exponent: `1`, `+1.5`, `.5`, `2.`, `1.7e9`, `12E-3`, `-0`.
pub(crate) fn decimal(text: &[u8], power: u32) -> Result<RoundedNumber, Problem> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(Problem::Missing);
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mantissa, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let dot = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let (whole, fraction) = (&mantissa[..dot], mantissa.get(dot + 1..).unwrap_or_default());
    let digits = || whole.iter().chain(fraction);
    if whole.is_empty() && fraction.is_empty() || !digits().all(u8::is_ascii_digit) {
        return Err(Problem::NotANumber);
    }
    let zeros = digits().take_while(|&&digit| digit == b'0').count();
    let significant = || digits().skip(zeros);
    if significant().next().is_none() {
        return Ok(RoundedNumber::exact(0));
    }
    if negative {
        return Err(Problem::Negative);
    }
    // How many significant digits are before the point, after the exponent and the unit have moved it.
    let before = whole.len() as i64 - zeros as i64 + exponent + i64::from(power);
    if before > 20 {
        return Err(Problem::TooLarge);
    }
    let mut rest = significant();
    let mut value = 0u128;
    for _ in 0..before {
        value = value * 10 + rest.next().map_or(0, |digit| u128::from(digit - b'0'));
    }
    // With `before` negative, zeros are between the point and the first significant digit: that rounds down.
    let half = before >= 0 && rest.clone().next().is_some_and(|&digit| digit >= b'5');
    let rounded = rest.any(|&digit| digit != b'0');
    let value = u64::try_from(value + u128::from(half)).map_err(|_| Problem::TooLarge)?;
    Ok(RoundedNumber { value, rounded })
}

/// A whole number, such as a size; `1500.0` is also whole.
pub(crate) fn whole(text: &[u8]) -> Result<u64, Problem> {
    let RoundedNumber { value, rounded } = decimal(text, 0)?;
    if rounded { Err(Problem::NotWhole) } else { Ok(value) }
}

/// An exponent; extreme ones saturate.
fn exponent(text: &[u8]) -> Result<i64, Problem> {
    const LIMIT: i64 = 1 << 40;
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Problem::NotANumber);
    }
    let value = digits.iter().fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(LIMIT));
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn read(text: &str, unit: TimeUnit) -> Result<(u64, bool), Problem> {
        decimal(text.as_bytes(), unit.power()).map(|whole| (whole.value, whole.rounded))
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(read("1700000000.123456789", TimeUnit::Seconds), Ok((1_700_000_000_123_456_789, false)));
        assert_eq!(read("1.7e9", TimeUnit::Seconds), Ok((1_700_000_000_000_000_000, false)));
        assert_eq!(read("0.3", TimeUnit::Micros), Ok((300, false)));
        assert_eq!(read("  +12.5 ", TimeUnit::Millis), Ok((12_500_000, false)));
        assert_eq!(read(".5", TimeUnit::Micros), Ok((500, false)));
        assert_eq!(read("2.", TimeUnit::Nanos), Ok((2, false)));
        assert_eq!(read("-0.0", TimeUnit::Nanos), Ok((0, false)));
        assert_eq!(read("18446744073709551615", TimeUnit::Nanos), Ok((u64::MAX, false)));
        assert_eq!(read("0e999999999999999999999", TimeUnit::Nanos), Ok((0, false)));
    }

    #[test]
    fn digits_below_a_nanosecond_are_rounded_and_reported() {
        assert_eq!(read("0.30000000000000004", TimeUnit::Seconds), Ok((300_000_000, true)));
        assert_eq!(read("1.4", TimeUnit::Nanos), Ok((1, true)));
        assert_eq!(read("1.5", TimeUnit::Nanos), Ok((2, true)));
        assert_eq!(read("0.05", TimeUnit::Nanos), Ok((0, true)));
        assert_eq!(read("9.99e-1", TimeUnit::Nanos), Ok((1, true)));
        assert_eq!(read("1e-999999999999999999999", TimeUnit::Seconds), Ok((0, true)));
        assert_eq!(whole(b"1500.0"), Ok(1500));
        assert_eq!(whole(b"1500.5"), Err(Problem::NotWhole));
    }

    #[test]
    fn a_value_that_is_not_a_number_says_why() {
        for text in ["x", "1x", "1.2.3", ".", "e5", "1e", "1e+", "--1", "0x10", "1,5", "1 2", "nan", "inf", "+", "١"] {
            assert_eq!(read(text, TimeUnit::Nanos), Err(Problem::NotANumber), "{text}");
        }
        assert_eq!(read(" ", TimeUnit::Nanos), Err(Problem::Missing));
        assert_eq!(read("-1", TimeUnit::Nanos), Err(Problem::Negative));
        assert_eq!(read("18446744073709551616", TimeUnit::Nanos), Err(Problem::TooLarge));
        assert_eq!(read("18446744073709551615.5", TimeUnit::Nanos), Err(Problem::TooLarge));
        assert_eq!(read("1e30", TimeUnit::Nanos), Err(Problem::TooLarge));
        assert_eq!(read("1e999999999999999999999", TimeUnit::Nanos), Err(Problem::TooLarge));
    }

    #[test]
    fn units_are_read_and_shown() {
        for unit in [TimeUnit::Seconds, TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
            assert_eq!(unit.to_string().parse(), Ok(unit));
        }
        assert!("min".parse::<TimeUnit>().unwrap_err().to_string().contains("units are s, ms, us, ns"));
    }

    /// The same with big integers: digits x 10^shift, rounded half up.
    fn reference(whole: &str, fraction: &str, exponent: i32, power: u32) -> Result<(u64, bool), Problem> {
        let digits: BigUint = format!("0{whole}{fraction}").parse().unwrap();
        let shift = exponent + power as i32 - fraction.len() as i32;
        let scale = BigUint::from(10u32).pow(shift.unsigned_abs());
        let (value, rounded) = if shift >= 0 {
            (digits * scale, false)
        } else {
            let quotient = (&digits * 2u32 + &scale) / (&scale * 2u32);
            (quotient, digits % scale != BigUint::ZERO)
        };
        u64::try_from(value).map(|value| (value, rounded)).map_err(|_| Problem::TooLarge)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn decimals_agree_with_big_integers(
            whole in "[0-9]{1,24}", fraction in "[0-9]{0,24}", exponent in -30i32..30, power in 0u32..10,
        ) {
            let text = format!("{whole}.{fraction}e{exponent}");
            let read = decimal(text.as_bytes(), power).map(|whole| (whole.value, whole.rounded));
            prop_assert_eq!(read, reference(&whole, &fraction, exponent, power));
        }

        #[test]
        fn whole_numbers_read_back(value: u64) {
            prop_assert_eq!(decimal(value.to_string().as_bytes(), 0), Ok(RoundedNumber::exact(value)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(b"0123456789.eE+-x ".to_vec()), 0..40)) {
            let _ = decimal(&bytes, 9);
        }
    }
}
