//! Converts dates with times of day as text (ISO 8601, RFC 3339 and the variants of databases) to nanoseconds since
//! 1970.

use crate::number::{RoundedNumber, decimal};
use crate::stats::Problem;

const SECOND: i128 = 1_000_000_000;

/// A time in a table: a number in units of ten to the `power` nanoseconds, or a date with a time of day, such as
/// `2024-05-06 07:08:09.123456789+00` or `2024-05-06T07:08:09Z`. Without an offset it is UTC.
pub(crate) fn time(text: &[u8], power: u32) -> Result<RoundedNumber, Problem> {
    let text = text.trim_ascii();
    match text {
        [a, b, c, d, b'-', rest @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()) => {
            let year = number(&[*a, *b, *c, *d]).ok_or(Problem::NotATime)?;
            date_time(year, rest)
        }
        _ => decimal(text, power),
    }
}

/// The rest of a date after its year and a hyphen.
fn date_time(year: i64, text: &[u8]) -> Result<RoundedNumber, Problem> {
    let [m1, m2, b'-', d1, d2, b'T' | b't' | b' ', h1, h2, b':', n1, n2, b':', s1, s2, rest @ ..] = text else {
        return Err(Problem::NotATime);
    };
    let part = |tens: u8, ones: u8, range: std::ops::RangeInclusive<i64>| {
        number(&[tens, ones]).filter(|value| range.contains(value)).ok_or(Problem::NotATime)
    };
    let month = part(*m1, *m2, 1..=12)?;
    let day = part(*d1, *d2, 1..=days_in(year, month))?;
    // A leap second is the first second of the next minute: Unix time has no number for it.
    let (hour, minute, second) = (part(*h1, *h2, 0..=23)?, part(*n1, *n2, 0..=59)?, part(*s1, *s2, 0..=60)?);
    let digits = match rest {
        [b'.' | b',', digits @ ..] => digits.iter().take_while(|digit| digit.is_ascii_digit()).count(),
        _ => 0,
    };
    let (fraction, zone) = match rest {
        [b'.' | b',', tail @ ..] if digits > 0 => tail.split_at(digits),
        rest => (&[][..], rest),
    };
    let fraction = match fraction {
        [] => RoundedNumber::exact(0),
        digits => decimal(&[b".", digits].concat(), 9)?,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    let value = i128::from(seconds) * SECOND + i128::from(fraction.value);
    let value = if value < 0 { Err(Problem::Negative) } else { u64::try_from(value).map_err(|_| Problem::TooLarge) };
    Ok(RoundedNumber { value: value?, rounded: fraction.rounded })
}

/// The offset of a time zone from UTC in seconds: `Z`, `UTC`, `+00`, `-0530`, `+05:30`, or nothing.
fn offset(zone: &[u8]) -> Result<i64, Problem> {
    let (sign, hours, minutes): (i64, &[u8], &[u8]) = match zone.trim_ascii_start() {
        [] | b"Z" | b"z" | b"UTC" => return Ok(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            (if *sign == b'-' { -1 } else { 1 }, &[*h1, *h2], &[*m1, *m2])
        }
        [sign @ (b'+' | b'-'), h1, h2] => (if *sign == b'-' { -1 } else { 1 }, &[*h1, *h2], b"00"),
        _ => return Err(Problem::NotATime),
    };
    let part = |digits, most| number(digits).filter(|value| *value <= most).ok_or(Problem::NotATime);
    Ok(sign * (part(hours, 23)? * 3_600 + part(minutes, 59)? * 60))
}

/// Parses a few digits.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, for years from 0. Years begin in March here, so the leap day is the
/// last day, and the months before a date have (153 m + 2) / 5 days.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u64, Problem> {
        time(text.as_bytes(), 0).map(|whole| whole.value)
    }

    #[test]
    fn dates_count_the_days_one_by_one() {
        let mut expected = 0;
        for year in 1970..=2500 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    assert_eq!(days_since_1970(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
        assert_eq!((days_in(2000, 2), days_in(2100, 2), days_in(2024, 2), days_in(2023, 2)), (29, 28, 29, 28));
    }

    #[test]
    fn times_of_every_spelling_read() {
        let expected = Ok(1_714_979_289_123_456_789);
        for text in [
            "2024-05-06T07:08:09.123456789Z",
            "2024-05-06 07:08:09.123456789",
            "2024-05-06 07:08:09.123456789+00",
            "2024-05-06 07:08:09.123456789 UTC",
            "2024-05-06T12:38:09.123456789+05:30",
            " 2024-05-05 23:38:09,123456789-0730 ",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read("1970-01-01 00:00:00"), Ok(0));
        assert_eq!(read("1.5e-0"), Ok(2), "a number with its hyphen in the fifth place");
        assert_eq!(read("1971-01-01 00:00:00+00"), Ok(31_536_000_000_000_000));
    }

    #[test]
    fn a_text_that_is_not_a_time_is_an_error() {
        for text in [
            "2024-13-01 00:00:00",
            "2023-02-29 00:00:00",
            "2024-01-01",
            "2024-01-01 24:00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00 CET",
            "2024-01-01 00:00:00+1",
            "2024-01-01 00:0a:00",
        ] {
            assert_eq!(read(text), Err(Problem::NotATime), "{text}");
        }
        assert_eq!(read("1969-12-31 23:59:59"), Err(Problem::Negative));
        assert_eq!(read("9999-12-31 23:59:59"), Err(Problem::TooLarge));
    }
}
